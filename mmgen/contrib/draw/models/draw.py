r"""DRAW: a picture is drawn in T steps on a canvas, each by a part of z, with attention to a part of the picture.

alignDRAW draws captions: at each step the words of a caption are weighed, and their mean is part of the step's input.

References:
    DRAW: A Recurrent Neural Network for Image Generation (Gregor et al., 2015), arXiv:1502.04623
    Generating Images from Captions with Attention (Mansimov et al., 2016), arXiv:1511.02793
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from mmgen.contrib.draw._attention import PictureAttention, WordAttention
from mmgen.contrib.draw._steps import (
    Caption,
    CaptionNetwork,
    Choose,
    DrawEncoder,
    DrawGenerator,
    DrawingStep,
    DrawNetwork,
    Step,
)
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError, UsageError
from mmgen.inference import GaussianHead, Inputs
from mmgen.latent.gaussian import DiagonalGaussian, Posterior
from mmgen.latent.space import LatentSpace
from mmgen.latent.trace import Trace
from mmgen.modalities import Modality
from mmgen.modalities.image import Image
from mmgen.modalities.text import Text
from mmgen.models._base import Demands, Model
from mmgen.models._parts import available_modalities, make_decoders, networks_by_kind
from mmgen.models._settings import DataSettings, ModelSettings
from mmgen.networks import AttributeNetwork, CaptionReader, LstmCell, TextNetwork

__all__ = ["Draw"]

Count = Annotated[int, Field(ge=1)]
Patch = Literal[0] | Annotated[int, Field(ge=2)]
_DRAWN = -7.0
"""log sd of steps that are drawn already: 0.001, the least that any network gives."""


class DrawSettings(ModelSettings):
    """Settings of DRAW and alignDRAW."""

    example: ClassVar[Mapping[str, Any]] = {
        "steps": 3,
        "latent_size": 2,
        "hidden": 8,
        "read_patch": 3,
        "write_patch": 4,
        "prior": "state",
    }

    name: Literal["draw"] = "draw"
    """The kind of model."""
    steps: Annotated[int, Field(ge=1, le=1000)] = 64
    """T (Gregor et al., 2015: 64 on MNIST)."""
    latent_size: Count = 100
    """D, dimensions of z of a step, so that z has T * D."""
    hidden: Count = 256
    """Width of both LSTMs, the encoder's and the generator's."""
    read_patch: Patch = 2
    """N of the N x N filters that the encoder reads through, at least 2; 0: without attention, the whole picture."""
    write_patch: Patch = 5
    """N of the N x N filters that the generator writes through, at least 2; 0: without attention, by a linear layer to
    the whole canvas."""
    prior: Literal["standard", "state"] = "standard"
    """p(z of a step): standard (Gregor et al.), or mean and log sd are tanh of a linear layer of the generator's state
    (Mansimov et al.); that of the first step is standard."""
    learned_start: bool = False
    """Whether the first canvas and the first states are parameters (Mansimov et al.), not constants."""
    first_canvas: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    """What every pixel of the first canvas is, or starts training at (Mansimov et al. on MNIST: -10)."""
    reader: Count = 128
    """Width of the reader of captions, each way, where the objective conditions on text."""
    word_embedding: Count | None = None
    """Width of word vectors; left out, each word is an input of its own, as in the paper."""
    alignment: Annotated[int, Field(ge=0)] = 512
    """Hidden units of the weights over words at each step; 0: the reader's last state at every step (noAlignDRAW)."""
    attribute_network: AttributeNetwork = Field(default_factory=AttributeNetwork)
    """Widths of the networks from z to attributes, where the objective generates them."""
    text_network: TextNetwork | None = None
    """Widths of the networks from z to sentences, where the objective generates them; left out, those of the paper."""
    image_likelihood: str = "bernoulli"
    """p(image | z)."""

    def latent_space(self, data: DataSettings) -> LatentSpace | None:
        """Return a layer for each step."""
        return _latent_space(self.steps, self.latent_size)


def _latent_space(steps: int, size: int) -> LatentSpace:
    return LatentSpace({"z": size} if steps == 1 else {f"z{number}": size for number in range(1, steps + 1)})


