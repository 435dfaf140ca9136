"""``mmgen fit-aggregate``: printing of its result."""

from typing import TYPE_CHECKING, Annotated

import typer

from mmgen.cli._console import is_first_process, print_result
from mmgen.cli._options import command_line

if TYPE_CHECKING:
    from mmgen.commands.fit_aggregate import FitAggregate

__all__ = ["fit_aggregate_command"]


def fit_aggregate_command(
    stage: "FitAggregate",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the effective settings as JSON and leave.")] = False,
) -> None:
    if dry_run:
        stage.check_fit()
        print_result(stage.plan.settings.model_dump_json(indent=2))
        return
    made = stage.write_file(command_line())
    if is_first_process():
        print_result(made)
