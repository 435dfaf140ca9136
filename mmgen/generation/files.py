"""The files of a trained model, and every density over z that they hold."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

import mmgen.aggregates
from mmgen.aggregates import Aggregate, load_aggregate, posterior_to_aggregate
from mmgen.artifacts import Header, find_parent, require_kind
from mmgen.artifacts.members import changed_members
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.descriptions import Expression
from mmgen.generation.tilt import NO_TILT, Tilt
from mmgen.modalities import Description
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.modalities.text import TextDescription
from mmgen.models import Model
from mmgen.results.naming import LEARNED_PRIOR, Weights, posterior_called
from mmgen.settings.registry import unknown_name
from mmgen.training.model_run import ExperimentSettings, load_model
from mmgen.training.state import interrupted

__all__ = ["LatentLogProb", "LatentSampler", "ModelFiles"]

LatentSampler = Callable[[Batch, int, torch.Generator | None], Tensor]
LatentLogProb = Callable[[Tensor, Batch], Tensor]


class ModelFiles:
    """A trained model, or an aggregate together with the model that it was fitted to, as their files hold them.

    Attributes:
        path: The file that was loaded.
        header: Its header.
        model: The model, in evaluation mode.
        model_path: The model's own checkpoint.
        model_header: The header of that.
        settings: The model's settings.
        aggregate: The aggregate, for an aggregate file.
        target: "aggregate", "true" or "scan" for an aggregate file, else None.
        text_weight: The power of p(y|z) that target "true" was fitted with, else None.
        fitted_guidance: The power of p(y|z) that the fitted posterior was tilted by; 0 for none.
    """

    def __init__(self, path: Path, device: torch.device) -> None:
        self.path = path
        self.header: Header = require_kind(path, "model", "aggregate")
        self.device = device
        self.aggregate: Aggregate | None = None
        self.target: str | None = None
        self.text_weight: float | None = None
        self.fitted_guidance = 0.0
        self.model_path = path
        if self.header.kind == "aggregate":
            _, fit, self.aggregate = load_aggregate(path, device)
            self.target, self.text_weight = fit.posterior, fit.aggregate.weight
            self.fitted_guidance = fit.aggregate.guidance
            self.model_path = find_parent(path, "model")
        self.settings: ExperimentSettings
        self.model: Model
        self.model_header: Header
        self.model_header, self.settings, self.model = load_model(self.model_path, device)
        if self.aggregate is not None:
            self.aggregate.over(self.model)

    @property
    def attributes(self) -> AttributesDescription | None:
        """Names of attributes and of their values."""
        return self.settings.data.attributes

    @property
    def image(self) -> ImageDescription | None:
        """Shape of images; of several image modalities the main one."""
        return self.settings.data.image

    @property
    def images(self) -> dict[str, ImageDescription]:
        """All image modalities of the data by name, the main one first."""
        return self.settings.data.images

    @property
    def observation(self) -> Description | None:
        """The modality that descriptions are about, of any kind; None for data of words alone."""
        return self.settings.data.observation

    @property
    def observed(self) -> dict[str, Description]:
        """What each example has besides words by name, the main picture first."""
        return self.settings.data.observed

    @property
    def text(self) -> TextDescription | None:
        """Vocabulary and length of captions, where the dataset has them."""
        return self.settings.data.text

    @property
    def given(self) -> str | None:
        """What kind of description its fitted posterior, else its own q(z|y), is conditioned on: attributes or text."""
        if self.aggregate is not None:
            return None if self.aggregate.given == "nothing" else self.aggregate.given
        if self.own is None:
            return None
        return "text" if self.text and self.own == (self.text.name,) else "attributes"

    def dataset_path(self) -> Path:
        """The dataset that the model was trained on.

        Raises:
            MissingParentError: It is gone; names the command that makes it.
        """
        return find_parent(self.model_path, "dataset")

    @property
    def encoder_given(self) -> tuple[str, ...]:
        """What the posterior is given from which the decoders were trained."""
        return posterior_to_aggregate(self.settings)

    @property
    def posteriors(self) -> list[str]:
        """What latents can be drawn from: "prior", "own" (the model's q(z|y)), and the fitted one."""
        names = ["prior"]
        if self.own is not None:
            names.append("own")
        if self.target:
            names.append(self.target)
        return names

    @property
    def notices(self) -> list[str]:
        """What is to be said of the files: training that was interrupted, members from outside that have changed."""
        files = {self.path: self.header, self.model_path: self.model_header}
        said = [interrupted(path) for path in files]
        said += [notice for path, header in files.items() for notice in changed_members(path, header.members)]
        return [notice for notice in said if notice]

    @property
    def default_posterior(self) -> str:
        """The fitted posterior of an aggregate file, else the model's own q(z|y), else the prior."""
        return self.posteriors[-1]

    @property
    def generated_words(self) -> tuple[str, ...]:
        """Modalities of words, text before attributes, that the model generates, so that p(words | z) is known."""
        if self.model.conditional_on:
            return ()
        known = (part for part in (self.text, self.attributes) if part is not None)
        return tuple(part.name for part in known if part.name in self.model.generates)

    @property
    def own(self) -> tuple[str, ...] | None:
        """The description that the model's own q(z|y) is given: attributes or text; None where it has none."""
        known = (part for part in (self.attributes, self.text) if part is not None)
        return next(((part.name,) for part in known if self.model.answers((part.name,))), None)

    def informative(self, condition: Batch) -> tuple[str, ...]:
        """The modalities of ``condition`` to infer from: those present, without a caption that repeats the attributes.

        Free text says something else than attributes, so that both are taken. Of a description that says nothing it is
        the first modality that there is a posterior of.
        """
        parts = [part.name for part in (self.attributes, self.text) if part is not None]
        able = [name for name in parts if name in condition.values and self.model.answers((name,))]
        present = [name for name in able if bool(condition.present[name].any())]
        if len(present) > 1 and ((self.text and self.text.slots) or not self.model.answers(tuple(present))):
            present = present[:1]
        return tuple(present or able[:1])

    def own_given(self, condition: Batch) -> tuple[str, ...]:
        """What the model's own q(z|y) is given of ``condition``.

        Raises:
            UsageError: It reads nothing that the description says.
        """
        found = self.informative(condition)
        if not found:
            raise UsageError(
                f"got a description by {' and '.join(condition.values)}, expected one by {self.given}, which q(z | "
                f"description) of {self.model_path} reads"
            )
        return found

    def weights_of(self, posterior: str, tilt: Tilt = NO_TILT) -> Weights:
        """The weights of p(y|z) in a posterior, as far as it has any: {"text_weight": 300.0}.

        A posterior fitted with guidance and guided further by candidates is guided by the sum of both weights.

        Args:
            posterior: One of :attr:`posteriors`.
            tilt: What it is guided by besides.
        """
        fitted = posterior == self.target
        weights: Weights = {}
        if fitted and self.text_weight is not None:
            weights["text_weight"] = self.text_weight
        if whole := tilt.weight + (self.fitted_guidance if fitted else 0.0):
            weights["guidance"] = whole
        if tilt.balanced:
            weights["balanced"] = True
        return weights

    def fitted_given(self, posterior: str) -> str | None:
        """What kind of description a fitted posterior is conditioned on; None of every other."""
        return self.aggregate.given if self.aggregate is not None and posterior == self.target else None

    def base_of(self, posterior: str) -> str:
        """What is guided where a posterior is: its name, or "learned prior" for an aggregate that is given nothing."""
        return LEARNED_PRIOR if self.fitted_given(posterior) == "nothing" else posterior

    def reads(self, posterior: str) -> tuple[str, ...]:
        """Modalities of a description that decide what is drawn from a posterior; empty where none does."""
        posterior = self.check(posterior)
        names = {*self._conditions(posterior), *self.model.conditional_on}
        parts = (part for part in (self.attributes, self.text) if part is not None)
        return tuple(part.name for part in parts if part.name in names)

    def _conditions(self, posterior: str) -> tuple[str, ...]:
        if posterior == "prior":
            return ()
        if posterior == "own":
            parts = (part for part in (self.attributes, self.text) if part is not None)
            return tuple(part.name for part in parts if self.model.answers((part.name,)))
        condition = self._aggregate.condition
        return () if condition is None else (condition.name,)

    def check(self, posterior: str) -> str:
        """The posterior that is meant, one of :attr:`posteriors`.

        Raises:
            UsageError: The files do not hold it; names those that they do, or the command that fits one.
        """
        if posterior_called(posterior) in self.posteriors:
            return posterior_called(posterior)
        if posterior in ("aggregate", "true"):
            raise UsageError(
                f"{self.path} has no fitted posterior '{posterior}'; make one with: "
                f"mmgen fit-aggregate {self.model_path} --target {posterior}"
            )
        if posterior in mmgen.aggregates.names() and mmgen.aggregates.get(posterior).posterior == posterior:
            raise UsageError(
                f"{self.path} has no fitted posterior '{posterior}'; make one with: "
                f"mmgen fit-aggregate {self.model_path} --family {posterior}"
            )
        raise UsageError(unknown_name("posterior", posterior, self.posteriors))

    def latent_sampler(self, posterior: str) -> LatentSampler:
        """A function (descriptions of B, n, generator) -> z [n, B, D] that draws from a posterior.

        Raises:
            UsageError: There is no such posterior.
        """
        posterior = self.check(posterior)
        if posterior in ("prior", "own"):

            def draw(condition: Batch, n: int, generator: torch.Generator | None) -> Tensor:
                given = () if posterior == "prior" else self.own_given(condition)
                return self.model.posterior(condition, given).sample(generator, (n,))

            return draw
        aggregate = self._aggregate

        def draw_fitted(condition: Batch, n: int, generator: torch.Generator | None) -> Tensor:
            if aggregate.given == "nothing":  # q(z) does not depend on the description
                return aggregate.sample(None, n * condition.size, generator).reshape(n, condition.size, -1)
            return aggregate.sample(condition, n, generator)

        return draw_fitted

    @property
    def operators(self) -> tuple[str, ...]:
        """Words between descriptions for which the fitted posterior has networks; empty where it has none."""
        return self.aggregate.density.operators if self.aggregate is not None else ()

    def recombined_sampler(self, recombination: Expression) -> LatentSampler:
        """What :meth:`latent_sampler` gives, of the fitted posterior's operators; no description is looked at."""
        return lambda _, n, generator: self._aggregate.recombined(recombination, n, generator)

    def latent_log_prob(self, posterior: str) -> LatentLogProb:
        """A function (z [..., B, D], descriptions of B) -> log q(z | description) [..., B], nats."""
        posterior = self.check(posterior)
        if posterior in ("prior", "own"):
            prior = posterior == "prior"
            return lambda z, condition: self.model.posterior(
                condition, () if prior else self.own_given(condition)
            ).log_prob(z)
        return self._aggregate.log_prob

    @property
    def _aggregate(self) -> Aggregate:
        assert self.aggregate is not None
        return self.aggregate
