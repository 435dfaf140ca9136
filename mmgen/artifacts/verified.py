"""Verification of any artifact against its content id, without torch, once per change of the file."""

import math
from pathlib import Path

from mmgen.artifacts.bundle import read_array_shapes
from mmgen.artifacts.containers import read_header, verify_checkpoint
from mmgen.artifacts.content_id import file_stamp, record_verified, was_verified
from mmgen.artifacts.dataset import Dataset
from mmgen.artifacts.latents import read_latents
from mmgen.artifacts.samples import read_samples

QUICK_BYTES = 2**28
"""Most bytes that are read, about a second's work, to verify a file."""
_WIDEST = 8  # bytes of a number


def is_verified(path: Path, limit: int = QUICK_BYTES) -> bool:
    """Check a file against its content id; return False if more than ``limit`` bytes would have to be read for that.

    Args:
        path: Any artifact.
        limit: Bytes before compression.

    Raises:
        ArtifactError: It is no artifact, or does not match its content id.
    """
    header = read_header(path)
    before = file_stamp(path, header.content_id)
    if was_verified(before):
        return True
    if _bytes_to_verify(path, header.kind) > limit:
        return False
    if header.kind == "dataset":
        Dataset.open(path).close()
    elif header.kind == "latents":
        read_latents(path)
    elif header.kind == "samples":
        read_samples(path)
    else:
        verify_checkpoint(path)
    if file_stamp(path, header.content_id) == before:
        record_verified(before)
    return True


def _bytes_to_verify(path: Path, kind: str) -> int:
    """Return roughly how many bytes a verification must read, after unpacking."""
    if kind == "dataset":
        with Dataset.open(path, verify=False) as data:
            return data.stored_bytes
    if kind in ("latents", "samples"):
        return _WIDEST * sum(math.prod(shape) for shape in read_array_shapes(path).values())
    return path.stat().st_size
