"""Checks of objectives."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from typing import Any
from unittest import mock

import torch

import mmgen.models
import mmgen.objectives
from mmgen.core.batch import Batch
from mmgen.core.errors import MmgenError, SettingsError
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.image import Image
from mmgen.models import Model, MultimodalSettings, build_model
from mmgen.objectives import Adversarial, Bound, Objective, WeightedObjective, role
from mmgen.settings.registry import BUILT_IN, list_registries
from mmgen.testing.linear_gaussian import (
    draw_conditional_observations,
    draw_observations,
    exact_log_conditional,
    exact_log_marginal,
    make_conditional_linear_gaussian,
    make_linear_gaussian,
)
from mmgen.testing.small import CASES, Case, small_cases
from mmgen.training.model_run import read_experiment
from mmgen.training.settings import TrainingSettings

_COPIES = 2_000
"""Times that an example is drawn for, where an expectation is taken."""
_PARTS = 20
"""Batches that they come in."""


def check_objective(name: str) -> None:
    """Check that an objective trains every parameter and, if it is a bound, lies below the exact log-likelihood.

    So do the variants that its class names as ``variants``.
    """
    for settings in ({}, *mmgen.objectives.get(name).variants):
        check_training(name, settings)
        check_bound(name, settings)


def check_training(name: str, settings: Mapping[str, Any] | None = None) -> None:
    """Check an objective's shape, finiteness and terms, and that every parameter of its model gets a gradient."""
    objective = mmgen.objectives.get(name)(**(settings or {}))
    case = _find_case(objective)
    torch.manual_seed(0)
    model = build_model(case.model, objective.demands, case.data)
    bound = objective(model, case.batch())
    assert bound.value.shape == (5,), f"value has the shape {tuple(bound.value.shape)} for 5 examples, expected (5,)"
    assert bound.value.isfinite().all(), f"value is not finite: {bound.value.tolist()}"
    shapes = {name: tuple(term.shape) for name, term in bound.terms.items()}
    assert shapes and {*shapes.values()} == {(5,)}, f"terms have the shapes {shapes} for 5 examples, expected (5,)"
    bound.value.mean().backward()
    lost = [key for key, parameter in model.named_parameters() if parameter.requires_grad and parameter.grad is None]
    assert lost == [], f"{name} asks for networks that it does not train: {lost}"
    if isinstance(objective, Adversarial):
        _check_opponent(name, objective, model, case.batch())
        return
    _check_values(name, objective, model.eval(), case.batch())


@torch.no_grad()
def _check_values(name: str, objective: Objective, model: Model, batch: Batch) -> None:
    """Check what the value depends on: not on unknown values, on its own example if it is a bound, on every weight."""

    def value(objective: Objective, batch: Batch) -> torch.Tensor:
        torch.manual_seed(0)
        return objective(model, batch).value

    whole = value(objective, batch)
    # Encoders of pictures alone are asked for pictures that are there; posteriors of subsets leave missing ones out.
    optional = Attributes | Image if "subsets" in objective.demands.needs else Attributes
    for modality in objective.demands.generates:
        if not isinstance(model.modalities.get(modality), optional):
            continue
        present = {**batch.present, modality: batch.present[modality].clone()}
        present[modality][::2] = False
        hidden = {**batch.values, modality: batch.values[modality].clone()}
        hidden[modality][::2] = 0
        try:
            found = [value(objective, Batch(values, present, batch.shared)) for values in (batch.values, hidden)]
        except MmgenError:
            continue  # it needs whole examples, and says so
        assert found[0].isfinite().all(), f"value is not finite where {modality} is unknown"
        if torch.equal(batch.values[modality][::2], hidden[modality][::2]):
            continue
        torch.testing.assert_close(
            found[0], found[1], msg=f"value depends on {modality} of examples whose {modality} is unknown"
        )
    if "subsets" in objective.demands.needs:
        present = {key: mask.clone() for key, mask in batch.present.items()}
        for mask in present.values():
            mask[0] = False
        alone = value(objective, Batch(batch.values, present, batch.shared))
        assert alone.isfinite().all(), "value is not finite where nothing of an example is known"
    if isinstance(objective, WeightedObjective):
        for name in objective.demands.generates:
            heavier = replace(objective, weights={name: objective.weight(name, role(model, name)) + 1})
            assert not torch.allclose(value(heavier, batch), whole), f"weights of {name} have no effect on the value"


