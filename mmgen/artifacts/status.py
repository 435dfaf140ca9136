"""Status of the files in a folder: which are up to date with the files that they were made from, by their headers."""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from mmgen.artifacts.containers import read_header
from mmgen.artifacts.files import list_visible_files
from mmgen.artifacts.header import KINDS, Header, advised_command, is_available
from mmgen.artifacts.pages import read_page_models
from mmgen.core.errors import ArtifactError
from mmgen.core.parsing import LOG_ENDING, printable
from mmgen.core.version import __version__
from mmgen.results.score import read_scores

_STATES = (
    "unreadable", "unfinished", "parent changed", "parent missing", "parent out of date", "other version", "needs code"
)  # fmt: skip
"""Reasons why a file is not up to date, the most severe first."""
_ENDINGS = (".h5", ".safetensors")
_STATE_ENDING = ".last.safetensors"
_MEASURED = ("sharpener", "aggregate", "model", "dataset")
"""Roles of the file that scores measure, the first that they name."""


@dataclass(frozen=True)
class ParentStatus:
    """Parent of a file, and whether it is still the same.

    Attributes:
        role: Its role, such as "dataset".
        path: Where it is, or was when the file was made; "" if unknown.
        content_id: Content id of the file that was used.
        state: "there", "changed" (another file is in its place) or "missing".
    """

    role: str
    path: str
    content_id: str
    state: str


@dataclass(frozen=True)
class Problem:
    """Reason why a file is not up to date, one of several kinds, and the command or sentence that helps."""

    state: str
    remedy: str


