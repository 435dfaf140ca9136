"""HDF5 files made to do harm: links to elsewhere, lying shapes, foreign filters, wrong texts."""

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from mmgen.artifacts import Dataset, read_latents
from mmgen.core.errors import ArtifactError

CHECKED = {"fletcher32": True, "compression": "gzip"}


def _replace(make_new):
    """An attack that puts something else in the place of /modalities/image, with its texts."""

    def attack(file: h5py.File, folder: Path) -> None:
        texts = dict(file["modalities/image"].attrs)
        del file["modalities/image"]
        make_new(file["modalities"], folder)
        if isinstance(file["modalities"].get("image", getlink=True), h5py.HardLink):
            file["modalities/image"].attrs.update(texts)

    return attack


def _virtual(group: h5py.Group, folder: Path) -> None:
    layout = h5py.VirtualLayout((30, 2), np.uint8)
    layout[:] = h5py.VirtualSource(folder / "elsewhere.h5", "x", (30, 2))
    group.create_virtual_dataset("image", layout)


def _soft(group: h5py.Group, folder: Path) -> None:
    group.file["hidden"] = group.create_dataset("other", (30, 2), np.uint8)
    del group["other"]
    group["image"] = h5py.SoftLink("/hidden")


def _external(group: h5py.Group, folder: Path) -> None:
    group["image"] = h5py.ExternalLink(str(folder / "elsewhere.h5"), "x")


def _create(*args, **options):
    return lambda group, folder: group.create_dataset("image", *args, **options)


def _set_text(where: str, name: str, text: str):
    def attack(file: h5py.File, folder: Path) -> None:
        file[where].attrs[name] = np.bytes_(text.encode())

    return attack


def _remove(where: str):
    def attack(file: h5py.File, folder: Path) -> None:
        del file[where]

    return attack


def _split(values, dtype):
    def attack(file: h5py.File, folder: Path) -> None:
        del file["splits/iid/train"]
        file["splits/iid"].create_dataset("train", data=np.array(values, dtype), fletcher32=True, chunks=(1,))

    return attack


def _codes(file: h5py.File, folder: Path) -> None:
    file["modalities/attributes"][3, 1] = 77


def _whole_tree_elsewhere(file: h5py.File, folder: Path) -> None:
    del file["factors"]
    file["factors"] = h5py.ExternalLink(str(folder / "elsewhere.h5"), "/")


