"""Several judges of the same pictures: each says what it says alone, and how often two agree, worked out by hand."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mmgen.artifacts import Dataset
from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.progress import run_generator
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.evaluation.queries import Queries
from mmgen.generation import classifiers as judges
from mmgen.metrics._base import default_metrics, evaluate, evaluate_with_classifiers
from mmgen.metrics.agreement import _compare_with_real, _Readings
from mmgen.metrics.recall import Recall
from mmgen.results.score import Score, Scores, classifier_names
from tests.metrics.toy import Judge, loaded_painter, write_dataset


class Rounder(Judge):
    """Reads a digit between two digits as the upper one, where the other judge reads the lower one, and is sure of a
    digit that is one."""

    content_id, network_name = "r", "rounder"

    def predict(self, images: Tensor, hints: Tensor | None = None, precision: str = "auto") -> Tensor:
        return (images.flatten(1) * 255 / 60 + 0.01).round().to(torch.uint8)


class Doubter(Judge):
    """Reads a digit between two digits as the lower one, and is not sure of it."""

    content_id, network_name = "d", "doubter"

    def predict(self, images: Tensor, hints: Tensor | None = None, precision: str = "auto") -> Tensor:
        return (images.flatten(1) * 255 / 60 - 0.01).round().to(torch.uint8)

    def confidence(self, images: Tensor, hints: Tensor | None = None, precision: str = "auto") -> Tensor:
        grey = images.flatten(1) * 255 / 60
        return 1 - (grey - grey.round()).abs()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.open(write_dataset(tmp_path_factory.mktemp("agreement") / "toy.h5", 900))


def asked(
    dataset: Dataset,
    share: float = 0.0,
    dropped: tuple[int, ...] = (0, 1),
    draws: int = 200,
    judge: Judge | None = None,
) -> Evaluation:
    """An evaluation of "own" in which a share of the drawn pictures are blends of the digits 0 and 1."""
    settings = EvaluationSettings(dropped=dropped, draws=draws)
    evaluation = Evaluation(loaded_painter(Path("m.safetensors")), dataset, judge or Doubter(), ("own",), settings)
    pictures = evaluation.drawn_pictures
    draw = pictures.draw_pictures

    def with_ghosts(queries: Any, posterior: str, n: int, have: int = 0) -> Iterator[Any]:
        for piece in draw(queries, posterior, n, have):
            means = piece.means.clone()
            means[:, : round(share * means.shape[1]), ..., 0] = 30 / 255  # between 0 and 60
            yield replace(piece, means=means)

    pictures.draw_pictures = with_ghosts  # type: ignore[method-assign]  # in place of what is drawn
    return evaluation


def measure(evaluation: Evaluation, *metrics: str) -> list[Score]:
    return [score for work in evaluate_with_classifiers(evaluation, metrics, [Rounder()]) for score in work.run()]


def test_pictures_that_show_two_values_are_read_differently(dataset: Dataset) -> None:
    scores = measure(asked(dataset, 0.25), "agreement")
    assert [(score.quantity, score.given) for score in scores] == [
        ("agreement", 2), ("sure", 2), ("agreement", 1), ("sure", 1),
    ]  # fmt: skip
    # All words given: each word counts, and a quarter of the pictures have no digit.
    assert scores[0].value == scores[1].value == 75 and scores[0].details["ceiling"] == 100
    assert scores[0].by_attribute == {"digit": 75, "size": 100}
    # One given: where the digit is open (2 of 5 descriptions, 6 of 12 choices) a quarter; a size is always legible.
    assert scores[2].value == pytest.approx(100 - 25 / 2)
    assert scores[2].by_attribute == {"digit": 75, "size": 100}
    for score in scores:
        assert score.details["below_ceiling"] == pytest.approx(100 - score.value)
        assert score.stderr is not None and score.stderr > 0 and score.details["real"] == 300
        assert score.conditions["second_judge"] == "rounder r" and score.judge == "doubter"


def test_only_open_words_count(dataset: Dataset) -> None:
    """A digit that was asked for and is a ghost is correctness's matter, where a size is open."""
    by_query = measure(asked(dataset, 1.0, dropped=(1,)), "agreement")[0]
    assert by_query.points is not None
    codes = asked(dataset, dropped=(1,)).questions.make_queries(1).codes
    assert [*by_query.points.values] == [0.0 if code[0] == 255 else 100.0 for code in codes]
    # Pictures of a description are all read alike or none is: the error over 1,000 pictures would be 2.4.
    assert by_query.stderr is not None and by_query.stderr > 20


