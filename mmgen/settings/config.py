"""Settings: typed, nested by room; unknown keys are refused with a suggestion, all errors at once."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from mmgen.core.errors import SettingsError, UsageError, clip, reason_of
from mmgen.core.parsing import MAX_DEPTH, Malformed, NotToml, parse_toml, printable, read_bounded
from mmgen.settings import presets
from mmgen.settings.registry import nearest, unknown_name

__all__ = [
    "Settings",
    "build_member",
    "find_preset",
    "leaves_of",
    "merge",
    "nested",
    "json_values",
    "parse_assignments",
    "read_toml",
    "validate",
]

T = TypeVar("T")

_ELSEWHERE = {"lr": "learning_rate", "batch_size": "batch", "epochs": "steps", "max_steps": "steps"} | dict.fromkeys(
    ("z_dim", "dim_z", "latent_dim", "latent_dims", "zdim", "nz"), "latent_size"
)
"""Names that other libraries give to settings."""
_LONGEST_VALUE = 120
"""Characters of a refused value that a message repeats."""


class Settings(BaseModel):
    """Base of every settings model: immutable, unknown keys are errors, field docstrings are the help text."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def _known_keys(schema: Any, location: tuple[Any, ...]) -> list[str]:
    """Return the names of fields at ``location`` of a nested settings model."""
    current: Any = schema
    for part in location:
        current = _bare_type(current)
        if get_origin(current) in (tuple, list, dict):  # an item: its place, or its key
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
    """Return a type without annotations and without ``| None``."""
    while get_origin(kind) in (Annotated, Union, UnionType):
        kind = next((one for one in get_args(kind) if one is not NoneType), kind)
    return kind


def _key(location: Iterable[Any]) -> str:
    """Return the dotted name of a setting; places of a list are counted from 1.

    Example:
        >>> _key(["scale", "cpu", "stage", 0, "command"])
        'scale.cpu.stage[1].command'
    """
    return "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def format_refusal(name: str, fault: Mapping[str, Any]) -> str:
    """Format one of pydantic's errors about the value of ``name``: the value, and the expected ones."""
    reason, value = fault["msg"].split(", unable to parse")[0], clip(repr(fault.get("input")), _LONGEST_VALUE)
    if fault["type"] in ("tuple_type", "list_type"):
        return f"{name} got {value}, expected a list"
    if fault["type"] in ("too_short", "too_long"):
        few = fault["type"] == "too_short"
        number = fault["ctx"]["min_length" if few else "max_length"]
        return f"{name} got {value}, expected a list of at {'least' if few else 'most'} {number:,}"
    if fault["type"] in ("model_type", "model_attributes_type", "dict_type", "dataclass_type", "mapping_type"):
        return f"{name} got {value}, expected a table of settings"
    if reason.startswith("Input should be "):
        return f"{name} got {value}, expected {reason.removeprefix('Input should be ')}"
    return f"{name}: {reason[:1].lower()}{reason[1:]}, got {value}"


def leaves_of(schema: Any, before: str = "", depth: int = 4) -> list[str]:
    """Return the dotted names of all settings in a nested model, each with its room."""
    kind = _bare_type(schema)
    fields = getattr(kind, "model_fields", None) or getattr(kind, "__pydantic_fields__", {})
    if not depth or not fields:
        return [before]
    inside = [(f"{before}.{name}".removeprefix("."), field.annotation) for name, field in fields.items()]
    return [leaf for name, annotation in inside for leaf in leaves_of(annotation, name, depth - 1)]


def _leaf(name: str, leaves: Sequence[str]) -> str:
    """Return the full name of the setting that a name most likely means, without or with a wrong room; "" for none."""
    names = (name, _ELSEWHERE.get(name))
    matches = [leaf for leaf in leaves if leaf.rpartition(".")[2] in names]
    return min(matches, key=lambda leaf: (leaf.count("."), leaf), default="")


