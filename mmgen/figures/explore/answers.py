"""What every posterior draws for the descriptions of a page, what the judge reads there, and where it lies."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from torch import Tensor

from mmgen.figures.explore.asked import Questions
from mmgen.figures.explore.density import Chart, densities
from mmgen.figures.explore.sprites import tiles
from mmgen.figures.session import Session, Source, draw_pictures
from mmgen.generation.descriptions import Descriptions, nothing
from mmgen.generation.draws import Draws

__all__ = ["Answer", "Answers", "answer", "reference"]


@dataclass(frozen=True)
class Answer:
    """What one posterior draws for one description.

    Attributes:
        row: Which description.
        pictures: uint8 [n, H, W, C].
        judged: What the judge sees, uint8 [n, A]; None without one.
        right: Words that the judge agrees with, and words asked for.
        density: Where it lies on the map, uint8 [CELLS, CELLS, 1]; None without a map.
        outside: Share of it that lies beside the map.
    """

    row: int
    pictures: np.ndarray
    judged: np.ndarray | None
    right: tuple[int, int]
    density: np.ndarray | None
    outside: float = 0.0


@dataclass
class Answers:
    """What one posterior draws for the descriptions of a page; a guided one has none for that which says nothing."""

    source: Source
    each: list[Answer] = field(default_factory=list)

    def first(self, count: int) -> "Answers":
        """What belongs to the first ``count`` descriptions alone."""
        return Answers(self.source, [one for one in self.each if one.row < count])


def _drawn(session: Session, source: Source, asked: Descriptions, count: int) -> Draws:
    return draw_pictures(session, source, asked, count)


def _apart(drawn: Draws) -> list[tuple[np.ndarray, np.ndarray | None, tuple[int, int]]]:
    """Pictures, readings and words right of each description."""
    found = []
    for row in range(len(drawn.means)):
        judged = None if drawn.predicted is None else drawn.predicted[row]
        part = slice(row, row + 1)
        one = replace(
            drawn,
            descriptions=drawn.descriptions[part],
            means=drawn.means[part],
            sampled=drawn.sampled[part],
            z=drawn.z[part],
            predicted=judged if judged is None else judged[None],
        )
        found.append((tiles(drawn.means[row]), judged, one.right))
    return found


def answer(
    session: Session, answers: Sequence[Answers], questions: Questions, rows: range, count: int, chart: Chart | None
) -> None:
    """Draw for some descriptions from every posterior, and add what was drawn to ``answers``.

    Args:
        session: The model and its judge.
        answers: One for each posterior.
        questions: All descriptions.
        rows: Which are drawn now.
        count: n, pictures of each.
        chart: The map; None without one.
    """
    known: dict[tuple[str, str, tuple[int | str, ...]], Tensor] = {}
    for one in answers:
        source, loaded, found = one.source, one.source.loaded, []
        for places, alike in questions.alike(loaded, rows):
            said = [place for place in range(len(places)) if not loaded.guidance or alike.modalities(loaded, place)]
            if not said:
                continue
            asked = Descriptions(alike.codes[said], None if alike.tokens is None else alike.tokens[said])
            parts = _apart(_drawn(session, source, asked, count))
            lies: list[tuple[np.ndarray | None, float]] = [(None, 0.0)] * len(said)
            if chart is not None:
                lies = [*densities(source, asked, chart, session.seed, known)]
            for place, (pictures, judged, right), (density, outside) in zip(said, parts, lies, strict=True):
                found.append(Answer(int(places[place]), pictures, judged, right, density, outside))
        one.each += sorted(found, key=lambda each: each.row)


def reference(session: Session, source: Source, count: int) -> Answers:
    """What is drawn where nothing is given: of the prior, or of a learned one."""
    (part,) = _apart(_drawn(session, source, nothing(source.loaded), count))
    return Answers(source, [Answer(0, *part, None)])
