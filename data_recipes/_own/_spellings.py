"""Notes on values and columns that may be one word in two spellings."""

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable

from mmgen.core.parsing import printable

__all__ = ["note_spelling_variants"]

_MOST_NAMED = 5
_TRUE, _FALSE = ("1", "1.0", "true", "t", "yes", "y", "on"), ("0", "0.0", "false", "f", "no", "n", "off")
_PUNCTUATION = "\"'`“”‘’«»„.,;:"
_BETWEEN = re.compile(r"(?<=[^\s_-])[\s_-]+(?=[^\s_-])")  # "A-" is not "A"
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_COMMA = re.compile(r"[+-]?\d+,\d+(e[+-]?\d+)?")


def note_spelling_variants(noun: str, words: Iterable[str]) -> list[str]:
    """Return notes on words that may be spellings of one word; ``noun`` says what they are, such as "value".

    Example:
        >>> note_spelling_variants("colour", ["Red", "red", "dark red", "dark-red", "blue"])
        ["  colour: 'Red' and 'red' differ in case only; fix the table if they are one",
         "  colour: 'dark red' and 'dark-red' differ in case, spaces or hyphens only; fix the table if they are one"]
        >>> note_spelling_variants("label", ["1", "1.0", "2"])
        ["  label: '1' and '1.0' are one number; fix the table if they are one"]
    """
    alike: dict[str, list[str]] = defaultdict(list)
    every = list(words)
    truths = (
        {word.casefold() in _TRUE for word in every} if all(map(_is_boolean_word, every)) and len(every) > 2 else set()
    )
    for word in every:
        alike[str(word.casefold() in _TRUE) if truths else _spelling_key(word)].append(word)
    groups = [several for several in alike.values() if len(several) > 1]
    lines = []
    for several in groups[:_MOST_NAMED]:
        words_in_text = " and ".join(f"'{printable(word, 40)}'" for word in several[:_MOST_NAMED])
        lines.append(
            f"  {printable(noun, 60)}: {words_in_text} {_describe_difference(several)}; fix the table if they are one"
        )
    if len(groups) > _MOST_NAMED:
        lines.append(f"  {printable(noun, 60)}: {len(groups) - _MOST_NAMED:,} more are spelled in several ways")
    return lines


def _spelling_key(word: str) -> str:
    plain = unicodedata.normalize("NFKC", word).casefold()
    number = _parse_number(plain)
    if number is not None:
        return f"{number!r}"
    bare = _BETWEEN.sub("", plain)
    return bare.strip(_PUNCTUATION) or bare or plain


def _is_boolean_word(word: str) -> bool:
    return word.casefold() in _TRUE + _FALSE


def _parse_number(word: str) -> float | None:
    if "_" in word:  # which Python takes for nothing between digits
        return None
    if _THOUSANDS.fullmatch(word):
        word = word.replace(",", "")
    elif _COMMA.fullmatch(word):
        word = word.replace(",", ".")
    try:
        value = float(word)
    except ValueError:
        return None
    return value + 0.0 if math.isfinite(value) else None


def _describe_difference(words: list[str]) -> str:
    if len({word.casefold() for word in words}) == 1:
        return "differ in case only"
    if _parse_number(unicodedata.normalize("NFKC", words[0])) is not None and not any(
        word[-1:].isalpha() for word in words
    ):
        return "are one number"
    if all(map(_is_boolean_word, words)):
        return "say the same"
    folded = {_BETWEEN.sub("", word.casefold()) for word in words}
    if len(folded) == 1:
        return "differ in case, spaces or hyphens only"
    bare = {word.strip(_PUNCTUATION) for word in folded}
    return "differ in signs about them only" if len(bare) == 1 else "differ in how their letters are written only"
