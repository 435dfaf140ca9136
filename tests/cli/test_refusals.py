"""The door of the command line: what is refused, each row an input and words of its sentence."""

from pathlib import Path
from typing import Any

import pytest

from mmgen import data_recipes
from mmgen.cli._main import command_names, load_command
from mmgen.cli._members import MemberCommands
from mmgen.cli._options import read_paths
from mmgen.commands._folders import find_reported_files
from mmgen.commands.evaluate import Evaluate
from mmgen.core.errors import MmgenError, SettingsError, UsageError
from mmgen.models._settings import DataSettings
from mmgen.settings.config import find_preset, merge, parse_assignments, validate
from mmgen.settings.registry import Registry, list_registries
from mmgen.training.model_run import read_experiment
from tests.cli.conftest import Run
from tests.program import ROOT
from tests.worlds import added

GOLDEN = ROOT / "tests" / "golden"
DATASET, MODEL = GOLDEN / "dataset-v3.h5", GOLDEN / "model-v3.safetensors"
LIST = ROOT / "tests" / "lists" / "two-objectives.toml"
TRAINED = {"train": DATASET, "fit-aggregate": MODEL, "train-classifier": DATASET}
SEEDS = {
    "--seeds 0": "--seeds got 0, expected a number of seeds from 1 to 1000",
    "--seeds 1001": "--seeds got 1001, expected a number of seeds from 1 to 1000",
    "--seeds x": "--seeds got 'x', expected a number of seeds (5) or whole numbers from 0 (0,1,2)",
    "--seeds 1,1": "--seeds got '1,1', expected different numbers",
    "--seeds 2 --seed 3": "--seed and --seeds are given together, expected one of them; leave one out",
    "--seeds 2 --seed=3": "--seed and --seeds are given together, expected one of them; leave one out",
    "--seeds 2 --set training.seed=1": "--set training.seed got 1, expected the option --seed or --seeds for it",
    "--seed 0 --set training={seed=1}": "--set training.seed got 1, expected the option --seed or --seeds for it",
    "--seeds 2 --devices 2": "--seeds trains one seed after the other in this process",
}
EMPTY = "got an empty value, as from an unset variable; give one, or leave it out"
ANSWERED = [("serve", "export"), ("resume", "same command again"), *added("ANSWERED")]
REFUSED = [
    ("train letters", 1, "letters is a folder, expected a dataset; name a file; of your own pictures mmgen make-data"),
    ("sample letters", 1, "letters is a folder, expected a model or aggregate; name a file"),
    ("report letters", 1, "letters is a folder, expected a file; name a file"),
    ("compare empty", 1, "empty is a folder, expected a file of scores; name a file"),
    ("train nowhere", 1, "there is no dataset at nowhere: check the path, or make it with the command before"),
    ("sample my.h5 --judge nowhere", 1, "there is no classifier at nowhere: check the path"),
    ("train mz.h5", 1, "there is no dataset at mz.h5: did you mean my.h5?"),
    ("make-data folder leters", 1, "there is no folder or zip leters; did you mean letters?"),
    ("status emty", 1, "cannot read the folder emty: no such file or directory; did you mean empty?"),
    ("train leters/my.h5", 1, "there is no dataset at leters/my.h5: check the path"),
    ("train ../*/mz.h5", 1, "there is no dataset at ../*/mz.h5: check the path"),
    ("train my.h5 --config nowhere", 2, "cannot read the settings file nowhere: no such file or directory"),
    ("make-data letters", 2, "unknown recipe 'letters': Available: "),
    ("make-data letters", 2, "; your own pictures: mmgen make-data folder letters"),
    ("make-data", 2, "Missing argument 'RECIPE'"),
    *(row for rows in added("REFUSED_LINES") for row in rows),
    ("plot traversals my.h5", 2, "unknown figure 'traversals': did you mean 'traversal'?"),
    ("export my.h5", 2, "Missing argument 'DIR'"),
    ("check", 2, "Missing argument 'FILE.py'"),
    ("eval my.h5 --nonsense", 2, "No such option: --nonsense"),
    ("train my.h5 --stepss 3", 2, "No such option: --stepss"),
    ("quickstart digits", 2, "Got unexpected extra argument(s) (digits)"),
    ("sample my.h5 --given a big three", 2, "Got unexpected extra argument(s) (big three)"),
    ("eval my.h5 --given-count 1,2|3", 2, "--given-count got '1,2 3', expected numbers with commas between"),
    ("eval my.h5 --guidance 1|3", 2, "--guidance got "),
    ("train my.h5 --seed 1 --seed 2", 2, "--seed is given 2 times, expected once; leave one out"),
    ("train my.h5 -o a --output=b", 2, "--output is given 2 times, expected once"),
    ("quickstart --images letters --minutes inf", 2, "--minutes got 'inf', expected less than or equal to 1000000"),
    (f"quickstart --images letters --steps {10**30}", 2, "expected less than or equal to 1000000000"),
    ("train my.h5 --seeds 2 -o -", 2, "--output got -, but the files of --seeds would be called like options; choose"),
    ("train my.h5 --set steps", 2, "--set got 'steps', expected room.key=value"),
    ("train ", 2, EMPTY),
    ("train my.h5 -o ", 2, EMPTY),
    ("train my.h5 --output=", 2, EMPTY),
    ("sample m.safetensors --given ", 1, "there is no model or aggregate at m.safetensors"),  # which leaves all open
    ("show a\nmmgen:|done", 1, "mmgen: there is no file at a?mmgen: done: check the path, or make it with"),
    ("lst", 2, "mmgen: unknown command 'lst': did you mean 'list'? Available: "),
    ("completion", 2, " more, which mmgen --help lists"),
    (f"{'q' * 3000}", 2, " more, which mmgen --help lists"),
    *((name, 2, f"mmgen: there is no command '{name}': ") for name, _ in ANSWERED),
    *(row for name, what in ANSWERED for row in [(name, 2, what)]),
    ("list --jsn", 2, "No such option: --jsn"),
    ("list objectiv", 2, "did you mean 'objective'?"),
    *((f"train {DATASET} --objective elbo {words}", 2, f"mmgen: {said}") for words, said in SEEDS.items()),
    ("list recipe mnist more", 2, "Got unexpected extra argument(s) (more)"),
    ("--nonsense", 2, "No such option: --nonsense"),
    ("make-data mnist-a --number many", 2, "mmgen: --number got 'many', expected a valid integer"),
    (f"reproduce cremer-table1 --dry-run --seed {'9' * 20}", 2, "--seed"),
    *((f"{command} {golden} --resume --overwrite", 2, "--resume and --overwrite got both, expected one of them: "
       "continue the saved run or begin anew") for command, golden in TRAINED.items()),
    (f"show {DATASET} -n 3 --seed 4", 2, "--number and --seed is only for contact sheets"),
    (f"show {DATASET} --json --seed 0", 2, "--seed is only for contact sheets"),
    (f"sample {MODEL} --sampled -o x.h5", 2, "--sampled got the output x.h5, expected a picture"),
    (f"sample {MODEL} --mean -o x.h5", 2, "--mean got the output x.h5, expected a picture"),
    (f"reproduce {LIST} --jobs 2 --scheduler tcp://127.0.0.1:9", 2, "--jobs and --scheduler are given together"),
    (f"reproduce {LIST} --jobs 2 --dry-run", 2, "--dry-run and --jobs are given together, expected one"),
    (f"reproduce {LIST} --scheduler tcp://127.0.0.1:9 --dry-run", 2, "--dry-run and --scheduler are given together"),
    ("reproduce cremer-table9", 2, "did you mean 'cremer-table"),
    ("reproduce cremer-table9", 2, ", or the path of an experiment file of your own (.toml)"),
    ("status no-folder", 1, "cannot read the folder no-folder: no such file"),
    ("status my.h5", 2, "is a file, expected a folder"),
    ("quickstart --quick --drop-unreadable", 2, "name them with --images DIR"),
    ("quickstart --grey", 2, "--grey is for your own pictures; name them with --images DIR"),
    *((f"quickstart --{one} 64", 2, f"--{one} is for your own pictures") for one in ("size", "steps", "minutes")),
    ("quickstart --images nowhere", 1, "nowhere"),
    ("quickstart --images nowhere --size 50", 2, "--size got 50, expected 32 or 64"),  # before anything is looked at
    ("quickstart --images letters --steps 9 --minutes 9", 2, "--steps got 9 and --minutes got 9, expected one of them"),
    ("quickstart --quick -o my.h5", 1, "cannot use the folder my.h5: it is there and is no folder; choose another"),
    ("make-data mnist --number 0", 2, "setting 'number' got 0"),
    ("make-data mnist --grey --dynamic", 2, "mmgen: --grey and --dynamic both set binarise; leave one out"),
    ("make-data folder p --set pictures=q", 2, "mmgen: PICTURES and --set pictures both set pictures; leave one out"),
    ("make-data folder", 2, "mmgen: Missing argument 'PICTURES'."),
    ("make-data --seed 3", 2, "mmgen: Missing argument 'RECIPE'."),
]  # fmt: skip


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    """A folder of pictures, beside an empty one and an empty file."""
    (tmp_path / "letters" / "a").mkdir(parents=True)
    (tmp_path / "letters" / "a" / "1.png").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "my.h5").touch()
    return tmp_path / "letters"


