"""Settings files that extend a preset: ``extends = "wu/mnist"``, and ``without`` for settings to drop.

A file with ``extends`` has all values of that preset, with its own on top, as :func:`mmgen.settings.config.merge` lays
them: a table that names another member replaces the one below it. ``without`` lists dotted names of settings or tables
of the preset that are dropped first.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mmgen.core.errors import SettingsError, clip
from mmgen.core.parsing import parse_toml, printable
from mmgen.settings import presets
from mmgen.settings.config import find_preset, merge

__all__ = ["extended", "preset", "with_origins"]

_DEEPEST = 8
"""Presets that build upon one another."""
_ASSIGNED = re.compile(r'(?P<key>\w+) = (?:"[^"]*"|[^"#])*(?:# (?P<comment>.*))?')


def preset(name: str) -> dict[str, Any]:
    """Return all values of a preset, by its full name, with those of the presets that it extends.

    Raises:
        UsageError: There is no such preset.
    """
    return extended(_values(name), f"preset {name}")


def _values(name: str) -> dict[str, Any]:
    return parse_toml(presets.text_of(find_preset(name)))


def extended(
    values: Mapping[str, Any], where: str, read: Callable[[str], dict[str, Any]] = _values, kind: str = "preset"
) -> dict[str, Any]:
    """Return the values of a settings file, merged over those of the preset that it extends, if any.

    Args:
        values: Nested plain values of the file.
        where: The file's name in messages.
        read: Returns the values of a file of the package by name.
        kind: What such files are called in messages.

    Raises:
        SettingsError: ``extends`` or ``without`` is malformed, or presets extend each other without end.
        UsageError: There is no such preset.
    """
    layers = [_layer(values, where, kind)]
    while base := layers[-1][1]:
        if len(layers) > _DEEPEST:
            raise SettingsError(f"{where} extends more than {_DEEPEST} {kind}s one after the other; extend fewer")
        layers.append(_layer(read(base), f"{kind} {base}", kind))
    result: dict[str, Any] = {}
    for own, base, without in reversed(layers):
        for dotted in without:
            result = _dropped(result, dotted, f"{kind} {base}")
        result = merge(result, own)
    return result


def _layer(values: Mapping[str, Any], where: str, kind: str = "preset") -> tuple[dict[str, Any], str, list[str]]:
    """Return a file's own values, the preset that it extends ("" for none), and the inherited settings to drop."""
    own = dict(values)
    base, without = own.pop("extends", ""), own.pop("without", [])
    if not isinstance(base, str) or ("extends" in values and not base.strip()):
        raise SettingsError(f"setting 'extends' of {where} got {clip(repr(base), 100)}, expected the name of a {kind}")
    if not isinstance(without, list) or not all(isinstance(one, str) for one in without):
        raise SettingsError(
            f"setting 'without' of {where} got {clip(repr(without), 100)}, expected a list of names of settings"
        )
    if without and not base:
        raise SettingsError(f"setting 'without' of {where} drops settings of a {kind}; name it with extends = \"...\"")
    return own, base, without


def _dropped(values: Mapping[str, Any], dotted: str, where: str) -> dict[str, Any]:
    result = table = dict(values)
    *tables, last = dotted.split(".")
    for name in tables:
        inner = table.get(name)
        table[name] = dict(inner) if isinstance(inner, Mapping) else {}
        table = table[name]
    if last not in table:
        name = printable(dotted, 100)
        raise SettingsError(f"setting 'without' got '{name}', which {where} does not set; leave it out")
    del table[last]
    return result


def with_origins(name: str) -> str:
    """Return a preset as TOML with all its values, and for each its comment and the preset that sets it.

    Args:
        name: Full name of the preset.
    """
    chain = [name]
    while base := _values(chain[-1]).get("extends"):
        chain.append(base)
    if len(chain) == 1:
        return presets.text_of(name)
    comments = {one: _comments(presets.text_of(one)) for one in chain}
    flat = {one: dict(_leaves(_layer(_values(one), one)[0])) for one in chain}
    heads = [presets.text_of(one).split("\n\n", 1)[0].split("\n") for one in chain]
    source = [line for head in heads for line in head if "arXiv:" in line][:1]
    lines = [*heads[0], *(line for line in source if line not in heads[0])]
    lines.append(
        f"# Extends {', which extends '.join(chain[1:])}: the preset that a value comes from stands behind it."
    )
    table = ""
    for key, value in _leaves(preset(name)):
        room, _, leaf = key.rpartition(".")
        if room != table:
            lines += ["", f"[{room}]"]
            table = room
        origin = next(one for one in chain if key in flat[one])
        comment = comments[origin].get(key) or comments[origin].get(room, "")
        said = " ".join([*([comment] if comment else []), *([f"({origin})"] if origin != name else [])])
        line = f"{leaf} = {json.dumps(value)}"
        lines.append(f"{line:<27} # {said}" if said else line)
    return "\n".join(lines) + "\n"


def _leaves(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted names and values, those of a table before its inner tables."""
    tables = {key: value for key, value in values.items() if isinstance(value, Mapping) and value}
    yield from ((f"{before}{key}", value) for key, value in values.items() if key not in tables)
    for key, value in tables.items():
        yield from _leaves(value, f"{before}{key}.")


def _comments(text: str) -> dict[str, str]:
    """Return the comments behind settings, by dotted names."""
    found, table, last = {}, "", ""
    for line in text.split("\n"):
        if line.startswith("["):
            table = line.strip("[] ")
        elif matched := _ASSIGNED.fullmatch(line):
            last = f"{table}.{matched['key']}"
            found[last] = matched["comment"] or ""
        elif last and line.lstrip().startswith("# "):  # goes on in the next line
            found[last] += f" {line.strip().removeprefix('# ')}"
    return found
