"""Progress, tables and results."""

import io
import itertools
import re
import sys
from collections.abc import Generator

import pytest

from mmgen.cli import _console
from mmgen.core.progress import Progress, Work


def counting(total: int, start: int = 0) -> Work[str]:
    def generate() -> Generator[Progress, None, str]:
        for done in range(start, total + 1):
            yield Progress(done, {"bound": -85.125})
        return "made"

    return Work("counting", total, "step", generate)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_follow_returns_the_result_and_says_nothing_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert _console.follow(counting(3)) == "made"
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[0] == "counting ..."
    assert re.fullmatch(r"counting: done in \d:\d\d · bound -85.12", captured.err.splitlines()[-1])


def test_follow_without_any_progress(capsys: pytest.CaptureFixture[str]) -> None:
    def generate() -> Generator[Progress, None, int]:
        return 7
        yield Progress(0)

    assert _console.follow(Work("nothing", 0, "step", generate)) == 7


def test_plain_lines_are_periodic(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 5))  # every look at the clock is five seconds after the last
    monkeypatch.setattr(_console.time, "monotonic", lambda: float(next(clock)))
    _console.follow(counting(12))
    lines = capsys.readouterr().err.splitlines()
    assert lines[1] == "counting: 2 of 12 · 0.2 step/s · 0:50 left · bound -85.12"
    assert len(lines) == 2 + 12 // 3


def test_follow_draws_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    assert _console.follow(counting(3)) == "made"
    assert "3/3" in terminal.getvalue()
    assert "bound -85.12" in terminal.getvalue()


def test_a_failure_leaves_the_bar_and_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def generate() -> Generator[Progress, None, int]:
        yield Progress(1)
        raise RuntimeError("broken")

    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(RuntimeError, match="broken"):
        _console.follow(Work("failing", 2, "step", generate))


def pace_of(*marks: tuple[int, float]) -> _console._Pace:
    pace = _console._Pace()
    for done, now in marks:
        pace.record_progress(done, now)
    return pace


@pytest.mark.parametrize(
    ("marks", "rate"),
    [
        ([], None),
        ([(1000, 0.0)], None),
        ([(1000, 0.0), (1010, 2.0)], 5.0),  # of a resumed run, without what was done before
        ([(min(s, 50) + 10 * max(0, s - 50), float(s)) for s in range(100)], 10.0),  # of the last half minute
    ],
    ids=["nothing", "one", "resumed", "faster"],
)
def test_the_rate_is_that_of_the_last_half_minute(marks: list[tuple[int, float]], rate: float | None) -> None:
    assert pace_of(*marks).rate == (rate if rate is None else pytest.approx(rate))


SLOW_START = list(itertools.accumulate([0.0, 60.0, *[0.5, 0.5, 0.5, 0.5, 60.0] * 100]))
BURSTS = [(225 * burst + unit, 60 * (burst + 1) + 0.01 * (225 * burst + unit + 1))
          for burst in range(13) for unit in range(225)]  # fmt: skip


def test_a_moment_says_nothing_of_the_time_left() -> None:
    assert pace_of((0, 0.0), (500, 0.5)).seconds_left(1000) is None


def test_the_time_left_does_not_jump() -> None:
    """Unequal parts: right within a half from a tenth on; steady: at once; a minute of nothing promises no hours."""
    for total, marks, since, within in (
        (len(SLOW_START) - 1, list(enumerate(SLOW_START)), 50, 0.5),
        (1500, [(500 + second, float(second)) for second in range(1000)], 50, 1e-6),  # resumed in the middle
    ):
        pace = _console._Pace()
        for place, (done, now) in enumerate(marks):
            pace.record_progress(done, now)
            left = pace.seconds_left(total)
            if place < since / 2:
                assert left is None, "too little is known"
            elif since <= place < total - 500 * (within < 0.1) - 50:
                assert left == pytest.approx(marks[-1][1] + (total - marks[-1][0]) - now, rel=within)
        assert len(pace._marks) <= 510, "few are kept"
    pace = _console._Pace()
    for done, now in BURSTS:
        pace.record_progress(done, now)
        left = pace.seconds_left(13 * 225)
        assert left is None or left < 3 * (13 - done // 225) * 63


def test_lines_without_a_rate_have_no_hanging_dot(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 10_000, 40))
    monkeypatch.setattr(_console.time, "monotonic", lambda: float(next(clock)))

    def generate() -> Generator[Progress, None, int]:
        yield Progress(0)
        yield Progress(0)
        return 7

    _console.follow(Work("waiting", 9, "step", generate))
    assert capsys.readouterr().err.splitlines()[1:3] == ["waiting: 0 of 9", "waiting: 0 of 9"]


def test_clock() -> None:
    assert [_console._format_duration(s) for s in (0, 59.6, 61, 3725)] == ["0:00", "1:00", "1:01", "1:02:05"]


def test_table_keeps_long_cells_on_one_line_and_off_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    _console.print_table("Scores", ("posterior", "correctness"), [("q_agg(z|y) [bold]", "0.9 " + "x" * 90)])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "q_agg(z|y) [bold]" in captured.err  # no markup in cells
    assert "x" * 90 in captured.err


def test_result_is_the_only_thing_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    _console.print_result("data.h5")
    _console.say("made [it]")
    assert capsys.readouterr() == ("data.h5\n", "made [it]\n")


@pytest.mark.parametrize(("told", "width"), [("60", 60), ("0", 200), ("", 200), ("wide", 200), ("-5", 200)])
def test_talk_that_no_terminal_shows_is_as_wide_as_told(told: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")  # of a terminal, which this is none
    monkeypatch.setenv(_console.WIDTH, told)
    assert _console._stderr_console().width == width
