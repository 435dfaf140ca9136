"""Checks of models."""

import math
from dataclasses import replace

import torch
from torch import Tensor

import mmgen.models
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.models import Demands, Model, build_model, check_capabilities
from mmgen.objectives.elbo import Elbo
from mmgen.objectives.iwae import Iwae
from mmgen.testing.small import Case, refuses, small_cases
from mmgen.training.model_run import read_experiment

__all__ = [
    "check_divergences",
    "check_model",
    "check_prior",
    "check_trace",
    "check_training",
    "small_model",
]


def check_model(name: str) -> None:
    """Check that traces, prior and divergences of a model agree with its densities, and that all parameters are
    trained; and that pictures of a model in training can be drawn.
    """
    check_trace(name)
    check_prior(name)
    check_divergences(name)
    check_training(name)


def small_model(name: str) -> tuple[Model, Case]:
    """Build a model of this kind for the first small case that suits it; return model and case.

    It generates what the case has, or no more than the first modality where it can do no more.

    Raises:
        SettingsError: It suits none of the small cases.
    """
    member, refusals = mmgen.models.get(name), []
    for case in small_cases():
        kinds = [(case.generates, ()), (case.generates[:1], ()), (case.generates, case.generates[1:])]
        for generates, summed in dict.fromkeys(kinds):
            values = {"model": {**member.settings.example, "name": name}, "data": case.data.model_dump(mode="json")}
            demands = Demands(
                frozenset([case.inputs]), generates, inference="image-only", marginalises=summed, needs=frozenset()
            )
            torch.manual_seed(0)
            try:
                settings = member.complete_settings(read_experiment(values).model, demands, case.data)
                return build_model(settings, demands, case.data), replace(case, generates=generates)
            except SettingsError as refusal:
                refusals.append(str(refusal))
    raise SettingsError(f"{name} suits no small data: {'; '.join(refusals)}")


def _make_case(name: str) -> tuple[Model, Batch, Case]:
    """Return a model of this kind, a batch in double precision, and the case of data and settings."""
    model, case = small_model(name)
    batch = case.batch()

    def to_double(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return {key: value.double() if value.is_floating_point() else value for key, value in tensors.items()}

    return model.double().eval(), Batch(to_double(batch.values), batch.present, to_double(batch.shared)), case


def check_trace(name: str) -> None:
    """Check that log ratios are log p(z) - log q(z | x) of the draws, and likelihoods those of the model."""
    model, batch, case = _make_case(name)
    trace = model.trace(batch, case.inputs, samples=7)
    assert trace.z.shape == (7, batch.size, model.latent_size)
    ratio = torch.stack(list(trace.log_ratio.values())).sum(0)
    q, p = model.posterior(batch, case.inputs), model.posterior(batch, ())
    torch.testing.assert_close(ratio, model.log_prior(trace.z) - q.log_prob(trace.z))
    torch.testing.assert_close(p.log_prob(trace.z), model.log_prior(trace.z))
    assert trace.log_likelihood.keys() == {*model.generates}
    for modality in model.generates:
        likely = model.log_likelihood(modality, trace.z, batch)
        torch.testing.assert_close(trace.log_likelihood[modality], likely, rtol=1e-9, atol=1e-9)
    assert trace.divergence.keys() == trace.log_ratio.keys() == model.latent.layers.keys()
    first = case.generates[:1]
    alone = model.trace(batch, case.inputs, names=first)
    assert alone.z.shape == (batch.size, model.latent_size)
    assert alone.log_likelihood.keys() == {*first}
    assert alone.total_divergence.shape == (batch.size,)


def check_prior(name: str) -> None:
    """Check that draws of the prior follow its density, by Stein's identity for f(z) = z and f(z) = 1.

    E_p[d log p / dz] = 0 and E_p[z . d log p / dz] = -D; neither knows the constant of normalisation. Layers of
    modalities that are part of z are discrete: what is asked of them is that each draw's probability is as it is drawn.
    """
    model, batch, _ = _make_case(name)
    z = model.posterior(batch, ()).sample(torch.Generator().manual_seed(0), (2_000,)).detach().requires_grad_()
    (score,) = torch.autograd.grad(model.log_prior(z).sum(), z)
    score, points = score.flatten(0, 1), z.detach().flatten(0, 1)
    discrete = sum(size for layer, size in model.latent.layers.items() if layer in model.discrete_layers)
    if discrete:
        _check_discrete(model, points, discrete)
    score, points = score[:, discrete:], points[:, discrete:]
    expected_norm = discrete - model.latent_size
    for found, expected in ((score, 0.0), ((points * score).sum(-1, keepdim=True), expected_norm)):
        error = found.std(0) / math.sqrt(len(found))
        assert ((found.mean(0) - expected).abs() < 5 * error).all(), f"{name} draws other z than log_prior says"


@torch.no_grad()
def _check_discrete(model: Model, points: Tensor, discrete: int) -> None:
    """Check that discrete values, the first ``discrete`` entries of z, are drawn by their probabilities."""
    log_p = model.log_prob_lower_layers(points)
    values, which, counts = points[:, :discrete].unique(dim=0, return_inverse=True, return_counts=True)
    expected = torch.stack([log_p[which == kind][0].exp() for kind in range(len(values))])
    share = counts / len(points)
    error = (expected * (1 - expected) / len(points)).sqrt()
    assert ((share - expected).abs() < 5 * error).all(), "discrete layers are drawn otherwise than log_below says"
    torch.testing.assert_close(expected.sum(), torch.ones_like(expected.sum()))


@torch.no_grad()
def check_divergences(name: str) -> None:
    """Check that the divergence of each layer is the mean of log q - log p over many draws of q."""
    model, batch, case = _make_case(name)
    torch.manual_seed(1)
    trace = model.trace(batch, case.inputs, samples=4_000, names=())
    for layer, ratio in trace.log_ratio.items():
        error, cost = ratio.std(0) / math.sqrt(len(ratio)), trace.divergence[layer]
        found = cost if cost.dim() == 1 else cost.mean(0)
        assert ((found + ratio.mean(0)).abs() < 5 * error + 1e-9).all(), f"what {layer} of {name} costs is off"


def check_training(name: str) -> None:
    """Check that ELBO and IWAE give every parameter a gradient, or refuse several draws."""
    for member in (Elbo, Iwae):
        for samples in (1, 3):
            model, case = small_model(name)
            objective = member(modalities=model.generates, given=case.inputs, samples=samples)
            if "independent" in objective.demands.needs - model.capabilities:
                with refuses(SettingsError, "which the objective needs"):
                    check_capabilities(name, model.capabilities, objective.demands.needs)
                continue
            bound = objective(model, case.batch())
            shapes = {term: tuple(value.shape) for term, value in {"value": bound.value, **bound.terms}.items()}
            assert {*shapes.values()} == {(5,)}, f"shapes for 5 examples are {shapes}, expected (5,)"
            bound.value.mean().backward()
            lost = [key for key, parameter in model.named_parameters() if parameter.grad is None]
            assert lost == [], f"{name} has parameters that nothing trains: {lost}"
