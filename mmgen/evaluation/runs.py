"""What a score tells of the run behind it, out of the files that were trained."""

from collections.abc import Sequence
from pathlib import Path

from mmgen.artifacts import Header, read_header
from mmgen.artifacts.lineage import find_parent_file
from mmgen.core.errors import MmgenError
from mmgen.results.runs import run_record

__all__ = ["run_of_files"]

_BEGINNINGS = ("start", "base")
"""Roles of parents whose weights a run began with."""


def run_of_files(files: Sequence[tuple[Path, Header]], below: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the record of the run that made a model and the posteriors fitted to it.

    What it began with counts without its seed where its file is found, else by its content id.

    Args:
        files: Each file with its header; the last one gives the name.
        below: Content ids of the files that began with these.
    """
    headers = [header for _, header in files]
    data = {parent.content_id for header in headers for parent in header.parents if parent.kind == "dataset"}
    return run_record(
        files[-1][0].name.removesuffix(".safetensors"),
        [header.seed for header in headers],
        [header.settings for header in headers],
        data,
        members=[member.to_json() for header in headers for member in header.members],
        initial_runs=[one for path, header in files for one in _start_model_ids(path, header, below)],
    )


def _start_model_ids(path: Path, header: Header, below: tuple[str, ...]) -> list[str]:
    found, below = [], (*below, header.content_id)
    for parent in header.parents:
        if parent.role not in _BEGINNINGS:
            continue
        try:
            place = find_parent_file(path, parent)
            known = parent.content_id not in below
            found.append(run_of_files([(place, read_header(place))], below)["settings"] if known else parent.content_id)
        except MmgenError:
            found.append(parent.content_id)
    return found
