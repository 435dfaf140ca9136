"""What every posterior draws for the descriptions of a page, what the judge reads there, and where it lies."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from torch import Tensor

from mmgen.figures.explore.density import Chart, densities
from mmgen.figures.explore.questions import Questions
from mmgen.figures.explore.sprites import tiles
from mmgen.figures.session import Session, Source, draw_pictures
from mmgen.generation.descriptions import Descriptions, empty_description
from mmgen.generation.draws import Draws

__all__ = ["Answer", "Answers", "draw_answers", "reference"]


@dataclass(frozen=True)
class Answer:
    """Pictures that one posterior draws for one description.

    Attributes:
        row: Which description.
        pictures: uint8 [n, H, W, C].
        judged: What the judge sees, uint8 [n, A]; None without one.
        correct: Words that the judge agrees with, and words asked for.
        density: Where it lies on the map, uint8 [CELLS, CELLS, 1]; None without a map.
        outside: Share of it that lies beside the map.
    """

    row: int
    pictures: np.ndarray
    judged: np.ndarray | None
    correct: tuple[int, int]
    density: np.ndarray | None
    outside: float = 0.0


@dataclass
class Answers:
    """Pictures that one posterior draws for all descriptions of a page; guided ones lack the empty description."""

    source: Source
    items: list[Answer] = field(default_factory=list)

    def first(self, count: int) -> "Answers":
        """Return the part of the first ``count`` descriptions."""
        return Answers(self.source, [one for one in self.items if one.row < count])


def _draw(session: Session, source: Source, descriptions: Descriptions, count: int) -> Draws:
    return draw_pictures(session, source, descriptions, count)


def _by_description(draws: Draws) -> list[tuple[np.ndarray, np.ndarray | None, tuple[int, int]]]:
    """Split draws by description: pictures, attributes read off them, and counts of correct words."""
    found = []
    for row in range(len(draws.means)):
        judged = None if draws.predicted is None else draws.predicted[row]
        part = slice(row, row + 1)
        one = replace(
            draws,
            descriptions=draws.descriptions[part],
            means=draws.means[part],
            sampled=draws.sampled[part],
            z=draws.z[part],
            predicted=judged if judged is None else judged[None],
        )
        found.append((tiles(draws.means[row]), judged, one.correct))
    return found


def draw_answers(
    session: Session, answers: Sequence[Answers], questions: Questions, rows: range, count: int, chart: Chart | None
) -> None:
    """Draw for some descriptions from every posterior, and append the pictures to ``answers``.

    Args:
        session: The model and its judge.
        answers: One for each posterior.
        questions: All descriptions.
        rows: Which are drawn now.
        count: n, pictures of each.
        chart: The map; None without one.
    """
    cache: dict[tuple[str, str, tuple[int | str, ...]], Tensor] = {}
    for one in answers:
        source, loaded, pictures_by_row = one.source, one.source.loaded, []
        for places, group in questions.group_by_completeness(loaded, rows):
            readable = [place for place in range(len(places)) if not loaded.guidance or group.modalities(loaded, place)]
            if not readable:
                continue
            descriptions = Descriptions(group.codes[readable], None if group.tokens is None else group.tokens[readable])
            parts = _by_description(_draw(session, source, descriptions, count))
            lies: list[tuple[np.ndarray | None, float]] = [(None, 0.0)] * len(readable)
            if chart is not None:
                lies = [*densities(source, descriptions, chart, session.seed, cache)]
            for place, (pictures, judged, right), (density, outside) in zip(readable, parts, lies, strict=True):
                pictures_by_row.append(Answer(int(places[place]), pictures, judged, right, density, outside))
        one.items += sorted(pictures_by_row, key=lambda each: each.row)


def reference(session: Session, source: Source, count: int) -> Answers:
    """Draw without a description, from the prior or a learned one."""
    (part,) = _by_description(_draw(session, source, empty_description(source.loaded), count))
    return Answers(source, [Answer(0, *part, None)])
