"""What patches add to tables of the core's tests."""

import numpy as np

from mmgen.contrib.patches.modalities.patch import PatchDescription
from tests.contrib.patches._characters import build_omniglot
from tests.own_data._obeying import REFUSED, unpack, write_files

SMALL_SOURCES = {"omniglot": lambda folder, _: build_omniglot(folder)}
KINDS = {"patch": (PatchDescription(name="x", side=3), np.random.default_rng(0).integers(0, 256, (6, 3, 3), np.uint8))}
"""A description, and rows as stored; any byte is a level, so that no rows are wrong."""
CHOSEN_BY_PAPERS = {"patches": ("pictures",), "omniglot": ("pictures",)}
RECIPES_OF_SOURCES = {"omniglot", "patches"}
MODALITIES_OF_PRESETS = {"patch": {"kind": "patch", "side": 8}}
SMALL_PRESETS = ("salakhutdinov/",)

PATCHES = "patches --pictures {}"
CASES = [
    ("packed-by-tar/BSR_bsds500.tgz", "patches --pictures {}", REFUSED, "unpack what is packed otherwise"),
]  # fmt: skip
OBEYED = {
    ("packed-by-tar/BSR_bsds500.tgz", "patches"): unpack("packed-by-tar/BSR_bsds500.tgz", PATCHES),
}  # fmt: skip
DOORS = {
    "patches": (write_files("p.zip"), ["make-data", "patches", "--pictures", "p.zip"]),
}  # fmt: skip
USUAL_DATASETS = ["burda-table1"]
PATHS_OF_RECIPES = {"omniglot", "patches"}
