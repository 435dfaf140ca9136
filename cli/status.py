"""``mmgen status``: which files of a folder are up to date."""

import json
from pathlib import Path
from typing import Annotated

import typer

from mmgen.cli._console import print_result, print_result_table, say
from mmgen.core.errors import MmgenError, UsageError, reason_of

__all__ = ["status_command"]


def status_command(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder with files that mmgen made.", show_default="this one")
    ] = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object for each file, with all reasons.")] = False,
) -> None:
    """Print which files in a folder are out of date, from what they state about the files that they were made from.

    Each line has the kind, the name, the parents, the state, and what to do: up to date, unfinished (the training can
    continue), parent changed (another file has its name), parent missing, parent out of date, other version (of mmgen),
    needs code, or unreadable. Only headers are read; mmgen show FILE also compares contents.
    """
    from mmgen.artifacts.status import read_status

    if folder.is_file():
        raise UsageError(f"{folder} is a file, expected a folder; mmgen show {folder} prints its lineage")
    try:
        files = read_status(folder)
    except OSError as error:
        raise MmgenError(f"cannot read the folder {folder}: {reason_of(error)}; check the path") from None
    if as_json:
        for file in files:
            print_result(json.dumps(file.to_json()))
        return
    if not files:
        say(f"there are no files of mmgen in {folder.resolve()}")
        return
    rows = []
    for file in files:
        parents = ", ".join(f"{one.role} {Path(one.path).name or one.content_id[:12]}" for one in file.parents)
        remedy = file.problems[0].remedy if file.problems else ""
        rows.append((file.kind or "?", file.path.name, parents, file.state, remedy))
    print_result_table("", ("kind", "file", "made from", "state", "what to do"), rows)
