"""Checked reading of text attributes in dataset files."""

from typing import Any

from mmgen.core.errors import ArtifactError
from mmgen.core.parsing import MalformedError, parse_json
from mmgen.modalities._base import Element

MAX_NAMES = 4096
"""Largest number of attributes, slots or columns of one modality."""


def element_json(element: Element, name: str) -> Any:
    """Parse the JSON that a text attribute of a stored modality holds.

    Raises:
        ArtifactError: It is not valid JSON.
    """
    try:
        return parse_json(element.text(name))
    except MalformedError as error:
        raise ArtifactError(
            f"{element.location}@{name} is not valid JSON ({error}), the file is damaged; make or copy it again"
        ) from None


def are_distinct_texts(value: Any, min_count: int, max_count: int) -> bool:
    """Return whether ``value`` is a list of ``min_count`` to ``max_count`` distinct strings."""
    texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return texts and len(set(value)) == len(value) and min_count <= len(value) <= max_count
