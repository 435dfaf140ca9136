"""Safe standard streams: closed, full or endless ones cause no traceback.

Messages that cannot be printed are dropped, since they must not end an hour's work. Results that cannot be printed end
the command with an error.
"""

import errno
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from mmgen.core.errors import MmgenError, clip, reason_of
from mmgen.core.plain_text import MARKS, NotTextError, decode_text
from mmgen.core.processes import stop_handlers

_MOST_BYTES = 1 << 20
"""Limit of stdin, which holds paths, one per line."""


class ReaderLeft(MmgenError):
    """Error that the reader of stdout has ended (``| head``): the command ends silently with exit code 1."""


class _GuardedStream:
    """Text stream that calls :meth:`_handle_failure` at its first error, and discards later text."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_disabled = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        if not self._is_disabled:
            try:
                self._stream.write(text)
            except UnicodeEncodeError:  # a path with bytes that are no text; or a terminal that knows few letters
                self.write(_escape_unencodable(text, self._stream))
            except OSError as error:
                self._discard_later_text(error)
        return len(text)

    def flush(self) -> None:
        if not self._is_disabled:
            try:
                self._stream.flush()
            except OSError as error:
                self._discard_later_text(error)

    def _discard_later_text(self, error: OSError) -> None:
        self._is_disabled = True
        with suppress(OSError, ValueError, AttributeError):
            # Buffered text must go somewhere, or Python reports it at exit.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            self._stream.flush()
        self._handle_failure(error)

    def _handle_failure(self, error: OSError) -> None:
        """Handle the error after which nothing can be written."""
        raise NotImplementedError


class _GuardedStderr(_GuardedStream):
    """Wrapper of stderr that ignores errors."""

    def _handle_failure(self, error: OSError) -> None:
        """Do nothing, since stderr cannot be written."""


class _GuardedStdout(_GuardedStream):
    """Wrapper of stdout that ends the command at an error."""

    def _handle_failure(self, error: OSError) -> None:
        if error.errno == errno.EPIPE:
            raise ReaderLeft("") from None
        why = os.strerror(error.errno or errno.EIO).lower()
        raise MmgenError(
            f"cannot write results to stdout: {why}; send them to a file on a disk with space or to another command; "
            "finished files are kept"
        ) from None


class _ClosedStdout:
    """Replacement of a stdout that was closed before the command began."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return False

    def flush(self) -> None:
        """Do nothing, since nothing was written."""

    def write(self, text: str) -> int:
        raise MmgenError("cannot write results to stdout: it is closed; send them to a file, or to /dev/null")


def _escape_unencodable(text: str, stream: TextIO) -> str:
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _occupy_closed_descriptors() -> None:
    """Open /dev/null for those of the descriptors 0, 1 and 2 that are closed, so that no file gets their number."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            with suppress(OSError):
                descriptor = os.open(os.devnull, os.O_RDWR)  # the lowest that is free
                if descriptor != number:
                    os.dup2(descriptor, number)
                    os.close(descriptor)


def _print_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    """Print a library's warning as a note of one line, without its path and source code."""
    from mmgen.cli._console import say

    first = (str(message).strip().splitlines() or [""])[0]
    say(f"note: {clip(first, 200)} ({category.__name__})")


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Make stdout and stderr safe in this block, and print warnings of libraries in one line each."""
    _occupy_closed_descriptors()
    original_streams, show_warning = (sys.stdout, sys.stderr), warnings.showwarning
    guarded_stdout: Any = _ClosedStdout() if sys.stdout is None else _GuardedStdout(sys.stdout)
    nowhere = open(os.devnull, "w", encoding="utf-8") if sys.stderr is None else None  # noqa: SIM115
    guarded_stderr: Any = _GuardedStderr(nowhere or sys.stderr)
    sys.stdout, sys.stderr = guarded_stdout, guarded_stderr
    with warnings.catch_warnings():
        warnings.showwarning = _print_warning  # type: ignore[assignment]  # it accepts all arguments
        try:
            yield
        finally:
            warnings.showwarning = show_warning
            sys.stdout, sys.stderr = original_streams
            if nowhere is not None:
                nowhere.close()


def read_stdin() -> str:
    """Read stdin, which holds paths, as text.

    Raises:
        MmgenError: Stdin is closed, too long, or no text.
    """
    if sys.stdin is None:
        raise MmgenError("expected a path on stdin, which is closed; give the path itself instead of '-'")
    try:
        source = getattr(sys.stdin, "buffer", sys.stdin)
        parts, size = [], 0
        while size <= _MOST_BYTES and (part := source.read(1 << 16)):
            parts.append(part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part)
            size += len(parts[-1])
    except (OSError, ValueError) as error:
        why = f"cannot read a path from stdin: {reason_of(error)}"
        raise MmgenError(f"{why}; give the path itself instead of '-'") from None
    if size > _MOST_BYTES:
        raise MmgenError(
            "expected a path on stdin, got more than a megabyte; '-' reads what another mmgen command prints"
        )
    data = b"".join(parts)
    if not data.startswith(MARKS):
        return os.fsdecode(data)  # a path may be of any bytes
    try:
        return decode_text(data)
    except NotTextError as error:
        raise MmgenError(f"cannot read a path from stdin: {error}; give the path itself instead of '-'") from None


@contextmanager
def ignore_first_interrupt() -> Iterator[None]:
    """Ignore the first signal that asks to stop in this block, in which a finished file's path is printed."""
    # Else the command could report an interruption although the file is complete, and refuse to replace it when
    # repeated.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = stop_handlers()

    def restore_handlers() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in before:
        signal.signal(number, lambda *_: restore_handlers())
    try:
        yield
    finally:
        restore_handlers()
