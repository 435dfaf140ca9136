"""``mmgen plot``: printing of its result."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mmgen.cli._console import print_result
from mmgen.cli._options import command_line

if TYPE_CHECKING:
    from mmgen.commands.plot import Plot

__all__ = ["plot_command"]


def plot_command(stage: "Plot") -> None:
    output = stage.output or Path(f"{stage.name}.png")
    replace(stage, output=output).run(command_line())
    print_result(output)
