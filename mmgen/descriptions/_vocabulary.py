"""Vocabularies: words of the data, and words of the grammar of descriptions."""

from typing import Protocol

__all__ = [
    "AND",
    "ANYTHING",
    "IGNORE",
    "IN_COMMON",
    "NOT",
    "OPERATORS",
    "OR",
    "SEPARATORS",
    "UNSPECIFIED",
    "TextVocabulary",
    "Vocabulary",
]

ANYTHING = "anything"
"""The description that mentions no attribute."""
UNSPECIFIED = ("*", "?", "any", "unknown")
"""Values that leave an attribute unspecified; no attribute has a value of that name."""
NOT, OR = "NOT", "OR"
"""Negation and alternatives, which guidance answers."""
OPERATORS = AND, IN_COMMON, IGNORE = "AND", "IN COMMON", "IGNORE"
"""SCAN's recombination operators, which a posterior with networks for them answers."""
SEPARATORS = " \t\r\n,;"
"""Signs between words."""


class Vocabulary(Protocol):
    """Protocol of objects with names of attributes and their values, such as ``Dataset.attributes[...]``.

    Attributes:
        names: One name per attribute, [A].
        values: The words of each attribute, [A] tuples of V words.
    """

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def values(self) -> tuple[tuple[str, ...], ...]: ...


class TextVocabulary(Protocol):
    """Protocol of objects with the words of captions, such as ``Dataset.texts[...]``.

    Attributes:
        vocabulary: The V words; a word's code is its position, and V stands for "no word".
        length: Largest number of words in a caption, T.
        slots: For each position the attribute that it spells, [T]; empty for free text.
    """

    @property
    def vocabulary(self) -> tuple[str, ...]: ...

    @property
    def length(self) -> int: ...

    @property
    def slots(self) -> tuple[str, ...]: ...
