"""Typed, nested settings: reading, merging and checking; a message lists all errors, with suggestions."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from mmgen.core.errors import SettingsError, UsageError, clip, find_nearest_name, format_unknown_name, reason_of
from mmgen.core.parsing import MAX_DEPTH, MalformedError, NotTomlError, parse_toml, printable, read_text
from mmgen.settings import presets

T = TypeVar("T")

_LONGEST_VALUE = 120
"""Characters of a refused value that a message repeats."""


class Settings(BaseModel):
    """Base class of settings: immutable pydantic models that refuse unknown keys; field docstrings are help texts."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def _known_keys(schema: Any, location: tuple[Any, ...]) -> list[str]:
    """Return the names of the fields of the inner model at ``location`` in a nested settings model."""
    current: Any = schema
    for part in location:
        current = _bare_type(current)
        if get_origin(current) in (tuple, list, dict):  # ``part`` is the position or key of an item
            current = [kind for kind in get_args(current) if kind is not ...][-1]
            continue
        fields = getattr(current, "model_fields", None) or getattr(current, "__pydantic_fields__", {})
        if part not in fields:
            return []
        current = fields[part].annotation
    current = _bare_type(current)
    fields = getattr(current, "model_fields", None) or getattr(current, "__pydantic_fields__", {})
    return sorted(fields)


def _bare_type(kind: Any) -> Any:
    """Remove annotations and ``| None`` from a type."""
    while get_origin(kind) in (Annotated, Union, UnionType):
        kind = next((one for one in get_args(kind) if one is not NoneType), kind)
    return kind


def _dotted_name(location: Iterable[Any]) -> str:
    """Format the path to a setting as its dotted name, such as "training.steps"; positions in lists count from 1.

    Example:
        >>> _dotted_name(["scale", "cpu", "stage", 0, "command"])
        'scale.cpu.stage[1].command'
    """
    return "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def format_value_fault(name: str, fault: Mapping[str, Any]) -> str:
    """Format one of pydantic's errors about a setting as "NAME got VALUE, expected RANGE"."""
    reason, value = fault["msg"].split(", unable to parse")[0], clip(repr(fault.get("input")), _LONGEST_VALUE)
    if fault["type"] in ("tuple_type", "list_type"):
        return f"{name} got {value}, expected a list"
    if fault["type"] in ("too_short", "too_long"):
        few = fault["type"] == "too_short"
        number = fault["ctx"]["min_length" if few else "max_length"]
        return f"{name} got {value}, expected a list of at {'least' if few else 'most'} {number:,}"
    if fault["type"] in ("model_type", "model_attributes_type", "dict_type", "dataclass_type", "mapping_type"):
        return f"{name} got {value}, expected a table of settings"
    if fault["type"] in ("union_tag_invalid", "union_tag_not_found"):
        names = fault["ctx"].get("expected_tags", "")
        return f"{name} got {value}, expected a table with a name{f', one of {names}' if names else ''}"
    if reason.startswith("Input should be "):
        return f"{name} got {value}, expected {reason.removeprefix('Input should be ')}"
    return f"{name}: {reason[:1].lower()}{reason[1:]}, got {value}"


def setting_names(schema: Any, prefix: str = "", depth: int = 4) -> list[str]:
    """List the dotted names of all settings in a nested settings model, such as "training.steps"."""
    kind = _bare_type(schema)
    fields = getattr(kind, "model_fields", None) or getattr(kind, "__pydantic_fields__", {})
    if not depth or not fields:
        return [prefix]
    inside = [(f"{prefix}.{name}".removeprefix("."), field.annotation) for name, field in fields.items()]
    return [leaf for name, annotation in inside for leaf in setting_names(annotation, name, depth - 1)]


def _likely_setting(name: str, setting_names: Sequence[str]) -> str:
    """Return the dotted name of the setting whose last part is ``name``; "" without one."""
    matches = [leaf for leaf in setting_names if leaf.rpartition(".")[2] == name]
    return min(matches, key=lambda leaf: (leaf.count("."), leaf), default="")


