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

from pydantic import ConfigDict, Field

from mmgen.core.errors import SettingsError, clip
from mmgen.settings.config import Settings, merge, validate
from mmgen.settings.registry import unknown_name

__all__ = ["filled_in"]

_MOST_ROWS = 2000
_MOST_LETTERS = 20_000
_NAME = re.compile(r"\{([a-z_]\w*)\}", re.ASCII)
_OF_STAGE = ("why", "command", "makes", "of", "once")
"""Keys of a stage that are no settings of its command."""

_Values = dict[str, Any]
_Scalar = str | int | float


class _Part(Settings):
    """A stage, row or column of an experiment file before its names are filled in."""

    model_config = ConfigDict(extra="allow")

    each: Annotated[list[str], Field(max_length=4)] | str = ()  # type: ignore[assignment]  # none
    scale: list[str] | str | None = None
    at: dict[str, _Values] = Field(default_factory=dict)

    @property
    def axes(self) -> list[str]:
        return [self.each] if isinstance(self.each, str) else list(self.each)

    def values(self, size: str | None) -> _Values | None:
        """Return the values at a scale; None for a part of other scales only."""
        own = dict(self.model_extra or {})
        if size is None or self.scale is None:
            return merge(own, self.at.get(size or "", {}))
        scales = [self.scale] if isinstance(self.scale, str) else self.scale
        return merge(own, self.at.get(size, {})) if size in scales else None


class _Table(Settings):
    model_config = ConfigDict(extra="allow")

    every: _Values = Field(default_factory=dict)
    column: list[_Part]
    row: list[_Part]


class _Scale(Settings):
    about: str
    folder: str
    seeds: Any = ()
    let: _Values = Field(default_factory=dict)


class _File(Settings):
    """An experiment file before its rows are written out."""

    title: str
    source: str
    dataset: str
    usual: bool = False
    let: _Values = Field(default_factory=dict)
    each: dict[str, dict[str, _Part] | list[_Scalar] | Annotated[int, Field(ge=1, le=1000)]] = Field(
        default_factory=dict
    )
    table: list[_Table] = Field(default_factory=list)
    scale: dict[str, _Scale]
    stage: list[_Part]

    def rows(self, parts: Iterable[_Part], names: _Values, size: str | None) -> Iterator[_Values]:
        """Yield stages, rows or columns, once for each row of their axes; neighbours of equal axes go row by row."""
        for axes, group in groupby(parts, key=lambda part: part.axes):
            together = list(group)
            for row in self._product(axes, size):
                for own in filter(None, (part.values(size) for part in together)):
                    local = _with(names, row)
                    common = local.get(str(own.get("command")), {})  # settings of all stages of this command
                    yield merge(_fill(common, local) if isinstance(common, Mapping) else {}, _fill(own, local))

    def _product(self, axes: list[str], size: str | None) -> list[_Values]:
        """Return the rows of several axes, the last one changing fastest; one empty row without axes."""
        found = [self._axis(axis, size) for axis in axes]
        if math.prod(map(len, found)) > _MOST_ROWS:
            raise SettingsError(f"{' times '.join(axes)} are more than {_MOST_ROWS:,} rows; write fewer")
        return [dict(item for row in rows for item in row.items()) for rows in product(*found)]

    def _axis(self, name: str, size: str | None) -> list[_Values]:
        if name not in self.each:
            raise SettingsError(unknown_name("axis", name, list(self.each)))
        parts = self.each[name]
        if isinstance(parts, dict):
            return [{name: key, **row} for key, part in parts.items() if (row := part.values(size)) is not None]
        return [{name: value} for value in (range(parts) if isinstance(parts, int) else parts)]


def filled_in(values: Mapping[str, Any]) -> _Values:
    """Return the values of an experiment file with every row written out, for :class:`~mmgen.experiments.Plan`."""
    file = validate(_File, values)
    plan: _Values = _fill(file.model_dump(include={"title", "source", "dataset", "usual"}), file.let)
    plan["table"] = [
        _fill(table.model_extra, file.let)
        | {
            "column": [_fill(table.every, file.let) | column for column in file.rows(table.column, file.let, None)],
            "row": list(file.rows(table.row, file.let, None)),
        }
        for table in file.table
    ]
    plan["scale"] = {size: _scale(file, size, scale) for size, scale in file.scale.items()}
    return plan


def _scale(file: _File, size: str, scale: _Scale) -> _Values:
    names = _with(file.let, scale.let)
    stages: list[_Values] = []
    for stage in file.rows(file.stage, names, size):
        made = [str(one.get("makes")) for one in stages]
        settings = {key: value for key, value in stage.items() if key not in _OF_STAGE}
        if isinstance(settings.get("files"), list):
            settings["files"] = [file for one in settings["files"] for file in _matching(str(one), made)]
        stages.append({key: stage[key] for key in _OF_STAGE if key in stage} | {"settings": settings})
    filled: _Values = _fill(scale.model_dump(exclude={"let"}), names)
    return filled | {"stage": stages}


def _with(names: _Values, more: _Values) -> _Values:
    """Return names with those of a row or a scale, whose text may have the names so far; tables are merged."""
    result = dict(names)
    for name, value in more.items():
        before = result.get(name)
        if not isinstance(value, Mapping):
            result[name] = _fill(value, names)
        else:
            result[name] = merge(before, value) if isinstance(before, Mapping) else value
    return result


def _matching(file: str, made: list[str]) -> list[str]:
    """Return the files of earlier stages that match a name with an asterisk."""
    return [one for one in made if fnmatchcase(one, file)] if "*" in file else [file]


def _fill(value: Any, names: _Values) -> Any:
    """Return a value with names in braces replaced; text that is one name alone becomes its value, of any type."""
    if isinstance(value, Mapping):
        return {key: _fill(inner, names) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_fill(inner, names) for inner in value]
    if not isinstance(value, str):
        return value
    if unknown := next((name for name in _NAME.findall(value) if name not in names), None):
        raise SettingsError(
            f"{clip(repr(value), 120)} has the name {{{unknown}}}, which neither [let] nor a row defines; define it"
        )
    if alone := _NAME.fullmatch(value):
        return names[alone[1]]
    filled = _NAME.sub(lambda found: str(names[found[1]]), value)
    if len(filled) > _MOST_LETTERS:
        raise SettingsError(f"{clip(repr(value), 120)} has more than {_MOST_LETTERS:,} letters when it is filled in")
    return filled
