"""Everything of a trained model from Python: ``mmgen.load(path)``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from mmgen.artifacts.files import exported_file
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.memory import check_memory
from mmgen.evaluation.likelihoods import image_log_likelihood, main_image
from mmgen.generation.decode import pictures, wanted_images
from mmgen.generation.descriptions import (
    as_words,
    batch_of,
    check_read,
    chosen_posterior,
    complete,
    describe,
    parse,
)
from mmgen.generation.encode import encode
from mmgen.generation.files import ModelFiles
from mmgen.generation.given import Given, Pictures, check_drawn, codes_given, values_given
from mmgen.generation.latents import draw_latents
from mmgen.generation.open_model import OpenModel
from mmgen.generation.tilt import AnyTilt
from mmgen.generation.translate import translate
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.models import GaussianModel
from mmgen.posteriors.encoding import LayeredPosterior
from mmgen.results.naming import posterior_called
from mmgen.results.score import Score
from mmgen.settings.arguments import checked
from mmgen.settings.kinds import Count, FilePath, Seed
from mmgen.training.precision import resolve_device

__all__ = ["TrainedModel", "load"]


class TrainedModel(OpenModel):
    """A trained model, or an aggregate together with the model that it was fitted to: what a person calls from Python.

    All of it runs without gradients. Its attributes are those of :class:`~mmgen.generation.open_model.OpenModel`.
    """

    @checked
    def describe(self, description: str | Mapping[str, str]) -> Batch:
        """A description as a batch of one.

        Args:
            description: Attributes such as ``"digit=3 scale=big"`` or ``{"digit": "3"}``, the rest unknown; or, where
                the model knows text, a caption such as ``"large red rubber cube left small blue metal sphere"``.

        Raises:
            UsageError: An attribute, value or word does not exist; suggests the nearest.
        """
        return describe(self, description)

    @checked
    def describe_codes(self, codes: Given) -> Batch:
        """Descriptions as a batch: with attributes, and with text too where its positions spell attributes, all known.

        Args:
            codes: uint8 [B, A], 255 unknown.

        Raises:
            UsageError: A code is no value of its attribute.
        """
        if self.attributes is None:
            raise UsageError(f"{self.path} knows no attributes, so it cannot be given codes of them")
        return batch_of(self, complete(self, codes_given("codes", codes, self.attributes)))

    @checked
    @torch.inference_mode()
    def sample(
        self,
        description: str | Mapping[str, str] = "",
        n: Count = 16,
        posterior: str | None = None,
        seed: Seed = 0,
        target: str | None = None,
        guidance: AnyTilt | None = None,
    ) -> Tensor:
        """Images drawn from a description: the same, of the same seed, as ``mmgen sample`` draws and metrics judge.

        Args:
            description: The description; attributes left out are unknown.
            n: Number of images.
            posterior: One of :attr:`posteriors`; by default what was fitted, else the model's own.
            seed: Seed of the draws.
            target: Image modality to draw; the main one by default. With the same seed they are of the same z.
            guidance: Weight w of p(words | z)^w, by which the posterior is tilted: how literally the words are taken;
                by default that of :meth:`guided`. Above 0 descriptions may have NOT and OR. "3:balanced" keeps the
                shares of attributes that are left out, "3:effective=100:candidates=65536" chooses from more candidates.

        Returns:
            E[image | z] [n, C, H, W] in [0, 1], one z per image.

        Raises:
            UsageError: The model does not know the words, or the posterior reads none of what is given.

        Example:
            >>> import mmgen
            >>> model = mmgen.load("mnist-a-telbo-aggregate-realnvp.safetensors")  # doctest: +SKIP
            >>> model.posteriors  # doctest: +SKIP
            ['prior', 'own', 'aggregate']
            >>> model.sample("digit=3 scale=big", n=16).shape  # doctest: +SKIP
            torch.Size([16, 1, 64, 64])
            >>> model.sample({"digit": "3"}, n=4, posterior="own", seed=1).shape  # doctest: +SKIP
            torch.Size([4, 1, 64, 64])
            >>> model.sample("digit=3 NOT scale=big OR digit=8", n=4, guidance=3).shape  # doctest: +SKIP
            torch.Size([4, 1, 64, 64])
        """
        loaded = self.guided(self.tilt if guidance is None else guidance, seed)
        (name,) = wanted_images(loaded, [target] if target else [])
        asked = parse(loaded, [as_words(description)])
        source = chosen_posterior(loaded, asked, posterior)
        check_drawn([self.observed[name]], n, 1, "descriptions")
        z = draw_latents(loaded, source, asked, n, seed)
        return torch.cat([piece.means[0] for piece in pictures(loaded, name, z, asked, seed, sampled=False)])

    @checked
    @torch.inference_mode()
    def encode(
        self,
        images: Pictures | Mapping[str, Pictures],
        attributes: Given | None = None,
        text: Given | None = None,
    ) -> DiagonalGaussian | LayeredPosterior:
        """Posteriors q(z | image) [B, D], or q(z | image, description) if the model encodes both.

        Of several layers of z it has ``mean``, ``sample`` and ``log_prob`` as a Gaussian has them, and no ``sd``.

        Args:
            images: [B, C, H, W] of the main image modality, in [0, 1] or uint8 as a dataset has them, of the dataset's
                kind, so 0 and 1 alone for a model of black and white; or several such by the names of theirs, all of
                the same examples, for q(z | exactly these). Pictures of Pillow have the size of the model's.
            attributes: uint8 codes [B, A], 255 unknown; all unknown by default.
            text: Word codes [B, T], V for "no word".

        Raises:
            UsageError: The images are neither, or the model has no such posterior.

        Example:
            >>> import mmgen
            >>> from mmgen.artifacts import Dataset
            >>> model = mmgen.load("mnist-a-telbo.safetensors")  # doctest: +SKIP
            >>> with Dataset.open(model.dataset_path()) as data:  # doctest: +SKIP
            ...     rows = data.split("iid", "test")[:8]
            ...     images = data.read_image("image", rows)
            ...     codes = data.read_attributes("attributes", rows)
            >>> q = model.encode(images)  # doctest: +SKIP
            >>> q.mean.shape, q.sd.shape  # doctest: +SKIP
            (torch.Size([8, 10]), torch.Size([8, 10]))
            >>> model.encode(images, codes).sample(shape=(5,)).shape  # doctest: +SKIP
            torch.Size([5, 8, 10])
        """
        return encode(self, images, attributes, text)

    @checked
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
        """Pictures of one modality drawn from those of another: colours for a sketch, a mask for a photograph.

        Args:
            images: [B, C, H, W] as :meth:`encode` takes them; or several modalities by name, all of the same examples.
            source: Modality of ``images``; the main one by default.
            target: Modality to draw; the main one by default.
            description: A description that holds for all of them, such as ``"Smiling=yes"``; nothing by default.
            draws: How many z to draw from q(z | images) for each; 0 takes its mean.
            seed: Seed of the draws.
            rows: A number of each example that its draws are known by; 0 to B - 1 by default. With the rows of a
                dataset they are the draws of ``mmgen sample --from``.

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
        if self.observation is None:
            raise UsageError(f"{self.path} is a model of words alone; there is nothing to translate")
        named = images if isinstance(images, Mapping) else {source or self.observation.name: images}
        return translate(self, named, target or self.observation.name, draws, seed, description, rows)

    @checked
    @torch.inference_mode()
    def posterior(self, description: str | Mapping[str, str], posterior: str | None = None) -> DiagonalGaussian:
        """The model's own q(z | description) [1, D], a Gaussian with ``mean`` and ``sd``.

        A fitted posterior need not be one: draw from it with :meth:`sample` or :meth:`latent_sampler`, and ask for its
        density with :meth:`latent_log_prob`.

        Args:
            description: The description; attributes left out are unknown.
            posterior: "own" for the model's, "prior" for p(z); by default the model's own, or, of an aggregate's
                file, the fitted one, which is refused.

        Raises:
            UsageError: There is no such posterior, or it is a fitted one.

        Example:
            >>> import mmgen
            >>> model = mmgen.load("mnist-a-telbo.safetensors")  # doctest: +SKIP
            >>> model.posterior("digit=3").mean.shape  # doctest: +SKIP
            torch.Size([1, 10])
            >>> fitted = mmgen.load("mnist-a-telbo-aggregate-realnvp.safetensors")  # doctest: +SKIP
            >>> draw = fitted.latent_sampler("aggregate")  # doctest: +SKIP
            >>> draw(fitted.describe("digit=3"), 100, None).shape  # doctest: +SKIP
            torch.Size([100, 1, 10])
        """
        name = posterior_called(posterior or self.target or "own")
        if self.guidance:
            raise UsageError("a guided posterior has no mean and standard deviation to return: draw from it")
        own = f'; for that of {self.model_path} itself ask for posterior="own"' if self.own is not None else ""
        if name == self.target:
            raise UsageError(
                f"{self.path} holds the fitted posterior '{name}', which has no mean and standard deviation to return: "
                f"draw from it with sample(...) or latent_sampler('{name}'){own}"
            )
        if name == "own" and not own:
            fitted = f"draw from the fitted one with latent_sampler('{self.target}')"
            unfitted = f"fit one with: mmgen fit-aggregate {self.model_path}"
            raise UsageError(
                f"{self.model_path} has no q(z | description) of its own; {fitted if self.target else unfitted}"
            )
        asked = parse(self, [as_words(description)])
        if name != "prior":
            check_read(self, name, asked)
        condition = batch_of(self, asked)
        if not isinstance(self.model, GaussianModel):
            raise UsageError(
                f"{self.model_path} has several layers of z, whose density has no mean and standard deviation to "
                f"return: draw from it with sample(...) or latent_sampler('{name}')"
            )
        return self.model.posterior(condition, () if name == "prior" else self.files.own_given(condition))

    @checked
    def log_likelihood(self, images: Pictures, samples: Count = 100, seed: Seed = 0) -> Score:
        """Importance-weighted estimate of log p(image) in nats, with its standard error.

        Args:
            images: [B, C, H, W] as :meth:`encode` takes them; grey levels have no probability under a model of black
                and white, and are refused.
            samples: Importance samples K per image.
            seed: Seed of the samples.

        Raises:
            UsageError: The images are neither, or the model is conditional: its log p(image | description) is what
                the metric ``log-likelihood`` measures.

        Example:
            >>> import mmgen
            >>> from mmgen.artifacts import Dataset
            >>> model = mmgen.load("mnist-a-telbo.safetensors")  # doctest: +SKIP
            >>> with Dataset.open(model.dataset_path()) as data:  # doctest: +SKIP
            ...     images = data.read_image("image", data.split("iid", "test")[:8])
            >>> score = model.log_likelihood(images, samples=10)  # doctest: +SKIP
            >>> print(f"{score.value:.1f} ± {score.stderr:.1f} {score.unit}")  # doctest: +SKIP
            -... ± ... nats
            >>> len(score.extra["values"])  # doctest: +SKIP
            8
        """
        info = self.observed[main_image(self)]
        pixels = values_given(info, images)
        check_memory(8 * samples * len(pixels), f"{samples:,} samples of {len(pixels):,} images", "use fewer samples")
        return image_log_likelihood(self, pixels, samples, seed)


@checked
def load(path: FilePath, device: str = "cpu") -> TrainedModel:
    """A trained model or a fitted aggregate (with its model, found through the file's lineage).

    Args:
        path: The file; or a folder that ``mmgen export`` has made.
        device: Where to compute.

    Example:
        >>> import mmgen
        >>> model = mmgen.load("mnist-a-telbo-aggregate-realnvp.safetensors")  # doctest: +SKIP
        >>> model.sample("digit=3 scale=big", n=16).shape  # doctest: +SKIP
        torch.Size([16, 1, 64, 64])

    Raises:
        ArtifactError: The file is unreadable, damaged, of another kind, or its parents are missing.
    """
    path = Path(path)
    if path.is_dir():
        path = exported_file(path)
    elif path.suffix.lower() == ".zip":
        raise UsageError(f"{path} is an archive, expected a file or a folder; unpack it and give the folder")
    return TrainedModel(ModelFiles(path, resolve_device(device)))
