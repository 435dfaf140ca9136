"""Mistakes that many people make: each is answered by what was most likely meant."""

from pathlib import Path

import pytest

from mmgen.config import parse_assignments, validate
from mmgen.errors import SettingsError
from mmgen.models._settings import DataSettings
from tests.cli.conftest import Run

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    """A folder of pictures, one of what mmgen made, and an empty one."""
    for name in ("letters/a/1.png", "letters/metadata.csv", "made/model.h5.part", "made/my.safetensors", "made/my.h5"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "empty").mkdir()
    return tmp_path / "letters"


@pytest.mark.parametrize(
    "command",
    ["train", "train-classifier", "fit-aggregate", "eval", "baseline", "sample", "show", "plot traversal", "report",
     "explore", "compare", "export"],
)  # fmt: skip
@pytest.mark.parametrize("piped", [False, True])
def test_a_folder_where_a_file_is_expected(command: str, piped: bool, letters: Path, run: Run) -> None:
    more = {"baseline": ["-m", "logistic"], "export": ["out"]}.get(command, [])
    for folder, said in {
        "letters": "mmgen make-data folder letters, or everything at once with mmgen quickstart --images letters",
        "empty": "is a folder, expected a ",
        "made/..": "is a folder, expected a ",
    }.items():
        place = [*command.split(), "-" if piped else folder, *more]
        done = run(*place, stdin=f"{folder}\n" * piped)
        assert (done.returncode, done.stdout) == (1, ""), done.stderr
        assert said in done.stderr and done.stderr.count("\n") == 1


def test_a_folder_of_files_names_those_that_fit(letters: Path, run: Run) -> None:
    assert "made is a folder, expected a dataset: name one of those in it, my.h5" in run("train", "made").stderr
    assert "name one of those in it, my.safetensors" in run("sample", "made").stderr


@pytest.mark.parametrize(
    "given",
    ["image=3", "further_images=3", "further_images=[[1]]", "text={name=[1]}", "image={name=3}", "main=[3]",
     "further_images=[{name={a=1}}]", "attributes=true", "modalities={image={kind=[1]}}", "image={kind={a=1}}"],
)  # fmt: skip
def test_descriptions_of_data_by_hand_are_refused_by_name(given: str) -> None:
    """The keys of earlier versions too: what is no table is refused where all others are."""
    values = parse_assignments([f"data.{given}"])["data"]
    with pytest.raises(SettingsError, match=r"setting '?data\.(modalities\.[a-z_]+|main)") as refused:
        validate(DataSettings, values | {"modalities": values.get("modalities", {"y": {"kind": "vector"}})}, "data")
    assert "None" not in str(refused.value)


def test_a_method_that_is_a_path_is_unknown(run: Run, tmp_path: Path) -> None:
    (tmp_path / "d.h5").touch()
    for name in ("/etc/passwd", "a/b", "..", "d.h5"):
        assert run("baseline", "d.h5", "-m", name).stderr.startswith(f"mmgen: unknown baseline '{name}'")
