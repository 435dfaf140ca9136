"""Networks and losses of a sharpener: identity before training, words, ranges, and losses in closed form."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

import mmgen
from mmgen.contrib.sharpening import (
    Discriminator,
    Sharpener,
    SharpenerSettings,
    SharpeningSettings,
    SharpeningTask,
    build_discriminator,
    build_sharpener,
)
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.modalities.text import TextDescription
from mmgen.models import DataSettings

SMALL = SharpenerSettings(width=4, blocks=1, discriminator_width=4, words=6)
COLOUR = AttributesDescription(names=("colour",), values=(("red", "green", "blue"),))
SENTENCE = TextDescription(vocabulary=("a", "red", "box"), length=3)


def settings(layout: str = "bytes", side: int = 16) -> SharpeningSettings:
    image = ImageDescription(shape=(3, side, side), layout=layout)
    return SharpeningSettings(sharpener=SMALL, data=DataSettings.from_descriptions(image, COLOUR, SENTENCE))


def words(count: int = 4) -> Batch:
    values = {
        "attributes": (torch.arange(count) % 3)[:, None],
        "text": torch.tensor([[0, 1, 2], [1, 3, 3], [2, 1, 3], [0, 0, 0]])[:count],
    }
    known = {"attributes": torch.ones(count, 1, dtype=torch.bool), "text": torch.ones(count, dtype=torch.bool)}
    return Batch(values, known)


def hidden(batch: Batch) -> Batch:
    return Batch(batch.values, {name: torch.zeros_like(known) for name, known in batch.present.items()})


def trained_sharpener(side: int = 16) -> Sharpener:
    """A sharpener with random weights in place of those that are zero before training."""
    torch.manual_seed(0)
    sharpener = build_sharpener(settings(side=side))
    for parameter in sharpener.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return sharpener


@pytest.mark.parametrize("side", [16, 31, 64])
def test_untrained_it_leaves_pictures_as_they_are(side: int) -> None:
    pictures = torch.rand(4, 3, side, side)
    sharpener = build_sharpener(settings(side=side))
    assert sharpener(pictures, words(), torch.randn(4, 1, side, side)).equal(pictures)
    assert sharpener.factor == (2 if side == 64 else 1)


def test_trained_it_stays_in_range_and_depends_on_words_and_noise() -> None:
    sharpener, pictures = trained_sharpener(), torch.rand(4, 3, 16, 16)
    sharpened = sharpener(pictures, words())
    assert sharpened.min() >= 0 and sharpened.max() <= 1 and not torch.allclose(sharpened, pictures)
    assert not torch.allclose(sharpened, sharpener(pictures, hidden(words())))
    assert not torch.allclose(sharpened, sharpener(pictures, words(), torch.ones(4, 1, 16, 16)))
    torch.testing.assert_close(sharpener(pictures, hidden(words())), sharpener(pictures))


def test_examples_do_not_see_each_other() -> None:
    sharpener, pictures, order = trained_sharpener(), torch.rand(4, 3, 16, 16), torch.tensor([2, 0, 3, 1])
    every = words()
    permuted = Batch(*({name: v[order] for name, v in part.items()} for part in (every.values, every.present)))
    torch.testing.assert_close(sharpener(pictures[order], permuted), sharpener(pictures, every)[order])


def test_clipped_pixels_get_gradients() -> None:
    sharpener = trained_sharpener()
    sharpened = sharpener(torch.ones(2, 3, 16, 16))
    sharpened.sum().backward()
    clipped = sharpened == 1
    assert clipped.any() and sharpener.last.bias is not None and sharpener.last.bias.grad is not None
    # The sum over pixels has slope 1 in each of them, clipped or not.
    torch.testing.assert_close(sharpener.last.bias.grad, torch.full((3,), 2.0 * 16 * 16))


def test_black_and_white_pictures_are_refused() -> None:
    with pytest.raises(SettingsError, match="expected pictures of grey levels or colours"):
        build_sharpener(settings("bits"))


class _Linear(Discriminator):
    """D(x) = the sum of x times a slope, whose hinge and penalty are known."""

    def __init__(self, slope: float) -> None:
        super().__init__((3, 16, 16), {}, SMALL)
        self.slope = torch.nn.Parameter(torch.tensor(slope))

    def forward(self, pictures: Tensor, words: Batch | None = None) -> Tensor:
        return self.slope * pictures.flatten(1).sum(1, keepdim=True)


def task_with(slope: float, drawn: Tensor, **changes: float) -> SharpeningTask:
    chosen = SMALL.model_copy(update=changes)
    return SharpeningTask(
        trained_sharpener(), _Linear(slope), chosen, lambda batch: words(), lambda batch, described: drawn
    )


def batch_of(real: Tensor) -> Batch:
    return Batch({"image": real}, {"image": torch.ones(len(real), dtype=torch.bool)})


def test_hinge_and_penalty_are_those_of_a_linear_discriminator() -> None:
    slope, drawn, real = 0.002, torch.rand(4, 3, 16, 16), torch.rand(4, 3, 16, 16)
    task = task_with(slope, drawn, keep_words=1.0, r1_every=16, r1_weight=3.0)
    torch.manual_seed(1)
    with_penalty = task(batch_of(real), 16, "discriminator")
    torch.manual_seed(1)
    without = task(batch_of(real), 17, "discriminator")
    of_real, of_sharpened = slope * real.flatten(1).sum(1), with_penalty.terms["D(sharpened)"]
    hinge = torch.minimum(torch.zeros(()), of_real - 1) + torch.minimum(torch.zeros(()), -of_sharpened - 1)
    torch.testing.assert_close(without.value, hinge)
    # |grad D|^2 is the squared slope for each of 768 numbers.
    torch.testing.assert_close(with_penalty.value, hinge - 16 * 3.0 / 2 * slope**2 * 768)


def test_the_sharpener_is_paid_for_realism_and_pays_for_moving() -> None:
    drawn = torch.rand(4, 3, 16, 16)
    task = task_with(0.5, drawn, low_pass_weight=7.0, low_pass_side=4, keep_words=1.0)
    bound = task(batch_of(drawn), None, "sharpener")
    sharpened = task.sharpener(drawn, words())
    cells = (sharpened - drawn).unflatten(2, (4, 4)).unflatten(4, (4, 4)).mean((3, 5))
    expected = 0.5 * sharpened.flatten(1).sum(1) - 7 * cells.abs().flatten(1).mean(1)
    torch.testing.assert_close(bound.value, expected)


def test_both_players_of_a_step_get_the_same_pictures_and_words() -> None:
    seen = []

    def draw(batch: Batch, described: Batch) -> Tensor:
        seen.append(described)
        return torch.rand(4, 3, 16, 16)

    task = SharpeningTask(trained_sharpener(), _Linear(0.1), SMALL, lambda batch: words(), draw)
    batch = batch_of(torch.rand(4, 3, 16, 16))
    for step in (0, 0, 1, 1):
        task(batch, step, task.players[len(seen) % 2])
    assert len(seen) == 2


def test_words_are_hidden_at_the_share_of_the_settings() -> None:
    torch.manual_seed(0)
    task = task_with(0.1, torch.rand(4, 3, 16, 16), keep_words=0.75)
    many = Batch(
        {"text": torch.zeros(4000, 3, dtype=torch.int64), "attributes": torch.zeros(4000, 1, dtype=torch.int64)},
        {"text": torch.ones(4000, dtype=torch.bool), "attributes": torch.ones(4000, 1, dtype=torch.bool)},
    )
    kept = task._drop_words(many).present
    assert kept["text"].equal(kept["attributes"][:, 0])
    assert kept["text"].float().mean() == pytest.approx(0.75, abs=0.03)


def test_the_discriminator_reads_words() -> None:
    discriminator = build_discriminator(settings())
    pictures = torch.rand(4, 3, 16, 16)
    assert discriminator(pictures, words()).shape == (4, 16)
    assert not torch.allclose(discriminator(pictures, words()), discriminator(pictures))


def test_words_of_another_kind_are_refused() -> None:
    from mmgen.modalities.vector import VectorDescription

    with pytest.raises(SettingsError, match="a sharpener got the words 'v' of kind"):
        Sharpener("image", (3, 16, 16), {"v": VectorDescription(name="v", size=3)}, SMALL)


def test_what_a_step_needs_is_told_without_a_trace_in_the_task(tmp_path: Path) -> None:
    """Both players of a step share its pictures, and the look at memory before it must not leave its own to them."""
    mmgen.make_data("shapes", tmp_path / "d.h5", number=60, size=16, workers=1, progress=False)
    mmgen.train(tmp_path / "d.h5", tmp_path / "m.safetensors", preset="quickstart/shapes", steps=1, progress=False)
    made = mmgen.fit_sharpener(tmp_path / "m.safetensors", tmp_path / "s.safetensors", steps=1, progress=False)
    assert (tmp_path / "s.safetensors").exists() and made is not None
