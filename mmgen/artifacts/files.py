"""Writing files so that a reader never sees half of one, and looking at files before trusting them."""

import errno
import itertools
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mmgen.core.errors import ArtifactError, advice_of, reason_of
from mmgen.core.parsing import MalformedError, read_text

SUMS = "SHA256SUMS"
"""Name of the file of checksums in an exported folder."""
_OF_PATHS = {errno.ENOENT: "choose another folder", errno.ENOTDIR: "choose a path in a folder"}

_looked_at: "dict[str, tuple[int, ...] | None]" = {}
"""What was at a path when :func:`note_output` looked, by its resolved name."""

_STALE_SECONDS = 24 * 3600
"""A temporary file untouched for this long belongs to a writer that was killed."""


def make_write_error(final: Path, error: OSError) -> ArtifactError:
    """Return the error, with advice, for a write to ``final`` that failed with ``error``."""
    code = error.errno or errno.EIO
    if code == errno.ENOENT and not final.parent.exists():
        return ArtifactError(f"cannot write {final}: there is no folder {final.parent}; make it first")
    advice = advice_of(error) or _OF_PATHS.get(code, "choose another folder")
    return ArtifactError(f"cannot write {final}: {os.strerror(code).lower()}; {advice}")


_STRANGE = {
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def list_visible_files(folder: Path) -> list[Path]:
    """Return the visible files of a folder, sorted by name, with those that cannot be looked at: reading tells why.

    Raises:
        OSError: The folder cannot be read.
    """
    with os.scandir(folder) as entries:
        return sorted(
            folder / entry.name for entry in entries if not entry.name.startswith(".") and _may_be_file(entry)
        )


def _may_be_file(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_file()
    except OSError:  # a loop of links, a link to a name that is too long
        return True


def check_replaceable(final: Path) -> None:
    """Raise an error unless a file may be written at ``final``: no file, a regular file, or a link to one is there.

    A link is replaced and its target stays as it is, so that nobody chooses by a link what we overwrite. Devices,
    pipes, sockets and links to them are refused, because others need them.

    Raises:
        ArtifactError: There is something else, no folder to hold it, or a name that the file system does not take.
    """
    final = Path(final)
    try:
        mode = os.stat(final).st_mode
    except FileNotFoundError as error:
        try:
            os.stat(final.parent)
        except OSError:
            raise make_write_error(final, error) from None
        mode = stat.S_IFREG
    except ValueError:
        raise ArtifactError(f"cannot write {str(final)!r}: it holds a zero character; choose another name") from None
    except OSError as error:
        if error.errno != errno.ELOOP or not final.is_symlink():  # a link to itself is one that leads nowhere
            raise make_write_error(final, error) from None
        mode = stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise make_write_error(final, IsADirectoryError(errno.EISDIR, ""))
    if not stat.S_ISREG(mode):
        what = _STRANGE.get(stat.S_IFMT(mode), "no regular file")
        raise ArtifactError(f"cannot write {final}: it is {what}, which would be replaced; choose the name of a file")
    if final.is_symlink() and os.readlink(final).startswith(("/proc/", "/dev/")):  # /dev/stdout that leads to a file
        raise ArtifactError(f"cannot write {final}: it is a link of the system; choose the name of a file")


def check_writable(final: Path) -> None:
    """Raise an error if no file can be created in the folder of ``final``, before hours of work.

    Permissions alone do not say so: some file systems refuse even the superuser.

    Raises:
        ArtifactError: It takes none.
    """
    final = Path(final)
    tried = temporary_path(_resolve_folder(final))
    try:
        os.close(os.open(tried, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise make_write_error(final, error) from None
    finally:
        with suppress(OSError):
            os.unlink(tried)


def _resolve_folder(final: Path) -> Path:
    """Resolve links in the path of the folder of ``final``, and keep its last name as it is."""
    return Path(os.path.realpath(final.parent)) / final.name


def _identify(path: Path) -> tuple[int, ...] | None:
    """Return what distinguishes the file at ``path`` from any other one, without following a link; None for none."""
    with suppress(OSError):
        status = os.lstat(path)
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
    return None


def note_output(final: Path) -> None:
    """Remember what is at ``final`` before minutes of work: its next :func:`atomic_path` replaces nothing else."""
    target = _resolve_folder(Path(final))
    _looked_at[str(target)] = _identify(target)


def was_written_meanwhile(final: Path) -> bool:
    """Return whether something else is at ``final`` now than when :func:`note_output` looked, which is forgotten."""
    target = _resolve_folder(Path(final))
    return _looked_at.pop(str(target), now := _identify(target)) != now


def _link(temporary: Path, name: Path) -> bool:
    """Give a finished file a name; return False, without replacing anything, if the name is taken."""
    try:
        os.link(temporary, name)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if os.path.lexists(name):
            return False
        os.replace(temporary, name)
    return True


def numbered(path: Path) -> Iterator[Path]:
    """Yield names like ``path`` for what was made too late: ``model-2.safetensors``, ``model-3.safetensors``, ..."""
    return (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in itertools.count(2))


def written_meanwhile_error(final: Path, kept: Path) -> ArtifactError:
    """Return the error of a command that came too late to write ``final``, and has written ``kept`` instead."""
    return ArtifactError(
        f"{final} was written by another command while this one worked, and stays as it is; what this one made is "
        f"{kept}: keep the one that you want, and give each command an --output of its own"
    )


def _take_name(temporary: Path, target: Path, final: Path) -> None:
    """Give a finished file its name, unless another program took that since :func:`note_output` looked."""
    is_new = _looked_at.get(str(target), ()) is None
    if not was_written_meanwhile(target):
        if not is_new:
            os.replace(temporary, target)
            return
        if _link(temporary, target):
            return
    kept = next(name for name in numbered(target) if _link(temporary, name))
    raise written_meanwhile_error(final, final.with_name(kept.name))


def _temporary_prefix(final: Path) -> str:
    return f".{final.name[:60]}."


def temporary_path(final: Path) -> Path:
    """Return a hidden path beside ``final`` that nothing has."""
    return final.parent / f"{_temporary_prefix(final)}{secrets.token_hex(6)}.part"


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_stale(folder: Path, prefix: str) -> None:
    """Remove temporary files that killed writers have left; errors are ignored."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.startswith(prefix) and entry.name.endswith(".part"):
                with suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > _STALE_SECONDS:
                        os.unlink(entry.path)


@contextmanager
def atomic_path(final: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; it is renamed to ``final`` when the block ends without an error.

    The temporary file is hidden and in the same folder; it is synced, renamed over ``final`` in one step, and the
    folder is synced. Any error removes it and leaves an older ``final`` as it was. A link is replaced, never followed.

    Raises:
        ArtifactError: The file system refuses (full, read-only, no such folder), or ``final`` is no regular file; or
            another program has written it since :func:`note_output`, and this file has another name.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with atomic_path(Path(folder) / "notes.txt") as path:
        ...         _ = path.write_text("whole or not at all")
        ...     (Path(folder) / "notes.txt").read_text()
        'whole or not at all'
    """
    check_replaceable(final)
    target = _resolve_folder(final)
    temporary = temporary_path(target)
    try:
        _remove_stale(target.parent, _temporary_prefix(target))
        yield temporary
        _sync(temporary, os.O_RDWR)  # Windows syncs no file that is only read
        _take_name(temporary, target, Path(final))
        # The data are safe already; some file systems cannot sync a folder, and that must not fail the work.
        with suppress(OSError):
            _sync(target.parent, os.O_RDONLY)
    except OSError as error:
        # Trouble with a network or with another file that the block happened to read is not ours to explain.
        ours = {None, *map(os.fspath, (temporary, target, target.parent))}
        if not (advice_of(error) or error.errno in _OF_PATHS) or error.filename not in ours:
            raise
        raise make_write_error(Path(final), error) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def atomic_folder(final: Path, replaces: bool = False) -> Iterator[Path]:
    """Yield a temporary folder; it gets the name ``final`` when the block ends without an error, else it is removed.

    A folder with files is replaced only if it ``replaces`` one, which :func:`note_output` has looked at.

    Raises:
        ArtifactError: The file system refuses; or another program has made a folder of this name meanwhile, and this
            one has another.
    """
    part, earlier = temporary_path(final), temporary_path(final)
    try:
        part.mkdir(parents=True)
        yield part
        if replaces and not was_written_meanwhile(final) and final.is_dir():
            os.rename(final, earlier)
        for name in itertools.chain([final], numbered(final)):
            try:
                os.rename(part, name)  # which replaces no folder with files
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                continue
            if name != final:
                raise written_meanwhile_error(final, name)
            break
    except OSError as error:
        raise make_write_error(final, error) from None
    finally:
        with suppress(OSError):
            os.rename(earlier, final)  # where the new folder did not get the name
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(earlier, ignore_errors=True)


def write_text_atomic(final: Path, text: str) -> None:
    """Write ``text`` as UTF-8 to ``final``; a failed write leaves the earlier file.

    Raises:
        ArtifactError: The file system refuses.
    """
    with atomic_path(final) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


def open_internal_file(path: str | Path, flags: int) -> int:
    """Open a log or lock file, created if it is missing, and return its file descriptor.

    A link in its place is replaced. A pipe does not block.

    Raises:
        OSError: The file system refuses.
    """
    with suppress(FileNotFoundError):  # somebody else was faster
        if os.path.islink(path):
            os.unlink(path)
    flags |= os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    return os.open(path, flags, 0o666)


def try_lock(path: Path) -> int | None:
    """Lock a file, created if it is missing, and return its descriptor; None while another program holds the lock.

    Raises:
        ImportError: The system has no such locks.
        OSError: The file system refuses.
    """
    import fcntl

    while True:
        handle = open_internal_file(path, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except FileNotFoundError:  # who held it has removed it
            pass
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def make_internal_folder(path: Path) -> Path:
    """Create a folder for internal files, such as ``.stages``; a link in its place is replaced.

    Returns:
        ``path``.

    Raises:
        OSError: The file system refuses.
    """
    if os.path.islink(path):
        os.unlink(path)
    path.mkdir(parents=True, exist_ok=True)
    return path


def leads_out_of_folder(path: Path, folder: Path) -> bool:
    """Return True if links lead ``path`` out of ``folder``; the path need not exist."""
    root = os.path.realpath(folder)
    return os.path.commonpath([root, os.path.realpath(path)]) != root


def regular_file_size(path: Path) -> int:
    """Return the size of a file in bytes; refuse folders, devices and pipes, which could block a reader for ever.

    Raises:
        ArtifactError: There is no such file, or it is a folder, a device or a pipe.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise ArtifactError(f"cannot read {path}: {reason_of(error)}; check the path") from None
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "a device or a pipe"
        raise ArtifactError(f"cannot read {path}: it is {what}, expected a file that mmgen made; name one")
    return status.st_size


_EXPORTED = {
    "model": ("model.safetensors",),
    "dataset": (),
    "classifier": ("judge.safetensors",),
    "file of scores": ("scores.jsonl",),
}
"""Files in an exported folder, by their kind."""


def find_main_exported_file(folder: Path, content: str = "") -> Path:
    """Return the path of the main file in an exported folder; the folder itself if it has none.

    Args:
        folder: A folder.
        content: "model", "dataset", "classifier" or "file of scores"; else the sharpener, the aggregate or the model.
    """
    names = _EXPORTED.get(content, ("sharpener.safetensors", "aggregate.safetensors", "model.safetensors"))
    listed = list_exported_files(folder)  # files that they do not name are somebody else's
    return next((folder / name for name in names if (name in listed if listed else (folder / name).exists())), folder)


def list_exported_files(folder: Path) -> list[str]:
    """Return the names of the files in an exported folder, from its list of checksums; [] without a readable list."""
    try:
        lines = read_text(folder / SUMS).split("\n")
    except (OSError, MalformedError):
        return []
    return [name for line in lines if (name := line.partition("  ")[2])]
