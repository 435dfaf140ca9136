"""The files of a trained model, opened, and every density over z that they hold."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor

from mmgen.aggregates._base import Aggregate
from mmgen.aggregates._encode import posterior_to_aggregate
from mmgen.aggregates._fit import load_aggregate
from mmgen.aggregates._naming import posterior_name, posterior_title
from mmgen.artifacts import Header, find_parent, require_kind
from mmgen.batch import Batch
from mmgen.errors import UsageError
from mmgen.generation.naming import LEARNED_PRIOR
from mmgen.models._base import Model
from mmgen.models._settings import AttributesDescription, ImageDescription, TextDescription
from mmgen.registry import unknown_name
from mmgen.training.model_run import ExperimentSettings, load_model
from mmgen.training.state import interrupted

if TYPE_CHECKING:
    from mmgen.generation._candidates import Pool
    from mmgen.generation.guidance import Guide

__all__ = ["LatentLogProb", "LatentSampler", "Opened"]

_GUIDES = 8
"""Guided posteriors that are kept with what they have drawn."""

LatentSampler = Callable[[Batch, int, torch.Generator | None], Tensor]
LatentLogProb = Callable[[Tensor, Batch], Tensor]


class Opened:
    """A trained model, or an aggregate together with the model that it was fitted to.

    Attributes:
        path: The file that was loaded.
        header: Its header.
        model: The model, in evaluation mode.
        model_path: The model's own checkpoint.
        model_header: The header of that.
        settings: The model's settings.
        aggregate: The aggregate, for an aggregate file.
        target: "aggregate" or "true" for an aggregate file, else None.
        text_weight: The power of p(y|z) that target "true" was fitted with, else None.
        fitted_guidance: The power of p(y|z) that the fitted posterior was tilted by; 0 for none.
        pools: Draws from densities that no description changes, shared by all weights of guidance.
        guidance: Weight w of p(y|z)^w, by which all posteriors are tilted when they are drawn from; 0: none is.
    """

    text_weight: float | None = None
    fitted_guidance: float = 0.0
    guidance: float = 0.0

    def __init__(self, path: Path, device: torch.device) -> None:
        self.path = path
        self.header: Header = require_kind(path, "model", "aggregate")
        self.device = device
        self.aggregate: Aggregate | None = None
        self.target: str | None = None
        self.model_path = path
        if self.header.kind == "aggregate":
            _, fit, self.aggregate = load_aggregate(path, device)
            self.target, self.text_weight = fit.aggregate.target, fit.aggregate.weight
            self.fitted_guidance = fit.aggregate.guidance
            self.model_path = find_parent(path, "model")
        self.settings: ExperimentSettings
        self.model: Model
        self.model_header: Header
        self.model_header, self.settings, self.model = load_model(self.model_path, device)
        self._guides: dict[tuple[str, float, int], Guide] = {}
        self.pools: dict[tuple[str, int], Pool] = {}
        self._guide_seed = 0

    def __repr__(self) -> str:
        data, about = self.settings.data, [f"z {self.model.latent_size}"]
        about += [f"{image.name} {'x'.join(map(str, image.shape))}" for image in self.images.values()]
        about += [f"{data.attributes.name} {', '.join(data.attributes.names)}"] if data.attributes is not None else []
        about += [f"{data.text.name} of at most {data.text.length} words"] if data.text is not None else []
        drawn = ", ".join(self.posteriors)
        return (
            f"<{self.header.kind} {self.path}: {self.settings.objective['name']}, {'; '.join(about)}; "
            f"draws from {drawn}; on {self.device}>"
        )

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
        data = self.settings.data
        return {image.name: image for image in (data.image, *data.further_images) if image is not None}

    @property
    def text(self) -> TextDescription | None:
        """Vocabulary and length of captions, where the dataset has them."""
        return self.settings.data.text

    @property
    def given(self) -> str | None:
        """What kind of description its fitted posterior, else its own q(z|y), is conditioned on: attributes or text."""
        if self.aggregate is not None:
            return None if self.aggregate.given == "nothing" else self.aggregate.given
        if self._own is None:
            return None
        return "text" if self.text and self._own == (self.text.name,) else "attributes"

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
        """What latents can be drawn from: "prior", "text" (the model's own q(z|y)), and the fitted one."""
        names = ["prior"]
        if self._own is not None:
            names.append("text")
        if self.target:
            names.append(self.target)
        return names

    def name_of(self, posterior: str) -> str:
        """What people call a posterior: "q_true(w = 300)" for "true"."""
        return posterior_name(posterior, **self.weights_of(posterior), given=self._given_to(posterior))

    def title_of(self, posterior: str) -> str:
        """Its name and what it is: "q_agg: fitted to the aggregate"."""
        return posterior_title(posterior, **self.weights_of(posterior), given=self._given_to(posterior))

    def weights_of(self, posterior: str) -> dict[str, float]:
        """The weights of p(y|z) in a posterior, as far as it has any: {"text_weight": 300.0}.

        A posterior fitted with guidance and guided further by candidates is guided by the sum of both weights.
        """
        fitted = posterior == self.target
        guidance = self.guidance + (self.fitted_guidance if fitted else 0.0)
        weights = {"text_weight": self.text_weight if fitted else None, "guidance": guidance or None}
        return {name: weight for name, weight in weights.items() if weight is not None}

    def base_of(self, posterior: str) -> str:
        """What is guided where a posterior is: its name, or "learned prior" for an aggregate that is given nothing."""
        return LEARNED_PRIOR if self._given_to(posterior) == "nothing" else posterior

    def _given_to(self, posterior: str) -> str | None:
        return self.aggregate.given if self.aggregate is not None and posterior == self.target else None

    def guided(self, weight: float, seed: int = 0) -> Self:
        r"""The same files with every posterior guided by the model's own decoder of words.

        .. math:: q_w(z|y) \propto q(z|y) \, p(y|z)^w

        Args:
            weight: w; 0 for the posteriors themselves.
            seed: Of the pool of draws that answers every description where q does not depend on it.

        Raises:
            UsageError: The weight is none, or the model has no p(words | z).
        """
        from mmgen.generation.guidance import check_weight

        check_weight(weight)
        if weight and not self.generated_words:
            made = ", ".join(self.model.generates) or "nothing"
            raise UsageError(
                f"guidance needs p(words | z), and {self.model_path} has none: it generates {made} alone; draw without"
            )
        other = copy.copy(self)  # the networks, and what was drawn for guiding, are shared
        other.guidance, other._guide_seed = float(weight), seed
        return other

    def guide(self, posterior: str) -> "Guide":
        """What draws from a posterior, guided, and knows its density; kept, since it keeps what it has drawn."""
        from mmgen.generation.guidance import Guide

        self._check(posterior)
        key = posterior, self.guidance, self._guide_seed
        if key not in self._guides:
            while len(self._guides) >= _GUIDES:
                del self._guides[next(iter(self._guides))]
            self._guides[key] = Guide(self, posterior, self.guidance, self._guide_seed)
        return self._guides[key]

    @property
    def generated_words(self) -> tuple[str, ...]:
        """Modalities of words, text before attributes, that the model generates, so that p(words | z) is known."""
        if self.model.conditional_on:
            return ()
        known = (part for part in (self.text, self.attributes) if part is not None)
        return tuple(part.name for part in known if part.name in self.model.generates)

    def reads(self, posterior: str) -> tuple[str, ...]:
        """Modalities of a description that decide what is drawn from a posterior; empty where none does."""
        self._check(posterior)
        names = set(self._read_unguided(posterior)) | set(self.model.conditional_on)
        if self.guidance:
            names |= set(self.generated_words)
        parts = (part for part in (self.attributes, self.text) if part is not None)
        return tuple(part.name for part in parts if part.name in names)

    def _read_unguided(self, posterior: str) -> tuple[str, ...]:
        if posterior == "prior":
            return ()
        if posterior == "text":
            parts = (part for part in (self.attributes, self.text) if part is not None)
            return tuple(part.name for part in parts if self.model.answers((part.name,)))
        condition = self._aggregate.condition
        return () if condition is None else (condition.name,)

    def _check(self, posterior: str) -> None:
        if posterior in self.posteriors:
            return
        if posterior in ("aggregate", "true"):
            raise UsageError(
                f"{self.path} has no fitted posterior '{posterior}'; make one with: "
                f"mmgen fit-aggregate {self.model_path} --target {posterior}"
            )
        raise UsageError(unknown_name("posterior", posterior, self.posteriors))

    @property
    def notices(self) -> list[str]:
        """What is to be said of the files: those whose training was interrupted."""
        said = [interrupted(path) for path in dict.fromkeys((self.path, self.model_path))]
        return [notice for notice in said if notice]

    @property
    def default_posterior(self) -> str:
        """The fitted posterior of an aggregate file, else the model's own q(z|y), else the prior."""
        return self.posteriors[-1]

    def latent_sampler(self, posterior: str, guidance: float | None = None) -> LatentSampler:
        """A function (descriptions of B, n, generator) -> z [n, B, D] that draws from a posterior.

        Args:
            posterior: One of :attr:`posteriors`.
            guidance: Weight w of p(y|z)^w; by default that of :meth:`guided`.

        Raises:
            UsageError: There is no such posterior, or it cannot be guided.
        """
        self._check(posterior)
        if guidance is not None and guidance != self.guidance:
            return self.guided(guidance, self._guide_seed).latent_sampler(posterior)
        if self.guidance:
            return self.guide(posterior)
        if posterior in ("prior", "text"):

            def draw(condition: Batch, n: int, generator: torch.Generator | None) -> Tensor:
                given = () if posterior == "prior" else self._given(condition)
                return self.model.posterior(condition, given).sample(generator, (n,))

            return draw
        aggregate = self._aggregate

        def draw_fitted(condition: Batch, n: int, generator: torch.Generator | None) -> Tensor:
            if aggregate.given == "nothing":  # q(z) does not depend on the description
                return aggregate.sample(None, n * condition.size, generator).reshape(n, condition.size, -1)
            return aggregate.sample(condition, n, generator)

        return draw_fitted

    def latent_log_prob(self, posterior: str) -> LatentLogProb:
        """A function (z [..., B, D], descriptions of B) -> log q(z | description) [..., B], nats."""
        self._check(posterior)
        if self.guidance:
            return self.guide(posterior).log_prob
        if posterior in ("prior", "text"):
            prior = posterior == "prior"
            return lambda z, condition: self.model.posterior(
                condition, () if prior else self._given(condition)
            ).log_prob(z)
        return self._aggregate.log_prob

    @property
    def _own(self) -> tuple[str, ...] | None:
        """The description that the model's own q(z|y) is given: attributes or text; None where it has none."""
        known = (part for part in (self.attributes, self.text) if part is not None)
        return next(((part.name,) for part in known if self.model.answers((part.name,))), None)

    def said(self, condition: Batch) -> tuple[str, ...]:
        """Modalities of a description that the model's own posterior is given: all that say something, but once.

        Text that spells attributes says what they say, so that the attributes are enough; free text says something
        else. Of a description that says nothing it is the first modality that there is a posterior of.
        """
        parts = [part.name for part in (self.attributes, self.text) if part is not None]
        able = [name for name in parts if name in condition.values and self.model.answers((name,))]
        said = [name for name in able if bool(condition.present[name].any())]
        if len(said) > 1 and ((self.text and self.text.slots) or not self.model.answers(tuple(said))):
            said = said[:1]
        return tuple(said or able[:1])

    def _given(self, condition: Batch) -> tuple[str, ...]:
        said = self.said(condition)
        if not said:
            raise UsageError(
                f"got a description by {' and '.join(condition.values)}, expected one by {self.given}, which q(z | "
                f"description) of {self.model_path} reads"
            )
        return said

    @property
    def _aggregate(self) -> Aggregate:
        assert self.aggregate is not None
        return self.aggregate
