"""The base of recipes of the user's own pictures: settings, survey, and the dataset file."""

from abc import abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mmgen.artifacts.elements import NAME
from mmgen.core.errors import DataError
from mmgen.core.parsing import printable
from mmgen.core.pictures import Background, Fit, Fitting
from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._base import Recipe, Workers
from mmgen.data_recipes._own._attributes import Attributes, build_attributes, check_columns, parse_bins
from mmgen.data_recipes._own._captions import (
    Captions,
    Records,
    choose_captions,
    drop_multi_valued_columns,
    encode_captions,
    select_records,
)
from mmgen.data_recipes._own._files import list_examples, shell_quoted
from mmgen.data_recipes._own._parts import (
    check_no_part_columns,
    complete_user_parts,
    draw_parts,
    group_by_labels,
    parts_of_column,
)
from mmgen.data_recipes._own._source import Inspection, Source, inspect_pictures, usual_size
from mmgen.data_recipes._streams import PARTS, Parts

if TYPE_CHECKING:
    from mmgen.artifacts import DatasetWriter


_LEAST = 20  # pictures
_CHUNK = 128
SPLIT = "split"
_RECORDED = 100  # unreadable pictures that the file names


@dataclass
class _Described:
    """What tables and folders say of n pictures.

    Attributes:
        names: Their names [n].
        labels: Their attributes.
        captions: Their captions; None without any.
        user_parts: The user's part of each [n]; None without parts.
        group_cells: The group that each is in [n]; None without groups.
        notes: Lines for people.
    """

    names: list[str]
    labels: Attributes
    captions: Captions | None
    user_parts: list[str] | None
    group_cells: list[str | None] | None
    notes: list[str]


@dataclass(frozen=True)
class Survey:
    """Attributes, captions, parts, pixels and notes of n pictures, from which their dataset can be made.

    Attributes:
        rows: Examples of the source that are used, int64 [n].
        pictures: Pixels, hashes, sizes and errors of all pictures of the source.
        images: The image modalities, in their order.
        labels: Attributes of the n examples.
        captions: Their captions; None without any.
        scheme: Name and meaning of the split.
        parts: Rows of the n examples by part.
        groups: Group of each example, int64 [n]; None without groups.
        notes: Lines for people.
        unreadable: Names of examples whose pictures cannot be read.
        sha256: Hash of pictures and table; the dataset's header has it as ``sources_sha256``.
    """

    rows: NDArray[np.int64]
    pictures: Inspection
    images: tuple[str, ...]
    labels: Attributes
    captions: Captions | None
    scheme: tuple[str, str]
    parts: Parts
    groups: NDArray[np.int64] | None
    notes: list[str]
    unreadable: list[str] = field(default_factory=list)
    sha256: str = ""

    @property
    def number(self) -> int:
        """Number of examples, n."""
        return len(self.rows)

    @property
    def side(self) -> int:
        """Median of the pictures' shorter sides before they are fitted, in pixels."""
        return int(np.median(self.pictures.sizes[self.rows].min(-1)))

    @property
    def warnings(self) -> list[str]:
        """The notes on what is not used, is taken as unknown, or can hardly be meant."""
        return [line for line in self.notes if line.startswith(("left out: ", "taken as unknown: ", "warning: "))]

    @property
    def attributes(self) -> dict[str, list[str]]:
        """Names of values by attribute."""
        return self.labels.values

    @property
    def codes(self) -> NDArray[np.uint8] | None:
        """Attributes of each example, uint8 [n, A], 255 unknown; None without attributes."""
        return self.labels.table


