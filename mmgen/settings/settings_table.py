"""Lists of the settings of a class with name, type, range, default and docstring, for help and pages."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

ROOM_KEYS = {
    "recipe": "",
    "model": "model.",
    "network": "model.image_network.",
    "objective": "objective.",
    "aggregate family": "aggregate.family.",
    "fit target": "aggregate.target.",
}
"""Prefix of a member's settings in ``--set``, by noun of the room; members of other rooms have no settings."""

_WORDS = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false", "null": "none"}
_BOUNDS = (
    ("exclusiveMinimum", "above"),
    ("minimum", "at least"),
    ("maximum", "at most"),
    ("exclusiveMaximum", "below"),
)
_LONGEST_DEFAULT = 60


@dataclass(frozen=True)
class Setting:
    """Name, type, range, default and docstring of one setting, as text for lists and pages.

    Attributes:
        name: Name after ``--set room.``; a setting in an inner table has the table's name and a dot before it.
        kind: Type and range in words: "number, at least 0".
        default: Default in TOML or JSON; "required" without one.
        about: Docstring as one line.
    """

    name: str
    kind: str
    default: str
    about: str


def list_settings(schema: type) -> list[Setting]:
    """List the settings (fields) of a pydantic model or dataclass, in order; [] for other classes.

    Example:
        >>> from mmgen.objectives.bivcca import Bivcca
        >>> list_settings(Bivcca)[0].kind
        'number, at least 0, at most 1'
    """
    if not hasattr(schema, "__pydantic_fields__") and not hasattr(schema, "model_fields"):
        return []
    described = TypeAdapter(schema).json_schema(by_alias=False)
    for base in schema.__mro__:  # pydantic forgets the docstrings of inherited fields
        for name, field in getattr(base, "__pydantic_fields__", {}).items():
            if name in described.get("properties", {}) and field.description:
                described["properties"][name].setdefault("description", field.description)
    return list(_iterate_settings(described, described.get("$defs", {}), ""))


def list_member_settings(room: str, member: Any) -> list[Setting]:
    """List the settings of a member, such as an objective, with their names in ``--set``.

    Args:
        room: Noun of the room: "objective".
        member: The member, from its registry.
    """
    if room not in ROOM_KEYS:
        return []
    settings = list_settings(member.settings if room == "model" else member)
    return [replace(one, name=ROOM_KEYS[room] + one.name) for one in settings if (room, one.name) != ("model", "name")]


def _iterate_settings(described: Mapping[str, Any], definitions: Mapping[str, Any], before: str) -> Iterator[Setting]:
    required = described.get("required", [])
    for key, value in described.get("properties", {}).items():
        inside = _schema_of_table(value, definitions)
        about = " ".join(str(value.get("description", "")).split())
        if inside is not None and inside.get("properties"):
            yield from _iterate_settings(inside, definitions, f"{before}{key}.")
            continue
        default = "required" if key in required else _format_default(value.get("default"))
        yield Setting(before + key, _format_type(value, definitions), default, about)


def _schema_of_table(value: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the JSON schema of the table that a setting may hold; None if it holds no table."""
    for one in (value, *value.get("allOf", ()), *value.get("anyOf", ())):
        if "$ref" in one:
            schema: Mapping[str, Any] = definitions[one["$ref"].rsplit("/", 1)[1]]
            return schema
    return None


def _format_type(value: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Format type and range of a setting in words, from its JSON schema."""
    if "$ref" in value:
        return _format_type(definitions[value["$ref"].rsplit("/", 1)[1]], definitions)
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(_format_type(one, definitions) for one in value["anyOf"]))
    if "discriminator" in value:
        return f"table with name {', '.join(value['discriminator']['mapping'])}"
    if "enum" in value:
        return " or ".join(map(_format_default, value["enum"]))
    if "const" in value:
        return _format_default(value["const"])
    if value.get("type") == "array":
        items = value.get("items", {})
        if "prefixItems" in value:
            return f"list of {len(value['prefixItems'])}"
        return f"list of {_format_type(items, definitions)}" if items else "list"
    if value.get("type") == "object":
        return "table"
    words = [_WORDS.get(value.get("type", ""), "any value")]
    words += [f"{word} {value[bound]:g}" for bound, word in _BOUNDS if bound in value]
    return ", ".join(words)


def _format_default(value: Any) -> str:
    """Format a setting's default as a user would type it, shortened if it is long."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _LONGEST_DEFAULT else text[: _LONGEST_DEFAULT - 1] + "…"
