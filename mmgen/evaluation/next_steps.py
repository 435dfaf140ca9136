"""Advice after a measurement: next steps by the scores, and a command that can be typed."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmgen.artifacts import Header
from mmgen.artifacts.header import names_code
from mmgen.results.naming import format_weight
from mmgen.results.next_steps import NextStep, find_next_steps
from mmgen.results.score import Score

Files = Mapping[str, tuple[Path, Header]]
"""Paths and headers of files by content id."""

_MADE_AGAIN = {"train": "model", "fit": "aggregate"}
"""Role of the file that a step makes again with more steps, by what it asks for."""
_RUNS_CODE = (
    "The command of this training runs a file of Python (--code), so it is not repeated here: look at the file first."
)


@dataclass(frozen=True)
class Advice:
    """Next steps for a reader of scores.

    Attributes:
        lines: Sentences on the weakest numbers, the weakest first.
        command: The command for the first of them that has one; "" without any.
    """

    lines: tuple[str, ...] = ()
    command: str = ""

    def __str__(self) -> str:
        if not self.lines:
            return ""
        typed = [f"Type now: {self.command}"] if self.command else []
        return "\n".join(["What to look at next, weakest first:", *self.lines, *typed])


def advise(scores: Sequence[Score], files: Files, larger: str = "") -> Advice:
    """Advise what to look at and to type next.

    Args:
        scores: Scores of one or several models.
        files: The files behind the scores: models, fitted posteriors, attribute classifiers, datasets.
        larger: The command that makes everything again with larger pictures; "" if there is none.
    """
    steps = find_next_steps(scores, larger=bool(larger))
    commands = (larger if step.need == "larger" else _find_command(step, files) for step in steps)
    lines = [step.text for step in steps]
    if any(_runs_code(step, files) for step in steps):
        lines.append(_RUNS_CODE)
    return Advice(tuple(lines), next(filter(None, commands), ""))


def _find_command(step: NextStep, files: Files) -> str:
    """Return the command for a step; "" if its file is not among ``files``, or has settings of another form."""
    try:
        return _command_of_files(step, files)
    except (ValueError, TypeError, AttributeError, LookupError):  # a header holds any JSON, and any text as its command
        return ""


def _files_behind(step: NextStep, files: Files) -> Files:
    """Return the files of a step's score by role."""
    return {role: files[content_id] for role, content_id in step.score.ids.items() if content_id in files}


def _runs_code(step: NextStep, files: Files) -> bool:
    """Return whether the command that made a step's file ran a file of Python, which whoever made the file chose."""
    again = _files_behind(step, files).get(_MADE_AGAIN.get(step.need, ""))
    return again is not None and names_code(again[1].command.split())


def _command_of_files(step: NextStep, files: Files) -> str:
    found = _files_behind(step, files)
    fitted = found.get("aggregate") or found.get("model")
    if step.need == "fit" and "aggregate" not in found and "model" in found:
        return shlex.join(["mmgen", "fit-aggregate", str(found["model"][0])])
    if again := found.get(_MADE_AGAIN.get(step.need, "")):
        return "" if _runs_code(step, files) else _train_again(*again)
    if step.need == "read" and "judge" in found:
        return shlex.join(["mmgen", "show", str(found["judge"][0]), "-o", "misread.png"])
    if step.need == "judge" and "dataset" in found:
        return shlex.join(["mmgen", "train-classifier", str(found["dataset"][0])])
    if step.need == "copies" and fitted:
        return shlex.join(["mmgen", "plot", "copies", str(fitted[0])])
    return _draw(step.score, *fitted) if step.need == "draw" and fitted else ""


def _train_again(path: Path, header: Header) -> str:
    """Return a file's command with twice its steps and another output, to be typed in the current folder."""
    words = shlex.split(header.command)
    before = _inner(header.settings, "training", "steps")
    if words[:1] != ["mmgen"] or not isinstance(before, int) or _inner(header.settings, "training", "minutes"):
        return ""
    steps = 2 * before
    kept: list[str] = []
    skipped = False
    for word in words:
        if skipped or word in ("--steps", "-o", "--output"):
            skipped = not skipped
        elif not word.startswith(("--steps=", "--output=")):
            kept.append(_found_from_here(word, path.parent))
    output = path.with_name(f"{path.stem}-{steps}{path.suffix}")
    return shlex.join([*kept, "--steps", str(steps), "-o", str(output)])


def _found_from_here(word: str, folder: Path) -> str:
    """Return a word of a command that was typed in ``folder``, with a relative path as it is from here."""
    elsewhere = folder / word
    return str(elsewhere) if not Path(word).exists() and elsewhere.is_file() else word


def _draw(score: Score, path: Path, header: Header) -> str:
    """Return the command that draws a description from a posterior; "" for a model without attributes."""
    modalities = _inner(header.settings, "data", "modalities")
    for each in modalities.values() if isinstance(modalities, dict) else ():
        names, values = each.get("names"), each.get("values")
        if each.get("kind") == "attributes" and names and values and values[0]:
            guided = ["--guidance", _format_guidance(score)] if score.guidance else []
            return shlex.join(["mmgen", "sample", str(path), *guided, "--given", f"{names[0]}={values[0][0]}"])
    return ""


def _format_guidance(score: Score) -> str:
    """Return the guidance of a score as its option takes it: "3" or "cfg:1.5"."""
    method, _, options = score.guidance_method.partition(":")
    weight = format_weight(score.guidance or 0.0)
    return ":".join(filter(None, [method, weight, options]))


def _inner(settings: Mapping[str, Any], room: str, key: str) -> Any:
    values = settings.get(room)
    return values.get(key) if isinstance(values, dict) else None
