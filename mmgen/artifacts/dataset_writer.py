"""Writing a dataset file, rows in order, in bounded memory."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from mmgen.artifacts.dataset import PARTS
from mmgen.artifacts.files import atomic_path
from mmgen.artifacts.hdf5 import CHUNK_BYTES, ArrayWriter, create, write_array, write_header, write_text
from mmgen.artifacts.header import ContentHash, Header, Parent, make_header
from mmgen.artifacts.modality_info import LAYOUTS, MAX_WORDS, NAME, AttributesInfo, ImageInfo, TextInfo, names_json
from mmgen.notation import UNKNOWN

__all__ = ["DatasetWriter"]


class DatasetWriter:
    """Makes a dataset file; it appears under its name when the block ends without an error, complete.

    First say what there is (``add_image``, ``add_attributes``, ``add_text``, ``add_factor``), then ``write`` all rows
    in order, and ``add_splits`` at any time. Misuse (rows out of order or missing, wrong shapes or codes) is a bug:
    ``ValueError``.

    Args:
        path: File to make.
        size: Number of examples N.
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
        ...     writer.write(0, images={"image": images}, attributes={"attributes": np.array([[0], [1]], np.uint8)})
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
        _need(size >= 1, f"a dataset has at least one example, got size {size}")
        self.path, self.size, self.settings, self.seed, self.command = Path(path), size, dict(settings), seed, command
        self.parents, self.facts = tuple(parents), dict(facts or {})
        self.header: Header | None = None
        self._options: dict[str, int] = {"chunk_bytes": chunk_bytes, "compression": compression}
        self._images: dict[str, ImageInfo] = {}
        self._attributes: dict[str, AttributesInfo] = {}
        self._texts: dict[str, TextInfo] = {}
        self._columns: dict[str, ArrayWriter] = {}  # by path in the file
        self._splits: dict[str, ArrayWriter] = {}
        self._schemes: list[str] = []
        self._next = 0
        self._stack = ExitStack()

    def __enter__(self) -> "DatasetWriter":
        with ExitStack() as stack:
            temporary = stack.enter_context(atomic_path(self.path))
            self._file, self._sink = stack.enter_context(create(temporary))
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

    def _column(self, where: str, shape: tuple[int, ...], dtype: Any, texts: Mapping[str, str]) -> None:
        folder, name = where.split("/", 1)
        _need(bool(NAME.match(name)), f"'{name}' is no name: letters, digits, '_', '-' and '.', first a letter")
        _need(where not in self._columns, f"'{where}' is added twice")
        _need(self._next == 0, f"'{where}' is added after the first rows")
        rows = (self.size, *shape)
        self._columns[where] = ArrayWriter(self._file[folder], name, rows, dtype, **self._options, texts=texts)

    def add_image(self, name: str, shape: Sequence[int], layout: str = "bytes") -> None:
        """An image modality.

        Args:
            name: Modality name.
            shape: (C, H, W).
            layout: "bytes": rows uint8 [n, C, H, W]. "bits": rows uint8 [n, ceil(C * H * W / 8)] as ``np.packbits``
                makes them of the flattened pixels, the unused last bits 0. "probabilities": rows as bytes, each of them
                255 times the probability that its pixel is white.
        """
        _need(layout in LAYOUTS, f"layout '{layout}' is none of {', '.join(LAYOUTS)}")
        channels, height, width = (int(n) for n in shape)
        info = ImageInfo(name, (channels, height, width), layout)
        texts = {"kind": "image", "layout": layout}
        texts |= {"shape": json.dumps(info.shape), "range": json.dumps([0, info.scale])}
        self._column(f"modalities/{name}", info.stored_shape, np.uint8, texts)
        self._images[name] = info

    def add_attributes(self, name: str, values: Mapping[str, Sequence[str]]) -> None:
        """A modality of categorical attributes; rows are uint8 codes [n, A], 255 unknown.

        Args:
            name: Modality name.
            values: For every attribute the names of its values, in the order of their codes.
        """
        info = AttributesInfo(name, tuple(values), tuple(tuple(names) for names in values.values()))
        _need(bool(info.names), "a modality of attributes has at least one attribute")
        for attribute, vocabulary in zip(info.names, info.values, strict=True):
            good = 1 <= len(vocabulary) <= UNKNOWN and len(set(vocabulary)) == len(vocabulary)
            _need(good, f"attribute '{attribute}' needs 1 to {UNKNOWN} distinct values")
        names, vocabularies = names_json(info)
        texts = {"kind": "attributes", "names": names, "values": vocabularies}
        self._column(f"modalities/{name}", (len(info.names),), np.uint8, texts)
        self._attributes[name] = info

    def add_text(self, name: str, vocabulary: Sequence[str], length: int, slots: Sequence[str] = ()) -> None:
        """A modality of sentences; rows are uint16 codes [n, T], the size of the vocabulary being padding.

        Args:
            name: Modality name.
            vocabulary: Distinct words, in the order of their codes.
            length: T.
            slots: The attribute that each of the T positions spells; empty for free text.
        """
        info = TextInfo(name, tuple(vocabulary), length, tuple(slots))
        good = 1 <= len(info.vocabulary) == len(set(info.vocabulary)) <= MAX_WORDS
        _need(good, f"text '{name}' needs 1 to {MAX_WORDS} distinct words")
        _need(length >= 1, f"text '{name}' has {length} tokens, expected at least 1")
        good = not info.slots or len(set(info.slots)) == len(info.slots) == length
        _need(good, f"text '{name}' needs {length} distinct slots or none")
        texts = {"kind": "text", "vocabulary": json.dumps(info.vocabulary), "slots": json.dumps(info.slots)}
        self._column(f"modalities/{name}", (length,), np.uint16, texts)
        self._texts[name] = info

    def add_factor(self, name: str, dtype: Any, unit: str = "", meaning: str = "", shape: tuple[int, ...] = ()) -> None:
        """A generative factor: one number an example, or an array of one shape; NaN where there is none.

        Args:
            name: Factor name.
            dtype: Integer or floating type.
            unit: Its unit ("degree", "pixel").
            meaning: What it is, in words.
            shape: Axes of one example's value, such as (H, W) of a mask.
        """
        _need(np.dtype(dtype).kind in "iuf", f"factor '{name}' has type {np.dtype(dtype)}, expected integers or floats")
        self._column(f"factors/{name}", tuple(shape), dtype, {"unit": unit, "meaning": meaning})

    def write(
        self,
        start: int,
        images: Mapping[str, np.ndarray] | None = None,
        attributes: Mapping[str, np.ndarray] | None = None,
        factors: Mapping[str, np.ndarray] | None = None,
        texts: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """Write rows ``start`` to ``start + n`` of everything that was added; ``start`` is where the last call ended.

        Args:
            start: First row.
            images: Rows by modality, as :meth:`add_image` says.
            attributes: Codes by modality.
            factors: Numbers by factor.
            texts: Words by modality.
        """
        _need(start == self._next, f"rows must come in order: got {start}, expected {self._next}")
        rows = {f"modalities/{name}": np.asarray(values) for name, values in (images or {}).items()}
        rows |= {f"modalities/{name}": np.asarray(values) for name, values in (attributes or {}).items()}
        rows |= {f"modalities/{name}": np.asarray(values) for name, values in (texts or {}).items()}
        rows |= {f"factors/{name}": np.asarray(values) for name, values in (factors or {}).items()}
        _need(rows.keys() == self._columns.keys(), f"got rows of {sorted(rows)}, expected {sorted(self._columns)}")
        lengths = {len(values) for values in rows.values()}
        _need(len(lengths) == 1, f"all rows of one call must be equally many, got {lengths}")
        n = lengths.pop()
        _need(start + n <= self.size, f"{start + n} rows are more than the {self.size} promised")
        for where, values in rows.items():
            self._check_rows(where, values)
        for where, values in rows.items():
            self._columns[where].append(values.astype(self._columns[where].dtype, copy=False))
        self._sink.check()  # hours of work should not go on after the disk is full
        self._next += n

    def _check_rows(self, where: str, values: np.ndarray) -> None:
        column, name = self._columns[where], where.split("/")[1]
        _need(
            values.shape[1:] == column.shape[1:],
            f"{where}: rows of shape {values.shape[1:]}, expected {column.shape[1:]}",
        )
        if where.startswith("factors/"):
            _need(np.can_cast(values.dtype, column.dtype, "same_kind"), f"{where}: {values.dtype} is no {column.dtype}")
            return
        if name in self._texts:
            _need(values.dtype == np.uint16, f"{where}: rows are {values.dtype}, expected uint16")
            _need(self._texts[name].valid(values), f"{where}: a code is no word, or padding stands before a word")
            return
        _need(values.dtype == np.uint8, f"{where}: rows are {values.dtype}, expected uint8")
        image = self._images.get(name)
        if image is None:
            _need(self._attributes[name].valid(values), f"{where}: a code is no value of its attribute, nor {UNKNOWN}")
        elif image.layout == "bits" and image.pixels % 8:
            unused = (1 << (8 - image.pixels % 8)) - 1
            _need(not (values[:, -1] & unused).any(), f"{where}: the unused last bits are not 0")

    def add_splits(self, scheme: str, *, train: Any, val: Any, test: Any, meaning: str = "") -> None:
        """A split scheme: disjoint row numbers of its three parts. "iid" is the default scheme, else the first added.

        Args:
            scheme: Name of the scheme.
            train: Row numbers, in any order; stored sorted.
            val: Row numbers.
            test: Row numbers.
            meaning: What the scheme is, in words.
        """
        _need(
            bool(NAME.match(scheme)) and scheme not in self._schemes,
            f"split scheme '{scheme}' is no name or added twice",
        )
        parts = {
            part: np.sort(np.asarray(rows, np.int64)) for part, rows in zip(PARTS, (train, val, test), strict=True)
        }
        together = np.sort(np.concatenate(list(parts.values())))
        _need(
            not len(together) or (together[0] >= 0 and together[-1] < self.size),
            f"split '{scheme}' has rows out of range",
        )
        _need(not (np.diff(together) == 0).any(), f"split '{scheme}' has a row twice")
        self._schemes.append(scheme)
        folder = self._file["splits"].create_group(scheme)
        write_text(folder, "meaning", meaning)
        for part, rows in parts.items():
            self._splits[f"splits/{scheme}/{part}"] = write_array(folder, part, rows)

    def _finish(self) -> None:
        _need(self._next == self.size, f"{self._next} rows written, expected {self.size}")
        _need(bool(self._images or self._attributes or self._texts), "a dataset has at least one modality")
        content = ContentHash("dataset", self.settings, self.seed, self.parents, self.facts)
        for where, column in (self._columns | self._splits).items():
            column.flush()
            column.cover(where, content)
        if self._schemes:
            write_text(self._file["splits"], "default", "iid" if "iid" in self._schemes else self._schemes[0])
        self.header = make_header(
            "dataset", content, settings=self.settings, seed=self.seed, parents=self.parents, facts=self.facts,
            command=self.command,
        )  # fmt: skip
        write_header(self._file, self.header)


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)
