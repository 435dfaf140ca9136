"""Both containers of artifacts, HDF5 and safetensors: headers, kinds, open files; checkpoints of named tensors.

Only reading and writing tensors needs torch, which is imported there.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import h5py
import pydantic.dataclasses
from pydantic import Field, StrictInt, TypeAdapter, ValidationError, model_validator

from mmgen.artifacts.content_id import ContentHash
from mmgen.artifacts.files import atomic_path, regular_file_size
from mmgen.artifacts.hdf5 import SIGNATURE, explain_errors, read_text
from mmgen.artifacts.header import (
    HDF5_KINDS,
    KINDS,
    Header,
    Parent,
    check_members,
    header_from_json,
    header_to_json,
    make_header,
    parse_json,
)
from mmgen.core.errors import ArtifactError, reason_of
from mmgen.core.foreign import CannotReadError, open_foreign
from mmgen.core.parsing import MAX_TEXT_BYTES, printable
from mmgen.settings.arguments import check_arguments

if TYPE_CHECKING:
    import torch


_TYPES = {
    "BOOL": ("bool", 1), "U8": ("uint8", 1), "I8": ("int8", 1), "F8_E5M2": ("float8_e5m2", 1),
    "F8_E4M3": ("float8_e4m3fn", 1), "I16": ("int16", 2), "U16": ("uint16", 2), "F16": ("float16", 2),
    "BF16": ("bfloat16", 2), "I32": ("int32", 4), "U32": ("uint32", 4), "F32": ("float32", 4), "I64": ("int64", 8),
    "U64": ("uint64", 8), "F64": ("float64", 8), "C64": ("complex64", 8),
}  # fmt: skip
"""torch's names of the types in a safetensors file, and bytes of a number."""

_Size = Annotated[StrictInt, Field(ge=0)]


@pydantic.dataclasses.dataclass(frozen=True)
class Tensor:
    """Type, shape and position of one tensor in a safetensors file.

    Attributes:
        dtype: Type of its numbers as the format calls it ("F32").
        shape: Its shape.
        data_offsets: Where its bytes begin and end, counted from the first tensor.
    """

    dtype: Literal[*_TYPES]  # type: ignore[valid-type]
    shape: tuple[_Size, ...]
    data_offsets: tuple[_Size, _Size]

    @model_validator(mode="after")
    def _check_size(self) -> "Tensor":
        start, end = self.data_offsets
        if end - start != _TYPES[self.dtype][1] * math.prod(self.shape):
            raise ValueError("the size of a tensor differs from that of its shape")
        return self

    @property
    def type_name(self) -> str:
        """Name of the type in torch, such as "float32"."""
        return _TYPES[self.dtype][0]


_TENSORS = TypeAdapter(dict[str, Tensor])


@dataclass(frozen=True)
class TensorTable:
    """The header of a safetensors file: type, shape and position of each tensor, and texts.

    Attributes:
        tensors: By name.
        metadata: Texts that stand beside them; mmgen's header is one.
        start: Where the tensors begin in the file.
    """

    tensors: dict[str, Tensor]
    metadata: dict[str, Any]
    start: int


def read_tensor_table(path: Path) -> TensorTable:
    """Read the header of a safetensors file, after checking that it describes exactly the bytes that follow it.

    Raises:
        ArtifactError: The file is truncated or no safetensors file.
    """
    size = regular_file_size(path)
    try:
        with open_foreign(path) as file:
            beginning = file.read(8)
            if beginning.startswith(b"PK\3\4"):
                raise CannotReadError("it is a zip instead of the file: unpack it")
            if len(beginning) < 8:
                raise CannotReadError(f"it ends after {size} bytes")
            length = int.from_bytes(beginning, "little")
            if length > min(MAX_TEXT_BYTES, size - 8):
                raise ArtifactError(
                    f"{path} is truncated or damaged: its header should have {length} bytes, the file has {size}; "
                    "make it again or copy it again"
                )
            text = file.read(length)
    except (OSError, CannotReadError) as error:
        raise ArtifactError(f"cannot read {path}: {error}; check the file") from None
    values = parse_json(text, f"{path}: the safetensors header")
    metadata = values.pop("__metadata__", {}) if isinstance(values, dict) else None
    try:
        tensors = _TENSORS.validate_python(values)
    except ValidationError:
        metadata = None
    if not isinstance(metadata, dict):
        raise ArtifactError(f"{path}: its safetensors header is malformed; make the file again")
    expected = 8 + length + max((tensor.data_offsets[1] for tensor in tensors.values()), default=0)
    if expected != size:
        raise ArtifactError(
            f"{path} is truncated or damaged: it has {size} bytes, expected {expected}; make it again or copy it again"
        )
    return TensorTable(tensors, metadata, 8 + length)


