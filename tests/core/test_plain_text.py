"""Every reader of a person's text goes through one door: the same bytes are read, or refused, alike everywhere."""

import codecs
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mmgen import experiments
from mmgen.core.errors import MmgenError
from mmgen.core.plain_text import NotTextError, decode_lines, decode_text
from mmgen.data_recipes._celeba._source import ALL_ATTRIBUTES, read_lists
from mmgen.data_recipes._own._tables import read_table
from mmgen.data_recipes._scene_file import read_scene_file
from mmgen.experiments._plan import read_plan
from mmgen.figures.report.curves import read_log
from mmgen.figures.session import gather_files
from mmgen.results.score import read_scores
from mmgen.settings import plugins
from mmgen.settings.config import read_toml

LINES = "one\ntwö\nthree\n"
READ = {
    "UTF-8": LINES.encode(),
    "a byte order mark": codecs.BOM_UTF8 + LINES.encode(),
    "UTF-16": LINES.encode("utf-16"),
    "UTF-16, the other way": codecs.BOM_UTF16_BE + LINES.encode("utf-16-be"),
    "UTF-32": LINES.encode("utf-32"),
    "line ends of Windows": LINES.replace("\n", "\r\n").encode(),
    "line ends of old Macs": LINES.replace("\n", "\r").encode(),
}


@pytest.mark.parametrize("case", READ)
def test_one_text_however_it_was_saved(case: str) -> None:
    assert decode_text(READ[case]) == LINES
    assert list(decode_lines(io.BytesIO(READ[case]))) == LINES.splitlines(keepends=True)


def test_only_a_newline_ends_a_line() -> None:
    text = "one\rtwo\x0b\x0c\x85\u2028three\r\nfour\r\r\nfive\rsix"
    lines = ["one\rtwo\x0b\x0c\x85\u2028three\n", "four\r\n", "five\rsix"]
    assert decode_text(text.encode()).split("\n") == [line.removesuffix("\n") for line in lines]
    assert list(decode_lines(io.BytesIO(text.encode()))) == lines
    assert list(decode_lines(io.BytesIO(text.encode("utf-16")))) == lines


@pytest.mark.parametrize("data", [b"", codecs.BOM_UTF8, codecs.BOM_UTF16_LE])
def test_nothing_is_an_empty_text(data: bytes) -> None:
    assert decode_text(data) == "" and not list(decode_lines(io.BytesIO(data)))


