"""Work on a Dask cluster, through joblib's Dask back end."""

import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import urlsplit

from mmgen.errors import MmgenError, UsageError
from mmgen.extras import how_to_install

__all__ = ["PATIENCE", "cluster_client", "cluster_failures", "lost", "no_workers", "on_cluster"]

T = TypeVar("T")

PATIENCE = 20  # seconds for the scheduler to answer, and for a first worker to appear
_WINDOW = 16  # calls per core whose results may wait to be taken


def on_cluster(render: Callable[..., T], calls: Iterable[tuple[Any, ...]], address: str) -> Iterator[T]:
    """Results of ``render(*call)`` for each call, in the order of the calls, computed by the cluster's workers.

    mmgen must be installed where the workers run.

    Args:
        render: What to do.
        calls: Arguments.
        address: Address of the cluster's scheduler, such as ``tcp://host:8786``.

    Raises:
        UsageError: Dask is not installed, or the address is none.
        MmgenError: The cluster cannot be reached, has no workers, or loses them.
    """
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
            raise no_workers(address) from None
        except cluster_failures() as error:
            raise lost(address, error) from None


def no_workers(address: str) -> MmgenError:
    """What to say of a cluster on which nothing can be done."""
    return MmgenError(f"the Dask cluster at {address} has no workers: start some, dask worker {address} --nthreads 1")


def lost(address: str, error: BaseException) -> MmgenError:
    """What to say of a cluster that failed."""
    return MmgenError(
        f"the Dask cluster at {address} failed ({_brief(error)}): look at the logs of its workers, which need the same "
        "mmgen as this machine"
    )


def _call(render: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    """``render(*arguments)``; their tuple travels with the call.

    Arrays on their own would be put on one worker beforehand, and the work would fail with that worker.
    """
    return render(*arguments)


def cluster_failures() -> tuple[type[BaseException], ...]:
    """How the loss of workers or of the scheduler, or workers without mmgen, show themselves."""
    from concurrent.futures import CancelledError

    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    return CancelledError, FutureCancelledError, CommClosedError, KilledWorker, ImportError


def cluster_client(address: str) -> Any:
    """A client of the scheduler at ``address``, to be used in a ``with``; raises as :func:`on_cluster`."""
    try:
        from distributed import Client
    except ImportError:
        raise UsageError(
            f"--scheduler needs Dask, which is not installed: {how_to_install('dask')}; or leave the option out"
        ) from None
    parts = urlsplit(address)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if parts.scheme not in ("tcp", "tls") or not host or not port:
        raise UsageError(f"--scheduler got '{address}', expected what 'dask scheduler' prints: tcp://host:8786")
    try:
        # A plain connection first: a client that finds nobody complains for long, in many lines.
        socket.create_connection((host, port), timeout=PATIENCE).close()
        return Client(address, timeout=PATIENCE, set_as_default=False)
    except OSError as error:
        raise MmgenError(
            f"no Dask scheduler answers at {address} ({_brief(error)}): check the address, or start one, dask scheduler"
        ) from None


def _brief(error: BaseException) -> str:
    return (str(error) or type(error).__name__).strip().split("\n")[0]
