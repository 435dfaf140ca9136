"""What a terminal of 80 columns shows: no word is broken, no count is lost; what a pipe gets."""

import re
import sys

import pytest

from mmgen.cli import _console
from mmgen.core.progress import Progress, Work
from mmgen.results.table import Table
from tests.cli.test_console import Terminal

COLUMNS = ["posterior", "given", "protocol", "% ± standard error", "sd of 5 splits", "images", "queries", "judge %"]
ROW = ["aggregate", "4", "uncorrected", "93.25 ± 0.41", "0.55", "158,400", "6,600", "99.1"]
FURTHER = ["bias left", "uncorrected"]


@pytest.mark.parametrize("width", [30, 50, 80, 100, 200])
@pytest.mark.parametrize("further", [[], FURTHER])
def test_no_word_of_a_table_is_broken(width: int, further: list[str]) -> None:
    columns, row = [*COLUMNS, *further], [*ROW, *further]
    text = Table("Title [b]", columns, [row, row]).text(width)
    assert max(map(len, text.splitlines())) <= width
    words = re.findall(r"\S+", text)
    for word in " ".join([*columns, *row]).split():
        assert word in words, f"{word} is broken at {width} columns:\n{text}"
    assert "Title [b]" in text


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_progress_keeps_its_count(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def generate():
        for done in range(0, 5001, 1000):
            yield Progress(done, {"bound": -85.125, "examples/s": 11550.0}, seconds_left=500.0)

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    _console.follow(Work("fitting q_agg", 5000, "step", generate))
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue()).replace("\r", "\n").strip().splitlines()[-1]
    assert last.startswith("fitting q_agg ") and "5000/5000 0:00:0" in last
    assert "…" not in last and len(last) <= width


def test_sentences_break_between_words_and_paths_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    path = "/a-very-long/path-that/must-be/copied/in-one/piece.safetensors"
    sentence = "a description that is described by " + path + " and more words that follow it to the end"
    _console.say(sentence)
    lines = terminal.getvalue().splitlines()
    assert " ".join(lines) == sentence and path in lines
    assert all(len(line) <= 40 for line in lines if line != path)


def test_a_table_that_is_the_result(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [["elbo", "a bound\tof\nevidence"], ["telbo", "three"]]
    _console.print_result_table("Objectives", ["name", "what"], rows)
    assert capsys.readouterr() == ("elbo\ta bound of evidence\ntelbo\tthree\n", "")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    _console.print_result_table("Objectives", ["name", "what"], rows)
    assert "Objectives" in terminal.getvalue() and "─" in terminal.getvalue()
    assert capsys.readouterr().err == ""
