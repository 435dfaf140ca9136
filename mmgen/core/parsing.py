"""Bounded parsing of JSON and TOML that other programs wrote, and text that is safe to show.

One parser for everything that is read: headers, logs, scores, settings files and ``--set``. What Python's own parsers
let through and later code stumbles over is refused here: numbers that no float or 64-bit integer holds, nesting without
end, a key twice, megabytes where a line is expected.
"""

import json
import math
import re
import tomllib
import unicodedata
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from mmgen.core.foreign import CannotReadError, open_foreign, open_regular
from mmgen.core.plain_text import NotTextError, decode_lines, decode_text

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


class MalformedError(ValueError):
    """Error for a malformed text; its message is the fault, without the name of the file."""


@dataclass(frozen=True)
class OutOfBounds:
    """Placeholder for a part of a JSON text, such as a huge number, that :func:`parse_json` does not accept.

    Attributes:
        error: The reason.
    """

    error: MalformedError


class NotTomlError(MalformedError):
    """Error for text that is not TOML."""


def printable(text: str, limit: int = 300) -> str:
    r"""Make foreign text safe to print: one line without control characters, of at most ``limit`` letters.

    Example:
        >>> printable("red\x1b[2J \u202egreen")
        'red?[2J ?green'
    """
    clipped = strip_controls(text[:limit], keep="")
    return clipped if len(text) <= limit else clipped + "..."


def strip_controls(text: str, keep: str = "\n\t") -> str:
    r"""Remove invisible and control characters, which could steer a terminal or hide letters; those in ``keep`` stay.

    Args:
        text: Any text.
        keep: Letters that stay although they cannot be seen.

    Example:
        >>> strip_controls("two\nlines\x07")
        'two\nlines?'
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in keep else _visible_substitute(letter) for letter in text)


def _visible_substitute(letter: str) -> str:
    return " " if unicodedata.category(letter) == "Zs" else "?"  # spaces of other widths are spaces


def _parse_integer(text: str) -> int:
    if len(text) > 20 or int(text) not in _INTEGERS:  # Python itself refuses only more than 4,300 digits
        raise MalformedError(f"the whole number {printable(text, 24)} has more than 64 bits")
    return int(text)


def _parse_number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise MalformedError(f"{printable(text, 24)} is not a finite number")
    return value


def _refuse_constant(text: str) -> Any:
    raise MalformedError(f"{text} is not a JSON number")


def _parse_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        keys: set[str] = set()
        duplicate = next(key for key, _ in pairs if key in keys or keys.add(key))  # type: ignore[func-returns-value]
        raise MalformedError(f"it has the key '{printable(duplicate, 40)}' twice, expected it once")
    return table


def _check_bounds(value: Any) -> None:
    """Refuse values nested too deep and integers of more than 64 bits, without recursion."""
    level: Iterable[Any] = (value,)
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list):
                below += item
            elif isinstance(item, int) and item not in _INTEGERS:
                raise MalformedError("a whole number has more than 64 bits")
        if not below:
            return
        level = below
    raise MalformedError(f"it is nested more than {MAX_DEPTH} deep")


def _parse_nan(text: str) -> float:
    return math.nan if text == "NaN" else _refuse_constant(text)


def _keep_out_of_bounds(parser: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``parser`` changed so that it returns an :class:`OutOfBounds` where it would raise an error."""

    def parse(literal: Any) -> Any:
        try:
            return parser(literal)
        except MalformedError as error:
            return OutOfBounds(error)

    return parse


