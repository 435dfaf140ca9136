"""Everything of a trained model from Python: ``mmgen.load(path)``."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from mmgen.aggregates._base import Aggregate
from mmgen.aggregates._encode import posterior_to_aggregate
from mmgen.aggregates._fit import load_aggregate
from mmgen.artifacts import Header, find_parent, require_kind
from mmgen.batch import Batch
from mmgen.errors import UsageError
from mmgen.gaussian import DiagonalGaussian
from mmgen.models._settings import AttributesDescription, ImageDescription
from mmgen.models.multimodal_vae import MultimodalVAE
from mmgen.queries import batch_of_queries, parse_query
from mmgen.registry import unknown_name
from mmgen.seeding import torch_generator
from mmgen.training.batches import to_batch
from mmgen.training.model_run import ExperimentSettings, load_model
from mmgen.training.precision import autocast, resolve_device

if TYPE_CHECKING:
    from mmgen.metrics._base import Score

__all__ = ["Loaded", "load"]

LatentSampler = Callable[[Batch, int, torch.Generator | None], Tensor]
LatentLogProb = Callable[[Tensor, Batch], Tensor]


class Loaded:
    """A trained model, or an aggregate together with the model that it was fitted to.

    Attributes:
        path: The file that was loaded.
        header: Its header.
        model: The model, in evaluation mode.
        model_path: The model's own checkpoint.
        settings: The model's settings.
        aggregate: The aggregate, for an aggregate file.
        target: "aggregate" or "true" for an aggregate file, else None.
    """

    def __init__(self, path: Path, device: torch.device) -> None:
        self.path = path
        self.header: Header = require_kind(path, "model", "aggregate")
        self.device = device
        self.aggregate: Aggregate | None = None
        self.target: str | None = None
        self.model_path = path
        if self.header.kind == "aggregate":
            _, fit, self.aggregate = load_aggregate(path, device)
            self.target = fit.aggregate.target
            self.model_path = find_parent(path, "model")
        self.settings: ExperimentSettings
        self.model: MultimodalVAE
        _, self.settings, self.model = load_model(self.model_path, device)

    @property
    def attributes(self) -> AttributesDescription | None:
        """Names of attributes and of their values."""
        return self.settings.data.attributes

    @property
    def image(self) -> ImageDescription | None:
        """Shape of images."""
        return self.settings.data.image

    def dataset_path(self) -> Path:
        """The dataset that the model was trained on.

        Raises:
            MissingParentError: It is gone; names the command that makes it.
        """
        return find_parent(self.model_path, "dataset")

    @property
    def encoder_given(self) -> tuple[str, ...]:
        """What the posterior is given from which the decoders were trained."""
        return posterior_to_aggregate(self.settings.build_objective())

    @property
    def posteriors(self) -> list[str]:
        """What latents can be drawn from: "prior", "text" (the model's own q(z|y)), and the fitted one."""
        names = ["prior"]
        if self.attributes and self.model.answers((self.attributes.name,)):
            names.append("text")
        if self.target:
            names.append(self.target)
        return names

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
    def default_posterior(self) -> str:
        """The fitted posterior of an aggregate file, else the model's own q(z|y), else the prior."""
        return self.posteriors[-1]

    def latent_sampler(self, posterior: str) -> LatentSampler:
        """A function (descriptions of B, n, generator) -> z [n, B, D] that draws from a posterior.

        Raises:
            UsageError: There is no such posterior.
        """
        self._check(posterior)
        if posterior in ("prior", "text"):
            given = () if posterior == "prior" else self._text

            def draw(condition: Batch, n: int, generator: torch.Generator | None) -> Tensor:
                return self.model.posterior(condition, given).sample(generator, (n,))

            return draw
        aggregate = self._aggregate

        def draw_fitted(condition: Batch, n: int, generator: torch.Generator | None) -> Tensor:
            if aggregate.attributes is None:  # q(z) does not depend on the description
                return aggregate.sample(None, n * condition.size, generator).reshape(n, condition.size, -1)
            return aggregate.sample(condition, n, generator)

        return draw_fitted

    def latent_log_prob(self, posterior: str) -> LatentLogProb:
        """A function (z [..., B, D], descriptions of B) -> log q(z | description) [..., B], nats."""
        self._check(posterior)
        if posterior in ("prior", "text"):
            given = () if posterior == "prior" else self._text
            return lambda z, condition: self.model.posterior(condition, given).log_prob(z)
        return self._aggregate.log_prob

    @property
    def _text(self) -> tuple[str, ...]:
        assert self.attributes is not None
        return (self.attributes.name,)

    @property
    def _aggregate(self) -> Aggregate:
        assert self.aggregate is not None
        return self.aggregate

    # What a person calls from Python. All of it runs without gradients.

    def describe(self, given: str | Mapping[str, str]) -> Batch:
        """A description such as ``"digit=3 scale=big"`` or ``{"digit": "3"}`` as a batch of one; the rest is unknown.

        Raises:
            UsageError: An attribute or value does not exist; suggests the nearest.
        """
        if self.attributes is None:
            raise UsageError(f"{self.path} knows no attributes, so it cannot be given a description")
        text = given if isinstance(given, str) else " ".join(f"{name}={value}" for name, value in given.items())
        codes = parse_query(text, self.attributes)
        return batch_of_queries(codes[None], name=self.attributes.name).to(self.device)

    @torch.inference_mode()
    def sample(
        self, given: str | Mapping[str, str] = "", n: int = 16, posterior: str | None = None, seed: int = 0
    ) -> Tensor:
        """Images drawn from a description.

        Args:
            given: The description; attributes left out are unknown.
            n: Number of images.
            posterior: One of :attr:`posteriors`; the last of them by default.
            seed: Of the draws.

        Returns:
            E[image | z] [n, C, H, W] in [0, 1], one z per image.
        """
        condition = self.describe(given)
        generator = torch_generator(seed, "samples", device=str(self.device))
        z = self.latent_sampler(posterior or self.default_posterior)(condition, n, generator)
        with autocast(self.device):
            assert self.image is not None
            return self.model.mean(self.image.name, z, condition).squeeze(1)

    @torch.inference_mode()
    def encode(self, images: Tensor | np.ndarray, attributes: np.ndarray | None = None) -> DiagonalGaussian:
        """Posteriors q(z | image) [B, D], or q(z | image, attributes) if the model encodes both.

        Args:
            images: [B, C, H, W] in [0, 1].
            attributes: uint8 codes [B, A], 255 unknown; all unknown by default.
        """
        assert self.image is not None
        pixels = {self.image.name: torch.as_tensor(images, dtype=torch.float32)}
        given: tuple[str, ...] = (self.image.name,)
        codes = {}
        if self.attributes is not None:
            if attributes is None:
                attributes = np.full((len(pixels[self.image.name]), len(self.attributes.names)), 255, np.uint8)
            else:
                given = self.encoder_given
            codes[self.attributes.name] = torch.as_tensor(attributes)
        if not self.model.answers(given):
            given = self.encoder_given
        with autocast(self.device):
            return self.model.posterior(to_batch(pixels, codes).to(self.device), given)

    @torch.inference_mode()
    def posterior(self, given: str | Mapping[str, str]) -> DiagonalGaussian:
        """The model's own q(z | description) [1, D]; for a fitted one draw from :meth:`latent_sampler`."""
        return self.model.posterior(self.describe(given), self._text)

    def log_likelihood(self, images: Tensor | np.ndarray, samples: int = 100, seed: int = 0) -> "Score":
        """Importance-weighted estimate of log p(image) in nats, with its standard error.

        Args:
            images: [B, C, H, W] in [0, 1].
            samples: Importance samples K per image.
            seed: Of the samples.
        """
        from mmgen.metrics._likelihoods import image_log_likelihood

        return image_log_likelihood(self, images, samples, seed)


def load(path: str | Path, device: str = "cpu") -> Loaded:
    """A trained model or a fitted aggregate (with its model, found through the file's lineage).

    Example:
        >>> import mmgen
        >>> model = mmgen.load("mnist-a-telbo-aggregate-realnvp.safetensors")  # doctest: +SKIP
        >>> model.sample("digit=3 scale=big", n=16).shape  # doctest: +SKIP
        torch.Size([16, 1, 64, 64])

    Raises:
        ArtifactError: The file is unreadable, damaged, of another kind, or its parents are missing.
    """
    return Loaded(Path(path), resolve_device(device))
