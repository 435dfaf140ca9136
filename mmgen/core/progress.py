"""Long work as an iterable, which reports progress that the caller can show."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

__all__ = ["Progress", "Watch", "Work", "run_generator", "map_fractions"]

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