def test_ghosts_escape_the_other_metrics(dataset: Dataset) -> None:
    """Planted ghosts lower agreement by their share and nothing else by half of that."""
    metrics = ("agreement", "correctness", "coverage")
    real, ghosts = (measure(asked(dataset, share, (1,)), *metrics) for share in (0.0, 0.2))
    lost = {(one.quantity, one.judge): one.value - other.value for one, other in zip(real, ghosts, strict=True)}
    assert lost["agreement", "doubter"] == pytest.approx(10) == lost["sure", "doubter"]
    assert all(abs(value) < 5 for (quantity, _), value in lost.items() if quantity == "coverage")


def test_one_judge_is_refused_with_the_way_to_a_second(dataset: Dataset) -> None:
    with pytest.raises(UsageError, match="agreement needs two judges, got one; make a second with: mmgen train-") as e:
        evaluate(asked(dataset), ["agreement"])
    assert f"{dataset.path} --network attentive --seed 1 -o second-judge.safetensors" in str(e.value)
    assert str(e.value).endswith("--judge FIRST --judge second-judge.safetensors")


def test_three_judges_are_compared_with_the_first(dataset: Dataset) -> None:
    works = evaluate_with_classifiers(asked(dataset, 0.5, (0,)), ["agreement"], [Rounder(), Judge()])
    scores = [score for work in works for score in work.run()]
    assert [(s.conditions["second_judge"], s.quantity) for s in scores] == [
        ("rounder r", "agreement"), ("rounder r", "sure"), ("reader j", "agreement"), ("reader j", "sure"),
    ]  # fmt: skip


def test_a_description_without_real_pictures_has_no_ceiling(tmp_path: Path) -> None:
    """Training pictures of the split "compositional" lack a combination, whose test part has nothing else."""
    data = Dataset.open(write_dataset(tmp_path / "toy.h5", 120))
    loaded = loaded_painter(Path("m.safetensors"), split="compositional")
    evaluation = Evaluation(loaded, data, Judge(), ("own",), EvaluationSettings(dropped=(0,), draws=4))
    (score, _) = measure(evaluation, "agreement")
    assert score.value == 100 and score.stderr is None and score.details["ceiling"] == 100
    assert np.isfinite(score.details["below_ceiling"])


def test_errors_of_real_pictures_are_over_pictures_which_descriptions_share() -> None:
    """The stated error of 200 evaluations is the spread of their values, where that over descriptions is too small."""
    random = np.random.default_rng(0)
    pairs = list(itertools.combinations(range(4), 2))
    codes = np.full((4 * len(pairs), 4), UNKNOWN, np.uint8)
    for number, (pair, values) in enumerate(itertools.product(pairs, itertools.product(range(2), repeat=2))):
        codes[number, list(pair)] = values
    queries = Queries(codes, np.ones(len(codes)), 2)
    found, stated, plain = [], [], []
    for _ in range(200):
        known = random.integers(0, 2, (300, 4)).astype(np.uint8)
        clear = random.beta(9, 1, (300, 1))  # some pictures are unclear in all words
        real = SimpleNamespace(read_rows=np.arange(300), predicted=known, confidences=np.ones(known.shape))
        other = np.where(random.random(known.shape) < clear, known, 1 - known)
        dataset = SimpleNamespace(read_attributes=lambda name, rows, known=known: known, read_sources=lambda rows: None)
        fields = {"dataset": dataset, "attributes": SimpleNamespace(name="words"), "real_pictures": real}
        evaluation: Any = SimpleNamespace(**fields, questions=SimpleNamespace(hints=()))
        second: Any = SimpleNamespace(real_pictures=SimpleNamespace(predicted=other))
        drawn = _Readings(np.ones((len(codes), 1, 4), np.bool_), np.ones((len(codes), 1, 4), np.bool_))
        _, (alike, sure), errors, number = _compare_with_real(evaluation, second, queries, drawn)
        assert number == 300 and (sure == 100).all()
        found.append(alike.mean())
        stated.append(errors[0])
        plain.append(alike.std(ddof=1) / len(codes) ** 0.5)
    assert np.mean(stated) == pytest.approx(np.std(found), rel=0.15)
    assert np.mean(plain) < 0.75 * np.std(found)


