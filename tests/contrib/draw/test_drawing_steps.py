"""Figures of models that draw in steps, and what else is done with files of such models."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from mmgen.contrib.draw.plots.draw_steps import _READ, _WRITTEN, _frame_boxes
from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.figures.drawing.page import Grid
from mmgen.figures.drawing.style import hex_to_rgb
from mmgen.figures.plots._base import draw_plot
from mmgen.generation import load
from tests.small_data import write_small

WORDS = ["left", "right", "dark", "bright"]
SIZES: dict[str, Any] = {
    "name": "draw", "steps": 3, "latent_size": 2, "hidden": 8, "read_patch": 3, "write_patch": 4, "reader": 4,
}  # fmt: skip
"""Of models that have no such settings as the other tiny models."""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with plain.safetensors, captions.safetensors (with alignment) and summary.safetensors (without)."""
    from mmgen.artifacts import Dataset
    from mmgen.training.model_run import complete_settings, train_model

    folder = tmp_path_factory.mktemp("drawn")
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 2, (60, 2))
    images = generator.integers(0, 20, (60, 1, 12, 12)).astype(np.uint8)
    for image, (side, light) in zip(images, codes, strict=True):
        image[0, 3:9, 6 * side : 6 * side + 6] = 160 + 80 * light
    tokens = (codes + np.array([0, 2])).astype(np.uint16)
    tokens[:10, 1] = len(WORDS)  # captions of one word
    values = {"image": images, "text": tokens, "attributes": np.full((60, 1), UNKNOWN, np.uint8)}
    # Attributes are known of no example, as of published pixels.
    write_small(folder / "data.h5", values, {"digit": ["0", "1"]}, (WORDS, ()), (40, 10))
    cvae = {"name": "cvae", "description": "text"}
    for name, objective, further in (
        ("plain", {"name": "elbo", "modalities": ["image"], "given": ["image"]}, {}),
        ("captions", cvae, {"alignment": 5, "prior": "state", "learned_start": True, "output_bias": "mean"}),
        ("summary", cvae, {"alignment": 0}),
    ):
        values = {
            "model": {**SIZES, **further},
            "objective": objective,
            "training": {"steps": 4, "batch": 16, "log_every": 1, "validate_every": 2, "device": "cpu"},
        }
        with Dataset.open(folder / "data.h5") as data:
            settings = complete_settings(values, data)
        train_model(folder / "data.h5", settings, folder / f"{name}.safetensors", "mmgen train").run()
    return folder


def colours(image: Image.Image) -> set[tuple[int, ...]]:
    return {tuple(pixel) for pixel in np.unique(np.asarray(image.convert("RGB")).reshape(-1, 3), axis=0).tolist()}


@pytest.mark.slow
def test_steps_of_test_pictures_and_of_the_prior(drawn: Path, tmp_path: Path) -> None:
    picture, _ = draw_plot("draw-steps", [drawn / "plain.safetensors"], number=2)
    assert isinstance(picture.drawn, Grid)
    # Of two pictures: themselves, three canvases and three looks; of two draws of p(z): three canvases.
    assert len(picture.drawn.boxes) == 2 * (1 + 3 + 3) + 2 * 3
    assert {hex_to_rgb(_WRITTEN), hex_to_rgb(_READ)} <= colours(picture.drawn.image)
    assert "after 3 of 3 steps" in picture.caption
    assert "writes through" in picture.caption and "reads through" in picture.caption
    picture.save(tmp_path / "s.gif")
    with Image.open(tmp_path / "s.gif") as animation:
        assert getattr(animation, "n_frames", 1) == 3
        assert animation.info["comment"] == b"Software\0mmgen"
    picture.save(tmp_path / "s.png")
    with pytest.raises(UsageError, match=r"expected a name ending in \.png or \.gif"):
        picture.save(tmp_path / "s.svg")


def test_steps_of_captions(drawn: Path) -> None:
    picture, _ = draw_plot("draw-steps", [drawn / "captions.safetensors"], descriptions=["left bright", "right"])
    assert isinstance(picture.drawn, Grid) and len(picture.drawn.boxes) == 2 * 3
    assert "reads through" not in picture.caption
    rows, _ = draw_plot("draw-steps", [drawn / "captions.safetensors"], rows=[3])
    assert isinstance(rows.drawn, Grid) and len(rows.drawn.boxes) == 1 + 3 + 3


