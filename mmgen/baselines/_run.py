"""From a dataset and shares of pairs to accuracies of labels."""

import json
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mmgen.baselines
from mmgen.artifacts import Dataset
from mmgen.artifacts.members import members_of
from mmgen.baselines._base import LabelReader, LabelSupply, Material, in_units
from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.progress import Work, relay
from mmgen.results.runs import run_record
from mmgen.results.score import Points, Score, other_data
from mmgen.results.standard_errors import binomial_error, with_clusters
from mmgen.training.labelling import label_draw
from mmgen.training.model_run import ExperimentSettings

__all__ = ["lines_of", "measure"]


def measure(
    data: Path, method: str, supplies: Sequence[LabelSupply], settings: ExperimentSettings, attribute: str = ""
) -> Work[list[Score]]:
    """Accuracy in percent on all test images of a baseline for each number of labels, ascending.

    Args:
        data: Dataset file.
        method: Name of a baseline.
        supplies: How many training examples come with their label; shares above 0 and at most 1.
        settings: Settings of the joint model that it stands beside.
        attribute: Which attribute is said; "" where there is only one.

    Raises:
        UsageError: There is no such baseline, or a share is none.
        DataError: A dataset without images or attributes, or without any label of paired or of test images.
    """
    member = mmgen.baselines.get(method)
    if not issubclass(member, LabelReader):
        raise UsageError(f"the baseline {method} answers {member.answers}, expected one that answers labels")
    for labels in supplies:
        if not 0 < labels.share <= 1:
            raise UsageError(f"--paired got {labels.share:g}, expected a share above 0 and at most 1, for example 0.01")
    ordered = sorted(set(supplies), key=lambda labels: (labels.share, labels.count or 0))

    def fractions() -> Generator[float, None, list[Score]]:
        with Dataset.open(data) as dataset:
            material = Material(dataset, settings, attribute)
            _ = material.image
            for labels in ordered:  # before anything slow
                material.check(labels)
            baseline = member(material)
            yield from relay(baseline.learn(), 0.0, 1.0)
            scores = []
            for number, labels in enumerate(ordered, 1):
                codes, facts = yield from relay(baseline.read(labels), number, 1.0)
                scores.append(_score(material, method, labels, codes, facts))
            return scores

    return in_units(f"baseline {method}", 1 + len(ordered), fractions)


def _score(
    material: Material, method: str, labels: LabelSupply, codes: NDArray[np.int64], facts: Mapping[str, Any]
) -> Score:
    """The share of test images of which the right label was said, with its binomial standard error."""
    truth = material.labels("test")
    known = truth != UNKNOWN
    values = (codes == truth)[known]
    n = len(values)
    right = float(values.mean())
    settings = {"method": method, **material.settings.model_dump(mode="json")}
    details = {
        "method": method,
        "paired": material.size(labels),
        "share": labels.share if labels.count is None else labels.count / len(material.rows("train")),
        **_drawn(material, labels),
        "attribute": material.attributes.names[material.column],
        "correct": int(values.sum()),
        **facts,
    }
    conditions = {"split": material.settings.data.split, "part": "test"}
    sources = material.dataset.sources(material.rows("test").rows)
    score = Score(
        metric="label-accuracy",
        quantity="whole description",
        value=100 * right,
        stderr=binomial_error(100 * right, n),
        unit="%",
        better="higher",
        n=n,
        posterior=method,
        protocol="baseline",
        ids={"dataset": material.dataset.header.content_id},
        conditions=conditions | other_data(material.dataset.header.settings),
        seed=material.seed,
        points=Points.of(100.0 * values),
        details=details,
        run=run_record(
            method,
            [material.seed],
            [settings],
            [material.dataset.header.content_id],
            members=[member.to_json() for member in members_of(settings)],
        ),
    )
    return with_clusters(score, None if sources is None else sources[known])


def _drawn(material: Material, labels: LabelSupply) -> dict[str, Any]:
    """Which draw of labels it was, where they are a number."""
    if labels.count is None:
        return {}
    return {"labelled": labels.count, "labelled_seed": label_draw(material.settings.data, material.seed)}


def lines_of(scores: Sequence[Score]) -> str:
    """JSON lines, as ``mmgen eval`` writes them."""
    return "".join(json.dumps(score.to_json(), allow_nan=False) + "\n" for score in scores)
