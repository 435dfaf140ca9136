"""The base class of objectives, which map a model and a batch to a :class:`Bound`."""

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Protocol, Self, dataclass_transform

import pydantic.dataclasses
from pydantic import AfterValidator, ConfigDict, Field, model_validator
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities import Description
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.image import Image
from mmgen.modalities.text import Text
from mmgen.models import Demands, GaussianModel, Model

CONFIG = ConfigDict(extra="forbid", use_attribute_docstrings=True)


@dataclass(frozen=True)
class Bound:
    """Value of an objective, which training maximises, and its terms for the log.

    Attributes:
        value: The value to maximise, nats per example [B].
        terms: Its unweighted terms by name, nats per example [B].
        is_bound: Whether ``value`` is a lower bound on a log-likelihood of the data.
    """

    value: Tensor
    terms: dict[str, Tensor] = field(default_factory=dict)
    is_bound: bool = False


class RunSettings(Protocol):
    """Protocol of the training settings that objectives read, see :class:`mmgen.training.settings.TrainingSettings`."""

    @property
    def steps(self) -> int:
        """Number of steps of the optimiser."""

    @property
    def batch(self) -> int:
        """Number of examples per step, over all devices."""

    @property
    def devices(self) -> int:
        """Number of processes that share a batch."""


