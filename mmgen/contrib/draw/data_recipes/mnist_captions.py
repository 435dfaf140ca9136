"""MNIST captions: one or two digits on a canvas, with a sentence that says where they are.

References:
    Generating Images from Captions with Attention (Mansimov, Parisotto, Ba, Salakhutdinov, 2015), arXiv:1511.02793,
    Section 4.2, and the authors' published code: places, templates and the digits held out of each slot
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mmgen.core.errors import DataError
from mmgen.core.notation import UNKNOWN
from mmgen.data_recipes._base import Rows
from mmgen.data_recipes._digits import resize_digits
from mmgen.data_recipes._several_digits import PARTS, DigitPools, SeveralDigitsRecipe
from mmgen.data_recipes._sources import DIGIT_SIZE
from mmgen.data_recipes._streams import Bits, SplitScheme, random_bits, random_integers, random_uniforms, stream_keys

if TYPE_CHECKING:
    from mmgen.artifacts import DatasetWriter

__all__ = ["MnistCaptions"]

_TEST = PARTS.index("test")
_NO_SOURCE = 2**32 - 1
_NONE = 10
"""Held-out "digit" of a slot from which no digit is held out; as likely as each digit in the published code."""

# First rows and columns of digits on the published canvas: the first of so many equally likely whole numbers.
_PUBLISHED_CANVAS = 60
_ROWS = {"top": (0, 3), "middle": (16, 3), "bottom": (30, 3)}
_COLUMNS = {"left": (0, 5), "middle": (16, 3), "right": (28, 5)}

# Draws of an image, by slot of its stream.
_TEMPLATE, _FIRST_DIGIT, _SECOND_DIGIT, _WHICH_HELD_OUT, _FIRST_ROW, _FIRST_COLUMN = 0, 1, 2, 3, 4, 8


@dataclass(frozen=True)
class _Template:
    """A sentence with places for digits, and where they are on the canvas.

    Attributes:
        text: The sentence; a and b stand for the digits in the order of their mention.
        layout: Value of the attribute ``layout``.
        places: Row and column of each digit that it mentions.
    """

    text: str
    layout: str
    places: tuple[tuple[str, str], ...]


_LEFT, _RIGHT, _TOP, _BOTTOM = ("middle", "left"), ("middle", "right"), ("top", "middle"), ("bottom", "middle")

_TEMPLATES = (
    _Template("the digit a is on the left of the digit b .", "side-by-side", (_LEFT, _RIGHT)),
    _Template("the digit a is on the right of the digit b .", "side-by-side", (_RIGHT, _LEFT)),
    _Template("the digit a is at the top of the digit b .", "stacked", (_TOP, _BOTTOM)),
    _Template("the digit a is at the bottom of the digit b .", "stacked", (_BOTTOM, _TOP)),
    *(
        _Template(f"the digit a is at the {row} {column} of the image .", f"{row}-{column}", ((row, column),))
        for row, column in (("top", "left"), ("bottom", "right"), ("top", "right"), ("bottom", "left"))
    ),
)
_DIGITS = [str(digit) for digit in range(10)]
_VOCABULARY = ["the", "digit", "is", "on", "at", "left", "right", "top", "bottom", "of", "image", ".", *_DIGITS]
_LENGTH = 12
_ATTRIBUTES = {
    "layout": list(dict.fromkeys(template.layout for template in _TEMPLATES)),
    "digit_1": _DIGITS,
    "digit_2": _DIGITS,
}

_TWO = (2,)
_FACTORS: dict[str, tuple[str, str, str, tuple[int, ...]]] = {
    "template": (
        "uint8",
        "",
        "sentence: " + "; ".join(f"{code} {template.text}" for code, template in enumerate(_TEMPLATES)),
        (),
    ),
    "digit": ("uint8", "", f"digits in the order of the sentence; {UNKNOWN} where there is none", _TWO),
    "source": (
        "uint32",
        "",
        f"numbers of their source digits, in published order, training digits first; {_NO_SOURCE} where none is",
        _TWO,
    ),
    "source_part": ("uint8", "", "0: the publisher's training digits, 1: the test digits; never both", ()),
    "row": ("int16", "pixel", "first row of each digit's box, in the order of the sentence; -1 where none is", _TWO),
    "column": ("int16", "pixel", "first column of each digit's box, likewise", _TWO),
    "held_out": ("uint8", "", "1 if a digit stands where it is held out of training", ()),
}


class MnistCaptions(SeveralDigitsRecipe):
    """MNIST captions: one or two digits, and a sentence of twelve tokens that says where they are.

    The sentence is one of eight, all equally likely, and digits are uniform over the source digits of the image's part.
    Each of the twelve slots for a digit has a digit, or none, that is held out of it. Images of ``train`` and ``val``
    never have a held-out digit in its slot; every second test image has one, and these are the test part of the split
    ``heldout``. Where two digits overlap the brighter pixel is kept; pixels are grey.

    Attributes say what is seen: ``layout``, ``digit_1`` (the only, left or upper digit) and ``digit_2`` (the right or
    lower one, unknown for a single digit).
    """

    size: Annotated[int, Field(ge=16, le=512)] = _PUBLISHED_CANVAS
    """Height and width of the canvas in pixels; digits and their places scale with it."""

    name: ClassVar[str] = "mnist-captions"

    def choose_digits(
        self, pools: DigitPools, part: NDArray[np.int64], indices: NDArray[np.int64], seed: int
    ) -> tuple[Any, ...]:
        keys, held_out = stream_keys(seed, self.name, indices), _draw_held_out(seed)
        unseen = self._held_out_images(pools, seed)[indices]
        template = np.empty(len(indices), np.int64)
        chosen = np.full((len(indices), 2), -1, np.int64)
        for code in range(len(PARTS)):
            for with_held_out in (False, True):
                rows = np.flatnonzero((part == code) & (unseen == with_held_out))
                if len(rows):
                    choice = _Choice(pools, code, held_out)
                    template[rows], chosen[rows] = (choice.unseen if with_held_out else choice.seen)(keys[rows])
        there = chosen >= 0
        factors: dict[str, NDArray[Any]] = {
            "template": template.astype(np.uint8),
            "digit": np.where(there, pools.digits.labels[chosen], UNKNOWN).astype(np.uint8),
            "source": np.where(there, chosen, _NO_SOURCE).astype(np.uint32),
            "source_part": pools.digits.part[chosen[:, 0]],
        }
        return pools.digits.images[chosen[there]], factors, unseen.astype(np.uint8), keys

    def make_rows(
        self,
        pictures: NDArray[np.uint8],
        factors: dict[str, NDArray[Any]],
        held_out: NDArray[np.uint8],
        keys: Bits,
    ) -> Rows:
        """Make images in stored form; runs in a worker.

        Args:
            pictures: Source digits [m, 28, 28] of all images, in the order of images and mention.
            factors: Factors of the n images that are chosen already.
            held_out: Whether an image shows a held-out digit [n].
            keys: Random streams of the images [n].
        """
        cell = max(1, round(DIGIT_SIZE * self.size / _PUBLISHED_CANVAS))
        row, column = (
            _place_digits(factors["template"], keys, starts, axis, slot, self.size, cell)
            for axis, (starts, slot) in enumerate(((_ROWS, _FIRST_ROW), (_COLUMNS, _FIRST_COLUMN)))
        )
        canvases = np.zeros((len(keys), self.size, self.size), np.uint8)
        image, which = np.nonzero(factors["digit"] != UNKNOWN)
        for ink, i, k in zip(resize_digits(pictures, cell), image.tolist(), which.tolist(), strict=True):
            top, left = row[i, k], column[i, k]
            box = canvases[i, top : top + cell, left : left + cell]
            np.maximum(box, ink, out=box)
        columns: dict[str, NDArray[Any]] = {
            "image": canvases[:, None],
            "attributes": _attribute_codes(factors["template"], factors["digit"]),
            "text": _word_codes(factors["template"], factors["digit"]),
        }
        return Rows(columns, {**factors, "row": row, "column": column, "held_out": held_out})

    def add_elements(self, writer: "DatasetWriter") -> None:
        writer.add_image("image", (1, self.size, self.size), "bytes")
        writer.add_attributes("attributes", _ATTRIBUTES)
        writer.add_text("text", _VOCABULARY, _LENGTH)
        for name, (dtype, unit, meaning, shape) in _FACTORS.items():
            writer.add_factor(name, dtype, unit, meaning, shape)

    def split_schemes(self, pools: DigitPools, part: NDArray[np.int64], seed: int) -> dict[str, SplitScheme]:
        unseen = self._held_out_images(pools, seed)
        parts = {name: np.flatnonzero((part == code) & ~unseen) for code, name in enumerate(PARTS)}
        schemes = {scheme: (f"{meaning}; no held-out digit", parts) for scheme, meaning in pools.schemes.items()}
        meaning = "training and validation images of iid; every test image has a digit that is held out of its slot"
        return {**schemes, "heldout": (meaning, {**parts, "test": np.flatnonzero(unseen)})}

    def further_settings(self, seed: int) -> dict[str, Any]:
        names = {digit: str(digit) for digit in range(10)} | {_NONE: "none"}
        table = [[names[digit] for digit in row] for row in _draw_held_out(seed).tolist()]
        return {
            "held_out": {
                template.text: row[: len(template.places)] for template, row in zip(_TEMPLATES, table, strict=True)
            }
        }

    def _held_out_images(self, pools: DigitPools, seed: int) -> NDArray[np.bool_]:
        """Return which images [N] show a held-out digit: every second test image."""
        test = pools.of_images(self.number, seed, self.name) == _TEST
        unseen: NDArray[np.bool_] = test & (np.cumsum(test) % 2 == 0)
        return unseen


def _draw_held_out(seed: int) -> NDArray[np.int64]:
    """Draw the digit that is held out of each template's slots, 0 to 9, or 10 for none [8, 2]."""
    slots = random_bits(stream_keys(seed, "mnist-captions held out", np.zeros(1, np.int64)), np.arange(16))
    return random_integers(slots, _NONE + 1).reshape(len(_TEMPLATES), 2)


