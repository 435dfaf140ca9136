"""Training on several devices: one process for each, connected by Lightning Fabric."""

import atexit
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import joblib
import torch

from mmgen.core.errors import UsageError
from mmgen.core.processes import A_CORE, OWNER, end_with_parent, is_program, start_mmgen
from mmgen.core.surroundings import RANK
from mmgen.training.precision import resolve_device, resolve_precision
from mmgen.training.settings import TrainingSettings

if TYPE_CHECKING:
    from lightning_fabric import Fabric


_LOOK_EVERY = 0.1  # seconds, whether all are there
_LAST_WORDS = 1.0  # seconds in which we may meet what has ended another one, and say it ourselves
_LAST_WORK = 30.0  # seconds in which we may still save, once all have worked together
_GOODBYE = 0.5  # seconds that the others have to end after us

_processes: "list[subprocess.Popen[str]]" = []
_all_connected = threading.Event()


def start_processes(count: int, variables: Mapping[str, str]) -> None:
    """Start ``count`` more processes of the running program, ``mmgen`` or a script of the user.

    If one of them fails, this process ends with a message.

    Args:
        count: Number of processes to start.
        variables: Environment variables of each, besides its rank.

    Raises:
        UsageError: The program cannot be started again, as in a notebook.
    """
    main, by_command = sys.modules.get("__main__"), is_program()
    if not by_command and getattr(main, "__file__", None) is None:
        raise UsageError(
            f"devices got {count + 1}, expected 1 in a notebook or an interactive session; run a script instead"
        )
    _all_connected.clear()
    _processes.clear()
    for rank in range(1, count + 1):
        environment = {**variables, "LOCAL_RANK": str(rank), RANK: str(rank)}
        if by_command:
            _processes.append(start_mmgen(sys.argv[1:], environment, stdin=subprocess.DEVNULL))
            continue
        spec = getattr(main, "__spec__", None)
        program = [os.path.abspath(sys.argv[0])] if spec is None else ["-m", spec.name]
        command = {**os.environ, **environment, OWNER: str(os.getpid())}
        _processes.append(subprocess.Popen([sys.executable, *program, *sys.argv[1:]], env=command, text=True))
    atexit.register(_end_processes)
    threading.Thread(target=_watch_processes, name="watch-others", daemon=True).start()


@contextmanager
def wait_for_connection() -> Iterator[None]:
    """Mark the block in which this process waits for the others to connect; an error in it kills them."""
    try:
        yield
    except BaseException:
        _kill_processes()  # before they complain that we have left them
        raise
    _all_connected.set()


def describe_failed_process(patience: float = _LAST_WORDS) -> str | None:
    """Return a sentence on another process that fails within ``patience`` seconds; None if none does."""
    until = time.monotonic() + patience
    while _processes:
        for rank, process in enumerate(_processes, 1):
            if code := process.poll():
                failure = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
                return (
                    f"process {rank + 1} of {len(_processes) + 1} (--devices) {failure}, and this run with it; see its "
                    "message, then give the same command again, or use --devices 1"
                )
        if time.monotonic() > until:
            break
        time.sleep(_LOOK_EVERY)
    return None


def _watch_processes() -> None:
    """End this process once another one has failed, since it might wait for that one without end."""
    while any(process.poll() is None for process in _processes):
        if any(process.poll() for process in _processes):
            break
        time.sleep(_LOOK_EVERY)
    failure = describe_failed_process(0.0)
    if failure is None:
        return
    time.sleep(_LAST_WORK if _all_connected.is_set() else _LAST_WORDS)
    codes = {process.poll() for process in _processes}
    _kill_processes()
    for code, word in ((130, "interrupted"), (143, "terminated")):  # all were, and we could not hear it
        if code in codes:
            os.write(2, f"mmgen: {word}\n".encode())
            os._exit(code)
    os.write(2, f"mmgen: {failure}\n".encode())
    os._exit(1)