class Sceptic(Judge):
    """Reads every size as big, and looks at nothing else but the digit."""

    content_id, network_name = "s", "sceptic"
    accuracy = {"digit": 100.0, "size": 50.0, "mean": 75.0}  # noqa: RUF012  # as of its base

    def predict(self, images: Tensor, hints: Tensor | None = None, precision: str = "auto") -> Tensor:
        return super().predict(images, hints) * torch.tensor([1, 0], dtype=torch.uint8)

    def features(self, images: Tensor, hints: Tensor | None = None) -> Tensor:
        return images.flatten(1)[:, :1]


def asked_by(dataset: Dataset, judge: Judge) -> Evaluation:
    settings = EvaluationSettings(dropped=(0, 1), draws=12)
    return Evaluation(loaded_painter(Path("m.safetensors")), dataset, judge, ("prior", "own"), settings)


MEASURED = ("correctness", "coverage", "recall")


def test_each_judge_says_what_it_says_alone(dataset: Dataset) -> None:
    """Same draws, so the same numbers to the last bit, features as well as codes; unjudged metrics are asked once."""
    by_all = evaluate_with_classifiers(asked_by(dataset, Judge()), [*MEASURED, "parameters"], [Sceptic()])
    together = [score for work in by_all for score in work.run()]
    alone = [
        score
        for judge, metrics in ((Judge(), [*MEASURED, "parameters"]), (Sceptic(), MEASURED))
        for score in evaluate(asked_by(dataset, judge), metrics).run()
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
    """Neither for the other judge, nor to compare both, nor for the features that recall compares."""
    first = asked_by(dataset, Judge())
    drawn: dict[tuple[str, int], list[int]] = {}
    pictures = type(first.drawn_pictures).draw_pictures

    def counted(self: Any, queries: Any, posterior: str, n: int, have: int = 0) -> Any:
        drawn.setdefault((posterior, queries.dropped), []).extend(range(have, have + n))
        return pictures(self, queries, posterior, n, have)

    monkeypatch.setattr(type(first.drawn_pictures), "draw_pictures", counted)
    for work in evaluate_with_classifiers(first, ("agreement", *MEASURED), [Sceptic()]):
        work.run()
    assert len(drawn) == 4
    assert all(numbers == list(range(len(numbers))) for numbers in drawn.values())


def test_features_are_those_of_the_pictures_that_were_judged(dataset: Dataset) -> None:
    draws = (evaluation := asked_by(dataset, Judge())).drawn_pictures
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
    assert evaluate(asked_by(dataset, Judge()), ["recall"]).run()
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


@pytest.mark.parametrize(("confidence", "sure"), [(0.9, 100.0), (0.89, 0.0)])
def test_a_judge_is_sure_from_nine_tenths_on(dataset: Dataset, confidence: float, sure: float) -> None:
    class Even(Judge):
        def confidence(self, images: Tensor, hints: Tensor | None = None, precision: str = "auto") -> Tensor:
            return torch.full((len(images), 2), confidence, dtype=torch.float64)

    agreed, said = measure(asked(dataset, dropped=(0,), draws=2, judge=Even()), "agreement")
    assert (agreed.value, said.value) == (100.0, sure)
