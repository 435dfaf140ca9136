"""Validation with fixed examples and noise, and the guard against values that are not finite."""

import math

import torch
from torch import Tensor, nn

from mmgen.core.errors import TrainingError
from mmgen.core.seeding import stream_key
from mmgen.training.batches import Rows
from mmgen.training.settings import TrainingSettings


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


class NanGuard:
    """Check for values that are not finite, which collects numbers on the device and tests many steps at once.

    Args:
        interval: Steps between checks: 1 on a CPU; more on a GPU, where each check waits for it.
        player: Name of the player for messages, if there are several.
    """

    def __init__(self, interval: int, player: str = "") -> None:
        self.interval = interval
        self.player = player
        self.names: list[str] = []
        self._rows: list[Tensor] = []
        self._first_step = 0
        self._sums: Tensor | None = None
        self._count = 0

    def add(self, step: int, figures: dict[str, Tensor]) -> None:
        """Add numbers of a step by name; after every ``interval`` steps raise an error if one is not finite."""
        if not self._rows:
            self._first_step = step
        self.names = list(figures)
        self._rows.append(torch.stack([value.detach().float() for value in figures.values()]))
        if len(self._rows) >= self.interval:
            self.check()

    def check(self) -> None:
        """Test the steps since the last check; raise an error if a number is not finite.

        Raises:
            TrainingError: A scalar is not finite; the message names player, step and terms.
        """
        if not self._rows:
            return
        rows = torch.stack(self._rows).cpu().double()
        bad = ~rows.isfinite()
        if bad.any():
            row = int(bad.any(1).nonzero()[0])
            # The value and the gradient follow from the terms: name those only if every term is finite.
            names = [name for name, is_bad in zip(self.names, bad[row].tolist(), strict=True) if is_bad]
            terms = [name for name in names if name not in ("bound", "gradient norm")] or names
            player_in_words = f" of the player {self.player}" if self.player else ""
            raise TrainingError(
                f"training met a value that is not finite at step {self._first_step + row + 1}, in {', '.join(terms)}"
                f"{player_in_words}; "
                "lower the learning rate, set training.gradient_clip, or use --precision 32-true, and begin anew with "
                "--overwrite"
            )
        total = rows.sum(0)
        self._sums = total if self._sums is None else self._sums + total
        self._count += len(rows)
        self._rows = []

    def means(self) -> dict[str, float]:
        """Return the mean of every number by name since the last call, after a check."""
        self.check()
        assert self._sums is not None, "no step has been taken"
        result = dict(zip(self.names, (self._sums / self._count).tolist(), strict=True))
        self._sums, self._count = None, 0
        return result