def validate(schema: type[T], values: Mapping[str, Any], where: str = "", leaves: Sequence[str] = ()) -> T:
    """Build ``schema`` (a pydantic model or dataclass) from plain values.

    Args:
        schema: Class to build.
        values: Nested plain values, as a TOML file gives them.
        where: Prefix of the keys in messages ("objective").
        leaves: Dotted names of settings that may have been meant too, besides those of ``schema``.

    Raises:
        SettingsError: Names every wrong key and value, with the nearest known key for a misspelt one.
    """
    try:
        return TypeAdapter(schema).validate_python(dict(values))
    except ValidationError as error:
        faults = []
        places = [tuple(fault["loc"]) for fault in error.errors()]
        for fault in error.errors():
            location = tuple(fault["loc"])
            if fault["type"] == "too_short" and any(place[:-1][: len(location)] == location for place in places):
                continue  # its items have faults of their own
            room = (where, *location[:-1]) if where else location[:-1]
            key = _key((*room, *location[-1:]))
            if fault["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
                known, name = _known_keys(schema, location[:-1]), str(location[-1])
                near = nearest(name, known)
                meant = _key((*room, near)) if near else _leaf(name, [*leaves_of(schema, where), *leaves])
                faults.append(unknown_name("setting", key, [_key((*room, one)) for one in known], meant=meant))
            elif fault["type"] == "missing":
                faults.append(f"setting '{key}' is missing")
            elif fault["type"] == "value_error":  # a validator's own words
                words = str(fault["ctx"]["error"])
                faults.append(f"setting '{key}': {words}" if key else words)  # of several settings together: no key
            else:
                faults.append(format_refusal(f"setting '{key}'", fault))
        raise SettingsError("; ".join(faults)) from None


def build_member(room: Any, values: Mapping[str, Any], where: str, leaves: Sequence[str] = ()) -> Any:
    """Build a member of a room from ``{"name": ..., **its own settings}``; ``leaves`` as in :func:`validate`.

    Raises:
        UsageError: No such member.
        SettingsError: The settings are not its own.
    """
    options = dict(values)
    name = options.pop("name", None)
    if not isinstance(name, str):
        fault = "is missing" if name is None else f"got {clip(repr(name), _LONGEST_VALUE)}, expected a name"
        raise SettingsError(f"setting '{where}.name' {fault}; give one of {', '.join(room.names())}")
    return validate(room.get(name), options, where, leaves)


def json_values(value: Any) -> Any:
    """Convert settings to values of JSON."""
    return TypeAdapter(type(value)).dump_python(value, mode="json")


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``base`` updated by the values of ``over``, table by table.

    A table that names another member replaces the one below it: the settings of one member are not those of another.

    Example:
        >>> merge({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}})
        {'a': {'x': 1, 'y': 3}}
        >>> merge({"net": {"name": "mlp", "hidden": 8}}, {"net": {"name": "dcgan"}})
        {'net': {'name': 'dcgan'}}
    """
    if "name" in base and over.get("name", base["name"]) != base["name"]:
        return dict(over)
    result = dict(base)
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merge(result[key], value)
        else:
            result[key] = value
    return result


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Return nested values of ``--set room.key=value`` arguments; values are TOML, bare words are strings.

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
        nested = _value_of(key.strip(), text)
        for part in reversed(parts):
            nested = {part: nested}
        result = merge(result, nested)
    return result


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values with dotted names to nested tables.

    Example:
        >>> nested({"training.steps": 100, "objective": {"beta": 0.5}})
        {'training': {'steps': 100}, 'objective': {'beta': 0.5}}
    """
    result: dict[str, Any] = {}
    for key, value in values.items():
        part: Any = nested(value) if isinstance(value, Mapping) else value
        for name in reversed(str(key).split(".")):
            part = {name: part}
        result = merge(result, part)
    return result


def _value_of(key: str, text: str) -> Any:
    """Return the value of one assignment: TOML, or else the text itself."""
    try:
        values = parse_toml(f"value = {text}")
    except NotToml:
        return text
    except Malformed as error:
        raise UsageError(
            f"--set got '{printable(f'{key}={text}', 100)}', but {error}; give a value that a setting can have"
        ) from None
    if values.keys() != {"value"}:  # a line break, and another assignment after it
        raise UsageError(
            f"--set got '{printable(f'{key}={text}', 100)}', expected one value; give --set again for each setting"
        )
    return values["value"]


def read_toml(path: Path) -> dict[str, Any]:
    """Read the values of a TOML settings file.

    Raises:
        SettingsError: The file cannot be read or is not TOML.
    """
    try:
        return parse_toml(read_bounded(path))
    except OSError as error:
        raise SettingsError(f"cannot read settings file {path}: {reason_of(error)}; check the path") from None
    except Malformed as error:
        raise SettingsError(f"settings file {path} is not valid TOML: {error}; fix it") from None


def find_preset(name: str, recipe: str = "", on_cpu: bool = False) -> str:
    """Return the full name of a preset; ``vedantam/telbo``, without a dataset, means the variant for ``recipe``.

    Args:
        name: Name from the user.
        recipe: Recipe of the dataset at hand ("mnist-a").
        on_cpu: Prefer the variant for CPUs.

    Raises:
        UsageError: There is no such preset.
    """
    variants = [f"{name}-{recipe}-cpu", f"{name}-{recipe}"] if on_cpu else [f"{name}-{recipe}", f"{name}-{recipe}-cpu"]
    for candidate in [name, *variants]:
        if candidate in presets.names():
            return candidate
    raise UsageError(unknown_name("preset", name, presets.names(), more="mmgen list preset"))