@pytest.mark.parametrize(("line", "code", "words"), REFUSED)
def test_what_is_refused(line: str, code: int, words: str, letters: Path, run: Run) -> None:
    before = sorted(letters.parent.rglob("*"))
    done = run(*(word.replace("|", " ") for word in line.split(" ")))
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr and "Traceback" not in done.stderr and done.stderr.startswith("mmgen: ")
    assert len(done.stderr.splitlines()[0]) < 700 and sorted(letters.parent.rglob("*")) == before
    assert ("did you mean" in done.stderr) <= (not line.startswith(("completion", "qqq")))


def every_command() -> list[Any]:
    """The parser of every command, of recipes one by one."""
    loaded = [load_command(name) for name in command_names()]
    (recipes,) = (one for one in loaded if isinstance(one, MemberCommands))
    members = [recipes.build_member_command(name) for name in data_recipes.names()]
    return [one for one in loaded if one is not recipes] + members


def test_every_option_refuses_an_empty_word_and_a_second_value() -> None:
    """An empty description leaves all open."""
    for command in every_command():
        options = [one for one in command.params if one.param_type_name == "option" and not one.is_flag]
        assert options, "every command has --code"
        for option in options:
            name = option.opts[0]
            if option.metavar != "WORDS":
                with pytest.raises(UsageError, match=f"^{name} got an empty value"):
                    command.make_context("mmgen", [name, ""])
            if not option.multiple:
                with pytest.raises(UsageError, match=f"^{name} is given 2 times"):
                    command.make_context("mmgen", [f"{name}=1", option.opts[-1], "2"])


