"""Progress of work in a notebook."""

import sys
import time
from collections.abc import Callable
from html import escape
from typing import Any, TypeVar

from mmgen.core.progress import Progress, Watch, Work

__all__ = ["NotebookWatch", "choose_watch"]

T = TypeVar("T")

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
