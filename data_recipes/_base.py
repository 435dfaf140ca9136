"""The base class of all dataset recipes, and rendering by several processes."""

import os
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import MmgenError
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
        from mmgen.data_recipes._cluster import map_on_cluster

        yield from map_on_cluster(function, calls, workers)
        return
    import joblib

    remaining = iter(calls)
    count = choose_process_count(workers, joblib.cpu_count())
    first = list(islice(remaining, count))  # no more processes than there are calls
    count = max(1, len(first))
    owner = (os.getpid(), threading.current_thread() is threading.main_thread())
    code = os.environ.get(CODE_VARIABLE, "")  # other files of code need other workers
    # Chunks are large: no batching of calls, and no detour of their arrays through memory-mapped files.
    with (
        safe_import_path(),
        joblib.parallel_config("loky", initializer=_begin_worker_process, initargs=(*owner, code), max_nbytes=None),
    ):
        parallel = joblib.Parallel(n_jobs=count, return_as="generator", batch_size=1)
        with _children_ignore_interrupts():
            results = parallel(joblib.delayed(function)(*call) for call in chain(first, remaining))
        try:
            yield from results
        except _killed_worker_error() as error:
            raise MmgenError(
                f"a process that made examples was killed ({type(error).__name__}), most likely because memory ran "
                "out; use fewer --workers, or a smaller size"
            ) from None


def chunk_indices(number: int, chunk: int) -> Iterator[NDArray[np.int64]]:
    """Yield the numbers of ``number`` examples, ``chunk`` at a time."""
    for start in range(0, number, chunk):
        yield np.arange(start, min(start + chunk, number))


def write_rows(writer: "DatasetWriter", chunks: Iterable[Rows]) -> Generator[Progress, None, NDArray[np.uint8]]:
    """Write all rows of a dataset; progress counts them. Return their attribute codes [N, A], A = 0 without any."""
    start, codes = 0, []
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
