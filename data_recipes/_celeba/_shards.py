"""Finished parts of a dataset on disk, from which stopped work resumes."""

import hashlib
import json
import shutil
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmgen.artifacts import check_replaceable
from mmgen.artifacts.files import make_internal_folder
from mmgen.core.errors import ArtifactError, reason_of
from mmgen.core.foreign import CannotReadError, read_file, unpack_zlib
from mmgen.core.parsing import parse_json
from mmgen.data_recipes._base import Rows

__all__ = ["Shard", "ShardFolder"]

_GROUPS = ("columns", "factors")
_MOST_BYTES = 2**30  # packed or not; 128 images of all kinds have 60 MB


@dataclass(frozen=True)
class Shard:
    """Finished pictures of consecutive images, a part of the dataset that is stored on disk.

    Attributes:
        rows: The n readable images.
        numbers: Their numbers among the source's images [n].
        unreadable: Reasons why the others could not be read, by name of the image.
    """

    rows: Rows
    numbers: NDArray[np.int64]
    unreadable: dict[str, str]

    def to_bytes(self) -> bytes:
        """Serialise the shard as numbers and text with a checksum."""
        from safetensors.numpy import save

        columns = {f"{group}/{name}": array for group in _GROUPS for name, array in getattr(self.rows, group).items()}
        tensors = {name: np.ascontiguousarray(array) for name, array in columns.items()}
        data = save(tensors | {"numbers": self.numbers}, metadata={"unreadable": json.dumps(self.unreadable)})
        return zlib.compress(data, 1)

    @staticmethod
    def from_bytes(data: bytes) -> "Shard":
        """Parse the bytes of :meth:`to_bytes`; raise ValueError if they are damaged."""
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            plain = unpack_zlib(data, _MOST_BYTES)
            length = int.from_bytes(plain[:8], "little")
            texts = parse_json(plain[8 : 8 + length])["__metadata__"]
            columns = load(plain)
            numbers = columns.pop("numbers")
            groups: dict[str, dict[str, NDArray[Any]]] = {group: {} for group in _GROUPS}
            for where, array in columns.items():
                group, name = where.split("/", 1)
                groups[group][name] = array
            return Shard(Rows(**groups), numbers, parse_json(texts["unreadable"]))
        except (CannotReadError, SafetensorError, AttributeError, KeyError, RecursionError, TypeError) as error:
            raise ValueError(f"a shard is damaged ({error})") from None


class ShardFolder:
    """Folder of finished shards beside the output, from which stopped work resumes.

    A shard's name has a hash of its images' files, so that changed images are made again.

    Args:
        output: The dataset file.
        key: Everything that determines the shards besides the images.

    Raises:
        ArtifactError: The folder cannot be made.
    """

    def __init__(self, output: Path, key: Mapping[str, Any]) -> None:
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        self.path = output.with_name(f"{output.name}.{digest[:12]}.partial")
        check_replaceable(output)
        try:
            make_internal_folder(self.path)
        except OSError as error:
            advice = f"there is no folder {output.parent}; make it first" if not output.parent.exists() else ""
            raise ArtifactError(
                f"cannot write {output}: {advice or f'{reason_of(error)}; choose another folder'}"
            ) from None

    def file(self, start: int, digest: str) -> Path:
        """Return the path of the shard that begins with image ``start``; ``digest`` is a hash of its images' files."""
        return self.path / f"{start:06d}-{digest[:24]}.shard"

    def load(self, file: Path) -> Shard | None:
        """Read a finished shard; None if it is missing or damaged."""
        try:
            return Shard.from_bytes(read_file(file, _MOST_BYTES))
        except (CannotReadError, ValueError):
            return None

    def store(self, file: Path, data: bytes) -> None:
        """Write a shard; a checksum reveals damage by a power cut, since the disk is not synced."""
        temporary = file.with_suffix(".part")
        try:
            temporary.unlink(missing_ok=True)  # of a writer that was killed, or a link
            with temporary.open("xb") as shard:
                shard.write(data)
            temporary.replace(file)
        except OSError as error:
            raise ArtifactError(
                f"cannot write {file}: {reason_of(error)}; fix that (a whole CelebA needs up to 12 GB here) and run "
                "the same command again, which keeps finished images"
            ) from None

    def remove(self) -> None:
        """Remove the folder once the output is complete."""
        shutil.rmtree(self.path, ignore_errors=True)

    def remove_if_empty(self) -> None:
        """Remove the folder if the work ends before any shard was finished."""
        with suppress(OSError):
            self.path.rmdir()
