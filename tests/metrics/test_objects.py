"""Objects wholly right, exchanged or mixed up, by hand; and which attributes describe objects."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mmgen.core.progress import run_generator
from mmgen.evaluation.objects import Objects, explain_missing_objects, find_objects, read_objects
from mmgen.evaluation.queries import Queries
from mmgen.evaluation.settings import EvaluationSettings
from mmgen.metrics import Score, get
from mmgen.modalities.attributes import AttributesDescription
from mmgen.results.standard_errors import share_error, widen_error

COLOURS, SHAPES, RELATIONS = ("red", "blue", "green"), ("cube", "ball"), ("left", "right")
INFO = AttributesDescription(
    name="attributes",
    names=("colour_1", "shape_1", "relation", "colour_2", "shape_2"),
    values=(COLOURS, SHAPES, RELATIONS, COLOURS, SHAPES),
)
RED_CUBE, BLUE_BALL, BLUE_CUBE, RED_BALL = [0, 0], [1, 1], [1, 0], [0, 1]


def codes_of(first: list[int], second: list[int], relation: int = 0) -> list[int]:
    return [*first, relation, *second]


def measure(
    metric: str, queries: list[list[int]], read: list[list[list[int]]], hints: tuple[str, ...] = ("relation",)
) -> list[Score]:
    """Scores of a metric where the judge reads these codes [Q, n, A]."""

    def classify(*_: object) -> Any:
        yield 1.0
        return np.array(read, np.uint8)

    table = np.array(queries, np.uint8)
    positions = tuple(INFO.names.index(name) for name in hints)
    evaluation: Any = SimpleNamespace(
        attributes=INFO,
        settings=EvaluationSettings(draws=2),
        questions=SimpleNamespace(make_queries=lambda _: Queries(table, np.ones(len(table)), 0), hints=positions),
        drawn_pictures=SimpleNamespace(classify_pictures=classify, pixels="mean"),
        judge=SimpleNamespace(accuracy={"mean": 99.0}, content_id="j", hints=hints),
        content_ids={"model": "m", "dataset": "d"},
        loaded=SimpleNamespace(sharpener=None),
    )
    return list(run_generator(get(metric)()(evaluation, "own")))


ASKED = codes_of(RED_CUBE, BLUE_BALL)
PICTURES = [
    codes_of(RED_CUBE, BLUE_BALL),
    codes_of(RED_CUBE, BLUE_BALL),
    codes_of(BLUE_BALL, RED_CUBE),
    codes_of(BLUE_CUBE, RED_BALL),
    codes_of(RED_BALL, BLUE_CUBE),
    codes_of(RED_CUBE, BLUE_CUBE),
    codes_of([2, 0], BLUE_BALL),
    codes_of([2, 0], [2, 0]),
]


def test_objects_are_right_swapped_or_mixed() -> None:
    (score,) = measure("binding", [ASKED], [PICTURES])
    assert score.value == pytest.approx(100 * 2 / 8)
    assert score.details["swapped"] == pytest.approx(100 / 8)
    assert score.details["mixed"] == pytest.approx(100 * 2 / 8)
    assert score.details["by_object"] == {"1": pytest.approx(100 * 3 / 8), "2": pytest.approx(100 * 3 / 8)}
    by_property = np.array([4, 6, 4, 5]) / 8  # colour and shape of the first object, then of the second
    assert score.details["independent"] == pytest.approx(100 * by_property.prod())


def test_descriptions_weigh_the_same_and_errors_are_over_them() -> None:
    wrong = [codes_of(BLUE_BALL, BLUE_BALL)] * 2
    (score,) = measure("binding", [ASKED, ASKED, ASKED, ASKED], [[ASKED, ASKED]] * 3 + [wrong])
    assert score.value == pytest.approx(75)
    assert score.stderr == pytest.approx(share_error(75.0, widen_error(25.0, 4), 8, 4))
    assert score.points is not None
    assert score.points.values == [100, 100, 100, 0]


def test_places_are_right_in_the_described_order() -> None:
    (score,) = measure("position", [ASKED], [PICTURES])
    # In order: four, four, none, two, two, three, three and one properties; exchanged: none, none, four, two, ...
    assert score.value == pytest.approx(100 * (1 + 1 + 0 + 0.5 + 0.5 + 1 + 1 + 0.5) / 8)
    assert score.details["seen"] == pytest.approx(100 * 3 / 8)
    assert score.details["strict"] == pytest.approx(100 * 2 / 3)


def test_a_relation_that_the_judge_predicts_must_be_right() -> None:
    read = [codes_of(RED_CUBE, BLUE_BALL, 0), codes_of(RED_CUBE, BLUE_BALL, 1)]
    (told,) = measure("position", [ASKED], [read])
    (predicted,) = measure("position", [ASKED], [read], hints=())
    assert (told.value, predicted.value) == (100, 50)
    (bound,) = measure("binding", [ASKED], [read], hints=())
    assert bound.value == 100


def test_equal_objects_have_no_places() -> None:
    equal = codes_of(RED_CUBE, RED_CUBE)
    assert measure("position", [equal], [[equal, equal]]) == []
    (score,) = measure("position", [equal, ASKED], [[equal, equal], [ASKED, codes_of(BLUE_BALL, RED_CUBE)]])
    assert (score.value, score.n, score.details["queries"]) == (50, 2, 1)
    (bound,) = measure("binding", [equal], [[equal, equal]])
    assert (bound.value, bound.details["swapped"]) == (100, 0)


def test_three_objects_are_compared_in_all_orders() -> None:
    objects = Objects(("1", "2", "3"), ("a", "b"), np.arange(6).reshape(3, 2))

    def row(*numbers: int) -> NDArray[np.uint8]:
        return np.array(numbers, np.uint8)

    queries = Queries(row(0, 0, 1, 1, 2, 2)[None], np.ones(1), 0)
    read = np.stack([row(1, 1, 2, 2, 0, 0), row(0, 0, 1, 1, 2, 2), row(0, 1, 1, 2, 2, 0), row(0, 0, 0, 0, 2, 2)])
    found = read_objects(objects, queries, read[None])
    assert found.exchanged.tolist() == [[True, False, False, False]]
    assert found.bound.tolist() == [[False, True, False, False]]
    assert found.mixed.tolist() == [[False, False, True, False]]


def test_equal_objects_that_change_places_are_no_other_order() -> None:
    objects = Objects(("1", "2", "3"), ("a", "b"), np.arange(6).reshape(3, 2))
    queries = Queries(np.array([[0, 0, 0, 0, 1, 1]], np.uint8), np.ones(1), 0)
    found = read_objects(objects, queries, np.array([[[0, 0, 0, 0, 1, 1], [1, 1, 0, 0, 0, 0]]], np.uint8))
    assert (found.distinct.tolist(), found.in_order.tolist()) == ([True], [[6, 2]])
    assert found.in_other_order.tolist() == [[2, 6]]


@pytest.mark.parametrize(
    ("names", "values", "labels", "properties"),
    [
        (("colour_1", "shape_1", "colour_2", "shape_2"), (COLOURS, SHAPES) * 2, ("1", "2"), ("colour", "shape")),
        (
            ("left colour", "left shape", "right colour", "right shape"), (COLOURS, SHAPES) * 2,
            ("left", "right"), ("colour", "shape"),
        ),
        (("shape1", "size1", "shape2", "size2"), (SHAPES, RELATIONS) * 2, ("1", "2"), ("shape", "size")),
    ],
)  # fmt: skip
def test_names_tell_objects(
    names: tuple[str, ...], values: tuple[tuple[str, ...], ...], labels: tuple[str, ...], properties: tuple[str, ...]
) -> None:
    objects = find_objects(names, values)
    assert objects is not None
    assert (objects.labels, objects.properties) == (labels, properties)
    assert objects.positions.tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("names", "values"),
    [
        (("digit", "size"), (COLOURS, SHAPES)),
        (("colour_1", "colour_2"), (COLOURS, COLOURS)),  # one property has nothing to be bound to
        (("colour_1", "shape_1", "colour_2", "shape_2"), (COLOURS, SHAPES, SHAPES, COLOURS)),
        (("Big_Lips", "Big_Nose", "Black_Hair", "Brown_Hair", "Pointy_Nose"), (SHAPES,) * 5),
    ],
)
def test_other_attributes_are_no_objects(names: tuple[str, ...], values: tuple[tuple[str, ...], ...]) -> None:
    assert find_objects(names, values) is None
    evaluation: Any = SimpleNamespace(attributes=SimpleNamespace(names=names, values=values))
    assert "needs attributes of two objects" in explain_missing_objects(evaluation)


def test_judges_that_are_told_a_property_are_refused() -> None:
    evaluation: Any = SimpleNamespace(attributes=INFO, judge=SimpleNamespace(hints=("colour_1", "relation")))
    assert explain_missing_objects(evaluation).endswith("got one that receives colour_1 as input; use another judge")
