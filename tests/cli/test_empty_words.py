"""An empty word, as a variable leaves one that is not set, is refused by every command in a sentence."""

import pytest

from mmgen import data_recipes
from mmgen.cli._main import command_names, load_command
from mmgen.cli._members import MemberCommands
from tests.cli.conftest import Run

MEANT = ("--given", "WORDS")
"""The option of descriptions: an empty one leaves all open."""


def commands() -> list[tuple[str, ...]]:
    """Every command as it is typed; those of recipes one by one."""
    found: list[tuple[str, ...]] = []
    for name in command_names():
        command = load_command(name)
        members = command.registry.names() if isinstance(command, MemberCommands) else []
        found += [(name, member) for member in members] or [(name,)]
    return found


def options_with_values(typed: tuple[str, ...]) -> list[tuple[str, str]]:
    """The options of a command that take a value, with what help calls it."""
    command = load_command(typed[0])
    if len(typed) > 1:
        command = command.build_member_command(typed[1])
    options = [one for one in command.params if one.param_type_name == "option" and not one.is_flag]
    return [(one.opts[0], one.metavar) for one in options if (one.opts[0], one.metavar) != MEANT]


@pytest.mark.parametrize("typed", commands(), ids=" ".join)
def test_every_option_refuses_an_empty_word(typed: tuple[str, ...], run: Run) -> None:
    options = options_with_values(typed)
    assert options, "every command has --code"
    for option, called in options:
        for words in ((option, ""), (f"{option}=",)):
            done = run(*typed, *words)
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr == (
                f"mmgen: {option} got an empty value, expected {called}; give one, or leave the option out\n"
            )


@pytest.mark.parametrize("typed", commands(), ids=" ".join)
def test_every_command_refuses_an_empty_argument(typed: tuple[str, ...], run: Run) -> None:
    done = run(*typed, "")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"mmgen: {' '.join(typed)} got an empty argument, as from an unset variable; set the variable, or leave the "
        "argument out\n"
    )


def test_an_option_whose_empty_text_says_something_is_read(run: Run) -> None:
    assert "there is no model or aggregate at m.safetensors" in run("sample", "m.safetensors", "--given", "").stderr


def test_there_are_recipes_among_the_commands() -> None:
    assert {("make-data", name) for name in data_recipes.names()} <= set(commands())
