"""From a dataset to scores of a baseline: accuracies of labels, or log p of test examples."""

from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

import mmgen.contrib.baselines
from mmgen.artifacts import Dataset
from mmgen.artifacts.header import members_of
from mmgen.contrib.baselines._base import BaselineData, LabelReader, LabelSupply
from mmgen.contrib.baselines._density import DensityBaseline, Numbers
from mmgen.core.errors import DataError, UsageError, format_unknown_name
from mmgen.core.notation import UNKNOWN
from mmgen.core.progress import Progress, Work, map_fractions
from mmgen.modalities import Description
from mmgen.results.conditions import run_record
from mmgen.results.score import ExampleValues, Score, content_condition
from mmgen.results.standard_errors import add_clustered_error, binomial_error
from mmgen.settings.config import to_json_values, validate
from mmgen.training.batches import DatasetRows
from mmgen.training.labelling import label_seed
from mmgen.training.model_run import ExperimentSettings

_CHUNK = 4096
_CPU = torch.device("cpu")
_UNITS = 100
T = TypeVar("T")


def measure_labels(
    data: Path, method: str, supplies: Sequence[LabelSupply], settings: ExperimentSettings, attribute: str = ""
) -> Work[list[Score]]:
    """Measure the percentage of test images whose label a method predicts, for each number of labelled images.

    Args:
        data: Dataset file.
        method: Name of a label reader.
        supplies: Numbers of training examples with their label; shares above 0 and at most 1.
        settings: Settings of the joint model that it stands beside.
        attribute: Attribute that is predicted; "" where there is only one.

    Raises:
        UsageError: There is no such baseline, or a share is none.
        DataError: A dataset without images or attributes, or without any label of paired or of test images.
    """
    member = mmgen.contrib.baselines.get(method)
    if not issubclass(member, LabelReader):
        raise UsageError(f"the baseline {method} is for {member.answers}, expected one for labels")
    for labels in supplies:
        if not 0 < labels.share <= 1:
            raise UsageError(f"--paired got {labels.share:g}, expected a share above 0 and at most 1, for example 0.01")
    ordered = sorted(set(supplies), key=lambda labels: (labels.share, labels.count or 0))

    def fractions() -> Generator[float, None, list[Score]]:
        with Dataset.open(data) as dataset:
            inputs = BaselineData(dataset, settings, attribute)
            for labels in ordered:  # before anything slow
                inputs.check_labels(labels)
            baseline = member(inputs)
            yield from map_fractions(baseline.learn_features(), 0.0, 1.0)
            scores = []
            for number, labels in enumerate(ordered, 1):
                codes, facts = yield from map_fractions(baseline.predict_test_labels(labels), number, 1.0)
                scores.append(_score_accuracy(inputs, method, labels, codes, facts))
            return scores

    return _make_work(method, 1 + len(ordered), fractions)


def measure_density(
    data: Path, method: str, values: Mapping[str, Any], split: str | None = None, seed: int = 0, modality: str = ""
) -> Work[list[Score]]:
    """Fit a density to the training examples and measure its mean log p(x) on the test examples, in nats.

    Random pixels (dequantisation noise) are drawn once for the fit, and for validation and test as in all evaluations.

    Args:
        data: Dataset file.
        method: Name of a density.
        values: Its settings where they are not the defaults.
        split: Split scheme; None for the dataset's default.
        seed: Seed of what is drawn.
        modality: Modality of x; "" for the first of real numbers.

    Raises:
        UsageError: There is no such density, or no such modality or split.
        SettingsError: A setting is wrong.
        DataError: The dataset holds no real numbers, or no density can be fitted to them.
    """
    member: Any = mmgen.contrib.baselines.get(method)
    density: DensityBaseline = validate(member, values)

    def fractions() -> Generator[float, None, list[Score]]:
        with Dataset.open(data) as dataset:
            described = _find_numbers(dataset, modality)
            scheme = split if split is not None else dataset.default_scheme
            rows = {
                part: DatasetRows.open_split(dataset, scheme, part, _CPU, (described.name,))
                for part in ("train", "val", "test")
            }
            train, val, test = (_read_numbers(one, described, seed, part) for part, one in rows.items())
            if not len(test):
                raise DataError(
                    f"split '{scheme}' of {data} has no test examples to measure on; choose another --split"
                )
            fitted = yield from map_fractions(density.fit(train, val, seed), 0.0, 0.9)
            found = []
            for start in range(0, len(test), _CHUNK):
                found.append(fitted.log_prob(test[start : start + _CHUNK]))
                yield 0.9 + 0.1 * start / len(test)
            settings = {**to_json_values(density), "split": scheme, "part": "test", "modality": described.name}
            log_prob, nats_per_bit = np.concatenate(found), described.nats_per_bit
            value = float(log_prob.mean())
            stderr = float(log_prob.std(ddof=1) / len(log_prob) ** 0.5) if len(log_prob) > 1 else None
            details = {"modality": described.name, "train_examples": len(train), **fitted.facts}
            if nats_per_bit is not None:
                details["bits_per_pixel"] = value / nats_per_bit
                details |= {} if stderr is None else {"bits_per_pixel_stderr": stderr / nats_per_bit}
            score = _make_score(
                dataset, method, settings, scheme, seed, log_prob, details, metric="log-likelihood",
                quantity="log p(x)", value=value, stderr=stderr, unit="nats",
            )  # fmt: skip
            return [add_clustered_error(score, dataset.read_sources(rows["test"].rows))]

    return _make_work(method, 1, fractions)


