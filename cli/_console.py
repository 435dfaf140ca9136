"""Output of commands: messages for people go to stderr, results to stdout."""

import os
import sys
import textwrap
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mmgen.core.parsing import strip_controls
from mmgen.core.processes import repeat_lost_request
from mmgen.core.progress import Progress, Watch, Work
from mmgen.core.surroundings import is_first_process

if TYPE_CHECKING:
    from rich.console import Console

    from mmgen.results.table import Cell


T = TypeVar("T")

_PLAIN_INTERVAL = 15.0  # seconds between progress lines where stderr is no terminal
_LOG_WIDTH = 200
WIDTH = "MMGEN_WIDTH"
"""Environment variable with the width of messages in columns, if stderr is no terminal."""
_WIDE_TERMINAL = 120  # columns of a terminal with space for a long bar and figures beside it
_RATE_WINDOW = 30.0  # seconds that the rate is estimated from
_LEAST_SHARE = 0.05  # of the work, and so many seconds, before an estimate of the time left
_LEAST_SECONDS = 5.0


def _stderr_console() -> "Console":
    # Made anew for each use, so that it follows a replaced sys.stderr. Without a terminal Rich would assume 80 columns
    # and cut sentences and tables in a log.
    from rich.console import Console

    width_setting = os.environ.get(WIDTH, "")  # set by a command that prints our messages in its terminal
    width = (
        None
        if sys.stderr.isatty()
        else int(width_setting)
        if width_setting.isdecimal() and int(width_setting) > 0
        else _LOG_WIDTH
    )
    return Console(stderr=True, soft_wrap=True, highlight=False, emoji=False, width=width)


def terminal_width() -> int | None:
    """Return the width of the terminal at stderr; None without one."""
    return _stderr_console().width if sys.stderr.isatty() else None


def _wrap(text: str, width: int) -> str:
    """Break text between words into lines of at most ``width`` columns; a longer word, such as a path, stays whole."""
    lines = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        joined = line.replace(" %", "\xa0%").replace(" ± ", "\xa0±\xa0")  # a number is one with its unit and error
        pieces = textwrap.wrap(
            joined, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False,
            replace_whitespace=False, drop_whitespace=True,
        )  # fmt: skip
        lines += [piece.replace("\xa0", " ") for piece in pieces] or [line]
    return "\n".join(lines)


def say(text: str) -> None:
    """Print a message for people on stderr, without control characters."""
    console, plain = _stderr_console(), strip_controls(text)
    console.print(_wrap(plain, console.width) if sys.stderr.isatty() else plain, markup=False, emoji=False)


def print_result(text: object) -> None:
    """Print a result on stdout: a path, or one JSON line."""
    print(text if isinstance(text, Path) and not sys.stdout.isatty() else strip_controls(str(text)), flush=True)


