"""Bounded parsing of JSON and TOML that other programs wrote, and text that is safe to show.

One parser for everything that is read: headers, logs, scores, settings files and ``--set``. What Python's own parsers
let through and later code stumbles over is refused here: numbers that no float or 64-bit integer holds, nesting without
end, a key twice, megabytes where a line is expected.
"""

import json
import math
import os
import re
import stat
import tomllib
import unicodedata
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from mmgen.core.plain_text import NotText, lines_of, text_of

__all__ = [
    "LOG_ENDING",
    "MAX_DEPTH",
    "MAX_LOG_BYTES",
    "MAX_TEXT_BYTES",
    "Malformed",
    "NotToml",
    "Strange",
    "beginning",
    "flat",
    "leaves",
    "listed",
    "lines_bounded",
    "opening",
    "parse_json",
    "parse_toml",
    "printable",
    "read_bounded",
    "strip_controls",
]

MAX_TEXT_BYTES = 16 * 2**20
"""Largest header, line or settings file, far above honest ones; a larger one is refused unread."""
LOG_ENDING = ".log.jsonl"
"""Ending of training logs."""
MAX_LOG_BYTES = 2**30
"""Limit of a log or a file of scores, whose lines are bounded by :data:`MAX_TEXT_BYTES`."""
MAX_DEPTH = 64
"""Depth of nested tables; files of mmgen have less than ten."""
_MAX_TOML_LETTERS = 2**20  # tomllib is slow, and settings are written by people
_INTEGERS = range(-(2**63), 2**64)  # what numpy, torch and HDF5 can hold
# tomllib needs time and memory that grow with the square of the length of a dotted key.
_LONG_KEY = re.compile(rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{MAX_DEPTH}}}""")


_SENTENCE_ENDS = re.compile(r"(?<!\b(?:al|cf|Eq|vs))(?<!\b(?:Fig|Sec|App|e\.g|i\.e))[.!?](?=\s+(?!\d)|$)")


class Malformed(ValueError):
    """Error in a text, as a phrase without the file's name; safe to show."""


@dataclass(frozen=True)
class Strange:
    """A JSON value beyond the bounds.

    Attributes:
        why: The reason.
    """

    why: Malformed


class NotToml(Malformed):
    """Text that is no TOML."""


def printable(text: str, limit: int = 300) -> str:
    r"""Return the foreign text in a form safe for a message: one line of bounded length without control characters.

    Example:
        >>> printable("red\x1b[2J \u202egreen")
        'red?[2J ?green'
    """
    clipped = strip_controls(text[:limit], keep="")
    return clipped if len(text) <= limit else clipped + "..."


def strip_controls(text: str, keep: str = "\n\t") -> str:
    r"""Remove invisible and control characters from text, which could steer a terminal or hide letters.

    Args:
        text: Any text.
        keep: Letters that stay although they cannot be seen.

    Example:
        >>> strip_controls("two\nlines\x07")
        'two\nlines?'
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in keep else _substitute(letter) for letter in text)


def _substitute(letter: str) -> str:
    return " " if unicodedata.category(letter) == "Zs" else "?"  # spaces of other widths are spaces


def _integer(text: str) -> int:
    if len(text) > 20 or int(text) not in _INTEGERS:  # Python itself refuses only more than 4,300 digits
        raise Malformed(f"the whole number {printable(text, 24)} has more than 64 bits")
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Malformed(f"{printable(text, 24)} is not a finite number")
    return value


def _constant(text: str) -> Any:
    raise Malformed(f"{text} is not a JSON number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        keys: set[str] = set()
        twice = next(key for key, _ in pairs if key in keys or keys.add(key))  # type: ignore[func-returns-value]
        raise Malformed(f"the key '{printable(twice, 40)}' stands there twice")
    return table


def _check(value: Any) -> None:
    """Refuse nesting and whole numbers beyond the bounds, without recursion."""
    level: Iterable[Any] = (value,)
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list):
                below += item
            elif isinstance(item, int) and item not in _INTEGERS:
                raise Malformed("a whole number has more than 64 bits")
        if not below:
            return
        level = below
    raise Malformed(f"it is nested more than {MAX_DEPTH} deep")


def _nan(text: str) -> float:
    return math.nan if text == "NaN" else _constant(text)


def _kept(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Copy a value; parts beyond the bounds become :class:`Strange`."""

    def copied(literal: Any) -> Any:
        try:
            return read(literal)
        except Malformed as error:
            return Strange(error)

    return copied