class _Choice:
    """Choice of a template and of digits of one part, with or without held-out digits."""

    def __init__(self, pools: DigitPools, code: int, held_out: NDArray[np.int64]) -> None:
        self._pools, self._code, self._held_out = pools, code, held_out

    def seen(self, keys: Bits) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw templates [n] and source digits [n, 2], -1 where none is, without held-out digits."""
        template = random_integers(random_bits(keys, _TEMPLATE), len(_TEMPLATES))
        chosen = np.full((len(keys), 2), -1, np.int64)
        for number, each in enumerate(_TEMPLATES):
            rows = np.flatnonzero(template == number)
            for k in range(len(each.places)):
                chosen[rows, k] = self._draw(keys[rows], k, self._members(number, k, held_out=False))
        return template, chosen

    def unseen(self, keys: Bits) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw likewise, each with a held-out digit in one of its slots at least."""
        usable = [number for number in range(len(_TEMPLATES)) if any(self._shares(number))]
        if not usable:
            raise DataError("no slot has a digit held out that occurs among the test digits; use another --seed")
        template = np.array(usable)[random_integers(random_bits(keys, _TEMPLATE), len(usable))]
        chosen = np.full((len(keys), 2), -1, np.int64)
        for number in usable:
            rows, shares = np.flatnonzero(template == number), self._shares(number)
            # Pairs are uniform among those with a held-out digit in its slot: in the first, or only in the second.
            first = shares[0] / (1 - np.prod(1 - np.array(shares)))
            in_first = random_uniforms(random_bits(keys[rows], _WHICH_HELD_OUT)) < first
            everything = self._pools.members(self._code)
            for which, some in ((True, rows[in_first]), (False, rows[~in_first])):
                if len(some):
                    chosen[some, 0] = self._draw(keys[some], 0, self._members(number, 0, held_out=which))
                    if len(shares) == 2:
                        second = everything if which else self._members(number, 1, held_out=True)
                        chosen[some, 1] = self._draw(keys[some], 1, second)
        return template, chosen

    def _shares(self, number: int) -> list[float]:
        """Return for each slot of a template the share of the part's digits that are held out of it."""
        total = len(self._pools.members(self._code))
        slots = range(len(_TEMPLATES[number].places))
        return [len(self._members(number, k, held_out=True)) / total for k in slots]

    def _members(self, number: int, k: int, *, held_out: bool) -> NDArray[np.int64]:
        allowed = (np.arange(10) == self._held_out[number, k]) == held_out
        return self._pools.members(self._code, allowed)

    def _draw(self, keys: Bits, k: int, members: NDArray[np.int64]) -> NDArray[np.int64]:
        if not len(keys):
            return np.empty(0, np.int64)
        if not len(members):
            raise DataError(
                f"the part {PARTS[self._code]} has no digit for a slot that may show it; use more digits, or another "
                "--seed"
            )
        return members[random_integers(random_bits(keys, _FIRST_DIGIT + k), len(members))]


