"""Check of the loss terms of every step for NaN."""

import torch
from torch import Tensor

from mmgen.core.errors import TrainingError

__all__ = ["NanGuard"]


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
