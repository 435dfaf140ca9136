"""Descriptions with negation and alternatives: ``digit=3 NOT scale=big``, ``digit=3 OR digit=5``.

An expression is alternatives joined by ``OR``; an alternative is what all holds together: ``name=value`` and
``NOT name=value``, separated as in
:mod:`mmgen.descriptions.queries`. Attributes are independent given z, so that an alternative
allows a product of sets of values, one set for each attribute, and its probability is a product of sums.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions.queries import NOT, OR, Vocabulary, format_query, parse_pair, split_words

__all__ = ["Alternative", "Expression", "is_expression", "parse_expression"]

_MOST_PARTS = 4096
"""Disjoint parts that a union of alternatives may fall into."""


@dataclass(frozen=True, eq=False)
class Alternative:
    """What holds together.

    Attributes:
        codes: uint8 [A], the values given; ``UNKNOWN`` where none is.
        allowed: bool [A, V], the values that each attribute may have; True beyond an attribute's own values.
        words: As a person would type it.
    """

    codes: np.ndarray
    allowed: np.ndarray
    words: str


@dataclass(frozen=True, eq=False)
class Expression:
    """At least one of several alternatives.

    Attributes:
        alternatives: At least one.
    """

    alternatives: tuple[Alternative, ...]

    def __str__(self) -> str:
        return f" {OR} ".join(alternative.words for alternative in self.alternatives)

    @property
    def codes(self) -> np.ndarray:
        """uint8 [A]: what a single alternative gives, by which a posterior can be conditioned; nothing of several."""
        first = self.alternatives[0].codes
        return first if len(self.alternatives) == 1 else np.full_like(first, UNKNOWN)

    @property
    def key(self) -> tuple[int | str, ...]:
        """What its stream of randomness is known by."""
        return tuple(str(self).split())

    @cached_property
    def parts(self) -> np.ndarray:
        """bool [P, A, V]: disjoint products of sets of values whose union the expression is.

        Their probabilities add up, all of them positive: inclusion and exclusion without its differences.

        Raises:
            UsageError: There are too many.
        """
        found: list[np.ndarray] = []
        for alternative in self.alternatives:
            fresh = [alternative.allowed]
            for known in found:
                fresh = [part for box in fresh for part in _without(box, known)]
            found += fresh
            if len(found) > _MOST_PARTS:
                raise UsageError(
                    f"a description with {len(self.alternatives)} alternatives falls into more than {_MOST_PARTS:,} "
                    f"parts; join fewer by {OR}"
                )
        return np.stack(found)

    def holds(self, codes: np.ndarray) -> np.ndarray:
        """Whether it is true of known attributes: uint8 [..., A] -> bool [...]."""
        each = np.arange(codes.shape[-1])
        return np.asarray(np.stack([part.allowed[each, codes].all(-1) for part in self.alternatives]).any(0))

    @property
    def mentioned(self) -> np.ndarray:
        """Bool [A]: the attributes that some alternative says something of."""
        return np.asarray(np.stack([~alternative.allowed.all(1) for alternative in self.alternatives]).any(0))


def _without(box: np.ndarray, other: np.ndarray) -> list[np.ndarray]:
    """What a product of sets [A, V] holds beyond another, as disjoint products."""
    parts, rest = [], box.copy()
    for attribute in range(len(box)):
        outside = rest[attribute] & ~other[attribute]
        if outside.any():
            part = rest.copy()
            part[attribute] = outside
            parts.append(part)
        rest[attribute] &= other[attribute]
        if not rest[attribute].any():
            break
    return parts


def is_expression(text: str) -> bool:
    """Whether a description has negation or alternatives."""
    return bool({NOT, OR} & set(split_words(text)))


def parse_expression(text: str, info: Vocabulary) -> Expression:
    """An expression from words as a person types them.

    Args:
        text: Alternatives such as ``digit=3 NOT scale=big`` joined by ``OR``.
        info: The attributes and their values.

    Raises:
        UsageError: A name or value does not exist, an alternative is empty or can hold of nothing.

    Example:
        >>> from types import SimpleNamespace
        >>> info = SimpleNamespace(names=("digit", "scale"), values=(("3", "5", "8"), ("big", "small")))
        >>> expression = parse_expression("digit=3 NOT scale=big OR NOT digit=3", info)
        >>> str(expression)
        'digit=3 NOT scale=big OR NOT digit=3'
        >>> expression.holds(np.array([[0, 0], [0, 1], [2, 0]], np.uint8)).tolist()
        [False, True, True]
    """
    alternatives: list[list[str]] = [[]]
    for word in split_words(text):
        if word == OR:
            alternatives.append([])
        else:
            alternatives[-1].append(word)
    if not all(alternatives):
        raise UsageError(f"description '{text}' has nothing on one side of {OR}, expected attribute=value on both")
    return Expression(tuple(_alternative(words, info, text) for words in alternatives))


def _alternative(words: list[str], info: Vocabulary, text: str) -> Alternative:
    width = max(len(values) for values in info.values)
    given: list[tuple[int, int]] = []
    refused: list[tuple[int, int]] = []
    plain: list[str] = []
    rest = iter(words)
    for word in rest:
        if word != NOT:
            plain.append(word)
            given.append(parse_pair(word, info))
            continue
        following = next(rest, "")
        if not following or following == NOT:
            raise UsageError(f"description '{text}' has {NOT} without attribute=value after it; say what shall not be")
        attribute, code = parse_pair(following, info)
        if code == UNKNOWN:
            raise UsageError(f"description '{text}' has {NOT} {following}, which no picture is; name a value")
        refused.append((attribute, code))
    codes = np.full(len(info.names), UNKNOWN, np.uint8)
    allowed = np.ones((len(info.names), width), bool)
    for attribute, code in given:
        if codes[attribute] != UNKNOWN:
            raise UsageError(f"description '{text}' gives '{info.names[attribute]}' twice; join alternatives by {OR}")
        if code != UNKNOWN:
            codes[attribute] = code
            allowed[attribute] = np.arange(width) == code
    for attribute, code in refused:
        allowed[attribute, code] = False
        if not allowed[attribute, : len(info.values[attribute])].any():
            raise UsageError(
                f"description '{text}' leaves no value of '{info.names[attribute]}', so that nothing can be drawn; "
                f"leave out one {NOT}"
            )
    said = [] if (codes == UNKNOWN).all() and refused else [format_query(codes, info)]
    for attribute, code in dict.fromkeys(refused):
        one = np.full(len(codes), UNKNOWN, np.uint8)
        one[attribute] = code
        said.append(f"{NOT} {format_query(one, info)}")
    return Alternative(codes, allowed, " ".join(said))