@pytest.mark.parametrize(
    "given", ["modalities={image=3}", "modalities={text={name=[1]}}", "main=[3]", "modalities={image={kind=[1]}}"]
)
def test_descriptions_of_data_by_hand_are_refused_by_name(given: str) -> None:
    values = parse_assignments([f"data.{given}"])["data"]
    with pytest.raises(SettingsError, match=r"setting '?data\.(modalities\.[a-z_]+|main)") as refused:
        validate(DataSettings, values | {"modalities": values.get("modalities", {"y": {"kind": "vector"}})}, "data")
    assert "None" not in str(refused.value)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("latent_size=20", "model.latent_size"), ("beta=4", "objective.beta"), ("model.beta=4", "objective.beta"),
        ("steps=4", "training.steps"), ("training.stepss=4", "training.steps"), ("paired=0.1", "data.paired"),
        ("modle.latent_size=3", "model"),
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


def test_a_report_of_a_folder_is_of_all_that_it_tells_of(letters: Path) -> None:
    made = letters.parent / "made"
    made.mkdir()
    for name in ("my.safetensors", "my-scores.jsonl", "my.log.jsonl", "my.last.safetensors", "notes.txt"):
        (made / name).touch()
    assert read_paths([str(made)], folders=find_reported_files) == [made]
    assert find_reported_files(made) == [made / "my-scores.jsonl", made / "my.safetensors"]
    with pytest.raises(MmgenError, match="letters is a folder, expected a file; name a file"):
        read_paths([str(letters)], folders=find_reported_files)


def test_rows_of_scores_have_names_of_their_own() -> None:
    with pytest.raises(UsageError, match=r"--guidance got 3 twice"):
        Evaluate(Path("no"), guidance=["3:effective=20", 1, "3:candidates=10"]).measure()


def test_a_link_to_nothing_does_not_suggest_itself(letters: Path, run: Run) -> None:
    (letters.parent / "gone.safetensors").symlink_to("nothing")
    told = run("eval", "gone.safetensors")
    assert told.returncode == 1
    assert "gone.safetensors: it is a link to what is not there; make it anew" in " ".join(told.stderr.split())