def add_article(kind: str) -> str:
    """Return the name of a kind of artifact with its article: "an aggregate", "latents"."""
    return f"an {kind}" if kind[0] in "aeiou" else kind if kind in ("latents", "samples") else f"a {kind}"


def _is_hdf5(path: Path) -> bool:
    """Return True for an HDF5 file, False for a safetensors file; refuse all other files."""
    regular_file_size(path)
    try:
        with open_foreign(path) as file:
            start = file.read(16)
    except CannotReadError as error:
        raise ArtifactError(f"cannot read {path}: {error}") from None
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {reason_of(error)}; check its permissions") from None
    if start[:8] == SIGNATURE:
        return True
    if len(start) > 8 and start[8:9] == b"{" and int.from_bytes(start[:8], "little") < 2**40:
        return False
    what = "is neither HDF5 nor safetensors"
    if not start:
        what = "is empty"
    elif start[:4] == b"PK\x03\x04":
        what = "is a zip archive (perhaps from torch.save, which can hold code and is never opened)"
    elif start[:1] == b"\x80" and start[1:2] in b"\x02\x03\x04\x05":
        what = "is a pickle, which can hold code and is never opened"
    raise ArtifactError(f"{path} {what}, expected a file that mmgen made; check the path")


def _open_file(path: Path) -> tuple[Any, Header]:
    # Finished files never change, so no lock is needed, and locks fail on some network and read-only file systems.
    """Open an HDF5 file for reading and parse its header."""
    with explain_errors(path):
        file = h5py.File(path, "r", locking=False)
    try:
        with explain_errors(path):
            text = read_text(file, "mmgen", path) if "mmgen" in file.attrs else None
        return file, _parse_header(text, path, "HDF5")
    except BaseException:
        file.close()
        raise


def _parse_header(text: Any, path: Path, container: Literal["HDF5", "safetensors"]) -> Header:
    """Parse the header of a file; refuse a kind of artifact that is stored in the other file format."""
    named = {"HDF5": "an HDF5 file", "safetensors": "a safetensors file"}
    if not isinstance(text, str):
        raise ArtifactError(
            f"{path} is {named[container]} without an mmgen header, expected one that mmgen made; "
            f"make one with mmgen {'make-data' if container == 'HDF5' else 'train'}"
        )
    header = header_from_json(text, path)
    other = "HDF5" if header.kind in HDF5_KINDS else "safetensors"
    if other != container:
        raise ArtifactError(
            f"{path} is {named[container]} whose header says {add_article(header.kind)}, expected {named[other]} for "
            "that; make it again"
        )
    return header


@check_arguments
def read_header(path: str | Path) -> Header:
    """Read the header of any artifact; its file name does not matter, and torch is not imported.

    Raises:
        ArtifactError: The file is unreadable, truncated, foreign, or of another format version.
    """
    path = Path(path)
    if not _is_hdf5(path):
        return _parse_header(read_tensor_table(path).metadata.get("mmgen"), path, "safetensors")
    file, header = _open_file(path)
    with explain_errors(path):
        file.close()
    return header


@check_arguments
def require_kind(path: str | Path, *kinds: str) -> Header:
    """Read the header of an artifact; raise an error unless it is of one of ``kinds``.

    Raises:
        ArtifactError: It is of another kind, or no artifact; names the command that makes the expected kind.
    """
    header = read_header(path)
    _check_kind(header, path, kinds)
    return header


def _check_kind(header: Header, path: str | Path, kinds: tuple[str, ...]) -> None:
    """Raise an error unless the header is of one of ``kinds``."""
    if header.kind not in kinds:
        makers = " or ".join(dict.fromkeys(KINDS[kind] for kind in kinds))
        expected = " or ".join(add_article(kind) for kind in kinds)
        raise ArtifactError(f"{path} is {add_article(header.kind)}, expected {expected}; make one with {makers}")


def open_hdf5(path: Path, *kinds: str) -> tuple[Any, Header]:
    """Open an HDF5 artifact of one of ``kinds`` for reading; the caller closes the file.

    Raises:
        ArtifactError: It is unreadable, foreign, of another format version or of another kind.
    """
    if not _is_hdf5(path):
        _check_kind(read_header(path), path, kinds)
    file, header = _open_file(path)
    try:
        _check_kind(header, path, kinds)
    except ArtifactError:
        file.close()
        raise
    return file, header


