"""Traversals and ways of models whose labels are part of z: labels have values, and the style is moved."""

from pathlib import Path

import pytest
import torch

from mmgen.cli._main import main
from mmgen.figures.plots._base import draw_plot, encode_start_examples
from mmgen.figures.session import gather_files, open_session
from mmgen.generation import load
from mmgen.generation.encodings import encode_split, interpolate, interpolate_with_labels, rank_axes, traversable_axes


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
