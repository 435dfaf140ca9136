"""One style over all values of an attribute: rows are pictures whose style is inferred, columns the values.

References:
    Semi-Supervised Learning with Deep Generative Models (Kingma, Rezende, Mohamed, Welling, 2014), arXiv:1406.5298,
    Fig. 1: analogical reasoning
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.tables import Panel, image_table
from mmgen.figures.plots._base import PlotOptions, accepts
from mmgen.figures.plots._chosen import Chosen, chosen_examples
from mmgen.figures.session import Session
from mmgen.generation.decode import means
from mmgen.generation.descriptions import Descriptions
from mmgen.modalities.attributes import AttributesDescription
from mmgen.settings.registry import unknown_name

__all__ = ["analogies"]

_EXAMPLES = 8


@accepts("number", "rows", "by")
def analogies(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Each picture, then what its style looks like with every value of an attribute.

    Raises:
        UsageError: The model has no label beside its style, or no such attribute, or draws no images.
    """
    session = sessions[0]
    info = _labels(session)
    column = _column(info, options.by)
    chosen = chosen_examples(session, options.rows, options.number or _EXAMPLES)
    values, name = info.values[column], info.names[column]
    with torch.inference_mode():
        drawn = [_with_value(session, chosen, info, column, code) for code in range(len(values))]
    panels = [Panel("picture", chosen.pictures[:, None])]
    panels += [Panel(value, images[:, None]) for value, images in zip(values, drawn, strict=True)]
    others = " and its other attributes" if len(info.names) > 1 else ""
    caption = (
        f"Each row the style{others} of one test picture, the first column, with every value of {name}. Style: the "
        f"mean of q(z|{', '.join(chosen.given)}). Shown: means of p(image|{name}, z). Seed {session.seed}."
    )
    rows = [chosen.said(number) for number in range(len(chosen.shown.rows))]
    return Picture(f"Analogies: one style over all values of {name}", caption, image_table(panels, rows))


def _labels(session: Session) -> AttributesDescription:
    """The attributes that stand beside the style.

    Raises:
        UsageError: There are none.
    """
    info, model = session.model.attributes, session.model.model
    if info is None or info.name not in (*model.latent_modalities, *model.conditional_on):
        raise UsageError(
            f"{session.group.model} has no label beside the style z, which this figure changes; train one with the "
            "objective semi-supervised (preset narayanaswamy/mnist-100) or cvae"
        )
    return info


def _column(info: AttributesDescription, by: str) -> int:
    if by and by not in info.names:
        raise UsageError(unknown_name("attribute", by, list(info.names)))
    return info.names.index(by) if by else 0


def _with_value(session: Session, chosen: Chosen, info: AttributesDescription, column: int, code: int) -> np.ndarray:
    """Pictures [n, C, H, W] in the style of the chosen ones whose attribute ``column`` has the value ``code``."""
    loaded = session.model
    main = loaded.observation
    assert main is not None
    if loaded.model.conditional_on:
        codes = chosen.shown.codes
        assert codes is not None
        told = np.where(np.arange(len(info.names)) == column, code, codes).astype(np.uint8)
        condition = Descriptions(told).batch(loaded, slice(0, len(told)))
        return main.pictures(means(loaded, main.name, chosen.z, condition).cpu().numpy())
    return main.pictures(means(loaded, main.name, _swapped(chosen.z, info.sizes, column, code)).cpu().numpy())


def _swapped(z: Tensor, sizes: Sequence[int], column: int, code: int) -> Tensor:
    """z [n, D], which begins with one-hot values of all attributes, with one of them replaced."""
    start = sum(sizes[:column])
    changed = z.clone()
    changed[:, start : start + sizes[column]] = 0.0
    changed[:, start + code] = 1.0
    return changed
