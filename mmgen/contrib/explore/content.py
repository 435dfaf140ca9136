"""Content of a page to explore, and its conversion to plain values that the page's script reads."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mmgen.contrib.explore.choices import DescriptionChoices
from mmgen.contrib.explore.density import AROUND, MapSquare
from mmgen.contrib.explore.live import Latents, LiveNetworks
from mmgen.contrib.explore.posterior_pictures import PosteriorPictures
from mmgen.contrib.explore.space import EncodingMap, Neighbours, Traversals, name_changes
from mmgen.contrib.explore.sprites import Sheets, lighten_if_dark, pack_sheets
from mmgen.core.notation import UNKNOWN
from mmgen.figures.drawing.style import outline_colour, value_colours
from mmgen.figures.session import Session
from mmgen.generation.encodings import Ranking
from mmgen.latent import Axis

_GRID = 1000
"""Number of positions of points along a side of the map."""


@dataclass(frozen=True)
class PageSection:
    """Section of a page: the descriptions of one kind (attributes or text), with the pictures of each posterior.

    Attributes:
        choices: The descriptions.
        by_posterior: Each posterior's stored pictures of the first :attr:`held` of them, or its flow.
        live: Whether the page decodes the pictures itself.
        belief: Places on the map of p(z|words) for the words with which the page opens, uint8 [n, 2]; None where a
            posterior has that, or without a map.
        held: Number of descriptions that have stored pictures.
    """

    choices: DescriptionChoices
    by_posterior: list[PosteriorPictures]
    live: bool = False
    belief: np.ndarray | None = None
    held: int = 0

    @property
    def stored(self) -> list[PosteriorPictures]:
        """The posteriors with stored pictures."""
        return [one for one in self.by_posterior if one.flow is None]

    def first(self, count: int) -> "PageSection":
        """Return the section with stored pictures of only its first ``count`` descriptions."""
        return replace(self, by_posterior=[one.first(count) for one in self.by_posterior], held=min(count, self.held))

    def size_in_letters(self) -> int:
        """Estimate the size of the section on the page, in letters of HTML."""
        size = self.choices.rows.size * 8 // 3 + 8 * len(self.choices)
        if self.choices.kind == "text":
            size += 40 * len(self.choices)  # captions
        for one in self.stored:
            if (packed := one.pack(self.live)) is not None:
                size += len(packed)
                size += sum(each.predicted.size * 4 // 3 for each in one.items if each.predicted is not None)
                size += sum(each.cloud.size * 4 // 3 for each in one.items if each.cloud is not None)
        return size


@dataclass
class PageContent:
    """Content of a page to explore: descriptions with pictures, traversals of z, and the map of encodings.

    Attributes:
        session: The model, its fitted posteriors and its classifier.
        number: n, pictures of each description and posterior.
        notices: Warnings about missing files, with the next step.
        parts: Descriptions of each kind with their pictures.
        references: Pictures from priors, without a description.
        encoding_map: The map of encodings; None without data, or where the page does not decode pictures itself.
        traversals: Traversals of z; None without a map.
        neighbours: Some of the encodings; None without a map.
        live: Networks that the page computes itself.
        words_only: Whether it shows pictures of words and nothing else.
    """

    session: Session
    number: int
    notices: list[str]
    parts: list[PageSection] = field(default_factory=list)
    references: list[PosteriorPictures] = field(default_factory=list)
    encoding_map: EncodingMap | None = None
    traversals: Traversals | None = None
    neighbours: Neighbours | None = None
    live: LiveNetworks = field(default_factory=LiveNetworks)
    words_only: bool = False

    @property
    def is_live(self) -> bool:
        """Whether the page decodes all pictures itself."""
        return self.live.decoder is not None

    @property
    def chart(self) -> MapSquare | None:
        """Square of z that the map shows; None without the model's dataset."""
        return self.encoding_map.chart if self.encoding_map is not None else None

    def latent_space_size(self) -> int:
        """Estimate the size of traversals and map on the page, in letters of HTML."""
        size = (len(self.encoding_map.places) * 14 if self.encoding_map else 0) + len(self.live)
        if self.neighbours is not None:
            size += self.neighbours.z.size * 8 // 3
        if self.traversals is not None:
            size += len(pack_sheets(self.traversals.originals))
        return size + sum(len(packed) for one in self.references if (packed := one.pack(self.is_live)) is not None)


def _concatenate_pictures(drawn: PosteriorPictures) -> np.ndarray:
    return np.concatenate([each.pictures for each in drawn.items]) if drawn.items else np.zeros((0, 1, 1, 1), np.uint8)


def _encode_bytes(codes: np.ndarray | None) -> str | None:
    return None if codes is None else base64.b64encode(np.ascontiguousarray(codes, np.uint8).tobytes()).decode()


