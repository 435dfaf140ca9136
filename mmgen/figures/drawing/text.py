"""Text in pictures: wrapping to lines, measuring, drawing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import ImageDraw

from mmgen.core.parsing import strip_controls
from mmgen.figures.drawing.style import INK, MUTED, load_font

__all__ = ["TextBlock", "MarkedTextBlock", "column_width", "wrap_text", "wrap_marked"]


_MOST_LETTERS = 10_000
"""Number of letters at which a longer text is cut."""


def _split_long(word: str, size: int, bold: bool, width: int) -> list[str]:
    """Split a word into pieces of at most ``width`` pixels."""
    pieces, current = [], ""
    for letter in word:
        if current and load_font(size, bold).getlength(current + letter) > width:
            pieces.append(current)
            current = ""
        current += letter
    return [*pieces, current]


def column_width(texts: Sequence[str], size: int, min_width: int, max_width: int) -> int:
    """Return the width of the longest word of ``texts`` in pixels, at least ``min_width`` and at most ``max_width``."""
    words = (word for text in texts for word in text.split())
    return min(max_width, max([min_width, *(math.ceil(load_font(size).getlength(word)) for word in words)]))


def wrap_text(text: str, size: int, width: int, bold: bool = False, max_lines: int = 0) -> list[str]:
    """Wrap ``text`` into lines at most ``width`` pixels wide; cut it after ``max_lines`` lines (0: no limit)."""
    lines = [""]
    for word in strip_controls(text[:_MOST_LETTERS]).split():
        for piece in _split_long(word, size, bold, width):
            longer = f"{lines[-1]} {piece}".strip()
            if lines[-1] and load_font(size, bold).getlength(longer) > width:
                lines.append(piece)
            else:
                lines[-1] = longer
    if max_lines and len(lines) > max_lines:
        lines = lines[:max_lines]
        while lines[-1] and load_font(size, bold).getlength(lines[-1] + "…") > width:
            lines[-1] = lines[-1][:-1]
        lines[-1] += "…"
    return lines if lines != [""] else []


@dataclass(frozen=True)
class TextBlock:
    """Block of text that is wrapped to lines, for drawing.

    Attributes:
        lines: One string per line.
        size: Type size in pixels.
        colour: ``#rrggbb``.
        bold: Heavier type.
    """

    lines: list[str]
    size: int
    colour: str = INK
    bold: bool = False

    @property
    def pitch(self) -> int:
        """Distance from one line to the next, in pixels."""
        return round(self.size * 1.35)

    @property
    def height(self) -> int:
        """Return the height of the block in pixels; 0 without text."""
        return self.pitch * len(self.lines)

    @property
    def width(self) -> int:
        """Width of the block's widest line in pixels."""
        return max((round(load_font(self.size, self.bold).getlength(line)) for line in self.lines), default=0)

    def draw(self, canvas: ImageDraw.ImageDraw, left: int, top: int, centred_in: int = 0) -> None:
        """Draw the block with its upper left corner at (left, top), or each line centred in ``centred_in`` pixels."""
        letters = load_font(self.size, self.bold)
        for row, line in enumerate(self.lines):
            shift = max(0, round((centred_in - letters.getlength(line)) / 2)) if centred_in else 0
            canvas.text((left + shift, top + row * self.pitch), line, font=letters, fill=self.colour)


@dataclass(frozen=True)
class MarkedTextBlock:
    """Block of words wrapped to lines, for drawing: marked words are bold and dark, the others grey.

    Attributes:
        lines: For each line its words, and whether each is bold.
        size: Type size in pixels.
    """

    lines: list[list[tuple[str, bool]]]
    size: int

    @property
    def height(self) -> int:
        """Return the height of the block in pixels; 0 without text."""
        return round(self.size * 1.35) * len(self.lines)

    def draw(self, canvas: ImageDraw.ImageDraw, left: int, top: int, centred_in: int = 0) -> None:
        """Draw the block with its upper left corner at (left, top); it is never centred."""
        for row, line in enumerate(self.lines):
            x = float(left)
            for word, marked in line:
                letters = load_font(self.size, marked)
                canvas.text((x, top + row * round(self.size * 1.35)), word, font=letters, fill=INK if marked else MUTED)
                x += letters.getlength(word + " ")


def wrap_marked(words: Sequence[str], marked: Sequence[bool], size: int, width: int) -> MarkedTextBlock:
    """Wrap words, bold where ``marked``, into lines at most ``width`` pixels wide; a wider word has its own line."""
    lines: list[list[tuple[str, bool]]] = []
    used = 0.0
    for text, mark in zip(words, marked, strict=True):
        word = strip_controls(text[:_MOST_LETTERS], keep="")
        needed = load_font(size, mark).getlength(word + " ")
        if not lines or used + load_font(size, mark).getlength(word) > width:
            lines.append([])
            used = 0.0
        lines[-1].append((word, mark))
        used += needed
    return MarkedTextBlock(lines, size)
