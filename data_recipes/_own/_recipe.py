"""The base of recipes of the user's own pictures: settings, survey, and the dataset file."""

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mmgen.core.errors import DataError
from mmgen.core.foreign import CannotReadError
from mmgen.core.parsing import printable
from mmgen.core.pictures import Background, Fit, Fitting
from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._base import Recipe, Workers, map_in_order
from mmgen.data_recipes._own._attributes import build_attributes, check_columns, parse_bins
from mmgen.data_recipes._own._captions import encode_captions
from mmgen.data_recipes._own._cells import Columns
from mmgen.data_recipes._own._factors import add_factors
from mmgen.data_recipes._own._files import list_examples, shell_quoted
from mmgen.data_recipes._own._inspection import Inspection, fit_rows, inspect_pictures
from mmgen.data_recipes._own._parts import (
    check_no_part_columns,
    complete_user_parts,
    draw_parts,
    group_by_labels,
    parts_of_column,
)
from mmgen.data_recipes._own._records import choose_captions, drop_multi_valued_columns, select_records
from mmgen.data_recipes._own._source import Source
from mmgen.data_recipes._own._survey import Survey
from mmgen.data_recipes._part_names import PARTS
from mmgen.data_recipes._splits import Parts

__all__ = ["SPLIT", "OwnRecipe"]

_LEAST = 20  # pictures
_CHUNK = 128
_CHUNK_PIXELS = 2**25  # numbers of a chunk's pictures at most
SPLIT = "split"
_RECORDED = 100  # unreadable pictures that the file names


