"""Validation: figures of fixed examples, with fixed noise, whatever the training has drawn before."""

import math

import torch
from torch import Tensor, nn

from mmgen.core.seeding import stream_key
from mmgen.training.batches import Rows
from mmgen.training.settings import TrainingSettings

__all__ = ["validate"]


def validate(module: nn.Module, rows: Rows, settings: TrainingSettings) -> dict[str, tuple[float, float]]:
    """Return mean and standard error of every validation figure by name, over fixed examples with fixed noise.

    Args:
        module: Called as ``module(values, present, shared, None)``, in evaluation mode; see :meth:`Task.validate`.
        rows: Validation examples, of which ``settings.validation_examples`` are used, the same every time.
        settings: Settings of the run.
    """
    count = min(settings.validation_examples, len(rows))
    generator = torch.Generator().manual_seed(stream_key(settings.seed, "validation rows"))
    examples = torch.randperm(len(rows), generator=generator)[:count]
    was_training = module.training
    module.eval()
    collected: dict[str, list[Tensor]] = {}
    with torch.no_grad():
        for number, indices in enumerate(examples.split(rows.validation_batch)):
            torch.manual_seed(stream_key(settings.seed, "validation", number))
            batch = rows.view(indices, settings.seed, "validation")
            for name, figure in module(batch.values, batch.present, batch.shared, None).items():
                collected.setdefault(name, []).append(figure.double().cpu())
    module.train(was_training)
    result = {}
    for name, parts in collected.items():
        figures = torch.cat(parts)
        result[name] = (
            float(figures.mean()),
            float(figures.std() / math.sqrt(len(figures))) if len(figures) > 1 else 0.0,
        )
    return result