def _place_digits(
    template: NDArray[np.uint8],
    keys: Bits,
    starts: dict[str, tuple[int, int]],
    axis: int,
    slot: int,
    size: int,
    cell: int,
) -> NDArray[np.int16]:
    """Return the first row or column of each digit on the canvas, int16 [n, 2], -1 where there is none."""
    placed = np.full((len(keys), 2), -1, np.int16)
    drawn = {
        name: first + random_integers(random_bits(keys, slot + index), count)
        for index, (name, (first, count)) in enumerate(starts.items())
    }
    for number, each in enumerate(_TEMPLATES):
        rows = template == number
        for k, place in enumerate(each.places):
            scaled = np.rint(drawn[place[axis]][rows] * (size / _PUBLISHED_CANVAS))
            placed[rows, k] = np.minimum(scaled, size - cell)
    return placed


def _attribute_codes(template: NDArray[np.uint8], digit: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return codes [n, 3] of layout, of the left, upper or only digit, and of the other one."""
    layouts = np.array([_ATTRIBUTES["layout"].index(each.layout) for each in _TEMPLATES], np.uint8)
    exchanged = np.array([each.places[0] in (_RIGHT, _BOTTOM) for each in _TEMPLATES])[template]
    return np.stack(
        [layouts[template], np.where(exchanged, digit[:, 1], digit[:, 0]), np.where(exchanged, *digit.T)], 1
    ).astype(np.uint8)


def _word_codes(template: NDArray[np.uint8], digit: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Return the words of each sentence, uint16 [n, 12]."""
    first_digit = _VOCABULARY.index("0")
    words = np.empty((len(template), _LENGTH), np.uint16)
    for number, each in enumerate(_TEMPLATES):
        rows = np.flatnonzero(template == number)
        for place, word in enumerate(each.text.split()):
            slot = {"a": 0, "b": 1}.get(word)
            words[rows, place] = _VOCABULARY.index(word) if slot is None else first_digit + digit[rows, slot]
    return words
