"""Status of the files in a folder: which are up to date with the files that they were made from, by their headers."""

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Literal, get_args

from mmgen.artifacts.containers import read_header
from mmgen.artifacts.header import KINDS, Header, Parent
from mmgen.artifacts.members import is_available
from mmgen.artifacts.pages import read_page_models
from mmgen.core.errors import ArtifactError
from mmgen.core.parsing import LOG_ENDING, printable
from mmgen.core.version import __version__
from mmgen.results.score import Score, read_scores

__all__ = ["FileStatus", "ParentStatus", "Problem", "read_status"]

State = Literal[
    "unreadable", "unfinished", "parent changed", "parent missing", "parent out of date", "other version", "needs code"
]
"""Reasons why a file is not up to date, the most severe first."""
_ENDINGS = (".h5", ".safetensors")
_STATE_ENDING = ".last.safetensors"
_MOST_FILES = 10_000
_DEEPEST = 64
_MAIN_ROLES = ("sharpener", "aggregate", "model", "dataset")
"""Roles of the file that scores measure, the first that they name."""


@dataclass(frozen=True)
class ParentStatus:
    """Parent of a file, and whether it is still the same.

    Attributes:
        role: Its role, such as "dataset".
        path: Where it is, or was when the file was made; "" if unknown.
        content_id: Content id of the file that was used.
        state: Whether a file of this content id is there, another one is in its place, or none.
    """

    role: str
    path: str
    content_id: str
    state: Literal["there", "changed", "missing"]


@dataclass(frozen=True)
class Problem:
    """Reason why a file is not up to date.

    Attributes:
        state: Kind of the problem.
        remedy: Command or sentence that helps.
    """

    state: State
    remedy: str


@dataclass(frozen=True)
class FileStatus:
    """Status of a file.

    Attributes:
        path: The file.
        kind: Kind of artifact, "scores", "report", "explore", or "" if its header cannot be read.
        content_id: Its content id; "" for scores and unreadable files.
        parents: The files that it was made from.
        problems: Why it is not up to date, the most severe reason first.
        depth: Generations of ancestors.
    """

    path: Path
    kind: str
    content_id: str = ""
    parents: tuple[ParentStatus, ...] = ()
    problems: tuple[Problem, ...] = ()
    depth: int = 0

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
        return {
            "path": str(self.path),
            "kind": self.kind,
            "content_id": self.content_id,
            "state": self.state,
            "problems": [vars(problem) for problem in self.problems],
            "parents": [vars(parent) for parent in self.parents],
        }


def read_status(folder: Path) -> list[FileStatus]:
    """Return the status of all artifacts, scores and pages in a folder, ancestors first; reads headers alone.

    Parents are looked for at their recorded paths, in the folder and in the current one. Their contents are not
    compared with their content ids: ``mmgen show`` does that.
    """
    return _FolderReader(folder).read()


