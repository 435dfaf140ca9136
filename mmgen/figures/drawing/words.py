"""Histograms of words: their probabilities at each position of a text, and the drawn word (CK Fig. 3, 5, 7).

References:
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Fig. 3
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from PIL import ImageDraw

from mmgen.core.errors import UsageError
from mmgen.core.parsing import printable
from mmgen.descriptions import TextVocabulary, Vocabulary
from mmgen.figures.drawing.style import FAINT, INK, MUTED, RULE, category_colours, load_font
from mmgen.generation.texts import DecodedTexts

__all__ = [
    "NARROWEST",
    "TextWithDistributions",
    "WordPanels",
    "mean_entropies",
    "word_entropies",
    "slot_words",
    "pair_with_distributions",
    "explain_words",
    "has_histograms",
    "vocabulary_note",
]

NARROWEST = 276
"""Minimal width of word histograms in pixels."""
_HISTOGRAM_NOTE = "Under a picture: for each position of the text p(word | z, words before), black for the word drawn."

_PITCH = 27
"""Pixels from one panel to the next; pages show half of that."""
_HEIGHT = 22
_NARROWEST_BAR = 2
_TYPE = 17
_BAR = category_colours(1)[0]


@dataclass(frozen=True)
class TextWithDistributions:
    """Text that a model drew, with the distribution from which each word was drawn.

    Attributes:
        tokens: Word codes, integers [T]; V for no word.
        probabilities: p(word_t | z, words before), float [T, V + 1].
    """

    tokens: np.ndarray
    probabilities: np.ndarray


def word_entropies(probabilities: np.ndarray) -> np.ndarray:
    """Compute the entropy in bits [..., T] of each word's distribution [..., T, V + 1].

    One bit is the uncertainty between two equally probable words.

    Example:
        >>> word_entropies(np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])).tolist()
        [1.0, 0.0]
    """
    p = np.asarray(probabilities, np.float64)
    return np.asarray(-(p * np.log2(np.where(p > 0, p, 1.0))).sum(-1)) + 0.0


def slot_words(info: TextVocabulary, attributes: Vocabulary | None) -> list[list[int]]:
    """Return the codes of the words that can stand at each position of a text; [] for free text."""
    if attributes is None or not info.slots or not set(info.slots) <= set(attributes.names):
        return []
    values = [attributes.values[attributes.names.index(slot)] for slot in info.slots]
    return [[info.vocabulary.index(word) for word in words if word in info.vocabulary] for words in values]


def vocabulary_note(info: TextVocabulary, attributes: Vocabulary | None = None) -> str:
    """Explain for a caption which words the bars of a histogram stand for."""
    groups = [info.vocabulary[0]]
    kinds = slot_words(info, attributes)
    for code in range(1, len(info.vocabulary)):
        together = not kinds or any(code in kind and code - 1 in kind for kind in kinds)
        groups += [(", " if together else " | ") + info.vocabulary[code]]
    band = " Grey bands: the words that belong to the position." if kinds else " Last: no word."
    return f"Bars from left to right: {''.join(groups)}.{band}"


def has_histograms(info: TextVocabulary, attributes: Vocabulary | None = None) -> bool:
    """Return whether a histogram of the vocabulary fits under a picture; else the drawn words stand there."""
    panels = WordPanels(info, attributes, NARROWEST)
    return (NARROWEST - panels.label_width) // panels.bars >= _NARROWEST_BAR


def explain_words(info: TextVocabulary, attributes: Vocabulary | None = None) -> str:
    """Explain for a caption what stands under pictures: histograms of words, or the drawn words alone."""
    if has_histograms(info, attributes):
        return f"{_HISTOGRAM_NOTE} {vocabulary_note(info, attributes)}"
    return f"Under a picture: the words drawn, without histograms of the {len(info.vocabulary):,} words."


@dataclass(frozen=True)
class WordPanels:
    """Layout of a column of small histograms, one for each position of a text, with the drawn word on the left.

    Attributes:
        info: The vocabulary.
        attributes: Attributes that the positions spell; None for free text.
        width: Width in pixels.
    """

    info: TextVocabulary
    attributes: Vocabulary | None
    width: int

    @property
    def height(self) -> int:
        """Height of all histograms together in pixels."""
        return _PITCH * self.info.length

    @cached_property
    def bars(self) -> int:
        """Number of bars of a histogram: one for each word, and for free text one for "no word"."""
        return len(self.info.vocabulary) + (not slot_words(self.info, self.attributes))

    @cached_property
    def label_width(self) -> int:
        """Width of the drawn words on the left of the bars, in pixels."""
        longest = max(round(load_font(_TYPE).getlength(word)) for word in self.info.vocabulary)
        return min(longest + 10, round(0.45 * self.width))

    @cached_property
    def bar_pitch(self) -> int:
        """Distance from one bar to the next, in pixels.

        Raises:
            UsageError: The vocabulary does not fit into the width.
        """
        pitch = (self.width - self.label_width) // self.bars
        if pitch < _NARROWEST_BAR:
            raise UsageError(
                f"a histogram of {self.bars} words does not fit into {self.width} pixels; use a smaller vocabulary"
            )
        return pitch

    def bar_box(self, position: int, code: int, probability: float, left: int, top: int) -> tuple[int, int, int, int]:
        """Return the box (left, top, right, bottom; the last two excluded) of a bar, with the panels at (left, top)."""
        floor = top + position * _PITCH + _HEIGHT
        x = left + self.label_width + code * self.bar_pitch
        return x, floor - round(_HEIGHT * probability), x + max(1, self.bar_pitch - 1), floor

    def draw(self, canvas: ImageDraw.ImageDraw, text: TextWithDistributions, left: int, top: int) -> None:
        """Draw the histograms of a text with their upper left corner at (left, top)."""
        letters, pitch = load_font(_TYPE), self.bar_pitch
        kinds = slot_words(self.info, self.attributes)
        for position in range(self.info.length):
            base = top + position * _PITCH + _HEIGHT
            drawn = int(text.tokens[position])
            word = printable(self.info.vocabulary[drawn], 100) if drawn < len(self.info.vocabulary) else "–"
            while len(word) > 2 and letters.getlength(word) > self.label_width - 4:
                word = word[:-2] + "…"
            canvas.text((left, base - _TYPE - 3), word, font=letters, fill=INK if drawn != self.bars else MUTED)
            for code in kinds[position] if kinds else []:
                x, _, right, _ = self.bar_box(position, code, 1.0, left, top)
                canvas.rectangle((x, base - _HEIGHT, right, base - 1), fill=FAINT)
            start = left + self.label_width
            canvas.line((start, base, start + self.bars * pitch, base), fill=RULE)
            for code, probability in enumerate(text.probabilities[position][: self.bars]):
                x, y, right, floor = self.bar_box(position, code, float(np.clip(probability, 0, 1)), left, top)
                if y < floor:
                    canvas.rectangle((x, y, right - 1, floor - 1), fill=INK if code == drawn else _BAR)


def mean_entropies(texts: Sequence[TextWithDistributions]) -> np.ndarray:
    """Compute the entropy of the word distribution at each position, averaged over texts, bits [T]."""
    return np.asarray(np.mean([word_entropies(text.probabilities) for text in texts], axis=0))


def pair_with_distributions(decoded: DecodedTexts) -> list[TextWithDistributions]:
    """Pair each decoded text with the distributions of its words."""
    return [
        TextWithDistributions(tokens, table)
        for tokens, table in zip(decoded.tokens, decoded.probabilities, strict=True)
    ]