def _kill_processes() -> None:
    for process in _processes:
        with suppress(OSError):
            process.kill()


def _end_processes() -> None:
    until = time.monotonic() + _GOODBYE
    for process in _processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, until - time.monotonic()))
    _kill_processes()


def make_fabric(settings: TrainingSettings) -> "Fabric":
    """Choose devices and precision of a run and return its Fabric; with several devices, start the other processes.

    With one device no launcher is looked for: a scheduler's variables are of another program.

    Raises:
        UsageError: The machine has fewer devices, or the environment variables of a launcher contradict the settings.
    """
    try:  # seconds, as torch's compiler comes with it: what does not train does without
        from lightning_fabric import Fabric
        from lightning_fabric.plugins.environments import LightningEnvironment
    except ValueError as error:  # it reads RANK and LOCAL_RANK
        raise _launcher_error(error) from None

    device = resolve_device(settings.device)
    precision = resolve_precision(settings.precision, device)
    if device.type == "cuda" and settings.devices > torch.cuda.device_count():
        raise UsageError(
            f"--devices got {settings.devices}, expected at most {torch.cuda.device_count()}, the GPUs of this machine"
        )
    if settings.devices > 1:
        _check_devices(settings, device.type)
    accelerator: list[int] | int = settings.devices
    if device.type == "cuda" and settings.devices == 1:
        accelerator = [device.index or 0]
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # it announces the precision on every start
    try:
        fabric = Fabric(
            accelerator=device.type,
            devices=accelerator,
            strategy="ddp" if settings.devices > 1 else "auto",
            precision=precision,
            plugins=LightningEnvironment() if settings.devices == 1 or RANK in os.environ else None,
        )
    except RuntimeError as error:
        if settings.devices == 1:
            raise
        raise _launcher_error(error) from None
    if settings.devices > 1:
        _start_other_processes(fabric, settings.devices)
    with wait_for_connection():
        fabric.launch()
    if settings.devices > 1:
        os.environ[RANK] = str(fabric.global_rank)
    return fabric


def _launcher_error(error: Exception) -> UsageError:
    reason = (str(error).splitlines() or [""])[0]
    return UsageError(
        f"the environment variables of a launcher, such as RANK or SLURM_NTASKS, are wrong: {reason}; unset them, and "
        "mmgen starts its processes itself"
    )


def _check_devices(settings: TrainingSettings, device_type: str) -> None:
    """Refuse more processes than the machine's cores or the batch's examples allow, before any is started."""
    cores = joblib.cpu_count()
    if device_type == "cpu" and settings.devices > A_CORE * cores:
        raise UsageError(
            f"--devices got {settings.devices}, expected at most {A_CORE * cores} processes on the {cores} "
            f"core{'s' * (cores != 1)} of this machine; use one for each core at most"
        )
    if settings.devices > settings.batch:
        raise UsageError(
            f"--devices got {settings.devices} and --batch {settings.batch}, expected an example at least for each "
            "device; use fewer devices or a larger batch"
        )


def _start_other_processes(fabric: "Fabric", devices: int) -> None:
    """Start the other processes, unless a launcher such as torchrun or Slurm has started them."""
    from lightning_fabric.plugins.environments import LightningEnvironment
    from lightning_fabric.plugins.environments.lightning import find_free_network_port

    owner = os.environ.pop(OWNER, "")
    if owner.isdecimal():  # started by a script of the user's; mmgen has seen to it already
        end_with_parent(int(owner))
    environment = getattr(fabric.strategy, "cluster_environment", None)
    if not isinstance(environment, LightningEnvironment) or RANK in os.environ:
        return
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(find_free_network_port()),
        "NODE_RANK": "0",
        "WORLD_SIZE": str(devices),
    }
    os.environ.update({**shared, "LOCAL_RANK": "0"})
    start_processes(devices - 1, shared)
