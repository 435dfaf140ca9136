"""Stages of a list, run one after the other; each by one at a time.

Whoever runs a stage holds a lock on the file that it makes, and so does the process that makes it: if we are killed, or
the worker is, that process may go on, and who comes next waits for it instead of writing the same file beside it.
"""

import fcntl
import os
import shlex
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mmgen.artifacts.files import leads_out, open_own
from mmgen.cli._console import say
from mmgen.cli._stages import run_command
from mmgen.core.errors import ArtifactError, Interrupted, MmgenError, UsageError

if TYPE_CHECKING:
    from mmgen.experiments import Stage

__all__ = ["WHAT", "Ran", "announce", "perform", "run_here", "settled"]

_ASK_EVERY = 0.5  # seconds, of a lock that somebody else holds
WHAT = "the reproduction"
_REMARKS = {
    "done": "{} is there",
    "unfinished": "continued",
    "unsure": "{} is there, by a command in other words: this one says whether it is the same",
}


@dataclass(frozen=True)
class Ran:
    """What became of a stage: seconds, None where somebody else had made its file meanwhile; and where it was run."""

    seconds: float | None
    host: str


def run_here(stages: "Sequence[Stage]", folder: Path, what: str = WHAT) -> bool:
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
        state = settled(stage, folder, made[: number - 1])
        announce(stage, number, len(stages), state)
        if state == "done":
            continue
        done = perform(stage, folder, made[: number - 1], what=what)
        ran = True
        if done.seconds is not None:
            say(f"took {done.seconds:,.0f} s")
    return ran


def settled(stage: "Stage", folder: Path, earlier: list[str]) -> str:
    """The state of a stage, once nobody is at work on it if it is no good before."""
    from mmgen.experiments import state_of

    try:
        return state_of(stage, folder, earlier)
    except ArtifactError:  # perhaps between one file and the next of somebody else
        with _locked(folder / stage.makes, lambda: True):
            return state_of(stage, folder, earlier)


def announce(stage: "Stage", number: int, count: int, state: str, where: str = "") -> None:
    remark = _REMARKS.get(state, "").format(stage.makes)
    said = ", ".join(filter(None, (remark, where)))
    say(f"\n[{number}/{count}] {stage.why}" + (f" ({said})" if said else "") + f"\n$ {stage.typed}")


def perform(
    stage: "Stage",
    folder: Path,
    earlier: list[str],
    *,
    what: str = WHAT,
    talk: Any = None,
    wanted: Callable[[], bool] = lambda: True,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Ran:
    """Run a stage under its lock, unless somebody else has while we waited."""
    from mmgen.experiments import note_of, remember, state_of

    if leads_out((folder / stage.makes).parent, folder):
        raise UsageError(f"{stage.makes} is behind a link that leads out of {folder}; remove the link, or use --output")
    with _locked(folder / stage.makes, wanted) as lock:
        began = time.monotonic()
        state = state_of(stage, folder, earlier)
        if state == "done":
            return Ran(None, socket.gethostname())
        ours = state == "outdated" and note_of(stage, folder) is not None  # else the command says whether it is lost
        replaces = ["--overwrite"] if ours and _overwrites(stage.arguments[0]) else []
        run_command(
            [*stage.arguments, *replaces], folder, what, talk=talk, keep=[lock], wanted=wanted, environment=environment
        )
        if not (folder / stage.makes).exists():
            raise MmgenError(
                f"this command did not make {stage.makes}, as its list says: {shlex.join(stage.arguments)}"
            )
        remember(stage, folder)
        return Ran(time.monotonic() - began, socket.gethostname())


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


def _no_lock(name: Path, error: OSError) -> MmgenError:
    return MmgenError(
        f"cannot lock {name}: {(error.strerror or str(error)).lower()}; use a folder on a file system that "
        "has locks (--output)"
    )


def _open_locked(name: Path, wanted: Callable[[], bool]) -> int:
    told = False
    while True:
        name.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = open_own(name, os.O_RDWR)
        except OSError as error:
            raise _no_lock(name, error) from None
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
            raise _no_lock(name, error) from None
        if not told:
            say(f"somebody else makes {name.name.removeprefix('.').removesuffix('.lock')} already; waiting for them")
            told = True
        if not wanted():
            raise Interrupted(f"{name} was held by somebody else until nobody wanted it", 15)
        time.sleep(_ASK_EVERY)
