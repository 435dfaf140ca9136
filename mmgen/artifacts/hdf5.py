"""HDF5 with distrust: hard links and plain chunked checksummed arrays of an honest size, nothing else.

HDF5 files can point into other files (external and soft links, external and virtual storage), ask for filter plug-ins,
and declare arrays far larger than what they hold. None of that is part of the format, so a file that has it is refused.
"""

import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from mmgen.artifacts.content_id import ContentHash, bytes_of_array, dtype_name, little_endian
from mmgen.artifacts.header import Header, header_to_json
from mmgen.core.errors import ArtifactError
from mmgen.core.parsing import MAX_TEXT_BYTES, printable

SIGNATURE = b"\x89HDF\r\n\x1a\n"
CHUNK_BYTES = 2**18
"""Before compression: small enough to read a few rows quickly, large enough to compress as well as anything larger."""
_MAX_CHUNK_BYTES = 64 * 2**20
_HASH_BYTES = 32 * 2**20
_FILTERS = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32}
_MAX_RATIO = 1100  # deflate cannot do better than 1032 to 1
_TROUBLE = (
    OSError, KeyError, RuntimeError, ValueError, TypeError, OverflowError, MemoryError, AttributeError, SystemError,
    IndexError,
)  # fmt: skip


_OPEN_ELSEWHERE = ("already open for", "unable to lock file")
"""HDF5's words for a file that another program is writing; its flags stay behind if that program is killed."""


@contextmanager
def explain_errors(path: Path, element: str = "") -> Iterator[None]:
    """Replace errors of h5py in a ``with`` block by an :class:`ArtifactError` that names ``path`` and ``element``."""
    try:
        yield
    except _TROUBLE as error:
        reason = printable(str(error).split("\n")[0], 160) or type(error).__name__
        where = f" at {element}" if element else ""
        if any(words in str(error) for words in _OPEN_ELSEWHERE):
            raise ArtifactError(
                f"cannot read {path}{where}: another program has it open for writing, or was killed while it had; "
                "close it there, or make it again or copy it again"
            ) from error
        raise ArtifactError(
            f"cannot read {path}{where}: the file is truncated or damaged ({reason}); make it again or copy it again"
        ) from error


def _element_error(path: Path, element: str, reason: str) -> ArtifactError:
    return ArtifactError(f"{path}: {printable(element, 100)} {reason}; this is no file that mmgen makes, make it again")


def read_text(item: Any, name: str, path: Path) -> str:
    """Return the text in the attribute ``name`` of an HDF5 group or array.

    Raises:
        ArtifactError: It is missing, no text, or too long.
    """
    element = f"{item.name}@{name}"
    with explain_errors(path, element):
        if name not in item.attrs:
            raise _element_error(path, element, "is missing")
        attribute = item.attrs.get_id(name)
        if attribute.shape != () or h5py.check_string_dtype(attribute.dtype) is None:
            raise _element_error(path, element, "is no text")
        if attribute.dtype.itemsize > MAX_TEXT_BYTES:
            raise _element_error(path, element, "is too long")
        value = item.attrs[name]
        return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def write_text(item: Any, name: str, text: str) -> None:
    """Store ``text`` as UTF-8 in an HDF5 attribute of fixed length, which HDF5's checksum of the object covers."""
    data = text.encode("utf-8")
    item.attrs.create(name, data, dtype=h5py.string_dtype("utf-8", max(1, len(data))))


def require_hard_link(parent: Any, name: str, path: Path) -> None:
    """Refuse a member of a group that is not a hard link: other links may lead outside the file."""
    element = f"{parent.name.rstrip('/')}/{name}"
    link = parent.get(name, getlink=True)
    if link is None:
        raise _element_error(path, element, "is missing")
    if not isinstance(link, h5py.HardLink):
        raise _element_error(path, element, f"is a {type(link).__name__}, expected data in the file itself")