class OwnRecipe(Recipe):
    """Base of recipes for datasets of the user's own pictures, with tables about them."""

    attributes: tuple[str, ...] | None = None
    """Columns that become attributes; by default all with 2 to 255 different values, with three pictures a value
    on average."""

    caption: str | None = None
    """Column of captions in free text; by default one named text or caption, or those named caption_0 and so on."""

    image_column: tuple[str, ...] = ()
    """Columns of pictures, each an image modality; by default all recognised ones."""

    size: Annotated[int, Field(ge=8, le=1024)] | None = None
    """Height and width in pixels that pictures are made; by default 64, or 32 where the shorter side (the median) has
    fewer than 48."""

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
    """Words of cells for an unknown value, in place of NA, N/A, NaN, None and null."""

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

    def survey(self, seed: int, workers: Workers) -> Work[Survey]:
        source = self._open_checked_source(seed)
        return Work(f"looking at {source.where}", len(source), "picture", lambda: self._look_at(source, seed, workers))

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
        """Return work that writes the dataset file and returns ``path``; a survey has looked at the pictures before."""
        source = None if survey is not None else self._open_checked_source(seed)

        def write_dataset() -> Generator[Progress, None, Path]:
            found = survey
            if source is not None:
                found = yield from self._look_at(source, seed, workers)
            assert found is not None, "without a survey there is a source"
            yield from self._write_dataset(path, found, seed, chunk, command)
            return path

        number = survey.number if survey is not None else len(source or ())
        return Work(f"making {self.name}", number, "picture", write_dataset)

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
            self._make_split(self._describe(source, range(number), seed), range(number), seed)
        except BaseException:
            source.close()
            raise
        return source

    def _look_at(self, source: Source, seed: int, workers: Workers) -> Generator[Progress, None, Survey]:
        """Return the survey of the readable pictures; refuse unreadable ones unless ``drop_unreadable`` is set."""
        try:
            size = self.size or usual_size(source.median_side())
            fitting = Fitting(size, size, self.fit, self.grey, self.background)
            pictures = yield from inspect_pictures(source, fitting, workers)
        finally:
            source.close()
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
        found = self._describe(source, rows.tolist(), seed)
        digests = [pictures.digests[row, 0].tobytes() for row in rows.tolist()]
        scheme, parts, split_notes = self._make_split(found, digests, seed)
        kinds = [f"kinds of pictures: {', '.join(source.pictures)}"] if len(source.pictures) > 1 else []
        notes = [*pictures.notes(fitting), *kinds, *found.notes, *split_notes]
        if unreadable:
            notes.append(f"left out: {len(unreadable):,} pictures that cannot be read, {list_examples(unreadable)}")
        return Survey(
            rows, pictures, tuple(source.pictures), found.labels, found.captions, scheme, parts,
            None if found.group_cells is None else group_by_labels(found.group_cells), notes,
            [source.names[row] for row in pictures.unreadable], source.sha256(rows, pictures.digests),
        )  # fmt: skip

    def _describe(self, source: Source, rows: Sequence[int], seed: int) -> _Described:
        """Return attributes, captions and the user's parts of the examples ``rows`` [n]."""
        records = select_records(source, rows, self.unknown, self.ignore)
        columns = records.columns
        bins = parse_bins(self.bins)
        check_columns("--attributes", self.attributes or (), columns)
        check_columns("--bins", tuple(bins), columns)
        check_columns("--ignore", self.ignore, columns)
        for option, name in (("--caption", self.caption), ("--group", self.group), ("--split", self.split)):
            check_columns(option, () if name is None else (name,), columns)
        notes = [*records.notes, *source.notes, *(f"left out: {reason}" for reason in source.left_out)]
        notes += [f"left out: column '{name}', as --ignore says" for name in self.ignore]
        user_parts = self._user_parts(source, rows, records)
        named = {*(self.attributes or ()), *bins}
        captions, of_captions, caption_notes = self._choose_captions(records, named, seed)
        used = {*of_captions, self.group, *((self.split or SPLIT,) if user_parts is not None else ())}
        remaining = {name: cells for name, cells in columns.items() if name not in {*self.ignore, *(used - named)}}
        if self.attributes is None:
            check_no_part_columns({name: remaining[name] for name in remaining if name not in source.classes})
        labels = build_attributes(remaining, self.attributes, bins, "leave out with --ignore")
        notes = [*labels.notes, *caption_notes, *notes]
        if not labels.values and not captions:
            notes.append("there are no attributes and no captions: pictures alone")
        group_cells = None if self.group is None else columns[self.group]
        return _Described(records.names, labels, captions, user_parts, group_cells, notes)

    def _choose_captions(
        self, records: Records, named: set[str], seed: int
    ) -> tuple[Captions | None, list[str], list[str]]:
        """Return the captions, the columns that hold them, and notes."""
        excluded = {*self.ignore, *(self.attributes or ())}
        choice = choose_captions(records, self.caption, excluded, self.most_captions, seed)
        dropped = drop_multi_valued_columns(records, choice, {*named, self.group or "", self.split or ""})
        if choice is None:
            return None, [], dropped
        if not any(choice.texts):
            return None, choice.columns, [f"left out: column '{choice.name}': nothing is said in it", *dropped]
        captions = encode_captions(choice.name, choice.texts, self.max_words, self.min_count)
        return captions, choice.columns, [*captions.notes, *choice.notes, *dropped]

    def _user_parts(self, source: Source, rows: Sequence[int], records: Records) -> list[str] | None:
        """Return the part of each example that folders or a column state; None without either."""
        column = self.split or (SPLIT if SPLIT in records.columns and SPLIT not in self.ignore else None)
        by_folder = [source.parts[row] for row in rows] if source.parts is not None else None
        if column is None:
            return by_folder
        advice = f"leave the column out with --ignore {shell_quoted(column)}"
        parts = parts_of_column(column, records.columns[column], records.names, advice)
        if by_folder is not None and by_folder != parts:
            raise DataError(
                f"the column '{column}' and the folders of {source.where} put pictures into different parts (train, "
                f"val, test); {advice}{source.or_else}"
            )
        return parts

    def _make_split(
        self, found: _Described, digests: Sequence[Any], seed: int
    ) -> tuple[tuple[str, str], Parts, list[str]]:
        """Return the file's split scheme: its name and meaning, its parts, and notes."""
        labels = [found.group_cells] if found.group_cells is not None else []
        duplicates, groups = group_by_labels(digests), group_by_labels(*labels, digests)
        doubles = len(digests) - len(set(digests))
        notes = [f"  {doubles:,} pictures are there twice, byte for byte, and stay in one part"] if doubles else []
        stay = f"no {self.group} is in two parts" if self.group is not None else ""
        if found.user_parts is None:
            parts, name = draw_parts(groups, seed), "iid"
            meaning = f"85/5/10 % at random{f'; {stay}' if stay else ''}"
        else:
            own_groups = group_by_labels(*labels) if labels else None
            parts, user_notes = complete_user_parts(found.user_parts, own_groups, duplicates, groups, found.names, seed)
            notes, name = [f"  {one}" for one in user_notes], "given"
            meaning = "; ".join(["as the source divides", *user_notes])
        counts = ", ".join(f"{part} {len(parts[part]):,}" for part in PARTS)
        return (name, meaning), parts, [f"split '{name}' ({meaning.split(';')[0]}): {counts}", *notes]

    def _write_dataset(
        self, path: Path, survey: Survey, seed: int, chunk: int, command: str
    ) -> Generator[Progress, None, None]:
        from mmgen.artifacts import DatasetWriter

        labels, captions, codes = survey.labels, survey.captions, survey.codes
        settings = {"recipe": self.name, **self.model_dump(mode="json"), **self.source_settings()}
        shape = survey.pictures.pixels.shape[2:]
        settings |= {"size": shape[-1], "sources_sha256": survey.sha256}
        if see_through := survey.pictures.traits["see-through"]:
            settings["see_through"] = see_through
        facts = {"unreadable": len(survey.unreadable), "unreadable_images": survey.unreadable[:_RECORDED]}
        with DatasetWriter(path, survey.number, settings, seed, command, facts=facts) as writer:
            for image in survey.images:
                writer.add_image(image, shape, "bytes")
            if labels.values:
                writer.add_attributes("attributes", labels.values)
            if captions is not None:
                writer.add_text("text", captions.vocabulary, captions.length, captions=captions.most)
            factors = _add_factors(writer, survey)
            writer.add_splits(survey.scheme[0], **survey.parts, meaning=survey.scheme[1])
            for start in range(0, survey.number, chunk):
                some = slice(start, start + chunk)
                pixels = survey.pictures.pixels[survey.rows[some]]
                stored: dict[str, NDArray[Any]] = {name: pixels[:, n] for n, name in enumerate(survey.images)}
                stored |= {"attributes": codes[some]} if codes is not None else {}
                stored |= {"text": captions.codes[some]} if captions is not None else {}
                writer.write(start, stored, {name: column[some] for name, column in factors.items()})
                yield Progress(start + len(pixels))


def _add_factors(writer: "DatasetWriter", survey: Survey) -> dict[str, NDArray[Any]]:
    """Declare sizes, numbers behind attributes and groups in the dataset file; return their columns by name."""
    factors: dict[str, NDArray[Any]] = {}
    for name, column in zip(("width", "height"), survey.pictures.sizes[survey.rows, 0].T, strict=True):
        writer.add_factor(name, np.int32, "pixel", f"{name} of the picture before it was fitted")
        factors[name] = column
    for place, (attribute, values) in enumerate(survey.labels.numbers.items()):
        # A factor's name has fewer letters to choose from than an attribute's.
        is_free = NAME.match(attribute) and attribute not in ("width", "height", "source_group")
        name = attribute if is_free else f"number_{place}"
        writer.add_factor(name, np.float64, "", f"the number behind the attribute {attribute}; NaN unknown")
        factors[name] = values
    if survey.groups is not None:
        writer.add_factor("source_group", np.int32, "", "number of the group, of which standard errors are")
        factors["source_group"] = survey.groups
    return factors
