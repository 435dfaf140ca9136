"""The small datasets of tests: whatever their pictures show, they are written here."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mmgen.artifacts import DatasetWriter

__all__ = ["write_small"]


def write_small(
    path: Path,
    values: Mapping[str, Any],
    labels: Any = None,
    words: tuple[Sequence[str], Sequence[str]] | None = None,
    parts: tuple[int, int] | Mapping[str, tuple[Any, Any, Any]] = (0, 0),
    layout: str = "bytes",
    factors: Mapping[str, Any] | None = None,
    recipe: str = "toy",
    **settings: Any,
) -> Path:
    """Write a dataset and return its path.

    Args:
        path: Its file.
        values: Pictures [N, C, H, W], of 0 and 1 with the layout "bits"; codes as "attributes", tokens as "text".
        labels: Values by attribute, or a description of attributes.
        words: Vocabulary, and the attributes that captions spell.
        parts: Sizes of the training and validation parts of the split "iid", whose rest is the test part; or the rows
            of all three by split.
        layout: Of all pictures.
        factors: Further columns by name; "width" and "height" are in pixels.
        recipe: Name of the recipe in the settings.
        settings: More of them.
    """
    size = len(next(iter(values.values())))
    rows, kept = np.arange(size), dict(values)
    with DatasetWriter(
        path, size, {"recipe": recipe, **settings}, seed=0, command=f"mmgen make-data {recipe}"
    ) as writer:
        for name, pictures in values.items():
            if name == "attributes":
                known = labels if isinstance(labels, Mapping) else dict(zip(labels.names, labels.values, strict=True))
                writer.add_attributes(name, {attribute: list(every) for attribute, every in known.items()})
            elif name == "text":
                vocabulary, slots = words or ((), ())
                writer.add_text(name, list(vocabulary), pictures.shape[1], list(slots))
            else:
                writer.add_image(name, shape=pictures.shape[1:], layout=layout)
                if layout == "bits":
                    kept[name] = np.packbits(pictures.reshape(size, -1), axis=1)
        for name, column in (factors or {}).items():
            writer.add_factor(name, column.dtype, "pixel" if name in ("width", "height") else "", name)
        writer.write(0, kept, dict(factors or {}))
        if isinstance(parts, tuple):
            first, second = parts[0], sum(parts)
            parts = {"iid": (rows[:first], rows[first:second], rows[second:])}
        for split, (train, val, test) in parts.items():
            writer.add_splits(split, train=train, val=val, test=test)
    return path
