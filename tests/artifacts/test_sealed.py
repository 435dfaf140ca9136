"""What a file says of itself is what its writer said: facts under the content id, the header under a checksum."""

import hashlib
import json
import struct
from pathlib import Path

import h5py
import numpy as np
import pytest

from mmgen.artifacts import read_header
from mmgen.artifacts.content_id import ContentHash
from mmgen.artifacts.header import KINDS, make_header
from mmgen.core.errors import ArtifactError

ALL = ["dataset", "latents", "samples", "model"]


def header_text(path: Path, text: str | None = None) -> str:
    """The header's text in a file; put there if it is given."""
    if path.read_bytes()[:4] == b"\x89HDF":
        with h5py.File(path, "r+" if text else "r") as file:
            if text:
                file.attrs["mmgen"] = np.bytes_(text.encode())
            value = file.attrs["mmgen"]
            return value.decode() if isinstance(value, bytes) else str(value)
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    head = json.loads(data[8 : 8 + length])
    if text:
        head["__metadata__"]["mmgen"] = text
        new = json.dumps(head).encode()
        path.write_bytes(struct.pack("<Q", len(new)) + new + data[8 + length :])
    return str(head["__metadata__"]["mmgen"])


def sealed(header: dict) -> str:
    """A header with the checksum that docs/artifacts.md tells, from nothing but json and hashlib."""
    body = {key: value for key, value in header.items() if key != "checksum"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return json.dumps(body | {"checksum": hashlib.sha256(text.encode("ascii")).hexdigest()})


CHANGED = {
    "facts": {"held_out_accuracy": {"mean": 99.9}},
    "settings": {"a": 1},
    "seed": 77,
    "command": "mmgen train something-else.h5",
    "program_version": "0.0.1",
    "parents": [dict.fromkeys(("role", "kind", "content_id", "path", "command"), "x")],
    "a key of a later version": True,
}


@pytest.mark.parametrize("key", CHANGED)
@pytest.mark.parametrize("kind", ALL)
def test_no_part_of_a_header_can_be_edited(tmp_path, make, kind, key):
    path = tmp_path / "file"
    make(kind, path)
    header = json.loads(header_text(path))
    header_text(path, json.dumps(header | {key: CHANGED[key]}))
    with pytest.raises(ArtifactError, match="header does not match its checksum"):
        read_header(path)


@pytest.mark.parametrize("kind", ALL)
def test_the_checksum_is_the_documented_one(tmp_path, make, kind):
    make(kind, tmp_path / "file")
    header = json.loads(header_text(tmp_path / "file"))
    assert json.loads(sealed(header)) == header


@pytest.mark.parametrize("key", ["facts", "settings", "seed"])
@pytest.mark.parametrize("kind", ALL)
def test_what_decides_is_under_the_content_id_too(tmp_path, make, read_all, kind, key):
    """An edit that fits the checksum again is found against what the file holds."""
    path = tmp_path / "file"
    make(kind, path)
    header = json.loads(header_text(path))
    header_text(path, sealed(header | {key: CHANGED[key]}))
    assert read_header(path).content_id == header["content_id"]
    with pytest.raises(ArtifactError, match="do not match its content id"):
        read_all(kind, path)


def test_a_header_names_no_more_parents_than_a_program_can_look_for(tmp_path, make):
    make("model", tmp_path / "m")
    header = json.loads(header_text(tmp_path / "m"))
    header_text(tmp_path / "m", sealed(header | {"parents": CHANGED["parents"] * 10_000}))
    with pytest.raises(ArtifactError, match="10,000 entries, expected at most 64"):
        read_header(tmp_path / "m")


def test_every_kind_is_written_with_its_facts_covered():
    for kind in KINDS:
        content = ContentHash(kind, {}, 0, (), {"accuracy": 1})
        header = make_header(kind, content, settings={}, seed=0, facts={"accuracy": 1})
        assert header.content_hash().hexdigest() == header.content_id
        other = make_header(kind, content, settings={}, seed=0, facts={"accuracy": 2})
        assert other.content_hash().hexdigest() != header.content_id
