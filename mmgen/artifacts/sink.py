"""The file under an HDF5 file that is being written: it keeps errors of the disk away from HDF5.

HDF5 cannot close a file whose last writes failed, and crashes the interpreter at exit when it tries again. So the
library never hears of a failure: the sink keeps the first error, swallows what comes after, and the writer asks it.
"""

import os
from pathlib import Path
from typing import Any


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

    def check(self) -> None:
        """Raise the error of the first failed write, if any.

        Raises:
            OSError: No space, quota, file too large, input/output error.
            KeyboardInterrupt: It came while HDF5 was writing.
        """
        if self._error is not None:
            raise self._error

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
