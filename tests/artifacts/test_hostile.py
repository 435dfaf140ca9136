"""Files that are damaged or made to do harm: nothing but ArtifactError, whatever is in them."""

import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmgen.artifacts import FORMAT_VERSION, Dataset, read_checkpoint, read_header, read_latents
from mmgen.artifacts.hdf5 import read_hdf5_header
from mmgen.errors import ArtifactError

ALL = ["dataset", "latents", "samples", "model"]


@pytest.fixture(scope="module")
def originals(tmp_path_factory, make) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("originals")
    for kind in ALL:
        make(kind, folder / kind)
    return {kind: (folder / kind).read_bytes() for kind in ALL}


@pytest.mark.parametrize("kind", ALL)
@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_truncation_is_always_noticed(tmp_path_factory, originals, read_all, kind, data):
    path = tmp_path_factory.mktemp("cut") / "file"
    path.write_bytes(originals[kind][: data.draw(st.integers(0, len(originals[kind]) - 1))])
    with pytest.raises(ArtifactError) as caught:
        read_all(kind, path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


edits = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from(["replace", "insert", "delete"]),
        st.binary(min_size=1, max_size=16),
    ),
    min_size=1,
    max_size=5,
)


@pytest.mark.parametrize("kind", ALL)
@given(changes=edits)
@settings(deadline=None, max_examples=100)
def test_corruption_is_noticed_or_harmless(tmp_path_factory, originals, read_all, kind, changes):
    content = originals[kind]
    for where, how, piece in changes:
        start = int(where * len(content))
        keep = start if how == "insert" else start + len(piece)
        content = content[:start] + (b"" if how == "delete" else piece) + content[keep:]
    path = tmp_path_factory.mktemp("broken") / "file"
    path.write_bytes(content)
    try:
        read_all(kind, path)  # compares all data with the content id: if it passes, nothing that matters has changed
    except ArtifactError as error:
        message = str(error)
    else:
        message = ""
    assert message.isprintable()


@given(st.binary(max_size=200), st.sampled_from([b"", b"\x89HDF\r\n\x1a\n", struct.pack("<Q", 20) + b"{"]))
@settings(deadline=None, max_examples=100)
def test_noise_is_no_artifact(tmp_path_factory, noise, start):
    path = tmp_path_factory.mktemp("noise") / "file"
    path.write_bytes(start + noise)
    with pytest.raises(ArtifactError):
        read_header(path)


# --- headers -------------------------------------------------------------------------------------------------------


def _with_header(path: Path, kind: str, content: bytes, text: str) -> None:
    """Put ``text`` where the header is."""
    if kind != "model":
        path.write_bytes(content)
        with h5py.File(path, "r+") as file:
            file.attrs["mmgen"] = np.bytes_(text.encode())
        return
    (length,) = struct.unpack("<Q", content[:8])
    head = json.loads(content[8 : 8 + length])
    head["__metadata__"]["mmgen"] = text
    new = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(new)) + new + content[8 + length :])


def _header_of(kind: str, content: bytes, path: Path) -> dict:
    path.write_bytes(content)
    if kind != "model":
        with h5py.File(path) as file:
            return json.loads(file.attrs["mmgen"])
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["mmgen"])


@pytest.mark.parametrize("kind", ALL)
def test_newer_format_says_what_to_install(tmp_path, originals, read_all, kind):
    path = tmp_path / "file"
    header = _header_of(kind, originals[kind], path)
    # Whatever else a newer format changes, these two keys stay.
    newer = {"format_version": FORMAT_VERSION + 1, "program_version": "7.8.9", "kind": {"new": "shape"}}
    _with_header(path, kind, originals[kind], json.dumps(header | newer))
    with pytest.raises(
        ArtifactError, match=r"format version 2, written by mmgen 7\.8\.9.*install mmgen 7\.8\.9 or later"
    ):
        read_all(kind, path)


WRONG = [
    ("format_version", "1"), ("format_version", 0), ("format_version", True), ("format_version", 1.0),
    ("program_version", 3), ("kind", "poem"), ("kind", None), ("kind", "data\x1bset"), ("content_id", "abc"),
    ("content_id", "G" * 64), ("content_id", 5), ("seed", "0"), ("seed", 1.5), ("seed", True), ("settings", []),
    ("settings", None), ("facts", "x"), ("parents", {}), ("parents", [3]), ("parents", [{"role": "dataset"}]),
    ("parents", [dict.fromkeys(("role", "kind", "content_id", "path", "command"), 1)]), ("command", ["mmgen"]),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), WRONG)
@pytest.mark.parametrize("kind", ["dataset", "model"])
def test_wrong_types_in_the_header(tmp_path, originals, read_all, kind, key, value):
    path = tmp_path / "file"
    header = _header_of(kind, originals[kind], path)
    for changed in (header | {key: value}, {k: v for k, v in header.items() if k != key}):
        _with_header(path, kind, originals[kind], json.dumps(changed))
        with pytest.raises(ArtifactError) as caught:
            read_all(kind, path)
        assert str(caught.value).isprintable()


