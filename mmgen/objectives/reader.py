"""The log-likelihood of words given encodings of pictures, for models whose encoder is fixed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from mmgen.core.batch import Batch
from mmgen.modalities import Description
from mmgen.models import Demands, Model
from mmgen.objectives._base import Bound, Modalities, WeightedObjective

__all__ = ["Reader"]


class Reader(WeightedObjective, settings=True):
    r"""Expected log-likelihood of words, without a divergence: trains networks that read words off encodings.

    .. math:: E_{q(z|x)}\Big[\sum_m \lambda_m \log p(y_m|z)\Big]

    It is for model autoencoder, whose encoder is fixed. With pictures among the modalities it trains the decoder too.
    """

    modalities: Modalities | None = None
    """What is read off z: attributes, text or others by name; left out, all words of the data."""
    given: tuple[str, ...] = ("image",)
    """What z is inferred from."""

    @property
    def demands(self) -> Demands:
        generates = self.modalities or ("attributes",)
        return Demands(
            frozenset([self.given]), generates=generates, inference="image-only", needs=frozenset({"fixed encoder"})
        )

    def for_data(self, described: Mapping[str, Description]) -> Self:
        words = tuple(name for name, each in described.items() if each.describes)
        return replace(self, modalities=words) if self.modalities is None and words else self

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        return None  # without a divergence no posterior follows from the words alone

    def __call__(self, model: Model, batch: Batch, step: int | None = None) -> Bound:
        z = model.posterior(batch, self.given).sample()
        terms = {name: model.log_likelihood(name, z, batch) for name in self.demands.generates}
        weights = self.weights_of(model, terms)
        value = sum((weights[name] * term for name, term in terms.items()), z.new_zeros(len(z)))
        return Bound(value, {f"log p({name}|z)": term for name, term in terms.items()})
