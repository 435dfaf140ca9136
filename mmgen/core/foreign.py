"""Bounded reading of files that other programs wrote.

A pipe would block its reader for ever, a device has no end, and a packed file of 8 MB can hold 8 GB: only regular
files are opened, and whatever is unpacked is counted while it is unpacked. The caller sets the limit.
"""

import gzip
import math
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from mmgen.core.errors import reason_of

_BLOCK = 2**20
_BEGINNING = 64  # bytes that show a stand-in
_GZIP = b"\x1f\x8b"
_LONGEST = 200  # characters of a library's own words

_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compressions whose unpacker can be stopped half-way; zipfile unpacks others whole, of any size."""


class CannotReadError(Exception):
    """Error for a file that cannot be read; its message is the reason, such as "it has 0 bytes"."""

    def __init__(self, reason: str) -> None:
        line = (reason.splitlines() or [""])[0]
        printable = "".join(letter if letter.isprintable() else "?" for letter in line)
        super().__init__(printable if len(printable) <= _LONGEST else f"{printable[:_LONGEST]}...")

    @staticmethod
    def from_error(error: BaseException) -> "CannotReadError":
        """Return a CannotReadError for an error that another library raised."""
        return CannotReadError(reason_of(error))


def open_regular(path: Path, limit: float = math.inf) -> BinaryIO:
    """Open a file of at most ``limit`` bytes; refuse folders, and devices and pipes, which could block for ever.

    Raises:
        OSError, ValueError: There is none, or it may not be read.
        CannotReadError: It is a folder, a device or a pipe, or is larger.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_size <= limit:
        return open(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISREG(status.st_mode):
        raise CannotReadError(_too_large(status.st_size, limit))
    what = "a folder" if stat.S_ISDIR(status.st_mode) else "a device or a pipe"
    raise CannotReadError(f"it is {what}, expected a file")


def _check_is_itself(beginning: bytes) -> None:
    """Raise an error for the beginning of a file that stands in for another one, whatever its name says."""
    if beginning.startswith(b"version https://git-lfs."):
        raise CannotReadError("it is a pointer of Git LFS instead of the file, which git lfs pull gets")
    if beginning.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith((b"<!doctype html", b"<html")):
        raise CannotReadError("it is a web page instead of the file: download the file itself")


def open_foreign(path: Path, limit: float = math.inf) -> BinaryIO:
    """Open a file as :func:`open_regular` does; refuse what stands in for it as well.

    Raises:
        OSError, ValueError: There is none, or it may not be read.
        CannotReadError: It is no regular file, is larger, is a pointer of Git LFS, or a web page.
    """
    file = open_regular(path, limit)
    try:
        _check_is_itself(file.read(_BEGINNING))
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def _too_large(size: int, limit: float) -> str:
    return f"it has {size:,} bytes, expected at most {limit:,}"


@contextmanager
def _explain_errors() -> Iterator[None]:
    """Turn errors of the system in this block into CannotReadError."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise CannotReadError.from_error(error) from None


def _read_up_to(file: BinaryIO, limit: int) -> bytearray:
    """Read up to ``limit`` bytes; a declared size that the file does not have allocates no memory."""
    data = bytearray()
    while len(data) < limit and (block := file.read(min(_BLOCK, limit - len(data)))):
        data += block
    return data


def read_file(path: Path, limit: int) -> bytes:
    """Read all bytes of a file; refuse one of more than ``limit`` bytes.

    Raises:
        CannotReadError: It cannot be read, is no regular file, or is larger.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "some.txt"
        ...     _ = path.write_bytes(b"twelve bytes")
        ...     print(read_file(path, 12))
        ...     read_file(path, 11)
        Traceback (most recent call last):
        ...
        mmgen.core.foreign.CannotReadError: it has 12 bytes, expected at most 11
    """
    with _explain_errors(), open_foreign(path, limit) as file:
        data = _read_up_to(file, limit + 1)  # it may grow meanwhile, and files in /proc say that they have 0 bytes
    if len(data) > limit:
        raise CannotReadError(f"it has too many bytes, expected at most {limit:,}")
    return bytes(data)


@contextmanager
def open_unpacked(path: Path) -> Iterator[BinaryIO]:
    """Open a file as a stream of bytes; a file that starts like gzip is unpacked, whatever its name.

    Read it by :func:`read_unpacked`, which takes no more memory than it returns.

    Raises:
        CannotReadError: It cannot be read, or is no regular file.
    """
    with _explain_errors():
        opened = open_foreign(path)
    with opened as file:
        with _explain_errors():
            packed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
        if packed:
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield cast(BinaryIO, unpacked)
        else:
            yield file


def read_unpacked(file: BinaryIO, limit: int) -> bytearray:
    """Read up to ``limit`` bytes from a stream of :func:`open_unpacked`.

    Memory is allocated only for bytes that are there.

    Raises:
        CannotReadError: It is damaged.
    """
    try:
        return _read_up_to(file, limit)
    except (EOFError, OSError, zlib.error) as error:
        raise CannotReadError(f"it is a damaged or truncated gzip file ({str(error).lower()})") from None


def open_zip(path: Path) -> zipfile.ZipFile:
    """Open a zip archive, whose members :func:`read_member` reads.

    Raises:
        CannotReadError: It cannot be read, is no regular file, no zip, or one that broke off.
    """
    with _explain_errors():
        open_foreign(path).close()
    try:
        return zipfile.ZipFile(path)
    # zipfile raises NotImplementedError for versions of the format that it does not know, and ValueError for damaged
    # names and places.
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError) as error:
        raise CannotReadError(f"it is no zip, or a truncated one ({str(error).lower()})") from None
    except OSError as error:
        raise CannotReadError.from_error(error) from None


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> bytes:
    """Read one member of a zip archive, after checking its length; its checksum is checked too.

    Raises:
        CannotReadError: It is larger, damaged, or packed in a way that cannot be unpacked bit by bit.
    """
    if member.file_size > limit:
        raise CannotReadError(_too_large(member.file_size, limit))
    return b"".join(iterate_member(archive, member, max(member.file_size, 1)))


def iterate_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, size: int) -> Iterator[bytes]:
    """Yield the bytes of a member of a zip archive in pieces, for one larger than memory.

    Args:
        archive: The zip.
        member: The member, of any size.
        size: Bytes of a piece; the last one may be smaller.

    Raises:
        CannotReadError: It is damaged, or packed in a way that cannot be unpacked bit by bit.
    """
    if member.compress_type not in _PACKINGS:
        name = zipfile.compressor_names.get(member.compress_type, member.compress_type)  # type: ignore[attr-defined]
        raise CannotReadError(f"it is packed by {name}, expected deflate or no compression; pack it again")
    size_read = 0
    try:
        with archive.open(member) as file:
            # Not .read() without a number, which unpacks up to 1 GiB before it looks at the size.
            while piece := file.read(min(size, member.file_size - size_read)):
                if not size_read:
                    _check_is_itself(piece[:_BEGINNING])
                size_read += len(piece)
                yield piece
    except OSError as error:
        raise CannotReadError.from_error(error) from None
    # zipfile raises RuntimeError for members with a password.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise CannotReadError(
            f"the zip archive is damaged there ({str(error).lower() or 'it ends too soon'})"
        ) from None
    if size_read != member.file_size:
        raise CannotReadError(
            f"the zip archive is damaged there (it ends after {size_read:,} of {member.file_size:,} bytes)"
        )
