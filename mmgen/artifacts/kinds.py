"""What a file is, told by what is in it: its header, its kind, and an HDF5 file opened as that."""

from pathlib import Path
from typing import Any

import h5py

from mmgen.artifacts.files import regular_file
from mmgen.artifacts.hdf5 import SIGNATURE, explained, hdf5_header, read_hdf5_header
from mmgen.artifacts.header import KINDS, Header
from mmgen.artifacts.tensors import read_safetensors_header
from mmgen.core.errors import ArtifactError
from mmgen.settings.arguments import checked

__all__ = ["article", "open_hdf5", "read_header", "require_kind"]


def article(kind: str) -> str:
    """A kind with its article: "an aggregate", "latents"."""
    return f"an {kind}" if kind[0] in "aeiou" else kind if kind in ("latents", "samples") else f"a {kind}"


def _first_bytes(path: Path, size: int) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(size)
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}; check its permissions") from None


def _is_safetensors(start: bytes) -> bool:
    return len(start) > 8 and start[8:9] == b"{" and int.from_bytes(start[:8], "little") < 2**40


def _what_else(start: bytes) -> str:
    """What a file that is no artifact might be."""
    if not start:
        return "is empty"
    if start[:4] == b"PK\x03\x04":
        return "is a zip archive (perhaps from torch.save, which can hold code and is never opened)"
    if start[:1] == b"\x80" and start[1:2] in b"\x02\x03\x04\x05":
        return "is a pickle, which can hold code and is never opened"
    return "is neither HDF5 nor safetensors"


@checked
def read_header(path: str | Path) -> Header:
    """The header of any artifact, told by what is in the file, not by its name. Does not need torch.

    Raises:
        ArtifactError: The file is unreadable, truncated, foreign, or of a newer format version.
    """
    path = Path(path)
    regular_file(path)
    start = _first_bytes(path, 16)
    if start[:8] == SIGNATURE:
        return read_hdf5_header(path)
    if _is_safetensors(start):
        return read_safetensors_header(path)
    raise ArtifactError(f"{path} {_what_else(start)}, expected a file that mmgen made; check the path")


@checked
def require_kind(path: str | Path, *kinds: str) -> Header:
    """The header of an artifact that must be of one of ``kinds``.

    Raises:
        ArtifactError: It is of another kind, or no artifact; names the command that makes the expected kind.
    """
    header = read_header(path)
    if header.kind not in kinds:
        makers = " or ".join(dict.fromkeys(KINDS[kind] for kind in kinds))
        wanted = " or ".join(article(kind) for kind in kinds)
        raise ArtifactError(f"{path} is {article(header.kind)}, expected {wanted}; make one with {makers}")
    return header


def open_hdf5(path: Path, kind: str | None = None) -> tuple[Any, Header]:
    """Open an artifact in HDF5 for reading; the caller closes the file.

    Raises:
        ArtifactError: It is unreadable, foreign, of a newer version or not of ``kind``.
    """
    if kind is not None:
        require_kind(path, kind)
    else:
        regular_file(path)
    with explained(path):
        file = h5py.File(path, "r", locking=False)
    try:
        return file, hdf5_header(file, path)
    except BaseException:
        file.close()
        raise
