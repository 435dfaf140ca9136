"""Files of settings that extend a preset: ``extends = "wu/mnist"``; ``without`` lists settings to drop.

A file with ``extends`` has all values of that preset, overridden by its own as in :func:`mmgen.settings.config.merge`:
a table that names another member replaces the preset's table. ``without`` lists dotted names of settings or tables of
the preset that are dropped first.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mmgen.core.errors import SettingsError, clip
from mmgen.core.parsing import parse_toml, printable
from mmgen.settings import presets
from mmgen.settings.config import find_preset, merge

_DEEPEST = 8
"""Largest number of presets that extend one another."""
_ASSIGNED = re.compile(r'(?P<key>\w+) = (?:"[^"]*"|[^"#])*(?:# (?P<comment>.*))?')


def load_preset(name: str) -> dict[str, Any]:
    """Load all settings of a preset, including those of the presets that it extends, as nested tables.

    Raises:
        UsageError: There is no such preset.
    """
    return resolve_extends(_read_preset_values(name), f"preset {name}")


def _read_preset_values(name: str) -> dict[str, Any]:
    return parse_toml(presets.read_preset(find_preset(name)))


def resolve_extends(
    values: Mapping[str, Any],
    file_name: str,
    read: Callable[[str], dict[str, Any]] = _read_preset_values,
    kind: str = "preset",
) -> dict[str, Any]:
    """Merge the settings of a file with those of the preset that it names in ``extends``, if it names one.

    Args:
        values: Nested plain values of the file.
        file_name: The file's name in messages.
        read: Function from the name of an extended file to its values.
        kind: Noun of extended files in messages.

    Raises:
        SettingsError: ``extends`` or ``without`` is malformed, or presets extend each other in a circle.
        UsageError: There is no such preset.
    """
    layers = [_split_layer(values, file_name, kind)]
    while base := layers[-1][1]:
        if len(layers) > _DEEPEST:
            raise SettingsError(
                f"{file_name} extends a chain of more than {_DEEPEST} {kind}s, "
                f"expected at most {_DEEPEST}; shorten the chain"
            )
        layers.append(_split_layer(read(base), f"{kind} {base}", kind))
    result: dict[str, Any] = {}
    for own, base, without in reversed(layers):
        for dotted in without:
            result = _drop_setting(result, dotted, f"{kind} {base}")
        result = merge(result, own)
    return result


def _split_layer(
    values: Mapping[str, Any], file_name: str, kind: str = "preset"
) -> tuple[dict[str, Any], str, list[str]]:
    """Split a file into its own settings, the preset in ``extends`` ("" for none), and the names in ``without``."""
    own = dict(values)
    base, without = own.pop("extends", ""), own.pop("without", [])
    if not isinstance(base, str) or ("extends" in values and not base.strip()):
        raise SettingsError(
            f"setting 'extends' of {file_name} got {clip(repr(base), 100)}, expected the name of a {kind}"
        )
    if not isinstance(without, list) or not all(isinstance(one, str) for one in without):
        raise SettingsError(
            f"setting 'without' of {file_name} got {clip(repr(without), 100)}, expected a list of names of settings"
        )
    if without and not base:
        raise SettingsError(
            f"setting 'without' of {file_name} needs a {kind} to drop settings of; name one with extends = \"...\""
        )
    return own, base, without


def _drop_setting(values: Mapping[str, Any], setting: str, file_name: str) -> dict[str, Any]:
    result = table = dict(values)
    *tables, last = setting.split(".")
    for name in tables:
        inner = table.get(name)
        table[name] = dict(inner) if isinstance(inner, Mapping) else {}
        table = table[name]
    if last not in table:
        name = printable(setting, 100)
        raise SettingsError(f"setting 'without' got '{name}', which {file_name} does not set; leave it out")
    del table[last]
    return result


def format_preset_with_origins(name: str) -> str:
    """Format a preset as TOML with all its settings; a comment after each names the preset that sets it.

    Args:
        name: Full name of the preset.
    """
    chain = [name]
    while base := _read_preset_values(chain[-1]).get("extends"):
        chain.append(base)
    if len(chain) == 1:
        return presets.read_preset(name)
    comments = {one: _read_comments(presets.read_preset(one)) for one in chain}
    flat = {one: dict(_iterate_settings(_split_layer(_read_preset_values(one), one)[0])) for one in chain}
    heads = [presets.read_preset(one).split("\n\n", 1)[0].split("\n") for one in chain]
    source = [line for head in heads for line in head if "arXiv:" in line][:1]
    lines = [*heads[0], *(line for line in source if line not in heads[0])]
    lines.append(
        f"# Extends {', which extends '.join(chain[1:])}: the preset that a value comes from stands behind it."
    )
    table = ""
    for key, value in _iterate_settings(load_preset(name)):
        room, _, leaf = key.rpartition(".")
        if room != table:
            lines += ["", f"[{room}]"]
            table = room
        origin = next(one for one in chain if key in flat[one])
        comment = comments[origin].get(key) or comments[origin].get(room, "")
        remark = " ".join([*([comment] if comment else []), *([f"({origin})"] if origin != name else [])])
        line = f"{leaf} = {json.dumps(value)}"
        lines.append(f"{line:<27} # {remark}" if remark else line)
    return "\n".join(lines) + "\n"


def _iterate_settings(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted name and value of each nested setting, those of a table before its inner tables."""
    tables = {key: value for key, value in values.items() if isinstance(value, Mapping) and value}
    yield from ((f"{before}{key}", value) for key, value in values.items() if key not in tables)
    for key, value in tables.items():
        yield from _iterate_settings(value, f"{before}{key}.")


def _read_comments(text: str) -> dict[str, str]:
    """Return the comment at the end of each setting's line in TOML text, by the setting's dotted name."""
    comments, table, last = {}, "", ""
    for line in text.split("\n"):
        if line.startswith("["):
            table = line.strip("[] ")
        elif matched := _ASSIGNED.fullmatch(line):
            last = f"{table}.{matched['key']}"
            comments[last] = matched["comment"] or ""
        elif last and line.lstrip().startswith("# "):  # continuation of a comment
            comments[last] += f" {line.strip().removeprefix('# ')}"
    return comments
