"""Shell completion of names of members, presets and lists, without imports."""

from collections.abc import Callable

import typer

from mmgen.core.errors import MmgenError
from mmgen.settings.registry import Registry, list_registries, registry_of

__all__ = ["Completion", "kinds", "members", "names_of_kind", "presets", "tables", "words"]

Completion = Callable[[str], list[str]]


def _matching(names: list[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def words(*names: str) -> Completion:
    """Return completion by fixed words."""

    def complete(incomplete: str) -> list[str]:
        return _matching(list(names), incomplete)

    return complete


def _of(room: "Registry[object]") -> list[str]:
    try:
        return room.names()
    except MmgenError:  # of a broken file in MMGEN_CODE, which the command itself reports
        return []


def members(package: str, *more: str) -> Completion:
    """Return completion by the members of a room, installed packages' too, and ``more`` words that stand for them."""

    def complete(incomplete: str) -> list[str]:
        return _matching([*more, *_of(registry_of(package))], incomplete)

    return complete


def presets(incomplete: str) -> list[str]:
    """Complete presets by their full names."""
    from mmgen.settings.presets import preset_names

    return _matching(preset_names(), incomplete)


def tables(incomplete: str) -> list[str]:
    """Complete names of published tables; a table of several datasets by its own name."""
    from mmgen.experiments import names

    return _matching(list(dict.fromkeys(name.split("/")[0] for name in names())), incomplete)


def _kinds() -> "dict[str, list[str]]":
    from mmgen.settings.presets import preset_names

    return {room.noun.replace(" ", "-"): _of(room) for room in list_registries()} | {"preset": preset_names()}


def kinds(incomplete: str) -> list[str]:
    """Complete the kinds that ``mmgen list`` lists."""
    return _matching(list(_kinds()), incomplete)


def names_of_kind(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete members of the kind that was typed before."""
    return _matching(_kinds().get(str(ctx.params.get("kind") or "").removesuffix("s"), []), incomplete)
