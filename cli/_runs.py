"""Runs of an experiment's stages: each starts as soon as its inputs exist, several at once or one by one."""

import os
import re
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import joblib

from mmgen.artifacts import read_header
from mmgen.artifacts.files import leads_out_of_folder
from mmgen.cli._console import WIDTH, say, terminal_width
from mmgen.cli._stages import hold_lock, run_command
from mmgen.core.errors import ArtifactError, Interrupted, MmgenError, UsageError
from mmgen.core.processes import choose_process_count
from mmgen.experiments import Stage

RUN_NAME = "the reproduction"
_REMARKS = {
    "done": "{} is there",
    "unfinished": "continued",
    "unsure": "{} exists, made by a command with other words; this command checks whether it is the same",
}
_THREADS, _WORKERS = "OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"
_LEAST_WIDTH = 20  # columns for a command's messages beside its number
_TIME_LEFT = re.compile(r" \d+:\d\d left")  # in a command's line on its progress
_PURPOSE = re.compile("[:,]")  # what ends the beginning of a stage's purpose
_KEPT = 40  # messages of a command that are printed if it fails, where they are not printed as they come
_RELAY_SECONDS = 5.0  # seconds to wait for the last messages of a command that has ended


@dataclass(frozen=True)
class StageRun:
    """Duration and place of a stage that has run.

    Attributes:
        seconds: Duration; None if another process made its file.
        host: Name of the machine.
    """

    seconds: float | None
    host: str


def choose_job_count(requested: int | None) -> int:
    """Return how many commands run at once: ``requested``, else two, or one on a single core."""
    return requested or min(2, joblib.cpu_count())


def say_left_out(experiment: str) -> None:
    """Say which commands of a list of the package this installation lacks, so that their stages are left out."""
    from mmgen.experiments import lacking_commands

    if not experiment.endswith(".toml") and (lacking := lacking_commands(experiment)):
        say(f"Left out: {', '.join(f'mmgen {name}' for name in lacking)}, which this installation lacks.")


def run_stages(
    stages: Sequence[Stage],
    folder: Path,
    jobs: int = 1,
    run_name: str = RUN_NAME,
    *,
    verbose: bool = True,
    usual: Mapping[str, int] = MappingProxyType({}),
    adapt: Callable[[Stage], Stage] = lambda stage: stage,
) -> bool:
    """Run every stage whose output file is missing, on this machine; return whether any stage ran.

    Args:
        stages: All stages in order.
        folder: Folder of the run, in which the commands run.
        jobs: Number of commands at a time.
        run_name: Noun for the run in errors.
        verbose: Whether commands and their messages are printed, or one line for each command when it has ended, and
            one on the time left to it if it is long.
        usual: Steps that a training usually has, by the file that it makes; the line at its end names both numbers.
        adapt: Called with each stage before it starts; returns the stage to run in its place.
    """
    runner = _LocalRunner(stages, folder, jobs, run_name, verbose)
    runner.usual, runner.adapt = usual, adapt
    return runner.run()


