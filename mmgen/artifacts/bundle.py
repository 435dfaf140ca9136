"""A few arrays and texts in one HDF5 file, the common form of latents and samples."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from mmgen.artifacts.containers import open_hdf5
from mmgen.artifacts.content_id import ContentHash
from mmgen.artifacts.files import atomic_path
from mmgen.artifacts.hdf5 import (
    create_hdf5,
    explain_errors,
    member_names,
    open_array,
    read_text,
    require_hard_link,
    write_array,
    write_header,
    write_text,
)
from mmgen.artifacts.header import Header, Parent, make_header
from mmgen.core.errors import ArtifactError
from mmgen.core.parsing import printable

__all__ = ["read_array_shapes", "read_bundle", "write_bundle"]


def write_bundle(
    path: Path,
    kind: str,
    arrays: Mapping[str, np.ndarray],
    texts: Mapping[str, str],
    *,
    settings: Mapping[str, Any],
    seed: int,
    parents: Iterable[Parent] = (),
    facts: Mapping[str, Any] | None = None,
    command: str = "",
) -> Header:
    """Write named arrays and texts to one HDF5 file, with a header whose content id covers both."""
    parents = tuple(parents)
    content = ContentHash(kind, {"settings": settings, "texts": texts}, seed, parents, facts)
    with atomic_path(path) as temporary, create_hdf5(temporary) as (file, _):
        for name, values in arrays.items():
            writer = write_array(file, name, values)
            writer.hash_into(name, content)
        for name, text in texts.items():
            write_text(file, name, text)
        header = make_header(kind, content, settings=settings, seed=seed, parents=parents, facts=facts, command=command)
        write_header(file, header)
    return header


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


def read_bundle(
    path: Path,
    kind: str,
    arrays: Mapping[str, tuple[str | None, int | None]],
    texts: Iterable[str],
    optional: Iterable[str] = (),
    families: Mapping[str, tuple[str | None, int | None]] | None = None,
) -> tuple[Header, dict[str, np.ndarray], dict[str, str]]:
    """Read the named arrays and texts of an HDF5 file into memory, and verify them against its content id.

    Args:
        path: File.
        kind: Its kind.
        arrays: Type and number of axes of every array; None for any.
        texts: Names of the texts.
        optional: Which of the arrays and texts may be absent.
        families: Type and number of axes of all arrays whose name begins with a prefix and a dot, of which there may be
            any number: "images" for ``images.edges``.

    Raises:
        ArtifactError: It is no readable file of that kind.
    """
    file, header = open_hdf5(path, kind)
    with file:
        present, absent = member_names(file, path), set(optional)
        expected = {name: form for name, form in arrays.items() if name not in absent or name in present}
        for prefix, form in (families or {}).items():
            expected |= {name: form for name in present if name.startswith(f"{prefix}.")}
        values = {
            name: open_array(
                file,
                name,
                path,
                dtype=dtype,
                shape=(None,) * (_declared_axes(file, name, path) if axes is None else axes),
            ).read()
            for name, (dtype, axes) in expected.items()
        }
        found = {name: read_text(file, name, path) for name in texts if name not in absent or name in file.attrs}
    content = header.content_hash({"settings": header.settings, "texts": found})
    for name, data in values.items():
        content.add_array(name, data)
    if content.hexdigest() != header.content_id:
        raise ArtifactError(
            f"{path} is damaged: its data or facts do not match its content id; make it again or copy it again"
        )
    return header, values, found
