"""The matrix of an experiment file: stages and rows that are written once, and stand for every model, run and scale.

An experiment file defines names in ``[let]``, ``[scale.cpu.let]`` and, for the row VAE of the axis model,
``[each.model.VAE]``; text of its stages and tables has them in braces. A stage with ``each = "model"`` stands for one
stage a row, whose name is ``{model}``; an axis may be a list of values or a number of runs, too. A name that is a table
and called like a command (``[let.train]``) holds settings of all its stages; ``at.cpu`` holds what differs at a scale.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import groupby, product
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, PrivateAttr, field_validator

from mmgen.commands import stage_names
from mmgen.core.errors import SettingsError, clip, format_unknown_name
from mmgen.settings.config import Settings, merge, validate

_MOST_ROWS = 2000
_MOST_RUNS = 1000
_USUAL = ("cpu", "paper")
"""Scales that most lists have: one may be named in a list without it."""
_MOST_AXES = 4
_MOST_LETTERS = 20_000
_MOST_FILLED = 2_000_000  # letters, of all that is filled in
_NAME = re.compile(r"\{([a-z_]\w*)\}", re.ASCII)
_OF_STAGE = ("why", "command", "makes", "of", "once", "alone")
"""Keys of a stage that are no settings of its command."""

_Values = dict[str, Any]


def _axis_names(value: Any) -> tuple[str, ...]:
    """Return the names of a row's axes, given as one name or a list."""
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(one, str) for one in names) or len(names) > _MOST_AXES:
        raise ValueError(f"got {clip(repr(value), 120)}, expected the name of an axis, or of {_MOST_AXES} at most")
    return tuple(names)


class _RowTemplate(Settings):
    """A stage, row or column of an experiment file whose {names} are not filled in yet."""

    model_config = ConfigDict(extra="allow")

    each: Annotated[tuple[str, ...], BeforeValidator(_axis_names)] = ()
    scale: list[str] | str | None = None
    at: dict[str, _Values] = Field(default_factory=dict)

    def values(self, size: str | None) -> _Values | None:
        """Return the template's values for a scale; None if it belongs to other scales only."""
        own = dict(self.model_extra or {})
        if size is None or self.scale is None:
            return merge(own, self.at.get(size or "", {}))
        scales = [self.scale] if isinstance(self.scale, str) else self.scale
        return merge(own, self.at.get(size, {})) if size in scales else None


def _parse_axis(rows: Any, where: str) -> dict[str, _RowTemplate] | list[Any]:
    """Parse the entries of an axis: tables by name, or a list of values."""
    if isinstance(rows, dict) and rows and all(isinstance(row, dict) for row in rows.values()):
        return {name: validate(_RowTemplate, row, f"{where}.{name}") for name, row in rows.items()}
    if isinstance(rows, list) and rows and all(isinstance(row, str | int | float) for row in rows):
        return rows
    if isinstance(rows, int) and not isinstance(rows, bool) and 1 <= rows <= _MOST_RUNS:
        return list(range(rows))
    raise SettingsError(
        f"setting '{where}' got {clip(repr(rows), 120)}, expected a table with a row for each name, a list of values, "
        f"or a number of runs from 1 to {_MOST_RUNS:,}"
    )


class _Table(Settings):
    """A table of an experiment file whose rows and columns are not written out yet."""

    model_config = ConfigDict(extra="allow")

    every: _Values = Field(default_factory=dict)
    column: list[_RowTemplate]
    row: list[_RowTemplate]


class _Scale(Settings):
    """The stages of one scale of an experiment file, not written out yet."""

    about: str
    folder: str
    seeds: Any = ()
    let: _Values = Field(default_factory=dict)


