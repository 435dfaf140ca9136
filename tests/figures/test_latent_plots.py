"""Traversals, interpolations and maps of encodings of models with any number of dimensions."""

from pathlib import Path

import numpy as np
import pytest
import torch

from mmgen.artifacts import Dataset
from mmgen.cli._main import main
from mmgen.core.errors import UsageError
from mmgen.figures.drawing.page import Grid
from mmgen.figures.plots._base import draw_plot, encode_start_examples
from mmgen.figures.plots.embedding import Colouring, _colouring_of_factor
from mmgen.figures.session import gather_files, open_session
from mmgen.generation import load
from mmgen.generation.encodings import encode_split, interpolate, interpolate_with_labels, rank_axes, traversable_axes


def pixels(grid: Grid, number: int) -> np.ndarray:
    return np.asarray(grid.image.crop(grid.boxes[number]))


def test_a_traversal_has_a_row_for_each_dimension_those_that_say_most_first(world: Path) -> None:
    picture, _ = draw_plot("traversal", [world / "telbo.safetensors"], number=3)
    assert isinstance(picture.drawn, Grid)
    assert len(picture.drawn.boxes) == 3 * (2 + 7 * 3), (
        "of each picture itself, its reconstruction, seven steps of three z"
    )
    assert "from -3 to 3 standard deviations of p(z)" in picture.caption and "q(z|image)" in picture.caption
    assert "<" not in picture.caption, "no repr of an object"
    model = load(world / "telbo.safetensors")
    ranked = rank_axes(model, encode_split(model, world / "data.h5", "train", 1000, 0))
    assert ranked.values == sorted(ranked.values, reverse=True)


def test_steps_at_a_pictures_own_value_are_its_reconstruction(world: Path) -> None:
    """A picture that the model encodes at exactly z_d = 0 is decoded as it is in the middle of that row: here all z are
    moved to 0 before."""
    import torch

    from mmgen.figures.plots._base import StartExamples, encode_start_examples
    from mmgen.figures.plots.traversal import _build_panel

    (group,) = gather_files([world / "telbo.safetensors"]).groups
    chosen = encode_start_examples(open_session(group, 0), [7], 1)
    at_zero = StartExamples(chosen.session, chosen.examples, torch.zeros_like(chosen.z), chosen.conditions)
    panel = _build_panel(at_zero, 0, [2, 0], torch.linspace(-3, 3, 7).expand(2, 7))
    with Dataset.open(world / "data.h5") as data:
        assert np.array_equal(panel.images[0, 0], data.read_pixels("image", np.array([7]))[0])
    assert panel.images[0, 1] == pytest.approx(panel.images[1, 3], abs=1e-6)
    assert panel.images[0, 1] == pytest.approx(panel.images[2, 3], abs=1e-6)
    assert np.abs(panel.images[1, 0] - panel.images[1, 6]).max() > 1e-4
    assert panel.shown is not None and panel.shown[1:].all()
    assert panel.shown[0].tolist() == [True, True] + 5 * [False], "no empty frames beside the two"


def test_a_way_begins_and_ends_at_the_pictures(world: Path) -> None:
    picture, _ = draw_plot("interpolation", [world / "telbo.safetensors"], rows=[3, 9])
    back, _ = draw_plot("interpolation", [world / "telbo.safetensors"], rows=[9, 3])
    assert isinstance(picture.drawn, Grid) and isinstance(back.drawn, Grid)
    assert len(picture.drawn.boxes) == 11
    for place in range(11):
        difference = np.abs(pixels(picture.drawn, place).astype(int) - pixels(back.drawn, 10 - place)).max()
        assert difference <= 1, "the way back is the same way"
    assert "by the arc" in picture.caption
    straight, _ = draw_plot("interpolation", [world / "telbo.safetensors"], rows=[3, 9], straight=True)
    assert "straight" in straight.caption and "by the arc" not in straight.caption


def test_a_way_between_descriptions(world: Path) -> None:
    files = [world / "flat.safetensors", world / "flat-aggregate.safetensors"]
    picture, _ = draw_plot("interpolation", files, descriptions=["parity=odd", "parity=even magnitude=high"], number=2)
    assert isinstance(picture.drawn, Grid) and len(picture.drawn.boxes) == 2 * 9
    assert "'parity=odd' to one for 'parity=even magnitude=high'" in picture.caption
    with pytest.raises(UsageError, match="got 1 --given, expected two descriptions; give two"):
        draw_plot("interpolation", files, descriptions=["parity=odd"])
    with pytest.raises(UsageError, match="got both --given and --dataset-row"):
        draw_plot("interpolation", files, descriptions=["parity=odd", "parity=even"], rows=[1, 2])
    with pytest.raises(UsageError, match=r"got 3 rows, expected pairs"):
        draw_plot("interpolation", files, rows=[1, 2, 3])
    with pytest.raises(UsageError, match="does not connect pictures of two descriptions"):
        draw_plot("interpolation", [world / "cvae.safetensors"])


