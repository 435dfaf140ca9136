"""Where a file may be written: anything that is there and is no regular file stays as it is."""

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from mmgen.artifacts import atomic_path, check_nothing_lost, check_output, check_replaceable, write_text_atomic
from mmgen.artifacts.files import make_internal_folder, open_internal_file
from mmgen.core.errors import ArtifactError, UsageError


@pytest.fixture
def strange(tmp_path: Path) -> Iterator[dict[str, Path]]:
    """A pipe, a socket, a device, links to them and a folder."""
    os.mkfifo(tmp_path / "pipe.h5")
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.getcwd()
        os.chdir(tmp_path)  # names of sockets are short
        listening.bind("socket.h5")
        os.chdir(here)
        (tmp_path / "folder.h5").mkdir()
        (tmp_path / "link-to-a-pipe.h5").symlink_to("pipe.h5")
        (tmp_path / "link-to-a-device.h5").symlink_to("/dev/null")
        yield {path.name: path for path in tmp_path.iterdir()} | {"device": Path("/dev/full")}


WRITERS = {
    "atomic_path": lambda path: atomic_path(path).__enter__(),
    "write_text_atomic": lambda path: write_text_atomic(path, "text"),
    "check_place": check_replaceable,
    "check_output of an artifact": lambda path: check_output(path, "dataset"),
    "check_output of a page": lambda path: check_output(path, None),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_no_regular_file_is_refused(writer: str, strange: dict[str, Path]) -> None:
    before = {path: stat.S_IFMT(os.lstat(path).st_mode) for path in strange.values()}
    for name, path in strange.items():
        with pytest.raises(ArtifactError, match=r"cannot write .*: (it is a|is a directory)") as raised:
            WRITERS[writer](path)
        assert "\n" not in str(raised.value), name
    assert before == {path: stat.S_IFMT(os.lstat(path).st_mode) for path in strange.values()}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("n" * 300 + ".h5", "file name too long; choose a shorter name"),
        ("/".join(["d" * 200] * 30), "file name too long"),
        ("missing/x.h5", "there is no folder"),
        ("a\0b.h5", "zero character"),
        ("file/x.h5", "not a directory"),
    ],
)
def test_names_that_no_file_can_have(writer: str, name: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ArtifactError, match=why):
        WRITERS[writer](tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_new_names_empty_files_and_links_to_files_are_taken(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to("empty")
    for name in ("new", "empty", "link"):
        check_replaceable(tmp_path / name)
        check_output(tmp_path / name, "dataset")
    for name in ("new", "empty", "link"):
        write_text_atomic(tmp_path / name, "text")
        assert (tmp_path / name).read_text() == "text"


def test_finished_work_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("an hour's work")
    with pytest.raises(UsageError, match=r"is there already, .* another --output, or --overwrite to replace it"):
        check_nothing_lost(tmp_path / "a", overwrite=False)
    check_nothing_lost(tmp_path / "a", overwrite=True)
    (tmp_path / "b").touch()
    check_nothing_lost(tmp_path / "b", overwrite=False)


# Permissions say nothing where tests run as the superuser; this file system takes files from nobody. Only Linux has it.
NO_FILES = Path("/sys")


@pytest.mark.skipif(not NO_FILES.is_dir(), reason="there is no /sys")
def test_a_folder_that_takes_no_files_is_refused_before_work_that_always_writes(tmp_path: Path) -> None:
    """A page is always written; an artifact may be finished already, in a folder that takes no more."""
    with pytest.raises(ArtifactError, match=r"cannot write /sys/page.html: .*; choose a folder that you may write to"):
        check_output(NO_FILES / "page.html", None)
    check_output(NO_FILES / "model.safetensors", "model")
    check_output(tmp_path / "page.html", None)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("there", [True, False], ids=["a file", "nothing yet"])
def test_a_link_is_replaced_and_its_target_stays_as_it_was(tmp_path: Path, there: bool) -> None:
    """Who put it there does not choose what we write to, whether or not the user named it: one rule for all files."""
    (tmp_path / "else").mkdir()
    target, link = tmp_path / "else" / "notes.txt", tmp_path / "link.txt"
    if there:
        target.write_text("before")
    link.symlink_to(Path("else", "notes.txt"))
    write_text_atomic(link, "after")
    assert not link.is_symlink() and link.read_text() == "after"
    assert [path.read_text() for path in target.parent.iterdir()] == ["before"] * there


def test_of_a_file_with_two_names_one_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("before")
    os.link(tmp_path / "precious", tmp_path / "notes.txt")
    write_text_atomic(tmp_path / "notes.txt", "after")
    assert (tmp_path / "precious").read_text() == "before"


def test_a_folder_reached_by_a_link_is_the_users_choice(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "here").symlink_to("disk")
    write_text_atomic(tmp_path / "here" / "notes.txt", "text")
    assert (tmp_path / "disk" / "notes.txt").read_text() == "text"


def test_links_of_the_system_are_no_places(tmp_path: Path) -> None:
    """/dev/stdout that is sent to a file is a link to a regular one, and would be gone from /dev."""
    with open(tmp_path / "file", "w") as file:
        (tmp_path / "descriptor").symlink_to(f"/proc/self/fd/{file.fileno()}")
        with pytest.raises(ArtifactError, match="is a link of the system; choose the name of a file"):
            check_replaceable(tmp_path / "descriptor")


def test_logs_locks_and_folders_of_ours_replace_links(tmp_path: Path) -> None:
    """What is not renamed into its place is opened, and an opened link would be followed."""
    (tmp_path / "precious").write_text("before")
    (tmp_path / "elsewhere").mkdir()
    for name, target in {"log": "precious", "lock": "nothing", "folder": "elsewhere", "dangling": "nowhere"}.items():
        (tmp_path / name).symlink_to(target)
    os.close(open_internal_file(tmp_path / "log", os.O_WRONLY | os.O_APPEND))
    os.close(open_internal_file(tmp_path / "lock", os.O_RDWR))
    for name in ("folder", "dangling"):
        (make_internal_folder(tmp_path / name) / "x").touch()
        assert not (tmp_path / name).is_symlink()
    assert (tmp_path / "precious").read_text() == "before" and not list((tmp_path / "elsewhere").iterdir())
    assert not (tmp_path / "nothing").exists() and not (tmp_path / "nowhere").exists()
