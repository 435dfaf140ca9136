"""Runs of the stages of an experiment: each starts as soon as its inputs exist, several at once or one by one."""

import os
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import joblib

from mmgen.artifacts.files import leads_out
from mmgen.cli._console import WIDTH, say, terminal_width
from mmgen.cli._locks import locked
from mmgen.cli._stages import run_command
from mmgen.core.errors import ArtifactError, MmgenError, UsageError
from mmgen.core.processes import check_files, process_count
from mmgen.experiments import Stage

__all__ = ["WHAT", "Ran", "Study", "jobs_for", "perform", "run_stages"]

WHAT = "the reproduction"
_REMARKS = {
    "done": "{} is there",
    "unfinished": "continued",
    "unsure": "{} is there, by a command in other words: this one says whether it is the same",
}
_THREADS, _WORKERS = "OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"
_NARROWEST = 20  # columns that are left to a command beside its number
_LAST_WORDS = 5.0  # seconds that are waited for the talk of a command that has ended


@dataclass(frozen=True)
class Ran:
    """A finished stage: its duration in seconds, None if another process had made its file; and the machine."""

    seconds: float | None
    host: str


def jobs_for(requested: int | None) -> int:
    """Return how many commands run at once: two unless the user says, one on a single core."""
    return requested or min(2, joblib.cpu_count())


def run_stages(stages: Sequence[Stage], folder: Path, jobs: int = 1, what: str = WHAT) -> bool:
    """Run the stages whose files are not there yet, and return whether there were any."""
    return _Here(stages, folder, jobs, what).run()


