"""What is said twice, or in other words than were meant, is refused: nothing that was given is passed over."""

import re
from pathlib import Path

import pytest

from mmgen.cli._main import load_command
from mmgen.commands.evaluate import Evaluate
from mmgen.core.errors import UsageError
from tests.cli.conftest import Run
from tests.cli.test_empty_words import commands


@pytest.mark.parametrize("typed", commands(), ids=" ".join)
def test_an_option_of_one_value_refuses_two(typed: tuple[str, ...], run: Run) -> None:
    command = load_command(typed[0])
    if len(typed) > 1:
        command = command.build_member_command(typed[1])
    single = [one for one in command.params if one.param_type_name == "option" and not one.is_flag and not one.multiple]
    for option in single:
        first, last = option.opts[0], option.opts[-1]
        done = run(*typed, f"{first}=1", last, "2")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{last} got 1 and 2, expected one " in done.stderr


@pytest.mark.parametrize("value", ["1 3", "1,2 3", "4 3,2"])
def test_numbers_with_a_blank_between_are_not_one_number(value: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "m.safetensors").touch()
    for option in ("--guidance", "--given-count"):
        done = run("eval", "m.safetensors", option, value)
        assert done.returncode == 2
        assert re.search(rf"{option} got .* .*(by commas|commas\s+between)", done.stderr)


def test_rows_of_scores_have_names_of_their_own() -> None:
    with pytest.raises(UsageError, match=r"--guidance got 3 twice"):
        Evaluate(Path("no"), guidance=["3:effective=20", 1, "3:candidates=10"]).measure()


@pytest.mark.parametrize("typed", [["digit=3"], ["--given", "digit=3", "scale=big"]])
def test_words_of_a_description_alone_on_the_line(typed: list[str], run: Run) -> None:
    words = " ".join(word for word in typed if "=" in word)
    done = run("sample", "model.safetensors", *typed)
    assert done.returncode == 2 and "did you mean --given " in done.stderr and words in done.stderr
    assert "--given" not in run("show", "model.safetensors", "digit=3").stderr, "which draws nothing"
