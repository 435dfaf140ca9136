"""Published files: download, formats (IDX, amat), and comparison with what was published.

Reader for IDX files, the format that MNIST is published in; gzipped or not.

Big-endian: two zero bytes, a type code (8: unsigned byte), the number of dimensions, each as uint32, the data.

Reader for the fixed binarisation of MNIST by Larochelle and Murray: three text files of zeros and ones.

References:
    The Neural Autoregressive Distribution Estimator (Larochelle, Murray, AISTATS 2011),
    https://proceedings.mlr.press/v15/larochelle11a.html
"""

import hashlib
import http.client
import math
import struct
import urllib.request
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import DataError, clip, reason_of
from mmgen.core.foreign import CannotReadError, open_unpacked, read_unpacked
from mmgen.core.progress import Progress, Work

_BLOCK = 2**20


@dataclass(frozen=True)
class SourceComparison:
    """Result of a comparison of the user's files with a published dataset.

    Attributes:
        title: Name of the set.
        where: Place of the data.
        is_published: Whether they are that set; None where it cannot be told.
        why: The difference, or the part that was not compared.
    """

    title: str
    where: str
    is_published: bool | None
    why: str = ""

    @property
    def settings(self) -> dict[str, Any]:
        """Settings to record in the dataset file; {} unless the files are known not to be the published ones."""
        return {"content": f"not {self.title} as published"} if self.is_published is False else {}

    @property
    def notes(self) -> list[str]:
        """Sentences for the user if the files differ from the published dataset, or may differ."""
        if self.is_published is False:
            return [
                f"{self.where} is not {self.title} as published ({self.why}): the dataset says so, and no published "
                "numbers will stand beside its scores"
            ]
        return [f"{self.where} is not verified to be {self.title} ({self.why})"] if self.is_published is None else []


def comparison_notes(content: SourceComparison | None) -> list[str]:
    """Return the notes of a comparison; [] if ``content`` is None."""
    return list(content.notes) if content is not None else []


def published_source(title: str, where: Path | str) -> SourceComparison:
    """Return the result for files that are the published dataset."""
    return SourceComparison(title, str(where), True)


def different_source(title: str, where: Path | str, difference: str) -> SourceComparison:
    """Return the result for files that differ from the published dataset."""
    return SourceComparison(title, str(where), False, difference)


def unverified_source(title: str, where: Path | str, limitation: str) -> SourceComparison:
    """Return the result of a comparison that cannot decide whether files are the published dataset."""
    return SourceComparison(title, str(where), None, limitation)


def compare_sha256(title: str, where: Path | str, sha256: str, published: str) -> SourceComparison:
    """Compare files with a published dataset by a hash of their content.

    Example:
        >>> compare_sha256("MNIST", "folder", "0123456789abcdef", "e10378d1a1706246").notes[0][:92]
        'folder is not MNIST as published (SHA-256 of its content 0123456789ab..., expected e10378d1a'
    """
    if sha256 == published:
        return published_source(title, where)
    return different_source(title, where, f"SHA-256 of its content {sha256[:12]}..., expected {published[:12]}...")


def file_md5(path: Path) -> str:
    """Return the MD5 of a regular file, hexadecimal; "" if it cannot be read."""
    digest = hashlib.md5(usedforsecurity=False)
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError:
        return ""
    return digest.hexdigest()


_DOWNLOAD_BLOCK = 1 << 16
_TIMEOUT = 30.0  # seconds without a byte before the next mirror is tried

Files = Mapping[str, tuple[str, int]]
"""SHA-256 (hexadecimal) and size in bytes by file name; "" and 0 where the reader of the file checks its content."""


def _is_intact(path: Path, sha256: str) -> bool:
    return path.is_file() and (not sha256 or hashlib.sha256(path.read_bytes()).hexdigest() == sha256)


def is_complete(folder: Path, files: Files) -> bool:
    """Return whether the folder holds all files with the right hashes."""
    return all(_is_intact(folder / name, sha256) for name, (sha256, _) in files.items())


class _MirrorError(Exception):
    """Error of a mirror that does not answer, or sends something other than the file."""