ATTACKS = {
    "soft link": (_replace(_soft), "is a SoftLink"),
    "external link": (_replace(_external), "is a ExternalLink"),
    "external group": (_whole_tree_elsewhere, "is a ExternalLink"),
    "virtual": (_replace(_virtual), "is not stored in checksummed chunks"),
    "external storage": (
        _replace(_create((30, 2), np.uint8, external=[("/etc/passwd", 0, 60)])), "is not stored in checksummed chunks",
    ),
    "huge": (_replace(_create((2**40, 2), np.uint8, chunks=(2**10, 2), **CHECKED)), "declares 2199023255552 bytes"),
    "huge, right rows": (_replace(_create((30, 2**35), np.uint8, chunks=(1, 2**20), **CHECKED)), "has shape"),
    "never written": (_replace(_create((30, 2), np.uint8, chunks=(1, 2), **CHECKED)), "where the file holds 0"),
    "huge chunk": (
        _replace(_create((30, 2), np.uint8, chunks=(2**27, 2), maxshape=(None, 2), **CHECKED)), "in chunks of",
    ),
    "no checksum": (_replace(_create(data=np.zeros((30, 2), np.uint8), chunks=(30, 2))), "checksummed chunks"),
    "contiguous": (_replace(_create(data=np.zeros((30, 2), np.uint8))), "checksummed chunks"),
    "other filter": (
        _replace(_create(data=np.zeros((30, 2), np.uint8), compression="lzf", fletcher32=True)), "with gzip only",
    ),
    "floats": (_replace(_create(data=np.zeros((30, 2), np.float32), **CHECKED)), "has type float32, expected uint8"),
    "texts": (_replace(_create(data=["a"] * 30, dtype=h5py.string_dtype())), "has type object"),
    "records": (_replace(_create((30,), np.dtype([("a", "u1")]), chunks=(30,), **CHECKED)), "expected uint8"),
    "scalar": (_replace(_create(data=np.uint8(3))), r"has shape \(\), expected \(any, 2\)"),
    "null": (_replace(_create(data=h5py.Empty("u1"))), "has shape None"),
    "group": (_replace(lambda group, folder: group.create_group("image")), "is no array"),
    "type": (_replace(lambda group, folder: group.__setitem__("image", np.dtype("u1"))), "is no array"),
    "fewer rows": (_replace(_create(data=np.zeros((29, 2), np.uint8), **CHECKED)), "expected equal numbers above 0"),
    "no modalities": (_remove("modalities"), "modalities is missing"),
    "no splits": (_remove("splits"), "splits is missing"),
    "no part": (_remove("splits/iid/val"), "val is missing"),
    "default": (_set_text("splits", "default", "none"), "the default split scheme is none of"),
    "rows beyond": (_split([1, 30], "i8"), "no increasing row numbers"),
    "rows below": (_split([-1, 3], "i8"), "no increasing row numbers"),
    "rows unsorted": (_split([3, 1], "i8"), "no increasing row numbers"),
    "rows of floats": (_split([1.5], "f8"), "expected int64"),
    "codes": (_codes, "do not match its content id"),
    "kind": (_set_text("modalities/image", "kind", "sound"), "of kind 'sound'"),
    "layout": (_set_text("modalities/image", "layout", "../x"), "expected bits, bytes, probabilities"),
    "image shape": (_set_text("modalities/image", "shape", "[1, 1000000, 1000000]"), "has shape"),
    "image shape of words": (_set_text("modalities/image", "shape", '["a", 1, 1]'), r"no shape \[C, H, W\]"),
    "image shape below 0": (_set_text("modalities/image", "shape", "[-1, -3, 5]"), r"no shape \[C, H, W\]"),
    "names": (_set_text("modalities/attributes", "names", '["a", "a"]'), "does not name its attributes"),
    "names of numbers": (_set_text("modalities/attributes", "names", "[1, 2]"), "does not name its attributes"),
    "fewer names": (_set_text("modalities/attributes", "names", '["a"]'), "does not name its attributes"),
    "values": (_set_text("modalities/attributes", "values", '[["a"], []]'), "without 1 to 255 distinct values"),
    "values no JSON": (_set_text("modalities/attributes", "values", "[["), "is not valid JSON"),
    "changed vocabulary": (
        _set_text("modalities/attributes", "values", '[["a","b","c"],["big","small"]]'), "do not match its content id",
    ),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_hdf5(tmp_path, originals, read_all, attack):
    path = tmp_path / "x.h5"
    path.write_bytes(originals["dataset"])
    with h5py.File(tmp_path / "elsewhere.h5", "w") as file:
        file.create_dataset("x", data=np.ones((30, 2), np.uint8), fletcher32=True, compression="gzip")
    act, words = ATTACKS[attack]
    with h5py.File(path, "r+") as file:
        act(file, tmp_path)
    with pytest.raises(ArtifactError, match=words) as caught:
        read_all("dataset", path)
    assert str(path) in str(caught.value)
    assert str(caught.value).isprintable()


def test_codes_of_no_value_are_refused_where_they_are_read(tmp_path, originals):
    path = tmp_path / "x.h5"
    path.write_bytes(originals["dataset"])
    with h5py.File(path, "r+") as file:
        _codes(file, tmp_path)
    with (
        Dataset.open(path, verify=False) as dataset,
        pytest.raises(ArtifactError, match="a code is no value") as caught,
    ):
        dataset.read_attributes("attributes")
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["mean", "rows", "attributes"])
def test_latents_that_point_elsewhere(tmp_path, originals, name):
    path = tmp_path / "l.h5"
    path.write_bytes(originals["latents"])
    with h5py.File(path, "r+") as file:
        del file[name]
        file[name] = h5py.ExternalLink("/etc/passwd", "x")
    with pytest.raises(ArtifactError, match=f"/{name} is a ExternalLink"):
        read_latents(path)


def test_a_loop_of_groups_is_no_trouble(tmp_path, originals, read_all):
    path = tmp_path / "x.h5"
    path.write_bytes(originals["dataset"])
    with h5py.File(path, "r+") as file:
        file["loop"] = file["/"]
        file["factors/loop"] = file["factors"]
    with pytest.raises(ArtifactError, match=r"/factors(/loop)? is no array"):
        read_all("dataset", path)


@pytest.mark.parametrize("every", [pytest.param(17, marks=pytest.mark.slow), 83])
def test_many_broken_files_do_not_crash_the_interpreter(tmp_path, originals, every):
    """HDF5 is C: run the readers over systematically damaged files in a process that must end well."""
    path = tmp_path / "x.h5"
    path.write_bytes(originals["dataset"])
    script = """
import sys
from pathlib import Path
from mmgen.artifacts import Dataset
from mmgen.core.errors import ArtifactError
path = Path(sys.argv[1]); content = path.read_bytes(); broken = path.with_name("broken.h5")
for place in range(0, len(content), int(sys.argv[2])):
    broken.write_bytes(content[:place] + bytes([content[place] ^ 0x81]) + content[place + 1:])
    try:
        with Dataset.open(broken) as dataset:
            dataset.verify()
    except ArtifactError:
        pass
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), str(every)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
