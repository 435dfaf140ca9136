"""Downloads into the user's cache from several mirrors, checked against known hashes."""

import hashlib
import http.client
import urllib.request
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path

from mmgen.core.errors import DataError, reason_of
from mmgen.core.progress import Progress, Work

__all__ = ["Files", "cache_folder", "download", "is_complete"]

_BLOCK = 1 << 16
_TIMEOUT = 30.0  # seconds without a byte before the next mirror is tried

Files = Mapping[str, tuple[str, int]]
"""SHA-256 (hexadecimal) and size in bytes by file name; "" and 0 where the reader of the file checks its content."""


def cache_folder(name: str) -> Path:
    """Return the user's folder for downloads of this name (``~/.cache/mmgen/NAME`` on Linux)."""
    import pooch

    return Path(pooch.os_cache("mmgen")) / name


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
            while block := answer.read(_BLOCK):
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
