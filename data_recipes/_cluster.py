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

T = TypeVar("T")

FIRST_WORKER_SECONDS = 20  # seconds for a first worker to appear
ANSWER_SECONDS = 4  # seconds for a scheduler to answer
_LONGEST_GREETING = 1 << 16  # bytes; Dask's has some hundred
_WINDOW = 16  # calls per core whose results may wait to be taken


def map_on_cluster(function: Callable[..., T], calls: Iterable[tuple[Any, ...]], address: str) -> Iterator[T]:
    """Compute ``function(*call)`` for each call on a cluster, and yield the results in the order of the calls.

    Raises:
        UsageError: The address is none, or Dask is not installed.
        MmgenError: The cluster cannot be used.
    """
    import joblib

    remaining = iter(calls)
    with (
        cluster_client(address) as client,
        joblib.parallel_config("dask", client=client, wait_for_workers_timeout=FIRST_WORKER_SECONDS),
    ):
        try:
            # A window of calls at a time: writing their results may be slower than a large cluster makes them.
            while window := list(islice(remaining, _WINDOW * max(1, sum(client.ncores().values())))):
                parallel = joblib.Parallel(return_as="generator", batch_size=1)
                with closing(parallel(joblib.delayed(_call_function)(function, call) for call in window)) as results:
                    yield from results
        except MmgenError:
            raise
        except TimeoutError:
            raise no_workers_error(address) from None
        except cluster_error_types() as error:
            raise failed_cluster_error(address, error) from None


def no_workers_error(address: str) -> MmgenError:
    """Return the error for a cluster without workers."""
    return MmgenError(f"the Dask cluster at {address} has no workers: start some, dask worker {address} --nthreads 1")


def failed_cluster_error(address: str, error: BaseException) -> MmgenError:
    """Return the error for a cluster that failed."""
    return MmgenError(
        f"the Dask cluster at {address} failed ({_first_line(error)}): look at the logs of its workers, which need the "
        "same mmgen as this machine"
    )


def _call_function(function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    """Call a function with arguments in one tuple: as separate arguments, one worker would hold them all."""
    return function(*arguments)


def cluster_error_types() -> tuple[type[BaseException], ...]:
    """Return the exceptions for lost workers, a lost scheduler, and workers without mmgen."""
    from concurrent.futures import CancelledError

    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    return CancelledError, FutureCancelledError, CommClosedError, KilledWorker, ImportError


def cluster_client(address: str) -> Any:
    """Return a client of the scheduler at ``address``, for a ``with`` block; raises as :func:`map_on_cluster`."""
    try:
        from distributed import Client
    except ImportError:
        raise UsageError(
            f"--scheduler needs Dask, which is not installed: {how_to_install('dask')}; or leave the option out"
        ) from None

    class QuietClient(Client):
        def __del__(self) -> None:
            """Do nothing, since a client that failed to connect would wait for its scheduler again."""

    parts = urlsplit(address)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if parts.scheme not in ("tcp", "tls") or not host or not port:
        raise UsageError(
            f"--scheduler got '{address}', expected the address that 'dask scheduler' prints: tcp://host:8786"
        )
    try:
        # Plain bytes first: a client that finds nobody, or no scheduler, complains for long and in many lines.
        with socket.create_connection((host, port), timeout=ANSWER_SECONDS) as connection:
            if parts.scheme == "tcp" and not _sends_dask_greeting(connection):
                raise MmgenError(
                    f"the program at {address} is no Dask scheduler: check the address, which dask scheduler prints"
                )
        _call_with_timeout(lambda: asyncio.run(_shake_hands(address)))  # a thread: a notebook has a loop of its own
        return _call_with_timeout(lambda: QuietClient(address, timeout=ANSWER_SECONDS, set_as_default=False))
    except MmgenError:
        raise
    except Exception as error:  # of Dask, which reads what came; TypeError: tls without certificates in its settings
        raise MmgenError(
            f"no Dask scheduler answers at {address} ({_first_line(error)}): check the address, or start one, dask "
            "scheduler"
        ) from None


def _sends_dask_greeting(connection: socket.socket) -> bool:
    """Return whether the other side sends Dask's greeting."""
    until = time.monotonic() + ANSWER_SECONDS
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
    """Connect to the scheduler and disconnect, which fails where a client would fail."""
    from distributed.comm import connect

    connection = await asyncio.wait_for(connect(address, timeout=ANSWER_SECONDS), ANSWER_SECONDS)
    await connection.close()


def _call_with_timeout(function: Callable[[], T]) -> T:
    """Call a function in a thread and return its result; raise TimeoutError if the scheduler stops answering."""
    results: queue.SimpleQueue[T | BaseException] = queue.SimpleQueue()

    def run() -> None:
        try:
            results.put(function())
        except BaseException as error:
            results.put(error)

    threading.Thread(target=run, name="client", daemon=True).start()
    try:
        result = results.get(timeout=ANSWER_SECONDS + 1)
    except queue.Empty:
        raise TimeoutError("it answered once and then stopped") from None
    if isinstance(result, BaseException):
        raise result
    return result


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).strip().split("\n")[0]