class _FolderReader:
    """Reader of the headers of a folder and of the parents of its files, each once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._headers: dict[str, Header | ArtifactError] = {}
        self._known: dict[str, FileStatus] = {}
        self._paths_by_id: dict[str, Path] = {}
        self._members: dict[Any, bool] = {}

    def read(self) -> list[FileStatus]:
        names = [*_file_names(self._folder)]
        made = [self._folder / name for name in names if name.endswith(_ENDINGS) and not name.endswith(_STATE_ENDING)]
        nearby = [Path(name) for name in _file_names(Path()) if name.endswith(_ENDINGS)]
        for path in (*made, *nearby):
            header = self._header(path)
            if isinstance(header, Header) and header.kind != "training-state":
                self._paths_by_id.setdefault(header.content_id, path)
        found = [self._read_file(path, 0) for path in made]
        for name in names:
            path = self._folder / f"{name.removesuffix(_STATE_ENDING)}.safetensors"
            if name.endswith(_STATE_ENDING) and path not in made and self._is_unfinished(path):
                remedy = f"{self._progress(self._folder / name)}give the command of its training again to continue"
                found.append(FileStatus(path, "training-state", problems=(Problem("unfinished", remedy),)))
            if name.endswith(".jsonl") and not name.endswith(LOG_ENDING):
                found.append(self._read_scores(self._folder / name))
            if name.endswith(".html") and (page := read_page_models(self._folder / name)):
                found.append(self._read_page(self._folder / name, *page))
        return sorted(found, key=lambda one: (one.depth, one.kind == "scores", one.path.name))

    def _header(self, path: Path) -> Header | ArtifactError:
        key = os.path.abspath(path)
        if key not in self._headers:
            try:
                self._headers[key] = read_header(path)
            except ArtifactError as error:
                self._headers[key] = error
        return self._headers[key]

    def _read_file(self, path: Path, generation: int) -> FileStatus:
        key = os.path.abspath(path)
        if key in self._known:
            return self._known[key]
        header = self._header(path)
        if isinstance(header, ArtifactError):
            return FileStatus(path, "", problems=(Problem("unreadable", str(header)),))
        self._known[key] = FileStatus(path, header.kind, header.content_id)  # a cycle ends here
        problems: list[Problem] = []
        if header.facts.get("finished") is False or self._is_unfinished(path):
            problems.append(Problem("unfinished", f"continue with: {_command(header)}"))
        parents, depth = [], 0
        for record in header.parents:
            parent, place = self._find_parent(path, record)
            parents.append(parent)
            if record.kind == "latents" and parent.state != "there":
                continue  # a cache, which may be removed or made again
            if parent.state == "changed":
                problems.append(Problem("parent changed", f"make it again with: {_command(header, replaces=True)}"))
            elif parent.state == "missing":
                made = printable(record.command, 2000) or KINDS.get(record.kind, "mmgen")
                problems.append(Problem("parent missing", f"make the {printable(record.role, 40)} with: {made}"))
            elif place is not None and generation < _DEEPEST:
                status = self._read_file(place, generation + 1)
                depth = max(depth, status.depth + 1)
                if status.is_outdated:
                    problems.append(Problem("parent out of date", f"first renew {printable(str(place), 200)}"))
        if header.program_version != __version__:
            version = printable(header.program_version, 40)
            problems.append(Problem("other version", f"made with mmgen {version}, this is {__version__}"))
        for member in header.members:
            if not self._is_available(member):
                source = f"give --code {member.file}" if member.file else f"install {member.origin}"
                problems.append(Problem("needs code", f"{printable(source, 200)} for the {member.room} {member.name}"))
        status = FileStatus(path, header.kind, header.content_id, tuple(parents), _sort_problems(problems), depth)
        self._known[key] = status
        return status

    def _find_parent(self, path: Path, record: Parent) -> tuple[ParentStatus, Path | None]:
        """Find a parent: at its recorded path, beside the file, or by content id among the files nearby."""
        recorded = Path(os.path.normpath(path.parent / record.path))
        beside = path.parent / PurePath(record.path).name
        candidates = [recorded, beside, self._paths_by_id.get(record.content_id)]
        for candidate in candidates:
            header = self._header(candidate) if candidate is not None else None
            if isinstance(header, Header) and header.content_id == record.content_id:
                self._paths_by_id.setdefault(record.content_id, candidate or recorded)
                return ParentStatus(record.role, str(candidate), record.content_id, "there"), candidate
        is_replaced = recorded.is_file() or beside.is_file()
        state: Literal["changed", "missing"] = "changed" if is_replaced else "missing"
        return ParentStatus(record.role, str(recorded), record.content_id, state), None

    def _is_unfinished(self, path: Path) -> bool:
        """Return whether the training state beside a file belongs to a run that has not ended."""
        header = self._header(path.with_name(f"{path.name.removesuffix('.safetensors')}{_STATE_ENDING}"))
        return (
            isinstance(header, Header)
            and header.kind == "training-state"
            and header.facts.get("finished", True) is not True
        )

    def _progress(self, path: Path) -> str:
        """Return how far a training came by its state: "stopped at step 361 of 8,000; "; "" if unknown."""
        header = self._header(path)
        step = header.facts.get("step") if isinstance(header, Header) else None
        training = header.settings.get("training") if isinstance(header, Header) else None
        steps = training.get("steps") if isinstance(training, dict) else None
        if type(step) is not int:
            return ""
        return f"stopped at step {step:,}{f' of {steps:,}' if type(steps) is int else ''}; "

    def _is_available(self, member: Any) -> bool:
        if member not in self._members:
            self._members[member] = is_available(member)
        return self._members[member]

    def _read_scores(self, path: Path) -> FileStatus:
        """Return the status of a file of scores, by the content ids of the files that were measured."""
        try:
            scores = read_scores(path)
        except ArtifactError as error:
            return FileStatus(path, "scores", problems=(Problem("unreadable", str(error)),))
        measured = {
            content_id: (role, path.with_name(f"{score.run.get('name', '')}.safetensors"))
            for score in scores
            for role, content_id in _measured_files(score)
        }
        parents, problems, depth = [], [], 0
        for content_id, (role, named) in measured.items():
            is_replaced = role in _MAIN_ROLES and named.is_file()
            again = shlex.join(["mmgen", "eval", str(named), "-o", str(path), "--overwrite"])
            remedy = f"measure again with: {again}" if is_replaced else f"the measured {role} is not in this folder"
            parent, faults, generation = self._find_by_id(role, content_id, named if is_replaced else None, remedy)
            parents.append(parent)
            problems += faults
            depth = max(depth, generation)
        return FileStatus(path, "scores", "", tuple(parents), _sort_problems(problems), depth)

    def _read_page(self, path: Path, kind: str, models: tuple[str, ...]) -> FileStatus:
        """Return the status of a report or a page to explore, by the content ids of its models."""
        again = shlex.join(["mmgen", kind, str(self._folder), "-o", str(path)])
        found = [self._find_by_id("model", model, None, f"draw it again with: {again}") for model in models]
        problems = [problem for _, faults, _ in found for problem in faults]
        return FileStatus(
            path, kind, "", tuple(parent for parent, *_ in found), _sort_problems(problems), _DEEPEST
        )  # pages come last

    def _find_by_id(
        self, role: str, content_id: str, replaced: Path | None, remedy: str
    ) -> tuple[ParentStatus, list[Problem], int]:
        """Find a parent by its content id; return it, its problems and the depth of a file that was made from it.

        Args:
            role: Its role.
            content_id: Its content id.
            replaced: File that is in its place, if it is not found.
            remedy: What helps if it is not found.
        """
        place = self._paths_by_id.get(content_id)
        if place is not None:
            status = self._read_file(place, 0)
            stale = [Problem("parent out of date", f"first renew {printable(str(place), 200)}")]
            parent = ParentStatus(role, str(place), content_id, "there")
            return parent, stale if status.is_outdated else [], status.depth + 1
        fault = Problem("parent missing" if replaced is None else "parent changed", printable(remedy, 2000))
        state: Literal["changed", "missing"] = "missing" if replaced is None else "changed"
        return ParentStatus(role, str(replaced or ""), content_id, state), [fault], 0


def _measured_files(score: Score) -> Iterator[tuple[str, str]]:
    """Yield role and content id of the file that a score measures, and of its judge."""
    main = next((role for role in _MAIN_ROLES if role in score.ids), None)
    for role in (main, "judge"):
        if role is not None and role in score.ids:
            yield role, score.ids[role]


def _sort_problems(problems: list[Problem]) -> tuple[Problem, ...]:
    """Return the problems, each once, the most severe first."""
    return tuple(sorted(dict.fromkeys(problems), key=lambda problem: get_args(State).index(problem.state)))


def _command(header: Header, replaces: bool = False) -> str:
    """Return the command that makes a file, with ``--overwrite`` if it replaces the file."""
    command = printable(header.command, 2000) or KINDS[header.kind]
    return f"{command} --overwrite" if replaces and "--overwrite" not in command else command


def _file_names(folder: Path) -> list[str]:
    """Return the sorted names of the visible files in a folder."""
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if not entry.name.startswith(".") and entry.is_file())
    return names[:_MOST_FILES]
