"""COCO captions: your own copy of COCO's pictures, each with several captions in free text.

References:
    Generating Images from Captions with Attention (Mansimov, Parisotto, Ba, Salakhutdinov, 2015), arXiv:1511.02793,
    Section 4.3, and the authors' published code: pictures of 32x32, captions of 7 to 29 words
    Microsoft COCO Captions: Data Collection and Evaluation Server (Chen et al., 2015), arXiv:1504.00325
"""

import hashlib
from collections import defaultdict
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from mmgen.core.errors import DataError, UsageError
from mmgen.core.foreign import CannotReadError, read_file
from mmgen.core.parsing import printable
from mmgen.data_recipes._own._files import PICTURE_ENDINGS, list_examples, stays_inside
from mmgen.data_recipes._own._recipe import OwnRecipe
from mmgen.data_recipes._own._source import FileSource, Source
from mmgen.data_recipes._own._tables import MOST_BYTES, read_table
from mmgen.descriptions import split_into_words
from mmgen.settings.kinds import Option

__all__ = ["CocoCaptions"]

_TEXT = "text"


class CocoCaptions(OwnRecipe):
    """COCO's pictures with their captions, from a folder or zip of train2014, val2014 and annotations.

    All captions of 7 to 29 words of a picture are kept, and each sight of it in training draws one. The split ``given``
    has the training pictures, and the pictures of validation divided into val and test.
    """

    coco: Annotated[Path, Field(exclude=True), Option(metavar="COCO", positional=True)]
    """Folder or zip of pictures, and of captions_train*.json and captions_val*.json."""

    train_annotations: Annotated[Path | None, Field(exclude=True)] = None
    """Captions of the training pictures in COCO's form; by default captions_train*.json in COCO."""

    val_annotations: Annotated[Path | None, Field(exclude=True)] = None
    """Captions of the validation pictures in COCO's form; by default captions_val*.json in COCO."""

    held_out: Annotated[int, Field(ge=1)] = 1000
    """Pictures of validation that become the part test, half of them at most; chosen by their names."""

    fewest_words: Annotated[int, Field(ge=1)] = 7
    """Words that a caption needs to be kept."""

    size: Annotated[int, Field(ge=8, le=1024)] = 32
    """Height and width in pixels that pictures are made."""

    max_words: Annotated[int, Field(ge=1, le=1000)] = 29
    """Words that a caption that is kept has at most."""

    name: ClassVar[str] = "coco-captions"

    @model_validator(mode="after")
    def _check_words(self) -> Self:
        if self.max_words < self.fewest_words:
            raise ValueError(
                f"--max-words got {self.max_words}, expected at least --fewest-words {self.fewest_words}; set more"
            )
        return self

    def open_source(self) -> Source:
        annotations = {"train": self.train_annotations, "val": self.val_annotations}
        return _CocoSource(self.coco, annotations, (self.fewest_words, self.max_words), self.held_out)


