"""Checks of models, of their inferences and of their networks."""

import math
from dataclasses import replace

import torch
from torch import Tensor

import mmgen.classifier
import mmgen.inference
import mmgen.models
import mmgen.networks
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError, UsageError
from mmgen.inference import Inference
from mmgen.modalities.image import ImageDescription
from mmgen.models import Demands, Model, build_model, check_capabilities
from mmgen.objectives.elbo import Elbo
from mmgen.objectives.iwae import Iwae
from mmgen.settings.config import build_member
from mmgen.testing.small import Case, inference_parts, refuses, small_batch, small_cases
from mmgen.training.model_run import read_experiment

GIVEN = (("image",), ("attributes",), ("image", "attributes"))
"""What posteriors are asked of."""


def check_inference(name: str) -> None:
    """Check all posteriors of an inference: those of each set of inputs, and those of subsets."""
    for inputs in GIVEN:
        check_posterior(name, inputs)
    check_subsets(name)


def build_inference(name: str, inputs: tuple[str, ...]) -> Inference | None:
    """Build the inference for one set of inputs; None if it refuses this set."""
    torch.manual_seed(0)
    try:
        made = mmgen.inference.get(name)(inference_parts(), frozenset([inputs]))
    except SettingsError:
        return None
    return made if made.has_posterior(inputs) else None


def _change_other_modalities(batch: Batch, inputs: tuple[str, ...]) -> Batch:
    """Return the batch with other values in all modalities that are not inputs."""
    other = {"image": 1 - batch.values["image"], "attributes": 1 - batch.values["attributes"].clamp(max=1)}
    return Batch({name: v if name in inputs else other[name] for name, v in batch.values.items()}, batch.present)


def check_posterior(name: str, inputs: tuple[str, ...]) -> None:
    """Check a posterior's shapes, gradients, independence of other modalities, and error for missing ones."""
    inference = build_inference(name, inputs)
    if inference is None:
        assert any(build_inference(name, other) for other in GIVEN), (
            f"{name} answers none of {GIVEN}: test what it is for"
        )
        return
    batch = small_batch()
    q = inference.posterior(batch, inputs)
    for part, tensor in (("mean", q.mean), ("log_sd", q.log_sd)):
        assert tensor.shape == (5, 3), f"{part} has the shape {tuple(tensor.shape)} for 5 examples, expected (5, 3)"
        assert tensor.isfinite().all(), f"{part} is not finite"
    torch.testing.assert_close(inference.posterior(batch, inputs[::-1]).mean, q.mean)
    torch.testing.assert_close(inference.posterior(_change_other_modalities(batch, inputs), inputs).mean, q.mean)
    (q.mean.sum() + q.log_sd.sum()).backward()
    moved = any(p.grad is not None and p.grad.abs().sum() > 0 for p in inference.parameters())
    assert moved, "no gradient reaches its parameters"
    with refuses(UsageError, f"needs {inputs[-1]}, which the batch lacks"):
        inference.posterior(Batch({n: v for n, v in batch.values.items() if n != inputs[-1]}, batch.present), inputs)
    assert not inference.has_posterior(("smell",))


def check_subsets(name: str) -> None:
    """Check that an inference with ``any_subset`` has a posterior for each subset, equal to that of :meth:`infer`."""
    inference, batch = next(filter(None, (build_inference(name, inputs) for inputs in reversed(GIVEN)))), small_batch()
    units = [("image", None), ("attributes", None)]
    chosen = [[True, False], [False, True], [True, True]]
    if not inference.any_subset:
        # Not a user's mistake: whoever asks has not looked at any_subset, so it is Python's own error.
        with refuses(NotImplementedError, "no posterior for every subset"):
            inference.infer_subsets(batch, units, chosen)
        return
    q = inference.infer_subsets(batch, units, chosen)
    assert q.mean.shape == (3, 5, 3)
    for one, inputs in enumerate(GIVEN):
        torch.testing.assert_close(q.mean[one], inference.posterior(batch, inputs).mean)
        torch.testing.assert_close(q.log_sd[one], inference.posterior(batch, inputs).log_sd)


