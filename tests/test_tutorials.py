"""The tutorials run: every block of them in order, as a reader would type it, with less of everything."""

import contextlib
import os
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from mmgen.settings import plugins
from tests.program import instead, mmgen

TUTORIALS = Path(__file__).resolve().parents[1] / "docs" / "tutorials"
LESS = {"--steps": "12", "--number": "60", "--queries": "4", "--draws": "2"}
STEPPED = ("train-classifier", "train", "fit-aggregate")
CODE = {
    r"steps=\d+": "steps=12",
    r"given_count=\[4, 2\]": "given_count=[4], draws=1, queries=4",
    r"in \(0, 1, 2\)": "in (0, 1)",
}


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """The language and the text of each block of a page that is to be typed or saved."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", (TUTORIALS / page).read_text("utf-8"), re.S | re.M)
    assert all(label in ("sh", "python", "text", "latex") for label, _ in found)
    return ((label, text) for label, text in found if label in ("sh", "python"))


def shortened(words: list[str]) -> list[str]:
    """A command with fewer steps, pictures and descriptions."""
    for option, value in LESS.items():
        words = instead(words, option, value) if option in words else words
    if words[0] == "quickstart":  # whose folder would have another name
        return [*words, "--quick", "-o", f"{words[words.index('--images') + 1]}-quickstart"]
    return [*words, "--steps", LESS["--steps"]] if words[0] in STEPPED and "--steps" not in words else words


def type_line(folder: Path, line: str, short: bool) -> None:
    """Run a line of a shell: commands of mmgen with pipes and a redirection, or a Python file that was saved."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|>")
    lexer.whitespace_split = True
    stages: list[list[str]] = [[]]
    for word in lexer:
        stages.append([]) if word in "|>" else stages[-1].append(word)
    target = stages.pop() if ">" in line else None
    printed = ""
    for program, *words in stages:
        if program == "python":
            words = [words[0], *(LESS["--number"] if short and word.isdigit() else word for word in words[1:])]
            with mock.patch.object(sys, "argv", words), contextlib.chdir(folder):
                runpy.run_path(words[0], run_name="__main__")
        else:
            assert program == "mmgen", line
            printed = mmgen(folder, *(shortened(words) if short else words), given=printed)
    if target:
        (folder / target[0]).write_text(printed)


def follow(page: str, folder: Path, short: bool) -> None:
    """Do what a page says; Python whose first line is a file's name is saved, other Python is run."""
    for label, text in blocks(page):
        if label == "sh":
            for line in text.replace("\\\n", " ").splitlines():
                if line.split("#")[0].strip():
                    type_line(folder, line, short)
            continue
        for pattern, value in CODE.items() if short else ():
            text = re.sub(pattern, value, text)
        name = re.match(r"# (\w+\.py)\n", text)
        assert name, "a block of Python begins with the name of its file"
        (folder / name[1]).write_text(text)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with mock.patch.dict(os.environ), mock.patch.object(plugins, "_files", {}):
        yield tmp_path


PAGES = sorted(path.name for path in TUTORIALS.glob("*.md"))
SLOW = {name for name in PAGES if "mmgen quickstart" in (TUTORIALS / name).read_text("utf-8")}  # starts many processes


LENGTHS = [
    *(pytest.param(one, True, marks=[pytest.mark.slow] * (one in SLOW), id=f"{one}-short") for one in PAGES),
    *(pytest.param(one, False, marks=pytest.mark.slow, id=f"{one}-full") for one in PAGES),
]


@pytest.mark.slow_cases("aggregated-posterior.md-short")
@pytest.mark.filterwarnings("ignore")  # of matplotlib's and others', which are not what is looked at here
@pytest.mark.parametrize(("page", "short"), LENGTHS)
def test_a_tutorial_can_be_followed(page: str, short: bool, folder: Path) -> None:
    follow(page, folder, short)
    for name in re.findall(r"-o (\S+)", "".join(text for label, text in blocks(page) if label == "sh")):
        assert (folder / name).exists(), name
