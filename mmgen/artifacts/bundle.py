"""A few arrays and texts in one HDF5 file, one row each: the common form of latents and samples."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from mmgen.artifacts.containers import open_hdf5
from mmgen.artifacts.content_id import ContentHash
from mmgen.artifacts.files import atomic_path
from mmgen.artifacts.hdf5 import (
    explain_errors,
    member_names,
    open_array,
    read_text,
    require_hard_link,
    write_array,
    write_header,
    write_text,
)
from mmgen.artifacts.header import KINDS, Header, Parent, make_header
from mmgen.artifacts.sink import create_hdf5
from mmgen.core.errors import ArtifactError
from mmgen.core.parsing import printable


@dataclass(frozen=True)
class Bundle:
    """Format of a kind of file: its arrays and texts.

    Attributes:
        kind: Kind of the artifact.
        arrays: Number types and axes of each array by name, None for any number of axes; the first type is what others
            are converted to. "images.*" stands for any number of arrays, ``images.edges``.
        texts: Names of the texts.
        optional: Which of the arrays and texts may be absent.
    """

    kind: str
    arrays: Mapping[str, tuple[tuple[str, ...], int | None]]
    texts: tuple[str, ...]
    optional: frozenset[str]

    def _form(self, name: str) -> tuple[tuple[str, ...], int | None] | None:
        return self.arrays.get(name) or self.arrays.get(f"{name.partition('.')[0]}.*")

    def write(
        self,
        path: Path,
        arrays: Mapping[str, np.ndarray | None],
        texts: Mapping[str, str],
        *,
        settings: Mapping[str, Any],
        seed: int,
        parents: Iterable[Parent] = (),
        facts: Mapping[str, Any] | None = None,
        command: str = "",
    ) -> Header:
        """Write arrays (None is left out) and texts, with a header whose content id covers both.

        Raises:
            ValueError: An array has another type or number of axes, or not one row for each of the others.
            ArtifactError: The file system refuses; no file is left.
        """
        given = {name: np.asarray(values) for name, values in arrays.items() if values is not None}
        rows = {len(values) for values in given.values()}
        for name, values in given.items():
            types, axes = self._form(name) or ((), None)
            kind = values.dtype.name if values.dtype.name in types else types[0]
            if axes not in (None, values.ndim) or len(rows) > 1 or not np.can_cast(values.dtype, kind, "same_kind"):
                raise ValueError(
                    f"{name} is {values.dtype} {list(values.shape)}, expected {' or '.join(types)} with "
                    f"{axes or 'some'} axes, and as many rows as the others"
                )
            given[name] = values.astype(kind, copy=False)
        parents = tuple(parents)
        content = ContentHash(self.kind, {"settings": settings, "texts": texts}, seed, parents, facts)
        with atomic_path(path) as temporary, create_hdf5(temporary) as (file, _):
            for name, values in given.items():
                writer = write_array(file, name, values)
                writer.hash_into(name, content)
            for name, text in texts.items():
                write_text(file, name, text)
            header = make_header(
                self.kind, content, settings=settings, seed=seed, parents=parents, facts=facts, command=command
            )
            write_header(file, header)
        return header

    def read(self, path: Path) -> tuple[Header, dict[str, np.ndarray], dict[str, str]]:
        """Read all arrays and texts into memory, and verify them against the content id.

        Raises:
            ArtifactError: It is no readable file of that kind.
        """
        file, header = open_hdf5(path, self.kind)
        with file:
            listed = member_names(file, path)
            required = [name for name in self.arrays if "*" not in name and name not in self.optional]
            values = {}
            for name in [*required, *(name for name in listed if name not in required and self._form(name))]:
                types, axes = self._form(name) or ((), None)
                shape = (None,) * (_declared_axes(file, name, path) if axes is None else axes)
                dtype = types[0] if len(types) == 1 else None
                values[name] = open_array(file, name, path, dtype=dtype, shape=shape).read()
            found = {
                name: read_text(file, name, path)
                for name in self.texts
                if name not in self.optional or name in file.attrs
            }
        content = header.content_hash({"settings": header.settings, "texts": found})
        for name, array in values.items():
            content.add_array(name, array)
        if content.hexdigest() != header.content_id:
            raise ArtifactError(
                f"{path} is damaged: its data or facts do not match its content id; make it again or copy it again"
            )
        types_fit = all(array.dtype.name in (self._form(name) or ((),))[0] for name, array in values.items())
        self.require(path, types_fit and len({len(array) for array in values.values()}) == 1)
        return header, values, found

    def require(self, path: Path, fits: bool) -> None:
        """Raise an error unless the contents of a file fit together."""
        if not fits:
            raise ArtifactError(f"{path}: its arrays do not fit together; make it again with {KINDS[self.kind]}")


def read_array_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shape of every array in a file of latents or samples by name, without reading the data.

    Raises:
        ArtifactError: It is no such file, or one of its members is no array that the format allows.
    """
    file, _ = open_hdf5(path, "latents", "samples")
    with file:
        shapes = {}
        for name in member_names(file, path):
            with explain_errors(path, printable(name, 100)):
                axes = _declared_axes(file, name, path)
                if isinstance(file[name], h5py.Group):  # of another program
                    continue
            shapes[name] = open_array(file, name, path, shape=(None,) * axes).shape
        return shapes


def _declared_axes(file: h5py.File, name: str, path: Path) -> int:
    """Return the number of axes of the array ``name``, as the file declares it."""
    with explain_errors(path, printable(name, 100)):
        require_hard_link(file, name, path)
        return len(getattr(file[name], "shape", None) or ())
