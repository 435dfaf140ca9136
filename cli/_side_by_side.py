"""Stages of a list side by side, each as soon as the files that it reads are there: here, or on a Dask cluster."""

import hashlib
import os
import socket
import sys
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import joblib

from mmgen.cli._console import WIDTH, say, terminal_width
from mmgen.cli._runs import WHAT, Ran, announce, perform, run_here, settled
from mmgen.core.errors import Interrupted, MmgenError
from mmgen.core.processes import bounded, check_files
from mmgen.experiments import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["jobs_for", "run_on_cluster", "run_side_by_side"]

_LOOK_EVERY = 30.0  # seconds, whether a cluster still has workers
_THREADS, _WORKERS = "OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"
_NARROWEST = 20  # columns that are left to a command beside its number
_LAST_WORDS = 5.0  # seconds that are waited for the talk of a command that has ended


def jobs_for(asked: int | None) -> int:
    """How many commands run at once: two where nobody says, or one on a single core."""
    return asked or min(2, joblib.cpu_count())


def run_side_by_side(stages: "Sequence[Stage]", folder: Path, jobs: int, what: str = WHAT) -> bool:
    """Run what is not there yet, several at once; each has its share of the cores, unless OMP_NUM_THREADS is set.

    What a command says is printed behind its number.

    Args:
        stages: In an order in which they could be run one after the other; a file that one makes and another reads is
            named in the other's command.
        folder: Where their paths begin.
        jobs: How many at once, from 1; with 1 they run as by :func:`~mmgen.cli._runs.run_here`.
        what: What ends if one fails, for the message.

    Returns:
        Whether there was anything.

    Raises:
        MmgenError: A command failed, or made another file than its list says; those beside it stop and save.
        ArtifactError: What is there is of other files, of another seed or of another command.
    """
    if jobs == 1:
        return run_here(stages, folder, what)
    return _Here(stages, folder, jobs, what).run()


def run_on_cluster(stages: "Sequence[Stage]", folder: Path, address: str) -> bool:
    """The same on the workers of a Dask cluster.

    A worker that is lost has its stage run by another one, which goes on where the first was. Workers whom nobody waits
    for any more, since we ended or were killed, stop and save.

    Args:
        stages: As for :func:`run_side_by_side`.
        folder: Where their paths begin; the same for this machine and all workers.
        address: Address of the scheduler, such as ``tcp://host:8786``.

    Raises:
        UsageError: Dask is not installed, or the address is none.
        MmgenError: A command failed, or the cluster cannot be reached, has no workers or lost them.
    """
    from mmgen.data_recipes import PATIENCE, cluster_client, cluster_failures, lost, no_workers

    with cluster_client(address) as client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise no_workers(address) from None
        try:
            with client.as_current():
                return _OnCluster(stages, folder.resolve(), client).run()
        except cluster_failures() as error:
            raise lost(address, error) from None


class _Study(ABC):
    """Stages: which are done, which are being run, and which may be next."""

    where = ""

    def __init__(self, stages: "Sequence[Stage]", folder: Path) -> None:
        self.stages, self.folder = stages, folder
        self.made = [stage.makes for stage in stages]
        self.left = list(range(len(stages)))
        self.finished: set[str] = set()
        self.running: dict[Any, int] = {}
        self.ran = False

    def run(self) -> bool:
        try:
            while self.left or self.running:
                self._begin()
                if self.running:
                    for future in self._done():
                        self._finish(future)
        finally:
            self._stop()
        return self.ran

    @abstractmethod
    def _submit(self, place: int, earlier: list[str], read: list[str]) -> Any:
        """A future of :class:`Ran`."""

    @abstractmethod
    def _done(self) -> Iterable[Any]:
        """Those of ``running`` that are done, at least one of them, or none after some time."""

    @abstractmethod
    def _stop(self) -> None:
        """Let nothing go on."""

    def _has_room(self) -> bool:
        return True

    def _begin(self) -> None:
        """Hand over every stage whose files are there."""
        for place in list(self.left):
            if not self._has_room():
                return
            stage, earlier = self.stages[place], self.made[:place]
            read = [word for word in stage.arguments if word in earlier]
            if not self.finished.issuperset(read):
                continue
            self.left.remove(place)
            state = settled(stage, self.folder, earlier)
            announce(stage, place + 1, len(self.stages), state, "" if state == "done" else self.where)
            if state == "done":
                self.finished.add(stage.makes)
                continue
            self.running[self._submit(place, earlier, read)] = place

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


