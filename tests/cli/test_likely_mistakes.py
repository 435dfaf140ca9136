"""Mistakes that many people make: each is answered by what was most likely meant."""

from pathlib import Path

import pytest

from mmgen import objectives
from mmgen.cli._options import read_paths
from mmgen.commands._folders import find_reported_files
from mmgen.core.errors import MmgenError, SettingsError, UsageError
from mmgen.models._settings import DataSettings
from mmgen.settings.config import find_preset, merge, parse_assignments, validate
from mmgen.settings.registry import Registry, list_registries
from mmgen.training.model_run import read_experiment
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
        "letters": "mmgen make-data folder letters, or run everything with mmgen quickstart --images letters",
        "empty": "is a folder, expected a ",
        "made/..": "is a folder, expected a ",
    }.items():
        place = [*command.split(), "-" if piped else folder, *more]
        done = run(*place, stdin=f"{folder}\n" * piped)
        assert (done.returncode, done.stdout) == (1, ""), done.stderr
        assert said in done.stderr and done.stderr.count("\n") == 1


def test_a_folder_of_files_names_those_that_fit(letters: Path, run: Run) -> None:
    assert "made is a folder, expected a dataset: name one of the files in it, my.h5" in run("train", "made").stderr
    assert "name one of the files in it, my.safetensors" in run("sample", "made").stderr


@pytest.mark.parametrize(
    "given",
    ["modalities={image=3}", "modalities={text={name=[1]}}", "main=[3]", "modalities={attributes=true}",
     "modalities={image={kind=[1]}}", "modalities={image={kind={a=1}}}"],
)  # fmt: skip
def test_descriptions_of_data_by_hand_are_refused_by_name(given: str) -> None:
    values = parse_assignments([f"data.{given}"])["data"]
    with pytest.raises(SettingsError, match=r"setting '?data\.(modalities\.[a-z_]+|main)") as refused:
        validate(DataSettings, values | {"modalities": values.get("modalities", {"y": {"kind": "vector"}})}, "data")
    assert "None" not in str(refused.value)


def test_a_method_that_is_a_path_is_unknown(run: Run, tmp_path: Path) -> None:
    (tmp_path / "d.h5").touch()
    for name in ("/etc/passwd", "a/b", "..", "d.h5"):
        assert run("baseline", "d.h5", "-m", name).stderr.startswith(f"mmgen: unknown baseline '{name}'")


@pytest.mark.parametrize("called", ["vae", "beta-vae", "Beta_VAE", "vlvae", "joint-vae"])
def test_what_an_objective_is_called_elsewhere(called: str) -> None:
    with pytest.raises(UsageError, match=f"unknown objective '{called}': did you mean 'elbo'"):
        objectives.get(called)


@pytest.mark.parametrize(
    ("command", "option", "meant"),
    [
        ("train d.h5", "--lr", "--learning-rate"), ("train d.h5", "--gpu", "--device"),
        ("train d.h5", "--latent-size", "--set model.latent_size=VALUE"),
        ("train d.h5", "--z-dim", "--set model.latent_size=VALUE"),
        ("train d.h5", "--beta", "--set objective.beta=VALUE"),
        ("fit-sharpener m", "--gradient-clip", "--set training.gradient_clip=VALUE"),
        ("fit-aggregate m", "--text-network", "--set aggregate.text_network=VALUE"),
        ("eval m", "--gpu", "--device"),
    ],
)  # fmt: skip
def test_options_by_their_names_elsewhere_and_settings_without_an_option(
    command: str, option: str, meant: str, run: Run
) -> None:
    done = run(*command.split(), option, "3")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2, f"mmgen: No such option: {option}: did you mean {meant}?",
    )  # fmt: skip


def test_case_does_not_matter_for_suggestions() -> None:
    with pytest.raises(UsageError, match="unknown objective 'TELBO': did you mean 'telbo'"):
        objectives.get("TELBO")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("latent_size=20", "model.latent_size"), ("z_dim=20", "model.latent_size"), ("beta=4", "objective.beta"),
        ("model.beta=4", "objective.beta"), ("objective.latent_size=3", "model.latent_size"),
        ("training.latent_size=3", "model.latent_size"), ("steps=4", "training.steps"),
        ("lr=1", "training.learning_rate"), ("training.stepss=4", "training.steps"),
        ("paired=0.1", "data.paired"), ("modle.latent_size=3", "model"),
    ],
)  # fmt: skip
def test_settings_without_their_room_or_in_a_wrong_one(typed: str, meant: str) -> None:
    values = merge({"objective": {"name": "elbo"}}, parse_assignments([typed]))
    with pytest.raises(SettingsError, match=f"unknown setting '.*': did you mean '{meant}'"):
        read_experiment(values).build_objective()


