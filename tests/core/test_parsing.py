"""One strict parser: what JSON, TOML and ``--set`` may say, and that nothing is read by another."""

import ast
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mmgen.cli._main import main
from mmgen.core.errors import ArtifactError, MmgenError, SettingsError, UsageError
from mmgen.core.parsing import (
    MAX_DEPTH,
    MAX_TEXT_BYTES,
    MalformedError,
    NotTomlError,
    parse_json,
    parse_toml,
    read_lines,
    read_text,
)
from mmgen.experiments._plan import read_plan
from mmgen.figures.report.curves import read_log
from mmgen.figures.session import gather_files
from mmgen.results.score import read_scores
from mmgen.settings.config import parse_assignments, read_toml
from mmgen.training.log import RunLog

ROOT = Path(__file__).resolve().parents[2]

VALUES = {
    "400 digits": "9" * 400,
    "5,000 digits": "9" * 5000,
    "a negative one": "-" + "9" * 400,
    "just too large": str(2**64),
    "just too small": str(-(2**63) - 1),
    "larger than any float": "1e999",
    "a negative float": "-1e999",
    "deep": "[" * 100_000 + "]" * 100_000,
    "just too deep": "[" * (MAX_DEPTH + 1) + "1" + "]" * (MAX_DEPTH + 1),
    "deep and open": "[" * 100_000,
}
JSON = {
    **VALUES, "not a number": "NaN", "infinite": "-Infinity", "a key twice": '{"a": 1, "a": 2}',
    "deep tables": '{"a":' * 5000 + "1" + "}" * 5000, "no JSON": "{'a': 1}", "two values": "1 2", "nothing": "",
}  # fmt: skip
TOML = {**VALUES, "not a number": "nan", "infinite": "-inf", "hexadecimal": "0x" + "f" * 50_000}


@pytest.mark.parametrize("name", JSON)
def test_json_beyond_the_bounds(name: str) -> None:
    with pytest.raises(MalformedError) as caught:
        parse_json(JSON[name])
    assert str(caught.value).isprintable() and len(str(caught.value)) < 200


@pytest.mark.parametrize("name", TOML)
def test_toml_beyond_the_bounds(name: str) -> None:
    with pytest.raises(MalformedError) as caught:
        parse_toml(f"a = {TOML[name]}")
    assert str(caught.value).isprintable() and len(str(caught.value)) < 250


def test_what_is_within_the_bounds() -> None:
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    text = f'{{"a": {2**64 - 1}, "b": {-(2**63)}, "c": 1.7e308, "d": {deep}, "e": 1e-999, "f": null}}'
    values = parse_json(text)
    assert (values["a"], values["b"], values["c"], values["e"]) == (2**64 - 1, -(2**63), 1.7e308, 0.0)
    assert parse_toml(f"a = {2**63}\nb.c = 1_000.5\nd = {deep}")["b"] == {"c": 1000.5}
    assert parse_json(b'"\xc3\xa9"') == "é"
    with pytest.raises(MalformedError, match="expected at most"):
        parse_json('"' + "a" * MAX_TEXT_BYTES + '"')


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * 100_000) + " = 1",
        ".".join(['"a"'] * 100_000) + " = 1",
        "[" + " . ".join("a" * 100_000) + "]",
        "a" * 1_000_000,
        "x = {" * 100_000,
        "a = " + '"' * 100_001,
        "." * 1_000_000,
        "a = '" + "b." * 500_000,
        "a" * 2_000_000,
    ],
)
def test_no_toml_takes_long(text: str) -> None:
    began = time.process_time()
    with pytest.raises(MalformedError):
        parse_toml(text)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("name", TOML)
def test_assignments_are_read_strictly(name: str) -> None:
    if name == "deep and open":  # no TOML, so it is a word
        name = "deep"
    with pytest.raises(UsageError, match=r"^--set got 'training\.steps=") as caught:
        parse_assignments([f"training.steps={TOML[name]}"])
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "text", ["a=1\nb=2", "a=1\n[c]\nd=3", ".".join("a" * 5000) + "=1", ".".join("a" * 100) + "=1", "=1", "a"]
)
def test_assignments_that_say_more_or_less_than_one_value(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--set got '"):
        parse_assignments([text])


def test_words_are_still_words() -> None:
    assert parse_assignments(["a=telbo", "b=[1, 2]", "c='x'", "d=1e3"]) == {
        "a": "telbo",
        "b": [1, 2],
        "c": "x",
        "d": 1e3,
    }
    with pytest.raises(NotTomlError):
        parse_toml("a = telbo")


def scores(path: Path, value: str) -> object:
    path.write_text(f'{{"metric": "correctness", "value": {value}}}\n')
    return read_scores(path)


def log(path: Path, value: str) -> object:
    path.write_text(f'{{"step": 1, "bound": {value}}}\n{{"step": 2, "bound": 1}}\n')
    return read_log(path)


def settings(path: Path, value: str) -> object:
    path.write_text(f"[training]\nsteps = {value}\n")
    return read_toml(path)


def plan(path: Path, value: str) -> object:
    path.with_suffix(".toml").write_text(f"title = {value}\n")
    return read_plan(str(path.with_suffix(".toml")))


def report(path: Path, value: str) -> object:
    path.write_text(f'{{"metric": "correctness", "value": {value}}}\n')
    return gather_files([path])


READERS = [scores, log, settings, plan, report]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_every_reader_refuses_it_in_a_sentence(
    tmp_path: Path, reader: Callable[[Path, str], object], value: str
) -> None:
    with pytest.raises((ArtifactError, SettingsError)) as caught:
        reader(tmp_path / "file", VALUES[value])
    assert str(tmp_path / "file") in str(caught.value)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 700


BOUNDED = {"scores": read_scores, "log": read_log, "settings": read_toml, "plan": lambda path: read_plan(str(path))}


@pytest.mark.parametrize("what", ["pipe", "folder", "zeros", "large", "bytes"])
@pytest.mark.parametrize("reader", BOUNDED)
def test_nothing_endless_is_read(tmp_path: Path, reader: str, what: str) -> None:
    path = tmp_path / "file.toml"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "zeros":
        path.symlink_to("/dev/zero")
    elif what == "large":
        with path.open("wb") as file:
            file.truncate(2**31)
    else:
        path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MmgenError) as caught:
        BOUNDED[reader](path)
    assert str(path) in str(caught.value)


