"""Settings in words: every setting of every member is named as --set calls it, with its type and its docstring."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field
from pydantic.dataclasses import dataclass

from mmgen.settings.config import Settings, merge, parse_assignments
from mmgen.settings.registry import list_registries
from mmgen.settings.settings_table import ROOM_KEYS, list_member_settings, list_settings
from mmgen.training.model_run import read_experiment

MEMBERS = [(room.noun, name) for room in list_registries() if room.noun in ROOM_KEYS for name in room.names()]


def member_of(noun: str, name: str) -> object:
    return next(room for room in list_registries() if room.noun == noun).get(name)


class Inner(Settings):
    width: Annotated[int, Field(ge=1, lt=9)] = 3
    """How wide."""


@dataclass(frozen=True)
class Outer:
    inner: Inner | None = None
    share: Annotated[float, Field(gt=0, le=1)] = 0.5
    kind: Literal["one", "two"] = "one"
    names: tuple[str, ...] = ("a",)
    pair: tuple[float, float] = (0.1, 0.2)
    flag: bool = True
    needed: str = Field()
    maybe: float | Literal["auto"] | None = None
    anything: Any = None
    long: str = "x" * 60
    longer: str = "x" * 61
    below: Annotated[float, Field(lt=2.5)] = 0.0


def test_kinds_and_ranges_by_hand() -> None:
    found = {one.name: (one.kind, one.default, one.about) for one in list_settings(Outer)}
    assert found == {
        "inner.width": ("whole number, at least 1, below 9", "3", "How wide."),
        "share": ("number, above 0, at most 1", "0.5", ""),
        "kind": ("one or two", "one", ""),
        "names": ("list of text", '["a"]', ""),
        "pair": ("list of 2", "[0.1, 0.2]", ""),
        "flag": ("true or false", "true", ""),
        "needed": ("text", "required", ""),
        "maybe": ("number or auto or none", "", ""),
        "anything": ("any value", "", ""),
        "long": ("text", "x" * 60, ""),
        "longer": ("text", "x" * 59 + "…", ""),
        "below": ("number, below 2.5", "0.0", ""),
    }


def test_what_is_no_settings_has_none() -> None:
    assert list_settings(dict) == []
    assert list_member_settings("metric", object()) == []


@pytest.mark.parametrize(("noun", "name"), MEMBERS, ids=" ".join)
def test_every_setting_says_what_it_does(noun: str, name: str) -> None:
    found = list_member_settings(noun, member_of(noun, name))
    assert found or (noun, name) == ("fit target", "aggregate"), "only this one has none"
    assert [one.name for one in found if not one.about or not one.kind] == []
    assert all(one.name.startswith(ROOM_KEYS[noun]) for one in found)


@pytest.mark.parametrize(("noun", "name"), [one for one in MEMBERS if one[0] in ("model", "objective")], ids=" ".join)
def test_names_are_those_that_set_takes(noun: str, name: str) -> None:
    """Every default, typed as it is printed, is accepted under the name that is printed."""
    found = list_member_settings(noun, member_of(noun, name))
    typed = [f"{one.name}={one.default}" for one in found if one.default]
    values = merge(parse_assignments(typed), {noun: {"name": name}})
    read = read_experiment(values)
    assert read.build_objective() is not None
    assert noun == "objective" or read.model.name == name
