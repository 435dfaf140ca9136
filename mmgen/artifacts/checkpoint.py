"""Checkpoints: weights of models, aggregates and classifiers, and training states, as safetensors files."""

import hashlib
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from mmgen.artifacts.files import atomic_path, regular_file
from mmgen.artifacts.header import (
    HDF5_KINDS,
    KINDS,
    MAX_HEADER_BYTES,
    ContentHash,
    Header,
    Parent,
    content_of,
    from_json,
    make_header,
    parse_json,
    printable,
    to_json,
)
from mmgen.artifacts.members import check_members
from mmgen.errors import ArtifactError

if TYPE_CHECKING:
    import torch

__all__ = ["read_checkpoint", "read_safetensors_header", "tensor_shapes", "verify_checkpoint", "write_checkpoint"]

_TYPES = {
    "BOOL": ("bool", 1), "U8": ("uint8", 1), "I8": ("int8", 1), "F8_E5M2": ("float8_e5m2", 1),
    "F8_E4M3": ("float8_e4m3fn", 1), "I16": ("int16", 2), "U16": ("uint16", 2), "F16": ("float16", 2),
    "BF16": ("bfloat16", 2), "I32": ("int32", 4), "U32": ("uint32", 4), "F32": ("float32", 4), "I64": ("int64", 8),
    "U64": ("uint64", 8), "F64": ("float64", 8), "C64": ("complex64", 8),
}  # fmt: skip
"""torch's names of the types in a safetensors file, and bytes of a number."""


def _cover(content: ContentHash, tensors: "Mapping[str, torch.Tensor]") -> ContentHash:
    import torch

    for name, tensor in tensors.items():
        data = tensor.reshape(-1).view(torch.uint8).numpy().data if tensor.numel() else b""
        content.add(name, str(tensor.dtype).removeprefix("torch."), tensor.shape, hashlib.sha256(data).hexdigest())
    return content


def write_checkpoint(
    path: Path,
    *,
    kind: str,
    tensors: "Mapping[str, torch.Tensor]",
    settings: Mapping[str, Any],
    seed: int,
    parents: Iterable[Parent] = (),
    facts: Mapping[str, Any] | None = None,
    command: str = "",
) -> Header:
    """Write tensors and header, whole or not at all.

    Args:
        path: File to make.
        kind: "model", "aggregate", "classifier" or "training-state".
        tensors: By name, on any device; views and shared memory are copied.
        settings: Effective settings, plain values.
        seed: Seed of the run.
        parents: Files that it was made from, see :func:`mmgen.artifacts.reference`.
        facts: What was measured; the content id covers all but times.
        command: The command that makes it again.

    Returns:
        The header as it was written.

    Raises:
        ArtifactError: The file system refuses.
    """
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import save

    assert kind in KINDS and kind not in HDF5_KINDS, f"'{kind}' is no kind of checkpoint"
    parents = tuple(parents)
    copies = {
        name: tensor.detach().to("cpu").clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()
    }
    content = _cover(ContentHash(kind, settings, seed, parents, facts), copies)
    header = make_header(kind, content, settings=settings, seed=seed, parents=parents, facts=facts, command=command)
    with atomic_path(path) as temporary:
        try:
            # In memory first: safetensors reports a full disk as an error of its own, the file object as an OSError.
            data = save(copies, metadata={"mmgen": to_json(header)})
        except SafetensorError as error:
            raise ArtifactError(f"cannot write {path}: {error}") from error
        with open(temporary, "wb") as file:
            file.write(data)
    return header


@dataclass(frozen=True)
class _Table:
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
    return {name: shape for name, (_, shape, _, _) in _safetensors_table(path).tensors.items()}


def safetensors_metadata(path: Path) -> dict[str, Any]:
    """The metadata of a safetensors file, after checking that its header describes exactly the bytes that follow it.

    Raises:
        ArtifactError: The file is truncated or no safetensors file.
    """
    return _safetensors_table(path).metadata


def verify_checkpoint(path: Path) -> None:
    """Compare a checkpoint with its content id, without torch.

    Raises:
        ArtifactError: It is no readable checkpoint, or something in it is damaged or was changed.
    """
    header, table = read_safetensors_header(path), _safetensors_table(path)
    content = content_of(header)
    try:
        with open(path, "rb") as file:
            for name, (dtype, shape, start, end) in table.tensors.items():
                file.seek(table.start + start)
                content.add(name, dtype, shape, _digest(file, end - start))
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}; check the file") from None
    if content.hexdigest() != header.content_id:
        raise _changed(path)


def _digest(file: BinaryIO, size: int) -> str:
    """sha256 in hex of the next ``size`` bytes."""
    digest = hashlib.sha256()
    while size > 0 and (piece := file.read(min(size, 2**22))):
        digest.update(piece)
        size -= len(piece)
    return digest.hexdigest()


def _changed(path: Path) -> ArtifactError:
    return ArtifactError(
        f"{path} is damaged: its tensors, settings or facts do not match its content id; make it again or copy it again"
    )


def _tensor_span(entry: Any) -> tuple[str, tuple[int, ...], int, int]:
    """Type, shape, first and last byte of a tensor; raises ValueError where these do not fit together."""
    shape, (start, end) = tuple(entry["shape"]), entry["data_offsets"]
    if not all(type(number) is int and number >= 0 for number in (*shape, start, end)):
        raise ValueError("a size is no whole number from 0")
    if end - start != _TYPES[entry["dtype"]][1] * math.prod(shape):
        raise ValueError("a tensor has another size than its shape")
    return _TYPES[entry["dtype"]][0], shape, start, end


def _safetensors_table(path: Path) -> _Table:
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
    return _Table(spans, metadata, 8 + length)


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


def read_checkpoint(path: Path, kind: str | None = None) -> "tuple[Header, dict[str, torch.Tensor]]":
    """Header and tensors (on the CPU) of a checkpoint, verified against the content id.

    Args:
        path: File to read.
        kind: Expected kind; None takes any kind of checkpoint.

    Raises:
        ArtifactError: It is unreadable, truncated, foreign, of a newer version, of another kind, or damaged; it was
            made with a member from outside that is not there; or it holds weights that are not finite.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    from mmgen.artifacts.lineage import require_kind

    kinds = [kind] if kind is not None else [name for name in KINDS if name not in HDF5_KINDS]
    header = require_kind(path, *kinds)
    check_members(path, header.members)
    try:
        tensors = load(Path(path).read_bytes())
        found = _cover(content_of(header), tensors).hexdigest()
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RuntimeError, MemoryError) as error:
        reason = printable(str(error).split("\n")[0], 160)
        raise ArtifactError(f"cannot read {path}: its tensors are damaged ({reason}); make it again") from error
    if found != header.content_id:
        raise _changed(path)
    if header.kind != "training-state":  # which may say that nothing was validated yet, by an infinity
        _check_finite(path, header.kind, tensors)
    return header, tensors


def _check_finite(path: Path, kind: str, tensors: "Mapping[str, torch.Tensor]") -> None:
    """Refuse weights with which every score and picture would be nan."""
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise ArtifactError(
                f"{path} has numbers that are not finite in its tensor '{printable(name, 80)}', so nothing can be made "
                f"of it: its training diverged; make it again with {KINDS[kind]} and a lower learning rate"
            )