_SHAPES = ((1, 64, 64), (3, 32, 32))
_CANVASES = ((1, 16, 16), (1, 28, 28), (3, 32, 32), (1, 50, 50), (1, 64, 64))


def check_network(name: str) -> None:
    """Check a family of image networks: shapes, gradients, dependence on inputs, and refusal of misspelt settings."""
    for shape in _SHAPES:
        check_network_shape(name, shape)
    with refuses(SettingsError, "no_setting_is_called_so"):
        build_member(mmgen.networks, {"name": name, "no_setting_is_called_so": 1}, "network")


def check_network_shape(name: str, shape: tuple[int, int, int]) -> None:
    """Check shapes, gradients and dependence on inputs of image networks for one image shape (C, H, W)."""
    torch.manual_seed(0)
    member = mmgen.networks.get(name)
    network, size = member(**member.settings_for_sides(shape[1:])), 7
    if member.keeps_places:
        grid = (2, shape[1] // 8, shape[2] // 8)
        network, size = network.on_places(grid), math.prod(grid)
    encoder, features = network.encoder(shape)
    decoder = network.decoder(size, shape)
    encoded = encoder(torch.rand(4, *shape))
    assert encoded.shape == (4, features), f"features are {tuple(encoded.shape)}, expected {(4, features)}"
    assert not torch.allclose(encoded[0], encoded[1]), "features of different images are equal"
    decoded = decoder(torch.randn(4, size))
    assert decoded.shape == (4, *shape), f"decoded images are {tuple(decoded.shape)}, expected {(4, *shape)}"
    assert not torch.allclose(decoded[0], decoded[1]), "images decoded from different inputs are equal"
    (encoded.sum() + decoded.square().sum()).backward()
    for part in (encoder, decoder):
        untrained = [key for key, parameter in part.named_parameters() if parameter.grad is None]
        assert untrained == [], f"no gradient reaches {untrained}"


def check_classifier_network(name: str) -> None:
    """Check that a classifier network takes images of every size, and that logits are affine in its features."""
    for shape in _CANVASES:
        check_classifier_network_shape(name, shape)
    check_classifier_features(name)


def check_classifier_network_shape(name: str, shape: tuple[int, int, int]) -> None:
    """Check that images of a shape (C, H, W) give one vector of logits for each attribute."""
    with torch.device("meta"):  # shapes without arithmetic
        network = mmgen.classifier.get(name).for_description(ImageDescription(shape=shape, layout="bytes"), (2, 5))
        logits = network.eval()(torch.rand(3, *shape))
    assert [tuple(part.shape) for part in logits] == [(3, 2), (3, 5)]


def check_classifier_features(name: str) -> None:
    """Check that features are finite, differ between pictures, and determine all logits by an affine function."""
    torch.manual_seed(0)
    described = ImageDescription(shape=(1, 16, 16), layout="bytes")
    network = mmgen.classifier.get(name).for_description(described, (2, 5, 5, 2, 5, 5), 3).eval()
    images, hints = torch.rand(4, 1, 16, 16), torch.eye(3)[[0, 1, 2, 0]]
    with torch.inference_mode():
        features = network.features(images, hints)
        assert features.ndim == 2 and features.shape[0] == 4
        assert features.isfinite().all()
        assert (features >= 0).all()  # after the non-linearity
        assert torch.cdist(features, features).fill_diagonal_(1).min() > 0
        logits = network(images, hints)
        for part, again in zip(logits, network.logits(features), strict=True):
            torch.testing.assert_close(part, again)
        between = network.logits(features.mean(0, keepdim=True))
        for part, middle in zip(logits, between, strict=True):
            torch.testing.assert_close(part.mean(0, keepdim=True), middle, rtol=1e-3, atol=1e-4)
        assert not torch.equal(network.features(images, hints.roll(1, 1)), features)


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
