"""Training that starts from another model's weights: the same networks, another objective or schedule.

References:
    Importance Weighted Autoencoders (Burda, Grosse, Salakhutdinov, 2016), arXiv:1509.00519, Section 5.2: a VAE
    continued as IWAE, and the other way round
"""

from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from torch import nn

import mmgen.objectives
from mmgen.artifacts import read_checkpoint, require_kind
from mmgen.core.errors import UsageError
from mmgen.models import DataSettings
from mmgen.settings.config import merge, validate

__all__ = ["first_weights_of", "load_start", "start_values"]

_NOT_TAKEN = ("name", "samples", "kl_warmup_steps", "capacity_steps", "examples")
"""Settings of an objective that say how this run estimates and anneals, and nothing about the model."""
_OF_ANY = (
    "modalities", "given", "description", "graph",
    "image_weight", "attributes_weight", "text_weight",
)  # fmt: skip
"""Settings that mean the same to every objective; beta, gamma, alpha are other weights to each."""
_OF_TRAINING = ("l2_attributes_decoder",)
"""Settings of a model that say how it is trained, and nothing about its networks."""


def start_values(path: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a run that starts from a model: the model's networks and split, and what its objective looks at.

    Another objective takes over modalities and their weights alone, the same one its other weights too. Not taken are
    how often z is drawn and how divergences are annealed, nor anything of its training.

    Args:
        path: The model.
        values: What the user gives, which comes first.

    Raises:
        ArtifactError: ``path`` is no model.
    """
    taken = require_kind(path, "model").settings
    before = taken.get("objective", {})
    given = values.get("objective", {})
    name = given.get("name", before.get("name")) if isinstance(given, Mapping) else None
    base: dict[str, Any] = {
        "model": {key: value for key, value in taken.get("model", {}).items() if key not in _OF_TRAINING},
        "data": {"split": taken.get("data", {}).get("split", "iid")},
    }
    if isinstance(name, str) and name in mmgen.objectives.names():
        known = {field.name for field in fields(mmgen.objectives.get(name))} - {*_NOT_TAKEN}  # type: ignore[arg-type]  # a dataclass
        known &= {*_OF_ANY} if name != before.get("name") else known
        base["objective"] = {"name": name, **{key: value for key, value in before.items() if key in known}}
    return merge(base, values)


def first_weights_of(path: Path) -> dict[str, Any]:
    """How the model at ``path`` began, which is how a run that starts from it began; {} where its file does not say."""
    taken = require_kind(path, "model").settings.get("model", {})
    return {key: taken[key] for key in ("initial_weights", "output_bias") if key in taken}


def load_start(path: Path, model: nn.Module, now: DataSettings, used: Collection[str], dataset_id: str) -> str:
    """Put the weights of the model at ``path`` into ``model``; returns its content id.

    Args:
        path: The model to start from.
        model: The model to be trained.
        now: The data of the run.
        used: Modalities that its objective looks at.
        dataset_id: Content id of the dataset of the run.

    Raises:
        UsageError: Its networks, its data or its split are others than this run's.
    """
    header, tensors = read_checkpoint(path, "model")
    before = validate(DataSettings, header.settings.get("data", {}))
    ours = any(parent.content_id == dataset_id for parent in header.parents)
    if ours and before.split != now.split:
        raise UsageError(
            f"--from got {path}, which was trained on split '{before.split}' of this dataset, but this run is on "
            f"'{now.split}', whose test part it may have seen; leave --split out"
        )
    joined = [name for name in used if not now.modalities[name].by_rows]
    if joined and not ours:
        raise UsageError(
            f"--from got {path}, which was trained on another dataset, whose edges of {joined[0]} may be those that "
            "this one holds back; give a model of this very dataset"
        )
    for name in used:
        was, is_now = before.modalities.get(name), now.modalities[name]
        if was is None or not was.fits(is_now):
            fields = ["kind", *type(is_now).model_fields]
            differs = next(key for key in fields if getattr(was, key, None) != getattr(is_now, key))
            raise UsageError(
                f"--from got {path}, which was trained with another {name} (its {differs} differs); give a "
                "dataset of the same kind"
            )
    here = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    there = {name: list(tensor.shape) for name, tensor in tensors.items()}
    for name in [*here, *there]:
        if here.get(name) != there.get(name):
            said = [str(shapes[name]) if name in shapes else "missing" for shapes in (there, here)]
            raise UsageError(
                f"--from got {path}, whose networks are not those of this run: {name} is {said[0]} there and {said[1]} "
                "here; leave out settings of the model, or choose an objective that needs the same networks"
            )
    model.load_state_dict(tensors)
    return header.content_id
