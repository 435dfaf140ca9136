"""The grammar of descriptions.

::

    description := term (operator term)*                 one operator; others in parentheses
    term        := "(" description ")" | pair pair* | "anything" | nothing
    pair        := [NOT] name=value | [NOT] value | name=*
    operator    := OR | AND | IN COMMON | IGNORE

A value stands alone where one attribute has it: "red heart". An attribute that is not mentioned is unknown, never a
default: "big" means a big digit of any kind, orientation and place (VE Section 1 calls these abstract concepts). AND
joins two sets of ``name=value``, IN COMMON keeps what both have, IGNORE takes the second out of the first, so that each
of them means a plain description. SCAN draws for them by networks over the posteriors of their operands, see
:mod:`mmgen.contrib.scan.posteriors.scan`; NOT and OR are drawn by completing descriptions.

References:
    SCAN: Learning Hierarchical Compositional Visual Concepts (Higgins et al., 2018), arXiv:1707.03389
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from mmgen.core.errors import UsageError, clip, find_nearest_name, format_unknown_name, join_names
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions._vocabulary import (
    AND,
    ANYTHING,
    CLOSE,
    IGNORE,
    IN_COMMON,
    NOT,
    OPEN,
    OPERATORS,
    OR,
    UNSPECIFIED,
    Vocabulary,
    format_query,
    quote_value,
    split_words,
)


@dataclass(frozen=True, eq=False)
class Expression:
    """A parsed description by attributes: a tree of conditions ``name=value``, joined by operators such as AND and NOT.

    A leaf allows a product of sets of values, one set for each attribute: a box.

    Attributes:
        words: The description as a person would type it; it is parsed into the same tree.
        codes: uint8 [A], the values that it gives and a posterior can be conditioned on; ``UNKNOWN`` elsewhere, and
            everywhere for alternatives.
        meaning: The plain description of ``codes``.
        boxes: Boxes whose union is described, bool [A, V] each; True beyond an attribute's own values.
        operator: OR, AND, IN COMMON or IGNORE between operands, NOT of a leaf that excludes values, else "".
        operands: Descriptions that the operator joins; empty for a leaf.
    """

    words: str
    codes: np.ndarray
    meaning: str
    boxes: tuple[np.ndarray, ...]
    operator: str = ""
    operands: tuple["Expression", ...] = ()

    def __str__(self) -> str:
        return self.words

    @property
    def operators(self) -> frozenset[str]:
        """Names of all operators in the description."""
        return frozenset([self.operator] if self.operator else []).union(*(each.operators for each in self.operands))

    @property
    def leaf_codes(self) -> list[np.ndarray]:
        """Attribute codes [A] of the descriptions without operands, from left to right."""
        return [leaf for each in self.operands for leaf in each.leaf_codes] if self.operands else [self.codes]

    @property
    def key(self) -> tuple[int | str, ...]:
        """Words of the description, by which its random numbers are seeded."""
        return tuple(self.words.split())

    @property
    def restricted_attributes(self) -> np.ndarray:
        """Bool [A], True for each attribute whose value the description restricts."""
        restricted = [~box.all(1) for box in self.boxes]
        return np.asarray(np.stack([self.codes != UNKNOWN, *restricted]).any(0))

    def matches(self, codes: np.ndarray) -> np.ndarray:
        """Return bool [...]: True where the attribute codes uint8 [..., A] fit the description.

        An unknown value fits where any would.
        """
        each, known = np.arange(codes.shape[-1]), codes != UNKNOWN
        found = [np.where(known, box[each, np.where(known, codes, 0)], box.all(1)).all(-1) for box in self.boxes]
        return np.asarray(np.stack(found).any(0))


_ANY = f"one of {', '.join(OPERATORS)}"
_MOST_DEEP = 20
"""Parentheses inside each other."""
_MOST_OPERANDS = 50
"""Leaves that recombination operators join."""


def parse(text: str, info: Vocabulary) -> Expression:
    """Parse a description by attributes, such as "shape=cube AND NOT colour=red".

    Args:
        text: ``attribute=value`` pairs in any order, or values that one attribute has, separated by spaces, commas or
            semicolons; quotes hold values with spaces together. ``attribute=*`` leaves it unspecified, as does leaving
            it out; "" and "anything" specify nothing. ``NOT`` may precede a pair; operators and parentheses join
            descriptions.
        info: The attributes and their values.

    Raises:
        UsageError: A name or value does not exist (the nearest is suggested), an attribute is given twice, a side is
            empty, parentheses do not match, different operators stand beside each other, or nothing is left.

    Example:
        >>> from types import SimpleNamespace
        >>> info = SimpleNamespace(names=("digit", "scale"), values=(("3", "5", "8"), ("big", "small")))
        >>> expression = parse("digit=3 NOT scale=big OR NOT digit=3", info)
        >>> str(expression), sorted(expression.operators)
        ('digit=3 NOT scale=big OR NOT digit=3', ['NOT', 'OR'])
        >>> expression.matches(np.array([[0, 0], [0, 1], [2, 0]], np.uint8)).tolist()
        [False, True, True]
        >>> parse("(digit=3 scale=big) IN COMMON (digit=3 AND scale=small)", info).meaning
        'digit=3'
    """
    return _Parser(text, info).parse()


class _Parser:
    """Recursive descent parser of one description."""

    def __init__(self, text: str, info: Vocabulary) -> None:
        self.text = text
        self.info = info
        self.words: list[str] = []
        for word in split_words(text, signs=True):
            if self.words and f"{self.words[-1]} {word}" == IN_COMMON:
                self.words[-1] = IN_COMMON
            else:
                self.words.append(word)
        self.position = 0

    @property
    def next_word(self) -> str | None:
        return self.words[self.position] if self.position < len(self.words) else None

    def make_error(self, reason: str) -> UsageError:
        return UsageError(f"description '{self.text}' {reason}")

    def parse(self) -> Expression:
        self.check_operators()
        return self.parse_description(0) if self.words else self.parse_leaf([])

    def check_operators(self) -> None:
        """Refuse unmatched parentheses, NOT and OR together with other operators, and too many operands."""
        if min(accumulate((word == OPEN) - (word == CLOSE) for word in self.words), default=0) < 0:
            raise self.make_error("closes a parenthesis that was never opened; remove it, or quote it in a value")
        guided = sorted({NOT, OR} & set(self.words))
        others = [operator for operator in OPERATORS if operator in self.words]
        if guided and (others or {OPEN, CLOSE} & set(self.words)):
            raise self.make_error(
                f"has {guided[0]} beside {' and '.join(others) or 'parentheses'}, expected one or the other: {NOT} and "
                f"{OR} are drawn by completing descriptions, operators and parentheses by a posterior"
            )
        count = 1 + sum(word in OPERATORS for word in self.words)
        if count > _MOST_OPERANDS:
            raise UsageError(f"description joins {count:,} parts, expected at most {_MOST_OPERANDS}; join fewer")

    def parse_description(self, depth: int) -> Expression:
        terms, operator = [self.parse_term(depth)], ""
        while self.next_word not in (None, CLOSE):
            if self.next_word not in (OR, *OPERATORS):
                raise self.make_error(f"has '{self.next_word}' right after a parenthesis, expected {_ANY}")
            if operator and self.next_word != operator:
                raise self.make_error(
                    f"has {operator} and {self.next_word} side by side; join one of them first by parentheses"
                )
            operator = self.words[self.position]
            self.position += 1
            terms.append(self.parse_term(depth))
            if operator != OR:
                terms = [self.join_operands(operator, *terms)]
        return terms[0] if len(terms) == 1 else self.join_alternatives(terms)

    def parse_term(self, depth: int) -> Expression:
        if self.next_word == OPEN:
            if depth >= _MOST_DEEP:
                raise UsageError(f"description has more than {_MOST_DEEP} parentheses inside each other; use fewer")
            self.position += 1
            inner = self.parse_description(depth + 1)
            if self.next_word != CLOSE:
                raise self.make_error("opens a parenthesis that is never closed; close it")
            self.position += 1
            return inner
        start = self.position
        while self.next_word not in (None, OPEN, CLOSE, OR, *OPERATORS):
            self.position += 1
        if start == self.position:
            raise self.make_error("has nothing on one side of an operator, expected attribute=value on both")
        if self.next_word == OPEN:
            raise self.make_error(f"has no operator before a parenthesis, expected {_ANY}")
        return self.parse_leaf(self.words[start : self.position])

    def parse_leaf(self, words: Sequence[str]) -> Expression:
        info = self.info
        codes = np.full(len(info.names), UNKNOWN, np.uint8)
        values: dict[int, str] = {}
        excluded: dict[tuple[int, int], None] = {}
        rest = iter([] if list(words) == [ANYTHING] else words)
        for word in rest:
            if word == NOT:
                excluded[self.parse_exclusion(next(rest, ""))] = None
                continue
            attribute, code = _parse_pair(word, info)
            value = word.partition("=")[2] or word
            if attribute in values:
                raise UsageError(
                    f"description gives '{info.names[attribute]}' twice, as '{values[attribute]}' and '{value}'; give "
                    f"each attribute once, or join alternatives by {OR}"
                )
            values[attribute], codes[attribute] = value, code
        box = _allowed_values(codes, info)
        for attribute, code in excluded:
            box[attribute, code] = False
            if not box[attribute, : len(info.values[attribute])].any():
                raise self.make_error(
                    f"leaves no value of '{info.names[attribute]}', so that nothing can be drawn; leave out one {NOT}"
                )
        meaning = format_query(codes, info)
        plain = [] if excluded and meaning == ANYTHING else [meaning]
        pairs = [f"{info.names[attribute]}={quote_value(info.values[attribute][code])}" for attribute, code in excluded]
        text = " ".join([*plain, *(f"{NOT} {pair}" for pair in pairs)])
        return Expression(text, codes, meaning, (box,), NOT if excluded else "")

    def parse_exclusion(self, word: str) -> tuple[int, int]:
        if word in ("", NOT):
            raise self.make_error(f"has {NOT} without attribute=value after it; name the value that is excluded")
        attribute, code = _parse_pair(word, self.info)
        if code == UNKNOWN:
            raise self.make_error(f"has {NOT} {word}, expected a value; name the value that is excluded")
        return attribute, code

    def join_alternatives(self, terms: Sequence[Expression]) -> Expression:
        words = f" {OR} ".join(term.words for term in terms)
        nothing = np.full(len(self.info.names), UNKNOWN, np.uint8)
        return Expression(
            words, nothing, ANYTHING, tuple(box for term in terms for box in term.boxes), OR, tuple(terms)
        )

    def join_operands(self, operator: str, left: Expression, right: Expression) -> Expression:
        specified, differs = right.codes != UNKNOWN, left.codes != right.codes
        if operator == AND:
            conflicts = specified & differs & (left.codes != UNKNOWN)
            if conflicts.any():
                raise self.make_error(
                    f"asks for two values of '{self.info.names[int(conflicts.argmax())]}' at once, expected one; give "
                    f"one, or join alternatives by {OR}"
                )
            codes = np.where(specified, right.codes, left.codes)
        elif operator == IGNORE:
            if (specified & differs).any():
                raise self.make_error(
                    f"has {right.meaning} after {IGNORE}, expected a part of {left.meaning}; name such a part"
                )
            codes = np.where(specified, np.uint8(UNKNOWN), left.codes)
        else:
            codes = np.where(differs, np.uint8(UNKNOWN), left.codes)
        words = f"{_parenthesise(left)} {operator} {_parenthesise(right)}"
        meaning, boxes = format_query(codes, self.info), (_allowed_values(codes, self.info),)
        return Expression(words, codes, meaning, boxes, operator, (left, right))


def _parenthesise(operand: Expression) -> str:
    """Return the text of an operand, in parentheses if it has several words."""
    return f"({operand})" if operand.operator or len(operand.words.split()) > 1 else str(operand)


def _allowed_values(codes: np.ndarray, info: Vocabulary) -> np.ndarray:
    """Return the values that attribute codes [A] allow, bool [A, V]; an unknown code allows all."""
    width = max((len(values) for values in info.values), default=0)
    return np.asarray((codes[:, None] == UNKNOWN) | (codes[:, None] == np.arange(width)))


def _parse_pair(word: str, info: Vocabulary) -> tuple[int, int]:
    """Parse ``attribute=value``, or a value of one attribute alone, to the numbers of attribute and value;
    ``attribute=*`` gives ``UNKNOWN``.
    """
    name, equals, value = word.partition("=")
    if not equals:
        return _parse_bare_value(word, info)
    if name not in info.names:
        raise UsageError(format_unknown_name("attribute", name, info.names))
    attribute = info.names.index(name)
    values = info.values[attribute]
    code = _find_value(value, values)
    if code is None and value not in UNSPECIFIED:
        near = find_nearest_name(value, values)
        hint = f": did you mean '{near}'?" if near else "."
        raise UsageError(f"{name} has no value '{clip(value, 100)}'{hint} Its values are {join_names(value, values)}")
    return attribute, UNKNOWN if code is None else code


def _find_value(word: str, values: Sequence[str]) -> int | None:
    """Return the place of a value as it is typed; None if it is none."""
    for spelled in (word, unicodedata.normalize("NFC", word)):  # keyboards may type an accent after its letter
        if spelled in values:
            return values.index(spelled)
    return None


def _parse_bare_value(word: str, info: Vocabulary) -> tuple[int, int]:
    """Return the numbers of the one attribute that has this value, and of the value."""
    every = [(number, _find_value(word, values)) for number, values in enumerate(info.values)]
    found = [(number, code) for number, code in every if code is not None]
    if not found:
        raise UsageError(_unknown_word_message(word, info))
    if len(found) > 1:
        ways = [f"{info.names[number]}={quote_value(word)}" for number, _ in found]
        raise UsageError(f"'{word}' is a value of {len(ways)} attributes; say which: {' or '.join(ways)}")
    return found[0]


def _unknown_word_message(word: str, info: Vocabulary) -> str:
    """Return the error message for a word without "=" that is no value."""
    if operator := next((o for o in (NOT, OR, *OPERATORS) if word.upper() in o.split()), ""):
        return f"description has '{word}', expected attribute=value, or {operator} in capitals between descriptions"
    every = zip(reversed(info.names), reversed(info.values), strict=True)
    plain = {value: f"{name}={value}" for name, words in every for value in words}
    near = find_nearest_name(word, [*plain, *info.names])
    example = " ".join(
        f"{name}={quote_value(words[0])}" for name, words in zip(info.names, info.values[:2], strict=False)
    )
    hint = f": did you mean '{plain.get(near, near + '=...')}'?" if near else f", such as {example}."
    expected = f"expected attribute=value, or a value{hint}"
    return f"description has '{word}', {expected} The attributes are {join_names(word, info.names)}"
