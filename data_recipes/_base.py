"""The base class of all dataset recipes, and their work in several processes or on a Dask cluster."""

import os
import queue
import signal
import socket
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import MmgenError, UsageError
from mmgen.core.extras import how_to_install
from mmgen.core.memory import check_memory
from mmgen.core.processes import choose_process_count, prepare_worker, safe_import_path
from mmgen.core.progress import Progress, Work
from mmgen.settings.config import Settings
from mmgen.settings.plugins import CODE_VARIABLE, run_code_files

if TYPE_CHECKING:
    from mmgen.artifacts import DatasetWriter

T = TypeVar("T")

Workers = int | str | None
"""Processes on this machine, all cores by default; or the address of a Dask scheduler, whose workers do the work."""


@dataclass(frozen=True)
class Rows:
    """Columns and factors of consecutive examples, as a dataset file stores them.

    Attributes:
        columns: Rows by modality, as its kind stores them: images (packed if bits), codes, words.
        factors: Numbers by factor.
    """

    columns: dict[str, NDArray[Any]]
    factors: dict[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


class Recipe(Settings, ABC):
    """Base of dataset recipes, whose fields are the dataset's settings and the options of ``mmgen make-data``."""

    reads_sources: ClassVar[bool] = False
    """Whether it reads files of the user that may have changed, besides those in fields of paths."""

    fetches_anything: ClassVar[bool] = False
    """Whether its settings can name any download, which experiments from outside may not ask for."""

    def setup_work(self) -> Work[Any] | None:
        """Return a download or compilation that has to run once before :meth:`make`; None if nothing is missing."""
        return None

    def survey(self, seed: int, workers: Workers) -> Work[Any] | None:
        """Return work that inspects the user's files before the dataset is written; None if there are none to inspect.

        :meth:`make` of such a recipe takes the result as ``survey``, whose ``notes`` are lines for people.

        Args:
            seed: As for :meth:`make`.
            workers: Likewise.

        Raises:
            DataError: The sources are missing or malformed.
        """
        return None

    @abstractmethod
    def make(
        self, path: Path, *, seed: int = 0, workers: Workers = None, chunk: int = 2048, command: str = ""
    ) -> Work[Path]:
        """Return work that writes the dataset file and returns ``path``; progress counts examples.

        Its notes are warnings about the sources, such as that they are not the published ones.

        Args:
            path: File to write; it appears only when complete.
            seed: All randomness comes from this number.
            workers: Processes here, or a Dask scheduler's address. Neither workers nor chunk changes the content.
            chunk: Examples that a worker renders at a time.
            command: The command line to record in the file.

        Raises:
            DataError: The sources are missing or malformed.
            ArtifactError: The file cannot be written (raised as the work is done).
            MmgenError: The Dask cluster cannot be used (likewise).
        """


def map_in_order(function: Callable[..., T], calls: Iterable[tuple[Any, ...]], workers: Workers) -> Iterator[T]:
    """Compute ``function(*call)`` for each call in several processes, and yield the results in the order of the calls.

    Args:
        function: Function that the processes can import.
        calls: Arguments of each call.
        workers: Number of processes, at most one for each call and a few for each core; or a Dask scheduler's address.

    Raises:
        MmgenError: A process was killed.
    """
    if isinstance(workers, str):
        yield from map_on_cluster(function, calls, workers)
        return
    import joblib

    remaining = iter(calls)
    count = choose_process_count(workers, joblib.cpu_count())
    first = list(islice(remaining, count))  # no more processes than there are calls
    count = max(1, len(first))

    def more() -> Iterator[tuple[Any, ...]]:
        while (call := next(remaining, None)) is not None:
            yield call

    owner = (os.getpid(), threading.current_thread() is threading.main_thread())
    code = os.environ.get(CODE_VARIABLE, "")  # other files of code need other workers
    # Chunks are large: no batching of calls, and no detour of their arrays through memory-mapped files.
    with (
        safe_import_path(),
        joblib.parallel_config("loky", initializer=_begin_worker_process, initargs=(*owner, code), max_nbytes=None),
    ):
        parallel = joblib.Parallel(n_jobs=count, return_as="generator", batch_size=1)
        with _children_ignore_interrupts():
            results = parallel(joblib.delayed(function)(*call) for call in chain(first, more()))
        try:
            for result in results:  # noqa: UP028  # yield from closes them before the rest is taken back
                yield result
        except _killed_worker_error() as error:
            raise MmgenError(
                f"a process that made examples was killed ({type(error).__name__}), most likely because memory ran "
                "out; use fewer --workers, or a smaller size"
            ) from None
        finally:  # where nobody takes the rest, no further call may begin in processes that are ended
            remaining = iter(())
            with warnings.catch_warnings(action="ignore"):
                results.close()


def chunk_indices(number: int, chunk: int) -> Iterator[NDArray[np.int64]]:
    """Yield the numbers of ``number`` examples, ``chunk`` at a time."""
    for start in range(0, number, chunk):
        yield np.arange(start, min(start + chunk, number))


def write_rows(writer: "DatasetWriter", chunks: Iterable[Rows]) -> Generator[Progress, None, NDArray[np.uint8]]:
    """Write all rows of a dataset; progress counts them. Return their attribute codes [N, A], A = 0 without any."""
    start, codes = 0, []
    # Ends processes that still make rows, if they cannot be written.
    with closing(chunks) if isinstance(chunks, Generator) else nullcontext():
        for rows in chunks:
            writer.write(start, rows.columns, rows.factors)
            start += len(rows)
            codes.append(rows.columns.get("attributes", np.empty((len(rows), 0), np.uint8)))
            yield Progress(start)
    return np.concatenate(codes)


def _killed_worker_error() -> type[BaseException]:
    """Return the class of the exception that a process pool raises if one of its processes was killed."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    return TerminatedWorkerError


def check_dataset_size(number: int, pixels: int, chunk: int) -> None:
    """Refuse a dataset too large for memory: ``number`` examples of ``pixels`` values, made ``chunk`` at a time."""
    check_memory(32 * number, f"a dataset of {number:,} examples", "use a smaller --number")
    check_memory(pixels * min(number, chunk), f"images of {pixels:,} numbers", "use a smaller --size")


@contextmanager
def _children_ignore_interrupts() -> Iterator[None]:
    """Let processes that are started in this block ignore Ctrl-C; their parent ends them."""
    # For these few milliseconds the owner ignores it too, for that is what processes inherit.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _begin_worker_process(owner: int, by_kernel: bool, code: str) -> None:
    """Set up a worker process: it ends with its parent, and loads the files of MMGEN_CODE."""
    prepare_worker(owner, by_kernel)
    run_code_files()  # what they define comes by name


FIRST_WORKER_SECONDS = 20  # seconds for a first worker to appear
ANSWER_SECONDS = 4  # seconds for a scheduler to answer
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
    import asyncio  # here, since help needs none

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
        # A plain connection first, which fails at once where nobody listens, and then a handshake: a client that finds
        # nobody, or no scheduler, complains for long and in many lines.
        socket.create_connection((host, port), timeout=ANSWER_SECONDS).close()
        _call_with_timeout(lambda: asyncio.run(_shake_hands(address)))  # a thread: a notebook has a loop of its own
        return _call_with_timeout(lambda: QuietClient(address, timeout=ANSWER_SECONDS, set_as_default=False))
    except MmgenError:
        raise
    except Exception as error:  # of Dask, which reads what came; TypeError: tls without certificates in its settings
        raise MmgenError(
            f"no Dask scheduler answers at {address} ({_first_line(error)}): check the address, or start one, dask "
            "scheduler"
        ) from None


async def _shake_hands(address: str) -> None:
    """Connect to the scheduler and disconnect, which fails where a client would fail."""
    import asyncio

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
