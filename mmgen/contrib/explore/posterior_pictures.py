"""Pictures that each posterior draws for the descriptions of a page, and where its draws lie on the map."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mmgen.contrib.explore.choices import DescriptionChoices
from mmgen.contrib.explore.density import CANDIDATES, MapSquare, compute_clouds
from mmgen.contrib.explore.live import Latents
from mmgen.contrib.explore.sprites import Sheets, pack_sheets, picture_bytes
from mmgen.core.notation import UNKNOWN
from mmgen.figures.session import Session, Source, draw_pictures
from mmgen.generation.descriptions import Descriptions, empty_description
from mmgen.generation.draws import Draws


@dataclass(frozen=True)
class DescriptionPictures:
    """Pictures that one posterior draws for one description, with the classifier's predictions.

    Attributes:
        row: Position of the description.
        pictures: Pictures uint8 [n, H, W, C].
        z: Latents that they are decoded from, float32 [n, D].
        predicted: Attribute codes that the classifier predicts, uint8 [n, A]; None without a classifier.
        correct_counts: Number of described attributes that the classifier confirms, and of all described ones.
        cloud: Places of draws on the map, uint8 [DRAWS, 2]; None without a map.
    """

    row: int
    pictures: np.ndarray
    z: np.ndarray
    predicted: np.ndarray | None
    correct_counts: tuple[int, int]
    cloud: np.ndarray | None


@dataclass
class PosteriorPictures:
    """Pictures that one posterior draws for the descriptions of a page; none where the page draws from its flow.

    Attributes:
        source: The posterior.
        flow: Number of the page's flow that it draws from; None for stored pictures.
        items: Stored pictures by description.
    """

    source: Source
    flow: int | None = None
    items: list[DescriptionPictures] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Kind of posterior: "guided", or the name of its density, such as "true" or "aggregate"."""
        return "guided" if self.source.loaded.guidance else self.source.loaded.posteriors[self.source.posterior].base

    def pack(self, live: bool) -> Sheets | Latents | None:
        """Pack the pictures for the page: their z if it decodes them itself; None without pictures."""
        if not self.items:
            return None
        pictures = np.concatenate([each.pictures for each in self.items])
        if not live:
            return pack_sheets(pictures)
        return Latents(np.concatenate([each.z for each in self.items]), (pictures.shape[2], pictures.shape[1]))

    def first(self, count: int) -> "PosteriorPictures":
        """Return the pictures for the first ``count`` descriptions."""
        return replace(self, items=[one for one in self.items if one.row < count])


def _split_by_description(draws: Draws) -> list[tuple[np.ndarray, np.ndarray, np.ndarray | None, tuple[int, int]]]:
    """Split draws by description, to (pictures, z, predicted codes, counts of confirmed and described attributes)."""
    found = []
    for row in range(len(draws.means)):
        judged = None if draws.predicted is None else draws.predicted[row]
        part = slice(row, row + 1)
        one = replace(
            draws,
            descriptions=draws.descriptions[part],
            images={name: (means[part], sampled[part]) for name, (means, sampled) in draws.images.items()},
            z=draws.z[part],
            predicted=judged if judged is None else judged[None],
        )
        found.append((picture_bytes(draws.means[row]), draws.z[row], judged, one.correct_counts))
    return found


def _as_they_are(descriptions: Descriptions, count: int) -> Descriptions:
    """Return descriptions for n draws each of which nothing is completed: words that examples do not know stay open."""
    if descriptions.tokens is not None or not (descriptions.codes == UNKNOWN).any():
        return descriptions
    return replace(descriptions, completed=np.repeat(descriptions.codes[:, None], count, axis=1))


def draw_chosen_descriptions(
    session: Session,
    by_posterior: Sequence[PosteriorPictures],
    choices: DescriptionChoices,
    rows: range,
    count: int,
    chart: MapSquare | None,
) -> None:
    """Draw pictures for the descriptions ``rows`` from each posterior, and append them to ``by_posterior``.

    Args:
        session: The model and its classifier.
        by_posterior: The pictures of each posterior, which grow.
        choices: All descriptions.
        rows: Positions of the descriptions to draw.
        count: n, pictures of each.
        chart: The map; None without one.
    """
    for one in by_posterior:
        source, pictures_by_row = one.source, []
        for places, descriptions in choices.group_by_modality(session, rows):
            parts = _split_by_description(draw_pictures(session, source, _as_they_are(descriptions, count), count))
            clouds: list[np.ndarray | None] = [None] * len(places)
            if chart is not None:
                clouds = [*compute_clouds(source, _as_they_are(descriptions, CANDIDATES), chart, session.seed)]
            pictures_by_row += [
                DescriptionPictures(int(place), *part, cloud)
                for place, part, cloud in zip(places, parts, clouds, strict=True)
            ]
        one.items += sorted(pictures_by_row, key=lambda each: each.row)


def draw_reference(session: Session, source: Source, count: int) -> PosteriorPictures:
    """Draw pictures from a prior, without a description, for comparison with those of descriptions."""
    (part,) = _split_by_description(draw_pictures(session, source, empty_description(source.loaded), count))
    return PosteriorPictures(source, items=[DescriptionPictures(0, *part, None)])
