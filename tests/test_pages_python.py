"""The Python of the pages runs, and does what the page says of it."""

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mmgen import data_recipes
from mmgen.artifacts import Dataset, read_checkpoint
from mmgen.commands import fields_of, option_names
from mmgen.core.worlds import CONTRIB
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.figures.plots._base import PlotOptions
from mmgen.models._build import build_model
from mmgen.results.score import Score
from mmgen.settings import plugins, registry
from mmgen.testing.linear_gaussian import draw_observations, exact_log_marginal, make_linear_gaussian
from mmgen.testing.small import SMALL_DATA, SMALL_MODEL, small_batch
from mmgen.training.settings import TrainingSettings
from mmgen.training.task import ModelTask, make_optimizers
from tests.metrics.toy import Judge, loaded_painter, write_dataset

DOCS = Path(__file__).resolve().parents[1] / "docs"


def run_blocks(page: str, together: bool = False) -> list[dict[str, Any]]:
    """What each Python block of a page leaves behind; ``together`` each knows what those before it have left."""
    left: list[dict[str, Any]] = []
    for number, block in enumerate(
        re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text("utf-8"), re.S | re.M)
    ):
        names: dict[str, Any] = left[-1] if together and left else {"__name__": f"{Path(page).stem}_{number}"}
        exec(compile(block, page, "exec"), names)
        left.append(names)
    return left


def test_the_objective_of_the_page_is_the_bound_that_it_says() -> None:
    names, _ = run_blocks("how-to-add-an-objective.md")
    bound = names["TextSide"]()(make_linear_gaussian(0.3, -0.2), draw_observations(200).repeat(50))
    assert bound.is_bound
    exact = exact_log_marginal(draw_observations(200), ("image", "attributes"))
    assert bound.value.mean() < exact.mean()


def test_the_opponent_of_the_page_plays() -> None:
    """A step of each player of a task, whose objective is nothing but its file."""
    _, names = run_blocks("how-to-add-an-objective.md")
    objective = names["Pulled"]()
    task = ModelTask(build_model(SMALL_MODEL, objective.demands, SMALL_DATA), objective)
    optimizers = make_optimizers(task, TrainingSettings(learning_rate=0.1))
    assert {name: one.defaults["lr"] for name, one in optimizers.items()} == {"model": 0.1, "critic": 1e-4}
    for player in task.players:
        bound = task(small_batch(6), 0, player)
        assert bound.value.shape == (6 if player == "model" else 3,) and bound.value.requires_grad
    assert task.validate(small_batch(6)).keys() >= {"bound", "log odds", "critic/known"}


def test_the_forger_of_the_page_learns_the_mean(tmp_path: Path) -> None:
    names = run_blocks("training.md", together=True)[-1]
    settings = {"steps": 400, "batch": 64, "optimizer": "rmsprop", "learning_rate": 0.02, "device": "cpu"}
    made = names["train_forger"](tmp_path / "forger.safetensors", TrainingSettings(**settings, precision="32-true"))
    header, tensors = read_checkpoint(made, "model")
    assert header.facts["validation_terms"].keys() >= {"critic/known", "forger/bound"}
    assert tensors["forger.mean"].item() == pytest.approx(3, abs=0.5)


def test_the_metric_of_the_page_scores_a_model(tmp_path: Path) -> None:
    (names,) = run_blocks("how-to-add-a-metric.md")
    dataset = Dataset.open(write_dataset(tmp_path / "toy.h5"))
    settings = EvaluationSettings(draws=4, samples=5, text_samples=20, number=10, dropped=(0,))
    evaluation = Evaluation(loaded_painter(Path("m.safetensors")), dataset, Judge(), ("own",), settings)
    found: list[Score] = []

    def scored() -> Iterator[float]:
        found.extend((yield from names["StrictCorrectness"]()(evaluation, "own")))

    fractions = list(scored())
    (score,) = found
    assert fractions == sorted(fractions)
    assert 0 <= score.value <= 100
    assert score.unit == "%"


@pytest.mark.parametrize(
    ("page", "member"),
    [
        ("a-network", "network patches"),
        ("a-likelihood", "likelihood fixed-normal"),
        ("an-inference", "inference cautious-experts"),
        ("an-aggregate-family", "aggregate family ball"),
        ("a-figure", "figure radii"),
        ("a-modality", "modality counts"),
    ],
)
def test_the_members_of_the_pages_keep_their_promises(
    page: str, member: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a file as one would name with --code, and passes the checks that the page of plug-ins runs."""
    monkeypatch.setattr(plugins, "_files", {})
    monkeypatch.setenv(plugins.CODE_VARIABLE, "")
    (block,) = re.findall(r"^```python\n(.*?)^```$", (DOCS / f"how-to-add-{page}.md").read_text("utf-8"), re.S | re.M)
    (tmp_path / "mine.py").write_text(block)
    assert registry.add_code(tmp_path / "mine.py") == [member]
    (names,) = run_blocks("plug-ins.md")
    names["check_all"]("mine.py")
    room, name = member.rsplit(" ", 1)
    about = next(one for one in registry.list_registries() if one.noun == room).describe(name)
    assert about and about.endswith(tuple("abcdefghijklmnopqrstuvwxyz0123456789"))


def test_the_page_of_plug_ins_names_every_room() -> None:
    rows = re.findall(
        r"^\| `(mmgen\.\w+)` \| ([\w ]+) \| `([\w.]+)` \|", (DOCS / "plug-ins.md").read_text("utf-8"), re.M
    )
    rooms = registry.list_registries()
    rows = [row for row in rows if CONTRIB.is_dir() or not row[2].startswith("mmgen.contrib.")]
    assert sorted(rows) == sorted((room.group, room.noun, f"{room.package}.{room.base}") for room in rooms)
    assert all(hasattr(importlib.import_module(room.package), room.base) for room in rooms)


def test_the_figure_of_the_page_is_drawn() -> None:
    (names,) = run_blocks("how-to-add-a-figure.md")
    model = SimpleNamespace(model=SimpleNamespace(latent_size=4))
    picture = names["radii"]([SimpleNamespace(model=model, seed=0)], PlotOptions(number=50))
    assert picture.title == "Radii" and "50 draws" in picture.caption


def test_both_ways_of_reading_a_dataset_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data_recipes.get("mnist-a")(source="digits", number=600, size=16).make(tmp_path / "mnist-a.h5", workers=1).run()
    without, with_it = run_blocks("artifacts.md")
    assert len(without["pixels"]) == 16
    for name in ("pixels", "codes"):
        np.testing.assert_array_equal(without[name], with_it[name])
    assert without["names"] == ["digit", "scale", "orientation", "location"]


def test_the_command_of_the_page_has_its_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file becomes a stage, whose fields are options, and which runs."""
    (block,) = re.findall(r"^```python\n(.*?)^```$", (DOCS / "how-to-add-a-command.md").read_text("utf-8"), re.S | re.M)
    (tmp_path / "count_values.py").write_text(block)
    spec = importlib.util.spec_from_file_location("mmgen.commands.count_values", tmp_path / "count_values.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    described = {field.name: (option_names(field), field.about) for field in fields_of(module.CountValues)}
    assert described["number"] == (["--number", "-n"], "Values to list at most, the most frequent first.")
    stage = module.CountValues(write_dataset(tmp_path / "d.h5"), number=3, progress=False)
    assert stage.command_line() == f"mmgen count-values {tmp_path / 'd.h5'} --number 3"
    stage.run()
