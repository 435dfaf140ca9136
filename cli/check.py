"""``mmgen check``: contract tests of the members that a Python file defines."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmgen.cli._console import print_result, print_result_lines
from mmgen.core.errors import MmgenError

if TYPE_CHECKING:
    from mmgen.testing import Outcome

__all__ = ["check_command"]


def check_command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.py", show_default=False, help="Python file with members; it is run.")
    ],
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            show_default=False,
            help="Setting of the file's dataset recipes, such as one that makes them small; repeatable.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object for each member.")] = False,
) -> None:
    """Check your own objectives, networks, recipes, metrics ... by the tests that mmgen's own members pass.

    Prints a line for each member that the file defines: its kind, its name, and "passed" or the first check that fails.
    The exit code is 1 if any fails. Kinds without checks, such as figures, are only imported.
    """
    from mmgen.settings.config import parse_assignments
    from mmgen.testing import check_file

    settings, outcomes = parse_assignments(assignments or []), []
    for outcome in check_file(file, **settings):
        outcomes.append(outcome)
        _print_outcome(outcome, as_json)
    if failed := [str(outcome.member) for outcome in outcomes if outcome.failure]:
        raise MmgenError(
            f"{len(failed)} of {len(outcomes)} members of {file} failed: {', '.join(failed)}; fix the file and check "
            "it again"
        )


def _print_outcome(outcome: "Outcome", as_json: bool) -> None:
    member = outcome.member
    result = "failed" if outcome.failure else "passed" if outcome.has_checks else "imported"
    if as_json:
        values = {"kind": member.room, "name": member.name, "result": result, "failure": outcome.failure}
        print_result(json.dumps(values))
        return
    cells = [member.room, member.name, result, *([outcome.failure] if outcome.failure else [])]
    print_result_lines([f"{member}: {result}", *([f"  {outcome.failure}"] if outcome.failure else [])], [cells])
