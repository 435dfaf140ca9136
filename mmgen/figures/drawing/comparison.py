"""Pictures of the same descriptions from several posteriors side by side, with a classifier's objections in red."""

from collections.abc import Sequence

import numpy as np

from mmgen.core.errors import UsageError
from mmgen.descriptions import Vocabulary, format_query
from mmgen.figures.drawing.page import Grid
from mmgen.figures.drawing.tables import Panel, image_table
from mmgen.generation.draws import Draws, format_share_correct

__all__ = [
    "FRAMES",
    "draw_comparison",
    "draw_hierarchy",
    "explain_red_frames",
    "describe_classifier_input",
]

FRAMES = "Red frame: the judge reads at least one of the given attributes differently."


def describe_classifier_input(reads_samples: bool | None) -> str:
    """Describe for a caption the images that the attribute classifier reads; ``reads_samples`` is None if not known."""
    if reads_samples is None:
        return "sampled pixels if data are binary, else means"
    return "sampled pixels, since the data are binary" if reads_samples else "means, since the data are not binary"


def explain_red_frames(accuracy: dict[str, float] | None, reads_samples: bool | None = None) -> str:
    """Explain red frames for a caption: the images that the attribute classifier reads, and its accuracy on real ones.

    Args:
        accuracy: The classifier's held-out accuracy in percent, by attribute; None without a classifier.
        reads_samples: Whether it reads sampled pixels instead of means; None if unknown.
    """
    if accuracy is None:
        return "Shown: means of p(image|z). No judge looked at these images."
    mean = accuracy.get("mean")
    itself = f" (itself right on {mean:.1f} % of held-out attributes)" if mean is not None else ""
    return (
        f"{FRAMES} Shown: means of p(image|z). The judge{itself} looks at {describe_classifier_input(reads_samples)}."
    )


def draw_comparison(
    draws: Sequence[tuple[str, Draws]], labels: Sequence[str], *, title: str = "", note: str = ""
) -> Grid:
    """Draw the pictures of several posteriors: a row for each description, a block of columns for each posterior.

    Args:
        draws: Names and draws of posteriors, all for the same descriptions.
        labels: Text of each description.
        title: Title of the picture.
        note: Explanation below it.

    Raises:
        UsageError: The draws are of different descriptions.
    """
    codes = draws[0][1].descriptions.codes
    if any(not np.array_equal(drawn.descriptions.codes, codes) for _, drawn in draws):
        raise UsageError(
            "got draws of different descriptions, "
            "expected the same for each posterior; draw all for the same descriptions"
        )
    panels = [Panel(name, drawn.means, drawn.mismatches, format_share_correct(drawn)) for name, drawn in draws]
    return image_table(panels, labels, title=title, note=note)


def draw_hierarchy(
    draws: Sequence[tuple[str, Draws]], vocabulary: Vocabulary, *, title: str = "", note: str = ""
) -> Grid:
    """Draw a hierarchy of descriptions: a row for each level of abstraction, a block of columns for each posterior.

    Args:
        draws: Names and draws, all of the levels of :func:`mmgen.generation.concepts.abstraction_levels`.
        vocabulary: Names and values of the attributes.
        title: Title of the picture.
        note: Explanation below it.
    """
    panels = [Panel(name, drawn.means, drawn.mismatches, format_share_correct(drawn)) for name, drawn in draws]
    labels = [format_query(row, vocabulary) for row in draws[0][1].descriptions.codes]
    return image_table(panels, labels, title=title, note=note)
