"""Pictures read by the library datasets: Hugging Face hub, or local Parquet, Arrow, WebDataset, imagefolder.

The library finds the files and says what their columns are; pictures are decoded by :mod:`mmgen.core.pictures`, as all
others. Formats that would be unpickled or run are not asked for.
"""

import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from mmgen.contrib.hub.data_recipes._hub_files import (
    ENDINGS,
    check_all_pictures_read,
    check_files_are_safe,
    check_saved_dataset,
    file_elsewhere_error,
    is_saved_dataset,
    is_within,
    safe_yaml,
)
from mmgen.core.errors import DataError, MmgenError, UsageError, advice_of, reason_of
from mmgen.core.extras import how_to_install
from mmgen.core.foreign import CannotReadError, read_file
from mmgen.core.parsing import MalformedError, printable
from mmgen.core.pictures import MOST_BYTES
from mmgen.data_recipes._own._attributes import check_columns
from mmgen.data_recipes._own._files import list_examples, shell_quoted
from mmgen.data_recipes._own._source import Source, modality_names
from mmgen.data_recipes._own._tables import to_cell, to_texts
from mmgen.data_recipes._streams import part_of

_FORMATS = ("imagefolder", "parquet", "arrow", "webdataset", "json", "csv")
"""The library's readers that read tables and pictures, and nothing that could be code."""

_CODE = ("pth",)  # what WebDataset would hand to torch.load
_OF_THE_FORMAT = ("__key__", "__url__")  # WebDataset's own columns
_AT_ONCE = 1000
_LOOKED_AT = 100  # cells of a column, until one holds something
_ELSEWHERE = "it is a file elsewhere on this machine, which a dataset may not name"

_OF_PICTURES = "name a dataset of images, or the file in this one that holds them (.parquet, .arrow, .tar)"

_Read = TypeVar("_Read")


