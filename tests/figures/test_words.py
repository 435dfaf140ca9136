"""Word histograms and tables of pictures with texts, to the pixel."""

from dataclasses import dataclass

import numpy as np
import pytest

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.page import FRAME
from mmgen.figures.drawing.style import FAINT, INK, WRONG, category_colours, hex_to_rgb
from mmgen.figures.drawing.tables import Tile, TileRow, tile_table
from mmgen.figures.drawing.words import (
    TextWithDistributions,
    explain_words,
    has_histograms,
    histogram_lines,
    mean_entropies,
    vocabulary_note,
    word_entropies,
)


@dataclass(frozen=True)
class Sentence:
    vocabulary: tuple[str, ...]
    length: int
    slots: tuple[str, ...] = ()


@dataclass(frozen=True)
class Words:
    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


INFO = Sentence(("small", "large", "red", "blue", "gray"), 2, ("size", "colour"))
ATTRIBUTES = Words(("size", "colour"), (("small", "large"), ("red", "blue", "gray")))
BLUE = hex_to_rgb(category_colours(1)[0])


def test_each_bar_is_as_high_as_its_probability_and_the_drawn_word_is_black() -> None:
    probabilities = np.array([[0.25, 0.75, 0, 0, 0, 0], [0, 0, 0.5, 0, 0.5, 0]])
    lines = histogram_lines(TextWithDistributions(np.array([1, 2]), probabilities), INFO, ATTRIBUTES, 240)
    assert [line.spans[0][0] for line in lines] == ["large", "red"]
    for position, line in enumerate(lines):
        assert line.bars is not None
        height, pitch = line.bars.shape[0] - 1, line.bars.shape[1] // 5  # above the line that bars stand on
        for code, probability in enumerate(probabilities[position][:5]):
            column = line.bars[:height, code * pitch]
            filled = (column == (hex_to_rgb(INK) if code == (1, 2)[position] else BLUE)).all(-1)
            assert filled.sum() == round(height * probability) and filled[height - filled.sum() :].all()
            # Nothing but the band or the page above the bar: the band is there for the words of the position.
            expected = FAINT if code in ((0, 1), (2, 3, 4))[position] else "#ffffff"
            assert (column[~filled] == hex_to_rgb(expected)).all()


def test_free_text_has_a_bar_for_no_word() -> None:
    free = Sentence(INFO.vocabulary, 2)
    text = TextWithDistributions(np.array([1, 5]), np.full((2, 6), 1 / 6))
    assert [line.spans[0][0] for line in histogram_lines(text, free, None, 240)] == ["large", "–"]
    assert vocabulary_note(INFO, ATTRIBUTES).startswith("Bars from left to right: small, large | red, blue, gray. Grey")
    assert vocabulary_note(free).startswith("Bars from left to right: small, large, red, blue, gray. Last: no word.")


def test_entropy_is_in_bits() -> None:
    p = np.array([[0.25] * 4, [0.5, 0.5, 0, 0], [1, 0, 0, 0]])
    assert word_entropies(p).tolist() == [2.0, 1.0, 0.0]
    # -(0.9 log2 0.9 + 0.1 log2 0.1)
    assert word_entropies(np.array([0.9, 0.1])) == pytest.approx(0.468996, abs=1e-6)
    texts = [TextWithDistributions(np.zeros(3, int), p), TextWithDistributions(np.zeros(3, int), p[::-1])]
    assert mean_entropies(texts).tolist() == [1.0, 1.0, 1.0]


def test_tiles_lie_in_their_boxes_and_mistakes_are_framed() -> None:
    images = np.random.default_rng(0).random((4, 3, 16, 16)).astype(np.float32)
    text = TextWithDistributions(np.array([0, 3]), np.eye(6)[[0, 3]])
    rows = [
        TileRow("first", [[Tile(images[0], ["small", "red"]), Tile(images[1], wrong=True, remark="judge: blue")]]),
        TileRow("second", [[Tile(images[2], text=text), Tile(images[3], ["small", "blue"], [False, True])]]),
    ]
    grid = tile_table(rows, heads=[("block", "of two")], info=INFO, attributes=ATTRIBUTES, title="t", note="n")
    pixels = np.asarray(grid.image)
    assert len(grid.boxes) == 4
    for image, (left, top, right, bottom), wrong in zip(images, grid.boxes, (False, True, False, False), strict=True):
        factor = (right - left) // 16
        inside = pixels[top:bottom:factor, left:right:factor] / 255
        assert np.allclose(inside, image.transpose(1, 2, 0), atol=1 / 255)
        frame = pixels[top - FRAME, left - FRAME : right + FRAME]
        assert (frame == hex_to_rgb(WRONG)).all() == wrong
    # Only the second row has histograms, below its images.
    black = (pixels == BLUE).all(-1) | (pixels == hex_to_rgb(FAINT)).all(-1)
    assert black[grid.boxes[2][3] :].any() and not black[: grid.boxes[2][1]].any()


def test_tables_refuse_what_does_not_fit() -> None:
    tile = Tile(np.zeros((1, 8, 8)))
    with pytest.raises(UsageError, match="no images"):
        tile_table([])
    with pytest.raises(UsageError, match=r"a row of \[2\] images, expected at most \[1\]"):
        tile_table([TileRow("", [[tile]]), TileRow("", [[tile, tile]])])
    with pytest.raises(UsageError, match="got tiles with texts, but no vocabulary"):
        tile_table(
            [TileRow("", [[Tile(np.zeros((1, 8, 8)), text=TextWithDistributions(np.zeros(1, int), np.ones((1, 2))))]])]
        )


def test_a_large_vocabulary_stands_as_words_under_pictures() -> None:
    many = Sentence(tuple(f"word{number}" for number in range(1_816)), 2)
    assert has_histograms(INFO, ATTRIBUTES) and not has_histograms(many)
    assert explain_words(INFO, ATTRIBUTES).startswith("Under a picture: for each position")
    assert explain_words(many) == "Under a picture: the words drawn, without histograms of the 1,816 words."
    text = TextWithDistributions(np.array([3, 1_816]), np.full((2, 1_817), 1 / 1_817))
    picture = np.zeros((1, 16, 16), np.float32)
    drawn = tile_table([TileRow("", [[Tile(picture, text=text)]])], info=many)
    written = tile_table([TileRow("", [[Tile(picture, ["word3"])]])])
    assert np.array_equal(np.asarray(drawn.image), np.asarray(written.image))
