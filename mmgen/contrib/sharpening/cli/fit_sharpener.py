"""What ``mmgen fit-sharpener`` prints."""

from typing import Annotated

import typer

from mmgen.cli._console import print_result
from mmgen.cli._options import command_line
from mmgen.contrib.sharpening.commands.fit_sharpener import FitSharpener
from mmgen.core.surroundings import is_first_process


def fit_sharpener_command(
    stage: FitSharpener,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the effective settings as JSON and leave.")] = False,
) -> None:
    if dry_run:
        print_result(stage.plan.settings.model_dump_json(indent=2))
        return
    made = stage.write_file(command_line())
    if is_first_process():
        print_result(made)