class HubSource(Source):
    """Examples that the library datasets reads, from the hub or from the disk.

    Args:
        dataset: Name on the hub, or a folder or file on this disk, which comes first.
        subset: Name of a configuration; None for the only one.
        revision: Branch, tag or commit on the hub; None for the newest.
        image_columns: Columns of pictures; by default all of them.
        ignore: Columns that are not read.
    """

    def __init__(
        self,
        dataset: str,
        subset: str | None,
        revision: str | None,
        image_columns: tuple[str, ...],
        ignore: tuple[str, ...],
    ) -> None:
        super().__init__(dataset)
        library = _import_library()
        self._roots = [os.path.realpath(library.config.HF_CACHE_HOME)]
        self._roots += [os.path.realpath(library.config.HF_DATASETS_CACHE)]
        self._roots += [os.path.realpath(dataset)] if os.path.exists(dataset) else []
        with _explain_errors(dataset):
            splits = _load_splits(library, dataset, subset, revision, self._roots)
            splits = {name: _as_pictures(library, data, image_columns) for name, data in splits.items()}
        splits = self._select_splits(splits)
        first = next(iter(splits.values()))
        strange = next((name for name in first.features if not name.isprintable()), None)
        if strange is not None:
            raise DataError(f"{dataset} has the column {printable(strange, 60)!r} with a control character; rename it")
        kinds = self._picture_columns(library, first, image_columns, ignore)
        self._check_types(library, first, ignore)
        self._columns: list[dict[str, Any]] = []
        for part, data in splits.items():
            if data.features.keys() != first.features.keys():
                raise DataError(f"the splits of {dataset} have different columns; choose one with --subset")
            with _explain_errors(dataset):
                self._add_split(library, part, data, kinds, ignore)
        if len(splits) == 1:
            self.parts = None

    def read_picture(self, place: tuple[int, str, int]) -> bytes:
        split, column, row = place
        try:
            cell = self._columns[split][column][row][column]
        except Exception as error:  # what the library raises for damaged files is written down nowhere
            raise CannotReadError.from_error(error) from None
        if not cell or not (cell["bytes"] or cell["path"]):
            raise CannotReadError("there is no picture")
        data: bytes = cell["bytes"] or self._read_path(cell["path"])
        if len(data) > MOST_BYTES:
            raise CannotReadError(f"it has {len(data):,} bytes, expected at most {MOST_BYTES:,}")
        return data

    def _read_path(self, path: str) -> bytes:
        """Read a file that a dataset names: one of its own or of the library's cache, and no other."""
        if not is_within(path, self._roots):
            raise CannotReadError(_ELSEWHERE)
        return read_file(Path(os.path.realpath(path)), MOST_BYTES)

    def _select_splits(self, splits: dict[str, Any]) -> dict[str, Any]:
        """Return the splits of the dataset by part: train, val, test; a single split is train, whatever its name."""
        self._part_by_split = {name: part_of(name) for name in splits}
        if len(splits) == 1:
            return dict(splits)
        known = {name: data for name, data in splits.items() if self._part_by_split[name]}
        others = [name for name in splits if name not in known]
        if "train" not in self._part_by_split.values():
            raise DataError(
                f"{self.where} has the splits {list_examples(list(splits))}, none of which is called train; choose "
                "another dataset or --subset, or name one split train in a copy"
            )
        if others:
            self.left_out.append(f"splits that are no train, validation or test: {list_examples(others)}")
        return known

    def _picture_columns(
        self, library: Any, data: Any, selected: tuple[str, ...], ignore: tuple[str, ...]
    ) -> dict[str, str]:
        """Return the image modality for each column of pictures."""
        check_columns("--image-column", selected, dict(data.features))
        columns = [
            name for name, kind in data.features.items() if isinstance(kind, library.Image) and name not in ignore
        ]
        wrong = [name for name in selected if name not in columns]
        if wrong:
            expected = f"expected {', '.join(columns)}" if columns else "name a dataset of images"
            raise UsageError(f"--image-column names '{wrong[0]}', which holds no pictures; {expected}")
        if not columns:
            raise DataError(
                f"{self.where} has no column of pictures, only {list_examples(list(data.features))}; {_OF_PICTURES}"
            )
        unused = [name for name in columns if selected and name not in selected]
        if unused:
            self.left_out.append(f"columns of pictures that --image-column does not name: {list_examples(unused)}")
        return modality_names(selected or columns)

    def _check_types(self, library: Any, data: Any, ignore: tuple[str, ...]) -> None:
        """Refuse columns that the library would have to decode: sounds, films, lists of pictures."""
        for name, kind in data.features.items():
            if name in ignore or isinstance(kind, library.Image):
                continue
            for part in _nested_types(kind):
                if hasattr(part, "decode") and str(part.pa_type).startswith("struct"):  # a file, as bytes and path
                    several = "" if part is kind else "several "
                    raise DataError(
                        f"the column '{printable(name, 60)}' of {self.where} holds {several}{type(part).__name__} "
                        "where one picture, text or number is expected; leave it out with --ignore "
                        f"{shell_quoted(name)}"
                    )

    def _add_split(
        self, library: Any, split: str, data: Any, modalities: dict[str, str], ignore: tuple[str, ...]
    ) -> None:
        number, n = len(self._columns), len(data)
        pictures = [name for name, kind in data.features.items() if isinstance(kind, library.Image)]
        self._columns.append(
            {
                name: data.select_columns([name]).cast_column(name, library.Image(decode=False)).with_format(None)
                for name in modalities
            }
        )
        self.names += [f"{split}/{row:08d}" for row in range(n)]
        for name, modality in modalities.items():
            self._check_holds_pictures(name, self._columns[-1][name])
            self.pictures.setdefault(modality, []).extend((number, name, row) for row in range(n))
        self.parts = [*(self.parts or []), *[self._part_by_split[split]] * n]
        plain = [name for name in data.features if name not in (*pictures, *_OF_THE_FORMAT, *ignore)]
        for name in set(ignore) & data.features.keys():
            self.columns.setdefault(name, []).extend([None] * n)  # so that it is known
        for name in plain:
            for column, cells in self._column_values(library, data, name):
                self._append_cells(column, cells)

    def _check_holds_pictures(self, name: str, cells: Any) -> None:
        """Refuse a column that holds paths instead of pictures, as Dataset.to_parquet may write it."""
        for row in range(min(len(cells), _LOOKED_AT)):
            cell = cells[row][name]
            if cell and (cell["bytes"] or not cell["path"] or is_within(cell["path"], self._roots)):
                return
            if cell:
                raise DataError(
                    f"the column '{printable(name, 60)}' of {self.where} holds paths instead of pictures, such as "
                    f"'{printable(cell['path'], 100)}': {_ELSEWHERE}; use make-data folder for the folder that they "
                    "are in, or save the dataset by save_to_disk, which keeps pictures"
                )

    def _column_values(self, library: Any, data: Any, name: str) -> Iterator[tuple[str, list[Any]]]:
        """Yield the values of a column, or of each column of a table inside."""
        kind = data.features[name]
        values = [value for batch in data.select_columns([name]).iter(_AT_ONCE) for value in batch[name]]
        if isinstance(kind, library.ClassLabel):
            yield name, [None if code is None or code < 0 else kind.names[code] for code in values]
        elif isinstance(kind, dict):  # WebDataset's x.json
            for inner in kind:
                column = inner if name == "json" else f"{name}.{inner}"
                yield column, [None if one is None else one[inner] for one in values]
        else:
            yield "text" if name == "txt" else name, values

    def _append_cells(self, column: str, values: list[Any]) -> None:
        """Append values to a column as cells; lists of texts also go into ``several``."""
        cells = self.columns.setdefault(column, [])
        for value in values:
            if isinstance(value, list) and (texts := self._convert_cell(column, to_texts, value)) is not None:
                if len(texts) > 1:
                    self.several.setdefault(column, {})[len(cells)] = texts
                cells.append(next(iter(texts), None))
            else:
                cells.append(self._convert_cell(column, to_cell, value))

    def _convert_cell(self, column: str, convert: Callable[[Any], _Read], value: Any) -> _Read:
        try:
            return convert(value)
        except MalformedError as error:
            raise DataError(
                f"the column '{printable(column, 60)}' of {self.where} holds {error}; save it as one (in a WebDataset "
                f"as .txt), or leave it out with --ignore {shell_quoted(column)}"
            ) from None


