"""Two commands that write one file: the first to end has the name, the other one says so and keeps its own work."""

import os
from pathlib import Path

import pytest

from mmgen.artifacts import check_output, write_text_atomic
from mmgen.artifacts.files import note_output, try_lock
from mmgen.core.errors import ArtifactError
from mmgen.training.log import RunLog

LATE = r"a\.txt was written by another command while this one worked, and stays as it is; what this one made is "


@pytest.mark.parametrize("before", [None, "", "old"])
@pytest.mark.parametrize("links", [True, False])
def test_what_was_not_there_when_work_began_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None, links: bool
) -> None:
    if not links:
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError(1, "no links here")))
    path = tmp_path / "a.txt"
    if before is not None:
        path.write_text(before)
    for number in (2, 3):
        note_output(path)
        path.write_text(f"another command's {number}")
        with pytest.raises(ArtifactError, match=LATE + rf".*a-{number}\.txt: keep the one that you want"):
            write_text_atomic(path, f"mine {number}")
        assert path.read_text() == f"another command's {number}"
        assert (tmp_path / f"a-{number}.txt").read_text() == f"mine {number}"
    assert sorted(os.listdir(tmp_path)) == ["a-2.txt", "a-3.txt", "a.txt"], "nothing hidden is left"


def test_the_name_that_is_taken_between_the_look_and_the_link_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, link = tmp_path / "a.txt", os.link

    def late(source: Path, target: Path) -> None:
        if target == path:
            path.write_text("the other's")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    note_output(path)
    with pytest.raises(ArtifactError, match=LATE):
        write_text_atomic(path, "mine")
    assert (path.read_text(), (tmp_path / "a-2.txt").read_text()) == ("the other's", "mine")


def test_what_was_there_when_work_began_is_replaced_once_that_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    check_output(tmp_path / "b.html", None)
    note_output(path)
    write_text_atomic(path, "new")
    path.write_text("by hand")
    write_text_atomic(path, "newer")  # nobody has looked: as a picture that a notebook saves
    assert path.read_text() == "newer"


def test_a_link_is_replaced_only_if_it_was_there(tmp_path: Path) -> None:
    path, other = tmp_path / "a.txt", tmp_path / "other"
    other.write_text("kept")
    note_output(path)
    path.symlink_to(other)
    with pytest.raises(ArtifactError, match=LATE):
        write_text_atomic(path, "mine")
    assert path.is_symlink() and other.read_text() == "kept"


def test_a_file_that_fails_takes_no_name(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    note_output(path)
    with pytest.raises(UnicodeEncodeError):
        write_text_atomic(path, "\ud800")
    assert not os.listdir(tmp_path)


def test_a_second_training_of_one_name_is_refused_and_the_log_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "q.log.jsonl"
    first = RunLog(path, 0)
    first.write({"step": 1})
    with pytest.raises(ArtifactError, match=r"q.log.jsonl: another command writes it, which trains under th"):
        RunLog(path, 0)
    first.write({"step": 2})
    first.close()
    assert path.read_text().count("\n") == 2
    again = RunLog(path, 1)
    assert try_lock(path) is None
    again.close()
    lock = try_lock(path)
    assert lock is not None and path.read_text().count("\n") == 1
    os.close(lock)
