"""``mmgen fit-sharpener``: printing of its result."""

from typing import TYPE_CHECKING, Annotated

import typer

from mmgen.cli._console import is_first_process, print_result
from mmgen.cli._options import command_line

if TYPE_CHECKING:
    from mmgen.commands.fit_sharpener import FitSharpener

__all__ = ["fit_sharpener_command"]


def fit_sharpener_command(
    stage: "FitSharpener",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the effective settings as JSON and leave.")] = False,
) -> None:
    if dry_run:
        print_result(stage.plan.settings.model_dump_json(indent=2))
        return
    made = stage.write_file(command_line())
    if is_first_process():
        print_result(made)
