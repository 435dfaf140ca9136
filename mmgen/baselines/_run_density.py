"""From a dataset to log p of its test examples under a density."""

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

import mmgen.baselines
from mmgen.artifacts import Dataset
from mmgen.artifacts.members import members_of
from mmgen.baselines._base import in_units
from mmgen.baselines._density import DensityBaseline, Numbers
from mmgen.core.errors import DataError, UsageError
from mmgen.core.progress import Work, relay
from mmgen.modalities import Description
from mmgen.results.runs import run_record
from mmgen.results.score import Points, Score, other_data
from mmgen.results.standard_errors import with_clusters
from mmgen.settings.config import plain, validate
from mmgen.settings.registry import unknown_name
from mmgen.training.batches import DatasetRows

__all__ = ["measure_density"]

_CHUNK = 4096


def measure_density(
    data: Path, method: str, values: Mapping[str, Any], split: str | None = None, seed: int = 0, modality: str = ""
) -> Work[list[Score]]:
    """log p(x) in nats over all test examples, x being real numbers.

    What is drawn anew at every sight is drawn once for the fit, and for validation and test as all evaluations see it.

    Args:
        data: Dataset file.
        method: Name of a density.
        values: Its settings where they are not the defaults.
        split: Split scheme; None for the dataset's default.
        seed: Seed of what is drawn.
        modality: Which one x is; "" for the first of real numbers.

    Raises:
        UsageError: There is no such density, or no such modality or split.
        SettingsError: A setting is wrong.
        DataError: The dataset holds no real numbers, or no density can be fitted to them.
    """
    member: Any = mmgen.baselines.get(method)
    density: DensityBaseline = validate(member, values)

    def fractions() -> Generator[float, None, list[Score]]:
        with Dataset.open(data) as dataset:
            described = _numbers_of(dataset, modality)
            scheme = split if split is not None else dataset.default_scheme
            parts = {
                part: _numbers(
                    DatasetRows.of_split(dataset, scheme, part, _CPU, (described.name,)), described, seed, part
                )
                for part in ("train", "val", "test")
            }
            if not len(parts["test"]):
                raise DataError(f"split '{scheme}' of {data} has no test examples to be measured on; choose another")
            fitted = yield from relay(density.fit(parts["train"], parts["val"], seed), 0.0, 0.9)
            found = []
            for start in range(0, len(parts["test"]), _CHUNK):
                found.append(fitted.log_prob(parts["test"][start : start + _CHUNK]))
                yield 0.9 + 0.1 * start / len(parts["test"])
            facts = {"train_examples": len(parts["train"]), **fitted.facts}
            where = {"split": scheme, "part": "test", "seed": seed, "modality": described.name}
            settings = {"method": method, **plain(density), **where}
            score = _score(
                dataset, described, method, settings, np.concatenate(found), {"modality": described.name, **facts}
            )
            return [with_clusters(score, dataset.sources(dataset.split(scheme, "test")))]

    return in_units(f"baseline {method}", 1, fractions)


_CPU = torch.device("cpu")


def _numbers_of(dataset: Dataset, wanted: str) -> Description:
    """The modality of real numbers that is meant."""
    able = {name: each for name, each in dataset.modalities.items() if each.numbers is not None and each.by_rows}
    if not able:
        raise DataError(
            f"{dataset.path} holds no vectors or patches, whose density could be fitted; choose a dataset that does"
        )
    if wanted and wanted not in able:
        raise UsageError(unknown_name("modality of real numbers", wanted, list(able)))
    return able[wanted] if wanted else next(iter(able.values()))


def _numbers(rows: DatasetRows, described: Description, seed: int, part: str) -> Numbers:
    """Examples of a part [N, F]; those of training as one sight of it shows them."""
    found = []
    for chunk in torch.arange(len(rows)).split(_CHUNK):
        batch = rows.sight(chunk, seed, "baseline") if part == "train" else rows.batch(chunk)
        found.append(batch.values[described.name].double().numpy())
    return np.concatenate(found) if found else np.empty((0, described.numbers or 0))


def _score(
    dataset: Dataset,
    described: Description,
    method: str,
    settings: dict[str, Any],
    values: Numbers,
    facts: dict[str, Any],
) -> Score:
    value, stderr = float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else None
    content = dataset.header.content_id
    details = {"method": method, **facts}
    if described.nats_per_bit is not None:
        details["bits_per_pixel"] = value / described.nats_per_bit
        if stderr is not None:
            details["bits_per_pixel_stderr"] = stderr / described.nats_per_bit
    return Score(
        metric="log-likelihood",
        quantity="log p(x)",
        value=value,
        stderr=stderr,
        unit="nats",
        better="higher",
        n=len(values),
        posterior=method,
        protocol="baseline",
        ids={"dataset": content},
        conditions={name: settings[name] for name in ("split", "part")} | other_data(dataset.header.settings),
        seed=settings["seed"],
        points=Points.of(values),
        details=details,
        run=run_record(
            method,
            [settings["seed"]],
            [{key: value for key, value in settings.items() if key != "seed"}],
            [content],
            members=[member.to_json() for member in members_of({"method": method})],
        ),
    )
