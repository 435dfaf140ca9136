"""The base of all recipes, and rendering by several processes."""

import os
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from numpy.typing import NDArray

from mmgen.core.errors import MmgenError
from mmgen.core.memory import check_memory
from mmgen.core.processes import check_open_files, choose_process_count, prepare_worker, safe_import_path
from mmgen.core.progress import Work
from mmgen.settings.config import Settings
from mmgen.settings.plugins import CODE_VARIABLE, run_code_files

__all__ = ["Recipe", "Rows", "Workers", "check_examples", "in_order"]

T = TypeVar("T")

Workers = int | str | None
"""Processes on this machine, all cores by default; or the address of a Dask scheduler, whose workers do the work."""


@dataclass(frozen=True)
class Rows:
    """Consecutive examples in the form in which they are stored.

    Attributes:
        columns: Rows by modality, as its kind stores them: images (packed if bits), codes, words.
        factors: Numbers by factor.
    """

    columns: dict[str, NDArray[Any]]
    factors: dict[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


class Recipe(Settings, ABC):
    """Abstract: a dataset recipe; its fields are the dataset's settings and the options of ``mmgen make-data``."""

    resumes: ClassVar[bool] = False
    """Whether :meth:`make` resumes after it was stopped."""

    reads_sources: ClassVar[bool] = False
    """Whether it reads files of the user that may have changed, besides those in fields of paths."""

    fetches_anything: ClassVar[bool] = False
    """Whether its settings can name any download, which experiments from outside may not ask for."""

    def prepare(self) -> Work[Any] | None:
        """Return a download or compilation that has to run once before :meth:`make`; None if nothing is missing."""
        return None

    def survey(self, seed: int, workers: Workers) -> Work[Any] | None:
        """Look at sources before anything is written; None where nothing has to be looked at.

        :meth:`make` of a recipe with surveys takes the result as ``survey``, whose ``notes`` are lines for people.

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
        """Return the work that makes the dataset file; its unit is the example, its result ``path``.

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


def in_order(render: Callable[..., T], calls: Iterable[tuple[Any, ...]], workers: Workers) -> Iterator[T]:
    """Yield the results of ``render(*call)`` in the order of the calls, computed by several processes.

    There are never more of them than calls, nor more than a few for each core.

    Raises:
        UsageError: So many processes cannot be asked for, or the system does not let us start them.
        MmgenError: One of them was killed.
    """
    if isinstance(workers, str):
        from mmgen.data_recipes._cluster import on_cluster

        yield from on_cluster(render, calls, workers)
        return
    import joblib

    left = iter(calls)
    count = choose_process_count(workers, joblib.cpu_count())
    first = list(islice(left, count))  # no more processes than there are calls
    count = max(1, len(first))
    if count > 1:
        check_open_files(count)
    owner = (os.getpid(), threading.current_thread() is threading.main_thread())
    code = os.environ.get(CODE_VARIABLE, "")  # other files of code need other workers
    # Chunks are large: no batching of calls, and no detour of their arrays through memory-mapped files.
    with (
        safe_import_path(),
        joblib.parallel_config("loky", initializer=_begin, initargs=(*owner, code), max_nbytes=None),
    ):
        parallel = joblib.Parallel(n_jobs=count, return_as="generator", batch_size=1)
        with _no_interrupt():
            results = parallel(joblib.delayed(render)(*call) for call in chain(first, left))
        try:
            yield from results
        except _lost_workers() as error:
            raise MmgenError(
                f"a process that made examples was killed ({type(error).__name__}), most likely because memory ran "
                "out; use fewer --workers, or a smaller size"
            ) from None


def _lost_workers() -> type[BaseException]:
    """Return the error of a pool that lost a process."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    return TerminatedWorkerError


def check_examples(number: int, pixels: int, at_once: int) -> None:
    """Refuse a dataset that does not fit into this machine's memory, before any work."""
    check_memory(32 * number, f"a dataset of {number:,} examples", "use a smaller --number")
    check_memory(pixels * min(number, at_once), f"images of {pixels:,} numbers", "use a smaller --size")


@contextmanager
def _no_interrupt() -> Iterator[None]:
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


def _begin(owner: int, by_kernel: bool, code: str) -> None:
    """Let a worker process end with its parent, and load the files of MMGEN_CODE."""
    prepare_worker(owner, by_kernel)
    run_code_files()  # what they define comes by name
