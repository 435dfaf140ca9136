"""The dataset file: modalities of any kind, generative factors and splits, read by rows."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import SkipValidation

import mmgen.modalities
from mmgen.artifacts.containers import open_hdf5
from mmgen.artifacts.content_id import file_stamp, record_verified, was_verified
from mmgen.artifacts.elements import FILLED, NAME, FactorInfo, FileElement, array_path
from mmgen.artifacts.hdf5 import (
    Array,
    explain_errors,
    hash_texts,
    member_names,
    open_array,
    open_group,
    read_text,
    require_hard_link,
)
from mmgen.core.errors import ArtifactError, UsageError, format_unknown_name
from mmgen.core.markup import facts_table
from mmgen.core.parsing import printable
from mmgen.modalities import ROWS
from mmgen.settings.arguments import check_arguments, format_value
from mmgen.settings.kinds import FilePath, Seed

if TYPE_CHECKING:
    from mmgen.modalities import Description
    from mmgen.modalities.attributes import AttributesDescription
    from mmgen.modalities.image import ImageDescription
    from mmgen.modalities.text import TextDescription


PARTS = ("train", "val", "test")
D = TypeVar("D", bound="Description")
_SOURCES = ("source", "source_part", "source_group", "picture")
"""Factors, as recipes write them, that tell which examples were made from one thing."""
Rows = Annotated[slice | np.ndarray, SkipValidation]
"""A slice, row numbers in any order, or a mask of all rows; :meth:`Dataset._check_rows` checks it."""


class Dataset:
    """An open dataset file, verified against its content id. Examples are read on demand.

    Use it as a context manager or call :meth:`close`. Reading a damaged file raises :class:`ArtifactError` that names
    the file and the element; asking for what the file does not have raises :class:`UsageError`.

    Attributes:
        path: The file.
        header: Its header.
        size: Number of examples N.
        modalities: Descriptions of all modalities by name; :attr:`images`, :attr:`attributes` and :attr:`texts` are
            those of one kind.
        factors: Generative factors by name.
        schemes: Names of the split schemes.
        default_scheme: The scheme to use unless a call names another.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._file, self.header = open_hdf5(self.path, "dataset")
        self._arrays: dict[str, Array] = {}  # by their places in the file
        self._groups: dict[str, Any] = {}  # of the modalities that are several arrays
        self._factor_arrays: dict[str, Array] = {}
        self.modalities: dict[str, Description] = {}
        self.factors: dict[str, FactorInfo] = {}
        self.size = 0
        try:
            self._read_structure()
        except BaseException:
            self.close()
            raise

    @classmethod
    @check_arguments
    def open(cls, path: FilePath, verify: bool = True) -> "Dataset":
        """Open the dataset at ``path``.

        Args:
            path: The file.
            verify: Whether to compare all of it with its content id first. That is done once for a file and each change
                of it, and remembered in the user's cache; without it only what the file says of itself can be trusted.

        Raises:
            ArtifactError: It is no readable dataset, or something in it is damaged or was changed.
        """
        dataset = cls(Path(path))
        try:
            if verify:
                dataset._verify_once()
        except BaseException:
            dataset.close()
            raise
        return dataset

    def _verify_once(self) -> None:
        before = file_stamp(self.path, self.header.content_id)
        if not was_verified(before):
            self.verify()
            if file_stamp(self.path, self.header.content_id) == before:
                record_verified(before)

    def _read_structure(self) -> None:
        modalities = open_group(self._file, "modalities", self.path)
        for name in member_names(modalities, self.path):
            self._read_modality(modalities, name)
        for name, description in self.modalities.items():
            if fault := description.find_conflict(self.modalities):
                raise ArtifactError(f"{self.path}: /modalities/{name}: {fault}; make the file again")
        sizes = {
            self._arrays[array_path(name, key)].element: len(self._arrays[array_path(name, key)])
            for name, description in self.modalities.items()
            for key, stored in description.arrays().items()
            if stored.rows is None
        } | {array_path(name): each.examples for name, each in self.modalities.items() if each.examples is not None}
        if len(set(sizes.values())) != 1 or 0 in sizes.values():
            raise ArtifactError(
                f"{self.path}: its modalities have {sizes} rows, expected equal numbers above 0; make it again"
            )
        self.size = next(iter(sizes.values()))
        factors = open_group(self._file, "factors", self.path)
        for name in member_names(factors, self.path):
            with explain_errors(self.path, f"/factors/{printable(name, 100)}"):
                require_hard_link(factors, name, self.path)
                axes = max(1, len(getattr(factors[name], "shape", None) or ()))
            data = open_array(factors, name, self.path, shape=(self.size, *[None] * (axes - 1)))
            self._factor_arrays[name] = data
            unit, meaning = data.text("unit"), data.text("meaning")
            self.factors[name] = FactorInfo(name, data.dtype, unit, meaning, data.shape[1:])
        self._splits = open_group(self._file, "splits", self.path)
        self.schemes: list[str] = member_names(self._splits, self.path)
        self.default_scheme = read_text(self._splits, "default", self.path) if self.schemes else ""
        if self.schemes and self.default_scheme not in self.schemes:
            raise ArtifactError(f"{self.path}: the default split scheme is none of its schemes; make the file again")

    def _read_modality(self, modalities: Any, name: str) -> None:
        # The texts say which arrays to expect, so the element is looked at twice, the first time for any.
        with explain_errors(self.path, f"/modalities/{printable(name, 100)}"):
            if not NAME.match(name):
                raise ArtifactError(
                    f"{self.path}: modality name {printable(name, 100)!r} is not allowed; make it again"
                )
            require_hard_link(modalities, name, self.path)
            element = modalities[name]
        kind = read_text(element, "kind", self.path)
        if kind not in mmgen.modalities.names():
            known = mmgen.modalities.names()
            raise ArtifactError(
                f"{self.path}: modality '{name}' is of kind {printable(kind, 40)!r}, "
                f"expected {', '.join(known[:-1])} or {known[-1]}; make the file again, or install its package"
            )
        description = mmgen.modalities.get(kind).read(name, FileElement(element, self.path))
        self.modalities[name] = description
        stored = description.arrays()
        if stored.keys() != {ROWS}:
            self._groups[name] = open_group(modalities, name, self.path)
        for key, expected in stored.items():
            parent, member = (modalities, name) if key == ROWS else (self._groups[name], key)
            shape = (expected.rows, *expected.shape)
            data = open_array(parent, member, self.path, dtype=expected.dtype, shape=shape)
            self._arrays[array_path(name, key)] = data

    def close(self) -> None:
        """Close the file."""
        with explain_errors(self.path):
            self._file.close()

    def __enter__(self) -> "Dataset":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self.size

    @property
    def stored_bytes(self) -> int:
        """Return the bytes of all arrays before compression, as declared in the file."""
        arrays = (*self._arrays.values(), *self._factor_arrays.values())
        return sum(math.prod(each.shape) * each.dtype.itemsize for each in arrays)

    def __repr__(self) -> str:
        return f"Dataset({str(self.path)!r}, size={self.size}, modalities={sorted(self.modalities)})"

    def _repr_html_(self) -> str:
        facts = [
            ("examples", f"{self.size:,}"),
            *((name, each.describe_size()) for name, each in self.modalities.items()),
        ]
        return facts_table(f"dataset {self.path}", [*facts, ("splits", ", ".join(self.schemes) or "none")])

    def _check_rows(self, rows: slice | np.ndarray, size: int) -> slice | np.ndarray:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(size)
            return slice(start, max(start, stop), step) if step > 0 else np.arange(start, stop, step)
        try:
            rows = np.asarray(rows)
        except (ValueError, TypeError, OverflowError):  # lists of several lengths
            rows = np.asarray(None)
        mask = rows.dtype == bool
        if rows.ndim != 1 or (mask and len(rows) != size) or (rows.dtype.kind not in "biu" and len(rows)):
            raise UsageError(
                f"rows got {format_value(rows)} for {self.path}, expected row numbers, a slice or a mask of {size} rows"
            )
        rows = np.flatnonzero(rows) if mask else rows.astype(np.int64, copy=False)
        if len(rows) and (rows.min() < 0 or rows.max() >= size):
            raise UsageError(f"rows got numbers outside 0 to {size - 1}, the row numbers of {self.path}; choose others")
        return rows

    def modalities_of(self, kind: type[D]) -> dict[str, D]:
        """Return the modalities that are specified by objects of the class ``kind``, by name."""
        return {name: each for name, each in self.modalities.items() if isinstance(each, kind)}

    @property
    def images(self) -> "dict[str, ImageDescription]":
        """Specifications of the image modalities by name."""
        from mmgen.modalities.image import ImageDescription

        return self.modalities_of(ImageDescription)

    @property
    def attributes(self) -> "dict[str, AttributesDescription]":
        """Specifications of the attribute modalities by name."""
        from mmgen.modalities.attributes import AttributesDescription

        return self.modalities_of(AttributesDescription)

    @property
    def texts(self) -> "dict[str, TextDescription]":
        """Specifications of the text modalities by name."""
        from mmgen.modalities.text import TextDescription

        return self.modalities_of(TextDescription)

    @property
    def observed(self) -> "dict[str, Description]":
        """Specifications of the modalities that descriptions are about; images come first."""
        return {**self.images, **mmgen.modalities.observed_modalities(self.modalities)}

    @check_arguments
    def read_values(self, name: str, rows: Rows = slice(None), seed: Seed = 0) -> np.ndarray:
        """Return the values [n, *event_shape] of a modality in the form that models take, such as pixels from 0 to 1.

        Args:
            name: Modality.
            rows: A slice, or row numbers in any order.
            seed: Seed of kinds that are drawn anew in every view; the same row looks the same in every call.
        """
        import torch

        from mmgen.modalities import View

        described = self.modalities.get(name)
        if described is None:
            raise UsageError(format_unknown_name("modality", name, sorted(self.modalities)))
        held = torch.from_numpy(described.torch_rows(self.read_packed(name, rows)))
        numbers = torch.from_numpy(np.arange(self.size)[self._check_rows(rows, self.size)])
        return np.asarray(described.tensors(held, View(lambda: numbers, (seed,)))[0].numpy())

    @check_arguments
    def read_packed(self, name: str, rows: Rows = slice(None), array: str = ROWS) -> np.ndarray:
        """Read examples of a modality in the form in which the file stores them, and check their values.

        Args:
            name: Modality.
            rows: A slice, or row numbers in any order.
            array: Which of its arrays, where its kind stores several; rows are then rows of that array.

        Raises:
            ArtifactError: A row is not what the kind allows (a code of no value, a number that is not finite).
        """
        if name not in self.modalities:
            raise UsageError(format_unknown_name("modality", name, sorted(self.modalities)))
        if array_path(name, array) not in self._arrays:
            names = ", ".join(self.modalities[name].arrays())
            raise UsageError(f"modality '{name}' of {self.path} has no array '{array}', expected {names}")
        data = self._arrays[array_path(name, array)]
        stored = data.read(self._check_rows(rows, len(data)))
        fault = self.modalities[name].find_fault(stored, array)
        if fault:
            raise ArtifactError(f"{self.path}: /{array_path(name, array)}: {fault}; make the file again")
        return stored

    @check_arguments
    def read(self, name: str, rows: Rows = slice(None)) -> np.ndarray:
        """Read examples as integers: images uint8 [n, C, H, W], attribute codes uint8 [n, A], words uint16 [n, T]."""
        stored = self.read_packed(name, rows)
        return self.modalities[name].unpack(stored)

    @check_arguments
    def read_image(self, name: str, rows: Rows = slice(None)) -> np.ndarray:
        """Read images as stored, uint8 [n, C, H, W] from 0 to ``images[name].scale``; see :meth:`read_pixels`."""
        if name not in self.images:
            raise UsageError(format_unknown_name("image modality", name, sorted(self.images)))
        return self.read(name, rows)

    @check_arguments
    def read_pixels(self, name: str, rows: Rows = slice(None), seed: Seed = 0) -> np.ndarray:
        """Read images float32 [n, C, H, W] from 0 to 1; pixels stored as probabilities are drawn as 0 or 1.

        Args:
            name: Image modality.
            rows: A slice, or row numbers in any order.
            seed: Seed of the draw; the same row looks the same in every call.
        """
        images = self.read_image(name, rows)
        if self.images[name].layout == "probabilities":
            return self.read_values(name, rows, seed)
        return images.astype(np.float32) / self.images[name].scale

    @check_arguments
    def read_attributes(self, name: str, rows: Rows = slice(None)) -> np.ndarray:
        """Read attribute codes uint8 [n, A]; the code 255 stands for an unknown value."""
        if name not in self.attributes:
            raise UsageError(format_unknown_name("attributes modality", name, sorted(self.attributes)))
        return self.read(name, rows)

    @check_arguments
    def read_text(self, name: str, rows: Rows = slice(None)) -> np.ndarray:
        """Read word codes uint16 [n, T], of several captions the first; the size of the vocabulary is padding."""
        return self.read_captions(name, rows)[:, 0]

    @check_arguments
    def read_captions(self, name: str, rows: Rows = slice(None)) -> np.ndarray:
        """Read all captions of examples, word codes uint16 [n, K, T]; those that an example lacks are empty."""
        if name not in self.texts:
            raise UsageError(format_unknown_name("text modality", name, sorted(self.texts)))
        return self.read_packed(name, rows).reshape(-1, self.texts[name].captions, self.texts[name].length)

    @check_arguments
    def read_sources(self, rows: Rows = slice(None)) -> NDArray[np.int64] | None:
        """Return numbers [n] of the sources of ``rows``, equal for rows made from one picture; None if unknown.

        Such examples are alike, and are no independent ones.
        """
        names = [name for name in _SOURCES if name in self.factors and self.factors[name].dtype.kind in "iu"]
        if not names:
            return None
        table = np.column_stack([self.read_factor(name)[self._check_rows(rows, self.size)] for name in names])
        return np.unique(table, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)

    @check_arguments
    def read_factor(self, name: str) -> np.ndarray:
        """Read the values of a generative factor for all examples: [N], or [N, *shape] if a value is an array."""
        if name not in self.factors:
            raise UsageError(format_unknown_name("factor", name, sorted(self.factors)))
        return self._factor_arrays[name].read()

    def _open_scheme(self, scheme: str) -> Any:
        if scheme not in self.schemes:
            raise UsageError(format_unknown_name("split scheme", scheme, self.schemes))
        return open_group(self._splits, scheme, self.path)

    @check_arguments
    def scheme_meaning(self, scheme: str) -> str:
        """Return the text that explains a split scheme, as the dataset recipe wrote it."""
        return read_text(self._open_scheme(scheme), "meaning", self.path)

    @check_arguments
    def split(self, scheme: str, part: str, real: bool = False) -> np.ndarray:
        """Return the increasing row numbers of a part of a split scheme; ``real`` leaves out those that fill gaps."""
        if part not in PARTS:
            raise UsageError(format_unknown_name("part of a split", part, PARTS))
        rows = open_array(self._open_scheme(scheme), part, self.path, dtype="int64", shape=(None,)).read()
        if len(rows) and (rows[0] < 0 or rows[-1] >= self.size or (np.diff(rows) <= 0).any()):
            raise ArtifactError(
                f"{self.path}: /splits/{scheme}/{part} holds no increasing row numbers; make the file again"
            )
        return rows[self.read_factor(FILLED)[rows] < 0] if real and FILLED in self.factors else rows

    @check_arguments
    def splits_edges(self, scheme: str) -> bool:
        """Return True if each part of a split scheme has all rows, because the parts divide a graph's edges instead."""
        return all(len(self.split(scheme, part)) == self.size for part in PARTS)

    def verify(self) -> None:
        """Read the whole file and compare it with its content id.

        Raises:
            ArtifactError: Something in the file is damaged or was changed.
        """
        content = self.header.content_hash()
        for where, data in self._arrays.items():
            data.hash_into(where, content)
        for name, folder in self._groups.items():
            hash_texts(folder, self.path, array_path(name), content)
        for name, data in self._factor_arrays.items():
            data.hash_into(f"factors/{name}", content)
        for scheme in self.schemes:
            for part in PARTS:
                content.add_array(f"splits/{scheme}/{part}", self.split(scheme, part))
        if content.hexdigest() != self.header.content_id:
            raise ArtifactError(f"{self.path} is damaged: its data or facts do not match its content id; make it again")
