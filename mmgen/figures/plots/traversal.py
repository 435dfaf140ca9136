"""Traversals: pictures with one dimension of z changed at a time, the most informative dimensions first.

Each dimension is labelled with the factor that it follows, if the data have factors.

References:
    beta-VAE (Higgins et al., 2017), Fig. 1
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from mmgen.artifacts import Dataset
from mmgen.core.errors import UsageError
from mmgen.evaluation import LEAST, Code, Factors, chance_information, read_factors, relative_information
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.tables import Panel, image_table
from mmgen.figures.plots._base import PlotOptions, StartExamples, accepts, dataset_path_of, encode_start_examples
from mmgen.figures.session import Session
from mmgen.generation.encodings import (
    Encodings,
    Ranking,
    encode_split,
    project_onto_axes,
    rank_axes,
    traversable_axes,
    traversal_values,
    traverse as moved,
)
from mmgen.latent import Axis

__all__ = ["traversal"]

_REACH, _STEPS = 3.0, 7
_EXAMPLES, _DIMENSIONS = 2, 10
_ENCODED, _ENCODED_WITH_FACTORS = 1000, 3000
"""Numbers of training examples; factors need more, so that each value is frequent enough."""
_INACTIVE = 0.01
"""Mean KL in nats below which a dimension counts as inactive: it carries at most this much information on x."""


def draw_traversals(session: Session, count: int = _EXAMPLES, rows: Sequence[int] = ()) -> Picture:
    """Draw traversals of z: a block for each picture, in it a row for each dimension that changes.

    Args:
        session: A model that encodes and draws images.
        count: Number of pictures.
        rows: Rows of the dataset to start from; by default random test examples.

    Raises:
        UsageError: The model does not draw images, or the data have no test examples.
    """
    examples = encode_start_examples(session, rows, count)
    followed = _rank_dimensions(session)
    encodings, ranked = followed.encodings, followed.ranked
    shown = ranked.dimensions[:_DIMENSIONS]
    values, reach = traversal_values(encodings, shown, _REACH, _STEPS)
    panels = [_build_panel(examples, number, shown, values) for number in range(len(examples.z))]
    labels = ["the picture, decoded from its z"]
    labels += [followed.label(*row) for row in zip(shown, ranked.names, ranked.values, strict=False)]
    caption = (
        f"Each row one {_axis_noun(session)} of {_layer_name(session)} {reach}, in {_STEPS} equal steps, all others as "
        f"in the picture{_explain_labels(session)}; ordered by "
        f"{ranked.measure} over {len(encodings.rows):,} training examples.{followed.explanation}"
        f"{_explain_omitted_dimensions(ranked)}"
        f" z of a picture: the mean of q(z|{', '.join(examples.conditions)}). Shown: means "
        f"of p({examples.name}|z). Seed {session.seed}."
    )
    return Picture("Traversals of z", caption, image_table(panels, labels))


@dataclass(frozen=True)
class _RankedDimensions:
    """Dimensions of z, ranked by their information about the data, each with the factor of variation that it follows.

    Attributes:
        encodings: Encodings of training examples.
        ranked: The dimensions.
        names: Factors that were considered; none if the data have fewer than two.
        best: Most informed factor and I(v; z) / H(v) by dimension, if that is ``LEAST`` above chance.
        rare: Whether the data have factors, but too few with frequent values.
    """

    encodings: Encodings
    ranked: Ranking
    names: tuple[str, ...]
    best: Mapping[Axis, tuple[str, float]]
    rare: bool = False

    def is_inactive(self, value: float) -> bool:
        """Return whether a dimension with the mean KL ``value`` carries no information about the data."""
        return "nats" in self.ranked.measure and value < _INACTIVE

    def label(self, dimension: Axis, name: str, value: float) -> str:
        """Format the label of a dimension's row, with its KL and factor: "z 3: 2.41 nats, x (0.81)"."""
        digits = 2 if value >= 0.1 else 3  # enough to compare with the threshold
        measured = f"{name}: {value:.{digits}f} {'nats' if 'nats' in self.ranked.measure else ''}".rstrip()
        if self.is_inactive(value):
            return f"{measured}, inactive"
        if not self.names:
            return measured
        return f"{measured}, " + ("{} ({:.2f})".format(*self.best[dimension]) if dimension in self.best else "-")

    @property
    def explanation(self) -> str:
        """Explain the labels of the rows in sentences."""
        unused = f" Inactive: below {_INACTIVE:g} nats." if any(map(self.is_inactive, self.ranked.values)) else ""
        if self.rare:
            return (
                f"{unused} No factors stand beside the rows: fewer than two have values that are frequent enough among "
                f"the {len(self.encodings.rows):,} examples."
            )
        if not self.names:
            return unused
        return (
            f"{unused} Beside it the factor of {', '.join(self.names)} that the dimension says most of, and how much "
            f"of it: mutual information over the factor's entropy, 20 bins; - where that is less than {LEAST:g} above "
            "chance."
        )


