"""What every model promises."""

import math

import torch

import mmgen.models
from mmgen.batch import Batch
from mmgen.errors import SettingsError
from mmgen.models._base import Demands, Model
from mmgen.models._build import build_model
from mmgen.objectives.elbo import Elbo
from mmgen.objectives.iwae import Iwae
from mmgen.testing.small import SMALL_DATA, small_batch
from mmgen.training.model_run import read_experiment

__all__ = ["check_divergences", "check_model", "check_prior", "check_trace", "check_trains", "small_model"]

_IMAGE = ("image",)


def check_model(name: str) -> None:
    """Its traces, its prior and its divergences agree with its densities, and what needs a trace trains all of it."""
    check_trace(name)
    check_prior(name)
    check_divergences(name)
    check_trains(name)


def small_model(name: str, generates: tuple[str, ...] = ("image", "attributes")) -> Model:
    """The member with the settings that suit :data:`SMALL_DATA`; images alone where it generates no more."""
    values = {"model": {"name": name}, "data": SMALL_DATA.model_dump(mode="json")}
    settings, member = read_experiment(values).model, mmgen.models.get(name)
    torch.manual_seed(0)
    try:
        demands = Demands(frozenset([_IMAGE]), generates, inference="image-only")
        return build_model(member.complete(settings, demands, SMALL_DATA), demands, SMALL_DATA)
    except SettingsError:
        if generates == _IMAGE:
            raise
        return small_model(name, _IMAGE)


def _case(name: str) -> tuple[Model, Batch]:
    """The member and a batch in double precision."""
    batch = small_batch()
    values = {key: value.double() if value.is_floating_point() else value for key, value in batch.values.items()}
    return small_model(name).double().eval(), Batch(values, batch.present)


def check_trace(name: str) -> None:
    """Log ratios are log p(z) - log q(z | x) of the same draws; likelihoods are those of the model."""
    model, batch = _case(name)
    trace = model.trace(batch, _IMAGE, samples=7)
    assert trace.z.shape == (7, batch.size, model.latent_size)
    ratio = torch.stack(list(trace.log_ratio.values())).sum(0)
    q, p = model.posterior(batch, _IMAGE), model.posterior(batch, ())
    torch.testing.assert_close(ratio, model.log_prior(trace.z) - q.log_prob(trace.z))
    torch.testing.assert_close(p.log_prob(trace.z), model.log_prior(trace.z))
    assert trace.log_likelihood.keys() == {*model.generates}
    for modality in model.generates:
        likely = model.log_likelihood(modality, trace.z, batch)
        torch.testing.assert_close(trace.log_likelihood[modality], likely, rtol=1e-9, atol=1e-9)
    assert trace.divergence.keys() == trace.log_ratio.keys() == model.latent.layers.keys()
    alone = model.trace(batch, _IMAGE, names=_IMAGE)
    assert alone.z.shape == (batch.size, model.latent_size)
    assert alone.log_likelihood.keys() == {"image"}
    assert alone.cost.shape == (batch.size,)


def check_prior(name: str) -> None:
    """Draws of the prior follow its density, by Stein's identity for f(z) = z and f(z) = 1.

    E_p[d log p / dz] = 0 and E_p[z . d log p / dz] = -D; neither knows the constant of normalisation.
    """
    model, batch = _case(name)
    z = model.posterior(batch, ()).sample(torch.Generator().manual_seed(0), (2_000,)).detach().requires_grad_()
    (score,) = torch.autograd.grad(model.log_prior(z).sum(), z)
    score, points = score.flatten(0, 1), z.detach().flatten(0, 1)
    for found, expected in ((score, 0.0), ((points * score).sum(-1, keepdim=True), -model.latent_size)):
        error = found.std(0) / math.sqrt(len(found))
        assert ((found.mean(0) - expected).abs() < 5 * error).all(), f"{name} draws other z than log_prior says"


@torch.no_grad()
def check_divergences(name: str) -> None:
    """E_q[log q - log p] over many draws is what each layer costs, whichever part of it is in closed form."""
    model, batch = _case(name)
    torch.manual_seed(1)
    trace = model.trace(batch, _IMAGE, samples=4_000, names=())
    for layer, ratio in trace.log_ratio.items():
        error, cost = ratio.std(0) / math.sqrt(len(ratio)), trace.divergence[layer]
        found = cost if cost.dim() == 1 else cost.mean(0)
        assert ((found + ratio.mean(0)).abs() < 5 * error + 1e-9).all(), f"what {layer} of {name} costs is off"


def check_trains(name: str) -> None:
    """ELBO and IWAE, with one draw and several, give every parameter a gradient."""
    for member in (Elbo, Iwae):
        for samples in (1, 3):
            model = small_model(name)
            bound = member(modalities=model.generates, samples=samples)(model, small_batch())
            assert bound.value.shape == (5,)
            assert all(term.shape == (5,) for term in bound.terms.values())
            bound.value.mean().backward()
            lost = [key for key, parameter in model.named_parameters() if parameter.grad is None]
            assert lost == [], f"{name} has parameters that nothing trains: {lost}"
