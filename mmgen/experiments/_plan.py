"""A list of stages: what is in it, and which of them are still to be run.

Every stage is one ``mmgen`` command, literally, and the one file that it makes. Nothing is hidden in a list: what a
stage depends on are the files of earlier stages that its command names.
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from mmgen.artifacts import Header, read_header
from mmgen.artifacts.containers import article
from mmgen.core.errors import ArtifactError, SettingsError, UsageError
from mmgen.core.parsing import parse_toml, printable
from mmgen.experiments import datasets_of, names, text_of, usual_dataset_of
from mmgen.experiments._foreign import check_foreign, check_text
from mmgen.experiments._notes import has_header, note_of
from mmgen.experiments._stages import Plan, Scale, Stage
from mmgen.experiments._typed import choices, words
from mmgen.results.score import read_scores
from mmgen.settings.config import read_toml, validate
from mmgen.settings.registry import unknown_name

__all__ = [
    "State",
    "check_is_data",
    "comment",
    "find_list",
    "fitting",
    "only",
    "read_plan",
    "script",
    "state_of",
    "with_data",
]

State = Literal["missing", "unfinished", "outdated", "unsure", "done"]
"""What there is of a stage: nothing, a run that was interrupted, scores or a page of other files or of another command,
what was trained by a command in other words, which has to say whether it is the same, or all to be used. What was said
once is noted.
"""


def read_plan(name: str) -> Plan:
    """A list of the package by name, or one from outside by path, which may do less (:func:`check_foreign`).

    Raises:
        UsageError: There is neither, or the list asks for what it may not.
        SettingsError: It is no list of stages; names every fault.
    """
    if name in names():
        return validate(Plan, parse_toml(text_of(name)))
    if not name.endswith(".toml"):
        said = unknown_name("table", name, names(), more="mmgen reproduce --help")
        raise UsageError(f"{said}, or the path of a list of your own (.toml)")
    values = read_toml(Path(name))
    check_text(values, name)
    try:
        plan = validate(Plan, values)
    except SettingsError as error:
        raise SettingsError(f"{name}: {error}") from None
    check_foreign(plan, name)
    return plan


def find_list(name: str, data: str | None) -> tuple[str, Path | None]:
    """Which list is meant, and which dataset takes the place of the one that it makes.

    Args:
        name: A list, or a table of several datasets ("wu-table2").
        data: One of the table's datasets by name ("mnist"), a dataset file, whose recipe says which, or None for the
            usual one.

    Raises:
        UsageError: The table has several datasets, and another was said.
    """
    offered = datasets_of(name)
    if not offered:
        if data is not None and Path(data).exists() and name in names():
            _check_published(Path(data), read_header(Path(data)).settings)
        return name, Path(data) if data is not None else None
    if data is None and (usual := usual_dataset_of(name)) is not None:
        data = usual
    if data in offered:
        return f"{name}/{data}", None
    if data is not None and Path(data).exists():
        check_is_data(Path(data))
        settings = read_header(Path(data)).settings
        recipe = str(settings.get("recipe", ""))
        _check_published(Path(data), settings)
        if recipe in offered:
            return f"{name}/{recipe}", Path(data)
        raise UsageError(f"{data} is of the recipe '{recipe}', expected one of {', '.join(offered)}")
    got = f"--data got '{data}'" if data else "--data is not given"
    raise UsageError(f"{name} is measured on several datasets and {got}, expected {' or '.join(offered)}, or a file")


def _check_published(path: Path, settings: Mapping[str, Any]) -> None:
    """Refuse data that are not what the published numbers are about."""
    if content := settings.get("content"):
        raise UsageError(
            f"--data got {path}, which is {content}, expected the data that the published numbers are about; make the "
            "dataset from those, or train on this one by commands of your own"
        )


def check_is_data(path: Path) -> None:
    """Refuse a file that is given as --data and is no dataset.

    Raises:
        UsageError: It is something else.
        ArtifactError: It cannot be read.
    """
    if (kind := read_header(path).kind) != "dataset":
        raise UsageError(f"--data got {path}, which is {article(kind)}, expected a dataset of mmgen make-data")


def only(scale: Scale, rows: Sequence[str]) -> Scale:
    """The stages that some rows need: theirs, those of no row in particular, and whatever makes files that these name.

    Raises:
        UsageError: A row has no stages of its own.
    """
    known = list(dict.fromkeys(stage.of for stage in scale.stage if stage.of))
    by_name = {name.casefold(): name for name in known}
    for row in rows:
        if row.casefold() not in by_name:
            raise UsageError(
                unknown_name("row", row, known)
                if known
                else f"--only got '{row}', but the rows of this table share all of its stages; leave the option out"
            )
    wanted = {"", *(by_name[row.casefold()] for row in rows)}
    kept: list[Stage] = []
    named: set[str] = set()
    for stage in reversed(scale.stage):
        if stage.of in wanted or stage.makes in named:
            kept.insert(0, stage)
            named |= set(stage.arguments)
    return scale.model_copy(update={"stage": tuple(kept)})


def with_data(scale: Scale, data: Path) -> Scale:
    """The same stages on a dataset that is there already, instead of the one that the list makes.

    Raises:
        UsageError: The list makes several.
    """
    made = [stage.makes for stage in scale.stage if stage.is_data]
    if len(made) > 1:
        raise UsageError(
            f"--data got {data}, but this list makes {len(made)} datasets, {made[0]} and others, which differ; leave "
            "the option out"
        )

    def renamed(stage: Stage) -> Stage:
        return stage.with_arguments(str(data.resolve()) if word in made else word for word in stage.arguments)

    return scale.model_copy(update={"stage": tuple(renamed(stage) for stage in scale.stage if not stage.is_data)})


def script(plan: Plan, scale: Scale, folder: Path) -> str:
    """All commands as a shell script."""
    lines = ["#!/bin/sh", *comment(plan.title), *comment(plan.source), *comment(scale.about)]
    lines += ["set -eu", f"mkdir -p {shlex.quote(str(folder))}", f"cd {shlex.quote(str(folder))}", ""]
    for stage in scale.stage:
        lines += [*comment(stage.why), stage.typed, ""]
    return "\n".join(lines)


def comment(text: str) -> list[str]:
    """Text as comments of a shell script, each of its lines one."""
    return [f"# {line}" for line in text.splitlines()]


def state_of(stage: Stage, folder: Path, earlier: list[str]) -> State:
    """Whether a stage has to be run.

    Args:
        stage: The stage.
        folder: Where its paths begin.
        earlier: Files that the stages before it make; a dataset that takes the place of one is an input too.

    Raises:
        ArtifactError: What is there is damaged, was made from other files than those there, with another seed or, a
            dataset, by another command, and is too dear to be replaced without asking.
    """
    path = folder / stage.makes
    if not path.exists():
        return "missing"
    inputs = [folder / word for word in stage.arguments if word in earlier or _is_given(word)]
    if not has_header(path):
        return _state_of_product(path, stage, folder, inputs)
    header = read_header(path)
    if stage.seed is not None and header.seed != stage.seed:
        raise ArtifactError(
            f"{path} was made with seed {header.seed} and is now to be made with seed {stage.seed}; {_way_out(stage)}"
        )
    parents = {parent.content_id for parent in header.parents}
    for parent in inputs:
        if read_header(parent).content_id not in parents:
            raise ArtifactError(
                f"{path} was made from another {parent.name} than the one that is there; {_way_out(stage)}"
            )
    if stage.is_data:
        if choices(header.command, folder) != choices(stage.typed, folder):
            told = printable(header.command, 1000) or "which it does not tell"
            raise ArtifactError(
                f"{path} was made by another command ({told}) than this list has ({stage.typed}); {_way_out(stage)}"
            )
        return "done"
    if not _has_ended(path, header, stage):
        return "unfinished"
    if words(header.command) == words(stage.typed):
        return "done"
    note = note_of(stage, folder)
    return "done" if note is not None and note.is_of(stage, path) else "unsure"


def _has_ended(path: Path, header: Header, stage: Stage) -> bool:
    """Whether the run that makes a file has ended, and a judge was measured.

    Raises:
        ArtifactError: It has not, and cannot be continued.
    """
    from mmgen.training.state import is_finished, state_path  # seconds, which a list that is only printed need not take

    state = state_path(path)
    ended = is_finished(header) and (header.kind != "classifier" or "held_out_accuracy" in header.facts)
    if not ended and not state.exists():
        raise ArtifactError(
            f"{path} is what a run had learnt when it was interrupted, and its state {state.name} is gone; "
            f"{_way_out(stage)}"
        )
    return ended and (not state.exists() or is_finished(read_header(state)))


def _state_of_product(path: Path, stage: Stage, folder: Path, inputs: list[Path]) -> State:
    """Scores, a page or a picture: made anew where they are not what the stage would make."""
    note = note_of(stage, folder)
    if note is not None and not note.is_of(stage, path):
        return "outdated"
    if path.suffix == ".jsonl":
        return "done" if _scored(path, inputs, stage.seed) else "outdated"
    newest = max((parent.stat().st_mtime for parent in inputs if parent.exists()), default=0.0)
    return "done" if path.stat().st_mtime >= newest else "outdated"


def _way_out(stage: Stage) -> str:
    if stage.is_data:
        return f"move it away, use another --output, or give it to mmgen reproduce with --data {stage.makes}"
    return "remove it and its training state to have it made again, or use another --output"


def _is_given(word: str) -> bool:
    """Whether a word of a command is a dataset of the user's own (:func:`with_data`)."""
    return word.endswith(".h5") and Path(word).is_absolute()


def fitting(scale: Scale, folder: Path) -> list[str]:
    """Files that are there, finished, and made by the list's commands from those beside them, which are so too."""
    made = [stage.makes for stage in scale.stage]
    found: list[str] = []
    for number, stage in enumerate(scale.stage):
        try:
            state = state_of(stage, folder, made[:number])
        except ArtifactError:  # of another dataset, and belongs to a row that is not asked for
            continue
        if state == "done" and all(word in found for word in stage.arguments if word in made[:number]):
            found.append(stage.makes)
    return found


def _scored(path: Path, inputs: list[Path], seed: int | None) -> bool:
    """Whether a file of scores is of these files, and of this seed where one is said."""
    try:
        scores = read_scores(path)
    except ArtifactError:
        return False
    if seed is not None and any(score.seed not in (None, seed) for score in scores):
        return False
    named = [identity for score in scores for identity in score.ids.values()]
    return bool(scores) and all(read_header(parent).content_id in named for parent in inputs)
