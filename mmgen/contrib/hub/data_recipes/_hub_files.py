"""Checks of a local copy of a dataset before the library datasets opens any file."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import mock

from mmgen.core.errors import DataError
from mmgen.core.foreign import CannotReadError, open_foreign, read_file
from mmgen.core.parsing import MalformedError, parse_json, printable
from mmgen.data_recipes._own._files import PICTURE_ENDINGS, Files, stays_inside

ENDINGS = {".parquet": "parquet", ".arrow": "arrow", ".tar": "webdataset"}
"""The library's readers by the ending of a file."""

_DESCRIPTIONS = ("README.md", ".huggingface.yaml", "dataset_infos.json", "dataset_info.json", "state.json",
                 "dataset_dict.json")  # fmt: skip
_MOST_BYTES = 2**24
_MOST_NODES, _DEEPEST = 200_000, 50  # of YAML


def is_within(file: str, roots: Sequence[str], resolve_path: Callable[[str], str] = os.path.realpath) -> bool:
    """Return whether a file is one of ``roots`` or in one of these folders, after ``resolve_path``."""
    return any(os.path.commonpath([root, resolve_path(file)]) == root for root in roots)


def file_elsewhere_error(dataset: str, file: str) -> DataError:
    """Return the error for a dataset that names a file outside its folder."""
    return DataError(
        f"{printable(dataset, 100)} names '{printable(file, 100)}', expected only files of its own; get what you trust "
        "of them into one folder, without a README.md that names others, and name the folder"
    )


def check_files_are_safe(dataset: str, roots: Sequence[str]) -> None:
    """Refuse a folder with devices or pipes, or with metadata that is huge or outside the folder."""
    if not os.path.exists(dataset):  # it is one of the hub
        return
    for folder, _, names in chain([("", [], [dataset])], os.walk(dataset)):
        for name in names:
            path = os.path.join(folder, name)
            try:
                mode, size = os.stat(path).st_mode, os.stat(path).st_size
            except OSError:  # a link to nothing, which nobody can read
                continue
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise DataError(f"{printable(path, 200)} is a device or a pipe, expected files and folders; remove it")
            if name.lower().endswith(tuple(ENDINGS)) and is_within(path, roots):
                try:
                    open_foreign(Path(path)).close()
                except CannotReadError as error:
                    raise DataError(f"cannot read {printable(path, 200)}: {error}") from None
            if name in _DESCRIPTIONS and not is_within(path, roots):
                raise file_elsewhere_error(dataset, path)
            if name in _DESCRIPTIONS and size > _MOST_BYTES:
                raise DataError(
                    f"{printable(path, 200)} has {size:,} bytes, expected at most {_MOST_BYTES:,}; remove it, or what "
                    "is not needed in it"
                )


def check_all_pictures_read(path: Path, read_files: Iterable[str]) -> None:
    """Refuse a folder of which the library would skip pictures or read files that are no data."""
    theirs = {os.path.realpath(file) for file in read_files if file.lower().endswith(PICTURE_ENDINGS)}
    own = Files(path)
    ours = {
        os.path.realpath(path / (own.common_folder + name)): name
        for name in own.names
        if name.lower().endswith(PICTURE_ENDINGS)
    }
    advice = "use make-data folder, which says what is taken as what"
    if skipped := [name for file, name in ours.items() if file not in theirs]:
        raise DataError(
            f"the library datasets takes {len(theirs):,} pictures of {path} and passes over {len(skipped):,}, such as "
            f"'{printable(skipped[0], 80)}', for folders that may be parts of a split are beside others; {advice}"
        )
    if extra := sorted(theirs - ours.keys()):
        raise DataError(
            f"the library datasets takes {len(extra):,} files of {path} that are hidden or a system's, such as "
            f"'{printable(extra[0], 200)}'; {advice}"
        )


def is_saved_dataset(path: Path) -> bool:
    """Return whether a folder was written by the library's ``save_to_disk``."""
    return (path / "dataset_dict.json").exists() or (path / "state.json").exists()


def check_saved_dataset(path: Path, roots: Sequence[str]) -> None:
    """Refuse a saved dataset that names anything but files of its own."""
    folders = [path]
    if (path / "dataset_dict.json").exists():
        splits = _read_list(path / "dataset_dict.json", "splits")
        for split in splits:
            if not isinstance(split, str) or not stays_inside(split) or not is_within(str(path / split), roots):
                raise file_elsewhere_error(str(path), str(split))
        folders = [path / split for split in splits]
    for folder in folders:
        for file in _read_list(folder / "state.json", "_data_files"):
            name = file.get("filename") if isinstance(file, dict) else None
            if not isinstance(name, str) or not stays_inside(name) or not is_within(str(folder / name), roots):
                raise file_elsewhere_error(str(path), str(name))
            if not (folder / name).is_file():
                raise DataError(
                    f"{folder / 'state.json'} names '{printable(name, 100)}', which is no file in {folder}; get the "
                    "dataset again"
                )


def _read_list(path: Path, key: str) -> list[Any]:
    try:
        content = parse_json(read_file(path, _MOST_BYTES).decode())
    except (CannotReadError, MalformedError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"cannot read {path}: {CannotReadError.from_error(error)}; get the dataset again") from None
    if not isinstance(content, dict) or not isinstance(content.get(key), list):
        raise DataError(f"{path} has no list '{key}', as save_to_disk writes it; get the dataset again")
    named: list[Any] = content[key]
    return named


@contextmanager
def safe_yaml(dataset: str) -> Iterator[None]:
    """Restrict YAML in this block: no aliases, which expand a few lines to gigabytes, no long or deep documents."""
    import yaml

    compose, count, depth = yaml.SafeLoader.compose_node, 0, 0

    def yaml_error(problem: str) -> DataError:
        return DataError(
            f"the README.md of {printable(dataset, 100)} (or its .huggingface.yaml) begins with YAML that {problem}; "
            "write it plainly, or remove it"
        )

    def compose_safely(loader: Any, parent: Any, index: Any) -> Any:
        nonlocal count, depth
        if loader.check_event(yaml.AliasEvent):
            raise yaml_error(f"refers to itself (*{printable(str(loader.peek_event().anchor), 40)})")
        count, depth = count + 1, depth + 1
        if count > _MOST_NODES or depth > _DEEPEST:
            raise yaml_error(f"has more than {_MOST_NODES:,} values, or is more than {_DEEPEST} deep")
        try:
            return compose(loader, parent, index)
        finally:
            depth -= 1

    with mock.patch.object(yaml.SafeLoader, "compose_node", compose_safely):
        yield
