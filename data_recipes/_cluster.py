"""Work on a Dask cluster, through joblib's Dask back end."""

import asyncio
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import urlsplit

from mmgen.core.errors import MmgenError, UsageError
from mmgen.core.extras import how_to_install

__all__ = ["PATIENCE", "cluster_client", "cluster_failures", "lost", "no_workers_error", "on_cluster"]

T = TypeVar("T")

PATIENCE = 20  # seconds for a first worker to appear
ANSWERS = 4  # seconds for a scheduler to answer
_LONGEST_GREETING = 1 << 16  # bytes; Dask's has some hundred
_WINDOW = 16  # calls per core whose results may wait to be taken


def on_cluster(render: Callable[..., T], calls: Iterable[tuple[Any, ...]], address: str) -> Iterator[T]:
    """Yield the results of ``render(*call)`` in the order of the calls, computed by the cluster's workers."""
    import joblib

    left = iter(calls)
    with (
        cluster_client(address) as client,
        joblib.parallel_config("dask", client=client, wait_for_workers_timeout=PATIENCE),
    ):
        try:
            # A window of calls at a time: writing their results may be slower than a large cluster makes them.
            while window := list(islice(left, _WINDOW * max(1, sum(client.ncores().values())))):
                parallel = joblib.Parallel(return_as="generator", batch_size=1)
                with closing(parallel(joblib.delayed(_call)(render, call) for call in window)) as results:
                    yield from results
        except MmgenError:
            raise
        except TimeoutError:
            raise no_workers_error(address) from None
        except cluster_failures() as error:
            raise lost(address, error) from None


def no_workers_error(address: str) -> MmgenError:
    """Return the error for a cluster without workers."""
    return MmgenError(f"the Dask cluster at {address} has no workers: start some, dask worker {address} --nthreads 1")


def lost(address: str, error: BaseException) -> MmgenError:
    """Return the error for a cluster that failed."""
    return MmgenError(
        f"the Dask cluster at {address} failed ({_brief(error)}): look at the logs of its workers, which need the same "
        "mmgen as this machine"
    )


def _call(render: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    """Return ``render(*arguments)``."""
    # Arrays on their own would be put on one worker beforehand, and the work would fail with that worker.
    return render(*arguments)


def cluster_failures() -> tuple[type[BaseException], ...]:
    """Return the errors that tell of lost workers, a lost scheduler, or workers without mmgen."""
    from concurrent.futures import CancelledError

    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    return CancelledError, FutureCancelledError, CommClosedError, KilledWorker, ImportError


def cluster_client(address: str) -> Any:
    """Connect to the scheduler at ``address``, for a ``with`` block; raises as :func:`on_cluster`."""
    try:
        from distributed import Client
    except ImportError:
        raise UsageError(
            f"--scheduler needs Dask, which is not installed: {how_to_install('dask')}; or leave the option out"
        ) from None

    class Quiet(Client):
        def __del__(self) -> None:
            """Do nothing, since a client that failed to connect would wait for its scheduler again."""

    parts = urlsplit(address)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if parts.scheme not in ("tcp", "tls") or not host or not port:
        raise UsageError(f"--scheduler got '{address}', expected what 'dask scheduler' prints: tcp://host:8786")
    try:
        # Plain bytes first: a client that finds nobody, or no scheduler, complains for long and in many lines.
        with socket.create_connection((host, port), timeout=ANSWERS) as connection:
            if parts.scheme == "tcp" and not _greets(connection):
                raise MmgenError(
                    f"what answers at {address} is no Dask scheduler: check the address, which dask scheduler prints"
                )
        _in_time(lambda: asyncio.run(_shake_hands(address)))  # a thread: a notebook has a loop of its own
        return _in_time(lambda: Quiet(address, timeout=ANSWERS, set_as_default=False))
    except MmgenError:
        raise
    except Exception as error:  # of Dask, which reads what came; TypeError: tls without certificates in its settings
        raise MmgenError(
            f"no Dask scheduler answers at {address} ({_brief(error)}): check the address, or start one, dask scheduler"
        ) from None


def _greets(connection: socket.socket) -> bool:
    """Return True if the other side sends Dask's greeting."""
    until = time.monotonic() + ANSWERS
    greeting = b""
    length = 8  # the message's length comes first
    while len(greeting) < length:
        connection.settimeout(max(0.001, until - time.monotonic()))
        more = connection.recv(length - len(greeting))
        if not more:
            return False
        greeting += more
        if len(greeting) == length == 8:
            length += int.from_bytes(greeting, "little")
            if length > _LONGEST_GREETING:
                return False
    return b"compression" in greeting and b"python" in greeting


async def _shake_hands(address: str) -> None:
    """Connect as a client does, and leave."""
    from distributed.comm import connect

    connection = await asyncio.wait_for(connect(address, timeout=ANSWERS), ANSWERS)
    await connection.close()


def _in_time(make: Callable[[], T]) -> T:
    """Return the result of ``make``, unless the scheduler falls silent after its greeting."""
    results: queue.SimpleQueue[T | BaseException] = queue.SimpleQueue()

    def run() -> None:
        try:
            results.put(make())
        except BaseException as error:
            results.put(error)

    threading.Thread(target=run, name="client", daemon=True).start()
    try:
        result = results.get(timeout=ANSWERS + 1)
    except queue.Empty:
        raise TimeoutError("it answers once, and then no more") from None
    if isinstance(result, BaseException):
        raise result
    return result


def _brief(error: BaseException) -> str:
    return (str(error) or type(error).__name__).strip().split("\n")[0]