@dataclass(frozen=True)
class FileStatus:
    """Status of a file.

    Attributes:
        path: The file.
        kind: Kind of artifact, "scores", "report", "explore", or "" if its header cannot be read.
        content_id: Its content id; "" for scores, pages and unreadable files.
        parents: The files that it was made from.
        problems: Why it is not up to date, the most severe reason first.
    """

    path: Path
    kind: str
    content_id: str = ""
    parents: tuple[ParentStatus, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def state(self) -> str:
        """State of the most severe problem, or "up to date"."""
        return self.problems[0].state if self.problems else "up to date"

    @property
    def is_outdated(self) -> bool:
        """True if files that are made from it now would differ from those that were made from it."""
        return any(problem.state not in ("parent missing", "needs code") for problem in self.problems)

    def to_json(self) -> dict[str, Any]:
        """Return the status as nested values for JSON."""
        return asdict(self) | {"path": str(self.path), "state": self.state}


def read_status(folder: Path) -> list[FileStatus]:
    """Return the status of all artifacts, scores and pages in a folder, ancestors first; reads headers alone.

    Parents are looked for at their recorded paths and in the folder. Their contents are not compared with their content
    ids: ``mmgen show`` does that.
    """
    names = [path.name for path in list_visible_files(folder)]
    headers = {name: _read(folder / name) for name in names if name.endswith(_ENDINGS)}
    places = {
        header.content_id: folder / name
        for name, header in headers.items()
        if isinstance(header, Header) and header.kind != "training-state"
    }
    found = []
    for name, header in headers.items():
        path = folder / name
        if name.endswith(_STATE_ENDING):
            weights = path.with_name(f"{name.removesuffix(_STATE_ENDING)}.safetensors")
            if weights.name not in headers and _is_unfinished(header):
                remedy = f"{_progress(header)}give the command of its training again to continue"
                found.append(FileStatus(weights, "training-state", problems=(Problem("unfinished", remedy),)))
        elif isinstance(header, ArtifactError):
            found.append(FileStatus(path, "", problems=(Problem("unreadable", str(header)),)))
        else:
            state = headers.get(f"{path.stem}{_STATE_ENDING}")
            problems = _own_problems(header, is_unfinished=state is not None and _is_unfinished(state))
            found.append(_compare(path, header.kind, header.content_id, _parents_of(path, header), places, problems))
    for path in (folder / name for name in names):
        if path.suffix == ".jsonl" and not path.name.endswith(LOG_ENDING):
            found.append(_scores_status(path, places))
        elif path.suffix == ".html" and (page := read_page_models(path)):
            kind, models = page
            again = f"draw it again with: {shlex.join(['mmgen', kind, str(folder), '-o', str(path)])}"
            found.append(_compare(path, kind, "", [_Wanted("model", one, (), again, again) for one in models], places))
    order = [*KINDS, "", "scores"]
    found.sort(key=lambda one: (order.index(one.kind) if one.kind in order else len(order), one.path.name))
    return _spread_outdated(found)


class _Wanted(NamedTuple):
    """A parent that a file names: where it may be, and what helps if it is missing or if another file is there."""

    role: str
    content_id: str
    places: tuple[Path, ...]
    if_missing: str
    if_changed: str
    is_cache: bool = False


def _read(path: Path) -> Header | ArtifactError:
    try:
        return read_header(path)
    except ArtifactError as error:
        return error


def _is_unfinished(header: Header | ArtifactError) -> bool:
    """Return whether a training state belongs to a run that has not ended."""
    return isinstance(header, Header) and header.kind == "training-state" and header.facts.get("finished") is False


def _progress(header: Header | ArtifactError) -> str:
    """Return how far a training came by its state: "stopped at step 361 of 8,000; "; "" if unknown."""
    facts, settings = (header.facts, header.settings) if isinstance(header, Header) else ({}, {})
    training = settings.get("training")
    step, steps = facts.get("step"), training.get("steps") if isinstance(training, dict) else None
    return f"stopped at step {step:,} of {steps:,}; " if type(step) is int and type(steps) is int else ""


def _own_problems(header: Header, is_unfinished: bool) -> Iterator[Problem]:
    if header.facts.get("finished") is False or is_unfinished:
        yield Problem("unfinished", f"continue with: {advised_command(header.command, header.kind)}")
    if header.program_version != __version__:
        version = printable(header.program_version, 40)
        yield Problem("other version", f"made with mmgen {version}, this is {__version__}")
    for member in header.members:
        if not is_available(member):
            source = f"give --code {member.file}" if member.file else f"install {member.origin}"
            yield Problem("needs code", f"{printable(source, 200)} for the {member.room} {member.name}")


def _parents_of(path: Path, header: Header) -> Iterator[_Wanted]:
    """Yield the parents that a header names; latents are a cache, which may be removed or made again."""
    again = f"make it again with: {advised_command(header.command, header.kind, '--overwrite')}"
    for record in header.parents:
        recorded = Path(os.path.normpath(path.parent / record.path))
        made = advised_command(record.command, record.kind)
        missing = f"make the {printable(record.role, 40)} with: {made}"
        places = (recorded, path.parent / PurePath(record.path).name)
        yield _Wanted(record.role, record.content_id, places, missing, again, record.kind == "latents")


def _scores_status(path: Path, places: Mapping[str, Path]) -> FileStatus:
    """Return the status of a file of scores, by the files that were measured and their judges."""
    try:
        scores = read_scores(path)
    except ArtifactError as error:
        return FileStatus(path, "scores", problems=(Problem("unreadable", str(error)),))
    wanted = {}
    for score in scores:
        named = path.parent / f"{PurePath(str(score.run.get('name', ''))).name}.safetensors"
        again = f"measure again with: {shlex.join(['mmgen', 'eval', str(named), '-o', str(path), '--overwrite'])}"
        main = next((role for role in _MEASURED if role in score.ids), "")
        for role, where in ((main, (named,)), ("judge", ())):
            if role in score.ids:
                missing = f"the measured {role} is not in this folder"
                wanted[score.ids[role]] = _Wanted(role, score.ids[role], where, missing, again)
    return _compare(path, "scores", "", wanted.values(), places)


def _compare(
    path: Path,
    kind: str,
    content_id: str,
    wanted: Iterable[_Wanted],
    places: Mapping[str, Path],
    problems: Iterable[Problem] = (),
) -> FileStatus:
    """Return the status of a file by its own problems, and by whether the parents that it names are there."""
    parents, found = [], [*problems]
    for one in wanted:
        place = next((each for each in one.places if _has_content(each, one.content_id)), places.get(one.content_id))
        state = "there" if place else "changed" if any(map(os.path.isfile, one.places)) else "missing"
        parents.append(ParentStatus(one.role, str(place or next(iter(one.places), "")), one.content_id, state))
        if place is None and not one.is_cache:
            remedy = one.if_changed if state == "changed" else one.if_missing
            found.append(Problem(f"parent {state}", printable(remedy, 2000)))
    return FileStatus(path, kind, content_id, tuple(parents), _sort_problems(found))


def _has_content(path: Path, content_id: str) -> bool:
    header = _read(path)
    return isinstance(header, Header) and header.content_id == content_id


def _spread_outdated(files: list[FileStatus]) -> list[FileStatus]:
    """Mark the files in a folder whose parents there are out of date, and those made from them in turn."""
    outdated: dict[str, Path] = {}
    while True:
        now = {one.content_id: one.path for one in files if one.content_id and one.is_outdated}
        if now == outdated:
            return files
        outdated = now
        for number, file in enumerate(files):
            stale = [outdated[one.content_id] for one in file.parents if one.content_id in outdated]
            renew = [Problem("parent out of date", f"first renew {printable(str(place), 200)}") for place in stale]
            files[number] = replace(file, problems=_sort_problems([*file.problems, *renew]))


def _sort_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems, each once, the most severe first."""
    return tuple(sorted(dict.fromkeys(problems), key=lambda problem: _STATES.index(problem.state)))