class _File(Settings):
    """An experiment file as parsed, before stages, rows and columns are repeated over axes."""

    title: str
    source: str
    dataset: str
    usual: bool = False
    let: _Values = Field(default_factory=dict)
    each: dict[str, Any] = Field(default_factory=dict)
    table: list[_Table] = Field(default_factory=list)
    scale: dict[str, _Scale]
    stage: list[_RowTemplate]
    _filled: int = PrivateAttr(0)

    @field_validator("each")
    @classmethod
    def _parse_axes(cls, value: dict[str, Any]) -> dict[str, Any]:
        return {name: _parse_axis(rows, f"each.{name}") for name, rows in value.items()}

    def rows(self, parts: Iterable[_RowTemplate], names: _Values, size: str | None) -> Iterator[_Values]:
        """Yield one stage, row or column for each row of its axes; neighbours with equal axes alternate."""
        for axes, group in groupby(parts, key=lambda part: part.each):
            together = list(group)
            for row in self._rows_of_axes(axes, size):
                for own in filter(None, (part.values(size) for part in together)):
                    local = self.merge_names(names, row)
                    common = local.get(str(own.get("command")), {})  # settings of all stages of this command
                    yield merge(self.fill(common, local) if isinstance(common, Mapping) else {}, self.fill(own, local))

    def fill(self, value: Any, names: _Values) -> Any:
        """Replace {names} in nested values; text that is one name alone becomes that name's value."""
        if isinstance(value, Mapping):
            return {key: self.fill(inner, names) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.fill(inner, names) for inner in value]
        self._count(value)
        if not isinstance(value, str):
            return value
        for name in _NAME.findall(value):
            if name not in names:
                raise SettingsError(
                    f"{clip(repr(value), 120)} uses {{{name}}}, expected a name that [let] or a row defines; define it"
                )
            self._count(names[name])
        if alone := _NAME.fullmatch(value):
            return names[alone[1]]
        filled = _NAME.sub(lambda found: str(names[found[1]]), value)
        if len(filled) > _MOST_LETTERS:
            raise SettingsError(
                f"{clip(repr(value), 120)} has more than {_MOST_LETTERS:,} letters when it is filled in"
            )
        return filled

    def merge_names(self, names: _Values, new_names: _Values) -> _Values:
        """Return ``names`` updated by ``new_names``, whose texts may use earlier names in braces."""
        result = dict(names)
        for name, value in new_names.items():
            before = result.get(name)
            if not isinstance(value, Mapping):
                result[name] = self.fill(value, names)
            else:
                result[name] = merge(before, value) if isinstance(before, Mapping) else value
        return result

    def _count(self, value: Any) -> None:
        """Count the letters and values of what is filled in; lists of lists of a few lines could be without end."""
        left, filled = [value], self._filled
        while left and filled <= _MOST_FILLED:
            one = left.pop()
            filled += 1 + (len(one) if isinstance(one, str) else 0)
            if isinstance(one, Mapping):
                left += [*one, *one.values()]
            elif isinstance(one, list | tuple):
                left += one
        self._filled = filled
        if filled > _MOST_FILLED:
            raise SettingsError(
                f"got lists and names in braces of more than {_MOST_FILLED:,} letters when they are filled in; write "
                "fewer"
            )

    def _rows_of_axes(self, axes: tuple[str, ...], size: str | None) -> list[_Values]:
        """Return all combinations of the entries of several axes, the last axis changing fastest."""
        found = [self._rows_of_axis(axis, size) for axis in axes]
        if math.prod(map(len, found)) > _MOST_ROWS:
            raise SettingsError(f"{' times '.join(axes)} are more than {_MOST_ROWS:,} rows; write fewer")
        return [dict(item for row in rows for item in row.items()) for rows in product(*found)]

    def _rows_of_axis(self, name: str, size: str | None) -> list[_Values]:
        """Return the values that each entry of one axis gives to names."""
        if name not in self.each:
            raise SettingsError(format_unknown_name("axis", name, list(self.each)))
        parts = self.each[name]
        if isinstance(parts, dict):
            return [{name: key, **row} for key, part in parts.items() if (row := part.values(size)) is not None]
        return [{name: value} for value in parts]


def expand_rows(values: Mapping[str, Any]) -> _Values:
    """Write out all rows of an experiment file, so that :class:`~mmgen.experiments.Plan` can read it."""
    file = validate(_File, values)
    _check_scales(file)
    _check_tables(file, repr(values))
    plan: _Values = file.fill(file.model_dump(include={"title", "source", "dataset", "usual"}), file.let)
    plan["table"] = [
        file.fill(table.model_extra, file.let)
        | {
            "column": [file.fill(table.every, file.let) | column for column in file.rows(table.column, file.let, None)],
            "row": list(file.rows(table.row, file.let, None)),
        }
        for table in file.table
    ]
    plan["scale"] = {size: _expand_scale(file, size, scale) for size, scale in file.scale.items()}
    return plan


def _check_scales(file: _File) -> None:
    """Refuse values for a scale that the file does not define."""
    rows = [row for axis in file.each.values() if isinstance(axis, dict) for row in axis.values()]
    for part in (*file.stage, *rows):
        sizes = [part.scale] if isinstance(part.scale, str) else part.scale or []
        if unknown := next((size for size in (*sizes, *part.at) if size not in (*file.scale, *_USUAL)), None):
            raise SettingsError(format_unknown_name("scale", unknown, list(file.scale)))


def _check_tables(file: _File, text: str) -> None:
    """Refuse what nothing refers to: a table by no command's name, another value by a command's."""
    rows = [row.model_extra or {} for axis in file.each.values() if isinstance(axis, dict) for row in axis.values()]
    for names in (file.let, *(scale.let for scale in file.scale.values()), *rows):
        for name, value in names.items():
            if f"{{{name}}}" in text or isinstance(value, Mapping) == (name in stage_names()):
                continue
            if isinstance(value, Mapping):
                raise SettingsError(format_unknown_name("command", name, stage_names()))
            raise SettingsError(f"{name} got {clip(repr(value), 120)}, expected a table of settings of that command")


def _expand_scale(file: _File, size: str, scale: _Scale) -> _Values:
    """Return the values of a scale, with one stage for each row of its axes."""
    names = file.merge_names(file.let, scale.let)
    stages: list[_Values] = []
    for stage in file.rows(file.stage, names, size):
        made = [str(one.get("makes")) for one in stages]
        settings = {key: value for key, value in stage.items() if key not in _OF_STAGE}
        if isinstance(settings.get("files"), list):
            settings["files"] = [file for one in settings["files"] for file in _match_files(str(one), made)]
        stages.append({key: stage[key] for key in _OF_STAGE if key in stage} | {"settings": settings})
    filled: _Values = file.fill(scale.model_dump(exclude={"let"}), names)
    return filled | {"stage": stages}


def _match_files(file: str, files: list[str]) -> list[str]:
    """Return the files of earlier stages that match a pattern with an asterisk."""
    return [one for one in files if fnmatchcase(one, file)] if "*" in file else [file]
