"""Confusion tables of attribute classifiers on held-out pictures of the dataset."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from mmgen.artifacts import Dataset, read_header
from mmgen.classifier import count_confusions
from mmgen.figures.session import Session
from mmgen.training.batches import DatasetRows

__all__ = ["Confusion", "tabulate_confusions"]

_PICTURES, _MOST_VALUES, _MOST_TABLES = 1000, 12, 8


@dataclass(frozen=True)
class Confusion:
    """Confusion table of an attribute: how often a classifier predicts each value for pictures of each true value.

    Attributes:
        name: The attribute.
        values: Its values.
        rows: For each true value, its name, the number of pictures and the share in percent predicted as each value.
    """

    name: str
    values: Sequence[str]
    rows: list[tuple[str, int, list[str]]]


def tabulate_confusions(session: Session) -> list[Confusion]:
    """Tabulate the confusions of a session's classifier, least accurate attribute first; [] without one or data.

    The pictures are the first 1,000 of the test split.
    """
    judge, path, model = session.judge, session.group.dataset, session.model
    if judge is None or path is None or model.observation is None or model.attributes is None:
        return []
    with Dataset.open(path) as data:
        assert session.group.judge is not None
        trained_on = str(read_header(session.group.judge).settings.get("split") or "")  # other test splits may overlap
        scheme = trained_on if trained_on in data.schemes else model.settings.data.split
        rows = data.split(scheme, "test")[:_PICTURES]
        if not len(rows):
            return []
        names = (model.observation.name, model.attributes.name)
        source = DatasetRows(data, rows, judge.device, modalities=names, seed=session.seed)
        with torch.inference_mode():
            counts = {name: each.numpy() for name, each in count_confusions(judge, source, *names).items()}
    few = {name: each for name, each in counts.items() if len(each) <= _MOST_VALUES and each.sum()}
    order = sorted(few, key=lambda name: float(np.trace(few[name]) / few[name].sum()))
    return [
        _confusion_of_attribute(name, few[name], judge.values[judge.names.index(name)]) for name in order[:_MOST_TABLES]
    ]


def _confusion_of_attribute(name: str, counts: np.ndarray, values: Sequence[str]) -> Confusion:
    shares = 100 * counts / np.maximum(counts.sum(1, keepdims=True), 1)
    rows = [
        (word, int(row.sum()), [f"{share:.0f}" if row.sum() else "–" for share in part])
        for word, row, part in zip(values, counts, shares, strict=True)
    ]
    return Confusion(name, values, rows)