def test_attention_adds_up_to_one(drawn: Path, tmp_path: Path) -> None:
    picture, _ = draw_plot("attention", [drawn / "captions.safetensors"], descriptions=["left bright", "right"])
    tables = [axes for axes in picture.drawn.axes if axes.get_xticklabels() and axes.axison]
    assert [[label.get_text() for label in axes.get_xticklabels()] for axes in tables] == [
        ["left", "bright"],
        ["right"],
    ]
    both, one = (axes.images[0].get_array() for axes in tables)
    assert both.shape == (3, 2) and one.shape == (3, 1)
    np.testing.assert_allclose(both.sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose(one, 1, rtol=1e-5)
    picture.save(tmp_path / "a.svg")


def test_figures_of_steps_refuse_other_models(drawn: Path, world: Path) -> None:
    with pytest.raises(UsageError, match="draws pictures at once, expected steps; use a model of kind draw"):
        draw_plot("draw-steps", [world / "flat.safetensors"])
    with pytest.raises(UsageError, match="draws from no captions"):
        draw_plot("attention", [drawn / "plain.safetensors"])
    with pytest.raises(UsageError, match="same summary of a caption at every step"):
        draw_plot("attention", [drawn / "summary.safetensors"])


def test_boxes_are_in_pixels_and_cut_at_the_border() -> None:
    import torch

    boxes = torch.tensor([[1.0, 2.0, 4.0, 6.0], [-50.0, -50.0, 50.0, 50.0]])
    framed = _frame_boxes(np.zeros((2, 1, 8, 8), np.float32), boxes, _WRITTEN)
    factor = framed.shape[-1] // 8
    marked = (framed[0] == np.array(hex_to_rgb(_WRITTEN))[:, None, None]).all(0)
    rows, columns = np.nonzero(marked)
    assert (columns.min(), rows.min(), columns.max(), rows.max()) == (factor, 2 * factor, 5 * factor, 7 * factor)
    assert (framed[1][:, 0] == np.array(hex_to_rgb(_WRITTEN))[:, None]).all()


def test_a_density_over_all_steps_is_fitted_and_drawn(drawn: Path, stubs: SimpleNamespace) -> None:
    fitted = drawn / "fitted.safetensors"
    stubs.fit_tiny(drawn / "plain.safetensors", drawn / "data.h5", fitted, "aggregate", "text")
    loaded = load(fitted)
    assert loaded.model.latent.layers == {"z1": 2, "z2": 2, "z3": 2}
    assert loaded.sample("left bright", 3, seed=1).shape == (3, 1, 12, 12)


def test_measures_of_a_model_that_draws_in_steps(drawn: Path) -> None:
    """Active units by step; a likelihood above its bound, of pictures and of pictures given captions."""
    import mmgen

    scores = list(
        mmgen.evaluate(drawn / "plain.safetensors", ["active-units", "log-likelihood"], number=10, samples=20)
    )
    counts = {score.quantity: score.value for score in scores if score.metric == "active-units"}
    assert counts.keys() == {"active units", *(f"active units of z{step}" for step in (1, 2, 3))}
    assert counts["active units"] == sum(counts[f"active units of z{step}"] for step in (1, 2, 3))
    given = list(mmgen.evaluate(drawn / "captions.safetensors", ["log-likelihood"], number=10, samples=20))
    for found, quantity in ((scores, "log p(x)"), (given, "log p(x|y)")):
        values = {score.protocol: score.value for score in found if score.quantity == quantity}
        assert values["importance"] >= values["bound"]


def test_captions_find_their_pictures(drawn: Path, tmp_path: Path) -> None:
    import mmgen

    scores = list(
        mmgen.evaluate(drawn / "captions.safetensors", ["retrieval"], tmp_path / "r.jsonl", pool=10, samples=5)
    )
    shares = [score.value for score in scores if score.quantity.startswith("R@")]
    assert shares and all(0 <= share <= 100 for share in shares)
