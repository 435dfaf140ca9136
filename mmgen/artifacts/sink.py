"""The file object below HDF5 files that are written: it remembers failures and signals that HDF5 would swallow."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import h5py

from mmgen.core.processes import stop_handlers


class Sink:
    """A file object for h5py that remembers the first failed write, for :meth:`check` to raise.

    Args:
        path: File to make.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o666)
        self._position = 0
        self._error: BaseException | None = None
        self.held: int | None = None

    def check(self) -> None:
        """Raise the error of the first failed write, if any, or the signal that came while HDF5 was at work.

        Raises:
            OSError: No space, quota, file too large, input/output error.
            KeyboardInterrupt: It came while HDF5 was writing.
        """
        if self._error is not None:
            raise self._error
        if self.held is not None:
            number, self.held = self.held, None
            signal.raise_signal(number)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: os.fstat(self._descriptor).st_size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        try:
            os.lseek(self._descriptor, self._position, os.SEEK_SET)
            done = 0
            while done < len(view) and self._error is None:
                done += os.write(self._descriptor, view[done:])
        except BaseException as error:  # an interrupt too must not reach HDF5 halfway through its work
            self._error = error
        self._position += len(view)
        return len(view)

    def read(self, size: int) -> bytes:
        os.lseek(self._descriptor, self._position, os.SEEK_SET)
        data = os.read(self._descriptor, size)
        self._position += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def truncate(self, size: int) -> int:
        try:
            if self._error is None:
                os.ftruncate(self._descriptor, size)
        except OSError as error:
            self._error = error
        return size

    def flush(self) -> None:
        """Do nothing, since there is no buffer."""

    def close(self) -> None:
        """Close the file on disk."""
        os.close(self._descriptor)


_CALLBACKS = {method.__code__ for method in (Sink.seek, Sink.tell, Sink.write, Sink.read, Sink.readinto, Sink.truncate)}


@contextmanager
def _hold_signals(sink: Sink) -> Iterator[None]:
    """Hold back signals that come while HDF5 calls the sink, until :meth:`Sink.check`.

    Their exceptions would be raised inside HDF5, which goes on without the write and leaves a damaged file, or crashes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # no signal is handled in others
        return
    previous = {number: handler for number, handler in stop_handlers().items() if callable(handler)}

    def hear(number: int, frame: FrameType | None) -> None:
        within = frame
        while within is not None:
            if within.f_code in _CALLBACKS:
                sink.held = number
                return
            within = within.f_back
        previous[number](number, frame)

    for number in previous:
        signal.signal(number, hear)
    try:
        yield
    finally:
        for number, handler in previous.items():
            if signal.getsignal(number) is hear:
                signal.signal(number, handler)


@contextmanager
def create_hdf5(path: Path) -> Iterator[tuple[Any, Sink]]:
    """Create an HDF5 file and yield it with the file object below it, whose ``check`` raises failed writes.

    Format 1.10 of HDF5 puts a checksum on all metadata and is read by every h5py since 2018.

    Raises:
        OSError: The file system refuses; at the latest when the block ends.
    """
    sink = Sink(path)
    try:
        with _hold_signals(sink):
            with h5py.File(sink, "w", libver=("v110", "v110")) as file:
                yield file, sink
            sink.check()
    finally:
        sink.close()
