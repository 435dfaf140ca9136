"""Descriptions of any kind as settings; ``kind`` selects their fields."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, SerializeAsAny

import mmgen.modalities
from mmgen.core.errors import MmgenError, clip
from mmgen.modalities._base import Description
from mmgen.settings.config import validate


def _read_description(value: Any) -> Any:
    """Convert a table of settings to the specification of a modality, whose class its ``kind`` names."""
    if isinstance(value, Description):
        return value
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if not isinstance(kind, str):
        shown = clip(repr(value), 120)
        raise ValueError(f"got {shown}, expected a table whose kind is one of {', '.join(mmgen.modalities.names())}")
    try:
        return validate(mmgen.modalities.get(kind), value)
    except MmgenError as error:
        raise ValueError(str(error)) from None


Described = Annotated[SerializeAsAny[Description], BeforeValidator(_read_description)]
"""A description of any kind; plain values are told apart by their ``kind``."""