_CHECKPOINTS = tuple(kind for kind in KINDS if kind not in HDF5_KINDS)


def _hash_tensors(content: ContentHash, tensors: "Mapping[str, torch.Tensor]") -> ContentHash:
    """Add all tensors to a content hash, by name in sorted order."""
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
    """Write tensors and a header to a safetensors file; a failed write leaves no file.

    Args:
        path: File to make.
        kind: "model", "aggregate", "classifier" or "training-state".
        tensors: By name, on any device; views and shared memory are copied.
        settings: Effective settings, plain values.
        seed: Seed of the run.
        parents: Files that it was made from, see :func:`mmgen.artifacts.parent_record`.
        facts: What was measured; the content id covers all but times.
        command: The command that makes it again.

    Returns:
        The header as it was written.

    Raises:
        ArtifactError: The file system refuses; or weights are not finite.
    """
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import save

    assert kind in _CHECKPOINTS, f"'{kind}' is no kind of checkpoint"
    parents = tuple(parents)
    copies = {
        name: tensor.detach().to("cpu").clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()
    }
    _check_finite(path, kind, copies)  # what every command would refuse is not written
    content = _hash_tensors(ContentHash(kind, settings, seed, parents, facts), copies)
    header = make_header(kind, content, settings=settings, seed=seed, parents=parents, facts=facts, command=command)
    with atomic_path(path) as temporary:
        try:
            # In memory first: safetensors reports a full disk as an error of its own, the file object as an OSError.
            data = save(copies, metadata={"mmgen": header_to_json(header)})
        except SafetensorError as error:
            raise ArtifactError(f"cannot write {path}: {error}") from error
        with open(temporary, "wb") as file:
            file.write(data)
    return header


def verify_checkpoint(path: Path) -> None:
    """Check that the tensors of a file match its content id, the hash in its header; torch is not imported.

    Raises:
        ArtifactError: It is no readable checkpoint, or something in it is damaged or was changed.
    """
    header, table = require_kind(path, *_CHECKPOINTS), read_tensor_table(path)
    content = header.content_hash()
    try:
        with open(path, "rb") as file:
            for name, tensor in table.tensors.items():
                start, end = tensor.data_offsets
                file.seek(table.start + start)
                content.add(name, tensor.type_name, tensor.shape, _hash_next_bytes(file, end - start))
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {reason_of(error)}; check the file") from None
    if content.hexdigest() != header.content_id:
        raise _damage_error(path)


def _hash_next_bytes(file: BinaryIO, size: int) -> str:
    """Return the SHA-256, in hex, of the next ``size`` bytes of an open file."""
    digest = hashlib.sha256()
    while size > 0 and (piece := file.read(min(size, 2**22))):
        digest.update(piece)
        size -= len(piece)
    return digest.hexdigest()


def _damage_error(path: Path) -> ArtifactError:
    return ArtifactError(
        f"{path} is damaged: its tensors, settings or facts do not match its content id; make it again or copy it again"
    )


@check_arguments
def read_checkpoint(path: str | Path, kind: str | None = None) -> "tuple[Header, dict[str, torch.Tensor]]":
    """Read header and tensors (on the CPU) of a safetensors file, and verify them against its content id.

    Args:
        path: File to read.
        kind: Expected kind; None takes any kind of checkpoint.

    Raises:
        ArtifactError: It is unreadable, truncated, foreign, of a newer version, of another kind, or damaged; it was
            made with a member from outside that is not there; or it holds weights that are not finite.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    path = Path(path)
    header = require_kind(path, *([kind] if kind is not None else _CHECKPOINTS))
    check_members(path, header.members)
    try:
        tensors = load(path.read_bytes())
        content_id = _hash_tensors(header.content_hash(), tensors).hexdigest()
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RuntimeError, MemoryError) as error:
        reason = printable(str(error).split("\n")[0], 160)
        raise ArtifactError(f"cannot read {path}: its tensors are damaged ({reason}); make it again") from error
    if content_id != header.content_id:
        raise _damage_error(path)
    _check_finite(path, header.kind, tensors)
    return header, tensors


def _check_finite(path: Path, kind: str, tensors: "Mapping[str, torch.Tensor]") -> None:
    """Raise an error if a tensor of weights holds NaN or an infinity."""
    for name, tensor in tensors.items():
        # A state may say by an infinity that nothing was validated yet.
        if kind != "training-state" and not tensor.isfinite().all():
            raise ArtifactError(
                f"{path} has NaN or infinite numbers in its tensor '{printable(name, 80)}', because its training "
                f"diverged; make it again with {KINDS[kind]} and a lower learning rate"
            )
