"""Seeds: the same bounds wherever one is said."""

import pytest

from mmgen.cli._main import command_names, load_command, main
from mmgen.core.errors import SettingsError
from mmgen.evaluation.settings import EvaluationSettings
from mmgen.settings.config import validate
from mmgen.training.settings import TrainingSettings


def options_of(name: str) -> list[str]:
    return [option for parameter in load_command(name).params for option in parameter.opts]


@pytest.mark.parametrize("name", [name for name in command_names() if "--seed" in options_of(name)])
def test_every_seed_has_the_same_bounds(name: str) -> None:
    """What a header holds: a larger one would end in a command that cannot run."""
    seed = next(one for one in load_command(name).params if "--seed" in one.opts)
    assert (seed.min, seed.max) == (0, 2**63 - 1)


def test_a_number_of_pictures_has_the_bounds_of_python() -> None:
    """A number that no float holds would end in the sentence about memory itself."""
    number = next(one for one in load_command("sample").params if "--number" in one.opts)
    assert (number.min, number.max) == (1, 2**63 - 1)


def test_a_seed_that_no_header_holds_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["reproduce", "cremer-table1", "--dry-run", "--seed", "9" * 20])
    out, err = capsys.readouterr()
    assert (left.value.code, out) == (2, "") and "--seed" in err and "Traceback" not in err


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_nor_as_a_setting(seed: int) -> None:
    with pytest.raises(SettingsError, match=rf"training\.seed.*{seed}"):
        validate(TrainingSettings, {"seed": seed}, "training")
    with pytest.raises(SettingsError, match=rf"seed.*{seed}"):
        validate(EvaluationSettings, {"seed": seed})
