"""Stand-ins for a loaded model whose every score is known.

``Painter`` draws pictures that spell out their attributes, so that correctness and coverage are known; ``Gaussian`` has
closed forms for every likelihood.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.descriptions import batch_of_queries
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.models import USUAL_NEEDS
from mmgen.models._settings import DataSettings
from mmgen.objectives.elbo import Elbo
from mmgen.posteriors import Guidance
from tests.posteriors.stand_in import draws_and_densities, stand_ins
from tests.small_data import write_small

IMAGE = ImageDescription(shape=(1, 1, 2), layout="bytes")
SIDE = AttributesDescription(names=("side",), values=(("left", "right"),))
INFO = AttributesDescription(name="attributes", names=("digit", "size"), values=(("0", "1", "2"), ("big", "small")))
CPU = torch.device("cpu")


def write_dataset(path: Path, number: int = 120) -> Path:
    """Pictures [1, 1, 2] whose two grey levels are 60 times the codes; combination (2, small) only in the test part
    of the split "compositional"."""
    codes = np.stack([np.arange(number) % 3, np.arange(number) // 3 % 2], 1).astype(np.uint8)
    held_out = (codes == [2, 1]).all(1)
    rest, parts = np.flatnonzero(~held_out), np.split(np.arange(number), [number // 3, 2 * (number // 3)])
    splits = {"iid": tuple(parts), "compositional": (rest[:-10], rest[-10:], np.flatnonzero(held_out))}
    return write_small(path, {"image": (60 * codes)[:, None, None], "attributes": codes}, INFO, parts=splits)


def stand_in_model(**fields: Any) -> Any:
    """What metrics ask of a loaded model, as ``fields`` say; all else is that of a plain one."""
    known = {"content_id": "m", "parents": (), "members": (), "seed": 0, "settings": {}}
    usual = {
        "path": Path("m"), "model_path": Path("m"), "header": SimpleNamespace(kind="model", **known),
        "model_header": SimpleNamespace(**known), "settings": SimpleNamespace(data=SimpleNamespace(split="iid")),
        "observed": {"image": None}, "attributes": None, "text": None, "images": {}, "guidance": Guidance(),
        "completes": True, "sharpener": None, "notices": [], "description_kind": None, "device": CPU, "fitted": None,
        "encoder": None, "encoder_inputs": ("image",),
    }  # fmt: skip
    return SimpleNamespace(**usual | fields)


class Judge:
    """Reads the attributes off a picture without a mistake."""

    names, values, accuracy, content_id = INFO.names, INFO.values, {"digit": 100.0, "size": 100.0, "mean": 100.0}, "j"
    hints: tuple[str, ...] = ()
    network_name, described = "reader", IMAGE
    device = CPU

    def predict(self, images: Tensor, hints: Tensor | None = None, precision: str = "auto") -> Tensor:
        return (images.flatten(1) * 255 / 60).round().to(torch.uint8)

    def confidence(self, images: Tensor, hints: Tensor | None = None, precision: str = "auto") -> Tensor:
        return torch.ones(len(images), len(self.names))

    def features(self, images: Tensor, hints: Tensor | None = None) -> Tensor:
        return images.flatten(1)


class Plain:
    """A modality whose decoder gives its values themselves."""

    is_independent = True

    def mean(self, parameters: Tensor) -> Tensor:
        return parameters

    typical = mean

    def sample(self, parameters: Tensor, generator: Any = None) -> Tensor:
        return parameters


class Painter:
    """z is the picture's attributes themselves, [digit, size]."""

    latent_size, conditional_on = 2, ()
    latent, discrete_layers, capabilities = LatentSpace.flat(2), (), USUAL_NEEDS
    modalities: ClassVar = {"image": Plain(), "attributes": Plain()}
    generates = ("image", "attributes")
    inference = torch.nn.Linear(3, 2)

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        return self.inference.parameters()

    def inference_parameters(self) -> list[torch.nn.Parameter]:
        return list(self.inference.parameters())

    def has_posterior(self, inputs: tuple[str, ...]) -> bool:
        return True

    def label_log_probabilities(self, name: str, batch: Batch, given: tuple[str, ...]) -> None:
        """q(y | x) is an average over z here."""

    def posterior(self, batch: Batch, given: tuple[str, ...]) -> DiagonalGaussian:
        mean = batch.values["attributes"].float()
        return DiagonalGaussian(mean, torch.full_like(mean, -2.0))

    def encode(self, batch: Batch, given: tuple[str, ...], generator: object = None) -> DiagonalGaussian:
        return self.posterior(batch, given)

    def means(self, batch: Batch, given: tuple[str, ...], generator: torch.Generator | None = None) -> Tensor:
        return self.posterior(batch, given).mean

    def mean(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        if name == "attributes":
            return torch.nn.functional.one_hot(z.round().long().clamp(0, 2), 3).float()
        return (z.round() * 60 / 255)[..., None, None, :]

    def decode(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        return self.mean(name, z, condition)

    def sample(self, name: str, z: Tensor, generator: Any = None, condition: Batch | None = None) -> Tensor:
        return z.round().long() if name == "attributes" else self.mean(name, z)

    def log_prior(self, z: Tensor) -> Tensor:
        return DiagonalGaussian.standard(2, like=z).log_prob(z)

    def log_likelihood(self, name: str, z: Tensor, batch: Batch) -> Tensor:
        return -(z - batch.values["attributes"]).square().sum(-1)


def loaded_painter(path: Path, dataset_id: str = "d", split: str = "iid") -> Any:
    """A loaded ``Painter``: "own" always draws what was asked and leaves open attributes at random, "prior" ignores
    the text."""

    def of_prior(condition: Batch, n: int, generator: Any) -> Tensor:
        shape = (n, condition.size)
        return torch.stack([torch.randint(0, v, shape, generator=generator) for v in INFO.sizes], -1).float()

    def of_text(condition: Batch, n: int, generator: Any) -> Tensor:
        asked = condition.values["attributes"].float()
        return torch.where(condition.present["attributes"], asked, of_prior(condition, n, generator))

    samplers = {"prior": of_prior, "own": of_text}
    posteriors = stand_ins(samplers, samplers.__getitem__, lambda _: lambda z, _: Painter().log_prior(z))
    known = {"content_id": "m", "members": (), "seed": 0, "settings": {}}
    return stand_in_model(
        path=path,
        model_path=path,
        model_header=SimpleNamespace(
            **known, parents=(SimpleNamespace(role="dataset", kind="dataset", content_id=dataset_id),)
        ),
        model=Painter(),
        settings=SimpleNamespace(
            objective={"name": "toy"},
            build_objective=Elbo,
            data=SimpleNamespace(split=split, paired=1.0, least_paired_share=None, labelled=None, modalities={}),
        ),
        observation=IMAGE,
        observed={"image": IMAGE},
        attributes=INFO,
        description_kind="attributes",
        describe_codes=lambda codes: batch_of_queries(codes),
        posteriors=posteriors,
        encoder=posteriors["own"],
        reads=lambda posterior: () if posterior == "prior" else ("attributes",),
    )


class PlaneOfGaussians:
    """What stand-ins with z of two dimensions share: p(z) = N(0, I), and encodings that are Gaussian."""

    def posterior(self, batch: Batch, given: tuple[str, ...]) -> DiagonalGaussian:
        raise NotImplementedError  # each stand-in has its own, which encode() goes through

    def encode(self, batch: Batch, given: tuple[str, ...], generator: object = None) -> DiagonalGaussian:
        return self.posterior(batch, given)

    def means(self, batch: Batch, given: tuple[str, ...], generator: torch.Generator | None = None) -> Tensor:
        return self.posterior(batch, given).mean

    def log_prior(self, z: Tensor) -> Tensor:
        return DiagonalGaussian.standard(2, like=z).log_prob(z)


class Gaussian(PlaneOfGaussians):
    r"""p(z) = N(0, I) in two dimensions, x = W z + noise, p(y = 1 | z) = Phi(a z): all likelihoods have closed forms.

    y is an attribute, or a sentence of one word.

    p(y) = 1/2; given x, z is Gaussian with mean m and covariance C, so p(y = 1 | x) = Phi(a m / sqrt(1 + a C a)).
    """

    latent_size, conditional_on = 2, ()
    latent, capabilities = LatentSpace.flat(2), USUAL_NEEDS
    noise = 0.5
    weights = torch.tensor([[1.0, 0.0], [1.0, 0.5], [0.0, -1.0]], dtype=torch.float64)
    slope = torch.tensor([1.5, -0.5], dtype=torch.float64)

    def __init__(self, widening: float = 1.0, shift: float = 0.0, words: str = "attributes") -> None:
        self.widening, self.shift, self.words = widening, shift, words
        self.modalities = ("image", words)

    def has_posterior(self, inputs: tuple[str, ...]) -> bool:
        return inputs == ("image",)

    @property
    def covariance(self) -> Tensor:
        """C of p(z | x)."""
        return torch.linalg.inv(torch.eye(2).double() + self.weights.T @ self.weights / self.noise**2)

    def posterior_mean(self, x: Tensor) -> Tensor:
        # Autocast leaves fp64 alone but not fp32; this model is exact whatever arithmetic networks run in.
        return x.double().flatten(1) @ self.weights @ self.covariance / self.noise**2

    def posterior(self, batch: Batch, given: tuple[str, ...]) -> DiagonalGaussian:
        """Mean-field fit of p(z | x), made wider and moved aside to be wrong on purpose."""
        mean = self.posterior_mean(batch.values["image"]) + self.shift
        sd = torch.linalg.inv(self.covariance).diagonal().rsqrt() * self.widening
        return DiagonalGaussian(mean, sd.log().expand_as(mean))

    def log_likelihood(self, name: str, z: Tensor, batch: Batch) -> Tensor:
        if name == "image":
            residual = (batch.values["image"].double().flatten(1) - z @ self.weights.T) / self.noise
            return (-0.5 * residual.square() - math.log(self.noise) - 0.5 * math.log(2 * math.pi)).sum(-1)
        sign = 2.0 * batch.values[name][:, 0] - 1
        return torch.special.log_ndtr(sign * (z @ self.slope)) * batch.present[name].reshape(batch.size)

    def log_image(self, x: Tensor, mean: Tensor | None = None, covariance: Tensor | None = None) -> Tensor:
        """log N(x; W mean, W covariance W' + noise^2 I), the image under a Gaussian z; p(z) by default."""
        covariance = torch.eye(2).double() if covariance is None else covariance
        centre = torch.zeros(2).double() if mean is None else mean
        spread = self.weights @ covariance @ self.weights.T + self.noise**2 * torch.eye(3)
        return torch.distributions.MultivariateNormal(centre @ self.weights.T, spread).log_prob(x.flatten(1))

    def log_text_given_image(self, x: Tensor, y: Tensor) -> Tensor:
        a = self.slope
        return torch.special.log_ndtr(
            (2.0 * y - 1) * (self.posterior_mean(x) @ a) / (1 + a @ self.covariance @ a).sqrt()
        )

    def log_text(self, y: Tensor, mean: Tensor, covariance: Tensor) -> Tensor:
        """log p(y) under z ~ N(mean, covariance)."""
        a = self.slope
        return torch.special.log_ndtr((2.0 * y - 1) * (a @ mean) / (1 + a @ covariance @ a).sqrt())


TEXT_SD = 0.8
LEARNED = torch.tensor([0.4, -0.7], dtype=torch.float64), torch.tensor([0.6, 1.3], dtype=torch.float64)
"""Mean and standard deviations of a learned q(z)."""


def text_posterior(batch: Batch) -> DiagonalGaussian:
    """q(z | y) of the Gaussian toy."""
    sign = 2.0 * batch.values["attributes"][:, :1] - 1
    mean = sign * torch.tensor([[0.9, -0.3]], dtype=torch.float64)
    return DiagonalGaussian(mean, torch.full_like(mean, math.log(TEXT_SD)))


def loaded_gaussian(model: Gaussian, own_text: bool = True) -> Any:
    """A loaded ``Gaussian``, with or without a q(z | y) of its own."""

    def standard(batch: Batch) -> DiagonalGaussian:
        return DiagonalGaussian.standard(batch.size, 2, like=torch.zeros(1, dtype=torch.float64))

    def learned(batch: Batch) -> DiagonalGaussian:
        return DiagonalGaussian(*(part.expand(batch.size, 2) for part in (LEARNED[0], LEARNED[1].log())))

    of = {"prior": standard, "own": text_posterior, "aggregate": learned}
    posteriors = stand_ins(of, *draws_and_densities(of.__getitem__), "aggregate", ())
    return stand_in_model(
        model=model,
        observation=SimpleNamespace(
            name="image", event_shape=(1, 1, 3), layout="bytes", classifier_reads_samples=False
        ),
        settings=SimpleNamespace(
            data=DataSettings.from_descriptions(ImageDescription(shape=(1, 1, 3), layout="bytes"), SIDE)
        ),
        attributes=SIDE,
        text=SimpleNamespace(name="text") if model.words == "text" else None,
        posteriors=posteriors,
        encoder=posteriors["own"] if own_text else None,
    )


def gaussian_points(count: int, seed: int = 0) -> Batch:
    """Draws of x and y from the Gaussian toy, float64."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(count, 2, generator=generator, dtype=torch.float64)
    x = z @ Gaussian.weights.T + Gaussian.noise * torch.randn(count, 3, generator=generator, dtype=torch.float64)
    y = torch.rand(count, generator=generator).double() < torch.special.ndtr(z @ Gaussian.slope)
    everything = torch.ones(count, dtype=torch.bool)
    return Batch(
        {"image": x[:, None, None], "attributes": y.long()[:, None], "text": y.long()[:, None]},
        {"image": everything, "attributes": everything[:, None], "text": everything},
    )
