"""Files that are damaged or made to do harm: nothing but ArtifactError, whatever is in them."""

import json
import struct
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from mmgen.artifacts import FORMAT_VERSION, Dataset, check_output, read_checkpoint, read_header
from mmgen.artifacts.header import _READERS
from mmgen.core.errors import ArtifactError, UsageError
from tests.artifacts.test_sealed import sealed

ALL = ["dataset", "latents", "samples", "model"]


@pytest.mark.parametrize("kind", ALL)
@given(data=st.data())
@settings(max_examples=60)
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
@settings(max_examples=100)
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
@settings(max_examples=100)
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
        ArtifactError, match=r"format version 4, written by mmgen 7\.8\.9.*install mmgen 7\.8\.9 or later"
    ):
        read_all(kind, path)


COMMIT = "[0-9a-f]{12}"


def test_every_earlier_format_has_a_reader() -> None:
    """What raises the version adds the last commit that reads the one before, or the command that converts it."""
    assert [*_READERS] == [*range(1, FORMAT_VERSION)]


@pytest.mark.parametrize("kind", ALL)
def test_older_format_says_how_to_make_it_again(tmp_path, originals, read_all, kind):
    path = tmp_path / "file"
    header = _header_of(kind, originals[kind], path)
    older = {"format_version": FORMAT_VERSION - 1, "facts": "of another shape"}
    _with_header(path, kind, originals[kind], json.dumps(header | older))
    with pytest.raises(
        ArtifactError,
        match=rf"an earlier mmgen.*; keep it .* git checkout {COMMIT}\), or make it again with: {header['command']}$",
    ):
        read_all(kind, path)
    for to in (kind, None):
        with pytest.raises(UsageError, match="it holds an artifact of another format version, which would be lost"):
            check_output(path, to)
    for command in (None, "", 3, "mmgen\x1b[2J"):
        _with_header(path, kind, originals[kind], json.dumps(header | older | {"command": command}))
        with pytest.raises(ArtifactError, match=rf"git checkout {COMMIT}\), or make it again with:? mmgen") as caught:
            read_all(kind, path)
        assert str(caught.value).isprintable()


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
        _with_header(path, kind, originals[kind], sealed(changed))
        with pytest.raises(ArtifactError) as caught:
            read_all(kind, path)
        assert str(caught.value).isprintable()
        assert "does not match its checksum" not in str(caught.value)


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
        _with_header(path, kind, originals[kind], sealed(header | {"kind": other}))
        with pytest.raises(ArtifactError, match=f"whose header says a {other}"):
            read_header(path)


@pytest.mark.parametrize("value", [3, [1, 2], np.array(["a", "b"], dtype="S1")])
def test_header_that_is_no_text(tmp_path, originals, value):
    path = tmp_path / "x.h5"
    path.write_bytes(originals["dataset"])
    with h5py.File(path, "r+") as file:
        file.attrs["mmgen"] = value
    with pytest.raises(ArtifactError, match="@mmgen is no text"):
        read_header(path)


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
