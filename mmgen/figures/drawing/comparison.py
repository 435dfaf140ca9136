"""The same words drawn from several posteriors side by side, the judge's mistakes framed red."""

from collections.abc import Sequence

import numpy as np

from mmgen.core.errors import UsageError
from mmgen.descriptions import Vocabulary, format_query
from mmgen.figures.drawing.page import Grid
from mmgen.figures.drawing.tables import Panel, image_table
from mmgen.generation.draws import Draws, format_share_correct

__all__ = [
    "FRAMES",
    "comparison",
    "hierarchy",
    "judge_note",
    "looks_at",
]

FRAMES = "Red frame: the judge reads at least one of the given attributes differently."


def looks_at(samples: bool | None) -> str:
    """Describe the pixels that the classifier sees; None if the kind of data is unknown."""
    if samples is None:
        return "sampled pixels if data are binary, else means"
    return "sampled pixels, since the data are binary" if samples else "means, since the data are not binary"


def judge_note(accuracy: dict[str, float] | None, samples: bool | None = None) -> str:
    """Explain the red frames: which pixels the classifier sees, and how often it is right on real pictures.

    Args:
        accuracy: The judge's own, in percent; None without a judge.
        samples: See :func:`mmgen.generation.classifiers.classifier_sees_samples`.
    """
    if accuracy is None:
        return "Shown: means of p(image|z). No judge looked at these images."
    mean = accuracy.get("mean")
    itself = f" (itself right on {mean:.1f} % of held-out attributes)" if mean is not None else ""
    return f"{FRAMES} Shown: means of p(image|z). The judge{itself} looks at {looks_at(samples)}."


def comparison(draws: Sequence[tuple[str, Draws]], labels: Sequence[str], *, title: str = "", note: str = "") -> Grid:
    """Draw a row for each description and a block for each posterior.

    Args:
        draws: Names and images, all for the same descriptions.
        labels: The words of each description.
        title: What the picture shows.
        note: How it was made.

    Raises:
        UsageError: The blocks were drawn for different descriptions.
    """
    codes = draws[0][1].descriptions.codes
    if any(not np.array_equal(drawn.descriptions.codes, codes) for _, drawn in draws):
        raise UsageError("the posteriors drew different descriptions, expected the same words for each")
    panels = [Panel(name, drawn.means, drawn.wrong, format_share_correct(drawn)) for name, drawn in draws]
    return image_table(panels, labels, title=title, note=note)


def hierarchy(draws: Sequence[tuple[str, Draws]], info: Vocabulary, *, title: str = "", note: str = "") -> Grid:
    """Draw a row for each level of abstraction and a block for each model or posterior.

    Args:
        draws: Names and images; all of the same levels, from :func:`hierarchy_queries`.
        info: The attributes' words.
        title: What the picture shows.
        note: How it was made.
    """
    panels = [Panel(name, drawn.means, drawn.wrong, format_share_correct(drawn)) for name, drawn in draws]
    labels = [format_query(row, info) for row in draws[0][1].descriptions.codes]
    return image_table(panels, labels, title=title, note=note)
