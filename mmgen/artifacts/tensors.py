"""What a safetensors file says of itself: its header and a table of its tensors, read without torch."""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmgen.artifacts.files import regular_file
from mmgen.artifacts.header import HDF5_KINDS, MAX_HEADER_BYTES, Header, from_json, parse_json
from mmgen.core.errors import ArtifactError

__all__ = ["TensorTable", "read_safetensors_header", "safetensors_metadata", "tensor_shapes", "tensor_table"]

_TYPES = {
    "BOOL": ("bool", 1), "U8": ("uint8", 1), "I8": ("int8", 1), "F8_E5M2": ("float8_e5m2", 1),
    "F8_E4M3": ("float8_e4m3fn", 1), "I16": ("int16", 2), "U16": ("uint16", 2), "F16": ("float16", 2),
    "BF16": ("bfloat16", 2), "I32": ("int32", 4), "U32": ("uint32", 4), "F32": ("float32", 4), "I64": ("int64", 8),
    "U64": ("uint64", 8), "F64": ("float64", 8), "C64": ("complex64", 8),
}  # fmt: skip
"""torch's names of the types in a safetensors file, and bytes of a number."""


@dataclass(frozen=True)
class TensorTable:
    """The header of a safetensors file.

    Attributes:
        tensors: For each name torch's name of the type, the shape, and where its bytes begin and end, from ``start``.
        metadata: What else it says.
        start: Where the tensors begin in the file.
    """

    tensors: dict[str, tuple[str, tuple[int, ...], int, int]]
    metadata: dict[str, Any]
    start: int


def tensor_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Shapes of the tensors in a safetensors file by name; reads none of them and does not need torch.

    Raises:
        ArtifactError: The file is truncated or no safetensors file.
    """
    return {name: shape for name, (_, shape, _, _) in tensor_table(path).tensors.items()}


def safetensors_metadata(path: Path) -> dict[str, Any]:
    """The metadata of a safetensors file, after checking that its header describes exactly the bytes that follow it.

    Raises:
        ArtifactError: The file is truncated or no safetensors file.
    """
    return tensor_table(path).metadata


def _tensor_span(entry: Any) -> tuple[str, tuple[int, ...], int, int]:
    """Type, shape, first and last byte of a tensor; raises ValueError where these do not fit together."""
    shape, (start, end) = tuple(entry["shape"]), entry["data_offsets"]
    if not all(type(number) is int and number >= 0 for number in (*shape, start, end)):
        raise ValueError("a size is no whole number from 0")
    if end - start != _TYPES[entry["dtype"]][1] * math.prod(shape):
        raise ValueError("a tensor has another size than its shape")
    return _TYPES[entry["dtype"]][0], shape, start, end


def tensor_table(path: Path) -> TensorTable:
    size = regular_file(path)
    try:
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > min(MAX_HEADER_BYTES, size - 8):
                raise ArtifactError(
                    f"{path} is truncated or damaged: its header should have {length} bytes, the file has {size}; "
                    "make it again or copy it again"
                )
            text = file.read(length)
    except (OSError, struct.error) as error:
        raise ArtifactError(f"cannot read {path}: {error}; check the file") from None
    values = parse_json(text, f"{path}: the safetensors header")
    try:
        metadata = values.pop("__metadata__", {})
        if not isinstance(metadata, dict):
            raise TypeError("metadata are no table")
        spans = {name: _tensor_span(entry) for name, entry in values.items()}
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
        raise ArtifactError(f"{path}: its safetensors header is malformed; make the file again") from None
    expected = 8 + length + max((end for *_, end in spans.values()), default=0)
    if expected != size:
        raise ArtifactError(
            f"{path} is truncated or damaged: it has {size} bytes, expected {expected}; make it again or copy it again"
        )
    return TensorTable(spans, metadata, 8 + length)


def read_safetensors_header(path: Path) -> Header:
    """The header of the safetensors file at ``path``; reads no tensor and does not need torch.

    Raises:
        ArtifactError: It is truncated, foreign, malformed or of a newer version.
    """
    text = safetensors_metadata(path).get("mmgen")
    if not isinstance(text, str):
        raise ArtifactError(
            f"{path} is a safetensors file without an mmgen header, expected one that mmgen made; "
            "make one with mmgen train"
        )
    header = from_json(text, path)
    if header.kind in HDF5_KINDS:
        raise ArtifactError(
            f"{path} is a safetensors file that calls itself a {header.kind}, which is an HDF5 file; make it again"
        )
    return header