def _read_blocks(url: str) -> Iterator[bytes]:
    """Yield the bytes at an address in blocks."""
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
            while block := answer.read(_DOWNLOAD_BLOCK):
                yield block
    except (http.client.HTTPException, OSError) as error:  # URLError is an OSError
        raise _MirrorError(str(error) or type(error).__name__) from None


def _download_file(url: str, path: Path, sha256: str) -> Generator[int, None, str]:
    """Download one file; yields the bytes so far and returns the error, "" if the file is complete."""
    from mmgen.artifacts import atomic_path

    done, digest = 0, hashlib.sha256()
    try:
        with atomic_path(path) as temporary:
            with temporary.open("wb") as file:
                for block in _read_blocks(url):
                    file.write(block)
                    digest.update(block)
                    done += len(block)
                    yield done
            if sha256 and digest.hexdigest() != sha256:
                raise _MirrorError(f"{done} bytes with SHA-256 {digest.hexdigest()[:12]}..., expected {sha256[:12]}...")
    except _MirrorError as error:
        return f"{url}: {error}"
    return ""


def download(folder: Path, files: Files, mirrors: Sequence[str], advice: str) -> Work[Path]:
    """Return work that downloads the missing files into a folder and returns the folder; progress counts bytes.

    Args:
        folder: The cache folder.
        files: SHA-256 and size by name.
        mirrors: Addresses of folders with the files, tried in order.
        advice: Clause for errors on how to get the files otherwise.

    Raises:
        DataError: No mirror has a file (raised as the work is done).
    """
    missing = {name: rest for name, rest in files.items() if not _is_intact(folder / name, rest[0])}

    def download_all() -> Generator[Progress, None, Path]:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot make the cache folder {folder}: {reason_of(error)}; {advice}") from None
        before = 0
        for name, (sha256, size) in missing.items():
            faults = []
            for mirror in mirrors:
                attempt = _download_file(mirror + name, folder / name, sha256)
                while True:
                    try:
                        yield Progress(before + min(next(attempt), size))
                    except StopIteration as stop:
                        fault = stop.value
                        break
                if not fault:
                    break
                faults.append(fault)
            else:
                raise DataError(f"cannot download {name} ({'; '.join(faults)}): {advice}")
            before += size
            yield Progress(before)
        return folder

    total = sum(size for _, size in missing.values())
    return Work(f"downloading {', '.join(missing)}", total, "byte", download_all)


_UNSIGNED_BYTE = 8
_MOST_BYTES = 2**30  # the largest of the MNIST kind, EMNIST by class, has 640 MB


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes, gzipped or not, as an array with this number of dimensions.

    Raises:
        DataError: The file is missing, of another type or shape, truncated, or too long.
    """
    expected = f"an IDX file of unsigned bytes with {dimensions} dimension{'s' if dimensions > 1 else ''}"
    length = 4 + 4 * dimensions
    try:
        with open_unpacked(path) as file:
            header = read_unpacked(file, length)
            is_idx = len(header) == length and header[:4] == bytes((0, 0, _UNSIGNED_BYTE, dimensions))
            shape = struct.unpack(f">{dimensions}I", header[4:]) if is_idx else ()
            size = math.prod(shape)
            data = read_unpacked(file, size + 1) if is_idx and size <= _MOST_BYTES else b""
    except CannotReadError as error:
        raise DataError(f"cannot read {path}: {error}; check the path, or download it again") from None
    if not is_idx or len(data) != size:
        holds = f"its header says {' x '.join(map(str, shape))} bytes, which are not there, or there are more"
        raise DataError(f"{path} is not {expected} ({holds if is_idx else 'it begins otherwise'}); download it again")
    return np.frombuffer(data, np.uint8).reshape(shape)


def read_npy_header(source: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of an ``.npy`` file: shape, Fortran order and type; raise ValueError for another file."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(source)
    if version not in readers:
        raise ValueError(f"an array of format {version}")
    try:
        shape, fortran, dtype = readers[version](source)
    except Exception as error:  # a header is read by Python's parser, whose errors are of several kinds
        raise ValueError(f"a damaged header ({clip(reason_of(error), 100)})") from None
    return shape, fortran, dtype
