"""``mmgen make-data``: printing of its result."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from mmgen.cli._console import print_result, print_result_lines
from mmgen.cli._options import command_line

if TYPE_CHECKING:
    from mmgen.commands.make_data import MakeData

__all__ = ["make_data_command"]


def make_data_command(
    stage: "MakeData",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Look at sources, print the plan, and write nothing.")
    ] = False,
) -> None:
    if dry_run:
        lines = stage.preview(command_line())
        print_result_lines(lines, [[line] for line in lines])
        return
    with _interrupt_when_terminated(stage.recipe_settings.resumes):
        made = stage.write_file(command_line())
    print_result(made)


@contextmanager
def _interrupt_when_terminated(resumes: bool) -> Iterator[None]:
    """Raise an error at SIGTERM in this block, so that worker processes end and temporary files are removed."""
    from mmgen.core.errors import Interrupted

    outcome = "the same command goes on from what is finished" if resumes else "nothing was written"

    def raise_error(number: int, frame: object) -> None:
        raise Interrupted(f"terminated before the dataset was complete; {outcome}", number)

    handler = signal.signal(signal.SIGTERM, raise_error)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
