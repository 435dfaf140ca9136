"""Lineages that no honest file has: loops, very many ways through few files, endless lines of ancestors."""

import time
from collections import Counter
from pathlib import Path

import pytest
import torch

from mmgen.artifacts import Parent, read_header, write_checkpoint
from mmgen.artifacts.lineage import format_lineage, outline_lineage, read_lineage, walk_ancestors
from mmgen.core.errors import ArtifactError
from tests.artifacts.test_sealed import header_text, sealed


def parent(content_id: str, path: str, role: str = "model") -> Parent:
    return Parent(role, "model", content_id, path, "mmgen train")


def made(path: Path, *parents: Parent, number: float = 0.0) -> str:
    """A checkpoint with these parents; returns its content id."""
    tensors = {"w": torch.tensor([number])}
    return write_checkpoint(path, kind="model", tensors=tensors, settings={}, seed=0, parents=parents).content_id


def renamed(path: Path, content_id: str) -> None:
    """Give a file another content id, in a header that fits its checksum."""
    import json

    header = json.loads(header_text(path))
    header_text(path, sealed(header | {"content_id": content_id}))


def test_a_file_that_is_its_own_parent_is_refused_at_once(tmp_path):
    own = "ab" * 32
    made(tmp_path / "m", *(parent(own, "m", f"role{n}") for n in range(6)))
    renamed(tmp_path / "m", own)
    began = time.monotonic()
    with pytest.raises(ArtifactError, match="do not match its content id"):
        read_lineage(tmp_path / "m")
    assert time.monotonic() - began < 5


def test_a_loop_behind_an_honest_file_is_refused(tmp_path):
    one, other = "ab" * 32, "cd" * 32
    made(tmp_path / "one", *(parent(other, "other", f"role{n}") for n in range(6)))
    made(tmp_path / "other", *(parent(one, "one", f"role{n}") for n in range(6)))
    renamed(tmp_path / "one", one)
    renamed(tmp_path / "other", other)
    made(tmp_path / "honest", parent(one, "one"))
    began = time.monotonic()
    with pytest.raises(ArtifactError, match=r"names itself among the files that it was made from"):
        read_lineage(tmp_path / "honest")
    assert time.monotonic() - began < 5


def test_many_ways_through_few_files_are_walked_once(tmp_path, monkeypatch):
    """Each of 30 files has the one before it as six parents: 6^30 ways."""
    below = made(tmp_path / "0", number=0.0)
    for n in range(1, 31):
        below = made(tmp_path / str(n), *(parent(below, str(n - 1), f"role{r}") for r in range(6)), number=float(n))
    asked = []
    monkeypatch.setattr("mmgen.artifacts.lineage.read_header", lambda path: (asked.append(path), read_header(path))[1])
    node = read_lineage(tmp_path / "30")
    assert len({*asked}) == 31 and max(Counter(asked).values()) <= 2, "one reading for the lineage, one to verify"
    assert len(list(walk_ancestors(node))) == 31
    assert {each.state for each in walk_ancestors(node)} == {"verified"}
    assert len(format_lineage(node)) == 1 + 30 * 6
    assert len(outline_lineage([node])) == 1 + 30 * 6
    assert len(str(node.to_json())) < 200_000


def test_a_line_of_ancestors_has_an_end(tmp_path):
    below = made(tmp_path / "0")
    for n in range(1, 70):
        below = made(tmp_path / str(n), parent(below, str(n - 1)), number=float(n))
    with pytest.raises(ArtifactError, match="too many generations of ancestors, expected at most 64"):
        read_lineage(tmp_path / "69")


def test_two_parents_of_one_role_are_two_files(tmp_path):
    ids = [made(tmp_path / name, number=n) for n, name in enumerate(("a", "b"))]
    made(tmp_path / "child", parent(ids[0], "a"), parent(ids[1], "b"), number=9.0)
    assert [node.path.name for node in read_lineage(tmp_path / "child").parents] == ["a", "b"]


def test_verified_is_said_only_of_what_was_read(tmp_path, monkeypatch):
    """A parent whose header claims the right id over other tensors is marked as damaged, and a large one as found."""
    honest = made(tmp_path / "parent", number=1.0)
    made(tmp_path / "child", parent(honest, "parent"), number=2.0)
    assert [node.state for node in walk_ancestors(read_lineage(tmp_path / "child"))] == ["verified", "verified"]
    made(tmp_path / "parent", number=3.0)
    renamed(tmp_path / "parent", honest)
    node = read_lineage(tmp_path / "child")
    assert [each.state for each in walk_ancestors(node)] == ["verified", "damaged"]
    assert format_lineage(node)[1].endswith(", damaged)")
    monkeypatch.setattr("mmgen.artifacts.verified._bytes_to_verify", lambda path, kind: 2**40)
    monkeypatch.setattr("mmgen.artifacts.verified.was_verified", lambda name: False)
    assert [each.state for each in walk_ancestors(read_lineage(tmp_path / "child"))] == ["found", "found"]
    (tmp_path / "parent").unlink()
    assert [each.state for each in walk_ancestors(read_lineage(tmp_path / "child"))] == ["found", "missing"]


@pytest.mark.parametrize("kind", ["dataset", "latents", "samples", "model"])
def test_every_kind_can_be_verified(tmp_path, make, kind):
    make(kind, tmp_path / "file")
    assert read_lineage(tmp_path / "file").state == "verified"
