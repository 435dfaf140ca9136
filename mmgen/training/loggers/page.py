"""A page beside the log that renews itself in the browser: curves, pictures, time left. No server, no network."""

import base64
import hashlib
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from mmgen.artifacts import write_text_atomic
from mmgen.artifacts.pages import is_replaceable
from mmgen.core.errors import UsageError
from mmgen.core.parsing import flatten, strip_controls
from mmgen.training.loggers._base import Logger, RunFacts
from mmgen.training.loggers._drawing import Curve, draw_curves, encode_picture

__all__ = ["RunLogger"]

_PAUSE = 2.0
"""Seconds between two versions of the page at least."""
_SHARE = 100
"""A version is written when at least so many times the duration of the last one have passed: one percent of the run."""
_RENEWED = 5
"""Seconds after which a browser reads the page again."""
_RECENT = 20
"""Last lines of the log from which the speed is taken."""
_WIDE, _NARROW = (640, 220), (300, 140)
"""Sizes of the plots of what is maximised, and of others."""
_HIDDEN = ("seconds", "validation/stderr")
_SCRIPT = """
const box = document.getElementById("still"), age = document.getElementById("age");
box.checked = location.hash === "#still";
box.addEventListener("change", () => history.replaceState(null, "", box.checked ? "#still" : "#"));
setInterval(() => { if (!box.checked) location.reload(); }, 1000 * document.body.dataset.renewed);
const seconds = Math.round(Date.now() / 1000 - document.body.dataset.written);
if (seconds > 120) {
  age.textContent = `Nothing was written for ${Math.floor(seconds / 60)} minutes: the run may have ended.`;
}
"""


def _page_path(folder: Path) -> Path:
    """Return the path of the page of a run: ``model.log.html`` beside ``model.log.jsonl``."""
    return folder.with_name(f"{folder.name}.html")


class RunLogger(Logger):
    """Logger that writes a page: curves of all numbers by step, pictures with the current weights, time left."""

    name = "page"
    library = ""

    def __init__(self, run: RunFacts) -> None:
        self.run, self.path = run, _page_path(run.folder)
        if not is_replaceable(self.path, "training"):
            raise UsageError(
                f"training.log_to (--log-to) got 'page', but {self.path} is no page of a training, which it would "
                "replace; move it away, or use another --output"
            )
        self._steps: dict[str, list[int]] = {}
        self._values: dict[str, list[float]] = {}
        self._step, self._due = run.after_step, 0.0
        self._pictures: list[tuple[str, list[str]]] = []
        for step, numbers in run.history:
            self._add(step, numbers)
        self._write_page("running")

    @classmethod
    def describe_place(cls, folder: Path) -> str:
        return f"Watch the training on a page that renews itself: {_page_path(folder).resolve().as_uri()}"

    def _add(self, step: int, numbers: Mapping[str, float]) -> None:
        self._step = step
        for name, value in numbers.items():
            self._steps.setdefault(name, []).append(step)
            self._values.setdefault(name, []).append(value)

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        self._add(step, numbers)

    def show(self, draw: Callable[[], Mapping[str, np.ndarray]]) -> None:
        began = time.monotonic()
        if began < self._due and self._step != self._total:
            return
        self._pictures = [(title, [encode_picture(each) for each in row]) for title, row in draw().items()]
        self._write_page("running")
        ended = time.monotonic()
        self._due = ended + max(_PAUSE, _SHARE * (ended - began))

    def close(self, finished: bool) -> None:
        self._write_page("done" if finished else "stopped")

    @property
    def _total(self) -> int:
        """Number of steps of the whole run; 0 if unknown."""
        steps = self._setting("steps")
        return steps if isinstance(steps, int) else 0

    def _setting(self, name: str) -> Any:
        training = self.run.settings.get("training")
        return training.get(name) if isinstance(training, Mapping) else None

    def _write_page(self, state: str) -> None:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        environment = Environment(
            loader=PackageLoader("mmgen.training.loggers"), autoescape=True, undefined=StrictUndefined,
            finalize=lambda value: strip_controls(value) if type(value) is str else value,
        )  # fmt: skip
        now = datetime.now().astimezone()
        values = {
            "name": self.run.name,
            "state": state,
            "step": self._step,
            "total": self._total,
            "facts": self._facts(state),
            "curves": [panel for name in self._curve_names() if (panel := self._panel(name))],
            "pictures": self._pictures,
            "settings": sorted(flatten(self.run.settings).items()),
            "written": now.isoformat(" ", "seconds"),
            "seconds": int(now.timestamp()),
            "renewed": _RENEWED if state == "running" else 12 * _RENEWED,
            "script": _SCRIPT,
            "script_hash": f"'sha256-{base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()}'",
        }
        write_text_atomic(self.path, environment.get_template("page.html.jinja").render(values))

    def _facts(self, state: str) -> list[str]:
        """Return what is said beside the state: steps, speed, time."""
        total = f" of {self._total:,}" if self._total else ""
        facts = [f"step {self._step:,}{total}"]
        if rates := self._values.get("rate"):
            facts.append(f"{rates[-1]:,.0f} examples a second")
        if seconds := self._values.get("seconds"):
            facts.append(f"{_format_duration(seconds[-1])} {'so far' if state == 'running' else 'in all'}")
        left = self._seconds_left() if state == "running" else None
        return [*facts, *([] if left is None else [f"about {_format_duration(left)} left"])]

    def _seconds_left(self) -> float | None:
        """Estimate the remaining time by the last lines of the log; None if unknown."""
        seconds, steps = (part.get("seconds", [])[-_RECENT:] for part in (self._values, self._steps))
        bounds = []
        if self._total and len(steps) > 1 and steps[-1] > steps[0]:
            bounds.append((self._total - steps[-1]) * (seconds[-1] - seconds[0]) / (steps[-1] - steps[0]))
        if seconds and isinstance(minutes := self._setting("minutes"), int | float):
            bounds.append(60 * minutes - seconds[-1])
        return max(0.0, min(bounds)) if bounds else None

    def _curve_names(self) -> list[str]:
        """Return the names of the numbers to draw, what is maximised first; validation has no panels of its own."""
        names = [name for name in self._values if name not in _HIDDEN and not name.startswith("validation/")]
        alone = [name.removeprefix("validation/") for name in self._values if name not in _HIDDEN]
        names += [name for name in dict.fromkeys(alone) if name not in names and name != "seconds"]
        return sorted(names, key=lambda name: (not name.endswith("bound"), name in ("learning_rate", "rate")))

    def _panel(self, name: str) -> dict[str, str] | None:
        """Return title, last value and curves of a number; None without finite values."""
        curves: list[Curve] = [
            (self._steps[key], self._values[key], kind)
            for key, kind in ((name, "thin"), (f"validation/{name}", "thick"))
            if key in self._values and np.isfinite(self._values[key]).any()
        ]
        if not curves:
            return None
        title = name.removeprefix("terms/").removeprefix("players/").replace("_", " ").replace("/terms/", "/")
        title = {"bound": self.run.quantity, "rate": "examples a second"}.get(title, title)
        right = max(self._total, self._step)
        size = _WIDE if name.endswith("bound") else _NARROW
        return {
            "title": title,
            "last": f"{curves[-1][1][-1]:,.4g}",
            "drawn": draw_curves(curves, right, f"{title} by step", size),
            "wide": "wide" if name.endswith("bound") else "",
        }


def _format_duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
