"""Objects that attributes describe: which attributes belong to which object, and how a classifier reads the objects."""

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mmgen.core.notation import UNKNOWN
from mmgen.evaluation.queries import Queries

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation


_MOST = 4
"""Largest number of objects, whose orders are all compared."""

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Objects:
    """Objects of a scene, each described by the same properties.

    Attributes:
        labels: Words that tell the objects apart, such as ("1", "2") or ("left", "right").
        properties: Names of the P properties, such as ("size", "colour").
        positions: Position of the attribute of each object and property among all attributes [K, P].
    """

    labels: tuple[str, ...]
    properties: tuple[str, ...]
    positions: NDArray[np.int64]


@dataclass(frozen=True)
class ObjectReadings:
    """Objects that descriptions name, and those that a classifier reads off n pictures of each of Q descriptions.

    Attributes:
        right: Whether each property of each object is right [Q, n, K, P].
        bound: Whether all objects are wholly right [Q, n].
        exchanged: Whether all objects are wholly there, but not in the described order [Q, n].
        mixed: Whether all values are there, but bound to other objects [Q, n].
        in_order: Number of properties that are right in the described order [Q, n].
        in_other_order: Largest number of properties that are right in an order that says something else [Q, n].
        distinct: Whether the described objects differ from each other [Q].
    """

    right: Bools
    bound: Bools
    exchanged: Bools
    mixed: Bools
    in_order: NDArray[np.int64]
    in_other_order: NDArray[np.int64]
    distinct: Bools


def find_objects(names: Sequence[str], values: Sequence[Sequence[str]]) -> Objects | None:
    """Find the objects that attributes describe by their names; None if they describe no two objects.

    Names of one object share their first or last word; those of all objects are the same without it, at least two, and
    have the same values.

    Args:
        names: Names of the A attributes.
        values: Values of each attribute.

    Example:
        >>> names = ["size_1", "shape_1", "relation", "size_2", "shape_2"]
        >>> values = [["small", "large"], ["cube", "ball"], ["left", "right"], ["small", "large"], ["cube", "ball"]]
        >>> find_objects(names, values).labels
        ('1', '2')
    """
    words = [re.findall(r"[^\W\d_]+|\d+", name) for name in names]
    candidates = []
    for end in (0, -1):
        properties: dict[str, dict[str, int]] = {}
        for index, parts in enumerate(words):
            if len(parts) > 1:
                label, rest = parts[end], tuple(parts[1:] if end == 0 else parts[:-1])
                properties.setdefault(label, {})[" ".join(rest)] = index
        alike: dict[frozenset[str], list[str]] = {}
        for label, known in properties.items():
            alike.setdefault(frozenset(known), []).append(label)
        for shared, labels in alike.items():
            ordered = tuple(name for name in properties[labels[0]] if name in shared)
            table = np.array([[properties[label][name] for name in ordered] for label in labels])
            same = all(len({tuple(values[index]) for index in column}) == 1 for column in table.T)
            if len(ordered) > 1 and 1 < len(labels) <= _MOST and same:
                candidates.append(Objects(tuple(labels), ordered, table))
    return max(candidates, key=lambda objects: objects.positions.size, default=None)


def read_objects(objects: Objects, queries: Queries, predicted: NDArray[np.uint8]) -> ObjectReadings:
    """Compare the objects that a classifier reads off pictures with those of the descriptions.

    Args:
        objects: The objects.
        queries: Descriptions that give all properties of all objects.
        predicted: Codes that the classifier predicts [Q, n, A].
    """
    asked = queries.codes[:, objects.positions].astype(np.int64)  # [Q, K, P]
    read = predicted[:, :, objects.positions].astype(np.int64)  # [Q, n, K, P]
    right = read == asked[:, None]
    bound = right.all((2, 3))
    orders = [list(order) for order in permutations(range(len(objects.labels)))][1:]
    moved = np.stack([read == asked[:, None, order] for order in orders])  # [orders, Q, n, K, P]
    is_other = np.stack(
        [(asked[:, order] != asked).any((1, 2)) for order in orders]
    )  # not where equal ones change places
    exchanged = moved.all((3, 4)).any(0) & ~bound
    all_values = (np.sort(read, axis=2) == np.sort(asked, axis=1)[:, None]).all((2, 3))
    distinct = (asked != asked[:, :1]).any((1, 2))
    return ObjectReadings(
        right,
        bound,
        exchanged,
        all_values & ~bound & ~exchanged,
        right.sum((2, 3)),
        (moved.sum((3, 4)) * is_other[:, :, None]).max(0),
        distinct,
    )


def read_drawn_objects(
    evaluation: "Evaluation", posterior: str
) -> Generator[float, None, tuple[Objects, Queries, NDArray[np.uint8], ObjectReadings]]:
    """Draw pictures of complete descriptions, yielding the fraction done, and read their objects.

    Returns:
        The objects, the Q descriptions, the codes that the classifier predicts [Q, n, A], and the readings.
    """
    objects = find_objects(evaluation.attributes.names, evaluation.attributes.values)
    assert objects is not None, "the metric does not declare that it needs objects"
    queries = evaluation.questions.make_queries(0)
    predicted = yield from evaluation.drawn_pictures.classify_pictures(queries, posterior, evaluation.settings.draws)
    return objects, queries, predicted, read_objects(objects, queries, predicted)


def explain_missing_objects(evaluation: "Evaluation") -> str:
    """Return a reason if the attributes describe no objects, or no example has all of them known; else ""."""
    info = evaluation.attributes
    objects = find_objects(info.names, info.values)
    if objects is None:
        return (
            "needs attributes of two objects with the same properties and values, named as size_1 colour_1 size_2 "
            f"colour_2 or left_size left_colour right_size right_colour, got {', '.join(info.names)}; use --metric "
            "correctness"
        )
    if hints := {info.names[index] for index in objects.positions.flat} & set(evaluation.judge.hints):
        names = ", ".join(sorted(hints))
        return (
            f"needs a judge that reads all properties of objects, got one that receives {names} as input; use another "
            "judge"
        )
    if (evaluation.questions.codes == UNKNOWN).any(1).all():
        return (
            f"needs examples with all attributes known, but the part '{evaluation.settings.part}' has none; use "
            "--metric correctness, which also takes incomplete ones"
        )
    return ""