@dataclass_transform(frozen_default=True)
class Objective(ABC):
    """Base of all objectives, the functions that training maximises; members are frozen pydantic dataclasses.

    ``class Mine(Objective, settings=True)`` makes the annotated values of the class its settings, as the decorator
    ``pydantic.dataclasses.dataclass(frozen=True, config=CONFIG)`` does.
    """

    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    """Settings of variants that :func:`mmgen.testing.check` checks besides the default ones."""
    selects: ClassVar[bool] = True
    """Whether its value on validation examples selects the best weights; False keeps the last weights."""

    def __init_subclass__(cls, settings: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        if settings:
            pydantic.dataclasses.dataclass(frozen=True, config=CONFIG)(cls)

    @abstractmethod
    def __call__(self, model: Any, batch: Batch, step: int | None = None) -> Bound:
        """Compute the objective for each example of a batch, by default with one draw of z.

        Args:
            model: A model that was built for :attr:`demands`.
            batch: B examples.
            step: Training step, for annealing; None after all annealing, as in validation.
        """

    @property
    @abstractmethod
    def demands(self) -> Demands:
        """Posteriors, decoders and capabilities that the objective needs of a model."""

    def for_data(self, described: Mapping[str, Description]) -> Self:
        """Return the objective with settings that follow from the modalities of the data; by default unchanged."""
        return self

    def for_training_size(self, examples: int) -> Self:
        """Return the objective with settings that depend on the number of training examples; by default unchanged."""
        return self

    def check_run(self, training: RunSettings) -> str:
        """Return a warning if the objective suits these training settings badly; "" otherwise.

        Raises:
            SettingsError: The objective cannot be computed with them.
        """
        return ""

    def ineffective_weights(self, kinds: Collection[str]) -> list[str]:
        """Return the names of weights that have no effect if only modalities of these kinds are generated."""
        return []

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """Return the weight w of a description y for which training fits q(z|y) to p(y|z)^w p(z); None, as by default,
        if no number does.

        It is lambda / beta after all annealing: the density that maximises
        E_q[lambda log p(y|z)] - beta KL(q || p(z)) is p(y|z)^(lambda / beta) p(z), normalised.

        Args:
            name: Modality of the description.
            kind: Its role, "attributes" or "text", if its name differs (see :func:`role`).

        Returns:
            The weight, infinite without a divergence to p(z); None if no single number expresses it.
        """
        return None


_Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class WeightedObjective(Objective, settings=True):
    """Base of objectives that weigh the likelihood of each modality."""

    image_weight: _Weight = 1.0
    """lambda of the likelihood of the main picture, whatever it is called: short for its entry in weights."""
    attributes_weight: _Weight = 1.0
    """lambda of the attribute likelihood, short in the same way."""
    text_weight: _Weight = 1.0
    """lambda of the text likelihood, short in the same way."""
    weights: Mapping[str, _Weight] = field(default_factory=dict)
    """lambda of the likelihood of each modality, by its name: {wear = 2}; 1 for others."""

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        generated = getattr(self, "modalities", None) or self.weights
        for name, weight in self.weights.items():
            if name not in generated:
                raise ValueError(
                    f"weights got {name}, expected some of the modalities {', '.join(generated)}; name one of them, or "
                    "add it to modalities"
                )
            if (short := self.short_weights.get(name, 1.0)) not in (1.0, weight):
                raise ValueError(
                    f"weights got {name} = {weight:g}, and {name}_weight is {short:g}, by you or the preset; "
                    f"set {name}_weight = {weight:g} alone"
                )
        return self

    @property
    def short_weights(self) -> dict[str, float]:
        """The weights that have a setting of their own, by role."""
        return {kind: float(getattr(self, f"{kind}_weight")) for kind in ("image", "attributes", "text")}

    def weight(self, name: str, kind: str | None = None) -> float:
        """Return the weight lambda of a modality, by its name, or by its role ``kind`` where that differs."""
        return float(self.weights.get(name, self.short_weights.get(kind or name, 1.0)))

    def weights_of(self, model: Model, names: Collection[str]) -> dict[str, float]:
        """Return the weight lambda of each modality of a model."""
        return {name: self.weight(name, role(model, name)) for name in names}

    def ineffective_weights(self, kinds: Collection[str]) -> list[str]:
        return [f"{kind}_weight" for kind in self.short_weights if kind not in kinds]


def check_modality_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of modalities unchanged, or refuse an empty or repeating list."""
    if not names or len(set(names)) < len(names):
        raise ValueError(
            f"got {', '.join(names) or 'no modality'}, expected at least one modality and none twice; name each once"
        )
    return names


Modalities = Annotated[tuple[str, ...], AfterValidator(check_modality_names)]
"""Names of the modalities that an objective generates."""


def check_single_device(name: str, training: RunSettings) -> None:
    """Refuse several processes for an objective that compares all examples of a batch."""
    if training.devices > 1:
        raise SettingsError(
            f"training.devices got {training.devices}, expected 1 for {name}, which compares all examples of a batch; "
            "use one device"
        )


def warmup_weight(step: int | None, steps: int) -> float:
    """Return the weight of the KL term, which rises from 0 to 1 over ``steps`` steps (CK Section 5.3, WG Section 4)."""
    return 1.0 if step is None or step >= steps else step / steps


def relative_weight(weight: float, beta: float) -> float:
    """Return lambda / beta, the weight of a likelihood relative to the divergence; infinite for beta = 0.

    Example:
        >>> relative_weight(30.0, 0.5), relative_weight(30.0, 0.0)
        (60.0, inf)
    """
    return weight / beta if beta > 0 else math.inf


def expected_log_likelihood(
    model: GaussianModel, batch: Batch, q: DiagonalGaussian, names: tuple[str, ...]
) -> dict[str, Tensor]:
    """Estimate E_q[log p(x_m | z)] [B] of each named modality in nats, all from the same draw of z."""
    z = q.sample()
    return {name: model.log_likelihood(name, z, batch) for name in names}


def role(model: Model, name: str) -> str:
    """Return the name by which weights address a modality: "image", "attributes", "text", or its own name.

    The role image belongs to the modality called image, else to the main picture, or if that is not generated to the
    first generated one; other pictures have their own names as roles.
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
    """Return the divergence KL(q || p(z)) from the standard normal prior in nats [B], in closed form."""
    return q.kl(DiagonalGaussian.standard(*q.mean.shape, like=q.mean))
