"""A trained model with its posteriors, as ``mmgen.load(path)`` returns it."""

import copy
import secrets
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Self

import torch
from PIL import Image
from pydantic import Field
from torch import Tensor

from mmgen import generation
from mmgen.artifacts import Header
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.markup import facts_table
from mmgen.core.pictures import pillow_images
from mmgen.generation.inputs import Numbers, Pictures, validate_codes
from mmgen.generation.model_data import ModelData
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.models import Model
from mmgen.posteriors import (
    NO_GUIDANCE,
    AnyGuidance,
    CandidateStatistics,
    Completions,
    Encoder,
    Estimates,
    Fitted,
    Guidance,
    GuidedPosterior,
    LayeredPosterior,
    Posteriors,
    Prior,
    WordLikelihood,
    guide_posteriors,
)
from mmgen.settings.arguments import check_arguments
from mmgen.settings.kinds import Count, Seed
from mmgen.training.model_run import ExperimentSettings


class TrainedModel(ModelData):
    """A trained model with its posteriors over z: the prior, the encoder and, if loaded, a fitted one.

    :func:`mmgen.load` makes it. Methods run without gradients.

    Attributes:
        fitted: The fitted posterior of an aggregate file, without guidance.
        encoder: q(z | words) of the model's inference network, without guidance; None if it reads no words.
        likelihood: p(words | z) of the model's decoders.
        guidance: Guidance of all posteriors; false for none.
        completes: Whether open words of a description by attributes are drawn before z; see :meth:`completing`.
        posteriors: All by name, guided if ``guidance`` is set: "prior", "own" (the encoder) and the fitted one.
        seed: Seed of the last :meth:`sample` or :meth:`draw`, which draws the same again; None before.
    """

    seed: int | None = None

    def __init__(
        self,
        source: tuple[Path, Header],
        checkpoint: tuple[Path, Header],
        settings: ExperimentSettings,
        model: Model,
        device: torch.device,
        fitted: Fitted | None = None,
    ) -> None:
        self.path, self.header = source
        self.model_path, self.model_header = checkpoint
        self.settings, self.model, self.device, self.fitted = settings, model, device, fitted
        data = settings.data
        encoder = Encoder(model, data, self.model_path)
        self.encoder = encoder if encoder.reads else None
        self.likelihood = WordLikelihood(model, data, self.model_path)
        self.guidance = NO_GUIDANCE
        self.completes = self.attributes is not None
        self._estimates = Estimates()
        every = [Prior(model, self.model_path), self.encoder, fitted]
        self._find_completions = cache(lambda: generation.read_completions(self))  # shared by copies
        found = self._find_completions if self.completes else None
        self.posteriors = Posteriors([each for each in every if each is not None], self.path, self.model_path, found)

    def __repr__(self) -> str:
        about = [f"z {self.model.latent_size}", *(each.describe_size() for each in self.settings.modalities.values())]
        return (
            f"<{self.header.kind} {self.path}: {self.settings.objective['name']}, {'; '.join(about)}; "
            f"draws from {', '.join(self.posteriors)}; on {self.device}>"
        )

    def _repr_html_(self) -> str:
        facts = [("objective", self.settings.objective["name"]), ("z", self.model.latent_size)]
        facts += [(name, each.describe_size()) for name, each in self.settings.modalities.items()]
        facts += [("draws from", ", ".join(self.posteriors)), ("device", self.device)]
        return facts_table(f"{self.header.kind} {self.path}", facts)

    @property
    def description_kind(self) -> str | None:
        """Kind of description that the default posterior reads: "attributes", "text", or None if it reads none."""
        source = self.fitted or self.encoder
        if source is None or not source.reads:
            return None
        return "text" if self.text is not None and source.reads[0] == self.text.name else "attributes"

    @property
    def operators(self) -> tuple[str, ...]:
        """Operators in descriptions, such as IN COMMON, that the fitted posterior was trained for."""
        return self.fitted.operators if self.fitted is not None else ()

    @check_arguments
    def reads(self, posterior: str) -> tuple[str, ...]:
        """Return the modalities of a description (attributes, text) that change draws from a posterior."""
        names = {*self.posteriors[posterior].reads, *self.model.conditional_on}
        parts = (part for part in (self.attributes, self.text) if part is not None)
        return tuple(part.name for part in parts if part.name in names)

    @property
    def completions(self) -> Completions:
        """Distribution of whole descriptions given a part, from those of the training examples."""
        return self._find_completions()

    @check_arguments
    def completing(self, complete: bool) -> Self:
        """Return a copy that draws open words of a description first, as by default, or leaves them open.

        Args:
            complete: Whether open words are drawn from training descriptions that agree with the given ones.

        Raises:
            UsageError: Descriptions leave no attributes open.
        """
        if not complete:
            generation.check_open_words(self)
        changed = copy.copy(self)
        changed.completes = complete and self.attributes is not None
        changed.posteriors = self.posteriors.completing(self._find_completions if changed.completes else None)
        return changed

    @check_arguments
    def completes_words_of(self, posterior: str) -> bool:
        """Return True if open words of descriptions are completed before draws from a posterior."""
        return self.posteriors[posterior].is_completing and generation.can_complete(self, posterior)

    @check_arguments
    def guided(self, weight: AnyGuidance, seed: Seed = 0) -> Self:
        r"""Return a copy of the model whose posteriors are guided: their draws of z match the description more closely.

        .. math:: q_w(z|y) \propto q(z|y) \, p(y|z)^w

        Args:
            weight: w; 0 for no guidance; "cfg:0.5" is classifier-free guidance and "gradient:1" the gradient of
                log p(y|z), of a fitted rectified flow.
            seed: Seed of the candidates that posteriors without descriptions share for all descriptions.

        Raises:
            UsageError: The weight is out of range, or the model has no p(words | z) or no fitted flow.
        """
        guided = copy.copy(self)
        guided.guidance = Guidance.parse(weight)
        guided.posteriors = guide_posteriors(self.posteriors, self.likelihood, guided.guidance, seed, self._estimates)
        return guided

    @check_arguments
    def recording(self, statistics: dict[str, CandidateStatistics]) -> Self:
        """Return a copy whose guided draws add statistics of their candidates to ``statistics``, by posterior."""
        changed = copy.copy(self)
        changed.posteriors = self.posteriors.recording(statistics)
        return changed

    @check_arguments
    def guided_posterior(self, posterior: str) -> GuidedPosterior:
        """Return the guided posterior of this name.

        Raises:
            UsageError: There is no such posterior, or the model is not guided.
        """
        source = self.posteriors[posterior]
        if not isinstance(source, GuidedPosterior):
            raise UsageError(
                f"posterior '{posterior}' of {self.path} is not guided, "
                f"expected a posterior of a guided model; make one with guided(weight)"
            )
        return source

    @check_arguments
    def describe(self, description: str | Mapping[str, str]) -> Batch:
        """Parse a description and return it as a batch of one.

        Args:
            description: Attributes such as ``"digit=3 scale=big"`` or ``{"digit": "3"}``, the rest unknown; or, for a
                model of text, a caption such as ``"large red rubber cube left small blue metal sphere"``.

        Raises:
            UsageError: An attribute, value or word does not exist; the message suggests the nearest.
        """
        return generation.description_batch(self, description)

    @check_arguments
    def describe_codes(self, codes: Numbers) -> Batch:
        """Convert attribute codes [B, A] to a batch of B descriptions, with captions if these spell the attributes.

        Args:
            codes: Attribute codes uint8 [B, A], 255 for unknown.

        Raises:
            UsageError: A code is no value of its attribute.
        """
        if self.attributes is None:
            raise UsageError(f"{self.path} has no attributes, so it reads no codes of attributes; give a caption")
        completed = generation.complete_descriptions(self, validate_codes("codes", codes, self.attributes))
        return generation.batch_of_descriptions(self, completed)

    @check_arguments
    @torch.inference_mode()
    def sample(
        self,
        description: str | Mapping[str, str] = "",
        n: Count = 16,
        posterior: str | None = None,
        seed: Seed | None = None,
        target: str | None = None,
        guidance: AnyGuidance | None = None,
    ) -> Tensor:
        """Draw new images from a description; equal seeds give the images of ``mmgen sample`` and of metrics.

        Args:
            description: The description, with NOT and OR; attributes left out are drawn as in the training data.
            n: Number of images.
            posterior: One of :attr:`posteriors`; by default the fitted one, else the encoder.
            seed: Seed of the draws; by default another one at each call, which :attr:`seed` then is.
            target: Image modality to draw; by default the main one. With the same seed all modalities have the same z.
            guidance: Weight w of p(words | z)^w; by default that of :meth:`guided`. Larger w follows the description
                more strictly. "3:effective=100:candidates=65536" chooses from more candidates.

        Returns:
            E[image | z] [n, C, H, W] in [0, 1], one z per image.

        Raises:
            UsageError: The model lacks a word of the description, or the posterior does not read it.

        Example:
            >>> import mmgen
            >>> model = mmgen.load("mnist-a-telbo-aggregate-realnvp.safetensors")  # doctest: +SKIP
            >>> model.posteriors  # doctest: +SKIP
            prior, own, aggregate
            >>> model.sample("digit=3 scale=big", n=16).shape  # doctest: +SKIP
            torch.Size([16, 1, 64, 64])
            >>> model.sample("digit=3 NOT scale=big OR digit=8", n=4).shape  # doctest: +SKIP
            torch.Size([4, 1, 64, 64])
        """
        seed = self.seed = secrets.randbelow(2**32) if seed is None else seed
        model = self.guided(self.guidance if guidance is None else guidance, seed)
        descriptions = generation.parse_descriptions(model, [generation.format_description(description)])
        source = generation.select_posterior(model, descriptions, posterior)
        targets = [target] if target else []
        drawn = generation.draw(model, descriptions, n, posterior=source, seed=seed, targets=targets)
        return torch.from_numpy(drawn.means[0]).to(self.device)

    @check_arguments
    def draw(
        self,
        description: str | Mapping[str, str] = "",
        n: Count = 16,
        posterior: str | None = None,
        seed: Seed | None = None,
        target: str | None = None,
        guidance: AnyGuidance | None = None,
    ) -> list[Image.Image]:
        """Draw as :meth:`sample` does, and return n Pillow images; other data than images are shown as pictures.

        Raises:
            UsageError: As :meth:`sample`, or the data have no picture.
        """
        drawn = self.sample(description, n, posterior, seed, target, guidance).cpu().numpy()
        shown = self.observed[target] if target else self.observation
        assert shown is not None  # else nothing is drawn
        return pillow_images(shown.picture(drawn))

    @check_arguments
    def decode(self, z: Numbers, target: str | None = None, description: str | Mapping[str, str] = "") -> Tensor:
        """Return E[target | z] in [0, 1], [..., C, H, W] for z [..., D].

        Args:
            z: Latents.
            target: Image modality; by default the main one.
            description: What decoders of a conditional model read besides z.

        Raises:
            UsageError: z has another size, or the model does not draw the target.
        """
        return generation.decode_latents(self, z, target, description)

    @check_arguments
    def reconstruct(self, images: Pictures, attributes: Numbers | None = None, text: Numbers | None = None) -> Tensor:
        """Return E[image | z] [B, C, H, W] at the mean of :meth:`encode` of the same arguments."""
        return generation.reconstruct_pictures(self, images, attributes, text)

    @check_arguments
    @torch.inference_mode()
    def encode(
        self,
        images: Pictures | Mapping[str, Pictures],
        attributes: Numbers | None = None,
        text: Numbers | None = None,
    ) -> DiagonalGaussian | LayeredPosterior:
        """Return q(z | image) [B, D], or q(z | image, description) if the model encodes both.

        For several layers of z the result has ``mean``, ``sample`` and ``log_prob`` like a Gaussian, but no ``sd``.

        Args:
            images: Images [B, C, H, W] of the main modality, in [0, 1] or uint8 as in a dataset, only 0 and 1 for a
                model of black and white, or Pillow images of the model's size. A mapping from names of modalities to
                images of the same examples selects the posterior of exactly these modalities.
            attributes: Attribute codes uint8 [B, A], 255 for unknown; needed by a model that encodes pictures with
                their attributes.
            text: Word codes [B, T], V for "no word"; likewise.

        Raises:
            UsageError: The images do not fit the modality, or the model encodes pictures with words, which are missing.

        Example:
            >>> import mmgen
            >>> from mmgen.artifacts import Dataset
            >>> model = mmgen.load("mnist-a-telbo.safetensors")  # doctest: +SKIP
            >>> with Dataset.open(model.dataset_path()) as data:  # doctest: +SKIP
            ...     images = data.read_image("image", data.split("iid", "test")[:8])
            >>> model.encode(images).mean.shape  # doctest: +SKIP
            torch.Size([8, 10])
        """
        return generation.encode_pictures(self, images, attributes, text)

    @check_arguments
    def translate(
        self,
        images: Pictures | Mapping[str, Pictures],
        source: str | None = None,
        target: str | None = None,
        *,
        description: str | Mapping[str, str] = "",
        draws: Annotated[int, Field(ge=0, lt=2**63)] = 0,
        seed: Seed = 0,
        rows: Sequence[int] | None = None,
    ) -> Tensor:
        """Draw pictures of one modality from those of another: colours for a sketch, a mask for a photograph.

        Args:
            images: Images [B, C, H, W] as for :meth:`encode`; or several modalities of the same examples by name.
            source: Modality of ``images``; by default the main one.
            target: Modality to draw; by default the main one.
            description: One description for all images, such as ``"Smiling=yes"``; by default none.
            draws: Number of draws of z from q(z | images) for each image; 0 takes the mean.
            seed: Seed of the draws.
            rows: A number for each image, such as its row in a dataset, which selects its random stream; by default 0
                to B - 1.

        Returns:
            E[target | z] in [0, 1], [B, C, H, W], or [draws, B, C, H, W].

        Raises:
            UsageError: The model cannot infer z from the source, or does not draw the target.
        """
        if self.observation is None:
            raise UsageError(f"{self.path} has only words, so it has no pictures to translate; use a model of pictures")
        named = images if isinstance(images, Mapping) else {source or self.observation.name: images}
        return generation.translate_pictures(
            self, named, target or self.observation.name, draws, seed, description, rows
        )

    @check_arguments
    @torch.inference_mode()
    def posterior(self, description: str | Mapping[str, str], posterior: str | None = None) -> DiagonalGaussian:
        """Return the encoder's q(z | description) [1, D], or p(z), as a Gaussian with ``mean`` and ``sd``.

        Fitted and guided posteriors are no Gaussians; :attr:`posteriors` gives their draws and densities.

        Args:
            description: The description; attributes left out are unknown.
            posterior: "own" for the encoder, "prior" for p(z); by default the fitted one, which is refused, or "own".

        Raises:
            UsageError: There is no such posterior, or it is no Gaussian.

        Example:
            >>> import mmgen
            >>> model = mmgen.load("mnist-a-telbo.safetensors")  # doctest: +SKIP
            >>> model.posterior("digit=3").mean.shape  # doctest: +SKIP
            torch.Size([1, 10])
        """
        return generation.gaussian_posterior(self, description, posterior)
