"""Pictures with other words by analogy: a picture changes as others do that differ in these words.

A source A shows "red folder with a lock", and a blue one is wanted. Other pictures C are red and have a counterpart B,
the same but blue. Each pixel of A looks for the pixels of the C that are most alike, in colour, surroundings and place,
and changes as these do from C to B.

References:
    Image Analogies (Hertzmann, Jacobs, Oliver, Curless, Salesin, 2001), SIGGRAPH 2001
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator
from mmgen.generation.image_analogy import WAYS, Picture, Way, change_alike, pool

_PAIRS = 32
"""Pairs (C, B) that pixels are looked for in, those whose C is most like A."""
_CELLS = 24
"""Combinations of words that are hidden and drawn again to measure an attribute."""
_GRID = 20_000
"""Combinations among which gaps are looked for."""
_LIKES = 3
"""Kinds of gaps, by the attributes of which they have no neighbour, that are measured: the most common ones."""
_EQUAL = 3.0
"""Difference in dB below which attributes whose changes are as often right are asked together."""
Codes = NDArray[np.uint8]


@dataclass(frozen=True)
class Quality:
    """How well hidden pictures are drawn again after a change of one attribute.

    Attributes:
        way: The best way.
        right: Percentage of drawn pictures whose nearest real picture has the wanted words.
        psnr: Their mean peak signal-to-noise ratio to the nearest hidden picture, in dB.
        cells: Number of combinations that were hidden.
    """

    way: Way
    right: float
    psnr: float
    cells: int


@dataclass(frozen=True)
class Analogy:
    """A picture that was drawn by analogy.

    Attributes:
        picture: Its pixels.
        source: Position of the picture that it began from.
        changed: Attributes that were changed, in order.
    """

    picture: Picture
    source: int
    changed: tuple[int, ...]


class Analogies:
    """Draws pictures of words by changing pictures that have most of them.

    Args:
        pictures: Pixels uint8 [N, C, H, W].
        codes: Their attributes uint8 [N, A]; a picture with an unknown one is no help.
        seed: Seed of the choice of sources and of hidden combinations.

    Attributes:
        measured: What :meth:`qualities` has found, by the attributes of which there is no neighbour.
    """

    def __init__(self, pictures: NDArray[np.uint8], codes: Codes, seed: int = 0) -> None:
        known = np.flatnonzero((codes != UNKNOWN).all(1))
        self._origins: list[int] = known.tolist()
        self._seed = seed
        self.measured: dict[frozenset[int], dict[int, Quality]] = {}
        self._pictures, self._codes = pictures[known], codes[known]
        self._cells: dict[tuple[int, ...], list[int]] = {}
        for position, code in enumerate(self._codes.tolist()):
            self._cells.setdefault(tuple(code), []).append(position)
        self._pooled = (
            np.stack([_pool_bytes(picture) for picture in self._pictures]) if len(known) else np.zeros((0, 1))
        )

    @property
    def cells(self) -> int:
        """Number of combinations that pictures have."""
        return len(self._cells)

    def qualities(self, alone: frozenset[int] = frozenset()) -> dict[int, Quality]:
        """Return how well each attribute is changed, best first, without those of which none can be drawn again.

        Args:
            alone: Attributes of which a combination has no neighbour, as where a person has no picture in any skin.
                Combinations that differ in these alone are hidden together.
        """
        if alone not in self.measured:
            found = {attribute: self._measure(attribute, alone) for attribute in range(self._codes.shape[1])}
            every = {attribute: quality for attribute, quality in found.items() if quality is not None}
            self.measured[alone] = dict(sorted(every.items(), key=lambda one: (-one[1].right, -one[1].psnr)))
        return self.measured[alone]

    def alone(self, cell: Sequence[int]) -> frozenset[int]:
        """Return the attributes of which no other value is there together with the other words of a combination."""
        values = [np.unique(column).tolist() for column in self._codes.T]
        return frozenset(
            attribute
            for attribute, each in enumerate(values)
            if not any(value != cell[attribute] and _with(cell, attribute, value) in self._cells for value in each)
        )

    def fill(self, code: Sequence[int], n: int = 1, qualities: Mapping[int, Quality] | None = None) -> list[Analogy]:
        """Draw up to ``n`` pictures of a combination from pictures that differ in one word; [] if there are none.

        Args:
            code: The combination [A].
            n: Number of pictures; each begins from other sources.
            qualities: Attributes that may be changed, the preferred first; by default :meth:`qualities` of its like.
        """
        ranked = qualities or self.qualities(self.alone(code)) or self.qualities()
        if n == 1 and len(equals := _equals(ranked)) > 1:
            drawn = [one for each in equals for one in self._change_one(code, *each, 2)]
            if len(drawn) > 2:
                return [replace(drawn[0], picture=np.median([one.picture for one in drawn], 0).astype(np.float32))]
        for attribute, quality in ranked.items():
            if drawn := self._change_one(code, attribute, quality, n):
                return drawn
        return []

    def _change_one(self, code: Sequence[int], attribute: int, quality: Quality, n: int) -> list[Analogy]:
        """Draw up to ``n`` pictures of a combination from others that differ in this attribute."""
        way = quality.way if n == 1 else replace(quality.way, sources=1)
        return [
            Analogy(picture, self._origins[group[0]], (attribute,))
            for group in self._source_groups(tuple(code), attribute, way, n)
            if (picture := self._draw(group, attribute, code, way)) is not None
        ]

    def fill_all(self, n: int, least: float) -> Iterator[tuple[tuple[int, ...], list[Analogy]]]:
        """Yield gaps with up to ``n`` pictures of each; pictures that are drawn well help to draw others.

        Args:
            n: Number of pictures of each combination.
            least: Share of hidden pictures that must have been right for an attribute to be changed, in percent.
        """
        likes = {gap: self.alone(gap) for gap in self.gaps}
        common = [alone for alone, _ in Counter(likes.values()).most_common(_LIKES)]
        measured = {alone: self.qualities(alone) or self.qualities() for alone in {*common, frozenset[int]()}}
        left = self.gaps
        for turn in list(range(self._codes.shape[1])) * 2:
            found = []
            for gap in left:
                every = measured.get(likes[gap], measured[frozenset()])
                equals = _equals(dict([*every.items()][turn:]))
                if equals and equals[0][1].right >= least and (drawn := self.fill(gap, n, dict(equals))):
                    found.append((gap, drawn))
                    yield gap, drawn
            self._add(found)
            left = [gap for gap in left if gap not in self._cells]

    def _add(self, found: Sequence[tuple[tuple[int, ...], list[Analogy]]]) -> None:
        """Let drawn pictures be sources and pairs of others."""
        for gap, drawn in found:
            self._cells[gap] = [len(self._codes) + place for place in range(len(drawn))]
            pictures = (255 * np.stack([one.picture for one in drawn])).round().astype(np.uint8)
            self._pictures = np.concatenate([self._pictures, pictures])
            self._codes = np.concatenate([self._codes, np.array([gap] * len(drawn), np.uint8)])
            self._pooled = np.concatenate([self._pooled, np.stack([_pool_bytes(picture) for picture in pictures])])
            self._origins += [one.source for one in drawn]

    def edit(
        self, picture: Picture, code: Sequence[int], wanted: Sequence[int]
    ) -> tuple[Picture, tuple[int, ...]] | None:
        """Change the words of a picture from ``code`` to ``wanted``, one by one; None where no other pictures show how.

        Returns:
            The picture, and the attributes that were changed, in order.
        """
        if all(new in (UNKNOWN, old) for old, new in zip(code, wanted, strict=True)):
            return picture, ()
        now, changed = list(code), []
        for attribute, quality in self.qualities().items():
            if now[attribute] == wanted[attribute] or wanted[attribute] == UNKNOWN:
                continue
            after = self._change(picture, attribute, now[attribute], wanted[attribute], quality.way)
            if after is None:
                return None
            picture, now[attribute] = after, wanted[attribute]
            changed.append(attribute)
        return (picture, tuple(changed)) if all(w in (UNKNOWN, c) for c, w in zip(now, wanted, strict=True)) else None

    def nearest(self, picture: Picture) -> int:
        """Return the position of the picture that is most like one."""
        return self._origins[int(((self._pooled - pool(picture)) ** 2).sum(1).argmin())]

    def _measure(self, attribute: int, alone: frozenset[int]) -> Quality | None:
        """Draw hidden combinations again in each way; None if none can be.

        Of the ways that are right about equally often, to one standard error, the one of the highest PSNR is best.
        """
        outcomes: dict[Way, list[tuple[bool, float]]] = {way: [] for way in WAYS}
        for cell in self._hidden_cells(alone):
            drawn = {way: self._draw_hidden(cell, attribute, way, alone) for way in WAYS}
            if any(picture is None for picture in drawn.values()):
                continue
            for way, picture in drawn.items():
                assert picture is not None
                distances = ((self._pooled - pool(picture)) ** 2).sum(1)
                truths = self._pictures[self._cells[cell]].astype(np.float32) / 255
                error = float(((truths - picture) ** 2).mean((1, 2, 3)).min())
                outcomes[way].append((tuple(self._codes[distances.argmin()]) == cell, -10 * np.log10(error + 1e-10)))
            if len(outcomes[WAYS[0]]) == _CELLS:
                break
        if not outcomes[WAYS[0]]:
            return None
        means = {way: np.mean(np.array(each, float), 0) for way, each in outcomes.items()}
        highest = max(float(mean[0]) for mean in means.values())
        error = _share_error(highest, len(outcomes[WAYS[0]]))
        best = max((way for way in WAYS if means[way][0] >= highest - error), key=lambda way: float(means[way][1]))
        return Quality(best, 100 * float(means[best][0]), float(means[best][1]), len(outcomes[best]))

    def _hidden_cells(self, alone: frozenset[int]) -> list[tuple[int, ...]]:
        """Combinations in random order; those that are hidden together are far from each other."""
        cells = list(self._cells)
        turns: Counter[tuple[int, ...]] = Counter()
        ordered = []
        for place in numpy_generator(self._seed, "analogies").permutation(len(cells)):
            kin = tuple(value for attribute, value in enumerate(cells[place]) if attribute not in alone)
            ordered.append((turns[kin], cells[place]))
            turns[kin] += 1
        return [cell for _, cell in sorted(ordered, key=lambda one: one[0])]

    def _draw_hidden(self, cell: tuple[int, ...], attribute: int, way: Way, alone: frozenset[int]) -> Picture | None:
        """Draw a combination as if it were a gap: what all gaps lack, such as every skin of a person, is hidden too."""
        kept = [a for a in range(len(cell)) if a not in alone]
        hidden = (self._codes[:, kept] == np.array(cell)[kept]).all(1)
        groups = self._source_groups(cell, attribute, way, 1, hidden)
        return self._draw(groups[0], attribute, cell, way, hidden) if groups else None

    @cached_property
    def gaps(self) -> list[tuple[int, ...]]:
        """Combinations of values that no picture has, in random order; of a large grid some of them."""
        values = [np.unique(column) for column in self._codes.T]
        rng = numpy_generator(self._seed, "gaps")
        if math.prod(map(len, values)) <= _GRID:
            every = list(product(*(map(int, each) for each in values)))
            tried = [every[place] for place in rng.permutation(len(every))]
        else:
            tried = list(dict.fromkeys(zip(*(rng.choice(each, _GRID).tolist() for each in values), strict=True)))
        return [cell for cell in tried if cell not in self._cells]

    def _source_groups(
        self, cell: tuple[int, ...], attribute: int, way: Way, n: int, hidden: NDArray[np.bool_] | None = None
    ) -> list[list[int]]:
        """Return groups of pictures that differ from ``cell`` in one attribute, nearest values first."""
        others = []
        for value in np.unique(self._codes[:, attribute]).tolist():
            there = self._cells.get(_with(cell, attribute, value), []) if value != cell[attribute] else []
            if there and (hidden is None or not hidden[there[0]]):
                others.append(value)
        others.sort(key=lambda value: self._value_distance(attribute, value, cell[attribute], hidden))
        rng = numpy_generator(self._seed, "sources", *map(int, cell))
        sources = [int(one) for value in others for one in rng.permutation(self._cells[_with(cell, attribute, value)])]
        if len(others) > 1 and way.sources > 1:  # one of each value before a second one of any
            first = [int(self._cells[_with(cell, attribute, value)][0]) for value in others]
            sources = list(dict.fromkeys([*first, *sources]))
        if not sources:
            return []
        if way.sources == 1:
            return [[one] for one in sources[:n]]
        turns = range(min(n, len(sources)) if len(sources) > way.sources else 1)
        return [[*sources[turn:], *sources[:turn]][: way.sources] for turn in turns]

    def _value_distance(self, attribute: int, one: int, other: int, hidden: NDArray[np.bool_] | None) -> float:
        """Return how far pictures change between two values of an attribute, over up to 32 pairs."""
        found = []
        for cell in self._cells:
            pair = self._cells.get(_with(cell, attribute, other)) if cell[attribute] == one else None
            if pair and (hidden is None or not hidden[pair[0]]):
                found.append(float(((self._pooled[self._cells[cell][0]] - self._pooled[pair[0]]) ** 2).sum()))
            if len(found) == 32:
                break
        return float(np.mean(found)) if found else np.inf

    def _draw(
        self,
        sources: Sequence[int],
        attribute: int,
        code: Sequence[int],
        way: Way,
        hidden: NDArray[np.bool_] | None = None,
    ) -> Picture | None:
        """Return the median of what several sources become with another value of an attribute."""
        changed = [
            self._change(
                self._pictures[source].astype(np.float32) / 255, attribute, int(self._codes[source, attribute]),
                code[attribute], way, hidden,
            )
            for source in sources
        ]  # fmt: skip
        found = [one for one in changed if one is not None]
        return np.median(found, 0).astype(np.float32) if found else None

    def _pairs(
        self, picture: Picture, attribute: int, old: int, new: int, hidden: NDArray[np.bool_] | None
    ) -> Iterator[tuple[int, int]]:
        """Yield pairs that differ in an attribute alone, those first whose first one is most like ``picture``."""
        candidates = np.flatnonzero(self._codes[:, attribute] == old)
        distances = ((self._pooled[candidates] - pool(picture)) ** 2).sum(1)
        for one in candidates[np.argsort(distances, kind="stable")]:
            others = self._cells.get(_with(self._codes[one].tolist(), attribute, new))
            if others and (hidden is None or not hidden[others[0]]):
                near = ((self._pooled[others] - self._pooled[one]) ** 2).sum(1).argmin()
                yield int(one), others[near]

    def _change(
        self, picture: Picture, attribute: int, old: int, new: int, way: Way, hidden: NDArray[np.bool_] | None = None
    ) -> Picture | None:
        """Return a picture with another value of an attribute; None if no pair shows how."""
        pairs = [
            pair for pair, _ in zip(self._pairs(picture, attribute, old, new, hidden), range(_PAIRS), strict=False)
        ]
        if not pairs:
            return None
        return change_alike(picture, [(self._pictures[one], self._pictures[other]) for one, other in pairs], way)


def _equals(ranked: Mapping[int, Quality]) -> list[tuple[int, Quality]]:
    """Return the attributes that are changed about as well as the first one."""
    first = next(iter(ranked.values()), None)
    return [
        (attribute, each)
        for attribute, each in ranked.items()
        if first is not None
        and each.right >= first.right - 141 * _share_error(first.right / 100, first.cells)  # the error of a difference
        and each.psnr >= first.psnr - _EQUAL
    ]


def _share_error(share: float, number: int) -> float:
    """Return the standard error of a share, which is never 0: as if one more had been right and one wrong."""
    share = (share * number + 1) / (number + 2)
    return math.sqrt(share * (1 - share) / number)


def _with(cell: Sequence[int], attribute: int, value: int) -> tuple[int, ...]:
    """Return a combination with another value of one attribute."""
    return (*cell[:attribute], value, *cell[attribute + 1 :])


def _pool_bytes(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
    return pool(np.asarray(picture, np.float32) / np.float32(255))
