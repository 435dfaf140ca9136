"""Training pictures in place of drawn ones: which fit a description, in which order, and how metrics score them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmgen.artifacts import Dataset
from mmgen.core.errors import UsageError
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.evaluation.queries import Queries
from mmgen.evaluation.retrieved import RetrievedPictures, fit_of_attributes, fit_of_captions
from mmgen.metrics._base import evaluate
from mmgen.posteriors import Guidance
from mmgen.results.naming import PosteriorName
from mmgen.results.summary import summarise
from tests.metrics.toy import INFO, Judge, loaded_painter, write_dataset
from tests.small_data import write_small


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    with Dataset.open(write_dataset(tmp_path_factory.mktemp("retrieved") / "toy.h5")) as opened:
        yield opened


def loaded_with(dataset: Dataset, split: str = "iid") -> Any:
    return loaded_painter(Path("m.safetensors"), dataset.header.content_id, split)


def queries_of(*codes: list[int]) -> Queries:
    table = np.array(codes, np.uint8)
    return Queries(table, np.ones(len(table)), int((table[0] == 255).sum()))


def test_examples_that_agree_with_all_given_values_come_in_random_order_and_once(dataset: Dataset) -> None:
    rows = dataset.split("iid", "train")
    codes = dataset.read_attributes("attributes", rows)
    found = RetrievedPictures(dataset, loaded_with(dataset), rows, seed=0).find_rows(queries_of([1, 255]), 13)
    fitting = rows[codes[:, 0] == 1]
    assert sorted(found[0]) == sorted(fitting)
    assert list(found[0]) != list(fitting)
    again = RetrievedPictures(dataset, loaded_with(dataset), rows, seed=0)
    np.testing.assert_array_equal(found[:, 5:], again.find_rows(queries_of([1, 255]), 8, have=5))
    longer = again.find_rows(queries_of([1, 255]), 26)[0]
    np.testing.assert_array_equal(longer[:13], found[0])
    assert sorted(longer[13:]) == sorted(fitting)
    other = RetrievedPictures(dataset, loaded_with(dataset), rows, seed=1).find_rows(queries_of([1, 255]), 13)
    assert list(other[0]) != list(found[0])


def test_a_combination_never_seen_is_fitted_in_part(dataset: Dataset) -> None:
    rows = dataset.split("compositional", "train")
    found = RetrievedPictures(dataset, loaded_with(dataset), rows, seed=0).find_rows(queries_of([2, 1]), 40)[0]
    codes = dataset.read_attributes("attributes", found)
    assert set((codes == [2, 1]).sum(1)) == {1}
    assert {tuple(code) for code in codes} == {(2, 0), (0, 1), (1, 1)}


@pytest.mark.parametrize(
    ("query", "captions", "expected"),
    [
        # The same words in another order, or oftener; without a common word nothing fits.
        ([1, 2, 0], [[2, 0, 1], [0, 1, 5], [3, 3, 0]], [1, None, None]),
        ([3, 0, 0], [[2, 0, 1], [0, 1, 5], [3, 3, 0]], [None, None, 1]),
        ([1, 5], [[0, 5], [5, 5]], [0, 0]),
    ],
)
def test_captions_fit_by_their_words(query: list[int], captions: list[list[int]], expected: list[float | None]) -> None:
    fit = next(fit_of_captions(np.array([query], np.uint16), np.array(captions, np.uint16), 5))
    assert [None if known is None else found for found, known in zip(fit, expected, strict=True)] == pytest.approx(
        expected
    )


def test_rare_words_of_captions_count_more() -> None:
    """Word 0 is in each caption, word 3 in one: "0 3" is nearer to "1 3" than to "0 1"."""
    captions = np.array([[0, 1, 9], [1, 3, 9], [0, 2, 9], [0, 2, 1]], np.uint16)
    fit = next(fit_of_captions(np.array([[0, 3, 9]], np.uint16), captions, 4))
    assert fit.argmax() == 1 and fit[1] > 0.5 > fit[0] > 0


def test_unknown_values_of_examples_agree_with_nothing() -> None:
    fit = next(fit_of_attributes(np.array([[0, 1]], np.uint8), np.array([[255, 1], [0, 255], [0, 1]], np.uint8)))
    np.testing.assert_array_equal(fit, [1, 1, 2])


def test_retrieval_is_right_and_copies(dataset: Dataset) -> None:
    settings = EvaluationSettings(draws=4, dropped=(0,))
    evaluation = Evaluation(loaded_with(dataset), dataset, Judge(), ("retrieval", "own"), settings)
    scores = {(score.metric, score.posterior): score for score in evaluate(evaluation, ["correctness", "copies"]).run()}
    assert scores["correctness", "retrieval"].value == 100
    assert scores["copies", "retrieval"].value == 100
    assert scores["correctness", "retrieval"].base == ""
    assert scores["correctness", "retrieval"].title == PosteriorName("retrieval").title


def test_combinations_never_seen_are_half_right(dataset: Dataset) -> None:
    settings = EvaluationSettings(draws=40, dropped=(0,))
    loaded = loaded_with(dataset, "compositional")
    evaluation = Evaluation(loaded, dataset, Judge(), ("retrieval",), settings)
    (score,) = evaluate(evaluation, ["correctness"]).run()
    assert score.value == 50


def test_densities_guidance_and_other_data_are_refused(dataset: Dataset) -> None:
    evaluation = Evaluation(loaded_with(dataset), dataset, Judge(), ("retrieval",), EvaluationSettings())
    with pytest.raises(UsageError, match="log-likelihood needs the density of each posterior, and retrieval has none"):
        evaluate(evaluation, ["log-likelihood"])
    other = Evaluation(loaded_painter(Path("m")), dataset, Judge(), ("retrieval",), EvaluationSettings())
    with pytest.raises(UsageError, match="another dataset; leave --dataset out"):
        evaluate(other, ["correctness"])
    guided = loaded_with(dataset)
    guided.guidance = Guidance(3.0)
    with pytest.raises(UsageError, match="which guidance cannot change, got guidance 3; measure retrieval without"):
        Evaluation(guided, dataset, Judge(), ("retrieval",), EvaluationSettings())


def test_copies_are_told_of_words_that_training_pictures_have_and_of_gaps(tmp_path: Path) -> None:
    """Of each combination there is one picture, which a model that draws the very picture copies; gaps it cannot."""
    codes = np.stack([np.arange(25) // 5, np.arange(25) % 5], 1).astype(np.uint8)
    names = {name: [str(value) for value in range(5)] for name in INFO.names}
    parts = tuple(map(np.sort, np.split(np.random.default_rng(0).permutation(25), [15, 17])))
    values = {"image": (60 * codes)[:, None, None], "attributes": codes}
    with Dataset.open(write_small(tmp_path / "d.h5", values, names, parts={"iid": parts})) as data:
        loaded = loaded_with(data)
        loaded.attributes = data.attributes["attributes"]
        evaluation = Evaluation(loaded, data, None, ("own",), EvaluationSettings(draws=4, dropped=(0, 1)))
        scores = evaluate(evaluation, ["copies"]).run()
    found = {(score.given, score.quantity): score for score in scores}
    assert [*found] == [(2, "copies of gaps"), (2, "copies of training words"), (1, "copies")]
    gaps, trained, few = found.values()
    assert gaps.value < 50 and trained.value == 100
    assert [score.details["in_training"] for score in (gaps, trained, few)] == [0, 100, 100]
    assert trained.details["ceiling"] == gaps.details["ceiling"], "the same held-out pictures stand beside both"
    headings, rows = summarise(scores)
    assert headings == ["copies"] and rows["q(z|y)"][0] is not None and rows["q(z|y)"][0].value == 100
