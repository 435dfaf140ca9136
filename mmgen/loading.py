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
from mmgen.models._settings import AttributesDescription, ImageDescription, TextDescription
from mmgen.models.multimodal_vae import MultimodalVAE
from mmgen.notation import UNKNOWN
from mmgen.queries import (
    ANYTHING,
    batch_of_captions,
    batch_of_queries,
    caption_of_codes,
    codes_of_caption,
    parse_caption,
    parse_query,
)
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
        model_header: The header of that.
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
        self.model_header: Header
        self.model_header, self.settings, self.model = load_model(self.model_path, device)

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

    # What a person calls from Python. All of it runs without gradients.

    def describe(self, given: str | Mapping[str, str]) -> Batch:
        """A description as a batch of one.

        Args:
            given: Attributes such as ``"digit=3 scale=big"`` or ``{"digit": "3"}``, the rest unknown; or, where the
                model knows text, a caption such as ``"large red rubber cube left small blue metal sphere"``.

        Raises:
            UsageError: An attribute, value or word does not exist; suggests the nearest.
        """
        is_caption = isinstance(given, str) and "=" not in given and given.strip() not in ("", ANYTHING)
        if isinstance(given, str) and is_caption and self.text is not None:
            return self._describe_caption(given)
        if self.attributes is None:
            raise UsageError(f"{self.path} knows no attributes, so it cannot be given a description")
        text = given if isinstance(given, str) else " ".join(f"{name}={value}" for name, value in given.items())
        return self.describe_codes(parse_query(text, self.attributes)[None])

    def _describe_caption(self, caption: str) -> Batch:
        assert self.text is not None
        tokens = parse_caption(caption, self.text, self.attributes)[None]
        batch = batch_of_captions(tokens, name=self.text.name)
        if self.attributes is not None and self.text.slots:
            codes = codes_of_caption(tokens, self.text, self.attributes)
            batch = _together(batch, batch_of_queries(codes, name=self.attributes.name))
        return batch.to(self.device)

    def describe_codes(self, codes: np.ndarray) -> Batch:
        """Descriptions as a batch: with attributes, and with text too where its positions spell attributes, all known.

        Args:
            codes: uint8 [B, A], 255 unknown.
        """
        assert self.attributes is not None
        batch = batch_of_queries(codes, name=self.attributes.name)
        if self.text is not None and self.text.slots:
            spelt = [self.attributes.names.index(slot) for slot in self.text.slots]
            if (codes[:, spelt] != UNKNOWN).all():
                tokens = caption_of_codes(codes, self.text, self.attributes)
                batch = _together(batch, batch_of_captions(tokens, name=self.text.name))
        return batch.to(self.device)

    @torch.inference_mode()
    def sample(
        self,
        given: str | Mapping[str, str] = "",
        n: int = 16,
        posterior: str | None = None,
        seed: int = 0,
        target: str | None = None,
    ) -> Tensor:
        """Images drawn from a description.

        Args:
            given: The description; attributes left out are unknown.
            n: Number of images.
            posterior: One of :attr:`posteriors`; the last of them by default.
            seed: Of the draws.
            target: Image modality to draw; the main one by default. With the same seed they are of the same z.

        Returns:
            E[image | z] [n, C, H, W] in [0, 1], one z per image.
        """
        condition = self.describe(given)
        generator = torch_generator(seed, "samples", device=str(self.device))
        z = self.latent_sampler(posterior or self.default_posterior)(condition, n, generator)
        with autocast(self.device):
            assert self.image is not None
            return self.model.mean(target or self.image.name, z, condition).squeeze(1)

    @torch.inference_mode()
    def encode(
        self,
        images: Tensor | np.ndarray | Mapping[str, Tensor | np.ndarray],
        attributes: np.ndarray | None = None,
        text: np.ndarray | None = None,
    ) -> DiagonalGaussian:
        """Posteriors q(z | image) [B, D], or q(z | image, description) if the model encodes both.

        Args:
            images: [B, C, H, W] in [0, 1] of the main image modality; or several such by the names of theirs, all of
                the same examples, for q(z | exactly these).
            attributes: uint8 codes [B, A], 255 unknown; all unknown by default.
            text: Word codes [B, T], V for "no word".
        """
        if isinstance(images, Mapping):
            from mmgen.translation import infer

            if attributes is not None or text is not None:
                raise UsageError("got images by modality and codes of a description, expected one of them")
            return infer(self, images)
        assert self.image is not None
        pixels = {self.image.name: torch.as_tensor(images, dtype=torch.float32)}
        codes = {}
        if self.attributes is not None:
            unknown = np.full((len(pixels[self.image.name]), len(self.attributes.names)), UNKNOWN, np.uint8)
            codes[self.attributes.name] = torch.as_tensor(unknown if attributes is None else attributes)
        words = {}
        if self.text is not None and text is not None:
            words[self.text.name] = torch.as_tensor(np.asarray(text, np.int64))
        described = attributes is not None or text is not None
        given = self.encoder_given if described else (self.image.name,)
        if not self.model.answers(given):
            given = self.encoder_given
        with autocast(self.device):
            return self.model.posterior(to_batch(pixels, codes, words).to(self.device), given)

    def translate(
        self,
        images: Tensor | np.ndarray | Mapping[str, Tensor | np.ndarray],
        source: str | None = None,
        target: str | None = None,
        *,
        given: str | Mapping[str, str] = "",
        draws: int = 0,
        seed: int = 0,
    ) -> Tensor:
        """Pictures of one modality drawn from those of another: colours for a sketch, a mask for a photograph.

        Args:
            images: [B, C, H, W] in [0, 1]; or several modalities by name, all of the same examples.
            source: Modality of ``images``; the main one by default.
            target: Modality to draw; the main one by default.
            given: A description that holds for all of them, such as ``"Smiling=yes"``; nothing by default.
            draws: How many z to draw from q(z | images) for each; 0 takes its mean.
            seed: Of the draws.

        Returns:
            E[target | z] in [0, 1], [B, C, H, W], or [draws, B, C, H, W].

        Raises:
            UsageError: The model infers nothing from the source or does not draw the target.

        Example:
            >>> import mmgen
            >>> model = mmgen.load("faces.safetensors")  # doctest: +SKIP
            >>> model.translate(sketches, source="edges", target="image").shape  # doctest: +SKIP
            torch.Size([8, 3, 64, 64])
            >>> model.translate({"edges": sketches, "mask": masks}, draws=4).shape  # doctest: +SKIP
            torch.Size([4, 8, 3, 64, 64])
        """
        from mmgen.translation import translate

        if self.image is None:
            raise UsageError(f"{self.path} is a model without images; there is nothing to translate")
        named = images if isinstance(images, Mapping) else {source or self.image.name: images}
        return translate(self, named, target or self.image.name, draws, seed, given)

    @torch.inference_mode()
    def posterior(self, given: str | Mapping[str, str]) -> DiagonalGaussian:
        """The model's own q(z | description) [1, D]; for a fitted one draw from :meth:`latent_sampler`."""
        if self._own is None:
            raise UsageError(
                f"{self.model_path} has no q(z | description) of its own; fit one with mmgen fit-aggregate"
            )
        description = self.describe(given)
        return self.model.posterior(description, self._given(description))

    def log_likelihood(self, images: Tensor | np.ndarray, samples: int = 100, seed: int = 0) -> "Score":
        """Importance-weighted estimate of log p(image) in nats, with its standard error.

        Args:
            images: [B, C, H, W] in [0, 1].
            samples: Importance samples K per image.
            seed: Of the samples.
        """
        from mmgen.metrics._likelihoods import image_log_likelihood

        return image_log_likelihood(self, images, samples, seed)


def _together(one: Batch, other: Batch) -> Batch:
    """The same examples with the modalities of both."""
    return Batch({**one.values, **other.values}, {**one.present, **other.present})


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
