"""Analogies: each picture's style, decoded with every value of an attribute.

References:
    Semi-Supervised Learning with Deep Generative Models (Kingma, Rezende, Mohamed, Welling, 2014), arXiv:1406.5298,
    Fig. 1: analogical reasoning
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from mmgen.core.errors import UsageError, format_unknown_name
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.tables import Panel, image_table
from mmgen.figures.plots._base import PlotOptions, StartExamples, accepts, encode_start_examples
from mmgen.figures.session import Session
from mmgen.generation.decode import decode_means
from mmgen.generation.descriptions import Descriptions
from mmgen.modalities.attributes import AttributesDescription

__all__ = ["analogies"]

_EXAMPLES = 8


@accepts("number", "rows", "by")
def analogies(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw analogies: a row for each picture, whose style is decoded with every value of an attribute.

    Raises:
        UsageError: The model has no label beside its style, not this attribute, or draws no images.
    """
    session = sessions[0]
    info = _label_attributes(session)
    column = _column_of_attribute(info, options.by)
    start = encode_start_examples(session, options.rows, options.number or _EXAMPLES)
    values, name = info.values[column], info.names[column]
    with torch.inference_mode():
        drawn = [_decode_with_value(session, start, info, column, code) for code in range(len(values))]
    panels = [Panel("picture", start.pictures[:, None])]
    panels += [Panel(value, images[:, None]) for value, images in zip(values, drawn, strict=True)]
    others = " and its other attributes" if len(info.names) > 1 else ""
    caption = (
        f"Each row the style{others} of one test picture, the first column, with every value of {name}. Style: the "
        f"mean of q(z|{', '.join(start.conditions)}). Shown: means of p(image|{name}, z). Seed {session.seed}."
    )
    rows = [start.label(number) for number in range(len(start.examples.rows))]
    return Picture(f"Analogies: one style over all values of {name}", caption, image_table(panels, rows))


def _label_attributes(session: Session) -> AttributesDescription:
    """Return the attributes that the model separates from the style: labels in z, or inputs of the decoder."""
    info, model = session.model.attributes, session.model.model
    if info is None or info.name not in (*model.latent_modalities, *model.conditional_on):
        raise UsageError(
            f"{session.group.model} has no label beside the style z, which this figure changes; train one with the "
            "objective semi-supervised (preset narayanaswamy/mnist-100) or cvae"
        )
    return info


def _column_of_attribute(info: AttributesDescription, by: str) -> int:
    if by and by not in info.names:
        raise UsageError(format_unknown_name("attribute", by, list(info.names)))
    return info.names.index(by) if by else 0


def _decode_with_value(
    session: Session, start: StartExamples, info: AttributesDescription, column: int, code: int
) -> np.ndarray:
    """Decode the styles of examples with the value ``code`` of an attribute, to pictures [n, C, H, W]."""
    loaded = session.model
    main = loaded.observation
    assert main is not None
    if loaded.model.conditional_on:
        codes = start.examples.codes
        assert codes is not None
        changed = np.where(np.arange(len(info.names)) == column, code, codes).astype(np.uint8)
        condition = Descriptions(changed).batch(loaded, slice(0, len(changed)))
        return main.pictures(decode_means(loaded, main.name, start.z, condition).cpu().numpy())
    return main.pictures(
        decode_means(loaded, main.name, _replace_label(start.z, info.sizes, column, code)).cpu().numpy()
    )


def _replace_label(z: Tensor, sizes: Sequence[int], column: int, code: int) -> Tensor:
    """Set one attribute to ``code`` in z [n, D], which begins with the one-hot values of all attributes."""
    start = sum(sizes[:column])
    changed = z.clone()
    changed[:, start : start + sizes[column]] = 0.0
    changed[:, start + code] = 1.0
    return changed