REFUSED = {
    "Windows-1252": (LINES.encode("cp1252"), r"line 2 has the byte 0xF6; save it as UTF-8 if it is text"),
    "a mark and Windows-1252": (codecs.BOM_UTF8 + LINES.encode("cp1252"), "line 2 has the byte 0xF6"),
    "cut in a letter": (b"one\n\xc3", "line 2 has the byte 0xC3"),
    "UTF-16 without a mark": ("one\n".encode("utf-16-le"), "line 1 has a zero character"),
    "half a UTF-16": (LINES.encode("utf-16")[:-1], "no text in UTF-16, as which it begins"),
    "a zero": (b"one\ntw\0\n", "line 2 has a zero character"),
    "a zip": (b"PK\3\4" + bytes(50), "line 1 has a zero character, NUL: save it as text in UTF-8"),
    "gzip": (b"\x1f\x8b\x08\0\0\0", "line 1 has the byte 0x8B"),
    "a picture": (b"\x89PNG\r\n\x1a\n", "line 1 has the byte 0x89"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_text_is_refused_with_its_place(case: str) -> None:
    data, says = REFUSED[case]
    for read in (decode_text, lambda data: list(decode_lines(io.BytesIO(data)))):
        with pytest.raises(NotTextError, match=says):
            read(data)


def _table(path: Path) -> object:
    return read_table(path.read_bytes(), str(path.with_suffix(".csv")))


def _json_lines(path: Path) -> object:
    return read_table(path.read_bytes(), str(path.with_suffix(".jsonl")))


def _celeba(path: Path) -> object:
    partition = "".join(f"{name}.jpg {part}\n" for name, part in (("a", 0), ("b", 1), ("c", 2)))
    texts = {"list_attr_celeba": path.read_bytes(), "list_eval_partition": partition.encode()}
    return read_lists(lambda name: (name + ".txt", texts[name]) if name in texts else None, "here", "ignored").sha256


_SCENE = {
    "camera": [6, -6, 5], "lights": {"key": [1, 1, 5], "fill": [1, 1, 5], "back": [1, 1, 5]},
    "objects": [{
        "size": "large", "colour": "red", "material": "metal", "shape": "cube", "x": 0.5, "y": -1, "rotation_rad": 0.3,
    }],
}  # fmt: skip
_WORDS = {"size": ("large", "small"), "colour": ("red",), "material": ("metal",), "shape": ("cube",)}
_LIST = "".join(f"{name}.jpg{' 1' * 40}\n" for name in "abc")

READERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a table": (_table, "file_name,colour\n1.png,red\n2.png,blue\n"),
    "JSON lines": (_json_lines, '{"file_name": "1.png"}\n{"file_name": "2.png"}\n'),
    "a list of CelebA": (_celeba, f"3\n{' '.join(ALL_ATTRIBUTES)}\n{_LIST}"),
    "scenes": (lambda path: read_scene_file(path, 1, _WORDS).scenes, json.dumps([_SCENE], indent=1)),
    "settings": (read_toml, "[training]\nsteps = 3\n"),
    "a list to reproduce": (lambda path: read_plan(str(path)), experiments.experiment_text("cremer-table1")),
    "scores": (read_scores, '{"metric": "a", "value": 1}\n{"metric": "a", "value": 2}\n'),
    "a log": (read_log, '{"step": 1, "bound": 2}\n{"step": 2, "bound": 3}\n'),
    "code": (plugins.add_code_file, "one = 1\ntwo = 2\n"),
}


def _result(read: Callable[[Path], object], path: Path) -> str:
    try:
        return repr(read(path))
    except MmgenError as error:
        return str(error)


@pytest.fixture
def no_code(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(plugins, "_files", {})
    yield
    os.environ.pop(plugins.CODE_VARIABLE, None)


@pytest.mark.usefixtures("no_code")
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_goes_through_the_door(reader: str, tmp_path: Path) -> None:
    """However it was saved, it is read as the plain text is; and what is no text is refused with the door's words."""
    read, text = READERS[reader]
    path = tmp_path / "file.toml"
    path.write_text(text)
    wanted = repr(read(path))
    ends = [text.replace("\n", end) for end in ("\r\n", "\r")]
    for data in (codecs.BOM_UTF8 + text.encode(), text.encode("utf-16"), *(one.encode() for one in ends)):
        path.write_bytes(data)
        assert _result(read, path) == wanted, data[:40]
    hostile = {
        "0xF6": b"\xf6\n",
        "a zero": b"abcd\0\n",
        "zero": b"PK\3\4\0\0",
        "zero character": "ab".encode("utf-16-le"),
    }
    for number, (says, data) in enumerate(hostile.items()):
        other = tmp_path / f"{number}.toml"
        other.write_bytes(data)
        with pytest.raises(MmgenError, match=says):
            read(other)
    for data in (b"", codecs.BOM_UTF8, b"\n \n"):
        path.write_bytes(data)
        assert "Traceback" not in _result(read, path)


def test_scores_of_another_program_are_told_by_what_they_hold(tmp_path: Path) -> None:
    """The report looks at how a file begins; a byte order mark is not the sign of something else."""
    path = tmp_path / "scores.jsonl"
    text = '{"metric": "a", "value": 1}\n'
    for data in (text.encode(), codecs.BOM_UTF8 + text.encode(), text.encode("utf-16")):
        path.write_bytes(data)
        assert [score.metric for score in gather_files([path]).scores] == ["a"]


def test_paths_that_another_shell_wrote(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """PowerShell writes UTF-16, or a byte order mark, into a pipe's file."""
    from mmgen.cli._streams import read_stdin

    for data in (codecs.BOM_UTF8 + b"a.h5\r\n", "a.h5\r\n".encode("utf-16"), b"a.h5\n"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert read_stdin() == "a.h5\n"
