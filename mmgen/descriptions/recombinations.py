"""Descriptions made of others: ``digit=3 AND scale=big``, ``(digit=3 scale=big) IN COMMON (digit=3 scale=small)``,
``digit=3 scale=big IGNORE scale=big``.

What they mean is sets of attribute=value: AND joins two, IN COMMON keeps what both have, IGNORE takes the second out of
the first. Each so has a plain description that means the same. What they do is another matter: SCAN draws for a
recombination by a network over the posteriors of its parts, see :mod:`mmgen.aggregates.scan`.

References:
    SCAN: Learning Hierarchical Compositional Visual Concepts (Higgins et al., 2018), arXiv:1707.03389
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions.queries import (
    AND,
    IGNORE,
    IN_COMMON,
    NOT,
    OPERATORS,
    OR,
    Vocabulary,
    format_query,
    parse_query,
    quoted,
    split_words as split,
)

__all__ = ["Recombination", "is_recombination", "parse_recombination"]

_OPEN, _CLOSE = "(", ")"
_MOST_DEEP = 20
"""Parentheses inside each other."""
_MOST_PARTS = 50
"""Plain descriptions that operators join."""


@dataclass(frozen=True, eq=False)
class Recombination:
    """A plain description, or two recombined ones and what joins them.

    Attributes:
        codes: uint8 [A], what it means; ``UNKNOWN`` where it says nothing.
        words: As a person would type it.
        plain: The plain description that means the same.
        operator: AND, IN COMMON or IGNORE; "" for a plain description.
        parts: What it joins; empty for a plain description.
    """

    codes: np.ndarray
    words: str
    plain: str
    operator: str = ""
    parts: tuple["Recombination", ...] = ()

    def __str__(self) -> str:
        return self.words

    @property
    def leaves(self) -> list[np.ndarray]:
        """The codes [A] of the plain descriptions that it is made of, from left to right."""
        return [leaf for part in self.parts for leaf in part.leaves] if self.parts else [self.codes]

    @property
    def operators(self) -> frozenset[str]:
        """All that it is joined by."""
        return frozenset([self.operator] if self.operator else []).union(*(part.operators for part in self.parts))

    @property
    def key(self) -> tuple[int | str, ...]:
        """What its stream of randomness is known by."""
        return tuple(self.words.split())

    @property
    def mentioned(self) -> np.ndarray:
        """Bool [A]: the attributes that it says something of."""
        return np.asarray(self.codes != UNKNOWN)

    def holds(self, codes: np.ndarray) -> np.ndarray:
        """Whether it is true of known attributes: uint8 [..., A] -> bool [...]."""
        return np.asarray(((codes == self.codes) | ~self.mentioned).all(-1))


def is_recombination(text: str) -> bool:
    """Whether a description has an operator between others, or a word that begins with a parenthesis."""
    return bool(set(OPERATORS) & set(_tokens(text))) or any(word.startswith(_OPEN) for word in split(text))


def _tokens(text: str) -> list[str]:
    """Words, parentheses one by one, and "IN COMMON" as one word."""
    words: list[str] = []
    for word in split(text, _OPEN + _CLOSE):
        if word and not word.strip(_OPEN + _CLOSE):
            words.extend(word)
        elif words and f"{words[-1]} {word}" == IN_COMMON:
            words[-1] = IN_COMMON
        else:
            words.append(word)
    return words


def parse_recombination(text: str, info: Vocabulary) -> Recombination:
    """A recombination from words as a person types them.

    Args:
        text: Plain descriptions joined by AND, IN COMMON or IGNORE, from left to right; parentheses hold together.
        info: The attributes and their values.

    Raises:
        UsageError: A name or value does not exist, a side is empty, parentheses do not match, different operators
            stand beside each other, or what is meant cannot be.

    Example:
        >>> from types import SimpleNamespace
        >>> info = SimpleNamespace(names=("digit", "scale"), values=(("3", "5"), ("big", "small")))
        >>> made = parse_recombination("(digit=3 scale=big) IN COMMON (digit=3 AND scale=small)", info)
        >>> made.operator, made.plain, str(made)
        ('IN COMMON', 'digit=3', '(digit=3 scale=big) IN COMMON (digit=3 AND scale=small)')
    """
    tokens = _tokens(text)
    wrong = sorted({NOT, OR} & set(tokens))
    if wrong:
        beside = " and ".join(operator for operator in OPERATORS if operator in tokens) or "parentheses"
        raise UsageError(
            f"description '{text}' has {wrong[0]} beside {beside}, expected one or the other: {NOT} and {OR} are "
            "answered by guidance, operators and parentheses by a posterior"
        )
    count = 1 + sum(word in OPERATORS for word in tokens)
    if count > _MOST_PARTS:
        raise UsageError(f"description joins {count:,} parts, expected at most {_MOST_PARTS}; join fewer")
    made, rest = _joined(tokens, info, text, 0)
    if rest:
        raise UsageError(f"description '{text}' closes a parenthesis that was never opened; take one away")
    return made


def _joined(tokens: list[str], info: Vocabulary, text: str, depth: int) -> tuple[Recombination, list[str]]:
    """Terms with one operator between them, until a parenthesis closes; and what is left."""
    made, rest = _term(tokens, info, text, depth)
    operator = ""
    while rest and rest[0] != _CLOSE:
        if rest[0] not in OPERATORS:
            raise UsageError(
                f"description '{text}' has '{rest[0]}' right after a parenthesis, expected one of "
                f"{', '.join(OPERATORS)}"
            )
        if operator and rest[0] != operator:
            raise UsageError(
                f"description '{text}' has {operator} and {rest[0]} side by side; say which with parentheses"
            )
        operator = rest[0]
        right, rest = _term(rest[1:], info, text, depth)
        made = _combine(operator, made, right, info, text)
    return made, rest


def _term(tokens: list[str], info: Vocabulary, text: str, depth: int) -> tuple[Recombination, list[str]]:
    if tokens and tokens[0] == _OPEN:
        if depth >= _MOST_DEEP:
            raise UsageError(f"description has more than {_MOST_DEEP} parentheses inside each other; use fewer")
        made, rest = _joined(tokens[1:], info, text, depth + 1)
        if not rest:
            raise UsageError(f"description '{text}' opens a parenthesis that is never closed; close it")
        return made, rest[1:]
    ends = [place for place, word in enumerate(tokens) if word in (*OPERATORS, _OPEN, _CLOSE)]
    end = ends[0] if ends else len(tokens)
    if not end:
        raise UsageError(
            f"description '{text}' has nothing on one side of an operator, expected attribute=value on both"
        )
    if tokens[end:] and tokens[end] == _OPEN:
        raise UsageError(
            f"description '{text}' has no operator before a parenthesis, expected one of {', '.join(OPERATORS)}"
        )
    codes = parse_query(" ".join(map(_requoted, tokens[:end])), info)
    words = format_query(codes, info)
    return Recombination(codes, words, words), tokens[end:]


def _requoted(word: str) -> str:
    name, equals, value = word.partition("=")
    return f"{name}={quoted(value)}" if equals else word


def _combine(operator: str, left: Recombination, right: Recombination, info: Vocabulary, text: str) -> Recombination:
    codes = _MEANING[operator](left, right, info, text)
    words = f"{_within(left)} {operator} {_within(right)}"
    return Recombination(codes, words, format_query(codes, info), operator, (left, right))


def _within(part: Recombination) -> str:
    return f"({part})" if part.operator or len(part.words.split()) > 1 else str(part)


def _and(left: Recombination, right: Recombination, info: Vocabulary, text: str) -> np.ndarray:
    apart = left.mentioned & right.mentioned & (left.codes != right.codes)
    if apart.any():
        name = info.names[int(apart.argmax())]
        raise UsageError(
            f"description '{text}' asks for two values of '{name}' at once, expected one; give one, or with guidance "
            f"above 0 join alternatives by {OR}"
        )
    return np.where(left.mentioned, left.codes, right.codes)


def _in_common(left: Recombination, right: Recombination, info: Vocabulary, text: str) -> np.ndarray:
    return np.where(left.codes == right.codes, left.codes, UNKNOWN).astype(np.uint8)


def _ignore(left: Recombination, right: Recombination, info: Vocabulary, text: str) -> np.ndarray:
    extra = right.mentioned & (left.codes != right.codes)
    if extra.any():
        raise UsageError(
            f"description '{text}' ignores {right.plain}, which {left.plain} does not say, expected a part of it after "
            f"{IGNORE}"
        )
    return np.where(right.mentioned, UNKNOWN, left.codes).astype(np.uint8)


_MEANING: dict[str, Callable[[Recombination, Recombination, Vocabulary, str], np.ndarray]] = {
    AND: _and,
    IN_COMMON: _in_common,
    IGNORE: _ignore,
}
