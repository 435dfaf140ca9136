"""Histograms of words: their probabilities at each position of a text, and the drawn word (CK Fig. 3, 5, 7).

References:
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Fig. 3
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mmgen.core.parsing import printable
from mmgen.descriptions import TextVocabulary, Vocabulary
from mmgen.figures.drawing.blocks import Line
from mmgen.figures.drawing.page import SIZE
from mmgen.figures.drawing.style import FAINT, INK, MUTED, RULE, category_colours, hex_to_rgb, load_font
from mmgen.generation.classifiers import DecodedTexts

NARROWEST = 276
"""Minimal width of word histograms in pixels."""
_HISTOGRAM_NOTE = "Under a picture: for each position of the text p(word | z, words before), black for the word drawn."

_HEIGHT = 22
_NARROWEST_BAR = 2
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
    return (NARROWEST - _word_width(info, NARROWEST)) // _number_of_bars(info, attributes) >= _NARROWEST_BAR


def explain_words(info: TextVocabulary, attributes: Vocabulary | None = None) -> str:
    """Explain for a caption what stands under pictures: histograms of words, or the drawn words alone."""
    if has_histograms(info, attributes):
        return f"{_HISTOGRAM_NOTE} {vocabulary_note(info, attributes)}"
    return f"Under a picture: the words drawn, without histograms of the {len(info.vocabulary):,} words."


def _word_width(info: TextVocabulary, width: int) -> int:
    """Return the pixels that drawn words take to the left of the bars."""
    longest = max(round(load_font(SIZE).getlength(word)) for word in info.vocabulary)
    return min(longest + 10, round(0.45 * width))


def _number_of_bars(info: TextVocabulary, attributes: Vocabulary | None) -> int:
    """Return the number of bars of a histogram: one for each word, and for free text one for "no word"."""
    return len(info.vocabulary) + (not slot_words(info, attributes))


def histogram_lines(
    text: TextWithDistributions, info: TextVocabulary, attributes: Vocabulary | None, width: int
) -> list[Line]:
    """Draw a histogram for each position of a text, with the drawn word on its left.

    Args:
        text: The drawn words and their distributions.
        info: The vocabulary.
        attributes: Attributes that the positions spell; None for free text.
        width: Width of words and bars in pixels.
    """
    left, bars, kinds = _word_width(info, width), _number_of_bars(info, attributes), slot_words(info, attributes)
    pitch, lines = (width - left) // bars, []
    for position, drawn in enumerate(int(code) for code in text.tokens):
        pixels = np.full((_HEIGHT, bars * pitch, 3), 255, np.uint8)
        for code in kinds[position] if kinds else []:
            pixels[:, code * pitch : (code + 1) * pitch - 1] = hex_to_rgb(FAINT)
        pixels[-1] = hex_to_rgb(RULE)
        for code, probability in enumerate(np.clip(text.probabilities[position][:bars], 0, 1)):
            high = round((_HEIGHT - 1) * float(probability))
            colour = hex_to_rgb(INK if code == drawn else _BAR)
            pixels[_HEIGHT - 1 - high : -1, code * pitch : (code + 1) * pitch - 1] = colour
        word = printable(info.vocabulary[drawn], 100) if drawn < len(info.vocabulary) else "–"
        while len(word) > 2 and load_font(SIZE).getlength(word) > left - 4:
            word = word[:-2] + "…"
        lines.append(Line([(word, INK if drawn != bars else MUTED, False)], pixels, left))
    return lines


def mean_entropies(texts: Sequence[TextWithDistributions]) -> np.ndarray:
    """Compute the entropy of the word distribution at each position, averaged over texts, bits [T]."""
    return np.asarray(np.mean([word_entropies(text.probabilities) for text in texts], axis=0))


def pair_with_distributions(decoded: DecodedTexts) -> list[TextWithDistributions]:
    """Pair each decoded text with the distributions of its words."""
    return [
        TextWithDistributions(tokens, table)
        for tokens, table in zip(decoded.tokens, decoded.probabilities, strict=True)
    ]
