"""Checkpoints: weights of models, aggregates and classifiers, and training states, as safetensors files."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from mmgen.artifacts.containers import read_tensor_table, require_kind
from mmgen.artifacts.content_id import ContentHash
from mmgen.artifacts.files import atomic_path
from mmgen.artifacts.header import HDF5_KINDS, KINDS, Header, Parent, check_members, header_to_json, make_header
from mmgen.core.errors import ArtifactError, reason_of
from mmgen.core.parsing import printable
from mmgen.settings.arguments import check_arguments

if TYPE_CHECKING:
    import torch


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
        ArtifactError: The file system refuses.
    """
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import save

    assert kind in _CHECKPOINTS, f"'{kind}' is no kind of checkpoint"
    parents = tuple(parents)
    copies = {
        name: tensor.detach().to("cpu").clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()
    }
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
    if header.kind != "training-state":  # which may say that nothing was validated yet, by an infinity
        _check_finite(path, header.kind, tensors)
    return header, tensors


def _check_finite(path: Path, kind: str, tensors: "Mapping[str, torch.Tensor]") -> None:
    """Raise an error if a tensor of weights holds NaN or an infinity."""
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise ArtifactError(
                f"{path} has NaN or infinite numbers in its tensor '{printable(name, 80)}', because its training "
                f"diverged; make it again with {KINDS[kind]} and a lower learning rate"
            )