@pytest.mark.parametrize("room", list_registries(), ids=lambda room: room.noun)
def test_of_many_names_the_nearest_are_listed_and_what_lists_all(room: Registry[object]) -> None:
    said = room.format_unknown("zzz")
    names, listed = room.names(), said.split("Available: ")[1].split(" and ")[0].split(";")[0].split(", ")
    assert set(listed) <= set(names) and len(listed) == min(len(names), 8)
    assert len(said) < 400 and "--code FILE.py" in said
    if len(names) > 8:
        assert f"and {len(names) - 8} more, which mmgen list {room.noun} lists" in said


def test_presets_that_hold_the_name_come_first() -> None:
    with pytest.raises(UsageError, match=r"Available: \S*telbo\S*, \S*telbo\S*, .* which mmgen list preset lists$"):
        find_preset("telbo")


def test_pictures_where_a_recipe_is_expected(letters: Path, run: Run) -> None:
    done = run("make-data", "letters")
    assert done.returncode == 2
    assert (
        "letters is a folder, expected a recipe; for your own pictures type: mmgen make-data folder letters"
        in done.stderr
    )


def test_a_wrong_word_is_told_before_one_that_is_missing(letters: Path, run: Run) -> None:
    assert "letters is a folder, expected a model or aggregate: make a dataset" in run("export", "letters").stderr
    assert "there is no model or aggregate at nowhere" in run("export", "nowhere").stderr
    assert run("plot", "traversals").stderr.startswith("mmgen: unknown figure 'traversals': did you mean 'traversal'?")
    assert "No such option: --nonsense" in run("eval", "letters", "--nonsense").stderr
    assert "Missing argument 'DIR'" in run("export", str(GOLDEN / "model-v3.safetensors")).stderr


def test_captions_without_quotes(letters: Path, run: Run) -> None:
    done = run("sample", "made/my.safetensors", "--given", "a", "big", "three", "-n", "3")
    assert "big is a separate argument, expected a description in quotes: did you mean --given 'a big three'?" in (
        done.stderr
    )


def test_what_is_missing_is_named_where_there_is_one(letters: Path, run: Run) -> None:
    assert run("check").stderr.startswith("mmgen: Missing argument 'FILE.py'.")
    assert "Missing argument 'FILE': name a file that mmgen made, such as made/my.safetensors." in run("sample").stderr
    assert "such as made/my.h5." in run("train").stderr
    assert "such as" not in run("compare").stderr and "Missing argument" in run("compare").stderr


@pytest.mark.parametrize("name", ["letters", "letters.zip"])
def test_pictures_behind_quickstart(name: str, letters: Path, run: Run) -> None:
    letters.with_name("letters.zip").touch()
    done = run("quickstart", name)
    assert (done.returncode, f"did you mean --images {name}?" in done.stderr) == (2, True), done.stderr


def test_a_word_behind_quickstart(run: Run) -> None:
    done = run("quickstart", "digits")
    assert done.stderr.startswith(
        "mmgen: quickstart got digits, expected only options: --data NAME for pictures of mmgen, --imag"
    )


@pytest.mark.parametrize(("name", "what"), [("a/1.png", "a picture"), ("metadata.csv", "a table")])
@pytest.mark.parametrize("command", [("make-data", "folder"), ("quickstart", "--images")])
def test_a_file_where_its_folder_is_expected(
    name: str, what: str, command: tuple[str, ...], letters: Path, run: Run
) -> None:
    done = run(*command, f"letters/{name}")
    folder = Path(f"letters/{name}").parent
    assert f"letters/{name} is {what}, expected a folder or a zip; name the folder" in done.stderr
    assert done.stderr.rstrip().endswith(str(folder)) and done.returncode == 1


def test_a_report_of_a_folder_is_of_all_that_it_tells_of(letters: Path) -> None:
    made = letters.parent / "made"
    for name in ("my-scores.jsonl", "my.log.jsonl", "my.last.safetensors", "notes.txt"):
        (made / name).touch()
    assert read_paths([str(made)], folders=find_reported_files) == [made]
    assert find_reported_files(made) == [made / "my-scores.jsonl", made / "my.safetensors"]
    (letters / "metadata.jsonl").touch()
    with pytest.raises(MmgenError, match="letters is a folder, expected a file: make a dataset of its pictures"):
        read_paths([str(letters)], folders=find_reported_files)
