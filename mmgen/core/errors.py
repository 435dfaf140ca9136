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
    """Return ``text`` without its middle if it has more than ``limit`` characters.

    Example:
        >>> clip("abcdefghijklmnopqrstuvwxyz", 11)
        'abcde ... z'
    """
    if len(text) <= limit:
        return text
    tail = max(1, (limit - 5) // 4)
    return f"{text[: limit - 5 - tail]} ... {text[-tail:]}"


def reason_of(error: BaseException) -> str:
    """Return the reason of an error, such as "no such file or directory", as a part of a sentence.

    Example:
        >>> reason_of(FileNotFoundError(2, "No such file or directory", "a.h5"))
        'no such file or directory'
    """
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()


class MmgenError(Exception):
    """A mistake or condition that the user can fix; the message is one sentence."""

    exit_code = 1

    def __str__(self) -> str:
        """Return the sentence; a very long one loses its middle."""
        whole = super().__str__()
        if len(whole) <= _LONGEST_WORD:
            return whole
        return clip(re.sub(r"\S{300,}", lambda word: clip(word[0], _LONGEST_WORD), whole), _LONGEST_SENTENCE)


class UsageError(MmgenError):
    """An invalid argument: unknown name, impossible combination."""

    exit_code = 2


class SettingsError(UsageError):
    """Invalid settings; the message names all of them."""


class ArtifactError(MmgenError):
    """A file that cannot be used: unreadable, foreign, truncated, of another kind or version."""


class FormatVersionError(ArtifactError):
    """An artifact of another format version."""


class MissingParentError(ArtifactError):
    """A missing file from which this one was made; the message names the command that makes it."""


class DataError(MmgenError):
    """Source data that are missing, malformed or hold forbidden values."""


class TrainingError(MmgenError):
    """Failed training (NaN, infinite gradient); the message names the term and the step."""


class Interrupted(MmgenError):
    """Work that a signal stopped after saving; ``exit_code`` is 128 + the signal's number (130, 143)."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number
