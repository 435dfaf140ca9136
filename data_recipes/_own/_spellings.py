"""Values and columns that are perhaps one, spelled twice: said, and taken as they are."""

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable

from mmgen.parsing import printable

__all__ = ["spelled_twice"]

_SHOWN = 5


def spelled_twice(what: str, words: Iterable[str]) -> list[str]:
    """What there is to say of words that differ in nothing but their spelling.

    Args:
        what: Whose words they are, for the sentence.
        words: Different words.

    Example:
        >>> spelled_twice("colour", ["Red", "red", "dark red", "dark-red", "blue"])
        ["  colour: 'Red' and 'red' differ in case only; mend the table if they are one",
         "  colour: 'dark red' and 'dark-red' differ in case, spaces or hyphens only; mend the table if they are one"]
        >>> spelled_twice("label", ["1", "1.0", "2"])
        ["  label: '1' and '1.0' are one number; mend the table if they are one"]
    """
    alike: dict[str, list[str]] = defaultdict(list)
    for word in words:
        alike[_key(word)].append(word)
    found = [several for several in alike.values() if len(several) > 1]
    lines = []
    for several in found[:_SHOWN]:
        every = " and ".join(f"'{printable(word, 40)}'" for word in several[:_SHOWN])
        lines.append(f"  {printable(what, 60)}: {every} {_how(several)}; mend the table if they are one")
    if len(found) > _SHOWN:
        lines.append(f"  {printable(what, 60)}: {len(found) - _SHOWN:,} more are spelled in several ways")
    return lines


def _key(word: str) -> str:
    plain = unicodedata.normalize("NFKC", word).casefold()
    number = _number(plain)
    return f"{number!r}" if number is not None else re.sub(r"[\s_-]+", "", plain) or plain


def _number(word: str) -> float | None:
    if "_" in word:  # which Python takes for nothing between digits
        return None
    try:
        value = float(word)
    except ValueError:
        return None
    return value + 0.0 if math.isfinite(value) else None


def _how(words: list[str]) -> str:
    if len({word.casefold() for word in words}) == 1:
        return "differ in case only"
    if _number(unicodedata.normalize("NFKC", words[0])) is not None:
        return "are one number"
    folded = {re.sub(r"[\s_-]+", "", word.casefold()) for word in words}
    return (
        "differ in case, spaces or hyphens only" if len(folded) == 1 else "differ in how their letters are written only"
    )
