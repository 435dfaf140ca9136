"""Tables of ``mmgen eval`` over any metric, also one that nobody has thought of."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from mmgen import metrics
from mmgen.artifacts import Dataset
from mmgen.cli import _measure as command
from mmgen.commands.evaluate import Evaluate
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.metrics._base import Metric, Score, evaluate
from mmgen.testing.metrics import accepts_evaluation, evaluation_makers
from tests.metrics.toy import Judge, loaded_painter, write_dataset
from tests.metrics.views import asked as asked_views, write_views

PAGE = Path(__file__).parents[2] / "docs" / "how-to-add-a-metric.md"


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> list[Evaluation]:
    """Trained models of pictures, whose test part has every combination, of pictures of two objects, and of the kinds
    of worlds beside the core; and a model of several pictures of each example.
    """
    views = asked_views(write_views(tmp_path_factory.mktemp("views") / "toy.h5"), lambda view, z: z)
    return [*(make(tmp_path_factory.mktemp(make.__name__)) for make in evaluation_makers()), views]


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    dataset = Dataset.open(write_dataset(tmp_path_factory.mktemp("toy") / "toy.h5"))
    return asked(dataset)


def asked(dataset: Dataset, split: str = "") -> Evaluation:
    settings = EvaluationSettings(draws=4, samples=5, text_samples=20, number=10, dropped=(0, 1), split=split)
    return Evaluation(
        loaded_painter(Path("m.safetensors"), split="compositional"), dataset, Judge(), ("prior", "own"), settings
    )


class MadeUp(Metric):
    """In nats, with nothing in ``details`` but what it declares, and that of some scores only."""

    unit = "nats"
    better = "lower"
    columns: ClassVar = {"depth": "depth", "of": "source"}

    def __call__(self, evaluation: Any, posterior: str) -> Any:
        yield 1.0
        return [made_up(3.25, 0.004, {"depth": 7, "source": "[bold]a"}, "it is made up"), made_up(4.0)]


def made_up(value: float, stderr: float | None = None, details: dict[str, Any] | None = None, *warnings: str) -> Score:
    told: dict[str, Any] = {"ids": {"model": "m"}, "details": details or {}, "warnings": warnings}
    return Score("made-up", "regret", value, stderr, "nats", "lower", 12, "prior", **told)


def shown(scores: list[Score], capsys: pytest.CaptureFixture[str]) -> str:
    command.show_scores(scores, as_result=False)
    return capsys.readouterr().err


def test_a_new_metric_has_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    known, get = metrics.names(), metrics.get
    monkeypatch.setattr(metrics, "names", lambda: [*known, "made-up"])
    monkeypatch.setattr(metrics, "get", lambda name: MadeUp if name == "made-up" else get(name))
    said = shown([made_up(3.25, 0.004, {"depth": 7, "source": "[bold]a"}, "it is made up"), made_up(4.0)], capsys)
    assert "made-up, nats per example" in said
    for part in ("measured", "regret", "3.250 ± 0.004", "4.00", "depth", "7", "of", "[bold]a", "12"):
        assert part in said
    assert "regret () under prior: it is made up" in said.replace("\n", " ") or "it is made up" in said


@pytest.mark.slow_cases("dci", "link-prediction")
@pytest.mark.parametrize("name", metrics.names())
def test_every_metric_has_a_table_with_and_without_its_further_numbers(
    name: str, evaluation: Evaluation, others: list[Evaluation], capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "bleu":
        pytest.importorskip("sacrebleu")
    scores = evaluate(next(each for each in [evaluation, *others] if accepts_evaluation(name, each)), [name]).run()
    whole = shown(scores, capsys)
    for heading, key in metrics.get(name).columns.items():
        if any(score.details.get(key) is not None for score in scores):
            assert all(word in whole for word in heading.split()), heading
    bare = shown([replace(score, details={}, stderr=None, judge_accuracy=None) for score in scores], capsys)
    for score in scores:
        assert score.source in bare


def test_a_warning_names_each_score_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Scores of several judges and numbers of words have the same name."""
    said = shown([replace(made_up(1.0, 0.1, {}, "few pictures"), given=given) for given in (3, 2, 1)], capsys)
    (warning,) = re.findall(r"^.*: few\s+pictures$", said, re.M)
    assert warning.count(" under ") == 1


def test_the_metric_of_the_page_has_a_table(evaluation: Evaluation, capsys: pytest.CaptureFixture[str]) -> None:
    """The page's own file, run and shown."""
    (source,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    space: dict[str, Any] = {}
    exec(compile(source, str(PAGE), "exec"), space)
    work = space["StrictCorrectness"]()(asked(evaluation.dataset, "iid"), "own")
    while True:
        try:
            next(work)
        except StopIteration as stop:
            scores = stop.value
            break
    assert scores[0].value == 100
    assert 0 < scores[0].stderr < 20
    assert "strict-correctness" in shown(scores, capsys)


def test_lines_are_written_before_tables(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table that cannot be drawn loses no work."""

    def broken(*arguments: Any) -> None:
        raise KeyError("a fault in a table")

    monkeypatch.setattr(command, "print_table", broken)
    monkeypatch.setattr("mmgen.generation.load", lambda path, device: evaluation.loaded)
    monkeypatch.setattr(
        "mmgen.generation.classifiers.find_dataset_classifier", lambda data, near: tmp_path / "judge.safetensors"
    )
    monkeypatch.setattr("mmgen.generation.classifiers.load_classifiers", lambda paths, device: [Judge()])
    evaluation.loaded.dataset_path = lambda: evaluation.dataset.path
    evaluation.loaded.guided = lambda weight, seed=0: evaluation.loaded
    model, out = tmp_path / "m.safetensors", tmp_path / "scores.jsonl"
    model.write_bytes(b"a model")
    with pytest.raises(KeyError):
        command.eval_command(Evaluate(model, ["parameters"], out, device="cpu"))
    assert [json.loads(line)["metric"] for line in out.read_text().splitlines()] == ["parameters", "parameters"]
    assert capsys.readouterr().out == f"{out}\n"