def test_a_log_never_says_what_no_parser_reads(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "m.log.jsonl", 0)
    log.write({"step": 1, "bound": float("nan"), "terms": {"z": float("inf"), "a": 1.0}})
    log.close()
    text = (tmp_path / "m.log.jsonl").read_text()
    assert parse_json(text) == {"step": 1, "bound": None, "terms": {"z": None, "a": 1.0}}
    assert list(parse_json(text)["terms"]) == ["z", "a"], "terms keep their order"


def test_train_refuses_such_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "d.h5").write_bytes(b"")
    with pytest.raises(SystemExit) as left:
        main(["train", str(tmp_path / "d.h5"), "--set", "training.learning_rate=1e999"])
    assert left.value.code in (1, 2)
    assert "Traceback" not in capsys.readouterr().err


def test_read_bounded(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("12345")
    assert read_text(tmp_path / "a", 5) == "12345"
    with pytest.raises(MalformedError, match="it has 5 bytes, expected at most 4"):
        read_text(tmp_path / "a", 4)


def test_lines_are_read_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b'"1"\n"\xe2\x80\xa8"\n' + b"x" * (MAX_TEXT_BYTES + 1))
    lines = read_lines(tmp_path / "a")
    assert [next(lines), next(lines)] == ['"1"\n', '"\u2028"\n'], "the line separator of Unicode ends no line"
    with pytest.raises(MalformedError, match="line 3 has more than"):
        next(lines)


# json.loads of what the same expression has just written; and of a script of exports, which runs without mmgen.
OWN = {"header.py": 2, "state.py": 1, "parsing.py": 2, "draw.py": 2}


def name_called(node: ast.AST) -> str:
    """Last name of what is called; "" where nothing is. To write out the whole of each call would take seconds."""
    function = node.func if isinstance(node, ast.Call) else None
    return str(getattr(function, "attr", getattr(function, "id", "")))


@pytest.mark.slow
def test_nothing_is_parsed_elsewhere() -> None:
    found: dict[str, int] = {}
    for folder in ("mmgen", "cli", "data_recipes"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                called = ast.unparse(node.func) if name_called(node) in ("loads", "load") else ""
                if called in ("json.loads", "json.load", "tomllib.loads", "tomllib.load"):
                    found[path.name] = found.get(path.name, 0) + 1
    assert found == OWN


# Files that were found to be regular ones before or have just been written, mmgen's own, and tables of Linux.
READ = {
    "mmgen/core/foreign.py": 1, "mmgen/artifacts/containers.py": 3,
    "mmgen/codecs/_weights.py": 1,
    "mmgen/artifacts/pages.py": 1, "mmgen/figures/session/report_files.py": 1,
    "mmgen/commands/_exporting.py": 2, "data_recipes/_published.py": 2,
    "mmgen/training/log.py": 1,
    "cli/_main.py": 1, "cli/_streams.py": 1, "data_recipes/_clevr/_blender_worker.py": 1,
    "data_recipes/_clevr/_api.py": 1, "mmgen/contrib/explore/make.py": 1, "mmgen/settings/plugins.py": 1,
    "mmgen/settings/presets/__init__.py": 1,
    "mmgen/settings/declared.py": 2, "mmgen/results/published.py": 1, "mmgen/settings/registry.py": 2,
    "mmgen/experiments/_plan.py": 1,
    "mmgen/commands/_environment.py": 1, "mmgen/core/memory.py": 2, "mmgen/training/precision.py": 1,
}  # fmt: skip


def reads(node: ast.AST) -> bool:
    """Whether it opens or reads a file with whatever is in it: a pipe would block it, a device fill the memory."""
    if not isinstance(node, ast.Call) or name_called(node) not in ("open", "read_bytes", "read_text"):
        return False
    called = ast.unparse(node.func)
    if called.endswith(".open") and called != "self.open":
        return not node.args or ast.unparse(node.args[0]).startswith("'r")
    return called == "open" or (called.endswith((".read_bytes", ".read_text")) and not node.args)


@pytest.mark.slow
def test_every_file_is_read_with_bounds() -> None:
    found: dict[str, int] = {}
    for folder in ("mmgen", "cli", "data_recipes"):
        for path in (ROOT / folder).rglob("*.py"):
            if not any(parent.is_symlink() for parent in path.parents):  # mmgen/cli is cli
                count = sum(map(reads, ast.walk(ast.parse(path.read_text(encoding="utf-8")))))
                found |= {path.relative_to(ROOT).as_posix(): count} if count else {}
    assert found == READ
