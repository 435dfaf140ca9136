"""Checks of dataset recipes."""

from pathlib import Path
from typing import Any

import numpy as np

from mmgen.artifacts import PARTS, Dataset
from mmgen.settings.config import validate
from mmgen.settings.registry import registry_of

__all__ = ["NUMBER", "check_recipe"]

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