class _Here(_Study):
    """On this machine: a thread for each command, which is a process."""

    def __init__(self, stages: "Sequence[Stage]", folder: Path, jobs: int, what: str) -> None:
        super().__init__(stages, folder)
        jobs = min(bounded(jobs, joblib.cpu_count(), "--jobs"), len(stages))
        check_files(jobs, "--jobs")
        self.jobs, self.what = jobs, what
        share = str(max(1, joblib.cpu_count() // jobs))
        self.environment = {name: os.environ.get(name) or share for name in (_THREADS, _WORKERS)}
        self.environment |= {"NO_COLOR": "1", "FORCE_COLOR": ""}  # its talk goes through a pipe and our console
        if (width := terminal_width()) is not None:
            self.environment[WIDTH] = str(max(_NARROWEST, width - len(self._prefix(len(stages) - 1))))
        self.pool = futures.ThreadPoolExecutor(jobs, "stage")
        self.stopping = threading.Event()

    def _prefix(self, place: int) -> str:
        return f"[{place + 1}] "

    def _has_room(self) -> bool:
        return len(self.running) < self.jobs

    def _submit(self, place: int, earlier: list[str], read: list[str]) -> Any:
        return self.pool.submit(self._perform, place, earlier)

    def _perform(self, place: int, earlier: list[str]) -> Ran:
        def wanted() -> bool:
            return not self.stopping.is_set()

        with _relayed(self._prefix(place)) as talk:
            return perform(
                self.stages[place], self.folder, earlier, what=self.what, talk=talk, wanted=wanted,
                environment=self.environment,
            )  # fmt: skip

    def _done(self) -> Collection[Any]:
        return futures.wait(self.running, return_when=futures.FIRST_COMPLETED).done

    def _stop(self) -> None:
        """End what still runs, which saves what it has."""
        self.stopping.set()
        while True:
            try:
                self.pool.shutdown(cancel_futures=True)
            except KeyboardInterrupt:  # again: those at a terminal have got it too, and hurry
                continue
            return


@contextmanager
def _relayed(prefix: str) -> "Iterator[IO[bytes]]":
    """A file whose lines are said with ``prefix`` before each, as they come."""
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


class _OnCluster(_Study):
    """On the workers of a Dask cluster, which has a queue of its own."""

    where = "on the cluster"

    def __init__(self, stages: "Sequence[Stage]", folder: Path, client: Any) -> None:
        super().__init__(stages, folder)
        self.client = client

    def _submit(self, place: int, earlier: list[str], read: list[str]) -> Any:
        stage = self.stages[place]
        # The same name for the same stage: asked for twice, by two of us, it is run once.
        name = hashlib.sha256(f"{self.folder}\n{stage.makes}\n{stage.typed}".encode()).hexdigest()[:24]
        return self.client.submit(_on_worker, stage, str(self.folder), earlier, read, key=f"mmgen-{name}", pure=False)

    def _done(self) -> Collection[Any]:
        from distributed import wait

        try:
            done: Collection[Any] = wait(list(self.running), timeout=_LOOK_EVERY, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            if not self.client.scheduler_info()["workers"]:
                say("the cluster has no workers any more: waiting for some")
            return ()
        return done

    def _stop(self) -> None:
        for future in self.running:
            future.cancel()


def _on_worker(stage: Stage, folder: str, earlier: list[str], read: list[str]) -> Ran:
    """A stage, run by a worker; what its command says goes to the worker's log, and its last line into an error."""
    from distributed import Reschedule, get_worker

    worker = get_worker()
    key = worker.get_current_task()
    host = socket.gethostname()

    def wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state != "cancelled" and worker.status.name == "running"

    missing = next((name for name in (".", *read) if not Path(folder, name).exists()), None)
    if missing is not None:
        raise MmgenError(
            f"the worker on {host} does not see {Path(folder, missing)}: choose a folder that all machines share "
            "(--output)"
        )
    with tempfile.TemporaryFile() as talk:
        try:
            return perform(stage, Path(folder), earlier, talk=talk, wanted=wanted)
        except Interrupted:
            raise Reschedule from None  # to another worker, if this one is leaving and somebody still waits
        except MmgenError as error:
            talk.seek(0)
            lines = talk.read().decode(errors="replace").strip().splitlines()
            sys.stderr.write("\n".join(lines[-50:]) + "\n")
            told = lines[-1].removeprefix("mmgen: ") if lines else ""
            raise MmgenError(f"{error} (on {host}: {told})" if told else f"{error} (on {host})") from None