def _format_share_correct(drawn: PosteriorPictures) -> str:
    """Format the share of described attributes that the classifier confirms; "" without a classifier."""
    right, asked = (sum(each.correct_counts[place] for each in drawn.items) for place in (0, 1))
    share = f"{100 * right / max(asked, 1):.1f}\N{NO-BREAK SPACE}%"
    return f"{share} of {asked:,} words right over all descriptions of this page" if asked else ""


def _posterior_values(drawn: PosteriorPictures, sheets: Sheets | Latents | None) -> dict[str, Any]:
    """Return the page's values for one posterior: its name, the options that draw from it, its flow or its pictures."""
    source, guidance = drawn.source, drawn.source.loaded.guidance
    name, _, what = source.name.partition(": ")
    what = what or source.loaded.posteriors[source.posterior].named.title.partition(": ")[2]
    judged = [each.predicted for each in drawn.items if each.predicted is not None]
    clouds = [each.cloud for each in drawn.items if each.cloud is not None]
    steered = {"weight": guidance.weight, "start": guidance.start, "end": guidance.end}
    return {
        "name": name,
        "plain": source.plain_name,
        "kind": drawn.kind,
        "about": what,
        "file": source.path.name,
        "posterior": source.posterior,
        "guidance": str(guidance) if guidance.method else guidance.weight,
        "flow": drawn.flow,
        "steered": steered if guidance and drawn.flow is not None else None,
        "pictures": sheets.to_json() if sheets else None,
        "judged": _encode_bytes(np.stack(judged)) if judged else None,
        "verdict": _format_share_correct(drawn),
        "clouds": _encode_bytes(np.stack(clouds)) if clouds else None,
    }


def _section_values(
    part: PageSection, sheets_by_source: list[Sheets | Latents | None], session: Session
) -> dict[str, Any]:
    choices = part.choices
    return {
        "given": choices.kind,
        "menus": [{"name": m.name, "values": list(m.values), "attribute": m.attribute} for m in choices.menus],
        "rows": base64.b64encode(choices.rows.astype("<i2").tobytes()).decode(),
        "counts": choices.counts.tolist(),
        "odds": choices.odds,
        "captions": choices.descriptions.format_texts(session.model) if choices.kind == "text" else None,
        "opening": choices.opening,
        "held": part.held,
        "belief": _encode_bytes(part.belief),
        "selection": _explain_selection(part),
        "sources": [
            _posterior_values(one, sheets) for one, sheets in zip(part.by_posterior, sheets_by_source, strict=True)
        ],
    }


def _explain_selection(part: PageSection) -> str:
    """Explain of which descriptions the page holds pictures; "" if it holds all or draws all itself."""
    if not part.stored or part.held >= len(part.choices):
        return ""
    return (
        f"This page holds pictures of {part.held:,} of {len(part.choices):,} whole descriptions, the most frequent in "
        "the data; for others it shows the most similar ones. mmgen sample draws them all."
    )


def _first_place(axis: Axis) -> int:
    """Return the first position in z of an axis, by which the page identifies the axis."""
    return axis if isinstance(axis, int) else axis[0]


def _round_values(values: list[float]) -> list[float]:
    """Round numbers to three digits, and numbers close to 0 to 0."""
    span = max(values) - min(values) or 1.0
    return [float(f"{round(value / span, 4) * span:.3g}") + 0.0 for value in values]


def _short_name(name: str) -> str:
    """Shorten the name of a dimension of z: "z 3" becomes "z3", "z1 3" stays."""
    return name.replace("z ", "z")


def _traversal_values(
    content: PageContent, traversals: Traversals, ranking: Ranking, originals: Sheets
) -> dict[str, Any]:
    measures = dict(zip(ranking.dimensions, ranking.values, strict=True))
    names = dict(zip(ranking.dimensions, ranking.names, strict=True))
    return {
        "values": [_round_values(values) for values in traversals.values],
        "reach": traversals.reach,
        "dimensions": [
            {
                "number": _first_place(d) + 1,
                "name": _short_name(names[d]),
                "value": float(f"{measures[d]:.3g}"),
                "changes": changes,
                "places": [d] if isinstance(d, int) else list(d),
            }
            for d, changes in zip(traversals.dimensions, name_changes(content.session, traversals), strict=True)
        ],
        "held": traversals.fixed_labels,
        "of": len(ranking.dimensions),
        "measure": ranking.measure,
        "means": [[round(float(value), 3) for value in row] for row in traversals.means],
        "z": Latents(traversals.z, originals.size).to_json(),
        "rows": [int(row) for row in traversals.examples.rows],
        "codes": _encode_bytes(traversals.examples.codes),
        "originals": originals.to_json(),
    }


