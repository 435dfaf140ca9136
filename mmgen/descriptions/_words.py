"""Text split into words and parentheses."""

import re

from mmgen.core.errors import UsageError
from mmgen.descriptions._vocabulary import NOT, OPERATORS, OR

__all__ = ["CLOSE", "OPEN", "split_words"]

OPEN, CLOSE = "(", ")"
_ALONE = (None, NOT, OR, *" ".join(OPERATORS).split())
"""Words that a parenthesis may follow without a space."""
_PIECE = re.compile(
    r"""(?P<separators>[ \t\r\n,;]+) | (?P<sign>[()]) | '(?P<single>[^']*)' | "(?P<double>(?:\\.|[^"\\])*)"
    | \\(?P<escaped>.) | (?P<plain>[^ \t\r\n,;()'"\\]+)""",
    re.VERBOSE | re.DOTALL,
)


def split_words(text: str, *, signs: bool = False) -> list[str]:
    """Split a description at white space, commas and semicolons outside quotes, and remove the quotes."""
    words: list[str] = []
    word: str | None = None
    inside, at = 0, 0  # parentheses open inside the word
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            raise UsageError(f"description '{text}' has a quote that is not closed; quote values as name='two words'")
        at, kind = piece.end(), piece.lastgroup
        content = piece[str(kind)]
        apart = signs and kind == "sign" and (word in _ALONE if content == OPEN else not inside)
        if kind == "separators" or apart:
            words += [] if word is None else [word]
            words += [content] if apart else []
            word, inside = None, 0
            continue
        if kind == "sign":
            inside += 1 if content == OPEN else -1
        elif kind == "double":
            content = re.sub(r'\\(["\\])', r"\1", content)
        word = (word or "") + content
    return words if word is None else [*words, word]