def _as_pictures(library: Any, data: Any, selected: Sequence[str]) -> Any:
    """Make pictures of columns of bytes, or of bytes and path, as tables without the hub's schema hold them.

    These are the columns that are named, or all of them where no column is known to hold pictures.
    """
    kinds = dict(data.features)
    unnamed = [] if any(isinstance(kind, library.Image) for kind in kinds.values()) else list(kinds)
    for name in selected or unnamed:
        kind = kinds.get(name)
        content = kind["bytes"] if isinstance(kind, dict) and kind.keys() == {"bytes", "path"} else kind
        if isinstance(content, library.Value) and content.dtype in ("binary", "large_binary"):
            data = data.cast_column(name, library.Image(decode=False))
    return data


def _nested_types(kind: Any) -> Iterator[Any]:
    """Yield a column's type and, for lists and tables, the types inside."""
    yield kind
    if isinstance(kind, dict):
        within = list(kind.values())
    else:
        within = kind if isinstance(kind, list) else [getattr(kind, "feature", None)]
    for one in within:
        if one is not None:
            yield from _nested_types(one)


def _import_library() -> Any:
    """Import the library datasets so that it contacts only the hub, without telemetry, logs and progress bars."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_UPDATE_DOWNLOAD_COUNTS", "0")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import datasets
    except ImportError:
        raise UsageError(
            f"hub needs the library datasets, which is not installed: {how_to_install('hub')}; or use make-data folder "
            "for a folder of pictures"
        ) from None
    from datasets.packaged_modules.webdataset.webdataset import WebDataset

    datasets.logging.set_verbosity(datasets.logging.CRITICAL)
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)
    datasets.disable_progress_bars()
    WebDataset.DECODERS = {name: decoder for name, decoder in WebDataset.DECODERS.items() if name not in _CODE}
    return datasets


@contextmanager
def _explain_errors(dataset: str) -> Iterator[None]:
    """Convert errors of the library datasets in this block to errors of one sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except MmgenError:
        raise
    except Exception as error:  # of a dozen kinds, from five libraries
        cause: BaseException = error
        while cause.__cause__ is not None:  # the library says "an error occurred" of what another one says better
            cause = cause.__cause__
        line = next(iter(str(cause).splitlines()), "") or type(cause).__name__
        place = str(getattr(cause, "filename", None) or "")
        if isinstance(cause, OSError) and place and not is_within(place, [os.path.realpath(dataset)]):
            raise DataError(
                f"cannot use {printable(place, 200)}, where the library keeps what it has read: {reason_of(cause)}; "
                f"{advice_of(cause) or 'choose another folder'}, and name it by the variable HF_HOME"
            ) from None
        if os.path.exists(dataset):
            raise DataError(
                f"cannot read {dataset}: {printable(line, 200)}; check what it holds, or take make-data folder for a "
                "folder or zip of pictures"
            ) from None
        raise DataError(
            f"there is no folder {printable(dataset, 100)}, and the hub does not give a dataset of that name "
            f"({printable(line, 200)}); check the name and the network, or get a copy and name its folder"
        ) from None


