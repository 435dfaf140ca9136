"""Checks of kinds of data and of dataset recipes, on the example that each brings."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

import mmgen.modalities
from mmgen.artifacts import PARTS, Dataset
from mmgen.modalities import ROWS, Description
from mmgen.settings.config import validate
from mmgen.settings.registry import registry_of
from mmgen.testing.small import example_batch

_COUNT, _LATENTS = 5, 4


def check_modality(name: str) -> None:
    """Check a kind of modality: rows fit its specification, and networks, pictures and files of its example work."""
    member = mmgen.modalities.get(name)
    if member.joins_rows:
        return
    described, stored = member.example(_COUNT)
    declared = described.arrays()[ROWS]
    assert str(stored.dtype) == declared.dtype, f"rows are {stored.dtype}, but arrays says {declared.dtype}"
    assert stored.shape == (_COUNT, *declared.shape), f"rows are {stored.shape[1:]}, but arrays says {declared.shape}"
    assert not described.find_fault(stored), f"the example has a fault: {described.find_fault(stored)}"
    assert described.is_compatible(described), "a description fits itself"
    _check_networks(described)
    _check_pictures_and_files(described)


def _check_networks(described: Description) -> None:
    """Check shapes of features, log-likelihoods and draws, gradients, and that absent values have no effect."""
    torch.manual_seed(0)
    batch, modality = example_batch(described, _COUNT), described.modality()
    value, present = batch.values[described.name], batch.present[described.name]
    assert value.shape == (_COUNT, *described.event_shape), f"values are {value.shape[1:]}, not event_shape"
    networks = described.read_network_settings({}, "networks")
    encoder, width = modality.encoder(networks)
    features = modality.features(encoder, value, present)
    assert features.shape == (_COUNT, width), f"features are {tuple(features.shape)}, but encoder says {width} of each"
    decoded, decoder = modality.decoder(_LATENTS, networks)
    parameters = decoder(torch.randn(_COUNT, _LATENTS))
    log_prob = decoded.log_prob(parameters, value, present)
    assert log_prob.shape == (_COUNT,), f"log_prob is {tuple(log_prob.shape)}, expected one number for each example"
    assert log_prob.isfinite().all(), "log_prob is finite on the example"
    log_prob.sum().backward()
    moved = [p for p in decoder.parameters() if p.grad is not None and p.grad.abs().sum() > 0]
    assert moved, "log_prob sends a gradient to the decoder"
    absent = decoded.log_prob(parameters, value, torch.zeros_like(present))
    assert (absent == 0).all(), "what is absent adds nothing to log_prob"
    if not described.describes:
        for what, found in (("mean", decoded.mean(parameters)), ("sample", decoded.sample(parameters))):
            assert found.shape == value.shape, f"{what} is {tuple(found.shape)}, expected {tuple(value.shape)}"


def _check_pictures_and_files(described: Description) -> None:
    """Check that pictures have the declared shape and range, and that every declared kind of file is written."""
    values = example_batch(described, _COUNT).values[described.name].numpy()
    if described.picture_shape is not None:
        picture = described.picture(values)
        assert picture.shape == (_COUNT, *described.picture_shape), f"a picture is {picture.shape[1:]}"
        assert picture.min() >= 0 and picture.max() <= 1, "pictures lie from 0 to 1"
    with tempfile.TemporaryDirectory(prefix="mmgen-check-") as folder:
        for ending in described.files:
            path = Path(folder) / f"values{ending}"
            described.write(path, values)
            assert path.stat().st_size > 0, f"{ending} is written"
            if type(described).read_file is not Description.read_file:
                assert np.array_equal(described.read_file(path)[0], values), f"{ending} is read as it was written"


NUMBER = 24
"""Images that recipes make to be checked."""


def check_recipe(name: str, folder: Path, **settings: Any) -> None:
    """Check a dataset recipe: content depends on the seed alone, facts are recorded, splits are disjoint.

    Args:
        name: The recipe.
        folder: Where its files may lie.
        **settings: What makes it small, besides a ``number`` of 24 where it has one.
    """
    member = registry_of("recipe").get(name)
    small = {"number": NUMBER} if "number" in member.model_fields else {}
    recipe = validate(member, {**small, **settings})
    ids = []
    for number, (seed, chunk) in enumerate([(0, 2048), (0, 7), (1, 2048)]):
        path = folder / f"{number}.h5"
        recipe.make(path, seed=seed, workers=1, chunk=chunk, command=f"mmgen make-data {name}").run()
        with Dataset.open(path) as dataset:
            dataset.verify()
            header = dataset.header
            ids.append(header.content_id)
            assert (header.kind, header.seed) == ("dataset", seed), "the file says that it is a dataset, and its seed"
            assert header.settings["recipe"] == name, "the settings of the file name the recipe"
            places = {str(value) for _, value in recipe if isinstance(value, Path)}
            held = [name for name, value in header.settings.items() if isinstance(value, str) and value in places]
            assert not held, (
                f"the settings of the file hold the path {', '.join(held)}, which says nothing of the content: leave "
                "it out with Field(exclude=True), and put in a hash of what lies there"
            )
            assert header.command == f"mmgen make-data {name}", "the file holds the command that makes it"
            assert dataset.size > 0, "the recipe makes examples"
            most = getattr(recipe, "number", dataset.size)
            assert dataset.size <= most, f"number got {most}, but the recipe makes {dataset.size} examples"
            assert dataset.modalities, "the file has modalities"
            assert dataset.schemes, "there is a way to split"
            for scheme in dataset.schemes:
                if dataset.splits_edges(scheme):
                    continue  # what its parts hold back are edges, which a kind of data answers for
                rows = np.concatenate([dataset.split(scheme, part) for part in PARTS])
                assert len(set(rows.tolist())) == len(rows), f"parts of {scheme} share rows"
    assert ids[0] == ids[1], "the content depends on the size of a chunk"
    assert ids[0] != ids[2], "the content does not depend on the seed"
