"""Gaussian windows over pictures, weights over words, and the reader of captions."""

import pytest
import torch

from mmgen.contrib.draw._attention import PictureAttention, Window, WordAttention, grid_filters
from mmgen.networks import CaptionReader


def numbers(*values: float) -> list[torch.Tensor]:
    return [torch.tensor([value], dtype=torch.float64) for value in values]


@pytest.mark.parametrize("size", [2, 5, 8, 9])
def test_filters_are_centred_and_add_up_to_one(size: int) -> None:
    """Of a grid in the middle of 61 pixels, for odd and even N; a row's sum S becomes S / (S + 0.0001)."""
    filters = grid_filters(*numbers(30.0, 3.0, 1.5), size, 61)[0]
    assert filters.shape == (size, 61)
    total = 1.5 * (2 * torch.pi) ** 0.5  # of a Gaussian over all integers, nearly
    torch.testing.assert_close(filters.sum(1), torch.full((size,), total / (total + 1e-4)).double(), atol=1e-6, rtol=0)
    assert (1 - filters.sum(1) <= 1e-4 / (1 + 1e-4)).all()
    middles = (filters * torch.arange(61.0)).sum(1) / filters.sum(1)
    assert float(middles.mean()) == pytest.approx(30.0, abs=1e-6)
    torch.testing.assert_close(middles.diff(), torch.full((size - 1,), 3.0).double(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("size", [4, 5])
@pytest.mark.parametrize("channels", [1, 3])
def test_reading_and_then_writing_through_a_sharp_window_is_the_identity_on_it(size: int, channels: int) -> None:
    """With stride 1 and sd near 0, and gamma in both directions; outside of the window nothing is written."""
    middle = 7.0 + (size - 1) / 2
    rows = grid_filters(*numbers(middle, 1.0, 1e-3), size, 20)
    columns = grid_filters(*numbers(middle - 2, 1.0, 1e-3), size, 24)
    window = Window(rows, columns, torch.full((1, 1, 1), 2.5).double(), torch.zeros(1, 4))
    pictures = torch.rand(1, 20, channels * 24, dtype=torch.float64)
    written = window.write(window.read(pictures)).reshape(20, channels, 24)
    inside = torch.zeros(20, channels, 24, dtype=torch.bool)
    inside[7 : 7 + size, :, 5 : 5 + size] = True
    expected = torch.where(inside, pictures.reshape(20, channels, 24), 0.0)
    torch.testing.assert_close(written, expected / (1 + 1e-4) ** 4, atol=1e-9, rtol=1e-9)


def test_a_window_reads_two_pictures_side_by_side_as_it_reads_each() -> None:
    attention = PictureAttention(6, 4, (10, 14)).double()
    window = attention(torch.randn(3, 6, dtype=torch.float64))
    one, other = torch.rand(2, 3, 10, 14, dtype=torch.float64)
    both = window.read(torch.cat([one, other], -1)).reshape(3, 4, 2, 4)
    torch.testing.assert_close(both[:, :, 0].flatten(1), window.read(one))
    expected = window.intensity * (window.rows @ other @ window.columns.mT)
    torch.testing.assert_close(both[:, :, 1], expected)


@torch.no_grad()
def test_an_untrained_window_is_in_the_middle_and_spans_the_picture() -> None:
    attention = PictureAttention(6, 5, (12, 28))
    torch.nn.init.zeros_(attention.layer.weight)
    torch.nn.init.zeros_(attention.layer.bias)
    window = attention(torch.zeros(1, 6))
    torch.testing.assert_close(window.numbers, torch.tensor([[13.5, 5.5, 27 / 4, 1.0]]))
    assert float(window.intensity) == 1.0
    torch.nn.init.constant_(attention.layer.bias, 50.0)
    assert float(attention(torch.zeros(1, 6)).intensity) == pytest.approx(float(torch.tensor(4.0).exp()))


@torch.no_grad()
def test_padding_gets_no_attention_and_one_word_gets_all() -> None:
    attention = WordAttention(4, 6, 5)
    states, state = torch.randn(3, 7, 4), torch.randn(3, 6)
    lengths = torch.tensor([1, 4, 0])
    is_word = torch.arange(7) < lengths[:, None]
    weights = attention(state, attention.key(states), is_word)
    assert (weights[~is_word] == 0).all()
    torch.testing.assert_close(weights.sum(1), torch.tensor([1.0, 1.0, 0.0]))
    assert float(weights[0, 0]) == 1.0


CODES = torch.tensor([[0, 1, 2, 3], [2, 1, 4, 4], [3, 4, 4, 4], [1, 0, 2, 4]])
"""Captions of 4, 2, 1 and 3 of 4 words; 4 is padding."""


@pytest.mark.parametrize("embedding", [None, 3])
def test_a_reader_gives_each_caption_the_states_of_its_own_words(embedding: int | None) -> None:
    """Turning over the batch turns over the outputs and nothing else, in both directions."""
    reader = CaptionReader(4, 5, embedding, learned_start=True)
    present = torch.tensor([True, True, True, False])
    states, last, is_word = reader(CODES, present)
    turned = reader(CODES.flip(0), present.flip(0))
    for found, expected in zip(turned, (states, last, is_word), strict=True):
        torch.testing.assert_close(found.flip(0), expected)
    for row in range(4):
        alone = reader(CODES[row : row + 1], present[row : row + 1])
        torch.testing.assert_close(alone[0][0], states[row])
    assert is_word.sum(1).tolist() == [4, 2, 1, 0]


def test_both_directions_read_the_same_caption_and_padding_changes_nothing() -> None:
    reader = CaptionReader(4, 5)
    present = torch.ones(1, dtype=torch.bool)
    short, last, _ = reader(torch.tensor([[2, 1]]), present)
    padded, padded_last, _ = reader(torch.tensor([[2, 1, 4, 4, 4]]), present)
    torch.testing.assert_close(padded[:, :2], short)
    torch.testing.assert_close(padded_last, last)
    # Forwards the first word knows nothing of the second, backwards it does.
    other, _, _ = reader(torch.tensor([[2, 3]]), present)
    torch.testing.assert_close(other[0, 0, :5], short[0, 0, :5])
    assert not torch.allclose(other[0, 0, 5:], short[0, 0, 5:])
    # A reader whose two directions have the same weights reads a palindrome alike from both ends.
    for part in (reader.inputs, reader.cells):
        part[1].load_state_dict(part[0].state_dict())
    states, _, _ = reader(torch.tensor([[3, 0, 3, 4]]), present)
    torch.testing.assert_close(states[0, :3, :5].flip(0), states[0, :3, 5:])
