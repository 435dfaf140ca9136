"""The base of objectives: a frozen dataclass of weights that maps a model and a batch to a :class:`Bound`."""

import math
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Protocol, Self

from pydantic import AfterValidator, ConfigDict
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.image import Image
from mmgen.modalities.text import Text
from mmgen.models import Demands, GaussianModel, Model

__all__ = [
    "CONFIG",
    "Bound",
    "Modalities",
    "Objective",
    "Run",
    "check_whole_batch",
    "expected_log_likelihood",
    "per_beta",
    "prior_kl",
    "role",
    "warmup",
]

CONFIG = ConfigDict(extra="forbid", use_attribute_docstrings=True)


@dataclass(frozen=True)
class Bound:
    """Value of an objective [B] in nats, to be maximised, with its terms by name for the log.

    Attributes:
        value: To maximise, nats per example [B].
        terms: Its parts by name, unweighted, nats per example [B].
        is_bound: Whether ``value`` is a lower bound on a log-likelihood of the data.
    """

    value: Tensor
    terms: dict[str, Tensor] = field(default_factory=dict)
    is_bound: bool = False


class Run(Protocol):
    """Settings of a run that objectives read (:class:`mmgen.training.settings.TrainingSettings`)."""

    @property
    def steps(self) -> int:
        """Optimiser steps."""

    @property
    def batch(self) -> int:
        """Examples per step, over all devices."""

    @property
    def devices(self) -> int:
        """Processes that share a batch."""


class Objective(ABC):
    """Base of all objectives; members are frozen pydantic dataclasses."""

    selects: ClassVar[bool] = True
    """Whether its value on validation examples says which weights are best; else the last are kept."""

    @abstractmethod
    def __call__(self, model: Any, batch: Batch, step: int | None = None) -> Bound:
        """Compute the objective on a batch, with one sample of z per example by default.

        Args:
            model: A model that was built for :attr:`demands`; members say which kind of model they can work with.
            batch: B examples.
            step: Training step, for annealing; None means after all annealing, as in validation.
        """

    @property
    @abstractmethod
    def demands(self) -> Demands:
        """Posteriors, decoders and capabilities that the objective needs of a model."""

    def trained_on(self, examples: int) -> Self:
        """Return the objective for a training set of this size; most are unchanged."""
        return self

    def check_run(self, training: Run) -> str:
        """Return a warning about a run with these settings, a sentence; "" for none.

        Raises:
            SettingsError: With them the objective would not be what it is called.
        """
        return ""

    def weightless(self, kinds: Collection[str]) -> list[str]:
        """Return the names of weights without effect if only these kinds of data are generated."""
        return []

    @abstractmethod
    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """Return the weight of log p(y|z) in training relative to the divergence to p(z); None if no number expresses
        it.

        It is lambda / beta after all annealing: the density that maximises
        E_q[lambda log p(y|z)] - beta KL(q || p(z)) is p(y|z)^(lambda / beta) p(z), normalised.

        Args:
            name: Modality of the description.
            kind: Its role, "attributes" or "text", where its name is another (see :func:`role`).

        Returns:
            The weight, infinite where nothing holds posteriors to p(z); None where no single number says it.
        """


def check_distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse an empty or repeated choice of modalities, else return it."""
    if not names or len(set(names)) < len(names):
        raise ValueError(f"got {', '.join(names) or 'none'}, expected at least one modality and none twice")
    return names


Modalities = Annotated[tuple[str, ...], AfterValidator(check_distinct)]
"""Names of what an objective generates."""


def check_whole_batch(name: str, training: Run) -> None:
    """Refuse several processes for an objective that compares all examples of a batch."""
    if training.devices > 1:
        raise SettingsError(
            f"training.devices got {training.devices}, but {name} looks at all examples of a batch together, and every "
            "process would see its share of them; use one device"
        )


def warmup(step: int | None, steps: int) -> float:
    """Weight of the KL term: rises from 0 to 1 over the first ``steps`` steps (CK Section 5.3, WG Section 4)."""
    return 1.0 if step is None or step >= steps else step / steps


def per_beta(weight: float, beta: float) -> float:
    """Return lambda / beta; infinite without a divergence.

    Example:
        >>> per_beta(30.0, 0.5), per_beta(30.0, 0.0)
        (60.0, inf)
    """
    return weight / beta if beta > 0 else math.inf


def expected_log_likelihood(
    model: GaussianModel, batch: Batch, q: DiagonalGaussian, names: tuple[str, ...]
) -> dict[str, Tensor]:
    """Return one-sample estimate of E_q[log p(x_m | z)] for each named modality, all from the same z; [B] nats each."""
    z = q.sample()
    return {name: model.log_likelihood(name, z, batch) for name in names}


def role(model: Model, name: str) -> str:
    """Return the role of a modality for weights, whatever its name: image, attributes, text, or its own name.

    The image is the one called so, else the main picture, or where that is not generated the first that is; other
    pictures have their own names.
    """
    modality = model.modalities[name]
    if isinstance(modality, Attributes):
        return "attributes"
    if isinstance(modality, Text):
        return "text"
    pictures = [each for each, found in model.modalities.items() if isinstance(found, Image)]
    if name not in pictures or "image" in model.modalities:
        return name
    return "image" if name == (model.main if model.main in pictures else pictures[0]) else name


def prior_kl(q: DiagonalGaussian) -> Tensor:
    """Return KL(q || p(z)) in nats [B], closed form."""
    return q.kl(DiagonalGaussian.standard(*q.mean.shape, like=q.mean))
