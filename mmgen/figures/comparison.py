"""The same words drawn from several posteriors side by side, the judge's mistakes framed red."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mmgen.errors import UsageError
from mmgen.figures.draws import Draws
from mmgen.figures.grids import Grid, Panel, image_table
from mmgen.figures.hierarchy import share_right
from mmgen.notation import UNKNOWN
from mmgen.seeding import numpy_generator

if TYPE_CHECKING:
    from mmgen.loading import Loaded

__all__ = ["FRAMES", "choose_concepts", "comparison", "judge_note", "looks_at", "sees_samples"]

FRAMES = "Red frame: the judge reads at least one of the given attributes differently."


def choose_concepts(attributes: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    """Concepts that show as many different values as so few can.

    Args:
        attributes: uint8 [N, A] of the examples to choose from; those with unknown attributes are passed over.
        count: How many concepts; fewer come back where there are fewer.
        seed: Breaks ties.

    Returns:
        uint8 [count, A], distinct, all known.

    Raises:
        UsageError: No example has all its attributes known.
    """
    concepts = np.unique(attributes[(attributes != UNKNOWN).all(1)], axis=0)
    if not len(concepts):
        raise UsageError("no example has all its attributes known: there is no concept to draw")
    concepts = concepts[numpy_generator(seed, "concepts").permutation(len(concepts))]
    chosen: list[np.ndarray] = []
    each = np.arange(concepts.shape[1])
    used = np.zeros((concepts.shape[1], UNKNOWN), bool)
    while len(chosen) < count and len(concepts):
        fresh = (~used[each, concepts]).sum(1)
        best = int(np.argmax(fresh))
        # Every value has been shown: start over, so that later concepts differ from each other as well.
        if not fresh[best]:
            used[:] = False
        chosen.append(concepts[best])
        used[each, concepts[best]] = True
        concepts = np.delete(concepts, best, axis=0)
    return np.stack(chosen)


def sees_samples(loaded: "Loaded") -> bool:
    """Whether the judge looks at sampled pixels: where the data are binary. Elsewhere it looks at means."""
    return loaded.image is not None and loaded.image.layout != "bytes"


def looks_at(samples: bool | None) -> str:
    """What the judge looks at, in words; None where nobody knows what the data are."""
    if samples is None:
        return "sampled pixels if data are binary, else means"
    return "sampled pixels, since the data are binary" if samples else "means, since the data are not binary"


def judge_note(accuracy: dict[str, float] | None, samples: bool | None = None) -> str:
    """What a reader must know about the frames: what the judge sees, and how often it is right itself.

    Args:
        accuracy: The judge's own, in percent; None without a judge.
        samples: See :func:`sees_samples`.
    """
    if accuracy is None:
        return "Shown: means of p(image|z). No judge looked at these images."
    mean = accuracy.get("mean")
    itself = f" (itself right on {mean:.1f} % of held-out attributes)" if mean is not None else ""
    return f"{FRAMES} Shown: means of p(image|z). The judge{itself} looks at {looks_at(samples)}."


def comparison(draws: Sequence[tuple[str, Draws]], labels: Sequence[str], *, title: str = "", note: str = "") -> Grid:
    """A row for each description, a block for each posterior.

    Args:
        draws: Names and images, all for the same descriptions.
        labels: The words of each description.
        title: What the picture shows.
        note: How it was made.

    Raises:
        UsageError: The blocks were drawn for different descriptions.
    """
    asked = draws[0][1].asked
    if any(not np.array_equal(drawn.asked, asked) for _, drawn in draws):
        raise UsageError("the posteriors drew different descriptions, expected the same words for each")
    panels = [Panel(name, drawn.means, drawn.wrong, share_right(drawn)) for name, drawn in draws]
    return image_table(panels, labels, title=title, note=note)