def validate(schema: type[T], values: Mapping[str, Any], prefix: str = "", further_names: Sequence[str] = ()) -> T:
    """Build and check an object of class ``schema`` (a pydantic model or dataclass) from plain values.

    Args:
        schema: Class to build.
        values: Nested plain values, as from a TOML file.
        prefix: Prefix of the keys in messages ("objective").
        further_names: Dotted names of settings that a message may suggest, besides those of ``schema``.

    Raises:
        SettingsError: Keys or values are wrong; the message lists all, with the nearest known key for a misspelt one.
    """
    try:
        return TypeAdapter(schema).validate_python(dict(values))
    except ValidationError as error:
        faults = []
        places = [tuple(fault["loc"]) for fault in error.errors()]
        for fault in error.errors():
            location = tuple(fault["loc"])
            if fault["type"] == "too_short" and any(place[:-1][: len(location)] == location for place in places):
                continue  # the message lists the faults of its items
            room = (prefix, *location[:-1]) if prefix else location[:-1]
            key = _dotted_name((*room, *location[-1:]))
            if fault["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
                known, name = _known_keys(schema, location[:-1]), str(location[-1])
                near = find_nearest_name(name, known)
                meant = (
                    _dotted_name((*room, near))
                    if near
                    else _likely_setting(name, [*setting_names(schema, prefix), *further_names])
                )
                faults.append(
                    format_unknown_name("setting", key, [_dotted_name((*room, one)) for one in known], suggestion=meant)
                )
            elif fault["type"] == "missing":
                faults.append(f"setting '{key}' is missing")
            elif fault["type"] == "value_error":  # a validator's own words
                words = str(fault["ctx"]["error"])
                faults.append(f"setting '{key}': {words}" if key else words)  # of several settings together: no key
            else:
                faults.append(format_value_fault(f"setting '{key}'", fault))
        raise SettingsError("; ".join(faults)) from None


def build_member(room: Any, values: Mapping[str, Any], prefix: str, further_names: Sequence[str] = ()) -> Any:
    """Build an object, such as an objective, from ``{"name": ..., **settings}``; ``room`` is the registry of its class.

    Raises:
        UsageError: The room has no such member.
        SettingsError: The settings are not those of the member.
    """
    options = dict(values)
    name = options.pop("name", None)
    if not isinstance(name, str):
        fault = "is missing" if name is None else f"got {clip(repr(name), _LONGEST_VALUE)}, expected a name"
        raise SettingsError(f"setting '{prefix}.name' {fault}; give one of {', '.join(room.names())}")
    return validate(room.get(name), options, prefix, further_names)


def to_json_values(value: Any) -> Any:
    """Convert settings (a pydantic model or dataclass) to plain values that JSON can hold."""
    return TypeAdapter(type(value)).dump_python(value, mode="json")


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge nested settings: return ``base`` with the values of ``changes``, which win.

    A table that names another member replaces the one below it: the settings of one member are not those of another.

    Example:
        >>> merge({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}})
        {'a': {'x': 1, 'y': 3}}
        >>> merge({"net": {"name": "mlp", "hidden": 8}}, {"net": {"name": "dcgan"}})
        {'net': {'name': 'dcgan'}}
    """
    if "name" in base and changes.get("name", base["name"]) != base["name"]:
        return dict(changes)
    result = dict(base)
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merge(result[key], value)
        else:
            result[key] = value
    return result


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Parse arguments of ``--set``, such as "training.steps=1000", to nested settings; values are TOML or bare words.

    Example:
        >>> parse_assignments(["training.steps=100", "objective.name=telbo"])
        {'training': {'steps': 100}, 'objective': {'name': 'telbo'}}
    """
    result: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        parts = key.strip().split(".")
        if not equals or not key.strip() or len(parts) > MAX_DEPTH:
            raise UsageError(
                f"--set got '{printable(assignment, 100)}', expected room.key=value, for example training.steps=1000"
            )
        nested = _parse_value(key.strip(), text)
        for part in reversed(parts):
            nested = {part: nested}
        result = merge(result, nested)
    return result


def nest_dotted_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert settings by dotted name, such as "training.steps", to nested tables.

    Example:
        >>> nest_dotted_names({"training.steps": 100, "objective": {"beta": 0.5}})
        {'training': {'steps': 100}, 'objective': {'beta': 0.5}}
    """
    result: dict[str, Any] = {}
    for key, value in values.items():
        part: Any = nest_dotted_names(value) if isinstance(value, Mapping) else value
        for name in reversed(str(key).split(".")):
            part = {name: part}
        result = merge(result, part)
    return result


def _parse_value(key: str, text: str) -> Any:
    """Parse the value ``text`` of one ``--set key=text`` as TOML; a bare word is a string."""
    try:
        values = parse_toml(f"value = {text}")
    except NotTomlError:
        return text
    except MalformedError as error:
        raise UsageError(
            f"--set got '{printable(f'{key}={text}', 100)}', but {error}; give a valid TOML value"
        ) from None
    if values.keys() != {"value"}:  # a line break, and another assignment after it
        raise UsageError(
            f"--set got '{printable(f'{key}={text}', 100)}', expected one value; give --set once for each setting"
        )
    return values["value"]


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file of settings to nested tables.

    Raises:
        SettingsError: The file cannot be read or is not TOML.
    """
    try:
        return parse_toml(read_text(path))
    except OSError as error:
        raise SettingsError(f"cannot read the settings file {path}: {reason_of(error)}; check the path") from None
    except MalformedError as error:
        raise SettingsError(f"the settings file {path} is not valid TOML: {error}; fix the file") from None


def find_preset(name: str, recipe: str = "", on_cpu: bool = False) -> str:
    """Return the full name of a preset; a name without a dataset, ``vedantam/telbo``, means its variant for ``recipe``.

    Args:
        name: Full or short name.
        recipe: Recipe of the dataset to train on ("mnist-a").
        on_cpu: Whether to prefer the variant for CPUs.

    Raises:
        UsageError: There is no such preset.
    """
    variants = [f"{name}-{recipe}-cpu", f"{name}-{recipe}"] if on_cpu else [f"{name}-{recipe}", f"{name}-{recipe}-cpu"]
    for candidate in [name, *variants]:
        if candidate in presets.preset_names():
            return candidate
    raise UsageError(format_unknown_name("preset", name, presets.preset_names(), list_command="mmgen list preset"))
