"""The stages as functions: the same files as the commands make, bit for bit, and what a notebook shows of them."""

import hashlib
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import mmgen
from mmgen.artifacts import read_header
from mmgen.cli import _main
from mmgen.commands import stage_names
from mmgen.commands._exporting import _find_scores
from mmgen.commands.export import Export
from mmgen.commands.make_data import MakeData, _apply_switches
from mmgen.core.errors import MissingParentError, UsageError
from mmgen.core.progress import NotebookWatch, Progress, Watch, Work
from mmgen.settings.registry import registry_of
from tests.conftest import Call


class Heard(Watch):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


TINY = {"model": {"latent_size": 4}, "training": {"validate_every": 20}}


def typed(line: str) -> None:
    with pytest.raises(SystemExit) as left:
        _main.main(shlex.split(line))
    assert left.value.code == 0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which everything was made from Python."""
    folder = tmp_path_factory.mktemp("python")
    data = mmgen.make_data("mnist-a", folder / "d.h5", source="digits", number=600, size=16, seed=1, workers=1)
    judge = mmgen.train_classifier(
        data, folder / "judge.safetensors", network="small", steps=20, batch=32, held_out=100
    )
    model = mmgen.train(
        data, folder / "m.safetensors", objective="telbo", steps=20, batch=16, precision="32-true", settings=TINY
    )
    fitted = mmgen.fit_aggregate(model, folder / "a.safetensors", steps=20, batch=32, examples=200)
    mmgen.evaluate(fitted, judge=judge, draws=2, queries=10, seed=3)
    mmgen.sample(fitted, "digit=3", n=4, output=folder / "p.png", judge=judge)
    return folder


def test_the_commands_make_the_same_files(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tiny = "--set model.latent_size=4 --set training.validate_every=20"
    typed("make-data mnist-a -o d.h5 --source digits --number 600 --size 16 --seed 1 --workers 1")
    typed("train-classifier d.h5 -o judge.safetensors --network small --steps 20 --batch 32 --held-out 100")
    typed(f"train d.h5 -o m.safetensors --objective telbo --steps 20 --batch 16 --precision 32-true {tiny}")
    typed("fit-aggregate m.safetensors -o a.safetensors --steps 20 --batch 32 --examples 200")
    typed("eval a.safetensors --draws 2 --queries 10 --seed 3")
    typed("sample a.safetensors --given digit=3 -n 4 -o p.png")
    for name in ("d.h5", "m.safetensors", "a.safetensors"):
        assert read_header(made / name).content_id == read_header(Path(name)).content_id
    for name in ("a-scores.jsonl", "p.png"):
        assert (made / name).read_bytes() == Path(name).read_bytes()


@pytest.mark.slow
def test_what_was_recorded_makes_the_same_again(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("d.h5", "judge.safetensors", "m.safetensors", "a.safetensors"):
        typed(read_header(made / name).command.replace(str(made), str(tmp_path)).removeprefix("mmgen "))
        judge = name.startswith("judge")  # whose id covers how long it took, in facts of its own
        assert judge or read_header(made / name).content_id == read_header(Path(name)).content_id


def test_what_comes_back_knows_its_file_and_shows_itself(made: Path) -> None:
    data = mmgen.make_data("mnist-a", made / "d.h5", source="digits", number=600, size=16, seed=1, workers=1)
    assert data.path == made / "d.h5" and "600" in data._repr_html_()
    with pytest.raises(UsageError, match="is there already"):
        mmgen.make_data("mnist-a", made / "d.h5", source="digits", number=500, size=16)
    model = mmgen.load(made / "a.safetensors")
    for shown in (repr(model), model._repr_html_()):
        assert "aggregate" in shown and str(made / "a.safetensors") in shown and "object at" not in shown
    with pytest.raises(UsageError, match=r"a-scores\.jsonl is there already"):
        mmgen.evaluate(made / "a.safetensors")
    scores = mmgen.evaluate(made / "a.safetensors", "parameters", made / "s.jsonl", overwrite=True)
    lines = (made / "s.jsonl").read_text().splitlines()
    assert scores.path == made / "s.jsonl" and [one.to_json() for one in scores] == [json.loads(one) for one in lines]
    assert "parameters" in repr(scores) and "<table>" in scores._repr_html_()
    picture = mmgen.sample(model, ["digit=3", "digit=4"], n=2, progress=False)
    assert picture._repr_png_()[:4] == b"\x89PNG"


def test_training_again_finds_it_done(made: Path) -> None:
    before = (made / "m.safetensors").stat().st_mtime_ns
    again: Any = mmgen.train
    again(
        made / "d.h5", made / "m.safetensors", objective="telbo", steps=20, batch=16, precision="32-true", settings=TINY
    )
    assert (made / "m.safetensors").stat().st_mtime_ns == before


def test_every_setting_of_an_evaluation_is_heeded(made: Path, tmp_path: Path) -> None:
    asked = {"metric": "correctness", "judge": made / "judge.safetensors", "draws": 2, "queries": 5}
    scores = mmgen.evaluate(made / "a.safetensors", output=tmp_path / "one.jsonl", given_count=[3], **asked)
    assert {score.given for score in scores} == {3}
    with pytest.raises(UsageError, match=r"^given_count got 9, expected numbers from 0 to 4"):
        mmgen.evaluate(made / "a.safetensors", output=tmp_path / "two.jsonl", given_count=[9], **asked)


def test_messages_speak_of_arguments_in_python_and_of_options_on_the_command_line(
    made: Path, tmp_path: Path, call: Call
) -> None:
    words = "{} or {} got {} too, which only drawing from a description uses; leave one or the other out"
    with pytest.raises(UsageError) as refused:
        mmgen.sample(made / "a.safetensors", source="image", guidance=3)
    assert str(refused.value) == words.format("source", "rows", "guidance")
    code, _, said = call("sample", made / "a.safetensors", "--from", "image", "--guidance", "3")
    assert (code, said) == (2, f"mmgen: {words.format('--from', '--dataset-row', '--guidance')}\n")
    (tmp_path / "mine.html").write_text("<h1>mine</h1>")
    with pytest.raises(UsageError, match="use another output, or overwrite=True to replace it"):
        mmgen.report(made / "a.safetensors", tmp_path / "mine.html")


def test_a_fit_to_start_from_lies_beside_the_output_with_a_command_of_its_own(made: Path, tmp_path: Path) -> None:
    shutil.copy(made / "m.safetensors", tmp_path)
    shutil.copy(made / "d.h5", tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    out = tmp_path / "out" / "guided.safetensors"
    out.parent.mkdir()
    asked: dict[str, Any] = {"steps": 2, "batch": 32, "examples": 100, "settings": {"aggregate.target.candidates": 4}}
    mmgen.fit_aggregate(tmp_path / "m.safetensors", out, guidance=2, **asked)
    assert {path.name for path in tmp_path.iterdir()} - before - {"out"} == {*latents_beside(tmp_path)}
    (base,) = (path for path in out.parent.glob("m-*.safetensors") if not path.name.endswith(".last.safetensors"))
    command = read_header(base).command
    assert f"-o {base}" in command.replace("--output", "-o") and "guid" not in command and "target" not in command
    assert "--guidance 2" in read_header(out).command
    content_id = read_header(base).content_id
    base.unlink()
    for rest in out.parent.glob("m-*"):
        rest.unlink()
    typed(command.removeprefix("mmgen "))
    assert read_header(base).content_id == content_id


def latents_beside(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*latents*")]


def test_a_dataset_of_another_version_or_package_is_another_one(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = read_header(made / "d.h5")

    def plan(seed: int = 1, command: str = header.command + " --overwrite") -> bool:
        return MakeData("mnist-a", made / "d.h5", seed=seed).is_up_to_date(command)

    assert plan()
    for other in ({"seed": 2}, {"command": "mmgen make-data mnist-a"}):
        with pytest.raises(UsageError, match="use the same command to keep it"):
            plan(**other)
    for name, value in (
        ("core.version.__version__", "0.0.0"),
        ("artifacts.header.members_of", lambda settings: ("other 2.0",)),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"mmgen.{name}", value)
            with pytest.raises(UsageError, match="use the same command"):
                plan()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"grey": 1}, "grey got 1, expected True or False"),
        ({"grey": True, "dynamic": True}, "grey and dynamic give one setting, binarise, 2 values"),
        ({"binarise": False, "grey": True}, "binarise and grey give one setting"),
        *(({"workers": workers}, "^workers got ") for workers in (0, -1, 1001, True, "2", 1.5)),
    ],
)
def test_values_that_cannot_be_meant_are_refused(settings: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        mmgen.make_data("mnist", tmp_path / "d.h5", **settings)


def test_switches_stand_for_their_fields() -> None:
    schema = registry_of("mmgen.data_recipes").get("mnist")
    said = [{}, {"grey": True}, {"grey": False}, {"dynamic": True}, {"binarise": False}, {"binarise": "dynamic"}]
    found = [_apply_switches(schema, each) for each in said]
    values: list[Any] = [None, False, None, "dynamic", False, "dynamic"]
    assert [each.get("binarise") for each in found] == values and all(each.keys() <= {"binarise"} for each in found)


def test_whoever_watches_is_told(made: Path) -> None:
    heard = Heard()
    mmgen.sample(made / "a.safetensors", "digit=3", n=2, progress=heard)
    assert any("judge" in text for text in heard.said)


def test_a_notebook_shows_a_bar_that_moves() -> None:
    class Handle:
        def __init__(self) -> None:
            self.seen: list[str] = []

        def update(self, bar: Any) -> None:
            self.seen.append(bar._repr_html_())

    handle, first = Handle(), []

    def display(shown: Any, **options: Any) -> Handle:
        first.append((repr(shown), options))
        return handle

    def generate():
        yield Progress(5, {"bound": -3.25})
        return "made"

    assert NotebookWatch(display).follow(Work("training <x>", 10, "step", generate)) == "made"
    assert first[0][0].startswith("training <x>: 0 of 10") and first[0][1] == {"display_id": True}
    assert 'value="10" max="10"' in handle.seen[-1] and "&lt;x&gt;" in handle.seen[-1] and "-3.25" in handle.seen[-1]


def test_importing_costs_nothing_and_tab_finds_everything() -> None:
    code = "import sys, mmgen; print(*{'torch', 'numpy', 'pydantic'} & sys.modules.keys()); print(*dir(mmgen))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy, names = done.stdout.splitlines()
    assert heavy == "" and names.split() == sorted(mmgen.__all__)


@pytest.mark.parametrize("command", stage_names())
def test_each_stage_is_a_typed_and_documented_function(command: str) -> None:
    name = "evaluate" if command == "eval" else command.replace("-", "_")
    assert name in mmgen.__all__
    function = getattr(mmgen, name)
    documented = inspect.getdoc(function)
    assert documented and "Args:" in documented and "Returns:" in documented
    for argument in inspect.signature(function).parameters.values():
        if argument.kind is not argument.VAR_KEYWORD:
            assert argument.annotation is not argument.empty, argument.name
            assert re.search(rf"^    {argument.name}: \S", documented, re.M), argument.name


@pytest.mark.slow
def test_a_notebook_goes_on_to_tables_figures_and_pages(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted = mmgen.load(made / "a.safetensors")
    compared = mmgen.compare(made / "a-scores.jsonl")
    assert "correctness" in repr(compared) and "<table>" in compared._repr_html_() and "tabular" in compared.latex()
    picture = mmgen.plot("traversal", fitted, number=2)
    assert repr(picture).startswith("<picture 'Traversals of z") and "<img" in picture._repr_html_()
    assert mmgen.report([fitted, made / "a-scores.jsonl"], tmp_path / "r.html") == tmp_path / "r.html"
    page = mmgen.explore(made, tmp_path / "e.html", number=1, dimensions=1)
    assert page == tmp_path / "e.html" and "<html" in page.read_text("utf-8")[:500]
    assert repr(mmgen.sample(fitted, "digit=3", n=2)).startswith("<grid of 2 images, ")
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_an_export_draws_without_the_dataset(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made / "exported"
    typed(f"export {made / 'a.safetensors'} {folder}")
    elsewhere = tmp_path / "elsewhere"
    shutil.move(folder, elsewhere)
    monkeypatch.chdir(tmp_path)
    for line in (elsewhere / "SHA256SUMS").read_text().splitlines():
        told, name = line.split("  ")
        assert hashlib.sha256((elsewhere / name).read_bytes()).hexdigest() == told
    names = {path.name for path in elsewhere.iterdir()} - {"SHA256SUMS"}
    wanted = {"README.md", "model.safetensors", "aggregate.safetensors", "judge.safetensors", "samples.png"}
    assert names == {*wanted, "scores.jsonl", "commands.sh"}
    there, here = mmgen.load(elsewhere), mmgen.load(made / "a.safetensors")
    assert there.sample("digit=3", n=2, seed=0).equal(here.sample("digit=3", n=2, seed=0))
    typed("sample elsewhere --given digit=3 -n 2")
    assert (tmp_path / "elsewhere-samples.png").exists()
    with pytest.raises(MissingParentError, match=r"cannot find the dataset .* mmgen make-data mnist-a"):
        there.dataset_path()


def test_scores_of_another_name_are_found_by_what_they_measured(made: Path, tmp_path: Path) -> None:
    for name in ("m.safetensors", "a.safetensors"):
        shutil.copyfile(made / name, tmp_path / name)
    loaded, heard = mmgen.load(tmp_path / "a.safetensors"), Heard()
    assert _find_scores(loaded, heard) == []
    scores = (made / "a-scores.jsonl").read_text()
    (tmp_path / "others.jsonl").write_text(scores.replace(loaded.header.content_id, "0" * 64))
    (tmp_path / "a.log.jsonl").write_text("{}")
    (tmp_path / "notes.jsonl").write_text("{}")
    assert _find_scores(loaded, heard) == [] and not heard.said
    (tmp_path / "mine.jsonl").write_text(scores)
    assert _find_scores(loaded, heard) == [tmp_path / "mine.jsonl"] and "mine.jsonl" in heard.said[0]
    os.utime(tmp_path / "mine.jsonl", (1, 1))
    one = json.loads(scores.splitlines()[0]) | {"points": None}
    two = [{**one, "quantity": "copies of gaps"}, {**one, "value": 1.25}]
    (tmp_path / "a-scores.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in two))
    assert _find_scores(loaded, heard) == [tmp_path / "mine.jsonl", tmp_path / "a-scores.jsonl"]
    typed(f"export {tmp_path / 'a.safetensors'} {tmp_path / 'all'}")
    told = [json.loads(line) for line in (tmp_path / "all" / "scores.jsonl").read_text().splitlines()]
    assert len(told) == len(scores.splitlines()) + 1 and told[-1]["quantity"] == "copies of gaps"
    assert told[0]["value"] == 1.25, "of the same, the later score"
    options = " ".join(f"--scores {tmp_path / name}" for name in ("a-scores.jsonl", "mine.jsonl"))
    typed(f"export {tmp_path / 'a.safetensors'} {tmp_path / 'typed'} {options}")
    assert len((tmp_path / "typed" / "scores.jsonl").read_text().splitlines()) == len(told)


def test_the_card_says_what_was_measured_with_errors_and_how_it_was_made(made: Path, tmp_path: Path) -> None:
    typed(f"export {made / 'a.safetensors'} {tmp_path / 'out'}")
    card = (tmp_path / "out" / "README.md").read_text()
    _, front, body = card.split("---\n", 2)
    matter = dict(line.split(": ", 1) for line in front.splitlines() if not line.startswith("#"))
    (model,) = json.loads(matter["model-index"])
    metrics = model["results"][0]["metrics"]
    near = [path for path in (made / "a-scores.jsonl", made / "s.jsonl") if path.exists()]  # of another test
    scores = [json.loads(line) for path in near for line in path.read_text().splitlines()]
    assert [(one["type"], one["value"]) for one in metrics] == [(one["metric"], one["value"]) for one in scores]
    assert metrics[0]["args"]["standard_error"] == scores[0]["stderr"] and "license" not in matter
    assert "aggregate-posterior" in json.loads(matter["tags"])
    for name in ("d.h5", "m.safetensors", "a.safetensors"):
        assert read_header(made / name).command in body
    with pytest.raises(UsageError, match="not empty"):
        Export(made / "a.safetensors", tmp_path / "out").run()


@pytest.mark.slow
def test_an_archive_is_the_same_each_time_and_is_to_be_unpacked(made: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one" / "a.zip", tmp_path / "two" / "a.zip"
    for path in (one, two):
        path.parent.mkdir()
        Export(made / "a.safetensors", path).run()
    assert one.read_bytes() == two.read_bytes()
    with pytest.raises(UsageError, match=r"is an archive, .*unpack it"):
        mmgen.load(one)
    with zipfile.ZipFile(one) as archive:
        archive.extractall(tmp_path)
    assert mmgen.load(tmp_path / "a").sample("digit=1", n=1).shape == (1, 1, 16, 16)


def test_own_pictures_by_the_function_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for colour, rgb in (("red", (200, 0, 0)), ("blue", (0, 0, 200))):
        (tmp_path / "pictures" / colour).mkdir(parents=True)
        for number in range(12):
            Image.new("RGB", (20, 20), (rgb[0], number * 5, rgb[2])).save(f"pictures/{colour}/{number}.png")
    made = mmgen.make_data("folder", "own.h5", pictures="pictures", size=16, grey=True, workers=1)
    command = made.header.command
    assert command.startswith("mmgen make-data folder pictures ")
    typed(command.removeprefix("mmgen ").replace("own.h5", "again.h5"))
    assert read_header(Path("again.h5")).content_id == made.header.content_id