class _CocoSource(FileSource):
    """Pictures that annotation files name, with all their captions of a permitted length, and parts by file.

    Args:
        path: Folder or zip of pictures, and of the annotation files unless others are named.
        annotations: Annotation files of the user by part; None for those in the source that are called
            ``captions_train*.json`` and ``captions_val*.json``.
        words: Smallest and largest number of words of a caption that is kept.
        held_out: Pictures of validation that become the part "test".
    """

    def __init__(self, path: Path, annotations: dict[str, Path | None], words: tuple[int, int], held_out: int) -> None:
        super().__init__(path)
        self._words = words
        try:
            self._read_source(annotations, held_out)
        except BaseException:
            self.close()
            raise

    def _read_source(self, annotations: dict[str, Path | None], held_out: int) -> None:
        texts: dict[str, list[str]] = {}
        part_of: dict[str, str] = {}
        lengths_left_out = 0
        for part, file in annotations.items():
            captions = self._read_captions(part, file)
            twice = next((name for name in captions if name in part_of), None)
            if twice is not None:
                raise DataError(
                    f"'{printable(twice, 80)}' has captions for training and for validation; remove it from one of the "
                    "annotation files"
                )
            for name, several in captions.items():
                kept = sorted({text for text in several if self._has_permitted_length(text)})
                lengths_left_out += len(set(several)) - len(kept)
                if kept:
                    texts[name], part_of[name] = kept, part
        self.names = sorted(texts)
        self.pictures = {"image": list(self.names)}
        self.columns = {_TEXT: [texts[name][0] for name in self.names]}
        self.several = {_TEXT: {row: tuple(texts[name]) for row, name in enumerate(self.names) if len(texts[name]) > 1}}
        if lengths_left_out:
            fewest, most = self._words
            self.left_out.append(f"{lengths_left_out:,} captions of less than {fewest} or more than {most} words")
        pictures = sum(name.lower().endswith(PICTURE_ENDINGS) for name in self._files.names)
        if pictures > len(self.names):
            self.left_out.append(f"{pictures - len(self.names):,} pictures without a caption")
        validation = [name for name in self.names if part_of[name] == "val"]
        # By their names alone, so that every seed and size is tested on the same pictures.
        validation.sort(key=lambda name: hashlib.sha256(PurePosixPath(name).name.encode()).digest())
        part_of |= dict.fromkeys(validation[: min(held_out, len(validation) // 2)], "test")
        self.parts = [part_of[name] for name in self.names]

    def _has_permitted_length(self, text: str) -> bool:
        fewest, most = self._words
        return fewest <= len(split_into_words(text)) <= most

    def _read_captions(self, part: str, file: Path | None) -> dict[str, list[str]]:
        """Return the captions of each picture that an annotation file names."""
        where, data = self._read_annotations(part, file)
        table = read_table(data, where)
        if not {"file_name", _TEXT} <= table.columns.keys():
            raise DataError(
                f'{where} is not in COCO\'s form, expected {{"images": [{{"id", "file_name"}}], "annotations": '
                '[{"image_id", "caption"}]}; for a table of another form use make-data folder'
            )
        captions: dict[str, list[str]] = defaultdict(list)
        missing: dict[str, None] = {}
        for row, name in enumerate(table.columns["file_name"]):
            if not name or not stays_inside(name):
                raise DataError(
                    f"{where} names {printable(name or '', 80)!r} in {table.describe_row(row)}, expected a file in "
                    f"{self.where}, without '..' and no place on a machine; fix it"
                )
            place = self._find_picture(name, part)
            text = table.columns[_TEXT][row]
            if place is None:
                missing[name] = None
            elif text:
                captions[place].append(text)
        if missing:
            raise DataError(
                f"{len(missing):,} pictures that {where} names are not in {self.where}: "
                f"{list_examples(list(missing))}; add them, or remove their annotations"
            )
        return captions

    def _read_annotations(self, part: str, file: Path | None) -> tuple[str, bytes]:
        """Return name and bytes of the annotation file of a part."""
        try:
            if file is not None:
                if file.suffix.lower() != ".json":
                    raise UsageError(
                        f"--{part}-annotations got {file}, expected COCO's captions, a file ending in .json"
                    )
                return str(file), read_file(file, MOST_BYTES)
            found = [
                name
                for name in self._files.names
                if PurePosixPath(name).name.startswith(f"captions_{part}") and name.lower().endswith(".json")
            ]
            if len(found) != 1:
                number = f"{len(found)} files {list_examples(found)}" if found else "no file"
                zips = sum(name.lower().endswith(".zip") for name in self._files.names)
                packed = f", only {zips} .zip; unpack them, or" if zips else ", expected one;"
                raise DataError(
                    f"{self.where} holds {number} for captions_{part}*.json{packed} name it with --{part}-annotations"
                )
            where = str(self._files.path / (self._files.common_folder + found[0]))
            return where, self._files.read(found[0], MOST_BYTES)
        except CannotReadError as error:
            raise DataError(f"cannot read the annotations of {part}: {error}; check the path") from None

    def _find_picture(self, name: str, part: str) -> str | None:
        """Return the picture of this name: at its place, or the only one so called, of the part if several are."""
        if name in self._files:
            return name
        candidates = self._by_base_name.get(PurePosixPath(name).name, [])
        of_part = [
            one for one in candidates if any(folder.startswith(part) for folder in PurePosixPath(one).parts[:-1])
        ]
        chosen = candidates if len(candidates) == 1 else of_part
        return chosen[0] if len(chosen) == 1 else None

    @cached_property
    def _by_base_name(self) -> dict[str, list[str]]:
        places: dict[str, list[str]] = defaultdict(list)
        for name in self._files.names:
            places[PurePosixPath(name).name].append(name)
        return places