def run_stage(
    stage: Stage,
    folder: Path,
    earlier_files: list[str],
    *,
    run_name: str = RUN_NAME,
    log: Any = None,
    is_needed: Callable[[], bool] = lambda: True,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> StageRun:
    """Run a stage while holding the lock of its output file, unless another process has made that file.

    Args:
        stage: The stage.
        folder: Folder of the run.
        earlier_files: Files that earlier stages make.
        run_name: Noun for the run in errors.
        log: File for the command's messages; None for this process's stderr.
        is_needed: Whether to go on; asked several times a second.
        environment: Further variables for the command.

    Raises:
        Interrupted: The stage is no longer needed.
        MmgenError: The command failed, or did not make its file.
        UsageError: A file of the stage would lie outside the folder.
    """
    from mmgen.experiments import find_state, matches_record, record_command

    _refuse_links_out(stage, folder)
    with hold_lock(folder / stage.makes, is_needed) as lock:
        started = time.monotonic()
        state = find_state(stage, folder, earlier_files)
        if state == "done":
            return StageRun(None, socket.gethostname())
        is_replaceable = (
            state == "outdated" and matches_record(stage, folder) is not None
        )  # else the command refuses to replace it
        arguments = [*stage.arguments, *(["--overwrite"] if is_replaceable and _can_overwrite(stage.command) else [])]
        run_command(
            arguments, folder, run_name, log=log, descriptors=[lock], is_needed=is_needed, environment=environment
        )
        if not (folder / stage.makes).exists():
            raise MmgenError(
                f"this command did not make {stage.makes}, the output that its experiment file states; fix the output "
                f"in: {stage.command_line}"
            )
        record_command(stage, folder)
        return StageRun(time.monotonic() - started, socket.gethostname())


def _refuse_links_out(stage: Stage, folder: Path) -> None:
    """Refuse files of a stage behind a link that leads out of the folder: it may write beside all it names but data."""
    read = [] if stage.is_data else [name for each in stage.possible_inputs for name in (each, each.partition("=")[2])]
    for file in [stage.makes, *filter(None, read)]:  # image=FILE names a file too
        if not Path(file).is_absolute() and leads_out_of_folder((folder / file).parent, folder):
            raise UsageError(f"{file} is behind a link that leads out of {folder}; remove the link, or use --output")


def stage_state(stage: Stage, folder: Path, earlier_files: list[str]) -> str:
    """Return the state of a stage's output file ("done", "outdated" ...), also while a process replaces the file."""
    from mmgen.experiments import find_state

    try:
        return find_state(stage, folder, earlier_files)
    except ArtifactError:  # perhaps another process is replacing the file
        with hold_lock(folder / stage.makes, lambda: True):
            return find_state(stage, folder, earlier_files)


def _can_overwrite(command: str) -> bool:
    """Return whether a command has the option ``--overwrite``."""
    from mmgen.cli._main import load_command

    return any("--overwrite" in parameter.opts for parameter in load_command(command).params)


class StageRunner(ABC):
    """Base of runners, which start each stage of an experiment as soon as its input files exist."""

    location = ""
    verbose = True
    usual: Mapping[str, int] = MappingProxyType({})

    def __init__(self, stages: Sequence[Stage], folder: Path) -> None:
        self.stages, self.folder = [*stages], folder
        self.adapt: Callable[[Stage], Stage] = lambda stage: stage
        self.made = [stage.makes for stage in stages]
        self.left = list(range(len(stages)))
        self.finished: set[str] = set()
        self.running: dict[Any, int] = {}
        self.ran = False

    @abstractmethod
    def submit_stage(self, index: int, earlier_files: list[str], inputs: list[str]) -> Any:
        """Start the stage with this index, and return a future of its :class:`StageRun`."""

    @abstractmethod
    def wait_for_stages(self) -> Iterable[Any]:
        """Wait until a future in ``running`` is done, or for some time; return all that are done."""

    @abstractmethod
    def stop_stages(self) -> None:
        """Stop all running stages."""

    def can_start_another(self) -> bool:
        """Return whether another stage may start now."""
        return True

    def must_wait(self, stage: Stage) -> bool:
        """Return whether a stage, and all after it, must wait for those that are running."""
        return False

    def run(self) -> bool:
        """Run all stages, and return whether any had to run."""
        try:
            while self.left or self.running:
                self._start_ready_stages()
                if self.running:
                    for future in self.wait_for_stages():
                        self._record_finished_stage(future)
        finally:
            self.stop_stages()
        return self.ran

    def _start_ready_stages(self) -> None:
        """Start every stage whose inputs exist."""
        for place in list(self.left):
            if not self.can_start_another():
                return
            stage, earlier = self.stages[place], self.made[:place]
            read = [file for file in stage.possible_inputs if file in earlier]
            if not self.finished.issuperset(read):
                continue
            if self.must_wait(stage):
                return
            self.left.remove(place)
            stage = self.stages[place] = self.adapt(stage)
            state = stage_state(stage, self.folder, earlier)
            if not self.verbose:
                if state == "done":
                    self._say_end(place, f"{stage.makes} is there")
            else:
                self._say_start(place, state)
            if state == "done":
                self.finished.add(stage.makes)
            else:
                self.running[self.submit_stage(place, earlier, read)] = place

    def _say_start(self, place: int, state: str) -> None:
        """Print a stage that starts, with its command."""
        stage = self.stages[place]
        remarks = [_REMARKS.get(state, "").format(stage.makes), "" if state == "done" else self.location]
        remark = ", ".join(filter(None, remarks))
        suffix = f" ({remark})" if remark else ""
        say(f"\n[{place + 1}/{len(self.stages)}] {stage.why}{suffix}\n$ {stage.command_line}")

    def _say_end(self, place: int, what: str) -> None:
        """Print what a stage has made; without ``verbose`` after the beginning of its purpose."""
        purpose = "" if self.verbose else f"{_PURPOSE.split(self.stages[place].why)[0]}: "
        say(f"[{place + 1}/{len(self.stages)}] {purpose}{what}")

    def _record_finished_stage(self, future: Any) -> None:
        place = self.running.pop(future)
        stage = self.stages[place]
        stage_run: StageRun = future.result()
        if not (self.folder / stage.makes).exists():
            raise MmgenError(
                f"{stage_run.host} made {stage.makes}, but it is not in {self.folder} here: choose a folder that all "
                "machines share (--output)"
            )
        self.ran = True
        self.finished.add(stage.makes)
        took = "was made by another process" if stage_run.seconds is None else f"took {stage_run.seconds:,.0f} s"
        took += f" on {stage_run.host}" * bool(self.location) + self._compare_steps(stage)
        self._say_end(place, f"{stage.makes} {took}")

    def _compare_steps(self, stage: Stage) -> str:
        """Return the steps of a training beside the usual number, where that is known."""
        usual = self.usual.get(stage.makes)
        if usual is None:
            return ""
        return f": {read_header(self.folder / stage.makes).facts['step']:,} steps, usually {usual:,}"


class _LocalRunner(StageRunner):
    """Runner of stages on this machine, with a thread and a process for each command."""

    def __init__(self, stages: Sequence[Stage], folder: Path, jobs: int, run_name: str, verbose: bool = True) -> None:
        super().__init__(stages, folder)
        self.run_name, self.verbose = run_name, verbose
        self.jobs = max(1, min(choose_process_count(jobs, joblib.cpu_count()), len(stages)))
        self.environment: dict[str, str] = {}
        if self.jobs > 1:
            share = str(max(1, joblib.cpu_count() // self.jobs))
            self.environment = {name: os.environ.get(name) or share for name in (_THREADS, _WORKERS)}
        if self.jobs > 1 or not verbose:
            self.environment |= {"NO_COLOR": "1", "FORCE_COLOR": ""}  # its messages go through a pipe
            if (width := terminal_width()) is not None:
                self.environment[WIDTH] = str(max(_LEAST_WIDTH, width - len(f"[{len(stages)}] ")))
        self.pool = futures.ThreadPoolExecutor(self.jobs, "stage")
        self.stopping = threading.Event()

    def can_start_another(self) -> bool:
        return len(self.running) < self.jobs and not any(self.stages[place].alone for place in self.running.values())

    def must_wait(self, stage: Stage) -> bool:
        return stage.alone and bool(self.running)

    def submit_stage(self, index: int, earlier_files: list[str], inputs: list[str]) -> Any:
        return self.pool.submit(self._run_in_thread, index, earlier_files)

    def _run_in_thread(self, index: int, earlier_files: list[str]) -> StageRun:
        stage, prefix = self.stages[index], f"[{index + 1}] "
        environment = dict(self.environment)
        if stage.alone:
            environment = {name: value for name, value in environment.items() if name not in (_THREADS, _WORKERS)}
        with self._follow_messages(prefix) as log:
            return run_stage(
                stage, self.folder, earlier_files, run_name=self.run_name, log=log,
                is_needed=lambda: not self.stopping.is_set(), environment=environment,
            )  # fmt: skip

    @contextmanager
    def _follow_messages(self, prefix: str) -> Iterator[IO[bytes] | None]:
        """Yield a file for a command's messages; those of a command that fails are printed at its end at the latest."""
        if self.verbose:
            with _relay_lines(lambda line: say(prefix + line)) if self.jobs > 1 else nullcontext() as log:
                yield log
            return
        kept: deque[str] = deque(maxlen=_KEPT)
        told = False

        def receive(line: str) -> None:
            nonlocal told
            kept.append(line)
            if not told and _TIME_LEFT.search(line):  # measured on its first steps
                told = True
                say(prefix + line)

        try:
            with _relay_lines(receive) as log:
                yield log
        except (MmgenError, Interrupted):
            for line in [*kept][-1 if self.stopping.is_set() else 0 :]:  # of one that was stopped: where it goes on
                say(prefix + line)
            raise

    def wait_for_stages(self) -> Iterable[Any]:
        return futures.wait(self.running, return_when=futures.FIRST_COMPLETED).done

    def stop_stages(self) -> None:
        """Stop all running commands, which save their state."""
        self.stopping.set()
        while True:
            try:
                self.pool.shutdown(cancel_futures=True)
            except KeyboardInterrupt:  # a second one, which the commands at a terminal have received too
                continue
            return


@contextmanager
def _relay_lines(receive: Callable[[str], object]) -> Iterator[IO[bytes]]:
    """Yield a file; each line that is written to it is given to ``receive`` at once."""
    reading, writing = os.pipe()

    def receive_lines() -> None:
        with os.fdopen(reading, errors="replace") as lines:
            for line in lines:
                if line.strip():
                    receive(line.rstrip())

    thread = threading.Thread(target=receive_lines, daemon=True)
    thread.start()
    try:
        with os.fdopen(writing, "wb") as log:
            yield log
    finally:
        thread.join(_RELAY_SECONDS)  # a process that outlives the command may hold the file open