def _rank_dimensions(session: Session) -> _RankedDimensions:
    """Encode training examples and rank the dimensions of z; find the factor of each if there are at least two."""
    path = dataset_path_of(session)
    with Dataset.open(path) as data:
        some = any(data.attributes) or any(data.factors)
    count = _ENCODED_WITH_FACTORS if some else _ENCODED
    encodings = encode_split(session.model, path, "train", count, session.seed)
    ranked = rank_axes(session.model, encodings)
    with Dataset.open(path) as data:
        try:
            factors = read_factors(data, encodings.rows)
        except UsageError:  # none to label rows with
            return _RankedDimensions(encodings, ranked, (), {}, rare=some)
    return _RankedDimensions(encodings, ranked, factors.names, _best_factors(encodings, ranked, factors))


def _best_factors(encodings: Encodings, ranked: Ranking, factors: Factors) -> dict[Axis, tuple[str, float]]:
    """Return, for each dimension above chance, the factor about which it informs most, with the score."""
    means = project_onto_axes(encodings.mean.double(), ranked.dimensions).numpy()[np.isin(encodings.rows, factors.rows)]
    code = Code(means, factors.values, factors.names)
    known, noise = relative_information(code), chance_information(code)
    found: dict[Axis, tuple[str, float]] = {}
    for place, dimension in enumerate(ranked.dimensions):
        most = int((known[place] - noise).argmax())
        if known[place, most] - noise[most] >= LEAST:
            found[dimension] = (factors.names[most], float(known[place, most]))
    return found


def _build_panel(examples: StartExamples, number: int, dimensions: Sequence[Axis], values: torch.Tensor) -> Panel:
    """Make the block of one example: the picture and its reconstruction above the traversals of each dimension."""
    z = examples.z[number]
    drawn = examples.decode(number, moved(z[None], dimensions, values)[0])  # [d, S, C, H, W]
    first = np.ones((1, *drawn.shape[1:]), drawn.dtype)
    first[0, 0], first[0, 1] = examples.pictures[number], examples.decode(number, z[None])[0]
    images = np.concatenate([first, drawn])
    shown = np.ones(images.shape[:2], bool)
    shown[0, 2:] = False
    return Panel(examples.label(number), images, shown=shown)


def _axis_noun(session: Session) -> str:
    """Return the noun for an axis of the traversed layer: "dimension" or "channel"."""
    model = session.model.model
    return "dimension" if len(model.latent.shapes[traversable_axes(model)[0]]) == 1 else "channel"


def _layer_name(session: Session) -> str:
    """Return the name of the traversed layer of z."""
    model = session.model.model
    return f"the layer {traversable_axes(model)[0]}" if len(model.latent.layers) > 1 else "z"


def _explain_labels(session: Session) -> str:
    """Explain for a caption that labels in z stay fixed during a traversal; "" without labels."""
    labels = session.model.model.latent_modalities
    return f", and {' and '.join(labels)} held at its likeliest" if labels else ""


def _explain_omitted_dimensions(ranked: Ranking) -> str:
    rest = ranked.values[_DIMENSIONS:]
    return f" {len(rest)} further ones, of at most {rest[0]:.2g}, are left out." if rest else ""


@accepts("number", "rows")
def traversal(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw traversals of one model.

    Raises:
        UsageError: The model does not draw images, or the data have no test examples.
    """
    return draw_traversals(sessions[0], options.number or _EXAMPLES, options.rows)
