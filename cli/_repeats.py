"""Several runs of one command: one for each path on stdin and for each seed of ``--seeds``."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from mmgen.cli._options import read_input_paths, typed_arguments, use_arguments
from mmgen.commands import Stage, StageField, fields_of, option_names
from mmgen.core.errors import UsageError

__all__ = ["Seeds", "repeat_stage"]

Seeds = Annotated[
    str | None,
    typer.Option(
        "--seeds",
        metavar="N|LIST",
        show_default=False,
        help="Train once for each of the seeds 0 to N - 1, or of these: 0,1,7. The seed is added to each file's name.",
    ),
]
"""Option of the commands that train."""


def repeat_stage(
    stage: type[Stage[Any]],
    values: Mapping[str, Any],
    read: Callable[[Mapping[str, Any]], Stage[Any]],
    seeds: str | None,
) -> Iterator[Stage[Any]]:
    """Yield the runs of a command one by one, each with its words as the command line to be recorded.

    Args:
        stage: Class of the command.
        values: Typed values of its fields.
        read: Function that makes the stage from typed values.
        seeds: Value of ``--seeds``.

    Raises:
        UsageError: Options are not for several runs; before the first run.
    """
    words = typed_arguments()
    inputs = [field for field in fields_of(stage) if field.is_positional and field.input_file]
    source = next((field for field in inputs if not field.takes_several), None)
    paths = _piped_paths(source, values)
    if not paths and seeds is None:
        yield read(values)
        return
    output = next((field for field in fields_of(stage) if field.name == "output"), None)
    if len(paths) > 1 and output is not None and values.get("output") is not None:
        advice = "" if output.default is MISSING else "leave it out, so that files are named after their inputs, or "
        raise UsageError(
            f"--output got {values['output']}, but - reads {len(paths)} paths; {advice}run the command once for each"
        )
    runs: list[tuple[Stage[Any], list[str]]] = []
    for path in paths or [""]:
        here = {**values, source.name: path} if path and source is not None else values
        typed = [path if path and word == "-" else word for word in words]
        runs += _seeded_runs(read(here), typed, seeds)
    for one, typed in runs:
        with use_arguments(typed):
            yield one


def _piped_paths(source: StageField | None, values: Mapping[str, Any]) -> list[str]:
    """Return the paths on stdin if they take the place of the input ``source``; [] if they do not."""
    if source is None or values.get(source.name) != "-":
        return []
    mark = source.input_file
    assert mark is not None
    return read_input_paths(mark.content)


def _seeded_runs(stage: Any, words: Sequence[str], seeds: str | None) -> list[tuple[Stage[Any], list[str]]]:
    """Return a stage for each seed with the words of its command line."""
    if seeds is None:
        return [(stage, [*words])]
    from mmgen.experiments import parse_seeds, seed_file_name

    try:
        numbers = parse_seeds(seeds)
    except ValueError as error:
        raise UsageError(f"--{error}") from None
    _check_options(stage, words)
    made = replace(stage, progress=False).output_path
    options = {field.name: option_names(field) for field in fields_of(type(stage))}
    others = _without_options(words, ("--seeds", *options["output"]))
    runs: list[tuple[Stage[Any], list[str]]] = []
    for number in numbers:
        path = Path(seed_file_name(str(made), number))
        added = ["--seed", str(number), "-o", str(path)]
        runs.append((replace(stage, seed=number, output=path), [*others, *added]))
    return runs


def _check_options(stage: Any, words: Sequence[str]) -> None:
    """Refuse options that contradict several seeds."""
    if any(word == "--seed" or word.startswith("--seed=") for word in words):
        raise UsageError("--seed and --seeds are given together, expected one of them; leave one out")
    if (getattr(stage, "devices", None) or 1) > 1:
        raise UsageError(
            "--seeds trains one seed after the other in this process, and --devices starts further ones; give the "
            "command once for each --seed"
        )


def _without_options(words: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the words of a command line without these options and their values."""
    others: list[str] = []
    remaining = iter(words)
    for word in remaining:
        short = next((name for name in names if not name.startswith("--") and word.startswith(name)), None)
        if word in names:
            next(remaining, None)
        elif word.partition("=")[0] not in names and short is None:
            others.append(word)
    return others