def test_a_conditional_decoder_is_told_the_description_of_the_picture(world: Path) -> None:
    picture, _ = draw_plot("traversal", [world / "cvae.safetensors"], number=1)
    assert isinstance(picture.drawn, Grid) and len(picture.drawn.boxes) == 2 + 7 * 2


@pytest.mark.slow
def test_maps_of_two_dimensions_are_as_they_are_and_others_projected(world: Path) -> None:
    flat, _ = draw_plot("embedding", [world / "flat.safetensors"], by="parity")
    assert "as they are: z has two dimensions" in flat.caption
    (axes,) = flat.drawn.axes  # type: ignore[union-attr]
    (points, *_) = axes.collections
    found = encode_split(load(world / "flat.safetensors"), world / "data.h5", "test", 2000, 0)
    assert np.asarray(points.get_offsets()) == pytest.approx(found.mean.numpy(), abs=1e-6)
    wide, _ = draw_plot("embedding", [world / "telbo.safetensors"])
    assert "two principal components of 3 dimensions, which hold" in wide.caption
    assert [axes.get_title(loc="left") for axes in wide.drawn.axes] == ["parity", "magnitude"]  # type: ignore[union-attr]
    assert wide.drawn.axes[0].get_xlabel().startswith("PC 1 (")  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="unknown attribute or factor 'party': did you mean 'parity'"):
        draw_plot("embedding", [world / "telbo.safetensors"], by="party")


def test_factors_are_levels_or_numbers() -> None:
    few = _colouring_of_factor("n", np.array([0.5, 2.0, 0.5]))
    assert few.names == ("0.5", "2") and few.values.tolist() == [0, 1, 0]
    many = _colouring_of_factor("n", np.linspace(0, 1, 50))
    assert isinstance(many, Colouring) and many.names == () and many.values[-1] == 1
    with pytest.raises(UsageError, match="factor 'n' has 6 numbers for each example, expected one"):
        _colouring_of_factor("n", np.zeros((4, 2, 3)))


def test_a_plane_is_refused_from_the_header(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("opened")

    monkeypatch.setattr("mmgen.figures.plots._base.open_session", never)
    for name in ("contours", "latent-map"):
        with pytest.raises(SystemExit):
            main(["plot", name, str(world / "telbo.safetensors")])
        said = " ".join(capsys.readouterr().err.split())
        assert "has 3 latent dimensions, expected 2" in said and "mmgen plot embedding and traversal show any" in said


def test_the_style_is_traversed_and_the_label_held(world: Path, tmp_path: Path) -> None:
    out = tmp_path / "labelled.safetensors"
    train = ["train", str(world / "data.h5"), "-o", str(out), "--objective", "semi-supervised", "--steps", "1"]
    with pytest.raises(SystemExit, match="0"):
        main([*train, "--set", "model.name=semi-supervised-vae", "--set", "model.latent_size=3", "--batch", "8"])
    model = load(out)
    layers = model.model.latent.layers
    layer, places = traversable_axes(model.model)
    assert layer == "z" and places == [*range(layers["y"], layers["y"] + 3)]

    encodings = encode_split(model, world / "data.h5", "train", 50, 0)
    ranked = rank_axes(model, encodings)
    assert sorted(ranked.dimensions) == list(places) and sorted(ranked.names) == ["z 1", "z 2", "z 3"]
    (group,) = gather_files([out]).groups
    chosen = encode_start_examples(open_session(group, 0), encodings.rows[:4].tolist(), 4)
    hot = chosen.z[:, : layers["y"]]
    assert torch.equal(hot, encodings.mean[:4, : layers["y"]]), "both are the likeliest label, no draw"
    assert set(hot.unique().tolist()) == {0.0, 1.0}

    picture, _ = draw_plot("traversal", [out], number=1)
    assert "one dimension of the layer z from -3 to 3 standard deviations" in picture.caption
    assert "attributes held at its likeliest" in picture.caption

    sizes = layers["y"], 3
    start, end = torch.randn(2, 4, sum(sizes), generator=torch.Generator().manual_seed(0))
    way = interpolate_with_labels(model.model, start, end, 4)
    assert torch.equal(way[..., : sizes[0]], torch.stack([start, start, end, end])[..., : sizes[0]])
    assert torch.equal(way[..., sizes[0] :], interpolate(start[:, sizes[0] :], end[:, sizes[0] :], 4))
    picture, _ = draw_plot("interpolation", [out], number=1)
    assert "with the attributes of the first in the first half and of the last after it" in picture.caption
