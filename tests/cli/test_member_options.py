"""Options that are made from the settings of a member: ``mmgen make-data RECIPE``, of our recipes and of anybody's."""

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from mmgen import data_recipes
from mmgen.cli._main import load_command
from mmgen.cli._members import build_options
from mmgen.settings.config import Settings, validate
from mmgen.settings.kinds import Option
from mmgen.settings.registry import registry_of
from tests.cli.conftest import Run
from tests.cli.test_main import left_by
from tests.worlds import added

OURS = [member.name for member in registry_of("mmgen.data_recipes")._built_in()]
SHARED = {"--output", "--overwrite", "--set", "--workers", "--scheduler", "--seed", "--code", "--dry-run"}


def typed_in_help(*arguments: str) -> set[str]:
    """The long options that a command's parameters show."""
    command = load_command("make-data").build_member_command(arguments[0])
    return {name for one in command.params if not one.hidden for name in one.opts if name.startswith("--")}


@pytest.mark.parametrize("recipe", OURS)
def test_a_recipe_has_the_options_of_its_own_fields_and_no_others(recipe: str) -> None:
    schema = data_recipes.get(recipe)
    options = {name: one for name, field in schema.model_fields.items() for one in field.metadata}
    placed = {name for name, one in options.items() if isinstance(one, Option) and one.positional}
    fields = {name.replace("_", "-") for name in schema.model_fields.keys() - placed}
    own = typed_in_help(recipe) - SHARED
    switched = {"--binarise", "--grey", "--dynamic"}
    assert own - switched == {f"--{name}" for name in fields - {"binarise"}} - switched
    assert bool(own & switched) == bool({"binarise", "grey"} & fields)
    for one in load_command("make-data").build_member_command(recipe).params:
        assert one.param_type_name == "argument" or len(one.help or "") > 10, one.name


def test_switches_that_a_recipe_cannot_have_are_not_shown() -> None:
    assert typed_in_help("binary-mnist") & {"--grey", "--dynamic"} == set()
    assert typed_in_help("multimnist") >= {"--grey"} and "--dynamic" not in typed_in_help("multimnist")


@pytest.mark.slow
def test_help_lists_recipes_and_a_recipes_help_its_options_at_once(run: Run) -> None:
    done = run("make-data", "--help")
    assert all(f" {name} " in done.stdout for name in OURS) and "--copies" not in done.stdout
    assert not left_by("make-data --help")[0].loaded & {"torch", "numpy", "h5py", "PIL"}
    assert not left_by("make-data mnist-a --help")[0].loaded & {"torch", "sklearn", "matplotlib", "numba"}
    done = run("make-data", "mnist-a", "--help")
    assert "mmgen make-data mnist-a [OPTIONS]" in done.stdout
    assert "--copies" in done.stdout and "--objects" not in done.stdout and "--celeba" not in done.stdout


class Places(Settings):
    """Fields that are given by their places."""

    source: Annotated[Path, Option(metavar="SOURCE", positional=True)]
    """Where it is."""
    second: Annotated[str | None, Option(metavar="SECOND", positional=True)] = None
    """What else."""
    size: int = 3
    """How large."""


def test_fields_with_a_place_are_arguments() -> None:
    source, second, size = build_options(Places, "places")
    assert [one.name for one in (source, second, size)] == ["SOURCE", "SECOND", "--size"]
    assert source.parameter.default is source.parameter.empty and source.parameter.annotation.__args__[0] is Path
    assert second.parameter.default is None
    assert validate(Places, {"source": source.read(Path("x")), "second": second.read("y")}) == Places(
        source=Path("x"), second="y"
    )


def test_what_a_recipe_is_made_from_stands_behind_its_name(run: Run) -> None:
    shown = run("make-data", "folder", "--help").stdout
    assert "mmgen make-data folder [OPTIONS] PICTURES" in shown and "Folder or zip of pictures." in shown
    assert run("make-data", "folder").stderr.startswith("mmgen: Missing argument 'PICTURES'.")
    # A folder may be called like a recipe.
    context = load_command("make-data").make_context("make-data", ["--size", "16", "folder", "mnist"])
    assert (context.params["member"], context.params["own_pictures"]) == ("folder", Path("mnist"))


def test_a_dry_run_says_what_would_be_made(run: Run, tmp_path: Path) -> None:
    done = run("make-data", "mnist", "--size", "16", "--dry-run")
    assert done.returncode == 0 and "size = 16" in done.stdout.splitlines() and not list(tmp_path.iterdir())


