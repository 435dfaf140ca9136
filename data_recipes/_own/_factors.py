"""Factors of the user's own pictures: sizes, numbers behind attributes, groups."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmgen.artifacts.elements import NAME

if TYPE_CHECKING:
    from mmgen.artifacts import DatasetWriter

__all__ = ["add_factors"]


def add_factors(
    writer: "DatasetWriter",
    sizes: NDArray[np.int64],
    numbers: Mapping[str, NDArray[np.float64]],
    groups: NDArray[np.int64] | None,
) -> dict[str, NDArray[Any]]:
    """Declare the factors in the dataset file and return their columns by name.

    Args:
        writer: The open file.
        sizes: Width and height of each picture [n, 2].
        numbers: Numbers [n] behind binned attributes, by attribute.
        groups: Group of each picture [n].
    """
    factors: dict[str, NDArray[Any]] = {}
    for name, column in zip(("width", "height"), sizes.T, strict=True):
        writer.add_factor(name, np.int32, "pixel", f"{name} of the picture before it was fitted")
        factors[name] = column
    for place, (attribute, values) in enumerate(numbers.items()):
        # A factor's name has fewer letters to choose from than an attribute's.
        name = attribute if NAME.match(attribute) and attribute not in _RESERVED_NAMES else f"number_{place}"
        writer.add_factor(name, np.float64, "", f"the number behind the attribute {attribute}; NaN unknown")
        factors[name] = values
    if groups is not None:
        writer.add_factor("source_group", np.int32, "", "number of the group, of which standard errors are")
        factors["source_group"] = groups
    return factors


_RESERVED_NAMES = ("width", "height", "source_group")
