"""The powers of p(y|z) that a fit uses: resolved from what was asked and what the model was trained with."""

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from mmgen.aggregates._base import Family, Given, Layers
from mmgen.core.errors import UsageError
from mmgen.models import DataSettings, Model
from mmgen.objectives import Objective
from mmgen.results.naming import number_of

__all__ = [
    "Guidance",
    "TextWeight",
    "check_family",
    "check_guidance",
    "check_model",
    "resolve_text_weight",
    "said",
]


def _power(value: Any, words: tuple[str, ...] = ()) -> Any:
    if value is None or value in words:
        return value
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"got {value!r}, expected {''.join(f'{word} or ' for word in words)}a number of at least 0")
    return number


TextWeight = Annotated[float | Literal["training"] | None, BeforeValidator(lambda value: _power(value, ("training",)))]
"""A weight as it is asked for; in a finished file always a number, but in those made before there was a choice."""


def _fitted(value: Any) -> Any:
    if isinstance(value, str) and ":" in value:
        raise ValueError(
            f"got {value!r}, expected a number alone, such as 3: balance is for drawing, by sample or eval, not for a "
            "fit; its candidates are --set aggregate.candidates"
        )
    return _power(value)


Guidance = Annotated[float, BeforeValidator(_fitted)]
"""A power of p(y|z), 0 for none."""


def said(weight: float | str) -> str:
    """A weight as somebody would type it."""
    return weight if isinstance(weight, str) else number_of(weight)


def resolve_text_weight(
    asked: float | Literal["training"] | None, given: Given, data: DataSettings, objective: Objective
) -> float:
    """The weight of log p(y|z) in q_true, as a number.

    Where z does not depend on the description, because nothing is given or because decoders see the description (CVAE),
    there is no p(y|z) to weigh: the target is p(z), which is exact.

    Args:
        asked: A number, "training", or None for the default, which is the training's.
        given: What the posterior is conditioned on.
        data: The model's data settings.
        objective: The model's objective.

    Raises:
        UsageError: There is no p(y|z) to weigh, or its training weight is no number to fit with.
    """
    described = None if given == "nothing" else getattr(data, given)
    if described is None or described.name not in objective.demands.generates:
        if asked is None:
            return 1.0
        without = (
            "of no description there is none" if given == "nothing" else f"this model has no p({given} | z): z is p(z)"
        )
        raise UsageError(f"--text-weight got {said(asked)}, expected nothing: it weighs p(words | z), and {without}")
    if isinstance(asked, float):
        return asked
    weight = objective.training_weight(described.name, given)
    if weight is None or not math.isfinite(weight) or weight <= 0:
        reason = "no single weight" if weight is None else "no weight" if weight == 0 else "no divergence to p(z)"
        raise UsageError(
            f"--text-weight training needs the weight that the model's training gave its {given}, but its objective "
            f"has {reason}; give a number, such as --text-weight 1 for the exact p(z | {given})"
        )
    return weight


def check_guidance(guidance: float, target: str, given: Given, data: DataSettings, objective: Objective) -> None:
    """Refuse guidance where there is nothing to guide by, or nothing to be guided.

    Raises:
        UsageError: Says which.
    """
    if not guidance:
        return
    got = f"--guidance got {guidance:g}, expected 0"
    if target == "true":
        raise UsageError(f"{got} with --target true, whose power of p(words | z) is --text-weight")
    if given == "nothing":
        raise UsageError(f"{got} with --given nothing: q(z) reads no description that could guide it")
    if getattr(data, given).name not in objective.demands.generates:
        raise UsageError(f"{got}: guidance needs p({given} | z), but this model generates no {given}")


def check_family(family: Family, data: DataSettings, target: str, guidance: float) -> None:
    """Refuse a family of words where the data have none, and what is said of an objective to one that brings its own.

    Raises:
        UsageError: Says which.
    """
    if family.needs_words and data.attributes is None and data.text is None:
        raise UsageError(
            f"family {family.posterior} needs words, and the model's dataset has neither attributes nor text; fit "
            "another family with --given nothing, or use a model whose dataset has words"
        )
    if family.posterior and target == "true":
        raise UsageError(
            f"--target got true, expected nothing: family {family.posterior} has an objective of its own; leave it out"
        )
    if family.posterior and guidance:
        raise UsageError(
            f"--guidance got {guidance:g}, expected nothing: family {family.posterior} has an objective of its own; "
            "guide what is drawn from it instead"
        )


def check_model(model: Model, path: Path, layers: Layers) -> None:
    """Make sure that a density can be fitted to encodings of a model.

    Args:
        model: The model.
        path: Its file, for messages.
        layers: What of z is fitted.

    Raises:
        UsageError: Its encodings are points or hold labels, or there is no layer above others.
    """
    if "density" not in model.capabilities:
        raise UsageError(
            f"{path} has a deterministic encoder, so that its encodings are points without a density; fit to a "
            "variational model"
        )
    if model.discrete_layers:
        raise UsageError(
            f"z of {path} holds {' and '.join(model.latent_modalities)}, whose values no density of this kind is "
            "over; draw from the model's own posterior given them, or fit to a model of another kind"
        )
    if layers == "top" and len(model.latent.layers) == 1:
        raise UsageError(
            f"--layers got top, but z of {path} has one layer, expected all; leave it out, or fit to a model of "
            "several layers, such as hierarchical-vae"
        )
