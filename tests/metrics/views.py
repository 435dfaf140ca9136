"""A stand-in for a loaded model of three modalities of pictures, which a plan draws from z."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mmgen.artifacts import Dataset
from mmgen.core.batch import Batch
from mmgen.evaluation import Evaluation, EvaluationSettings
from mmgen.latent.gaussian import DiagonalGaussian
from tests.metrics.toy import IMAGE, INFO, Judge, Painter, Plain, loaded_painter
from tests.small_data import write_small

VIEWS = ("m0", "m1", "m2")
Plan = Callable[[str, Tensor], Tensor]


def judge_of(view: str) -> Judge:
    judge = Judge()
    judge.described, judge.content_id = IMAGE.model_copy(update={"name": view}), f"judge of {view}"
    return judge


class Views(Painter):
    """Draws pictures of three modalities from z, which is what one of the given pictures shows, as a plan says."""

    modalities = {**{view: Plain() for view in VIEWS}, "attributes": Plain()}  # noqa: RUF012  # as of its base
    generates = (*VIEWS, "attributes")

    def __init__(self, plan: Plan, blind: tuple[str, ...] = ()) -> None:
        self.plan, self.blind = plan, blind

    def has_posterior(self, inputs: tuple[str, ...]) -> bool:
        return not {*inputs} & {*self.blind}

    def posterior(self, batch: Batch, given: tuple[str, ...]) -> DiagonalGaussian:
        mean = batch.values[given[0]].flatten(1) * 255 / 60
        return DiagonalGaussian(mean, torch.full_like(mean, -20.0))

    def mean(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        return super().mean(name, z if name == "attributes" else self.plan(name, z.round()), condition)


def write_views(path: Path) -> Dataset:
    """Three equal pictures of each example, whose grey levels are its codes; half of the digits are 0."""
    codes = np.stack([np.array([0, 0, 1, 2])[np.arange(1200) % 4], np.arange(1200) // 4 % 2], 1).astype(np.uint8)
    pictures = dict.fromkeys(VIEWS, (60 * codes)[:, None, None])
    return Dataset.open(write_small(path, {**pictures, "attributes": codes}, INFO, parts=(600, 100)))


def asked(
    dataset: Dataset, plan: Plan, blind: tuple[str, ...] = (), judged: tuple[str, ...] = VIEWS, **settings: Any
) -> Evaluation:
    loaded = loaded_painter(Path("m.safetensors"))
    loaded.model, loaded.observation = Views(plan, blind), IMAGE.model_copy(update={"name": "m0"})
    loaded.observed = {view: IMAGE.model_copy(update={"name": view}) for view in VIEWS}
    judges = [judge_of(view) for view in judged]
    given = EvaluationSettings(number=400, draws=40, dropped=(0, 1), **settings)
    return Evaluation(loaded, dataset, judges[0], ("prior", "own"), given, other_judges=judges[1:])
