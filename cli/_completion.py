"""Shell completion of names of members, presets and published tables, without imports of the members."""

from collections.abc import Callable

import typer

from mmgen.core.errors import MmgenError
from mmgen.settings.registry import Registry, list_registries, registry_of

__all__ = [
    "Completion",
    "complete_kinds",
    "complete_members",
    "complete_names_of_kind",
    "complete_presets",
    "complete_tables",
    "complete_words",
]

Completion = Callable[[str], list[str]]


def _filter_by_prefix(names: list[str], prefix: str) -> list[str]:
    return [name for name in names if name.startswith(prefix)]


def complete_words(*names: str) -> Completion:
    """Return a completion function that offers these words."""

    def complete(incomplete: str) -> list[str]:
        return _filter_by_prefix(list(names), incomplete)

    return complete


def _member_names(registry: "Registry[object]") -> list[str]:
    try:
        return registry.names()
    except MmgenError:  # a broken file in MMGEN_CODE, which the command itself reports
        return []


def complete_members(package: str, *extra_words: str) -> Completion:
    """Return a completion function that offers a package's members, plug-ins among them, and ``extra_words``."""

    def complete(incomplete: str) -> list[str]:
        return _filter_by_prefix([*extra_words, *_member_names(registry_of(package))], incomplete)

    return complete


def complete_presets(incomplete: str) -> list[str]:
    """Return the full names of presets that begin with ``incomplete``."""
    from mmgen.settings.presets import preset_names

    return _filter_by_prefix(preset_names(), incomplete)


def complete_tables(incomplete: str) -> list[str]:
    """Return the names of reproducible tables that begin with ``incomplete``, each once."""
    from mmgen.experiments import experiment_names

    return _filter_by_prefix(list(dict.fromkeys(name.split("/")[0] for name in experiment_names())), incomplete)


def _names_by_kind() -> "dict[str, list[str]]":
    """Return the names of members and presets by kind, such as "objective" or "preset"."""
    from mmgen.settings.presets import preset_names

    return {registry.noun.replace(" ", "-"): _member_names(registry) for registry in list_registries()} | {
        "preset": preset_names()
    }


def complete_kinds(incomplete: str) -> list[str]:
    """Return the kinds of ``mmgen list`` that begin with ``incomplete``."""
    return _filter_by_prefix(list(_names_by_kind()), incomplete)


def complete_names_of_kind(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the members that begin with ``incomplete``, of the kind in the argument before."""
    return _filter_by_prefix(_names_by_kind().get(str(ctx.params.get("kind") or "").removesuffix("s"), []), incomplete)
