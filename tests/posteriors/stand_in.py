"""Posteriors made of functions, for models that stand in for trained ones."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.posteriors import Posterior
from mmgen.results.naming import Weights

__all__ = ["StandIn", "draws_and_densities", "stand_ins"]

Draw = Callable[[Batch, int, Any], Tensor]
Density = Callable[[Tensor, Batch], Tensor]


class StandIn(Posterior):
    """A posterior that draws by a function and has the density of another one.

    Args:
        name: Its name; all but "prior" read attributes.
        draw: (descriptions, n, generator) -> z.
        density: (z, descriptions) -> nats.
        fitted: Whether it counts as fitted.
        reads: The modalities that it reads, if they are others.
        weights: Powers of p(y|z) in it.
    """

    def __init__(
        self,
        name: str,
        draw: Draw | None = None,
        density: Density | None = None,
        fitted: bool = False,
        reads: tuple[str, ...] | None = None,
        weights: Weights | None = None,
    ) -> None:
        self._weights: Weights = weights or {}
        self.name, self.is_fitted, self.size = name, fitted, 0
        self.reads = reads if reads is not None else () if name == "prior" else ("attributes",)
        self._draw, self._density = draw, density

    @property
    def weights(self) -> Weights:
        return {**self._weights}

    @property
    def formula(self) -> str:
        """The density in symbols: "q_agg(z|y)"."""
        if not self.is_fitted:
            return super().formula
        return f"{super().formula}(z|y)" if self.reads else "q(z)"

    def sample(self, words: Batch, n: int, generator: torch.Generator | None = None) -> Tensor:
        return self.draw(words, n, generator)

    def log_prob(self, z: Any, words: Batch) -> Tensor:
        return self.log_density(z, words)

    def draw(self, words: Batch, n: int, generator: torch.Generator | None) -> Tensor:
        assert self._draw is not None
        return self._draw(words, n, generator)

    def log_density(self, z: Tensor, words: Batch) -> Tensor:
        assert self._density is not None
        return self._density(z, words)


class StandIns(dict[str, StandIn]):
    """Posteriors by name, as a trained model has them."""

    def unguided(self, name: str) -> Posterior:
        return self[name].unguided


def draws_and_densities(of: Callable[[str], Callable[[Batch], Any]]) -> tuple[Any, Any]:
    """Return draws and densities by name, from Gaussians by name and descriptions."""
    return (
        lambda name: lambda batch, n, generator: of(name)(batch).sample(generator, (n,)),
        lambda name: lambda z, batch: of(name)(batch).log_prob(z),
    )


def stand_ins(
    names: Iterable[str],
    draws: Callable[[str], Draw] | None = None,
    densities: Callable[[str], Density] | None = None,
    fitted: str = "",
    reads: tuple[str, ...] | None = None,
) -> "StandIns":
    """Return posteriors by name, from functions of the name; ``fitted`` is the fitted one, which reads ``reads``."""
    return StandIns(
        (
            name,
            StandIn(
                name,
                draws(name) if draws else None,
                densities(name) if densities else None,
                name == fitted,
                reads if name == fitted else None,
            ),
        )
        for name in names
    )
