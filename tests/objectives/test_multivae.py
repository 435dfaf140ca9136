"""Objectives of several modalities beside MultiVae 1.0.3 (Apache-2.0) on the same tensors: losses and gradients.

Where multivae is installed it is run; its numbers are stored for all other places. What it does otherwise than its
papers say is in the comments: DReG prints another number than the bound, MoPoE gives subsets to rows by their place.
"""

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor, nn

import mmgen.objectives
from mmgen.core.batch import Batch
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.models import GaussianModel

NAMES, ROWS, SIZES, WIDTH = ("a", "b"), 7, {"a": 5, "b": 3}, 4
OWN = 2  # dimensions of z that are a modality's own, for MMVAE+


def drawn(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def noise(*shape: int) -> Tensor:
    """Return noise that follows from the shape, so that both sides have the same."""
    return torch.cos(2.7 * torch.arange(math.prod(shape), dtype=torch.float64) ** 1.3).reshape(shape)


@pytest.fixture
def parameters() -> dict[str, Tensor]:
    """Means and log sds of experts by modality, and matrices of decoders, all to be trained."""
    made = {}
    for number, name in enumerate(NAMES):
        made[f"mean {name}"] = drawn(ROWS, WIDTH + OWN, seed=number)
        made[f"log_sd {name}"] = 0.3 * drawn(ROWS, WIDTH + OWN, seed=10 + number) - 0.5
        made[f"decoder {name}"] = 0.5 * drawn(SIZES[name], WIDTH + OWN, seed=20 + number)
    return {name: tensor.requires_grad_() for name, tensor in made.items()}


DATA = {name: drawn(ROWS, SIZES[name], seed=30 + number) for number, name in enumerate(NAMES)}


class Tensors(GaussianModel):
    """Model whose experts and decoders are given tensors; z is shared alone, or has a private layer a modality."""

    def __init__(self, parameters: dict[str, Tensor], private: bool = False, prior: str = "") -> None:
        super().__init__()
        self.given, self.prior_in_all, self.prior_in_each = parameters, prior != "", prior == "each"
        shared = LatentSpace.flat(WIDTH)
        self.latent = shared.with_private(dict.fromkeys(NAMES, OWN)) if private else shared
        self.modalities = {name: SimpleNamespace(name=name) for name in NAMES}
        self.joint: DiagonalGaussian | None = None

    @classmethod
    def build(cls, settings: Any, demands: Any, data: Any) -> "Tensors":
        raise NotImplementedError

    def expert(self, name: str) -> DiagonalGaussian:
        mean, log_sd = self.given[f"mean {name}"], self.given[f"log_sd {name}"]
        if not self.latent.owners:
            return DiagonalGaussian(mean[:, :WIDTH], log_sd[:, :WIDTH])
        parts = [(mean[:, :WIDTH], log_sd[:, :WIDTH])]
        for owner in NAMES:
            own = (mean[:, WIDTH:], log_sd[:, WIDTH:])
            parts.append(own if owner == name else (torch.zeros_like(own[0]), torch.zeros_like(own[1])))
        return DiagonalGaussian(torch.cat([part[0] for part in parts], -1), torch.cat([part[1] for part in parts], -1))

    def subset_posteriors(self, batch: Batch, units: Any, membership: Any) -> DiagonalGaussian:
        found = []
        for row in membership:
            experts = [self.expert(unit[0]) for unit, held in zip(units, row, strict=True) if held]
            if len(experts) == 1 and not self.prior_in_each:
                found.append(experts[0])
                continue
            precision = torch.stack([one.precision for one in experts]).sum(0) + float(self.prior_in_all)
            mean = torch.stack([one.precision * one.mean for one in experts]).sum(0) / precision
            found.append(DiagonalGaussian(mean, -0.5 * precision.log()))
        return DiagonalGaussian(torch.stack([one.mean for one in found]), torch.stack([one.log_sd for one in found]))

    def log_likelihood(self, name: str, z: Tensor, batch: Batch) -> Tensor:
        seen = self.latent.seen_by(name, z)
        mean = seen @ self.given[f"decoder {name}"][:, : seen.shape[-1]].T
        return torch.distributions.Normal(mean, 1.0).log_prob(DATA[name]).sum(-1)

    def has_posterior(self, inputs: Any) -> bool: ...
    def posterior(self, batch: Batch, inputs: Any) -> DiagonalGaussian:
        if len(inputs) == 1:
            return self.expert(inputs[0])
        assert self.joint is not None
        return self.joint

    def decode(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor: ...
    def inference_parameters(self) -> list[nn.Parameter]: ...


BATCH = Batch(DATA, {name: torch.ones(ROWS, dtype=torch.bool) for name in NAMES})


@pytest.fixture
def same_noise() -> Iterator[None]:
    """Draw the noise of both libraries from :func:`noise`: ours for all modalities at once, theirs one by one."""

    def sample(self: DiagonalGaussian, generator: object = None, shape: tuple[int, ...] = ()) -> Tensor:
        sizes = [WIDTH, OWN, OWN] if self.mean.shape[-1] > WIDTH else [WIDTH]
        drawn = torch.cat([noise(*shape, ROWS, size) for size in sizes], -1)
        return self.mean + self.sd * (drawn.unsqueeze(-3) if self.mean.dim() == 3 else drawn)

    with mock.patch.object(DiagonalGaussian, "sample", sample):
        yield


STORED = {
    "mvtcae .1": (17.4405645127, 4.1130315400),
    "mvtcae .9": (18.8161649821, 5.9003186947),
    "mopoe": (22.3959666167, 5.8280206960),
    "mmvae 1": (18.8597574518, 4.1597862616),
    "mmvae 5": (17.3824173602, 3.1041445975),
    "mmvae 5 dreg": (16.5815625292, 2.9059366200),
    "mmvae-plus 1": (31.6178947103, 6.7810249325),
    "mmvae-plus 5": (21.0179746942, 4.0482034048),
    "mmvae-plus 5 dreg": (19.8794148929, 3.9092631033),
    "crmvae": (11.3269005904, 2.9707368336),
    "jmvae": (20.1323422713, 5.5949820583),
    "mvae": (42.2555479411, 7.7112436701),
}
"""MultiVae's loss, a mean over examples, and the length of its gradient with respect to all tensors."""

CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "mvtcae .1": ("mvtcae", {"alpha": 0.1}, {"alpha": 0.1, "beta": 1.0}),
    "mvtcae .9": ("mvtcae", {"alpha": 0.9, "beta": 2.5}, {"alpha": 0.9, "beta": 2.5}),
    "mopoe": ("mopoe", {"beta": 2.0}, {"beta": 2.0}),
    "mmvae 1": ("mmvae", {}, {"K": 1, "loss": "iwae_looser"}),
    "mmvae 5": ("mmvae", {"draws": 5}, {"K": 5, "loss": "iwae_looser"}),
    "mmvae 5 dreg": ("mmvae", {"draws": 5, "gradient": "dreg"}, {"K": 5, "loss": "dreg_looser"}),
    "mmvae-plus 1": ("mmvae-plus", {"beta": 2.5}, {"K": 1, "loss": "iwae_looser", "beta": 2.5}),
    "mmvae-plus 5": ("mmvae-plus", {"draws": 5}, {"K": 5, "loss": "iwae_looser"}),
    "mmvae-plus 5 dreg": ("mmvae-plus", {"draws": 5, "gradient": "dreg"}, {"K": 5, "loss": "dreg_looser"}),
    "crmvae": ("crmvae", {"beta": 1.5}, {"beta": 1.5}),
    "jmvae": ("jmvae", {"alpha": 0.3, "beta": 1.0}, {"alpha": 0.3, "beta": 1.0, "warmup": 0}),
    "mvae": ("mvae", {"beta": 1.5}, {"beta": 1.5, "warmup": 0, "use_subsampling": True, "k": 0}),
}


def ours(case: str, parameters: dict[str, Tensor]) -> tuple[float, float]:
    name, settings, _ = CASES[case]
    if name == "jmvae":
        settings = {**settings, "observation": "a", "description": "b", "attributes_weight": 1.0}
    else:
        settings = {**settings, "modalities": NAMES} | (
            {"weights": dict.fromkeys(NAMES, 1.0)} if name == "mvae" else {}
        )
    model = Tensors(parameters, private=name == "mmvae-plus", prior={"mopoe": "all", "mvae": "each"}.get(name, ""))
    if name == "jmvae":
        model.joint = DiagonalGaussian(*(parameters[f"{part} a"][:, :WIDTH] * 0.5 for part in ("mean", "log_sd")))
    # Its subsets in order of rows, floor(7 / 3) each and the rest to the last.
    places = torch.tensor([0, 0, 1, 1, 2, 2, 2])[:, None]
    with mock.patch("torch.multinomial", return_value=places):
        loss = -mmgen.objectives.get(name)(**settings)(model, BATCH).value.mean()
    return measure(loss, parameters)


def measure(loss: Tensor, parameters: dict[str, Tensor]) -> tuple[float, float]:
    gradients = torch.autograd.grad(loss, [*parameters.values()], allow_unused=True)
    return float(loss.detach()), math.sqrt(sum(float(each.square().sum()) for each in gradients if each is not None))


def theirs(case: str, parameters: dict[str, Tensor]) -> tuple[float, float]:
    """Run MultiVae itself."""
    pytest.importorskip("multivae", reason="multivae is not installed")
    from multivae import models
    from multivae.data.datasets.base import MultimodalBaseDataset
    from multivae.models.base import ModelOutput
    from multivae.models.nn.base_architectures import BaseJointEncoder
    from pythae.models.nn import BaseDecoder, BaseEncoder

    name, _, settings = CASES[case]
    private = name == "mmvae-plus"

    class Encoder(BaseEncoder):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.latent_dim, self.name, self.style_dim = WIDTH, name, OWN

        def forward(self, x: Tensor) -> Any:
            mean, log_var = parameters[f"mean {self.name}"], 2 * parameters[f"log_sd {self.name}"]
            shared = {"embedding": mean[:, :WIDTH], "log_covariance": log_var[:, :WIDTH]}
            own = {"style_embedding": mean[:, WIDTH:], "style_log_covariance": log_var[:, WIDTH:]}
            return ModelOutput(**shared, **(own if private else {}))

    class Joint(BaseJointEncoder):
        def __init__(self) -> None:
            super().__init__()
            self.latent_dim = WIDTH

        def forward(self, x: Any) -> Any:
            return ModelOutput(
                embedding=parameters["mean a"][:, :WIDTH] * 0.5, log_covariance=parameters["log_sd a"][:, :WIDTH]
            )

    class Decoder(BaseDecoder):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name, self.latent_dim = name, WIDTH + OWN * private

        def forward(self, z: Tensor) -> Any:
            return ModelOutput(reconstruction=z @ parameters[f"decoder {self.name}"][:, : z.shape[-1]].T)

    kind = {"mmvae-plus": "MMVAEPlus", "mopoe": "MoPoE"}.get(name, name.upper())
    config = getattr(models, f"{kind}Config")(
        n_modalities=2,
        latent_dim=WIDTH,
        input_dims={each: (SIZES[each],) for each in NAMES},
        decoders_dist=dict.fromkeys(NAMES, "normal"),
        **({"prior_and_posterior_dist": "normal"} if name.startswith("mmvae") else {}),
        **({"modalities_specific_dim": OWN} if private else {}),
        **settings,
    )
    networks = {each: Encoder(each) for each in NAMES}, {each: Decoder(each) for each in NAMES}
    model = getattr(models, kind)(config, *networks, **({"joint_encoder": Joint()} if name == "jmvae" else {}))
    with mock.patch("torch.distributions.normal._standard_normal", lambda shape, *_, **__: noise(*shape)):
        loss = model(MultimodalBaseDataset(DATA), epoch=2, batch_ratio=0).loss
    return measure(loss / (ROWS if name in ("mmvae", "mmvae-plus", "crmvae") else 1), parameters)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("same_noise")
def test_the_loss_and_gradients_are_those_of_multivae(case: str, parameters: dict[str, Tensor]) -> None:
    loss, gradient = ours(case, parameters)
    assert gradient == pytest.approx(STORED[case][1], rel=1e-6)
    if case.endswith("dreg"):  # its loss is then no bound: the sum of w log w, not the log of the mean of w
        assert loss == pytest.approx(STORED[case.removesuffix(" dreg")][0], rel=1e-6)
    else:
        assert loss == pytest.approx(STORED[case][0], rel=1e-6)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("same_noise")
def test_the_stored_numbers_are_those_of_multivae(case: str, parameters: dict[str, Tensor]) -> None:
    assert theirs(case, parameters) == pytest.approx(STORED[case], rel=1e-6)
