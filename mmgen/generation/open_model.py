"""A trained model in use: its files, and how much every posterior is guided."""

from pathlib import Path
from typing import Self

import torch

from mmgen.aggregates import Aggregate
from mmgen.artifacts import Header
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.markup import facts_table
from mmgen.generation.files import LatentLogProb, LatentSampler, ModelFiles
from mmgen.generation.given import checked_log_prob, checked_sampler
from mmgen.generation.guidance import Guide, Guides
from mmgen.generation.tilt import NO_TILT, AnyTilt, Tilt
from mmgen.modalities import Description
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.modalities.text import TextDescription
from mmgen.models import Model
from mmgen.results.naming import Weights, posterior_name, posterior_title
from mmgen.settings.arguments import checked
from mmgen.settings.kinds import Seed
from mmgen.training.model_run import ExperimentSettings

__all__ = ["LatentLogProb", "LatentSampler", "OpenModel"]


class OpenModel:
    """A trained model, or an aggregate together with the model that it was fitted to.

    Args:
        files: What was loaded; shared by all weights of guidance, with what was drawn for guiding.
        tilt: By which power of p(y|z) all posteriors are tilted when they are drawn from, and how; false: none is.
        seed: Seed of the pool of draws that answers every description where q does not depend on it.
        guides: What has been drawn for guiding.
    """

    def __init__(self, files: ModelFiles, tilt: Tilt = NO_TILT, seed: int = 0, guides: Guides | None = None) -> None:
        self.files = files
        self.tilt = tilt
        self._seed = seed
        self._guides = Guides(files) if guides is None else guides

    def __repr__(self) -> str:
        about = [f"z {self.model.latent_size}", *(each.in_words() for each in self.settings.modalities.values())]
        drawn = ", ".join(self.posteriors)
        return (
            f"<{self.header.kind} {self.path}: {self.settings.objective['name']}, {'; '.join(about)}; "
            f"draws from {drawn}; on {self.device}>"
        )

    def _repr_html_(self) -> str:
        parts = [(name, each.in_words()) for name, each in self.settings.modalities.items()]
        facts = [("objective", self.settings.objective["name"]), ("z", self.model.latent_size), *parts]
        facts += [("draws from", ", ".join(self.posteriors)), ("device", self.device)]
        return facts_table(f"{self.header.kind} {self.path}", facts)

    @property
    def path(self) -> Path:
        """The file that was loaded."""
        return self.files.path

    @property
    def header(self) -> Header:
        """Its header."""
        return self.files.header

    @property
    def device(self) -> torch.device:
        """Where the networks are."""
        return self.files.device

    @property
    def model(self) -> Model:
        """The model, in evaluation mode."""
        return self.files.model

    @property
    def model_path(self) -> Path:
        """The model's own checkpoint."""
        return self.files.model_path

    @property
    def model_header(self) -> Header:
        """The header of that."""
        return self.files.model_header

    @property
    def settings(self) -> ExperimentSettings:
        """The model's settings."""
        return self.files.settings

    @property
    def aggregate(self) -> Aggregate | None:
        """The aggregate, for an aggregate file."""
        return self.files.aggregate

    @property
    def target(self) -> str | None:
        """The posterior of an aggregate file as people type it: "aggregate", "true", "scan"; None for a model file."""
        return self.files.target

    @property
    def text_weight(self) -> float | None:
        """The power of p(y|z) that target "true" was fitted with, else None."""
        return self.files.text_weight

    @property
    def guidance(self) -> float:
        """Weight w of p(y|z)^w by which all posteriors are tilted when they are drawn from; 0: none is."""
        return self.tilt.weight

    @property
    def fitted_guidance(self) -> float:
        """The power of p(y|z) that the fitted posterior was tilted by; 0 for none."""
        return self.files.fitted_guidance

    @property
    def attributes(self) -> AttributesDescription | None:
        """Names of attributes and of their values."""
        return self.files.attributes

    @property
    def image(self) -> ImageDescription | None:
        """Shape of images; of several image modalities the main one."""
        return self.files.image

    @property
    def images(self) -> dict[str, ImageDescription]:
        """All image modalities of the data by name, the main one first."""
        return self.files.images

    @property
    def observation(self) -> Description | None:
        """The modality that descriptions are about, of any kind; None for data of words alone."""
        return self.files.observation

    @property
    def observed(self) -> dict[str, Description]:
        """What each example has besides words by name, the main picture first."""
        return self.files.observed

    @property
    def text(self) -> TextDescription | None:
        """Vocabulary and length of captions, where the dataset has them."""
        return self.files.text

    @property
    def given(self) -> str | None:
        """What kind of description its fitted posterior, else its own q(z|y), is conditioned on: attributes or text."""
        return self.files.given

    @property
    def own(self) -> tuple[str, ...] | None:
        """The description that the model's own q(z|y) is given: attributes or text; None where it has none."""
        return self.files.own

    @property
    def encoder_given(self) -> tuple[str, ...]:
        """What the posterior is given from which the decoders were trained."""
        return self.files.encoder_given

    @property
    def posteriors(self) -> list[str]:
        """What latents can be drawn from: "prior", "own" (the model's q(z|y)), and the fitted one."""
        return self.files.posteriors

    @property
    def operators(self) -> tuple[str, ...]:
        """Words between descriptions for which the fitted posterior has networks: AND, IN COMMON, IGNORE."""
        return self.files.operators

    @property
    def default_posterior(self) -> str:
        """The fitted posterior of an aggregate file, else the model's own q(z|y), else the prior."""
        return self.files.default_posterior

    @property
    def generated_words(self) -> tuple[str, ...]:
        """Modalities of words, text before attributes, that the model generates, so that p(words | z) is known."""
        return self.files.generated_words

    @property
    def notices(self) -> list[str]:
        """What is to be said of the files: those whose training was interrupted."""
        return self.files.notices

    def dataset_path(self) -> Path:
        """The dataset that the model was trained on.

        Raises:
            MissingParentError: It is gone; names the command that makes it.
        """
        return self.files.dataset_path()

    @checked
    def informative(self, condition: Batch) -> tuple[str, ...]:
        """The modalities of ``condition`` to infer from; see :meth:`mmgen.generation.files.ModelFiles.informative`."""
        return self.files.informative(condition)

    @checked
    def base_of(self, posterior: str) -> str:
        """What is guided where a posterior is: its name, or "learned prior" for an aggregate that is given nothing."""
        return self.files.base_of(posterior)

    @checked
    def weights_of(self, posterior: str) -> Weights:
        """The weights of p(y|z) in a posterior, that of :attr:`guidance` added, as far as it has any."""
        return self.files.weights_of(posterior, self.tilt)

    @checked
    def name_of(self, posterior: str) -> str:
        """What people call a posterior: "q_true(w = 300)" for "true"."""
        return posterior_name(posterior, **self.weights_of(posterior), given=self.files.fitted_given(posterior))

    @checked
    def title_of(self, posterior: str) -> str:
        """Its name and what it is: "q_agg: fitted to the aggregate"."""
        return posterior_title(posterior, **self.weights_of(posterior), given=self.files.fitted_given(posterior))

    @checked
    def reads(self, posterior: str) -> tuple[str, ...]:
        """Modalities of a description that decide what is drawn from a posterior; empty where none does."""
        names = {*self.files.reads(posterior), *(self.generated_words if self.guidance else ())}
        parts = (part for part in (self.attributes, self.text) if part is not None)
        return tuple(part.name for part in parts if part.name in names)

    @checked
    def guided(self, weight: AnyTilt, seed: Seed = 0) -> Self:
        r"""The same files with every posterior guided by the model's own decoder of words.

        .. math:: q_w(z|y) \propto q(z|y) \, p(y|z)^w

        Args:
            weight: w; 0 for the posteriors themselves; "3:balanced" so that attributes which a description leaves out
                keep their shares (:mod:`mmgen.generation.balance`).
            seed: Seed of the pool of draws that answers every description where q does not depend on it.

        Raises:
            UsageError: The weight is none, or the model has no p(words | z).
        """
        tilt = Tilt.of(weight)
        if tilt and not self.generated_words:
            made = ", ".join(self.model.generates) or "nothing"
            raise UsageError(
                f"guidance needs p(words | z), and {self.model_path} has none: it generates {made} alone; draw without"
            )
        return type(self)(self.files, tilt, seed, self._guides)

    @checked
    def guide(self, posterior: str) -> Guide:
        """What draws from a posterior, guided, and knows its density; kept, since it keeps what it has drawn."""
        posterior = self.files.check(posterior)
        return self._guides.get(posterior, self.tilt, self._seed)

    @checked
    def latent_sampler(self, posterior: str, guidance: AnyTilt | None = None) -> LatentSampler:
        """A function (descriptions of B, n, generator) -> z [n, B, D] that draws from a posterior.

        Args:
            posterior: One of :attr:`posteriors`.
            guidance: As :meth:`guided` takes it; by default what that was given.

        Raises:
            UsageError: There is no such posterior, or it cannot be guided.
        """
        posterior = self.files.check(posterior)
        if guidance is not None and Tilt.of(guidance) != self.tilt:
            return self.guided(guidance, self._seed).latent_sampler(posterior)
        draw = self.guide(posterior) if self.guidance else self.files.latent_sampler(posterior)
        return checked_sampler(draw, self.model.latent_size)

    @checked
    def latent_log_prob(self, posterior: str) -> LatentLogProb:
        """A function (z [..., B, D], descriptions of B) -> log q(z | description) [..., B], nats."""
        posterior = self.files.check(posterior)
        density = self.guide(posterior).log_prob if self.guidance else self.files.latent_log_prob(posterior)
        return checked_log_prob(density, self.model.latent_size)
