"""Writing a dataset file, rows in order, in bounded memory."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from mmgen.artifacts.content_id import ContentHash
from mmgen.artifacts.dataset import PARTS
from mmgen.artifacts.elements import NAME, array_path
from mmgen.artifacts.files import atomic_path
from mmgen.artifacts.hdf5 import (
    CHUNK_BYTES,
    ArrayWriter,
    hash_texts,
    write_array,
    write_header,
    write_text,
)
from mmgen.artifacts.header import Header, Parent, make_header
from mmgen.artifacts.sink import create_hdf5
from mmgen.core.errors import DataError
from mmgen.modalities import ROWS

if TYPE_CHECKING:
    from mmgen.modalities import Description


class DatasetWriter:
    """Writer of a dataset file; the file appears under its name once the ``with`` block has ended without an error.

    First say what there is (``add``, or ``add_image``, ``add_attributes`` and ``add_text`` for these kinds;
    ``add_factor``), then ``write`` all rows in order, and ``add_splits`` at any time. Misuse (rows out of order or
    missing, wrong shapes or codes) is a bug: ``ValueError``.

    Args:
        path: File to make.
        size: Number of examples N; see :meth:`end_early` where it may turn out smaller.
        settings: Effective settings of the recipe. With the seed they must determine the data; leave out what does not
            (workers, paths).
        seed: Seed of the recipe.
        command: The command that makes the file again.
        parents: Artifacts that it is made from.
        facts: What is measured on the way; ``writer.facts`` may be changed until the block ends.
        chunk_bytes: Size of a chunk before compression; does not change the content id.
        compression: gzip level 1 to 9; does not change the content id.

    Raises:
        ArtifactError: The file system refuses.

    Example:
        >>> import tempfile
        >>> from mmgen.artifacts import Dataset
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = Path(folder.name) / "dots.h5"
        >>> with DatasetWriter(path, size=2, settings={"recipe": "dots"}, seed=0) as writer:
        ...     writer.add_image("image", shape=(1, 2, 2), layout="bytes")
        ...     writer.add_attributes("attributes", {"colour": ["black", "white"]})
        ...     images = np.array([0, 255], np.uint8)[:, None, None, None].repeat(2, 2).repeat(2, 3)
        ...     writer.write(0, {"image": images, "attributes": np.array([[0], [1]], np.uint8)})
        ...     writer.add_splits("iid", train=[0], val=[], test=[1])
        >>> with Dataset.open(path) as dataset:
        ...     dataset.read_image("image", dataset.split("iid", "test")).tolist()
        [[[[255, 255], [255, 255]]]]
        >>> folder.cleanup()
    """

    def __init__(
        self,
        path: Path,
        size: int,
        settings: Mapping[str, Any],
        seed: int,
        command: str = "",
        *,
        parents: Iterable[Parent] = (),
        facts: Mapping[str, Any] | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        compression: int = 1,
    ) -> None:
        _require(size >= 1, f"a dataset has at least one example, got size {size}")
        self.path, self.size, self.settings, self.seed, self.command = Path(path), size, dict(settings), seed, command
        self.parents, self.facts = tuple(parents), dict(facts or {})
        self.header: Header | None = None
        self._options: dict[str, int] = {"chunk_bytes": chunk_bytes, "compression": compression}
        self._modalities: dict[str, Description] = {}
        self._groups: dict[str, Any] = {}  # of the modalities that are several arrays
        self._columns: dict[str, ArrayWriter] = {}  # with a row of every example, by path in the file
        self._whole: dict[str, ArrayWriter] = {}  # of another number of rows
        self._splits: dict[str, ArrayWriter] = {}
        self._schemes: list[str] = []
        self._next = 0
        self._stack = ExitStack()

    def __enter__(self) -> "DatasetWriter":
        with ExitStack() as stack:
            temporary = stack.enter_context(atomic_path(self.path))
            self._file, self._sink = stack.enter_context(create_hdf5(temporary))
            for name in ("modalities", "factors", "splits"):
                self._file.create_group(name)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        # The stack closes the file first and then renames it, or removes it when an error is on its way.
        if error is not None:
            return self._stack.__exit__(kind, error, trace)
        with self._stack:
            self._finish()
        return None

    def _check_new(self, folder: str, name: str) -> None:
        _require(bool(NAME.match(name)), f"'{name}' is no name: letters, digits, '_', '-' and '.', first a letter")
        _require(name not in self._file[folder], f"'{folder}/{name}' is added twice")
        _require(self._next == 0, f"'{folder}/{name}' is added after the first rows")

    def _create_array(
        self, parent: Any, name: str, shape: tuple[int, ...], dtype: Any, texts: Mapping[str, str]
    ) -> ArrayWriter:
        return ArrayWriter(parent, name, shape, dtype, **self._options, texts=texts)

    def add(self, description: "Description") -> None:
        """Add a modality of any kind to the file, with the arrays that its specification lists.

        Args:
            description: What the rows will be.
        """
        name, folder = description.name, self._file["modalities"]
        self._check_new("modalities", name)
        arrays, texts = description.arrays(), {"kind": description.kind, **description.text_attributes()}
        if arrays.keys() != {ROWS}:
            folder = self._groups[name] = folder.create_group(name)
            for text, value in texts.items():
                write_text(folder, text, value)
        for key, stored in arrays.items():
            rows = self.size if stored.rows is None else stored.rows
            written = self._whole if stored.rows is not None else self._columns
            member, beside = (name, texts) if key == ROWS else (key, {})
            written[array_path(name, key)] = self._create_array(
                folder, member, (rows, *stored.shape), stored.dtype, beside
            )
        self._modalities[name] = description

    def add_image(self, name: str, shape: Sequence[int], layout: str = "bytes") -> None:
        """Add an image modality to the file.

        Args:
            name: Modality name.
            shape: (C, H, W).
            layout: "bytes": rows uint8 [n, C, H, W]. "bits": rows uint8 [n, ceil(C * H * W / 8)] as ``np.packbits``
                makes them of the flattened pixels, the unused last bits 0. "probabilities": rows as bytes, each of them
                255 times the probability that its pixel is white.
        """
        from mmgen.modalities.image import ImageDescription

        self.add(ImageDescription.model_validate({"name": name, "shape": tuple(shape), "layout": layout}))

    def add_attributes(self, name: str, values: Mapping[str, Sequence[str]]) -> None:
        """Add a modality of categorical attributes; examples are codes uint8 [n, A], 255 for an unknown value.

        Args:
            name: Modality name.
            values: For every attribute the names of its values, in the order of their codes.
        """
        from mmgen.modalities.attributes import AttributesDescription

        vocabularies = tuple(tuple(names) for names in values.values())
        self.add(AttributesDescription(name=name, names=tuple(values), values=vocabularies))

    def add_text(
        self, name: str, vocabulary: Sequence[str], length: int, slots: Sequence[str] = (), captions: int = 1
    ) -> None:
        """Add a modality of sentences; examples are word codes uint16 [n, T], padded with the size of the vocabulary.

        Args:
            name: Modality name.
            vocabulary: Distinct words, in the order of their codes.
            length: T.
            slots: The attribute that each of the T positions spells; empty for free text.
            captions: K, captions of an example at most; with several, rows are [n, K, T], and missing ones are empty
                and last.
        """
        from mmgen.modalities.text import TextDescription

        described = TextDescription(
            name=name, vocabulary=tuple(vocabulary), length=length, slots=tuple(slots), captions=captions
        )
        self.add(described)

    def add_factor(self, name: str, dtype: Any, unit: str = "", meaning: str = "", shape: tuple[int, ...] = ()) -> None:
        """Add a generative factor: for each example a number, or an array of ``shape``; NaN where it is unknown.

        Args:
            name: Factor name.
            dtype: Integer or floating type.
            unit: Its unit ("degree", "pixel").
            meaning: What it is, in words.
            shape: Axes of one example's value, such as (H, W) of a mask.
        """
        _require(
            np.dtype(dtype).kind in "iuf", f"factor '{name}' has type {np.dtype(dtype)}, expected integers or floats"
        )
        self._check_new("factors", name)
        texts = {"unit": unit, "meaning": meaning}
        column = self._create_array(self._file["factors"], name, (self.size, *shape), dtype, texts)
        self._columns[f"factors/{name}"] = column

    def write(
        self,
        start: int,
        columns: Mapping[str, np.ndarray] | None = None,
        factors: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """Write examples ``start`` to ``start + n`` of every modality and factor. ``start`` follows the last call's
        end.

        Args:
            start: First row.
            columns: Rows as stored, by modality; "name/array" of a kind that stores several arrays.
            factors: Numbers by factor.
        """
        _require(start == self._next, f"rows must come in order: got {start}, expected {self._next}")
        rows = {array_path(*name.split("/", 1)): np.asarray(values) for name, values in (columns or {}).items()}
        rows |= {f"factors/{name}": np.asarray(values) for name, values in (factors or {}).items()}
        _require(rows.keys() == self._columns.keys(), f"got rows of {sorted(rows)}, expected {sorted(self._columns)}")
        lengths = {len(values) for values in rows.values()}
        _require(len(lengths) == 1, f"all rows of one call must be equally many, got {lengths}")
        n = lengths.pop()
        _require(start + n <= self.size, f"{start + n} rows are more than the {self.size} promised")
        for where, values in rows.items():
            self._check_rows(where, values, self._columns[where])
        for where, values in rows.items():
            self._columns[where].append(values.astype(self._columns[where].dtype, copy=False))
        self._sink.check()  # hours of work should not go on after the disk is full
        self._next += n

    def end_early(self) -> None:
        """Let the dataset have the rows written so far and no more, where ``size`` was the largest possible number."""
        _require(self._next >= 1, "a dataset has at least one example")
        _require(not self._schemes, "the number of examples is changed after splits of them")
        self.size = self._next
        for column in self._columns.values():
            column.shrink(self.size)

    def write_whole(self, modality: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Write the arrays of a modality, such as a graph, that has no separate value for each example.

        Args:
            modality: Its name.
            arrays: Its arrays by name.
        """
        for name, values in arrays.items():
            where = array_path(modality, name)
            _require(where in self._whole, f"{where} is no array that is written whole, expected {sorted(self._whole)}")
            column = self._whole[where]
            _require(not column.written, f"{where} is written twice")
            _require(len(values) == column.shape[0], f"{where}: {len(values)} rows, expected {column.shape[0]}")
            self._check_rows(where, values, column)
            column.append(values)
            column.flush()
        self._sink.check()

    def _check_rows(self, where: str, values: np.ndarray, column: ArrayWriter) -> None:
        _require(
            values.shape[1:] == column.shape[1:],
            f"{where}: rows of shape {values.shape[1:]}, expected {column.shape[1:]}",
        )
        room, name, *array = where.split("/")
        if room == "factors":
            _require(
                np.can_cast(values.dtype, column.dtype, "same_kind"), f"{where}: {values.dtype} is no {column.dtype}"
            )
            return
        expected = column.dtype.newbyteorder("=")
        _require(values.dtype == expected, f"{where}: rows are {values.dtype}, expected {expected}; use astype")
        fault = self._modalities[name].find_fault(values, *array)
        _require(not fault, f"{where}: {fault}")

    def add_splits(self, scheme: str, *, train: Any, val: Any, test: Any, meaning: str = "") -> None:
        """Add a split scheme: disjoint row numbers for training, validation and test. "iid", else the first, is the
        default.

        Args:
            scheme: Name of the scheme.
            train: Row numbers, in any order; stored sorted.
            val: Row numbers.
            test: Row numbers.
            meaning: What the scheme is, in words.
        """
        parts = {
            part: np.sort(np.asarray(rows, np.int64)) for part, rows in zip(PARTS, (train, val, test), strict=True)
        }
        together = np.sort(np.concatenate(list(parts.values())))
        _require(
            not len(together) or (together[0] >= 0 and together[-1] < self.size),
            f"split '{scheme}' has rows out of range",
        )
        _require(not (np.diff(together) == 0).any(), f"split '{scheme}' has a row twice")
        self._add_scheme(scheme, parts, meaning)

    def add_split_of_edges(self, scheme: str, meaning: str = "") -> None:
        """Add a split scheme for a graph: each part has all rows, and the parts divide the edges.

        Args:
            scheme: Name of the scheme.
            meaning: What the scheme is, in words.
        """
        self._add_scheme(scheme, dict.fromkeys(PARTS, np.arange(self.size)), meaning)

    def _add_scheme(self, scheme: str, parts: Mapping[str, np.ndarray], meaning: str) -> None:
        _require(
            bool(NAME.match(scheme)) and scheme not in self._schemes,
            f"split scheme '{scheme}' is no name or added twice",
        )
        self._schemes.append(scheme)
        folder = self._file["splits"].create_group(scheme)
        write_text(folder, "meaning", meaning)
        for part, rows in parts.items():
            self._splits[f"splits/{scheme}/{part}"] = write_array(folder, part, rows)

    def _finish(self) -> None:
        _require(self._next == self.size or not self._columns, f"{self._next} rows written, expected {self.size}")
        _require(bool(self._modalities), "a dataset has at least one modality")
        short = [where for where, column in self._whole.items() if column.written != column.shape[0]]
        _require(not short, f"{short} are not written")
        content = ContentHash("dataset", self.settings, self.seed, self.parents, self.facts)
        for where, column in (self._columns | self._whole | self._splits).items():
            column.flush()
            column.hash_into(where, content)
        for name, folder in self._groups.items():
            hash_texts(folder, self.path, array_path(name), content)
        if self._schemes:
            write_text(self._file["splits"], "default", "iid" if "iid" in self._schemes else self._schemes[0])
        self.header = make_header(
            "dataset", content, settings=self.settings, seed=self.seed, parents=self.parents, facts=self.facts,
            command=self.command,
        )  # fmt: skip
        write_header(self._file, self.header)


class RowsError(DataError, ValueError):
    """Error for rows, factors or parts that a recipe writes otherwise than it has declared them."""


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise RowsError(f"a recipe writes what it has not declared: {message}")