def perform(
    stage: Stage,
    folder: Path,
    earlier: list[str],
    *,
    what: str = WHAT,
    talk: Any = None,
    is_needed: Callable[[], bool] = lambda: True,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Ran:
    """Run a stage under its lock, unless another process has finished it meanwhile."""
    from mmgen.experiments import is_noted, remember, state_of

    if leads_out((folder / stage.makes).parent, folder):
        raise UsageError(f"{stage.makes} is behind a link that leads out of {folder}; remove the link, or use --output")
    with locked(folder / stage.makes, is_needed) as lock:
        began = time.monotonic()
        state = state_of(stage, folder, earlier)
        if state == "done":
            return Ran(None, socket.gethostname())
        ours = state == "outdated" and is_noted(stage, folder) is not None  # else the command says whether it is lost
        words = [*stage.arguments, *(["--overwrite"] if ours and _can_overwrite(stage.command) else [])]
        run_command(words, folder, what, talk=talk, keep=[lock], is_needed=is_needed, environment=environment)
        if not (folder / stage.makes).exists():
            raise MmgenError(
                f"this command did not make {stage.makes}, as its experiment file says; fix the output in: "
                f"{stage.typed}"
            )
        remember(stage, folder)
        return Ran(time.monotonic() - began, socket.gethostname())


def settled_state(stage: Stage, folder: Path, earlier: list[str]) -> str:
    """Return the state of a stage; an unusable file counts only once no process is writing it."""
    from mmgen.experiments import state_of

    try:
        return state_of(stage, folder, earlier)
    except ArtifactError:  # perhaps between one file and the next of somebody else
        with locked(folder / stage.makes, lambda: True):
            return state_of(stage, folder, earlier)


def _can_overwrite(command: str) -> bool:
    """Return whether a command replaces a finished file only with --overwrite."""
    from mmgen.cli._main import load_command

    return any("--overwrite" in parameter.opts for parameter in load_command(command).params)


class Study(ABC):
    """A run of several stages: waiting stages, running stages, and finished files."""

    where = ""

    def __init__(self, stages: Sequence[Stage], folder: Path) -> None:
        self.stages, self.folder = stages, folder
        self.made = [stage.makes for stage in stages]
        self.left = list(range(len(stages)))
        self.finished: set[str] = set()
        self.running: dict[Any, int] = {}
        self.ran = False

    @abstractmethod
    def submit(self, place: int, earlier: list[str], read: list[str]) -> Any:
        """Begin a stage and return a future of :class:`Ran`."""

    @abstractmethod
    def wait(self) -> Iterable[Any]:
        """Return futures of ``running`` that are done, at least one of them, or none after some time."""

    @abstractmethod
    def stop(self) -> None:
        """Let nothing go on."""

    def has_room(self) -> bool:
        """Return True if another stage may start."""
        return True

    def run(self) -> bool:
        """Run all stages, and return whether there was anything to do."""
        try:
            while self.left or self.running:
                self._begin()
                if self.running:
                    for future in self.wait():
                        self._finish(future)
        finally:
            self.stop()
        return self.ran

    def _begin(self) -> None:
        """Start every stage whose inputs exist."""
        for place in list(self.left):
            if not self.has_room():
                return
            stage, earlier = self.stages[place], self.made[:place]
            read = [file for file in stage.reads if file in earlier]
            if not self.finished.issuperset(read):
                continue
            self.left.remove(place)
            state = settled_state(stage, self.folder, earlier)
            remarks = [_REMARKS.get(state, "").format(stage.makes), "" if state == "done" else self.where]
            remark = ", ".join(filter(None, remarks))
            said = f" ({remark})" if remark else ""
            say(f"\n[{place + 1}/{len(self.stages)}] {stage.why}{said}\n$ {stage.typed}")
            if state == "done":
                self.finished.add(stage.makes)
            else:
                self.running[self.submit(place, earlier, read)] = place

    def _finish(self, future: Any) -> None:
        place = self.running.pop(future)
        stage = self.stages[place]
        ran: Ran = future.result()
        if not (self.folder / stage.makes).exists():
            raise MmgenError(
                f"{ran.host} made {stage.makes}, but it is not in {self.folder} here: choose a folder that all "
                "machines share (--output)"
            )
        self.ran = True
        self.finished.add(stage.makes)
        took = "was made by somebody else" if ran.seconds is None else f"took {ran.seconds:,.0f} s"
        say(f"[{place + 1}/{len(self.stages)}] {stage.makes} {took}" + (f" on {ran.host}" if self.where else ""))


class _Here(Study):
    """Runs stages on this machine: a thread for each command, which is a process."""

    def __init__(self, stages: Sequence[Stage], folder: Path, jobs: int, what: str) -> None:
        super().__init__(stages, folder)
        self.jobs, self.what = max(1, min(process_count(jobs, joblib.cpu_count(), "--jobs"), len(stages))), what
        self.environment: dict[str, str] = {}
        if self.jobs > 1:
            check_files(self.jobs, "--jobs")
            share = str(max(1, joblib.cpu_count() // self.jobs))
            self.environment = {name: os.environ.get(name) or share for name in (_THREADS, _WORKERS)}
            self.environment |= {"NO_COLOR": "1", "FORCE_COLOR": ""}  # its talk goes through a pipe and our console
            if (width := terminal_width()) is not None:
                self.environment[WIDTH] = str(max(_NARROWEST, width - len(f"[{len(stages)}] ")))
        self.pool = futures.ThreadPoolExecutor(self.jobs, "stage")
        self.stopping = threading.Event()

    def has_room(self) -> bool:
        return len(self.running) < self.jobs

    def submit(self, place: int, earlier: list[str], read: list[str]) -> Any:
        return self.pool.submit(self._perform, place, earlier)

    def _perform(self, place: int, earlier: list[str]) -> Ran:
        with _relayed(f"[{place + 1}] ") if self.jobs > 1 else nullcontext() as talk:
            return perform(
                self.stages[place], self.folder, earlier, what=self.what, talk=talk,
                is_needed=lambda: not self.stopping.is_set(), environment=self.environment,
            )  # fmt: skip

    def wait(self) -> Iterable[Any]:
        return futures.wait(self.running, return_when=futures.FIRST_COMPLETED).done

    def stop(self) -> None:
        """End what still runs, which saves what it has."""
        self.stopping.set()
        while True:
            try:
                self.pool.shutdown(cancel_futures=True)
            except KeyboardInterrupt:  # again: those at a terminal have got it too, and hurry
                continue
            return


@contextmanager
def _relayed(prefix: str) -> Iterator[IO[bytes]]:
    """Yield a file whose lines are printed as they come, each with ``prefix`` before it."""
    reading, writing = os.pipe()

    def relay() -> None:
        with os.fdopen(reading, errors="replace") as lines:
            for line in lines:
                if line.strip():
                    say(f"{prefix}{line.rstrip()}")

    thread = threading.Thread(target=relay, daemon=True)
    thread.start()
    try:
        with os.fdopen(writing, "wb") as talk:
            yield talk
    finally:
        thread.join(_LAST_WORDS)  # a process that it has left behind may have the file too
