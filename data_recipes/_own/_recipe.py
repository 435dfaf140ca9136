"""What recipes of somebody's own pictures share: settings, the look before anything is written, and the file."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr

from mmgen.core.errors import DataError
from mmgen.core.foreign import CannotReadError
from mmgen.core.parsing import printable
from mmgen.core.pictures import Background, Fit, Fitting
from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._base import Recipe, Workers, in_order
from mmgen.data_recipes._own._attributes import Attributes, attributes_of, check_columns, parse_bins
from mmgen.data_recipes._own._factors import add_factors
from mmgen.data_recipes._own._files import listed, typed
from mmgen.data_recipes._own._found import Found
from mmgen.data_recipes._own._parts import (
    check_says_no_parts,
    parts_as_given,
    parts_drawn,
    parts_of_column,
    together,
)
from mmgen.data_recipes._own._source import Source
from mmgen.data_recipes._own._survey import Seen, fitted_rows, look_at
from mmgen.data_recipes._own._told import choose_captions, leave_out_several, told_of
from mmgen.data_recipes._own._words import Captions, captions_of
from mmgen.data_recipes._part_names import PARTS
from mmgen.data_recipes._splits import Parts

__all__ = ["SPLIT", "OwnRecipe"]

_LEAST = 20  # pictures
_CHUNK = 128
_CHUNK_PIXELS = 2**25  # numbers of a chunk's pictures at most
SPLIT = "split"
_RECORDED = 100  # unreadable pictures that the file names


@dataclass
class _Contents:
    """All that the file will hold besides pictures, of n examples.

    Attributes:
        rows: Which examples of the source they are [n].
        attributes: Attributes of these.
        captions: Captions of these, where there are some.
        scheme: The way to split: its name and meaning.
        parts: Rows of these by part.
        groups: Number of the group of each [n], where there are groups.
        said: What there is to say about them.
    """

    rows: NDArray[np.int64]
    attributes: Attributes
    captions: Captions | None
    scheme: tuple[str, str]
    parts: Parts
    groups: NDArray[np.int64] | None
    said: list[str]


class OwnRecipe(Recipe):
    """Abstract: a dataset of pictures that somebody has, and of what a table says about them."""

    attributes: tuple[str, ...] | None = None
    """Columns that become attributes; by default all with 2 to 20 different values."""

    caption: str | None = None
    """Column of texts in free words; by default one called text or caption, or those called caption_0 and so on."""

    image_column: tuple[str, ...] = ()
    """Columns of pictures, each an image modality; by default all that are recognised as such."""

    size: Annotated[int, Field(ge=8, le=1024)] = 64
    """Height and width in pixels that pictures are made."""

    fit: Fit = "crop"
    """What becomes of pictures that are not square: the middle, borders beside them, or out of proportion."""

    grey: bool = False
    """One channel instead of red, green and blue."""

    background: Background = "white"
    """What stands behind see-through parts, and beside pictures that are padded."""

    split: str | None = None
    """Column that says train, val or test; by default one called split, or folders by these names."""

    group: str | None = None
    """Column of which no value may be in two parts: a person, a place."""

    ignore: tuple[str, ...] = ()
    """Columns that are left out, and not looked at."""

    unknown: tuple[str, ...] | None = None
    """Words of cells that say that nothing is known, in place of NA, nan, none, null, missing, - and the like."""

    bins: tuple[str, ...] = ()
    """Columns of numbers, and into how many bins of equal counts they go, or where bins meet: age=5,height=1.5:1.8."""

    max_words: Annotated[int, Field(ge=1, le=1000)] = 32
    """Words of a caption that are kept."""

    min_count: Annotated[int, Field(ge=1)] = 1
    """How often a word must occur to be kept."""

    drop_unreadable: Annotated[bool, Field(exclude=True)] = False
    """Leave out pictures that cannot be read, instead of refusing to make the file."""

    name: ClassVar[str]
    reads_sources: ClassVar[bool] = True

    _seen: Seen | None = PrivateAttr(None)
    _found: Found | None = PrivateAttr(None)

    @abstractmethod
    def open(self) -> Source:
        """The source, with everything but the pictures read.

        Raises:
            DataError: It is missing or malformed.
            UsageError: It does not have what settings name.
        """

    def identity(self) -> dict[str, Any]:
        """What settings say of the source besides its hash; no places on a machine."""
        return {}

    @property
    def fitting(self) -> Fitting:
        """How pictures are brought to one size."""
        return Fitting(self.size, self.size, self.fit, self.grey, self.background)

    def survey(self, seed: int, workers: Workers) -> Work[list[str]]:
        source = self._opened()
        try:
            self._contents(source, np.arange(len(source)), None, seed)  # what is wrong with the table is said at once
        except BaseException:
            source.close()
            raise

        def generate() -> Generator[Progress, None, list[str]]:
            try:
                yield from self._look(source, workers, _CHUNK)
                contents = self._readable(source, seed)
                self._found = self._summary(source, contents)
            finally:
                source.close()
            return contents.said

        return Work(f"looking at {source.where}", len(source), "picture", generate)

    def found(self) -> Found:
        """What :meth:`survey` found, after it.

        Raises:
            RuntimeError: Nobody has looked.
        """
        if self._found is None:
            raise RuntimeError("survey() has not been run")
        return self._found

    def _summary(self, source: Source, contents: _Contents) -> Found:
        seen, attributes = self._seen, contents.attributes
        assert seen is not None, "nobody has looked"
        return Found(
            number=len(contents.rows),
            side=int(np.median(seen.sizes[contents.rows].min(-1))),
            attributes=attributes.values,
            codes=attributes.table,
            captions=contents.captions,
            parts=contents.parts,
            sha256=source.sha256(contents.rows, seen.digests),
            said=contents.said,
        )

    def make(
        self, path: Path, *, seed: int = 0, workers: Workers = None, chunk: int = _CHUNK, command: str = ""
    ) -> Work[Path]:
        source = self._opened()
        pixels = int(np.prod(self.fitting.shape)) * len(source.pictures)
        chunk = max(1, min(chunk, _CHUNK, _CHUNK_PIXELS // pixels))
        try:
            number = len(source)
            if self._seen is None:
                self._contents(source, np.arange(number), None, seed)
        except BaseException:
            source.close()
            raise

        def generate() -> Generator[Progress, None, Path]:
            try:
                if self._seen is None:
                    yield from (Progress(0) for _ in self._look(source, workers, chunk))
                contents = self._readable(source, seed)
                yield from self._write(path, source, contents, seed, workers, chunk, command)
            finally:
                source.close()
            return path

        return Work(f"making {self.name}", number, "picture", generate)

    def _opened(self) -> Source:
        source = self.open()
        if len(source) < _LEAST:
            source.close()
            raise DataError(
                f"{source.where} holds {len(source)} picture{'s' * (len(source) != 1)}, expected at least {_LEAST}; "
                f"{'; '.join(f'left out: {one}' for one in source.left_out) or 'add some'}"
            )
        return source

    def _look(self, source: Source, workers: Workers, chunk: int) -> Iterator[Progress]:
        n, images = len(source), len(source.pictures)
        seen = Seen(np.zeros((n, images, 32), np.uint8), np.zeros((n, images, 2), np.int32), Counter(), {})
        yield from look_at(source, self.fitting, workers, chunk, seen)
        self._seen = seen

    def _readable(self, source: Source, seed: int) -> _Contents:
        """What the file will hold, of the pictures that can be read.

        Raises:
            DataError: Some cannot, which is not to be passed over; or something of the table is wrong.
        """
        seen = self._seen
        assert seen is not None, "nobody has looked"
        if len(seen.digests) != len(source):
            raise DataError(f"{source.where} has changed meanwhile; run the same command again")
        unreadable = [f"{source.names[row]} ({why})" for row, why in seen.unreadable.items()]
        if unreadable and not self.drop_unreadable:
            every = ", ".join(printable(one, 200) for one in unreadable[:_RECORDED])
            more = f" and {len(unreadable) - _RECORDED:,} more" if len(unreadable) > _RECORDED else ""
            raise DataError(
                f"{len(unreadable):,} of {len(source):,} pictures in {source.where} cannot be read: {every}{more}; "
                "mend or remove them, or leave them out with --drop-unreadable"
            )
        rows = np.array([row for row in range(len(source)) if row not in seen.unreadable], np.int64)
        if len(rows) < _LEAST:
            raise DataError(
                f"{len(rows)} pictures in {source.where} can be read, expected at least {_LEAST}; the first of the "
                f"others is {printable(unreadable[0], 200)}"
            )
        contents = self._contents(source, rows, seen.digests, seed)
        if unreadable:
            contents.said.append(f"left out: {len(unreadable):,} pictures that cannot be read, {listed(unreadable)}")
        contents.said[:0] = seen.said(self.fitting)
        return contents

    def _contents(
        self, source: Source, rows: NDArray[np.int64], digests: NDArray[np.uint8] | None, seed: int
    ) -> _Contents:
        """What is said of these examples.

        Args:
            source: All examples.
            rows: Those that are used [n].
            digests: sha256 of their files [N, I, 32]; None before anybody has looked.
            seed: Seed of the dataset.
        """
        told = told_of(source, rows.tolist(), self.unknown, self.ignore)
        columns, names = told.columns, told.names
        bins = parse_bins(self.bins)
        check_columns("--attributes", self.attributes or (), columns)
        check_columns("--bins", tuple(bins), columns)
        check_columns("--ignore", self.ignore, columns)
        for option, name in (("--caption", self.caption), ("--group", self.group), ("--split", self.split)):
            check_columns(option, () if name is None else (name,), columns)
        said = [*told.said, *source.notes, *(f"left out: {reason}" for reason in source.left_out)]
        for name in self.ignore:
            said.append(f"left out: column '{name}', as --ignore says")
        given = self._given_parts(source, rows, columns)
        chosen = choose_captions(told, self.caption, {*self.ignore, *(self.attributes or ())}, seed)
        captions = None
        if chosen is not None:
            if any(chosen.cells):
                captions = captions_of(chosen.name, chosen.cells, self.max_words, self.min_count)
                said = [*captions.said, *chosen.said, *said]
            else:
                said.append(f"left out: column '{chosen.name}': nothing is said in it")
        named = {*(self.attributes or ()), *bins}
        said += leave_out_several(told, chosen, {*named, self.group or "", self.split or ""})
        used = {
            *(chosen.columns if chosen is not None else ()),
            self.group,
            *((self.split or SPLIT,) if given is not None else ()),
        }
        left = {name: cells for name, cells in columns.items() if name not in {*self.ignore, *(used - named)}}
        asked = left.keys() - {*source.classes} if self.attributes is None else set()
        check_says_no_parts({name: left[name] for name in left if name in asked})
        attributes = attributes_of(left, self.attributes, bins, "leave out with --ignore")
        scheme, parts, about = self._split(columns, names, rows, digests, given, seed)
        nothing = [] if attributes.values or captions else ["there are no attributes and no captions: pictures alone"]
        groups = None if self.group is None else together(columns[self.group])
        return _Contents(rows, attributes, captions, scheme, parts, groups, [*attributes.said, *said, *nothing, *about])

    def _given_parts(self, source: Source, rows: NDArray[np.int64], columns: dict[str, Any]) -> list[str] | None:
        """The part of each example, where folders or a column say so."""
        column = self.split or (SPLIT if SPLIT in columns and SPLIT not in self.ignore else None)
        by_folder = [source.parts[row] for row in rows.tolist()] if source.parts is not None else None
        if column is None:
            return by_folder
        parts = parts_of_column(column, columns[column], [source.names[row] for row in rows.tolist()])
        if by_folder is not None and by_folder != parts:
            raise DataError(
                f"the column '{column}' and the folders of {source.where} divide differently; leave the column out "
                f"with --ignore {typed(column)}{source.or_else}"
            )
        return parts

    def _split(
        self,
        columns: dict[str, Any],
        names: list[str],
        rows: NDArray[np.int64],
        digests: NDArray[np.uint8] | None,
        given: list[str] | None,
        seed: int,
    ) -> tuple[tuple[str, str], Parts, list[str]]:
        """The one scheme of a file: name and meaning, parts, and what to say about it."""
        labels = [columns[self.group]] if self.group is not None else []
        same: list[Any] = (
            [None] * len(rows) if digests is None else [digests[row, 0].tobytes() for row in rows.tolist()]
        )
        alike, groups = together(same), together(*labels, same)
        doubles = len(same) - len(set(same)) if digests is not None else 0
        said = [f"  {doubles:,} pictures are there twice, byte for byte, and stay in one part"] if doubles else []
        stay = f"no {self.group} is in two parts" if self.group is not None else ""
        if given is None:
            parts, name = parts_drawn(groups, seed), "iid"
            meaning = f"85/5/10 % at random{f'; {stay}' if stay else ''}"
        else:
            parts, more = parts_as_given(given, together(*labels) if labels else None, alike, groups, names, seed)
            said, name, meaning = [f"  {one}" for one in more], "given", "; ".join(["as the source divides", *more])
        counts = ", ".join(f"{part} {len(parts[part]):,}" for part in PARTS)
        return (name, meaning), parts, [f"split '{name}' ({meaning.split(';')[0]}): {counts}", *said]

    def _write(
        self,
        path: Path,
        source: Source,
        contents: _Contents,
        seed: int,
        workers: Workers,
        chunk: int,
        command: str,
    ) -> Generator[Progress, None, None]:
        from mmgen.artifacts import DatasetWriter

        seen = self._seen
        assert seen is not None, "nobody has looked"
        rows, attributes, captions, fitting = contents.rows, contents.attributes, contents.captions, self.fitting
        settings = {"recipe": self.name, **self.model_dump(mode="json"), **self.identity()}
        settings["sources_sha256"] = source.sha256(rows, seen.digests)
        unreadable = [source.names[row] for row in seen.unreadable]
        facts = {"unreadable": len(unreadable), "unreadable_images": unreadable[:_RECORDED]}
        with DatasetWriter(path, len(rows), settings, seed, command, facts=facts) as writer:
            for image in source.pictures:
                writer.add_image(image, fitting.shape, "bytes")
            if attributes.values:
                writer.add_attributes("attributes", attributes.values)
            if captions is not None:
                writer.add_text("text", captions.vocabulary, captions.length)
            factors = add_factors(writer, seen.sizes[rows, 0], attributes.numbers, contents.groups)
            writer.add_splits(contents.scheme[0], **contents.parts, meaning=contents.scheme[1])
            codes = attributes.table
            calls = ((files, fitting) for _, files in source.chunks(rows.tolist(), chunk))
            start = 0
            try:
                for pixels, digests in in_order(fitted_rows, calls, workers):
                    some = slice(start, start + len(digests))
                    if (digests != seen.digests[rows[some]]).any():
                        raise CannotReadError("another file is there now")
                    stored: dict[str, NDArray[Any]] = dict(zip(source.pictures, pixels, strict=True))
                    stored |= {"attributes": codes[some]} if codes is not None else {}
                    stored |= {"text": captions.codes[some]} if captions is not None else {}
                    writer.write(start, stored, {name: found[some] for name, found in factors.items()})
                    start += len(digests)
                    yield Progress(start)
            except CannotReadError as error:
                raise DataError(
                    f"a picture in {source.where} has changed meanwhile ({error}); run the same command again"
                ) from None