def parse_json(text: str | bytes, keep_out_of_bounds: bool = False, most: int = MAX_TEXT_BYTES) -> Any:
    """Parse JSON text; refuse deep nesting, huge numbers, duplicate keys and NaN.

    Args:
        text: The text.
        keep_out_of_bounds: Return an :class:`OutOfBounds` for each number beyond the bounds and each inner table with
            a key twice, which may stand in columns that are not used; and NaN for NaN.
        most: Bytes, or letters, that the text may have; by default those of a header or a line.

    Raises:
        MalformedError: It is no JSON, too large, nested too deep, has a key twice, or holds a number that is not finite
            or has more than 64 bits.

    Example:
        >>> parse_json('{"a": [1, 2.5]}')
        {'a': [1, 2.5]}
        >>> parse_json("1e999")
        Traceback (most recent call last):
        mmgen.core.parsing.MalformedError: 1e999 is not a finite number
    """
    if len(text) > most:
        raise MalformedError(f"it has {len(text):,} bytes, expected at most {most:,}")
    hooks: dict[str, Any] = {
        "parse_constant": _refuse_constant, "parse_int": _parse_integer, "parse_float": _parse_number,
        "object_pairs_hook": _parse_object,
    }  # fmt: skip
    if keep_out_of_bounds:
        hooks = {name: _keep_out_of_bounds(hook) for name, hook in {**hooks, "parse_constant": _parse_nan}.items()}
    try:
        value = json.loads(text, **hooks)
    except MalformedError:
        raise
    except RecursionError:
        raise MalformedError(f"it is nested more than {MAX_DEPTH} deep") from None
    except (ValueError, MemoryError) as error:
        raise MalformedError(printable(str(error), 120)) from None
    if isinstance(value, OutOfBounds):
        raise value.error
    if not keep_out_of_bounds:
        _check_bounds(value)
    return value


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML text, with the limits of :func:`parse_json`.

    Raises:
        NotTomlError: It is no TOML.
        MalformedError: It is beyond the bounds.

    Example:
        >>> parse_toml("a.b = 1")
        {'a': {'b': 1}}
    """
    if len(text) > _MAX_TOML_LETTERS:
        raise MalformedError(f"it has {len(text):,} letters, expected at most {_MAX_TOML_LETTERS:,}")
    if _LONG_KEY.search(text):
        raise MalformedError(f"a key has more than {MAX_DEPTH} parts")
    try:
        values = tomllib.loads(text, parse_float=_parse_number)
    except MalformedError:
        raise
    except RecursionError:
        raise MalformedError(f"it is nested more than {MAX_DEPTH} deep") from None
    except tomllib.TOMLDecodeError as error:
        raise NotTomlError(printable(str(error), 160)) from None
    except ValueError:  # of Python's int, which takes at most 4,300 digits
        raise MalformedError("a number has too many digits") from None
    _check_bounds(values)
    return values


def _open_bounded(path: Path, limit: float) -> BinaryIO:
    try:
        return open_foreign(path, limit)
    except CannotReadError as error:
        raise MalformedError(str(error)) from None


def read_beginning(path: Path, limit: int = 4096) -> str:
    """Return the first ``limit`` letters of a text file; "" if it cannot be read."""
    try:
        with open_regular(path) as file:
            return file.read(limit).decode("utf-8", "replace")
    except (OSError, ValueError, CannotReadError):
        return ""


def read_text(path: Path, limit: int = MAX_TEXT_BYTES, errors: str = "strict") -> str:
    """Read a text file; refuse one of more than ``limit`` bytes. UTF-8 and byte order marks are understood.

    Args:
        path: The file.
        limit: Bytes that it may have.
        errors: "replace" for a file of ours that may be damaged: what is no UTF-8 in it is replaced.

    Raises:
        OSError: It cannot be read.
        MalformedError: It is a folder, a device or a pipe, too large, or no text.
    """
    with _open_bounded(path, limit) as file:
        data = file.read(limit + 1)
    if errors != "strict":
        return data.decode("utf-8", errors)
    try:
        return decode_text(data)
    except NotTextError as error:
        raise MalformedError(str(error)) from None


def read_lines(path: Path) -> Generator[str]:
    """Yield the lines of a text file, each of bounded length; the file is closed if the reader stops early.

    Raises:
        OSError: It cannot be read.
        MalformedError: It is a folder, a device or a pipe, it or a line is too large, or it is no text.
    """
    with _open_bounded(path, MAX_LOG_BYTES) as file:
        try:
            yield from decode_lines(file, MAX_TEXT_BYTES)
        except NotTextError as error:
            raise MalformedError(str(error)) from None


def first_sentences(text: str) -> str:
    r"""Return the sentences on the first line of a docstring, without the last full stop.

    Example:
        >>> first_sentences("Draws one thing. Then it\ndraws another.")
        'Draws one thing'
        >>> first_sentences("One object, red\nor blue (as in Fig. 1). More.")
        'One object, red or blue (as in Fig. 1)'
    """
    lines = [line.strip() for line in text.strip().partition("\n\n")[0].split("\n")]
    joined = " ".join(lines)
    ends = [match.end() for match in _SENTENCE_ENDS.finditer(joined)]
    inside = [end for end in ends if end <= len(lines[0])]
    return joined[: (inside[-1:] or ends[:1] or [len(joined)])[0]].rstrip(".")


def split_list(text: str) -> list[str]:
    """Split text at commas and strip the parts.

    Example:
        >>> split_list("4, 3,2"), split_list("4 3")
        (['4', '3', '2'], ['4 3'])
    """
    return [part.strip() for part in text.split(",")]


def nested_items(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value in nested settings with its path of keys, such as "training.steps".

    Example:
        >>> list(nested_items({"model": {"latent_size": 2, "networks": {}}, "seed": 0}))
        [('model.latent_size', 2), ('model.networks', {}), ('seed', 0)]
    """
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from nested_items(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def flatten(values: Mapping[str, Any]) -> dict[str, str]:
    """Convert nested settings to texts by their paths of keys, such as "training.steps".

    Example:
        >>> flatten({"model": {"latent_size": 2}, "seed": 0})
        {'model.latent_size': '2', 'seed': '0'}
    """
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in nested_items(values)
    }
