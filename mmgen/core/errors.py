"""Errors that users can cause.

Every error that a user can cause is an :class:`MmgenError` whose text is one sentence: what, got, expected, what to do.
The command line prints that sentence and leaves with ``exit_code``; anything else is a bug and keeps its traceback.
"""

import difflib
import errno
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_LONGEST_WORD = 300
_LONGEST_SENTENCE = 2_000
_SHOWN = 8  # names that a message lists of many
_LONGEST_NAME = 100
"""Characters of a name that a message repeats, and that are compared with known names."""


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


_ADVICE = {
    errno.EACCES: "choose a folder that you may write to",
    errno.EAGAIN: "close other programs, or use fewer --workers",
    errno.EDQUOT: "free some space, or choose another folder",
    errno.EFBIG: "choose a folder that takes files of this size",
    errno.EIO: "check the disk",
    errno.EISDIR: "choose the name of a file",
    errno.ELOOP: "choose another path",
    errno.EMFILE: "raise the limit (ulimit -n)",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENFILE: "close other programs",
    errno.ENOMEM: "close other programs, or ask for less at a time",
    errno.ENOSPC: "free some space, or choose another folder",
    errno.EPERM: "choose a folder that you may write to",
    errno.EROFS: "choose a folder that you may write to",
}


def advice_of(error: OSError) -> str:
    """Return what helps against an error of the system, such as "free some space"; "" for what a bug may be."""
    return _ADVICE.get(error.errno or 0, "")


def reason_of(error: BaseException) -> str:
    """Return the reason in an error of the system or a library, such as "no such file or directory".

    Example:
        >>> reason_of(FileNotFoundError(2, "No such file or directory", "a.h5"))
        'no such file or directory'
    """
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()


def find_nearest_name(name: str, names: Sequence[str]) -> str | None:
    """Return the known name that is most similar to a misspelt ``name``; None if none is similar enough.

    Example:
        >>> find_nearest_name("lst", ["list", "plot"]), find_nearest_name("version", ["train", "eval"])
        ('list', None)
    """
    # 0.6 allows two errors in a word of five letters, but not a word that shares only half its letters.
    by_lower_case = {known.lower(): known for known in reversed(names)}
    near = difflib.get_close_matches(name[:_LONGEST_NAME].lower(), by_lower_case, n=1, cutoff=0.6)
    return by_lower_case[near[0]] if near else None


def _find_nearest_path(path: Path) -> Path | None:
    """Return the path of which a missing one is a misspelling, in its name or those of its folders; None if of none."""
    parent = path.parent if path.parent.is_dir() else _find_nearest_path(path.parent)
    if parent is None or path == path.parent:
        return None
    with suppress(OSError):  # a folder that may not be listed
        names = [one.name for one in parent.iterdir() if not one.name.startswith(".")]
        near = path.name if path.name in names else find_nearest_name(path.name, names)
        return parent / near if near else None
    return None


def advise_path(path: Path, advice: str) -> str:
    """Return "did you mean PATH?" for a missing path that resembles one that is there, else ``advice``."""
    near = _find_nearest_path(path)
    if near == path:  # a link whose target is gone is there, and is not
        return "it is a link to what is not there; make it anew"
    return f"did you mean {near}?" if near else advice


def format_unknown_name(
    noun: str, name: str, names: Sequence[str], *, suggestion: str | None = None, list_command: str = ""
) -> str:
    """Format the message about an unknown name, with a suggestion and a list of known names.

    Args:
        noun: Noun of the named thing ("objective").
        name: The unknown name.
        names: The known names.
        suggestion: Name to suggest; "" for none, by default the most similar one.
        list_command: Command that lists all names, for messages about many.

    Example:
        >>> format_unknown_name("objective", "tebo", ["elbo", "telbo"])
        "unknown objective 'tebo': did you mean 'telbo'? Available: elbo, telbo"
        >>> format_unknown_name("letter", "j5z7", [*"abcdefghij"])
        "unknown letter 'j5z7': Available: j, a, b, c, d, e, f, g and 2 more"
    """
    near = find_nearest_name(name, names) if suggestion is None else suggestion
    hint = f"did you mean '{near}'? " if near else ""
    available = f"Available: {join_names(name, names, list_command)}" if names else "there is none"
    return f"unknown {noun} '{clip(name, _LONGEST_NAME)}': {hint}{available}"


def join_names(name: str, names: Sequence[str], list_command: str = "") -> str:
    """Join known names for a message about ``name``: all, or the eight most similar and the command that lists all."""
    quoted = [f"'{known}'" if "," in known else known for known in _most_similar_names(name, names)]
    left = len(names) - len(quoted)
    return ", ".join(quoted) + (
        f" and {left:,} more{f', which {list_command} lists' if list_command else ''}" if left else ""
    )


def _most_similar_names(name: str, names: Sequence[str]) -> Sequence[str]:
    """Return all names in order, or if there are more than eight, the eight most similar to ``name``."""
    if len(names) <= _SHOWN:
        return names
    matcher = difflib.SequenceMatcher(b=name[:_LONGEST_NAME])

    def dissimilarity(known: str) -> tuple[bool, float]:
        matcher.set_seq1(known[:_LONGEST_NAME])
        return name not in known, -matcher.ratio()

    return sorted(names, key=dissimilarity)[:_SHOWN]


_TYPED = re.compile(r"\bmmgen [^;:,]*|--[a-z][a-z-]*")  # a command to type, or an option


class MmgenError(Exception):
    """Base of errors that the user can fix; the message is one sentence, and names options of the command line."""

    exit_code = 1

    def name_arguments(self, arguments: Mapping[str, str]) -> None:
        """Name arguments of a Python function instead of options, but for those of commands to type.

        Args:
            arguments: Arguments by option: {"--from": "source"}; other options stay.

        Example:
            >>> error = UsageError("--from got edges, expected a kind of --to; mmgen eval --metric fid measures both")
            >>> error.name_arguments({"--from": "source"})
            >>> print(error)
            source got edges, expected a kind of --to; mmgen eval --metric fid measures both
        """

        def name(typed: re.Match[str]) -> str:
            word = typed[0]
            return word if word.startswith("mmgen") else arguments.get(word, word)

        self.args = (_TYPED.sub(name, str(self.args[0])), *self.args[1:]) if self.args else ()

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


def check_finite(made: Any, what: str) -> None:
    """Raise an error unless all numbers of a tensor are finite, which finite weights that are too large do not make.

    Args:
        made: The tensor.
        what: What it is, in the plural ("pictures of m.safetensors").

    Raises:
        DataError: A number is NaN or infinite.
    """
    tracer = sys.modules.get("torch.fx.experimental.proxy_tensor")
    if tracer is not None and tracer.get_proxy_mode() is not None:  # a network that is traced has no numbers yet
        return
    if not made.isfinite().all():
        raise DataError(
            f"{what} hold NaN or infinite numbers, expected finite ones: its weights are too large, as of a training "
            "that diverged; train it again with a lower learning rate"
        )


class TrainingError(MmgenError):
    """Error for a training that cannot go on, because of NaN or an infinite gradient."""


class Interrupted(BaseException):
    """End of work after a signal such as Ctrl-C, once its state is saved.

    It is no Exception: a script that goes on with its next run after ``except Exception`` ends too.
    """

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number
