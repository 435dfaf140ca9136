"""``mmgen make-data``: a recipe becomes a dataset file."""

import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from mmgen.cli._console import CONSOLE, follow, result, result_lines, say
from mmgen.cli._members import of_member
from mmgen.cli._options import Overwrite, Seed, Workers, command_line

__all__ = ["make_data_command"]


@of_member("mmgen.data_recipes")
def make_data_command(
    recipe: str,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PATH", show_default=False, help="Where to write; RECIPE.h5 by default."
        ),
    ] = None,
    overwrite: Overwrite = False,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", show_default=False, help="Any setting of the recipe."),
    ] = None,
    workers: Workers = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            show_default=False,
            help="Dask scheduler, as tcp://host:8786, whose workers do the work instead of this machine.",
        ),
    ] = None,
    seed: Seed = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Look at sources, say what would be made, and write nothing.")
    ] = False,
    *,
    given: Mapping[str, tuple[str, Any]],
) -> None:
    """Make a dataset file from a recipe.

    The file holds the data, every generative factor that is known, and one or several ways to split.
    Its content depends only on the recipe's settings and the seed, never on the number of workers.
    """
    from mmgen import data_recipes
    from mmgen.artifacts.members import members_of
    from mmgen.commands.data_plan import look_ahead, plan_data
    from mmgen.core.errors import UsageError
    from mmgen.settings.config import parse_assignments, validate

    if scheduler is not None and workers is not None:
        raise UsageError("--workers counts processes of this machine, --scheduler uses a cluster's; give one of them")
    settings = dict(given.values())
    assigned = parse_assignments(assignments or [])
    schema = data_recipes.get(recipe)
    if scheduler is not None and any(member.file for member in members_of({"recipe": recipe})):
        raise UsageError(
            f"--scheduler sends work to machines that do not have the file of --code which {recipe} is in; leave it "
            "out, or make a package of the file and install it there"
        )
    _check_settings(recipe, schema, assigned)
    twice = next(((option, name) for option, (name, _) in given.items() if name in assigned), None)
    if twice is not None:
        raise UsageError(f"{twice[0]} and --set {twice[1]} give one setting, {twice[1]}, two values; give one of them")
    chosen = validate(schema, settings | assigned)
    where = workers if scheduler is None else scheduler
    if dry_run:
        if output is not None:  # what is there and would be lost, or a folder that is not there
            plan_data(recipe, chosen, output, seed=seed, command=command_line(), overwrite=overwrite)
        surveying = chosen.survey(seed, where)
        found = follow(surveying).notes if surveying is not None else [*_settings(chosen), *look_ahead(chosen, seed)]
        result_lines(found, [[line] for line in found])
        return
    plan = plan_data(recipe, chosen, output, seed=seed, command=command_line(), overwrite=overwrite)
    if plan.is_there:
        say(f"{plan.path} is there already, made by the same command; --overwrite makes it again")
        result(plan.path)
        return
    with _tidy_when_terminated(chosen.resumes):
        plan.run(CONSOLE, where)
    result(plan.path)


def _settings(recipe: Any) -> list[str]:
    """The settings of a recipe that looks at nothing first, a line each."""
    from mmgen.core.parsing import flat

    return [f"{name} = {value}" for name, value in flat(recipe.model_dump(mode="json")).items()]


def _check_settings(recipe: str, schema: Any, keys: Iterable[str]) -> None:
    """Refuse settings that are other recipes' only."""
    from mmgen import data_recipes
    from mmgen.core.errors import UsageError

    for key in keys:
        if key in schema.model_fields:
            continue
        takers = [name for name, one in data_recipes.importable().items() if key in one.model_fields]
        if takers:
            raise UsageError(f"{recipe} has no setting {key}, which is for {', '.join(takers)}; leave it out")


@contextmanager
def _tidy_when_terminated(resumes: bool) -> Iterator[None]:
    """Let SIGTERM end the work as an error does, so that processes and temporary files go away."""
    from mmgen.core.errors import Interrupted

    kept = "the same command goes on from what is finished" if resumes else "nothing was written"

    def stop(number: int, frame: object) -> None:
        raise Interrupted(f"terminated before the dataset was complete; {kept}", number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