BOMBS = {
    "deep": "[" * 100_000 + "]" * 100_000,
    "deep and open": '{"a":' * 50_000,
    "number": '{"seed": ' + "9" * 5000 + "}",
    "infinite": '{"seed": Infinity}',
    "nan": '{"seed": NaN}',
    "text": '"just text"',
    "nothing": "",
    "null": "null",
    "latin": "\xff\xfe",
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("kind", ["dataset", "model"])
def test_json_bombs(tmp_path, originals, kind, bomb):
    path = tmp_path / "file"
    if kind == "dataset" and len(BOMBS[bomb]) > 60_000:
        path.write_bytes(originals[kind])
        with h5py.File(path, "r+", libver="latest") as file:
            file.attrs["mmgen"] = np.bytes_(BOMBS[bomb].encode())
    else:
        _with_header(path, kind, originals[kind], BOMBS[bomb])
    with pytest.raises(ArtifactError):
        read_header(path)


def test_hdf5_that_calls_itself_a_model_and_the_reverse(tmp_path, originals):
    for kind, other in (("dataset", "model"), ("model", "dataset")):
        path = tmp_path / kind
        header = _header_of(kind, originals[kind], path)
        _with_header(path, kind, originals[kind], json.dumps(header | {"kind": other}))
        with pytest.raises(ArtifactError, match=f"calls itself a {other}"):
            read_header(path)


@pytest.mark.parametrize("value", [3, [1, 2], np.array(["a", "b"], dtype="S1")])
def test_header_that_is_no_text(tmp_path, originals, value):
    path = tmp_path / "x.h5"
    path.write_bytes(originals["dataset"])
    with h5py.File(path, "r+") as file:
        file.attrs["mmgen"] = value
    with pytest.raises(ArtifactError, match="@mmgen is no text"):
        read_hdf5_header(path)


def test_foreign_hdf5_and_foreign_safetensors(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["data"] = np.arange(3)
    with pytest.raises(ArtifactError, match=r"x\.h5 is an HDF5 file without an mmgen header"):
        Dataset.open(tmp_path / "x.h5")
    head = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    (tmp_path / "m").write_bytes(struct.pack("<Q", len(head)) + head + bytes(4))
    with pytest.raises(ArtifactError, match="is a safetensors file without an mmgen header"):
        read_checkpoint(tmp_path / "m")


# --- safetensors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head",
    [
        {"w": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 4]}},
        {"w": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}},
        {"w": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}},
        {"w": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}},
        {"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 1 << 62]}},
        {"w": {"dtype": "F32", "shape": [1], "data_offsets": "ab"}},
        {"w": [], "v": 3},
        [],
    ],
)
def test_lying_safetensors(tmp_path, originals, head):
    header = json.dumps(_header_of("model", originals["model"], tmp_path / "m"))
    if isinstance(head, dict):
        head = {"__metadata__": {"mmgen": header}} | head
    text = json.dumps(head).encode()
    (tmp_path / "m").write_bytes(struct.pack("<Q", len(text)) + text + bytes(4))
    with pytest.raises(ArtifactError):
        read_checkpoint(tmp_path / "m")


def test_safetensors_with_a_header_of_all_the_memory_there_is(tmp_path):
    (tmp_path / "m").write_bytes(struct.pack("<Q", 1 << 39) + b"{" + bytes(100))
    with pytest.raises(ArtifactError, match="truncated or damaged"):
        read_header(tmp_path / "m")


# --- HDF5 ----------------------------------------------------------------------------------------------------------

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
    "fewer rows": (_replace(_create(data=np.zeros((29, 2), np.uint8), **CHECKED)), "expected one number above 0"),
    "no modalities": (_remove("modalities"), "modalities is missing"),
    "no splits": (_remove("splits"), "splits is missing"),
    "no part": (_remove("splits/iid/val"), "val is missing"),
    "default": (_set_text("splits", "default", "none"), "default split scheme is not among"),
    "rows beyond": (_split([1, 30], "i8"), "no increasing row numbers"),
    "rows below": (_split([-1, 3], "i8"), "no increasing row numbers"),
    "rows unsorted": (_split([3, 1], "i8"), "no increasing row numbers"),
    "rows of floats": (_split([1.5], "f8"), "expected int64"),
    "codes": (_codes, "holds codes of no value"),
    "kind": (_set_text("modalities/image", "kind", "sound"), "of kind 'sound'"),
    "layout": (_set_text("modalities/image", "layout", "../x"), "expected bits or bytes"),
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


def test_many_broken_files_do_not_crash_the_interpreter(tmp_path, originals):
    """HDF5 is C: run the readers over systematically damaged files in a process that must end well."""
    path = tmp_path / "x.h5"
    shutil.copy(__file__, tmp_path / "unrelated.h5")
    path.write_bytes(originals["dataset"])
    script = """
import sys
from pathlib import Path
from mmgen.artifacts import Dataset
from mmgen.errors import ArtifactError
path = Path(sys.argv[1]); content = path.read_bytes(); broken = path.with_name("broken.h5")
for place in range(0, len(content), 17):
    broken.write_bytes(content[:place] + bytes([content[place] ^ 0x81]) + content[place + 1:])
    try:
        with Dataset.open(broken) as dataset:
            dataset.verify()
    except ArtifactError:
        pass
"""
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
