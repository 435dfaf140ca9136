"""Several judges of the same pictures: each says what it says alone, nothing is drawn twice, who said it is told."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mmgen.artifacts import Dataset
from mmgen.core.errors import UsageError
from mmgen.core.progress import run_generator
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.generation import classifiers as judges
from mmgen.metrics._base import default_metrics, evaluate, evaluate_with_classifiers
from mmgen.metrics.recall import Recall
from mmgen.results.score import Score, Scores, classifier_names
from tests.metrics.toy import Judge, loaded_painter, write_dataset


class Sceptic(Judge):
    """Reads every size as big, and looks at nothing else but the digit."""

    content_id, network_name = "s", "sceptic"
    accuracy = {"digit": 100.0, "size": 50.0, "mean": 75.0}  # noqa: RUF012  # as of its base

    def predict(self, images: Tensor, hints: Tensor | None = None, precision: str = "auto") -> Tensor:
        return super().predict(images, hints) * torch.tensor([1, 0], dtype=torch.uint8)

    def features(self, images: Tensor, hints: Tensor | None = None) -> Tensor:
        return images.flatten(1)[:, :1]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.open(write_dataset(tmp_path_factory.mktemp("judges") / "toy.h5", 900))


def asked(dataset: Dataset, judge: Judge, **settings: Any) -> Evaluation:
    loaded = loaded_painter(Path("m.safetensors"))
    return Evaluation(
        loaded, dataset, judge, ("prior", "own"), EvaluationSettings(dropped=(0, 1), draws=12, **settings)
    )


MEASURED = ("correctness", "coverage", "recall")


def test_each_judge_says_what_it_says_alone(dataset: Dataset) -> None:
    """Same draws, so the same numbers to the last bit, features as well as codes; unjudged metrics are asked once."""
    by_all = evaluate_with_classifiers(asked(dataset, Judge()), [*MEASURED, "parameters"], [Sceptic()])
    together = [score for work in by_all for score in work.run()]
    alone = [
        score
        for judge, metrics in ((Judge(), [*MEASURED, "parameters"]), (Sceptic(), MEASURED))
        for score in evaluate(asked(dataset, judge), metrics).run()
    ]
    assert [(s.metric, s.posterior, s.given, s.ids.get("judge")) for s in together] == [
        (s.metric, s.posterior, s.given, s.ids.get("judge")) for s in alone
    ]
    # Coverage takes more pictures where one of the two asks for more, which only makes the other's more precise.
    for ours, own in zip(together, alone, strict=True):
        if ours.n == own.n:
            assert (ours.value, ours.stderr) == (own.value, own.stderr)
        assert ours.n >= own.n
    assert sum(ours.n == own.n for ours, own in zip(together, alone, strict=True)) > len(alone) // 2
    assert {s.judge for s in together} == {"reader", "sceptic", ""}
    right = {s.judge: s.value for s in together if (s.metric, s.posterior, s.given) == ("correctness", "own", 2)}
    assert right["reader"] == 100 and right["sceptic"] == 75  # half of all sizes are small


def test_nothing_is_drawn_twice(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for the other judge nor for the features that recall compares."""
    first = asked(dataset, Judge())
    drawn: dict[tuple[str, int], list[int]] = {}
    pictures = type(first.drawn_pictures).draw_pictures

    def counted(self: Any, queries: Any, posterior: str, n: int, have: int = 0) -> Any:
        drawn.setdefault((posterior, queries.dropped), []).extend(range(have, have + n))
        return pictures(self, queries, posterior, n, have)

    monkeypatch.setattr(type(first.drawn_pictures), "draw_pictures", counted)
    for work in evaluate_with_classifiers(first, MEASURED, [Sceptic()]):
        work.run()
    assert len(drawn) == 4
    assert all(numbers == list(range(len(numbers))) for numbers in drawn.values())


def test_features_are_those_of_the_pictures_that_were_judged(dataset: Dataset) -> None:
    draws = (evaluation := asked(dataset, Judge())).drawn_pictures
    draws.store_features(lambda _: 5)

    queries = evaluation.questions.make_queries(1)
    codes = run_generator(draws.classify_pictures(queries, "own", 7))
    features = run_generator(draws.compute_features(queries, "own", 5))
    assert features.shape[1] == 5 < codes.shape[1]
    np.testing.assert_array_equal(np.round(features * 255 / 60), codes[:, :5])


@pytest.mark.parametrize(
    ("which", "said"),
    [
        (("a", "b", "a"), r"--judge got a twice, expected each judge once; leave one out"),
        (
            ("a", "t"),
            r"--judge got t with the hints size and a with the hints none, expected judges with the same hints",
        ),
    ],
)
def test_judges_that_cannot_be_asked_together(
    which: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(path: Path, device: str) -> Judge:
        judge = Judge()
        judge.content_id, judge.hints = str(path), ("size",) if str(path) == "t" else ()
        return judge

    monkeypatch.setattr("mmgen.classifier.load_classifier", opened, raising=False)
    with pytest.raises(UsageError, match=said):
        judges.load_classifiers([Path(name) for name in which], "cpu")
    assert len(judges.load_classifiers([Path("a"), Path("b")], "cpu")) == 2


def test_recall_is_measured_where_coverage_is(dataset: Dataset) -> None:
    assert default_metrics(loaded_painter(Path("m.safetensors"))) == list(MEASURED)
    assert evaluate(asked(dataset, Judge()), ["recall"]).run()
    few = Dataset.open(write_dataset(dataset.path.with_name("few.h5"), 36))  # 12 test pictures of 6 descriptions
    evaluation = Evaluation(loaded_painter(Path("m")), few, Judge(), ("own",), EvaluationSettings(dropped=(0,)))
    assert evaluate(evaluation, ["recall"]).run() == []
    assert "8 real pictures in each of two halves" in Recall.unmeasured


def test_scores_of_several_judges_are_told_apart() -> None:
    def of(judge: str, network: str) -> Score:
        told = {"ids": {"judge": judge}, "judge": network}
        return Score("correctness", "correctness", 1.0, None, "%", "higher", 1, "own", 2, **told)

    assert classifier_names([of("a1", "small"), of("b2", "attentive")]) == ["small", "attentive"]
    assert classifier_names([of("a1", "small"), of("b2", "small"), of("a1", "small")]) == [
        "small a1",
        "small b2",
        "small a1",
    ]
    assert classifier_names([of("a1", "")]) == ["judge"]  # scores from before networks were told
    shown = repr(Scores([of("a1", "small"), of("b2", "attentive")]))
    assert " small " in shown and " attentive " in shown
    assert "(judge" not in repr(Scores([of("a1", "small")]))