def open_group(parent: Any, name: str, path: Path) -> Any:
    """Return the subgroup ``name`` of ``parent``; refuse links that may lead outside the file.

    Raises:
        ArtifactError: It is missing, a link to elsewhere, or no group.
    """
    with explain_errors(path, name):
        require_hard_link(parent, name, path)
        child = parent[name]
        if not isinstance(child, h5py.Group):
            raise _element_error(path, child.name, "is no group")
        return child


def member_names(parent: Any, path: Path) -> list[str]:
    """Return the sorted names of the arrays and subgroups in a group."""
    with explain_errors(path, parent.name):
        return sorted(parent.keys())


def hash_texts(folder: Any, path: Path, name: str, content: ContentHash) -> None:
    """Add the text attributes of a group to ``content``, a content hash, under ``name``."""
    with explain_errors(path, folder.name):
        content.add(name, "group", (), "", {text: read_text(folder, text, path) for text in sorted(folder.attrs)})


class Array:
    """An array in an open HDF5 file, whose type, shape and storage were checked; reading raises only ArtifactError."""

    def __init__(self, data: Any, path: Path) -> None:
        self.data, self.path, self.element = data, path, str(data.name)
        self.shape: tuple[int, ...] = tuple(data.shape)
        self.dtype: np.dtype = data.dtype.newbyteorder("=")

    def __len__(self) -> int:
        return self.shape[0]

    def text(self, name: str) -> str:
        """Return the text attribute ``name`` of the array."""
        return read_text(self.data, name, self.path)

    def texts(self) -> dict[str, str]:
        """Return all text attributes of the array by name."""
        with explain_errors(self.path, self.element):
            return {name: self.text(name) for name in sorted(self.data.attrs)}

    def hash_into(self, name: str, content: ContentHash) -> None:
        """Add the array to a content hash under ``name``, a bounded number of rows at a time."""
        digest = hashlib.sha256()
        step = max(1, _HASH_BYTES // max(1, math.prod(self.shape[1:]) * self.dtype.itemsize))
        for start in range(0, len(self), step):
            digest.update(bytes_of_array(little_endian(self.read(slice(start, start + step)))))
        content.add(name, dtype_name(self.dtype), self.shape, digest.hexdigest(), self.texts())

    def read(self, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Read rows in the order of ``rows`` (repetitions allowed), in the machine's byte order.

        Rows by number are gathered chunk by chunk, because h5py's own fancy indexing is slow.
        """
        with explain_errors(self.path, self.element):
            if isinstance(rows, slice):
                return np.asarray(self.data[rows]).astype(self.dtype, copy=False)
            result = np.empty((len(rows), *self.shape[1:]), self.dtype)
            step = self.data.chunks[0]
            order = np.argsort(rows, kind="stable")
            wanted = rows[order]
            block_of = wanted // step
            edges = np.flatnonzero(np.diff(block_of, prepend=-1, append=-1)) if len(rows) else np.zeros(0, np.int64)
            for first, last in itertools.pairwise(edges):
                low, high = int(wanted[first]), int(wanted[last - 1]) + 1
                result[order[first:last]] = self.data[low:high][wanted[first:last] - low]
            return result


def open_array(parent: Any, name: str, path: Path, *, dtype: str | None = None, shape: tuple[int | None, ...]) -> Array:
    """Return the array ``name`` of the group ``parent`` after checking type, shape and storage; its data are not read.

    Args:
        parent: Open group.
        name: Name in the group.
        path: The file, for messages.
        dtype: Expected numpy type; None takes any number type.
        shape: Expected shape; None takes any length of that axis.

    Raises:
        ArtifactError: It is not what the format allows, or declares more data than the file holds.
    """
    with explain_errors(path, f"{parent.name.rstrip('/')}/{name}"):
        require_hard_link(parent, name, path)
        data = parent[name]
        element = data.name
        if not isinstance(data, h5py.Dataset):
            raise _element_error(path, element, "is no array")
        found = data.dtype
        if found.kind not in "biuf" or (dtype is not None and found.newbyteorder("=") != np.dtype(dtype)):
            raise _element_error(path, element, f"has type {found}, expected {dtype or 'numbers'}")
        actual = data.shape
        if (
            actual is None
            or len(actual) != len(shape)
            or any(w not in (None, g) for w, g in zip(shape, actual, strict=True))
        ):
            wanted = ", ".join("any" if want is None else str(want) for want in shape)
            raise _element_error(path, element, f"has shape {actual}, expected ({wanted})")
        plan = data.id.get_create_plist()
        filters = {plan.get_filter(i)[0] for i in range(plan.get_nfilters())}
        if plan.get_layout() != h5py.h5d.CHUNKED or h5py.h5z.FILTER_FLETCHER32 not in filters or filters - _FILTERS:
            raise _element_error(path, element, "is not stored in checksummed chunks with gzip only")
        size, chunk = data.size * found.itemsize, int(np.prod(data.chunks, dtype=object)) * found.itemsize
        held = data.id.get_storage_size()
        if chunk > _MAX_CHUNK_BYTES or size > _MAX_RATIO * held:
            raise _element_error(
                path, element, f"declares {size} bytes in chunks of {chunk} where the file holds {held}"
            )
        return Array(data, path)


def write_header(file: Any, header: Header) -> None:
    write_text(file, "mmgen", header_to_json(header))


class ArrayWriter:
    """Writer of an array of known shape from its first row to its last, which also hashes the bytes.

    Args:
        parent: Open group.
        name: Name in the group.
        shape: Final shape, rows first.
        dtype: Number type.
        chunk_bytes: Size of a chunk before compression, roughly.
        compression: gzip level, 1 to 9.
        texts: Text attributes of the array.
    """

    def __init__(
        self, parent: Any, name: str, shape: tuple[int, ...], dtype: Any,
        chunk_bytes: int = CHUNK_BYTES, compression: int = 1, texts: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.shape, self.dtype = shape, np.dtype(dtype).newbyteorder("<")
        row_bytes = max(1, int(np.prod(shape[1:])) * self.dtype.itemsize)
        rows = max(1, min(chunk_bytes // row_bytes, max(1, shape[0])))
        self.data = parent.create_dataset(
            name, shape, self.dtype,
            # HDF5 knows no chunks without elements, and none larger than an array that cannot grow.
            chunks=(rows, *(max(1, n) for n in shape[1:])), maxshape=tuple(n or None for n in shape),
            compression="gzip", compression_opts=compression, shuffle=self.dtype.itemsize > 1, fletcher32=True,
        )  # fmt: skip
        self._buffer = np.empty((rows, *shape[1:]), self.dtype)
        self._filled = 0
        self.written = 0
        self._hash = hashlib.sha256()
        self._texts = dict(texts or {})
        for key, text in self._texts.items():
            write_text(self.data, key, text)

    def append(self, rows: np.ndarray) -> None:
        """Write the next rows, which follow those of the last call."""
        rows = little_endian(rows)
        self._hash.update(bytes_of_array(rows))
        taken = 0
        while taken < len(rows):
            n = min(len(rows) - taken, len(self._buffer) - self._filled)
            self._buffer[self._filled : self._filled + n] = rows[taken : taken + n]
            self._filled += n
            taken += n
            if self._filled == len(self._buffer):
                self.flush()

    def flush(self) -> None:
        """Write the buffered rows to the file; only the last call may write less than a chunk."""
        if self._filled:
            self.data[self.written : self.written + self._filled] = self._buffer[: self._filled]
            self.written += self._filled
            self._filled = 0

    def shrink(self, rows: int) -> None:
        """Let the array have ``rows`` rows in the end, not fewer than are written."""
        self.shape = (rows, *self.shape[1:])
        self.data.resize(self.shape)

    def hash_into(self, name: str, content: ContentHash) -> None:
        """Add the array to a content hash under ``name``, once all rows are written."""
        content.add(name, dtype_name(self.dtype), self.shape, self._hash.hexdigest(), self._texts)


def write_array(parent: Any, name: str, values: np.ndarray) -> ArrayWriter:
    """Write a whole array from memory into the group ``parent`` as ``name``."""
    writer = ArrayWriter(parent, name, values.shape, values.dtype)
    writer.append(values)
    writer.flush()
    return writer
