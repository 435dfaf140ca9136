"""The base class of targets: the distributions that a density over z is fitted to."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Self

import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.modalities import Description
from mmgen.modalities.attributes import Attributes
from mmgen.models import DataSettings, Model
from mmgen.objectives import Objective
from mmgen.posteriors._aggregate import Aggregate, Condition, Given, Layers, Networks
from mmgen.results.naming import Weights
from mmgen.training.task import Task


class Request(NamedTuple):
    """Request for a fit: the condition, and the data and objective of the model."""

    given: Given
    data: DataSettings
    objective: Objective

    @property
    def description(self) -> Description | None:
        """Specification of the modality that the fit is conditioned on, the first of several; None for q(z)."""
        return find_condition(self.data, given_names(self.given)[0])

    @property
    def is_generated(self) -> bool:
        """True if the model generates the modality that the fit is conditioned on."""
        return self.description is not None and self.description.name in self.objective.demands.generates


def given_names(given: Given) -> list[str]:
    """Return the names in a condition of a fit, which commas separate."""
    return [name.strip() for name in given.split(",")]


def find_condition(data: DataSettings, name: str) -> Description | None:
    """Return the specification of a condition: attributes, text, or other data by name; None if there is none."""
    if name in ("attributes", "text"):
        found: Description | None = getattr(data, name)
        return found
    return data.observed.get(name)


class FitParts(NamedTuple):
    """Model, densities and encodings from which a target builds its training task.

    Attributes:
        aggregate: The density to fit.
        base: The finished fit to start from; None for a fit from scratch.
        model: The frozen model.
        keep_all: Probability that a description stays whole.
        mean: Means of the training encodings [N, D], of the fitted layers.
        log_sd: Their log standard deviations.
    """

    aggregate: Aggregate
    base: Aggregate | None
    model: Model
    keep_all: float
    mean: Tensor
    log_sd: Tensor


class Target(ABC):
    """Base of targets of a fit: the densities that it approximates, such as the aggregated posterior."""

    posterior: ClassVar[str]
    """Name of the fitted posterior: "aggregate", "true" or "scan"."""
    family: ClassVar[str | None] = None
    """The only family of densities that can be fitted to it; None for any."""

    needs_likelihood: ClassVar[bool] = False
    """Whether fits need draws with gradients and their log density, which families with a loss of their own lack."""

    @property
    def learns_unlabelled(self) -> bool:
        """True if the fit also learns from encodings of examples without a description."""
        return False

    @property
    def weights(self) -> Weights:
        """Powers of p(y|z) in the fitted density by name, for names and tables."""
        return {}

    @property
    def base(self) -> "Target | None":
        """Target of the finished fit that this fit starts from; None for a fit from scratch."""
        return None

    @property
    def name_suffix(self) -> str:
        """Text that tables add to the name of the posterior, such as " with operators"."""
        return ""

    @property
    def file_name_parts(self) -> list[str]:
        """Parts of file names that distinguish settings of the target, such as ["w300"]."""
        return []

    def complete_settings(self, request: Request) -> Self:
        """Return the target with settings filled in that follow from the model.

        Raises:
            UsageError: The model does not support the target.
        """
        return self

    def check(self, model: Model, given: Given, layers: Layers) -> None:
        """Refuse a model to which the target cannot be fitted, before any work.

        Raises:
            UsageError: The density cannot be fitted to the model.
        """
        return

    def build_networks(self, latent_size: int, condition: Condition) -> Networks | None:
        """Build the networks that the target trains besides the density; None if it has none."""
        return None

    @abstractmethod
    def build_task(self, parts: FitParts) -> Task:
        """Build the training task, which fits the density to batches of encodings."""


def _keep_at_random(examples: int, count: int, keep_all: float, device: torch.device) -> Tensor:
    """Return which of ``count`` parts stay, bool [examples, count]: all with probability ``keep_all``, else a number
    of them that is uniform on 0 .. count, and so is the choice of them.
    """
    number = torch.randint(0, count + 1, (examples, 1), device=device)
    whole = torch.rand(examples, 1, device=device) < keep_all
    rank = torch.rand(examples, count, device=device).argsort(1)
    return whole | (rank < number)


def drop_modalities(batch: Batch, names: Sequence[str], keep_all: float) -> Batch:
    """Hide modalities of a batch at random, so that one density can be fitted given any subset of them."""
    kept = _keep_at_random(batch.size, len(names), keep_all, batch.device)
    present = {}
    for name, stays in zip(names, kept.unbind(1), strict=True):
        known = batch.present[name]
        present[name] = known & (stays if known.dim() == 1 else stays.unsqueeze(1))
    return batch | Batch({name: batch.values[name] for name in names}, present)


def drop_attributes(batch: Batch, name: str, keep_all: float) -> Batch:
    """Hide attributes of a batch at random, so that one density can be fitted to all partial descriptions."""
    present = batch.present[name]  # attributes that are unknown in the data stay unknown
    mask = present & _keep_at_random(len(present), present.shape[1], keep_all, present.device)
    values = batch.values[name].masked_fill(~mask, 0)
    return batch | Batch({name: values}, {name: mask})


class DensityTask(Task):
    """Base of training tasks that fit a density to a frozen model.

    Args:
        aggregate: The density.
        keep_all: Probability that a description stays whole.
    """

    def __init__(self, aggregate: Aggregate, keep_all: float) -> None:
        super().__init__()
        self.aggregate = aggregate
        self.keep_all = keep_all

    def hide_attributes(self, batch: Batch) -> Batch:
        """Return a batch with attributes hidden at random, and of several modalities a random subset; sentences stay
        whole.
        """
        aggregate = self.aggregate
        for condition in (aggregate.condition, *aggregate.further.values()):
            if isinstance(condition, Attributes):
                batch = drop_attributes(batch, condition.name, self.keep_all)
        return drop_modalities(batch, aggregate.reads, self.keep_all) if aggregate.further else batch

    def saved_tensors(self) -> dict[str, Tensor]:
        return dict(self.aggregate.state_dict())