class Everything(Settings):
    """One field of every kind."""

    size: Annotated[int, Field(ge=2, le=9)] = 4
    """Height."""
    share: float | None = None
    """Part of it."""
    where: Path | None = None
    """A folder."""
    mode: Literal["soft", "hard"] = "soft"
    """Which kind."""
    words: tuple[str, ...] = ("a", "b")
    """Which words."""
    numbers: tuple[int, ...] = ()
    """Which numbers."""
    loud: bool = False
    """Whether it is heard."""
    quick: bool = True
    """Whether it is short."""
    either: int | str = 1
    """A number or a word."""
    ink: Annotated[bool, Option(switches={"--grey": (False, "Grey."), "--drawn": ("drawn", "Drawn.")})] = True
    """How it is drawn."""
    seed: int = 0
    """What the command has already."""


def test_fields_of_every_kind_become_options() -> None:
    options = {one.name: one for one in build_options(Everything, "everything", frozenset(["--seed"]))}
    assert list(options) == [
        "--size", "--share", "--where", "--mode", "--words", "--numbers", "--loud", "--no-quick", "--either", "--grey",
        "--drawn",
    ]  # fmt: skip
    assert [name for name, one in options.items() if not one.is_shown] == ["--drawn"]  # no value of a bool
    read: dict[str, Any] = {
        options[name].field: options[name].read(value)
        for name, value in {
            "--size": 3, "--share": 0.5, "--where": Path("x"), "--mode": "hard", "--words": "c, d", "--numbers": "1,2",
            "--loud": True, "--no-quick": True, "--either": "7", "--grey": True,
        }.items()
    }  # fmt: skip
    made = validate(Everything, read)
    assert (made.size, made.share, made.where, made.mode) == (3, 0.5, Path("x"), "hard")
    assert (made.words, made.numbers, made.either) == (("c", "d"), (1, 2), 7)
    assert (made.loud, made.quick, made.ink) == (True, False, False)
    assert options["--either"].read("many") == "many"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--size", "16", "--source", "digits", "mnist", "-o", "mnist-a"],
        ["-o", "mnist-a", "mnist", "--size=16", "--source=digits"],
    ],
)
def test_the_recipe_may_stand_anywhere(arguments: list[str]) -> None:
    context = load_command("make-data").make_context("make-data", arguments)
    assert context.params["member"] == "mnist"
    assert (context.params["output"], context.params["own_size"]) == (Path("mnist-a"), 16)


FILE = '''"""Stripes."""
from typing import Annotated
from pydantic import Field
from mmgen.data_recipes._base import Recipe

class Stripes(Recipe):
    """Stripes of some width."""

    wide: Annotated[int, Field(ge=1)] = 3
    """Pixels of a stripe."""

    slanted: bool = False
    """Whether they run across."""

    def make(self, path, *, seed=0, workers=None, chunk=1, command=""):
        from mmgen.core.errors import MmgenError
        raise MmgenError(f"{self.wide} {self.slanted}")
'''


def test_a_recipe_from_outside_has_its_own_options(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    done = run("make-data", "stripes", "--wide", "5", "--slanted", "--code", "mine.py")
    assert (done.returncode, done.stderr) == (1, "mmgen: 5 True\n")
    shown = run("make-data", "stripes", "--code", "mine.py", "--help").stdout
    assert "Pixels of a stripe (at least 1)." in shown and "--slanted" in shown and "--copies" not in shown
    assert " stripes " in run("make-data", "--code=mine.py", "--help").stdout
    refused = run("make-data", "mnist", "--slanted", "--code", "mine.py")
    assert refused.stderr.startswith("mmgen: No such option: --slanted")
    assert run("make-data", "stripes", "--wide", "0", "--code", "mine.py").stderr.startswith(
        "mmgen: setting 'wide' got 0, expected greater than or equal to 1"
    )


@pytest.mark.parametrize(
    ("command", "room"),
    [
        ("train", "objectives"),
        ("fit-aggregate", "densities"),
        ("fit-aggregate", "posteriors"),
        ("train-classifier", "classifier"),
        *(row for rows in added("ROOMS_OF_COMMANDS") for row in rows),
        ("eval", "metrics"),
        ("plot", "figures.plots"),
    ],
)
def test_help_lists_the_members_of_a_room_by_itself(command: str, room: str) -> None:
    listed = ", ".join(registry_of(f"mmgen.{room}").names())
    assert sum(listed in (one.help or "") for one in load_command(command).params) == 1
