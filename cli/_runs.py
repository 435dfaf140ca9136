"""Stages of a list, run here one after the other or on a Dask cluster side by side; each by one at a time.

Whoever runs a stage holds a lock on the file that it makes, and so does the process that makes it: if we are killed, or
the worker is, that process may go on, and who comes next waits for it instead of writing the same file beside it.
"""

import fcntl
import hashlib
import os
import shlex
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmgen.cli._console import say
from mmgen.cli._stages import run_command
from mmgen.errors import ArtifactError, Interrupted, MmgenError

if TYPE_CHECKING:
    from mmgen.reproductions._stages import Stage

__all__ = ["run_here", "run_on_cluster"]

_ASK_EVERY = 0.5  # seconds, of a lock that somebody else holds
_LOOK_EVERY = 30.0  # seconds, whether a cluster still has workers
_WHAT = "the reproduction"
_REMARKS = {
    "done": "{} is there",
    "unfinished": "continued",
    "unsure": "{} is there, by a command in other words: this one says whether it is the same",
}


@dataclass(frozen=True)
class _Ran:
    """What became of a stage: seconds, None where somebody else had made its file meanwhile; and where it was run."""

    seconds: float | None
    host: str


def run_here(stages: "Sequence[Stage]", folder: Path, what: str = _WHAT) -> bool:
    """Run what is not there yet, in order.

    Args:
        stages: The list.
        folder: Where their paths begin.
        what: What ends if one fails, for the message.

    Returns:
        Whether there was anything.

    Raises:
        MmgenError: A command failed, or made another file than its list says.
        ArtifactError: What is there is of other files, of another seed or of another command.
    """
    ran = False
    made = [stage.makes for stage in stages]
    for number, stage in enumerate(stages, 1):
        state = _settled(stage, folder, made[: number - 1])
        _announce(stage, number, len(stages), state)
        if state == "done":
            continue
        done = _perform(stage, folder, made[: number - 1], what=what)
        ran = True
        if done.seconds is not None:
            say(f"took {done.seconds:,.0f} s")
    return ran


def _settled(stage: "Stage", folder: Path, earlier: list[str]) -> str:
    """The state of a stage, once nobody is at work on it if it is no good before."""
    from mmgen.reproductions._plan import state_of

    try:
        return state_of(stage, folder, earlier)
    except ArtifactError:  # perhaps between one file and the next of somebody else
        with _locked(folder / stage.makes, lambda: True):
            return state_of(stage, folder, earlier)


def _announce(stage: "Stage", number: int, count: int, state: str, where: str = "") -> None:
    remark = _REMARKS.get(state, "").format(stage.makes)
    said = ", ".join(filter(None, (remark, where)))
    say(f"\n[{number}/{count}] {stage.why}" + (f" ({said})" if said else "") + f"\n$ {stage.typed}")


def _perform(
    stage: "Stage",
    folder: Path,
    earlier: list[str],
    *,
    what: str = _WHAT,
    talk: Any = None,
    wanted: Callable[[], bool] = lambda: True,
) -> _Ran:
    """Run a stage under its lock, unless somebody else has while we waited."""
    from mmgen.reproductions._notes import note_of, remember
    from mmgen.reproductions._plan import state_of

    with _locked(folder / stage.makes, wanted) as lock:
        began = time.monotonic()
        state = state_of(stage, folder, earlier)
        if state == "done":
            return _Ran(None, socket.gethostname())
        ours = state == "outdated" and note_of(stage, folder) is not None  # else the command says whether it is lost
        replaces = ["--overwrite"] if ours and _overwrites(stage.arguments[0]) else []
        run_command([*stage.arguments, *replaces], folder, what, talk=talk, keep=[lock], wanted=wanted)
        if not (folder / stage.makes).exists():
            raise MmgenError(
                f"this command did not make {stage.makes}, as its list says: {shlex.join(stage.arguments)}"
            )
        remember(stage, folder)
        return _Ran(time.monotonic() - began, socket.gethostname())


def _overwrites(command: str) -> bool:
    """Whether a command replaces a finished file only when told."""
    from mmgen.cli._main import load_command

    return any("--overwrite" in parameter.opts for parameter in load_command(command).params)


@contextmanager
def _locked(path: Path, wanted: Callable[[], bool]) -> Iterator[int]:
    """In this block nobody else runs the stage that makes ``path``; gives the open file that is locked.

    Raises:
        Interrupted: We are not wanted any more, before it was our turn.
        MmgenError: The file system knows no locks.
    """
    name = path.with_name(f".{path.name}.lock")
    handle = _open_locked(name, wanted)
    try:
        yield handle
    finally:
        with suppress(OSError):
            name.unlink()  # while we hold it: whoever waits sees that it is gone, and makes another
        os.close(handle)


