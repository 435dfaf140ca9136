"""Long work as an iterable: the library reports, whoever called it decides what to draw."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

__all__ = ["Progress", "Watch", "Work", "outcome", "relay"]

T = TypeVar("T")


@dataclass(frozen=True)
class Progress:
    """How far some work is: ``done`` of the work's ``total`` units, with figures worth showing (bound, accuracy).

    Attributes:
        done: Units done.
        values: Figures by name.
        seconds_left: When the work ends at the latest, whatever is done by then; None where nothing limits it.
    """

    done: int
    values: dict[str, float] = field(default_factory=dict)
    seconds_left: float | None = None


class Work(Generic[T]):
    """An iterable of :class:`Progress` with a length and, once exhausted, a ``result``.

    Args:
        description: What is being done, as a person would say it ("rendering mnist-a").
        total: Number of units of work; ``len()`` returns it.
        unit: What a unit is ("image", "step"); "" where it is a mere share of the whole.
        generator: Called without arguments at the first iteration; yields progress, returns the result.
        notes: Lines for people on what the work starts from.
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
        """What the work made; only after iteration has ended."""
        assert self._result, "the work has not been run to its end"
        return self._result[0]

    def run(self) -> T:
        """Do all the work silently and return its result."""
        for _ in self:
            pass
        return self.result


class Watch:
    """Whoever watches a stage: is told what is to be known, and decides how progress is shown. This one is silent."""

    def say(self, text: str) -> None:
        """A sentence for people."""

    def follow(self, work: Work[T]) -> T:
        """Do the work and return its result."""
        return work.run()


def relay(work: Generator[float, None, T], start: float, share: float) -> Generator[float, None, T]:
    """``work`` with its fractions mapped from [0, 1] to [start, start + share]; returns what it returns."""
    while True:
        try:
            yield start + share * next(work)
        except StopIteration as stop:
            value: T = stop.value
            return value


def outcome(work: Generator[Any, None, T]) -> T:
    """What a generator returns, its progress passed over."""
    while True:
        try:
            next(work)
        except StopIteration as stop:
            value: T = stop.value
            return value
