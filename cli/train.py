"""``mmgen train``: printing of its result."""

from typing import TYPE_CHECKING, Annotated

import typer

from mmgen.cli._console import is_first_process, result, say
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
        stage.check()
        result(stage.plan.settings.model_dump_json(indent=2))
        return
    trained = stage.train(command_line())
    if is_first_process():
        if trained.best is not None:
            say(_best(trained))
        result(trained.path)


def _best(run: "TrainingResult") -> str:
    """Return a sentence with the best validation value, and which weights the file holds."""
    from mmgen.artifacts import read_header
    from mmgen.artifacts.contents import trained

    header = read_header(run.path)
    own = header.facts.get("validation_bound")
    kept = f" ({own:,.2f} of the weights that are kept)" if isinstance(own, float) and own != run.best else ""
    return f"best validation value {run.best:,.2f} nats per example{kept}: {trained(header, run.steps)}"