def _open_locked(name: Path, wanted: Callable[[], bool]) -> int:
    told = False
    while True:
        name.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(name)):
                    return handle
            os.close(handle)
            continue
        except BlockingIOError:
            os.close(handle)
        except OSError as error:
            os.close(handle)
            raise MmgenError(
                f"cannot lock {name}: {(error.strerror or str(error)).lower()}; use a folder on a file system that "
                "has locks (--output)"
            ) from None
        if not told:
            say(f"somebody else makes {name.name.removeprefix('.').removesuffix('.lock')} already; waiting for them")
            told = True
        if not wanted():
            raise Interrupted(f"{name} was held by somebody else until nobody wanted it", 15)
        time.sleep(_ASK_EVERY)


def run_on_cluster(stages: "Sequence[Stage]", folder: Path, address: str) -> bool:
    """The same on the workers of a Dask cluster, each stage as soon as the files that it reads are there.

    A worker that is lost has its stage run by another one, which goes on where the first was. Workers whom nobody waits
    for any more, since we ended or were killed, stop and save.

    Args:
        stages: In an order in which they could be run one after the other.
        folder: Where their paths begin; the same for this machine and all workers.
        address: Address of the scheduler, such as ``tcp://host:8786``.

    Raises:
        UsageError: Dask is not installed, or the address is none.
        MmgenError: A command failed, or the cluster cannot be reached, has no workers or lost them.
    """
    from mmgen.data_recipes._cluster import PATIENCE, cluster_client, cluster_failures, lost, no_workers

    with cluster_client(address) as client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise no_workers(address) from None
        try:
            with client.as_current():
                return _Study(stages, folder.resolve(), client).run()
        except cluster_failures() as error:
            raise lost(address, error) from None


class _Study:
    """Stages on a cluster: which are done, which are being run, and which may be next."""

    def __init__(self, stages: "Sequence[Stage]", folder: Path, client: Any) -> None:
        self.stages, self.folder, self.client = stages, folder, client
        self.made = [stage.makes for stage in stages]
        self.left = list(range(len(stages)))
        self.finished: set[str] = set()
        self.running: dict[Any, int] = {}
        self.ran = False

    def run(self) -> bool:
        try:
            while self.left or self.running:
                self._begin()
                self._wait()
        finally:
            for future in self.running:
                future.cancel()
        return self.ran

    def _begin(self) -> None:
        """Hand over every stage whose files are there."""
        for place in list(self.left):
            stage, earlier = self.stages[place], self.made[:place]
            read = [word for word in stage.arguments if word in earlier]
            if not self.finished.issuperset(read):
                continue
            self.left.remove(place)
            state = _settled(stage, self.folder, earlier)
            _announce(stage, place + 1, len(self.stages), state, "" if state == "done" else "on the cluster")
            if state == "done":
                self.finished.add(stage.makes)
                continue
            # The same name for the same stage: asked for twice, by two of us, it is run once.
            name = hashlib.sha256(f"{self.folder}\n{stage.makes}\n{stage.typed}".encode()).hexdigest()[:24]
            future = self.client.submit(
                _on_worker, stage, str(self.folder), earlier, read, key=f"mmgen-{name}", pure=False
            )
            self.running[future] = place

    def _wait(self) -> None:
        """Until one is done, if any is running."""
        from distributed import wait

        if not self.running:
            return
        try:
            done, _ = wait(list(self.running), timeout=_LOOK_EVERY, return_when="FIRST_COMPLETED")
        except TimeoutError:
            if not self.client.scheduler_info()["workers"]:
                say("the cluster has no workers any more: waiting for some")
            return
        for future in done:
            place = self.running.pop(future)
            stage = self.stages[place]
            ran: _Ran = future.result()
            if not (self.folder / stage.makes).exists():
                raise MmgenError(
                    f"{ran.host} made {stage.makes}, but it is not in {self.folder} here: choose a folder that all "
                    "machines share (--output)"
                )
            self.ran = True
            self.finished.add(stage.makes)
            took = "was made by somebody else" if ran.seconds is None else f"took {ran.seconds:,.0f} s"
            say(f"[{place + 1}/{len(self.stages)}] {stage.makes} {took} on {ran.host}")


def _on_worker(stage: "Stage", folder: str, earlier: list[str], read: list[str]) -> _Ran:
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
            return _perform(stage, Path(folder), earlier, talk=talk, wanted=wanted)
        except Interrupted:
            raise Reschedule from None  # to another worker, if this one is leaving and somebody still waits
        except MmgenError as error:
            talk.seek(0)
            lines = talk.read().decode(errors="replace").strip().splitlines()
            sys.stderr.write("\n".join(lines[-50:]) + "\n")
            told = lines[-1].removeprefix("mmgen: ") if lines else ""
            raise MmgenError(f"{error} (on {host}: {told})" if told else f"{error} (on {host})") from None