def parse_json(text: str | bytes, keep_strange: bool = False) -> Any:
    """Parse a JSON text within bounds.

    Args:
        text: The text.
        keep_strange: Give a :class:`Strange` for numbers beyond the bounds and for tables inside with a key twice,
            which a column that nobody asks for may hold; and NaN for NaN.

    Raises:
        Malformed: It is no JSON, too large, nested too deep, has a key twice, or holds a number that is not finite or
            has more than 64 bits.

    Example:
        >>> parse_json('{"a": [1, 2.5]}')
        {'a': [1, 2.5]}
        >>> parse_json("1e999")
        Traceback (most recent call last):
        mmgen.core.parsing.Malformed: 1e999 is not a finite number
    """
    if len(text) > MAX_TEXT_BYTES:
        raise Malformed(f"it has {len(text):,} bytes, expected at most {MAX_TEXT_BYTES:,}")
    hooks: dict[str, Any] = {
        "parse_constant": _constant, "parse_int": _integer, "parse_float": _number, "object_pairs_hook": _object,
    }  # fmt: skip
    if keep_strange:
        hooks = {name: _kept(hook) for name, hook in {**hooks, "parse_constant": _nan}.items()}
    try:
        value = json.loads(text, **hooks)
    except Malformed:
        raise
    except RecursionError:
        raise Malformed(f"it is nested more than {MAX_DEPTH} deep") from None
    except (ValueError, MemoryError) as error:
        raise Malformed(printable(str(error), 120)) from None
    if isinstance(value, Strange):
        raise value.why
    if not keep_strange:
        _check(value)
    return value


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML text within the bounds of :func:`parse_json`.

    Raises:
        NotToml: It is no TOML.
        Malformed: It is beyond the bounds.

    Example:
        >>> parse_toml("a.b = 1")
        {'a': {'b': 1}}
    """
    if len(text) > _MAX_TOML_LETTERS:
        raise Malformed(f"it has {len(text):,} letters, expected at most {_MAX_TOML_LETTERS:,}")
    if _LONG_KEY.search(text):
        raise Malformed(f"a key has more than {MAX_DEPTH} parts")
    try:
        values = tomllib.loads(text, parse_float=_number)
    except Malformed:
        raise
    except RecursionError:
        raise Malformed(f"it is nested more than {MAX_DEPTH} deep") from None
    except tomllib.TOMLDecodeError as error:
        raise NotToml(printable(str(error), 160)) from None
    except ValueError:  # of Python's int, which takes at most 4,300 digits
        raise Malformed("a number has too many digits") from None
    _check(values)
    return values


def _open_bounded(path: Path, most: float) -> BinaryIO:
    """Open a file of bounded size; a pipe, which would block its reader, is refused."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_size <= most:
        return open(descriptor, "rb")
    os.close(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise Malformed("it is a folder, a device or a pipe, expected a file")
    raise Malformed(f"it has {status.st_size:,} bytes, expected at most {most:,}")


def beginning(path: Path, most: int = 4096) -> str:
    """Return the first letters of a file of any size; "" if it cannot be read."""
    try:
        with _open_bounded(path, math.inf) as file:
            return file.read(most).decode("utf-8", "replace")
    except (OSError, Malformed):
        return ""


def read_bounded(path: Path, most: int = MAX_TEXT_BYTES, errors: str = "strict") -> str:
    """Read the text of a file of bounded size, as :func:`mmgen.core.plain_text.text_of` does.

    Args:
        path: The file.
        most: Bytes that it may have.
        errors: "replace" for a file of ours that may be damaged: what is no UTF-8 in it is replaced.

    Raises:
        OSError: It cannot be read.
        Malformed: It is a folder, a device or a pipe, too large, or no text.
    """
    with _open_bounded(path, most) as file:
        data = file.read(most + 1)
    if errors != "strict":
        return data.decode("utf-8", errors)
    try:
        return text_of(data)
    except NotText as error:
        raise Malformed(str(error)) from None


def lines_bounded(path: Path) -> Generator[str]:
    """Yield the lines of a log or a file of scores, each of bounded size; the file is closed if the reader stops early.

    Raises:
        OSError: It cannot be read.
        Malformed: It is a folder, a device or a pipe, it or a line is too large, or it is no text.
    """
    with _open_bounded(path, MAX_LOG_BYTES) as file:
        try:
            yield from lines_of(file, MAX_TEXT_BYTES)
        except NotText as error:
            raise Malformed(str(error)) from None


def opening(text: str) -> str:
    r"""Return the sentences that a docstring opens with, without the last full stop.

    Example:
        >>> opening("Draws one thing. Then it\ndraws another.")
        'Draws one thing'
        >>> opening("One object, red\nor blue (as in Fig. 1). More.")
        'One object, red or blue (as in Fig. 1)'
    """
    lines = [line.strip() for line in text.strip().partition("\n\n")[0].split("\n")]
    joined = " ".join(lines)
    ends = [match.end() for match in _SENTENCE_ENDS.finditer(joined)]
    inside = [end for end in ends if end <= len(lines[0])]
    return joined[: (inside[-1:] or ends[:1] or [len(joined)])[0]].rstrip(".")


def listed(text: str) -> list[str]:
    """Split a setting at commas; blanks around a part are removed, blanks inside stay.

    Example:
        >>> listed("4, 3,2"), listed("4 3")
        (['4', '3', '2'], ['4 3'])
    """
    return [part.strip() for part in text.split(",")]


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested settings by their names with dots; an empty table is a value.

    Example:
        >>> list(leaves({"model": {"latent_size": 2, "networks": {}}, "seed": 0}))
        [('model.latent_size', 2), ('model.networks', {}), ('seed', 0)]
    """
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def flat(values: Mapping[str, Any]) -> dict[str, str]:
    """Flatten nested settings to ``room.key`` and text.

    Example:
        >>> flat({"model": {"latent_size": 2}, "seed": 0})
        {'model.latent_size': '2', 'seed': '0'}
    """
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in leaves(values)
    }