def _check_opponent(name: str, objective: Adversarial, model: Model, batch: Batch) -> None:
    """Check that the opponent trains all its parameters, has valid settings and does not change the model."""
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    model.zero_grad(set_to_none=True)
    opponent = objective.opponent(model)
    bound = opponent(model, batch, batch, 0)
    assert bound.value.shape == (batch.size,) and bound.value.isfinite().all()
    bound.value.mean().backward()
    lost = [key for key, parameter in opponent.named_parameters() if parameter.grad is None]
    assert lost == [], f"the {opponent.name} of {name} does not train {lost}"
    moved = [key for key, parameter in model.named_parameters() if parameter.grad is not None]
    moved += [key for key, tensor in model.state_dict().items() if not tensor.equal(before[key])]
    assert moved == [], f"the {opponent.name} of {name} moves the model: {moved}"
    assert opponent.name.isidentifier()
    # Settings that there are and that fit each other, whatever optimiser the run has.
    TrainingSettings().for_player(opponent.training_settings)
    TrainingSettings(optimizer="sgd", momentum=0.9).for_player(opponent.training_settings)


def _find_case(objective: Objective) -> Case:
    """Return the first small case, data and model settings, that suits an objective; models from outside are last."""
    refusals = []
    for case in [*small_cases(), *_cases_from_outside()]:
        if case.data.modalities.keys() >= {*objective.demands.modalities}:
            try:
                build_model(case.model, objective.demands, case.data)
            except SettingsError as refusal:
                refusals.append(str(refusal))
            else:
                return case
    names = " and ".join(objective.demands.modalities)
    assert refusals, f"no small data have {names}, which it looks at: their kind needs a method example"
    raise AssertionError(f"no small model suits it: {'; '.join(dict.fromkeys(refusals))}")


def _cases_from_outside() -> Iterator[Case]:
    """Yield small cases with the models of packages and files that are not mmgen's own."""
    models = next(room for room in list_registries() if room.noun == "model")
    for member in models.members():
        if member.origin != BUILT_IN:
            example = {**mmgen.models.get(member.name).settings.example, "name": member.name}
            for case in CASES:
                values = {"model": example, "data": case.data.model_dump(mode="json")}
                yield replace(case, model=read_experiment(values).model)


def check_bound(name: str, settings: Mapping[str, Any] | None = None) -> bool:
    """Check that a bound lies below the exact log p(x), or log p(x | y) if it conditions on y.

    Every weight of a likelihood is 1. The model is linear and Gaussian, so that the log-likelihood is known exactly,
    and its encoder is moved off the exact posterior. The bound holds in expectation: a mean over 2,000 draws of z is
    off by 0.03. For other modalities no such model exists here, so an objective for them must not claim to be a bound.

    Returns:
        True if the objective claims to be a bound.
    """
    objective = make_unweighted_objective(name, settings)
    case = _find_case(objective)
    if case.data != CASES[0].data or not isinstance(case.model, MultimodalSettings):
        model = build_model(case.model, objective.demands, case.data)
        assert not objective(model, case.batch()).is_bound, (
            f"{name} says that it is a bound, which cannot be checked for its modalities; return is_bound=False"
        )
        return False
    if objective.demands.conditions_on:
        model, batch = make_conditional_linear_gaussian(0.3, -0.2), draw_conditional_observations(20)
        exact = exact_log_conditional(model, batch)
    else:
        model, batch = make_linear_gaussian(0.3, -0.2), draw_observations(20)
        exact = exact_log_marginal(batch, objective.demands.generates)
    torch.manual_seed(0)
    evaluate: Callable[..., Bound] = objective
    if isinstance(objective, Adversarial):
        evaluate = partial(objective, opponent=objective.opponent(model).double())  # as the model is
    if not evaluate(model, batch).is_bound:
        return False
    # In parts, since some objectives compare every example of a batch with every other.
    bounds = [evaluate(model, batch.repeat(_COPIES // _PARTS)) for _ in range(_PARTS)]
    assert all(bound.is_bound for bound in bounds)
    means = torch.stack([bound.value.reshape(20, -1).mean(1) for bound in bounds]).mean(0)
    assert (means < exact).all(), (
        f"{name} says that it is a bound, and is above the exact log-likelihood by {(means - exact).max():.2f} nats; "
        "correct value, or return is_bound=False"
    )
    return True


def make_unweighted_objective(name: str, settings: Mapping[str, Any] | None = None) -> Objective:
    """Return the objective with every weight of a likelihood at 1, and settings."""
    member = mmgen.objectives.get(name)
    weights = {field.name: 1.0 for field in fields(member) if field.name.endswith("_weight")}  # type: ignore[arg-type]  # every member is a dataclass, which the base need not be
    return member(**{**weights, **(settings or {})})


@contextmanager
def replace_noise() -> Iterator[int]:
    """Replace noise within a block by the points +-1 in two dimensions, so that means of quadratics are exact.

    Yields:
        The number of copies, 4, which a batch is repeated to.
    """
    points = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=2)), dtype=torch.float64)

    def sample(self: DiagonalGaussian, generator: object = None, shape: tuple[int, ...] = ()) -> torch.Tensor:
        return self.mean + self.sd * points.repeat(self.mean.shape[-2] // len(points), 1)

    with mock.patch.object(DiagonalGaussian, "sample", sample):
        yield len(points)