def _most_separated(encoding_map: EncodingMap) -> int:
    """Return the attribute that explains the largest share of the variance of places on the map; -1 for none."""
    places, codes = encoding_map.places, encoding_map.codes
    if codes is None or not codes.shape[1]:
        return -1
    shares = []
    for column in codes.T:
        groups = [places[column == value] for value in np.unique(column[column != UNKNOWN])]
        known = np.concatenate([np.zeros((0, 2)), *groups])
        within = sum(float(np.square(group - group.mean(0)).sum()) for group in groups)
        whole = float(np.square(known - known.mean(0)).sum()) if len(known) else 0.0
        shares.append(1 - within / whole if whole else 0.0)
    return int(np.argmax(shares))


def _map_values(
    content: PageContent, encoding_map: EncodingMap, neighbours: Neighbours, size: tuple[int, int]
) -> dict[str, Any]:
    chart, info = encoding_map.chart, content.session.model.attributes
    colours = [value_colours(words) for words in info.values] if info is not None else []
    places = np.rint((encoding_map.places + 1) / 2 * _GRID).astype(int)
    if chart.projection.axes.shape[1] <= 2:
        axes = ["z1", "z2"][: chart.projection.axes.shape[1]] + ["no second dimension"] * (not chart.exact)
    else:
        axes = [f"principal component {k + 1} ({100 * share:.0f} %)" for k, share in enumerate(encoding_map.shares)]
    projection = chart.projection
    how = "draws of z, smoothed." if chart.exact else "draws of z, projected on the plane and smoothed."
    if any(source.loaded.guidance and not source.loaded.guidance.steers for source in content.session.sources):
        how += " Draws of a guided posterior are those of its base, weighed by p(words|z)^w."
    return {
        "reach": float(f"{chart.reach:.3g}"),
        "axes": axes,
        "shares": [round(100 * share) for share in encoding_map.shares],
        "exact": chart.projection.axes.shape[1] <= 2,
        "points": places.tolist(),
        "codes": _encode_bytes(encoding_map.codes),
        "colours": colours,
        "colour": _most_separated(encoding_map),
        "rims": [
            ["#ffffff" if outline_colour(colour) == colour else outline_colour(colour) for colour in each]
            for each in colours
        ],
        "plane": {"centre": projection.centre.tolist(), "axes": (projection.axes * chart.reach).tolist()},
        "neighbours": {"points": neighbours.points.tolist(), "pictures": Latents(neighbours.z, size).to_json()},
        "density": f"Density: {how} Dark and pale hold 50 % and 90 % of all of it, as far as these lie on the map.",
        "around": AROUND,
        "latent": content.session.model.model.latent_size,
    }


def _pack_recorded(drawn: list[PosteriorPictures]) -> tuple[list[Sheets | None], str]:
    """Pack the pictures of posteriors, and return a remark on dark ones."""
    blocks, remark = lighten_if_dark([_concatenate_pictures(one) for one in drawn])
    return [pack_sheets(block) if len(block) else None for block in blocks], remark


def page_values(content: PageContent, seed: int) -> dict[str, Any]:
    """Convert the content of a page to plain values for JSON, which the page's script reads."""
    info, judge, session = content.session.model.attributes, content.session.judge, content.session
    every = [one for part in content.parts for one in part.by_posterior] + content.references
    sheets: Sequence[Sheets | Latents | None]
    if content.is_live:
        remark, sheets = "", [one.pack(True) for one in every]
    else:
        sheets, remark = _pack_recorded(every)
    packed = iter(sheets)
    parts = [_section_values(part, [next(packed) for _ in part.by_posterior], session) for part in content.parts]
    references = [_posterior_values(one, next(packed)) for one in content.references]
    traversals = land = None
    if content.traversals is not None and content.encoding_map is not None and content.neighbours is not None:
        originals = pack_sheets(content.traversals.originals)
        traversals = _traversal_values(content, content.traversals, content.encoding_map.ranking, originals)
        land = _map_values(content, content.encoding_map, content.neighbours, originals.size)
    live = content.live.to_json()
    if live is not None and content.traversals is not None:  # the colour of the paper: most corners have it
        live["binary"] = session.model.observation is not None and session.model.observation.classifier_reads_samples
        live["ground"] = np.median(content.traversals.originals[:, [0, 0, -1, -1], [0, -1, 0, -1]], (0, 1)).tolist()
    names = {"names": list(info.names), "values": [list(words) for words in info.values]} if info is not None else None
    return {
        "number": content.number,
        "seed": seed,
        "remark": remark,
        "attributes": names,
        "judge": {"told": [judge.names.index(name) for name in judge.hints]} if judge is not None else None,
        "parts": parts,
        "references": references,
        "traversals": traversals,
        "map": land,
        "live": live,
    }
