"""Errors that users can cause.

Every error that a user can cause is an :class:`MmgenError` whose text is one sentence: what, got, expected, what to do.
The command line prints that sentence and leaves with ``exit_code``; anything else is a bug and keeps its traceback.
"""

import re

__all__ = [
    "ArtifactError",
    "DataError",
    "Interrupted",
    "MissingParentError",
    "MmgenError",
    "SettingsError",
    "TrainingError",
    "UsageError",
    "clip",
    "reason_of",
]

_LONGEST_WORD = 300
_LONGEST_SENTENCE = 2_000


def clip(text: str, limit: int) -> str:
    """Shorten ``text`` to about ``limit`` characters by cutting out its middle.

    Example:
        >>> clip("abcdefghijklmnopqrstuvwxyz", 11)
        'abcde ... z'
    """
    if len(text) <= limit:
        return text
    tail = max(1, (limit - 5) // 4)
    return f"{text[: limit - 5 - tail]} ... {text[-tail:]}"


def reason_of(error: BaseException) -> str:
    """Return the reason in an error of the system or a library, such as "no such file or directory".

    Example:
        >>> reason_of(FileNotFoundError(2, "No such file or directory", "a.h5"))
        'no such file or directory'
    """
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()


class MmgenError(Exception):
    """Base of errors that the user can fix; the message is one sentence."""

    exit_code = 1

    def __str__(self) -> str:
        """Return the message, with its middle cut out if it is very long."""
        whole = super().__str__()
        if len(whole) <= _LONGEST_WORD:
            return whole
        return clip(re.sub(r"\S{300,}", lambda word: clip(word[0], _LONGEST_WORD), whole), _LONGEST_SENTENCE)


class UsageError(MmgenError):
    """Error for an invalid argument or option: an unknown name, or values that exclude each other."""

    exit_code = 2


class SettingsError(UsageError):
    """Error for invalid settings; the message names all of them."""


class ArtifactError(MmgenError):
    """Error for a file that cannot be read or written: damaged, not made by mmgen, or of the wrong kind."""


class FormatVersionError(ArtifactError):
    """Error for a file in another version of mmgen's file format."""


class MissingParentError(ArtifactError):
    """Error for a file that is needed, because another was made from it, and is missing."""


class DataError(MmgenError):
    """Error for source data that are missing, malformed or have forbidden values."""


class TrainingError(MmgenError):
    """Error for a training that cannot go on, because of NaN or an infinite gradient."""


class Interrupted(MmgenError):
    """Error that ends work after a signal such as Ctrl-C, once its state is saved."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number