def _make_work(method: str, length: int, fractions: Callable[[], Generator[float, None, T]]) -> Work[T]:
    """Wrap a generator of progress, in units from 0 to ``length``, as :class:`Work`."""

    def run() -> Generator[Progress, None, T]:
        work = fractions()
        while True:
            try:
                yield Progress(int(_UNITS * next(work)))
            except StopIteration as stop:
                result: T = stop.value
                return result

    return Work(f"baseline {method}", _UNITS * length, "unit", run)


def _score_accuracy(
    inputs: BaselineData, method: str, supply: LabelSupply, codes: NDArray[np.int64], facts: Mapping[str, Any]
) -> Score:
    """Return the percentage of test images whose label is predicted correctly, as a score with binomial error."""
    truth = inputs.labels("test")
    known = truth != UNKNOWN
    right = (codes == truth)[known]
    value, rows, data = 100 * float(right.mean()), inputs.rows("train"), inputs.settings.data
    details = {
        "paired": inputs.count_labelled(supply),
        "share": supply.share if supply.count is None else supply.count / len(rows),
        "attribute": inputs.attributes.names[inputs.column],
        "correct": int(right.sum()),
        **facts,
    }
    if supply.count is not None:
        details |= {"labelled": supply.count, "labelled_seed": label_seed(data, inputs.seed)}
    score = _make_score(
        inputs.dataset, method, inputs.settings.model_dump(mode="json"), data.split, inputs.seed, 100.0 * right,
        details, metric="label-accuracy", quantity="whole description", value=value,
        stderr=binomial_error(value, len(right)), unit="%",
    )  # fmt: skip
    sources = inputs.dataset.read_sources(inputs.rows("test").rows)
    return add_clustered_error(score, None if sources is None else sources[known])


def _make_score(
    dataset: Dataset,
    method: str,
    settings: Mapping[str, Any],
    split: str,
    seed: int,
    points: NDArray[np.float64],
    details: Mapping[str, Any],
    **measured: Any,
) -> Score:
    """Return a score of a baseline on test examples, with the conditions of the measurement."""
    settings, content = {"method": method, **settings}, dataset.header.content_id
    members = [member.to_json() for member in members_of(settings)]
    return Score(
        better="higher",
        n=len(points),
        posterior=method,
        protocol="baseline",
        ids={"dataset": content},
        conditions={"split": split, "part": "test"} | content_condition(dataset.header.settings),
        seed=seed,
        points=ExampleValues.from_values(points),
        details={"method": method, **details},
        run=run_record(method, [seed], [settings], [content], members=members),
        **measured,
    )


def _find_numbers(dataset: Dataset, name: str) -> Description:
    """Return the specification of the modality of real numbers called ``name``; "" for the first one."""
    candidates = {
        name: each for name, each in dataset.modalities.items() if each.number_count is not None and each.has_rows
    }
    if not candidates:
        raise DataError(
            f"{dataset.path} has no vectors or patches, expected some to fit a density to; choose another dataset"
        )
    if name and name not in candidates:
        raise UsageError(format_unknown_name("modality of real numbers", name, list(candidates)))
    return candidates[name] if name else next(iter(candidates.values()))


def _read_numbers(rows: DatasetRows, described: Description, seed: int, part: str) -> Numbers:
    """Read the numbers [N, F] of all examples of a part of the split, dequantised with ``seed``."""
    pieces = []
    for chunk in torch.arange(len(rows)).split(_CHUNK):
        batch = rows.view(chunk, seed, "baseline") if part == "train" else rows.batch(chunk)
        pieces.append(batch.values[described.name].double().numpy())
    return np.concatenate(pieces) if pieces else np.empty((0, described.number_count or 0))
