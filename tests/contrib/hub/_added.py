"""What the hub adds to tables of the core's tests."""

import tarfile
from pathlib import Path

from mmgen.testing.data import NUMBER
from tests.own_data._obeying import READ, REFUSED, then, write_files
from tests.own_data._pictures import write_classes

SMALL_SOURCES = {"dataset": lambda folder, _: str(write_classes(folder, NUMBER))}
PACKAGES_OF_RECIPES = {"hub": ("datasets",)}
RECIPES_OF_SOURCES = {"hub"}

HUB = "hub {} --dry-run --size 32"


def _rename_members(root: Path) -> str:
    old = root / "webdataset-points/00000.tar"
    with tarfile.open(old) as source, tarfile.open(root / "renamed.tar", "w") as target:
        for member in source:
            stem, _, ending = member.name.rpartition(".")
            member.name = f"{stem.replace('.', '-')}.{ending}"
            target.addfile(member, source.extractfile(member))
    return HUB.format("renamed.tar")


CASES = [
    ("img2dataset-folder", "hub {} --dry-run --size 32", REFUSED, "has no column of pictures, only 'url', 'caption'"),
    ("parquet-of-pandas", "hub {} --dry-run --size 32", READ, "pictures: "),
    ("parquet-of-pandas/data.parquet", "hub {} --image-column image --dry-run --size 32", READ, "pictures: "),
    ("webdataset-points", "hub {} --dry-run --size 32", REFUSED, "name a dataset of images"),
]  # fmt: skip
OBEYED = {
    ("img2dataset-folder", "hub"): then(
        lambda root: None, f"{HUB} --caption text --ignore key".format("img2dataset-folder/00000.tar")),
    ("webdataset-points", "hub"): _rename_members,
}  # fmt: skip
DOORS = {
    "parquet": (write_files("x.parquet"), ["make-data", "hub", "x.parquet", "--dry-run"]),
    "webdataset": (write_files("h/x.tar"), ["make-data", "hub", "h", "--dry-run"]),
}  # fmt: skip
