"""One setting alone, of whatever table, with a value of whatever kind: taken, or refused in a sentence."""

import itertools
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import mmgen
from mmgen.classifier import ClassifierSettings
from mmgen.commands import stage_class
from mmgen.core.errors import MmgenError
from mmgen.posteriors import FitSettings
from mmgen.settings.registry import registry_of
from mmgen.settings.settings_table import ROOM_KEYS, list_member_settings, list_settings
from mmgen.training.model_run import ExperimentSettings
from tests.worlds import added_rows

VALUES: tuple[Any, ...] = (1, -0.5, "x", True, None, [16], [], {}, {"name": "x"})
SCHEMAS = {
    "train": (ExperimentSettings, "model", "network", "objective"),
    "fit-aggregate": (FitSettings, "aggregate family", "fit target"),
    "train-classifier": (ClassifierSettings,),
    **added_rows("SCHEMAS"),
}
"""Settings of a command, and rooms whose members have further ones."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A dataset of 40 pictures with words, and a model of it that was not trained."""
    folder = tmp_path_factory.mktemp("walk")
    mmgen.make_data("shapes", number=40, size=16, workers=1, output=folder / "d.h5", progress=False).close()
    small = {"model.image_network": {"name": "mlp", "hidden": [4]}, "model.hidden": 4, "training.validate_every": 1}
    mmgen.train(folder / "d.h5", steps=0, settings=small, output=folder / "m.safetensors", progress=False)
    return {"dataset": folder / "d.h5", "model": folder / "m.safetensors"}


def members(room: str) -> Iterator[tuple[str, list[str]]]:
    """The setting that names a member of a room, with the member, and the names of its settings."""
    registry = registry_of(room)
    for name in registry.names():
        yield name, [one.name for one in list_member_settings(room, registry.get(name))]


def keys_of(command: str) -> list[str]:
    """Names of all settings, of the tables that they stand in, and of a misspelt one in each table."""
    schema, *rooms = SCHEMAS[command]
    names = {one.name for one in list_settings(schema)}
    names |= {name for room in rooms for _, own in members(room) for name in own}
    parts = [name.split(".")[:-1] for name in names]
    tables = {".".join(one[: length + 1]) for one in parts for length in range(len(one))}
    return sorted(names | tables | {f"{table}.misspelt" for table in tables})


def look(command: str, files: dict[str, Path], settings: dict[str, Any]) -> None:
    """Do all that a command does before it works."""
    stage = stage_class(command)(files["model" if "fit" in command else "dataset"], settings=settings, progress=False)
    with suppress(MmgenError):
        assert stage.plan
        if command == "train":
            stage.check_networks()


def test_settings_of_a_density_alone_are_of_the_usual_one() -> None:
    settings = FitSettings(aggregate={"family": {"hidden": [16]}})
    assert settings.family_name == "realnvp" and settings.build_family().hidden == (16,)


@pytest.mark.slow
@pytest.mark.parametrize("command", SCHEMAS)
def test_every_setting_alone(command: str, files: dict[str, Path]) -> None:
    for key, value in itertools.product(keys_of(command), VALUES):
        look(command, files, {key: value})


@pytest.mark.slow
@pytest.mark.parametrize("room", [room for room in ROOM_KEYS if room != "recipe"])
def test_every_setting_of_a_member_beside_its_name(room: str, files: dict[str, Path]) -> None:
    command = next(command for command, (_, *rooms) in SCHEMAS.items() if room in rooms)
    for member, names in members(room):
        for name, value in itertools.product(names, VALUES):
            look(command, files, {f"{ROOM_KEYS[room]}name": member, name: value})


@pytest.mark.slow
def test_every_setting_of_a_recipe_alone(tmp_path: Path) -> None:
    for recipe, names in members("recipe"):
        for name, value in itertools.product(names, VALUES):
            with suppress(MmgenError):
                assert stage_class("make-data")(
                    recipe, output=tmp_path / "d.h5", settings={name: value}
                ).recipe_settings