class OwnRecipe(Recipe):
    """Base of recipes for datasets of the user's own pictures, with tables about them."""

    attributes: tuple[str, ...] | None = None
    """Columns that become attributes; by default all with 2 to 20 different values."""

    caption: str | None = None
    """Column of captions in free text; by default one named text or caption, or those named caption_0 and so on."""

    image_column: tuple[str, ...] = ()
    """Columns of pictures, each an image modality; by default all recognised ones."""

    size: Annotated[int, Field(ge=8, le=1024)] = 64
    """Height and width in pixels that pictures are made."""

    fit: Fit = "crop"
    """Treatment of pictures that are not square: crop the middle, add borders, or stretch."""

    grey: bool = False
    """One channel instead of red, green and blue."""

    background: Background = "white"
    """Colour behind see-through parts and beside padded pictures."""

    split: str | None = None
    """Column of train, val or test; by default one named split, or folders of these names."""

    group: str | None = None
    """Column whose values stay in one part: a person, a place."""

    ignore: tuple[str, ...] = ()
    """Columns that are left out unread."""

    unknown: tuple[str, ...] | None = None
    """Words of cells for an unknown value, in place of NA, nan, none, null, missing, - and the like."""

    bins: tuple[str, ...] = ()
    """Columns of numbers with a number of bins of equal counts, or edges between bins: age=5,height=1.5:1.8."""

    max_words: Annotated[int, Field(ge=1, le=1000)] = 32
    """Words after which a caption is cut off."""

    min_count: Annotated[int, Field(ge=1)] = 1
    """Occurrences that a word needs to be kept."""

    most_captions: Annotated[int, Field(ge=1, le=100)] = 10
    """Captions of a picture that are kept, drawn by the seed; each sight of it in training draws one of them."""

    drop_unreadable: Annotated[bool, Field(exclude=True)] = False
    """Leave out pictures that cannot be read, instead of refusing to make the file."""

    name: ClassVar[str]
    reads_sources: ClassVar[bool] = True

    @abstractmethod
    def open_source(self) -> Source:
        """Open the user's folder or dataset, and read everything except the pictures."""

    def source_settings(self) -> dict[str, Any]:
        """Return settings to record that identify the source, without paths."""
        return {}

    @property
    def fitting(self) -> Fitting:
        """Settings for cropping and resizing pictures to one size."""
        return Fitting(self.size, self.size, self.fit, self.grey, self.background)

    def survey(self, seed: int, workers: Workers) -> Work[Survey]:
        source = self._open_checked_source(seed)

        def inspect_and_survey() -> Generator[Progress, None, Survey]:
            try:
                pictures = Inspection.of_unread_files(len(source), len(source.pictures))
                yield from inspect_pictures(source, self.fitting, workers, _CHUNK, pictures)
                return self._survey_readable(source, pictures, seed)
            finally:
                source.close()

        return Work(f"looking at {source.where}", len(source), "picture", inspect_and_survey)

    def make(
        self,
        path: Path,
        *,
        seed: int = 0,
        workers: Workers = None,
        chunk: int = _CHUNK,
        command: str = "",
        survey: Survey | None = None,
    ) -> Work[Path]:
        """Return work that writes the dataset file and returns ``path``; a survey saves inspecting the pictures."""
        source = self._open_checked_source(seed)
        pixels = int(np.prod(self.fitting.shape)) * len(source.pictures)
        chunk = max(1, min(chunk, _CHUNK, _CHUNK_PIXELS // pixels))

        def write_dataset() -> Generator[Progress, None, Path]:
            try:
                if survey is None:
                    pictures = Inspection.of_unread_files(len(source), len(source.pictures))
                    looking = inspect_pictures(source, self.fitting, workers, chunk, pictures)
                    yield from (Progress(0) for _ in looking)
                else:
                    pictures = survey.pictures
                fresh = self._survey_readable(source, pictures, seed)  # the table may have changed since
                yield from self._write_dataset(path, source, fresh, seed, workers, chunk, command)
            finally:
                source.close()
            return path

        return Work(f"making {self.name}", len(source), "picture", write_dataset)

    def _open_checked_source(self, seed: int) -> Source:
        """Open the source and check its tables, before any picture is read."""
        source = self.open_source()
        try:
            number = len(source)
            if number < _LEAST:
                raise DataError(
                    f"{source.where} holds {number} picture{'s' * (number != 1)}, expected at least {_LEAST}; "
                    f"{'; '.join(f'left out: {one}' for one in source.left_out) or 'add some'}"
                )
            self._survey_rows(source, np.arange(number), Inspection.of_unread_files(number, len(source.pictures)), seed)
        except BaseException:
            source.close()
            raise
        return source

    def _survey_readable(self, source: Source, pictures: Inspection, seed: int) -> Survey:
        """Return the survey of the readable pictures; refuse unreadable ones unless ``drop_unreadable`` is set."""
        if len(pictures.digests) != len(source):
            raise DataError(f"{source.where} has changed meanwhile; run the same command again")
        unreadable = [f"{source.names[row]} ({why})" for row, why in pictures.unreadable.items()]
        if unreadable and not self.drop_unreadable:
            examples = ", ".join(printable(one, 200) for one in unreadable[:_RECORDED])
            more = f" and {len(unreadable) - _RECORDED:,} more" if len(unreadable) > _RECORDED else ""
            raise DataError(
                f"{len(unreadable):,} of {len(source):,} pictures in {source.where} cannot be read: {examples}{more}; "
                "fix or remove them, or leave them out with --drop-unreadable"
            )
        rows = np.array([row for row in range(len(source)) if row not in pictures.unreadable], np.int64)
        if len(rows) < _LEAST:
            raise DataError(
                f"{len(rows)} pictures in {source.where} can be read, expected at least {_LEAST}; the first of the "
                f"others is {printable(unreadable[0], 200)}"
            )
        survey = self._survey_rows(source, rows, pictures, seed)
        notes = [*pictures.notes(self.fitting), *survey.notes]
        if unreadable:
            notes.append(f"left out: {len(unreadable):,} pictures that cannot be read, {list_examples(unreadable)}")
        return replace(survey, notes=notes, sha256=source.sha256(rows, pictures.digests))

    def _survey_rows(self, source: Source, rows: NDArray[np.int64], pictures: Inspection, seed: int) -> Survey:
        """Return the survey of the examples ``rows`` [n]: attributes, captions, parts and notes."""
        records = select_records(source, rows.tolist(), self.unknown, self.ignore)
        columns, names = records.columns, records.names
        bins = parse_bins(self.bins)
        check_columns("--attributes", self.attributes or (), columns)
        check_columns("--bins", tuple(bins), columns)
        check_columns("--ignore", self.ignore, columns)
        for option, name in (("--caption", self.caption), ("--group", self.group), ("--split", self.split)):
            check_columns(option, () if name is None else (name,), columns)
        notes = [*records.notes, *source.notes, *(f"left out: {reason}" for reason in source.left_out)]
        for name in self.ignore:
            notes.append(f"left out: column '{name}', as --ignore says")
        user_parts = self._user_parts(source, rows, columns)
        caption_choice = choose_captions(
            records, self.caption, {*self.ignore, *(self.attributes or ())}, self.most_captions, seed
        )
        captions = None
        if caption_choice is not None:
            if any(caption_choice.texts):
                captions = encode_captions(caption_choice.name, caption_choice.texts, self.max_words, self.min_count)
                notes = [*captions.notes, *caption_choice.notes, *notes]
            else:
                notes.append(f"left out: column '{caption_choice.name}': nothing is said in it")
        named = {*(self.attributes or ()), *bins}
        notes += drop_multi_valued_columns(records, caption_choice, {*named, self.group or "", self.split or ""})
        used = {
            *(caption_choice.columns if caption_choice is not None else ()),
            self.group,
            *((self.split or SPLIT,) if user_parts is not None else ()),
        }
        remaining = {name: cells for name, cells in columns.items() if name not in {*self.ignore, *(used - named)}}
        automatic = remaining.keys() - {*source.classes} if self.attributes is None else set()
        check_no_part_columns({name: remaining[name] for name in remaining if name in automatic})
        labels = build_attributes(remaining, self.attributes, bins, "leave out with --ignore")
        digests = [pictures.digests[row, 0].tobytes() for row in rows.tolist()]
        scheme, parts, split_notes = self._make_split(columns, names, digests, user_parts, seed)
        no_labels = [] if labels.values or captions else ["there are no attributes and no captions: pictures alone"]
        groups = None if self.group is None else group_by_labels(columns[self.group])
        return Survey(
            rows, pictures, labels, captions, scheme, parts, groups, [*labels.notes, *notes, *no_labels, *split_notes]
        )

    def _user_parts(self, source: Source, rows: NDArray[np.int64], columns: Columns) -> list[str] | None:
        """Return the part of each example that folders or a column state; None without either."""
        column = self.split or (SPLIT if SPLIT in columns and SPLIT not in self.ignore else None)
        by_folder = [source.parts[row] for row in rows.tolist()] if source.parts is not None else None
        if column is None:
            return by_folder
        parts = parts_of_column(column, columns[column], [source.names[row] for row in rows.tolist()])
        if by_folder is not None and by_folder != parts:
            raise DataError(
                f"the column '{column}' and the folders of {source.where} state different parts; leave the column out "
                f"with --ignore {shell_quoted(column)}{source.or_else}"
            )
        return parts

    def _make_split(
        self, columns: Columns, names: list[str], digests: list[bytes], user_parts: list[str] | None, seed: int
    ) -> tuple[tuple[str, str], Parts, list[str]]:
        """Return the file's split scheme: its name and meaning, its parts, and notes."""
        labels = [columns[self.group]] if self.group is not None else []
        duplicates, groups = group_by_labels(digests), group_by_labels(*labels, digests)
        doubles = len(digests) - len(set(digests))
        notes = [f"  {doubles:,} pictures are there twice, byte for byte, and stay in one part"] if doubles else []
        stay = f"no {self.group} is in two parts" if self.group is not None else ""
        if user_parts is None:
            parts, name = draw_parts(groups, seed), "iid"
            meaning = f"85/5/10 % at random{f'; {stay}' if stay else ''}"
        else:
            parts, user_notes = complete_user_parts(
                user_parts, group_by_labels(*labels) if labels else None, duplicates, groups, names, seed
            )
            notes, name, meaning = (
                [f"  {one}" for one in user_notes],
                "given",
                "; ".join(["as the source divides", *user_notes]),
            )
        counts = ", ".join(f"{part} {len(parts[part]):,}" for part in PARTS)
        return (name, meaning), parts, [f"split '{name}' ({meaning.split(';')[0]}): {counts}", *notes]

    def _write_dataset(
        self, path: Path, source: Source, survey: Survey, seed: int, workers: Workers, chunk: int, command: str
    ) -> Generator[Progress, None, None]:
        from mmgen.artifacts import DatasetWriter

        rows, labels, captions, fitting = survey.rows, survey.labels, survey.captions, self.fitting
        digests_of = survey.pictures.digests
        settings = {"recipe": self.name, **self.model_dump(mode="json"), **self.source_settings()}
        settings["sources_sha256"] = survey.sha256
        unreadable = [source.names[row] for row in survey.pictures.unreadable]
        facts = {"unreadable": len(unreadable), "unreadable_images": unreadable[:_RECORDED]}
        with DatasetWriter(path, len(rows), settings, seed, command, facts=facts) as writer:
            for image in source.pictures:
                writer.add_image(image, fitting.shape, "bytes")
            if labels.values:
                writer.add_attributes("attributes", labels.values)
            if captions is not None:
                writer.add_text("text", captions.vocabulary, captions.length, captions=captions.most)
            factors = add_factors(writer, survey.pictures.sizes[rows, 0], labels.numbers, survey.groups)
            writer.add_splits(survey.scheme[0], **survey.parts, meaning=survey.scheme[1])
            codes = survey.codes
            calls = ((files, fitting) for _, files in source.file_chunks(rows.tolist(), chunk))
            start = 0
            try:
                for pixels, digests in map_in_order(fit_rows, calls, workers):
                    some = slice(start, start + len(digests))
                    if (digests != digests_of[rows[some]]).any():
                        raise CannotReadError("another file is there now")
                    stored: dict[str, NDArray[Any]] = dict(zip(source.pictures, pixels, strict=True))
                    stored |= {"attributes": codes[some]} if codes is not None else {}
                    stored |= {"text": captions.codes[some]} if captions is not None else {}
                    writer.write(start, stored, {name: column[some] for name, column in factors.items()})
                    start += len(digests)
                    yield Progress(start)
            except CannotReadError as error:
                raise DataError(
                    f"a picture in {source.where} has changed meanwhile ({error}); run the same command again"
                ) from None