def _load_splits(
    library: Any, dataset: str, subset: str | None, revision: str | None, roots: Sequence[str]
) -> dict[str, Any]:
    """Load the splits of a dataset by name; files outside ``roots`` and the hub's dataset are refused."""
    path = Path(dataset)
    if os.path.exists(path) and revision is not None:
        raise UsageError(f"--revision is for datasets of the hub, and {dataset} is on this disk; leave it out")
    check_files_are_safe(dataset, roots)
    if is_saved_dataset(path):
        check_saved_dataset(path, roots)
        saved = library.load_from_disk(str(path))
        return dict(saved) if isinstance(saved, dict) else {"all": saved}
    if path.is_file():
        reader = ENDINGS.get(path.suffix.lower())
        if reader is None:
            raise DataError(
                f"{dataset} is no folder, and does not end in {', '.join(ENDINGS)}; name one that does, and unpack "
                "what is packed otherwise (make-data folder reads zips)"
            )
        builder = library.load_dataset_builder(reader, data_files=str(path))
    else:
        where = str(path.resolve()) if path.is_dir() else dataset
        with safe_yaml(dataset), _restrict_to_dataset(dataset, roots):
            builder = library.load_dataset_builder(where, subset, revision=revision)
        read = [file for files in (builder.config.data_files or {}).values() for file in files]
        for file in read:
            if not _belongs_to(dataset, file, roots):
                raise file_elsewhere_error(dataset, file)
        if path.is_dir() and type(builder).__module__.endswith("imagefolder"):
            check_all_pictures_read(path, read)
    reader = type(builder).__module__.split(".")[-1]
    if reader not in _FORMATS:
        raise DataError(f"{dataset} is read as {reader}, expected {', '.join(_FORMATS)}; {_OF_PICTURES}")
    builder.download_and_prepare()
    return dict(builder.as_dataset())


@contextmanager
def _restrict_to_dataset(dataset: str, roots: Sequence[str]) -> Iterator[None]:
    """Restrict the library to files of the dataset, whatever its README names."""
    # The library asks for addresses as soon as it looks for the files that match a pattern, before anybody sees a list.
    from datasets import data_files

    resolve = data_files.resolve_pattern

    def resolve_checked(pattern: str, base_path: str, *args: Any, **options: Any) -> list[str]:
        plain = "://" not in pattern and not os.path.isabs(pattern)
        named = f"{base_path}/{pattern}" if plain else pattern
        if not _belongs_to(dataset, named, roots[-1:], os.path.abspath):
            raise file_elsewhere_error(dataset, pattern)
        resolved: list[str] = resolve(pattern, base_path, *args, **options)
        for file in resolved:
            if not _belongs_to(dataset, file, roots):
                raise file_elsewhere_error(dataset, file)
        return resolved

    with mock.patch.object(data_files, "resolve_pattern", resolve_checked):
        yield


def _belongs_to(
    dataset: str, file: str, roots: Sequence[str], resolve_path: Callable[[str], str] = os.path.realpath
) -> bool:
    """Return whether a file or a pattern belongs to a dataset: on the hub by its address, else by its folder."""
    if "::" in file:  # an archive of anywhere
        return False
    if not os.path.isdir(dataset):
        return file.startswith((f"hf://datasets/{dataset}@", f"hf://datasets/{dataset}/")) and ".." not in file.split(
            "/"
        )
    return "://" not in file and is_within(file, roots, resolve_path)
