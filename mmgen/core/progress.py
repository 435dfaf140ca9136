"""Progress of long work: iterables with a length, those who watch them, and bars in notebooks."""

import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Progress:
    """The state of running work: ``done`` of ``total`` units, with numbers to show, such as the accuracy.

    Attributes:
        done: Units done.
        values: Figures by name.
        seconds_left: Time until the work ends at the latest; None without a limit.
    """

    done: int
    values: dict[str, float] = field(default_factory=dict)
    seconds_left: float | None = None


class Work(Generic[T]):
    """Work that is done by iterating over it; each step yields a :class:`Progress`, and ``result`` is set at the end.

    Args:
        description: The work in words ("rendering mnist-a").
        total: Number of units of work; ``len()`` returns it.
        unit: Noun for a unit ("image", "step"); "" for a share of the whole.
        generator: Called without arguments at the first iteration; yields progress, returns the result.
        notes: Lines for people on the sources of the work.
    """

    def __init__(
        self,
        description: str,
        total: int,
        unit: str,
        generator: Callable[[], Generator[Progress, None, T]],
        notes: Sequence[str] = (),
    ) -> None:
        self.description = description
        self.total = total
        self.unit = unit
        self.notes = notes
        self._generator = generator
        self._result: list[T] = []

    def __repr__(self) -> str:
        units = f"{self.total:,} {self.unit}s, " if self.unit else ""
        state = "done" if self._result else f"{units}run() does them" if units else "run() does it"
        return f"<Work: {self.description}, {state}>"

    def __len__(self) -> int:
        return self.total

    def __iter__(self) -> Iterator[Progress]:
        self._result = []
        self._result.append((yield from self._generator()))

    @property
    def result(self) -> T:
        """The result of the work; available once the iteration has ended."""
        assert self._result, "the work has not been run to its end"
        return self._result[0]

    def run(self) -> T:
        """Do all the work without showing progress, and return its result."""
        for _ in self:
            pass
        return self.result


class Watch:
    """Base of observers that show messages and progress; this one shows nothing."""

    def say(self, text: str) -> None:
        """Show a message to the user."""

    def follow(self, work: Work[T]) -> T:
        """Run the work, show its progress, and return its result."""
        return work.run()


def map_fractions(work: Generator[float, None, T], start: float, share: float) -> Generator[float, None, T]:
    """Run ``work`` as one part of a longer work: its fractions 0 to 1 become ``start`` to ``start + share``."""
    while True:
        try:
            yield start + share * next(work)
        except StopIteration as stop:
            value: T = stop.value
            return value


def run_generator(work: Generator[Any, None, T]) -> T:
    """Exhaust a generator and return its result, the value of its ``return``."""
    while True:
        try:
            next(work)
        except StopIteration as stop:
            value: T = stop.value
            return value


_PAUSE = 0.2  # seconds between looks of a progress bar


class _Bar:
    """A progress bar in the output of a notebook."""

    def __init__(self, work: Work[Any]) -> None:
        self._work, self._now, self._began = work, Progress(0), time.monotonic()

    def advance(self, now: Progress) -> "_Bar":
        """Set the bar to the state ``now``, and return it."""
        self._now = now
        return self

    def __repr__(self) -> str:
        figures = "".join(f", {name} {value:,.4g}" for name, value in self._now.values.items())
        seconds = time.monotonic() - self._began
        return f"{self._work.description}: {self._now.done:,} of {self._work.total:,}, {seconds:.0f} s{figures}"

    def _repr_html_(self) -> str:
        bar = f'<progress value="{self._now.done}" max="{self._work.total}"></progress>'
        return f"{bar} {escape(repr(self))}"


class NotebookWatch(Watch):
    """Watch that shows messages and progress bars in the output of a notebook."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display

    def say(self, text: str) -> None:
        self._display({"text/plain": text}, raw=True)

    def follow(self, work: Work[T]) -> T:
        bar, last = _Bar(work), time.monotonic()
        handle = self._display(bar, display_id=True)
        now = Progress(0)
        for now in work:
            if time.monotonic() - last >= _PAUSE:
                last = time.monotonic()
                handle.update(bar.advance(now))
        handle.update(bar.advance(Progress(work.total, now.values)))
        return work.result


def _default_watch() -> Watch:
    """Return a watch that shows progress in a notebook, and a silent one outside notebooks."""
    interactive = sys.modules.get("IPython")  # a notebook has loaded it, and nobody else needs it
    shell = interactive.get_ipython() if interactive is not None else None
    if interactive is None or shell is None or not hasattr(shell, "kernel"):
        return Watch()
    return NotebookWatch(interactive.display.display)


def choose_watch(progress: bool | Watch) -> Watch:
    """Return the watch for ``progress``: True for the default, False for a silent one, or the watch itself."""
    if isinstance(progress, Watch):
        return progress
    return _default_watch() if progress else Watch()
