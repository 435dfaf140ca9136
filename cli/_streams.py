"""Safe standard streams: closed, full or endless ones cause no traceback.

Talk that nobody can hear is dropped, since it must not end an hour's work. Results that cannot be printed end the
command: whoever waits for them has to know.
"""

import errno
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from mmgen.core.errors import MmgenError, reason_of
from mmgen.core.plain_text import MARKS, NotText, text_of

__all__ = ["ReaderLeft", "guarded_streams", "read_stdin"]

_MOST_BYTES = 1 << 20
"""What stdin may hold: paths, one per line."""


class ReaderLeft(MmgenError):
    """The reader of stdout has gone (``| head``): the command ends silently with exit code 1."""


class _Guarded:
    """A text stream that calls :meth:`_failed` after an error, and then writes nowhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._dead = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        if not self._dead:
            try:
                self._stream.write(text)
            except UnicodeEncodeError:  # a path with bytes that are no text; or a terminal that knows few letters
                self.write(_as_the_stream_can(text, self._stream))
            except OSError as error:
                self._fail(error)
        return len(text)

    def flush(self) -> None:
        if not self._dead:
            try:
                self._stream.flush()
            except OSError as error:
                self._fail(error)

    def _fail(self, error: OSError) -> None:
        self._dead = True
        with suppress(OSError, ValueError, AttributeError):
            # What is buffered still must go somewhere, or Python complains about it at exit.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            self._stream.flush()
        self._failed(error)

    def _failed(self, error: OSError) -> None:
        """Handle the error after which nothing can be written."""
        raise NotImplementedError  # each stream has its own: talk is dropped, results are lost work


class _Talk(_Guarded):
    """stderr, whose errors are ignored."""

    def _failed(self, error: OSError) -> None:
        """Nobody is there to be told."""


class _Results(_Guarded):
    """stdout, whose errors end the command."""

    def _failed(self, error: OSError) -> None:
        if error.errno == errno.EPIPE:
            raise ReaderLeft("") from None
        why = os.strerror(error.errno or errno.EIO).lower()
        raise MmgenError(
            f"cannot write results to stdout: {why}; send them to a file with room or to another command, "
            "files that were made are there"
        ) from None


class _Closed:
    """stdout that was closed before the command began."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return False

    def flush(self) -> None:
        """Nothing was written."""

    def write(self, text: str) -> int:
        raise MmgenError("cannot write results to stdout: it is closed; send them to a file, or to /dev/null")


def _as_the_stream_can(text: str, stream: TextIO) -> str:
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _occupy_closed_descriptors() -> None:
    """Open closed descriptors 0, 1 and 2, so that no file gets their numbers and others' output."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            with suppress(OSError):
                opened = os.open(os.devnull, os.O_RDWR)  # the lowest that is free
                if opened != number:
                    os.dup2(opened, number)
                    os.close(opened)


def _one_line(message: Warning | str, category: type[Warning], *_: Any) -> None:
    """Print a library's warning as a note of one line, without its path and source code."""
    from mmgen.cli._console import say
    from mmgen.core.errors import clip

    first = (str(message).strip().splitlines() or [""])[0]
    say(f"note: {clip(first, 200)} ({category.__name__})")


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Make the streams safe in this block, and warnings of libraries one line each."""
    _occupy_closed_descriptors()
    before, shown = (sys.stdout, sys.stderr), warnings.showwarning
    results: Any = _Closed() if sys.stdout is None else _Results(sys.stdout)
    nowhere = open(os.devnull, "w", encoding="utf-8") if sys.stderr is None else None  # noqa: SIM115
    talk: Any = _Talk(nowhere or sys.stderr)
    sys.stdout, sys.stderr = results, talk
    with warnings.catch_warnings():
        warnings.showwarning = _one_line  # type: ignore[assignment]  # it takes them all
        try:
            yield
        finally:
            warnings.showwarning = shown
            sys.stdout, sys.stderr = before
            if nowhere is not None:
                nowhere.close()


def read_stdin() -> str:
    """Read stdin as text in which paths can be found."""
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
        return text_of(data)
    except NotText as error:
        raise MmgenError(f"cannot read a path from stdin: {error}; give the path itself instead of '-'") from None