def print_result_lines(terminal_lines: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a result of several lines on stdout: text on a terminal, else rows of cells separated by tabs."""
    from mmgen.results.table import Table

    columns = [""] * max(map(len, rows), default=0)
    print_result("\n".join(terminal_lines) if sys.stdout.isatty() else Table("", columns, rows).tab_separated())


def print_table(
    title: str, columns: "Sequence[str]", rows: "Sequence[Sequence[Cell]]", widest: int | None = None
) -> None:
    """Print a table for people, on stderr: numbers right-aligned, words left-aligned; ``widest`` letters at most."""
    from mmgen.results.table import Table

    console = _stderr_console()
    text = Table(title, columns, rows).text(min(console.width, widest or console.width))
    console.print(text, markup=False, emoji=False, soft_wrap=True)


def print_result_table(title: str, columns: "Sequence[str]", rows: "Sequence[Sequence[Cell]]") -> None:
    """Print a table as the result on stdout: aligned on a terminal, else rows of cells separated by tabs."""
    from mmgen.results.table import Table

    table = Table(title, columns, rows)
    if not sys.stdout.isatty():
        print_result(table.tab_separated())
        return
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False, emoji=False)
    console.print(table.text(console.width), markup=False, emoji=False, soft_wrap=True)


class _Pace:
    """Measurement of the rate of work over the last half minute, which estimates the remaining time.

    The first report is only the origin: a resumed run starts with much done that took no time. Work begins slowly, as
    files are read and kernels compiled, and has parts of unequal length, so the estimate uses the second half of the
    elapsed time.
    """

    def __init__(self) -> None:
        self._reports: deque[tuple[float, int]] = deque()
        self._marks: list[tuple[float, int]] = []  # some of the reports, the further back the fewer

    def record_progress(self, done: int, now: float) -> None:
        self._reports.append((now, done))
        while len(self._reports) > 2 and now - self._reports[0][0] > _RATE_WINDOW:
            self._reports.popleft()
        if not self._marks or 64 * (now - self._marks[-1][0]) >= now - self._marks[0][0]:
            self._marks.append((now, done))

    @property
    def rate(self) -> float | None:
        """Units of work per second; None until progress was recorded twice."""
        if len(self._reports) < 2:
            return None
        (start, first), (end, last) = self._reports[0], self._reports[-1]
        return (last - first) / (end - start) if end > start and last > first else None

    def seconds_left(self, total: int) -> float | None:
        """Estimate the seconds until all work is done; None during the first twentieth and the first seconds."""
        if not self._marks:
            return None
        (began, first), (now, done) = self._marks[0], self._reports[-1]
        if now - began < _LEAST_SECONDS or done - first < _LEAST_SHARE * (total - first):
            return None
        # All of the reports too: after a pause of half the time, the first unit done would promise hours.
        later = next(mark for mark in reversed(self._marks) if mark[0] <= (began + now) / 2)
        both = ((since, before) for since, before in ((began, first), later) if done > before)
        return min(((total - done) * (now - since) / (done - before) for since, before in both), default=None)


def _format_duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _format_number(value: float) -> str:
    """Format a number with four digits, and never as a power of ten: ``-85.12``, ``11,550``."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:,.4g}"


def _format_progress(progress: Progress, work: Work[T], pace: _Pace, width: int | None = None) -> str:
    """Format rate, remaining time and values: ``1,200 step/s · 0:41 left · bound -85.12``, cut to ``width`` columns."""
    parts = []
    rate = pace.rate
    if rate is not None and work.unit:
        parts.append(f"{rate:,.0f} {work.unit}/s" if rate >= 10 else f"{rate:.2g} {work.unit}/s")
    seconds_left = [seconds for seconds in [pace.seconds_left(work.total)] if seconds is not None]
    seconds_left += [progress.seconds_left] if progress.seconds_left is not None else []
    if seconds_left:
        parts.append(f"{_format_duration(min(seconds_left))} left")
    parts += [f"{name} {_format_number(value)}" for name, value in progress.values.items()]
    while width is not None and parts and len(" · ".join(parts)) > width:
        parts.pop()
    return " · ".join(parts)


def _heed_requests(work: Work[Any]) -> Iterator[Progress]:
    """Do the work, which a request to stop that a library has swallowed ends."""
    for progress in work:
        repeat_lost_request()
        yield progress


def _run_with_progress_lines(work: Work[T]) -> T:
    """Do the work, print its progress as lines of text, and return its result."""
    pace, started, last = _Pace(), time.monotonic(), 0.0
    say(f"{work.description} ...")
    progress = None
    for progress in _heed_requests(work):
        now = time.monotonic()
        pace.record_progress(progress.done, now)
        if now - max(last, started) >= _PLAIN_INTERVAL:
            parts = (f"{work.description}: {progress.done:,} of {work.total:,}", _format_progress(progress, work, pace))
            say(" · ".join(filter(None, parts)))
            last = now
    values = " · ".join(
        f"{name} {_format_number(value)}" for name, value in (progress.values if progress else {}).items()
    )
    done = f"{work.description}: done in {_format_duration(time.monotonic() - started)}"
    say(f"{done} · {values}" if values else done)
    return work.result


def follow(work: Work[T]) -> T:
    """Do the work, show its progress on stderr as a bar or as lines, and return its result."""
    if not is_first_process():
        return work.run()
    if not sys.stderr.isatty():
        return _run_with_progress_lines(work)
    from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bars, TextColumn, TimeElapsedColumn
    from rich.table import Column

    pace, console, unwrapped = _Pace(), _stderr_console(), Column(no_wrap=True)
    bar_width = 30 if console.width >= _WIDE_TERMINAL else 10
    # The rest of the line is for figures, so that nothing else is cut.
    width = console.width - len(work.description) - bar_width - 2 * len(str(work.total)) - 1 - len("0:00:00") - 4
    columns = (
        TextColumn("{task.description}", markup=False, table_column=unwrapped),
        BarColumn(bar_width=bar_width, table_column=unwrapped),
        MofNCompleteColumn(table_column=unwrapped),
        TimeElapsedColumn(table_column=unwrapped),
        TextColumn("{task.fields[facts]}", markup=False, style="dim", table_column=unwrapped),
    )
    with Bars(*columns, console=console, refresh_per_second=8) as bars:
        task = bars.add_task(strip_controls(work.description), total=work.total, facts="")
        for progress in _heed_requests(work):
            pace.record_progress(progress.done, time.monotonic())
            bars.update(task, completed=progress.done, facts=_format_progress(progress, work, pace, width))
        bars.update(task, completed=work.total)
    return work.result


class _Console(Watch):
    """Watch that prints messages and progress bars on stderr."""

    def say(self, text: str) -> None:
        if is_first_process():
            say(text)

    def follow(self, work: Work[T]) -> T:
        return follow(work)


CONSOLE = _Console()
