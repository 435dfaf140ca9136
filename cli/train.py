"""``mmgen train``: printing of its result."""

from typing import TYPE_CHECKING, Annotated

import typer

from mmgen.cli._console import is_first_process, print_result, say
from mmgen.cli._options import command_line

if TYPE_CHECKING:
    from mmgen.commands.train import Train
    from mmgen.training.loop import TrainingResult

__all__ = ["train_command"]


def train_command(
    stage: "Train",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Build the networks once, print the effective settings as JSON and leave.")
    ] = False,
) -> None:
    if dry_run:
        stage.check_networks()
        print_result(stage.plan.settings.model_dump_json(indent=2))
        return
    trained = stage.write_file(command_line())
    if is_first_process():
        if trained.best is not None:
            say(_describe_best(trained))
        print_result(trained.path)


def _describe_best(run: "TrainingResult") -> str:
    """Describe the best validation value, and which weights the file holds."""
    from mmgen.artifacts import read_header
    from mmgen.artifacts.contents import format_training

    header = read_header(run.path)
    kept_bound = header.facts.get("validation_bound")
    kept_value = (
        f" ({kept_bound:,.2f} of the weights that are kept)"
        if isinstance(kept_bound, float) and kept_bound != run.best
        else ""
    )
    return f"best validation value {run.best:,.2f} nats per example{kept_value}: {format_training(header, run.steps)}"