class Draw(Model):
    r"""DRAW: T steps, in each of which an encoder reads the picture and a generator adds to a canvas.

    .. math:: q(z|x) = \prod_t q(z_t|x, z_{<t}), \quad p(z|y) = \prod_t p(z_t|z_{<t}, y), \quad p(x|z, y) =
              p(x|\text{canvas}_T)

    For everybody else z holds the steps side by side, and z of a step is **standardised by its prior**:
    :math:`e_t = (z_t - \mu_t) / \sigma_t` with mean and standard deviation of :math:`p(z_t|z_{<t}, y)`. So p(e) is N(0,
    I) whatever the caption y; divergences and importance weights are the same as those of z.

    Args:
        network: All networks of the picture.
        image: The pictures.
        others: What else is decoded, from z of all steps: for each its generated form and its network [B, T * D].
    """

    settings = DrawSettings

    def __init__(
        self, network: DrawNetwork, image: Image, others: Mapping[str, tuple[Modality, nn.Module]] | None = None
    ) -> None:
        super().__init__()
        self.latent = _latent_space(network.steps, network.size)
        self.network, self.image = network, image
        others = others or {}
        self.modalities = {image.name: image, **{name: modality for name, (modality, _) in others.items()}}
        self.decoders = nn.ModuleDict({name: decoder for name, (_, decoder) in others.items()})

    @classmethod
    def complete_settings(cls, settings: DrawSettings, demands: Demands, data: DataSettings) -> DrawSettings:
        """Return the settings with a text network if text is generated."""
        if any(name in demands.generates and each.kind == "text" for name, each in data.modalities.items()):
            return settings.model_copy(update={"text_network": settings.text_network or TextNetwork()})
        return settings

    @classmethod
    def build(cls, settings: DrawSettings, demands: Demands, data: DataSettings) -> "Draw":
        available = available_modalities(data, {"image": settings.image_likelihood}, demands.modalities)
        image, text = _check_demands(demands, available)
        others = {name: available[name] for name in demands.generates if name != image.name}
        own = {
            "image": None,
            "attributes": settings.attribute_network,
            "text": settings.text_network or TextNetwork(),
        }
        widths = dict.fromkeys(others, settings.steps * settings.latent_size)
        modalities, decoders = make_decoders(widths, others, networks_by_kind(data, own, {}))
        made = {name: (modality, decoders[name]) for name, modality in modalities.items()}
        return cls(_build_network(settings, image, text), image, made)

    @property
    def conditional_on(self) -> tuple[str, ...]:
        """Name of the captions that are drawn; () without captions."""
        captions = self.network.captions
        return () if captions is None else (captions.text.name,)

    def has_posterior(self, inputs: Inputs) -> bool:
        return {*inputs} in ({*()}, {*self.conditional_on}, {self.image.name, *self.conditional_on})

    def posterior(self, batch: Batch, inputs: Inputs) -> Posterior:
        if not self.has_posterior(inputs):
            raise UsageError(
                f"this model has no inference network for q(z | {', '.join(inputs)}), expected q(z | "
                f"{', '.join((self.image.name, *self.conditional_on))}); fit one afterwards with mmgen fit-aggregate"
            )
        if self.image.name not in inputs:
            return DiagonalGaussian.standard(batch.size, self.latent_size, like=next(self.parameters()))
        missing = [name for name in inputs if name not in batch.values]
        if missing:
            raise UsageError(
                f"the posterior given {' and '.join(inputs)} needs {missing[0]}, which the batch does not hold; add it "
                "to the batch"
            )
        return _Path(self, batch.values[self.image.name], self.read_captions(batch))

    def encode(self, batch: Batch, inputs: Inputs, generator: torch.Generator | None = None) -> DiagonalGaussian:
        """Return q of the last step given one draw of those before."""
        q = self.posterior(batch, inputs)
        if isinstance(q, DiagonalGaussian):
            return q
        assert isinstance(q, _Path)
        steps = q.gaussians(generator)
        drawn, last = [z for z, _ in steps[:-1]], steps[-1][1]
        noise = [torch.full_like(z, _DRAWN) for z in drawn]
        return DiagonalGaussian(torch.cat([*drawn, last.mean], -1), torch.cat([*noise, last.log_sd], -1))

    def means(self, batch: Batch, inputs: Inputs, generator: torch.Generator | None = None) -> Tensor:
        """Return the means [B, D] of the steps, each given the means of those before it, without any draw."""
        q = self.posterior(batch, inputs)
        if isinstance(q, DiagonalGaussian):
            return q.mean
        assert isinstance(q, _Path)
        return torch.cat([step.noise for step in q.walk(choose=lambda _, gaussian: gaussian.mean)], -1)

    def sample_lower_layers(self, top: Tensor, generator: torch.Generator | None = None) -> Tensor:
        below = self.latent_size - top.shape[-1]
        drawn = torch.randn(*top.shape[:-1], below, generator=generator, device=top.device, dtype=top.dtype)
        return torch.cat([drawn, top], -1)

    def log_prob_lower_layers(self, z: Tensor) -> Tensor:
        below = z[..., : self.latent_size - self.network.size]
        return DiagonalGaussian.standard(below.shape[-1], like=z).log_prob(below)

    def log_prior(self, z: Tensor) -> Tensor:
        return DiagonalGaussian.standard(self.latent_size, like=z).log_prob(z)

    def decode(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        if name == self.image.name:
            *_, last = self.steps(z, condition)
            parameters = self.network.generator.pictures(last.canvas)
        elif name in self.decoders:
            parameters = self.decoders[name](z.reshape(-1, z.shape[-1]))
        else:
            raise UsageError(f"this model does not generate {name}; it generates {', '.join(self.modalities)}")
        return parameters.reshape(*z.shape[:-1], *parameters.shape[1:])

    def drawing_steps(
        self, z: Tensor, condition: Batch | None = None, pictures: Tensor | None = None
    ) -> list[DrawingStep]:
        """Return each step of drawing z [..., D], as R drawings, given descriptions and pictures to read [B]."""
        generator = self.network.generator
        return [
            DrawingStep(
                self.image.mean(generator.pictures(step.canvas)),
                None if step.read is None else step.read.box,
                None if step.write is None else step.write.box,
                step.words,
            )
            for step in self.steps(z, condition, pictures)
        ]

    def steps(self, z: Tensor, condition: Batch | None = None, pictures: Tensor | None = None) -> Iterator[Step]:
        """Yield all that happens in the steps that draw z [..., D]; see :meth:`drawing_steps`."""
        path = _Path(self, pictures, self.read_captions(condition), z.shape[-2] if z.dim() > 1 else 1)
        return path.walk(z.shape[:-2], z=z)

    def read_captions(self, batch: Batch | None) -> Caption | None:
        """Read the captions of a batch; None for a model without captions."""
        captions = self.network.captions
        if captions is None:
            return None
        if batch is None or captions.text.name not in batch.values:
            raise UsageError(
                f"this model draws {captions.text.name}, which the batch does not hold; give a description"
            )
        return captions.read(batch)

    def output_bias(self, name: str) -> Tensor | None:
        """Return the first canvas [C', H, W] if it is learned, or the bias of another decoder."""
        if name != self.image.name:
            return super().output_bias(name)
        first = self.network.generator.first_canvas
        return first if isinstance(first, nn.Parameter) else None

    def inference_parameters(self) -> list[nn.Parameter]:
        return list(self.network.encoder.parameters())

    def trace(
        self, batch: Batch, inputs: Inputs, samples: int | None = None, names: Sequence[str] | None = None
    ) -> Trace:
        q = self.posterior(batch, inputs)
        shape = () if samples is None else (samples,)
        if isinstance(q, DiagonalGaussian):
            q = _Path(self, None, self.read_captions(batch), batch.size)
        assert isinstance(q, _Path)
        divergence, ratio, noise, last = {}, {}, [], None
        for layer, last in zip(self.latent.shapes, q.walk(shape), strict=True):
            one, e = last.posterior or DiagonalGaussian.standard(*last.noise.shape, like=last.noise), last.noise
            standard = DiagonalGaussian.standard(*e.shape, like=e)
            divergence[layer] = one.kl(standard).reshape(*shape, -1)
            ratio[layer] = (standard.log_prob(e) - one.log_prob(e)).reshape(*shape, -1)
            noise.append(e)
        assert last is not None
        z = torch.cat(noise, -1).reshape(*shape, batch.size, -1)
        likelihood = {}
        for name in self.generates if names is None else names:
            if name == self.image.name:
                canvas = self.network.generator.pictures(last.canvas).unflatten(0, (*shape, batch.size))
                likelihood[name] = self.image.log_prob(canvas, batch.values[name], batch.present[name])
            else:
                likelihood[name] = self.log_likelihood(name, z, batch)
        return Trace(z, likelihood, divergence, ratio)


def _check_demands(demands: Demands, available: Mapping[str, Modality]) -> tuple[Image, Text | None]:
    """Return the picture to draw and the captions to draw it by; refuse other demands."""
    condition = available[demands.conditions_on[0]] if demands.conditions_on else None
    if condition is not None and not isinstance(condition, Text):
        raise SettingsError(
            f"model draw got {condition.name} to condition on, expected text; set objective.description to the name of "
            "a text"
        )
    inputs = sorted(demands.posteriors)
    seen = [name for name in inputs[0] if name not in demands.conditions_on] if len(inputs) == 1 else []
    image = available[seen[0]] if len(seen) == 1 else None
    if not isinstance(image, Image) or image.name not in demands.generates or "subsets" in demands.needs:
        posteriors = " and ".join(f"q(z | {', '.join(one)})" for one in inputs)
        raise SettingsError(
            f"model draw infers z from the picture that it draws, but the objective asks for {posteriors} and draws "
            f"{', '.join(demands.generates)}; use elbo or iwae given the image, or cvae given image and text"
        )
    if any(isinstance(available[name], Image) for name in demands.generates if name != image.name):
        raise SettingsError(
            f"model draw got {', '.join(demands.generates)} to generate, expected one picture; leave the others out of "
            "objective.modalities"
        )
    return image, condition


def _build_network(settings: DrawSettings, image: Image, text: Text | None) -> DrawNetwork:
    """Build the networks of the picture."""
    hidden, size, learned = settings.hidden, settings.latent_size, settings.learned_start
    channels, height, width = image.decoder_channels, *image.shape[1:]
    sides = (height, width)

    def attention(patch: int) -> PictureAttention | None:
        return PictureAttention(hidden, patch, sides) if patch else None

    def area(patch: int) -> int:
        return patch**2 if patch else height * width

    reads = 2 * image.shape[0] * area(settings.read_patch)
    encoder = DrawEncoder(
        image,
        LstmCell(reads + hidden, hidden, learned),
        GaussianHead(nn.Linear(hidden, 2 * size)),
        attention(settings.read_patch),
    )
    captions = None
    if text is not None:
        reader = CaptionReader(len(text.vocabulary), settings.reader, settings.word_embedding, learned)
        alignment = WordAttention(reader.features, hidden, settings.alignment) if settings.alignment else None
        captions = CaptionNetwork(text, reader, alignment)
    generator = DrawGenerator(
        (channels, height, width),
        LstmCell(size + (captions.reader.features if captions else 0), hidden, learned),
        nn.Linear(hidden, channels * area(settings.write_patch)),
        attention(settings.write_patch),
        nn.Linear(hidden, 2 * size) if settings.prior == "state" and settings.steps > 1 else None,
        settings.first_canvas,
        learned,
    )
    return DrawNetwork(settings.steps, size, encoder, generator, captions)


@dataclass(frozen=True)
class _Path:
    """Density of z of all steps, in which the Gaussian of each step depends on the steps before it.

    Attributes:
        model: The model.
        pictures: Pictures [B, C, H, W] that z is inferred from; None for p(z).
        caption: Their captions; None for a model without.
        size: B, where there are no pictures.
    """

    model: Draw
    pictures: Tensor | None
    caption: Caption | None
    size: int = 0

    @property
    def _rows(self) -> int:
        return self.size if self.pictures is None else len(self.pictures)

    def walk(
        self, shape: Sequence[int] = (), z: Tensor | None = None, choose: Choose = lambda _, q: q.sample()
    ) -> Iterator[Step]:
        """Yield the steps of rows [*shape, B], flattened: those of z [*shape, B, D], or chosen ones."""
        network = self.model.network
        parts = () if z is None else z.reshape(-1, z.shape[-1]).split(network.size, -1)
        pictures = None if self.pictures is None else self.pictures.expand(*shape, *self.pictures.shape)
        return network(
            (lambda step, _: parts[step]) if parts else choose,
            math.prod(shape) * self._rows,
            None if pictures is None else pictures.flatten(0, len(shape)),
            None if self.caption is None else self.caption.expand(*shape),
        )

    def gaussians(self, generator: torch.Generator | None = None) -> list[tuple[Tensor, DiagonalGaussian]]:
        """Return a draw [B, D] of each step, and the Gaussian that it is from."""
        steps = self.walk(choose=lambda _, q: q.sample(generator))
        return [(step.noise, step.posterior) for step in steps if step.posterior is not None]

    def sample(self, generator: torch.Generator | None = None, shape: tuple[int, ...] = ()) -> Tensor:
        """Draw z of all steps, reparameterised, [*shape, B, D]."""
        drawn = torch.cat([step.noise for step in self.walk(shape, choose=lambda _, q: q.sample(generator))], -1)
        return drawn.reshape(*shape, self._rows, -1)

    def log_prob(self, z: Tensor) -> Tensor:
        """Return the log density of z [..., B, D] over all steps, in nats [..., B]."""
        steps = self.walk(z.shape[:-2], z=z)
        terms = [step.posterior.log_prob(step.noise) for step in steps if step.posterior is not None]
        return torch.stack(terms).sum(0).reshape(z.shape[:-1])


def require_draw(model: Model) -> Draw:
    """Return a model that draws in steps, or raise a UsageError for another one."""
    if not isinstance(model, Draw):
        raise UsageError(f"{type(model).__name__} draws pictures at once, expected steps; use a model of kind draw")
    return model
