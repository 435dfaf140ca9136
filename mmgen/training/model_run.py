"""Training a model from a dataset file: settings in, work out; and a model back from its checkpoint."""

import json
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from pydantic import Field, SerializeAsAny, create_model
from torch import Tensor

import mmgen.models
import mmgen.objectives
from mmgen.artifacts import Dataset, Header
from mmgen.core.errors import SettingsError, UsageError
from mmgen.core.progress import Work
from mmgen.modalities import Description
from mmgen.modalities.image import ImageDescription
from mmgen.models import DataSettings, Model, ModelSettings, MultimodalSettings, build_model
from mmgen.objectives import Objective
from mmgen.settings.config import Settings, build_member, json_values, leaves_of, merge, validate
from mmgen.training.batches import DatasetRows
from mmgen.training.first_weights import set_first_weights
from mmgen.training.loop import Resume, TrainingResult
from mmgen.training.pairing import training_rows
from mmgen.training.settings import TrainingSettings
from mmgen.training.stage import Built, Stage, load_trained, run_stage
from mmgen.training.start import first_weights_of, load_start
from mmgen.training.task import ModelTask

__all__ = [
    "ExperimentSettings",
    "check_data",
    "complete_settings",
    "describe_left_out",
    "load_model",
    "read_experiment",
    "train_model",
]

_USUAL_MODEL = "multimodal-vae"
"""The kind of model of settings without a name, as of presets."""


class ExperimentSettings(Settings):
    """Everything that determines a trained model, nested by room."""

    model: SerializeAsAny[ModelSettings] = Field(default_factory=MultimodalSettings)
    """The kind of model by name, and its own settings; see :func:`read_experiment`."""
    objective: dict[str, Any] = Field(default_factory=lambda: {"name": "elbo"})
    """The objective by name, and its own settings."""
    data: DataSettings = Field(default_factory=DataSettings)
    training: TrainingSettings = Field(default_factory=TrainingSettings)

    def build_objective(self) -> Objective:
        """The objective that the settings name."""
        objective: Objective = build_member(mmgen.objectives, self.objective, "objective", leaves_of(type(self)))
        return objective

    @property
    def modalities(self) -> dict[str, Description]:
        """What the model looks at, by name: what the objective takes of all that its data hold."""
        used = self.build_objective().demands.modalities
        return {name: each for name, each in self.data.modalities.items() if name in used}


@cache
def _schema(name: str) -> type[ExperimentSettings]:
    """Settings whose model is of one kind, so that wrong ones are named as all others are."""
    member: type[ModelSettings] = mmgen.models.get(name).settings
    # Annotated as it is declared: a model of any other kind would be cut down to what all have.
    return create_model(
        "ExperimentSettings",
        __base__=ExperimentSettings,
        model=(SerializeAsAny[member], Field(default_factory=member)),  # type: ignore[valid-type, misc]  # a type that is known when the program runs
    )


def read_experiment(values: Mapping[str, Any]) -> ExperimentSettings:
    """Settings from plain values; the model is of the kind that ``model.name`` says, else a multimodal VAE.

    Raises:
        UsageError: There is no such kind.
        SettingsError: Names all wrong keys and values.
    """
    model = values.get("model")
    name = model.get("name", _USUAL_MODEL) if isinstance(model, Mapping) else _USUAL_MODEL
    if not isinstance(name, str):
        raise SettingsError(f"setting 'model.name' got {name!r}, expected one of {', '.join(mmgen.models.names())}")
    return validate(_schema(name), values, leaves=_leaves_of(values.get("objective")))


def _leaves_of(objective: Any) -> list[str]:
    """Dotted names of the settings of the objective that is named, which are a table of its own."""
    name = objective.get("name") if isinstance(objective, Mapping) else None
    if name not in mmgen.objectives.names():
        return []
    return leaves_of(mmgen.objectives.get(str(name)), "objective")


def complete_settings(values: dict[str, Any], dataset: Dataset) -> ExperimentSettings:
    """Validate user-given values and fill in what the dataset and the objective determine.

    Raises:
        SettingsError: Names all wrong keys and values.
    """
    # Settings of an objective without its name are those of the default one.
    settings = read_experiment(merge({"objective": {"name": "elbo"}}, values))
    settings = settings.model_copy(update={"objective": _described_by_text(settings, dataset)})
    objective = settings.build_objective()
    name = settings.objective["name"]
    given = settings.data.model_dump(exclude={"modalities"})
    if "split" not in settings.data.model_fields_set and settings.data.split not in dataset.schemes:
        given["split"] = dataset.default_scheme or settings.data.split
    data = validate(DataSettings, {**given, "modalities": dataset.modalities}, "data")
    model = mmgen.models.get(settings.model.name).complete(settings.model, objective.demands, data)
    return settings.model_copy(
        update={"model": model, "objective": {"name": name, **json_values(objective)}, "data": data}
    )


def _described_by_text(settings: ExperimentSettings, dataset: Dataset) -> dict[str, Any]:
    """The objective's settings, with captions in place of the attributes that it looks at by default and that a dataset
    of captions alone does not have.
    """
    given, defaults = settings.objective, json_values(settings.build_objective())
    if "attributes" in dataset.modalities or "text" not in dataset.modalities:
        return given
    found = dict(given)
    if "description" in defaults and "description" not in given:
        found["description"] = "text"
    if "modalities" in defaults and "modalities" not in given:
        found["modalities"] = ["text" if name == "attributes" else name for name in defaults["modalities"]]
    return found


def describe_left_out(settings: ExperimentSettings, said: Mapping[str, Any] | None = None) -> str:
    """One sentence about the modalities of the dataset that the objective does not look at; "" where it sees them all.

    Args:
        settings: Completed settings (see :func:`complete_settings`).
        said: Nested values that were given one by one: what a preset weighs for other datasets is no mistake.

    Raises:
        SettingsError: The dataset lacks one that the objective looks at, and others could be named instead; or a weight
            that was given is of a kind that the objective does not generate.
    """
    data, objective, name = settings.data, settings.build_objective(), settings.objective["name"]
    used = objective.demands.modalities
    lacking = [part for part in used if part not in data.modalities]
    if lacking:
        able = [part for part, each in data.modalities.items() if each.by_rows]
        choices: list[dict[str, Any]] = [{"observation": part} for part in data.observed]
        choices += [{"modalities": able}, {"modalities": able, "given": able[:1]}]
        for choice in choices if able else ():
            if (there := _demanded(settings.objective | choice)) and set(there) <= set(able):
                chosen = " ".join(
                    f"--set {shlex.quote(f'objective.{key}={value if isinstance(value, str) else json.dumps(value)}')}"
                    for key, value in choice.items()
                )
                raise SettingsError(
                    f"{name} looks at {_listed(used)}, but the dataset holds no {lacking[0]}; use {chosen}"
                )
        return ""  # what the model says of it when it is built is enough
    _check_weights(settings, (said or {}).get("objective"))
    left = [name for name in data.modalities if name not in used]
    if not left:
        return ""
    sentence = f"{name} looks at {_listed(used)}, and leaves out {_listed(left)} of this dataset"
    if not all(data.modalities[part].by_rows for part in used if part in data.modalities):
        return f"{sentence}."  # no objective here learns a graph together with other modalities
    generated = objective.demands.generates
    wanted = [*generated, *(part for part in left if part not in generated)]
    if _demanded(settings.objective | {"modalities": wanted}):
        chosen = shlex.quote(f"objective.modalities={json.dumps(wanted)}")
        way = f"--set {chosen} takes {'it' if len(left) == 1 else 'them'} in"
    else:
        several = [other for other in mmgen.objectives.importable() if _demanded({"name": other, "modalities": wanted})]
        way = f"{_listed(several)} can learn from more modalities"
        described = settings.objective.get("description", left[-1])
        if described != left[-1] in ("attributes", "text") and not objective.demands.conditions_on:
            way = f"--set objective.description={left[-1]} takes {left[-1]} instead of {described}"
    return f"{sentence}; {way}."


def _check_weights(settings: ExperimentSettings, said: Any) -> None:
    """Make sure that every weight which somebody gave by name weighs something.

    Args:
        settings: Completed settings (see :func:`complete_settings`).
        said: Settings of the objective that were given one by one, if any; all that a model says of its own is among
            them where somebody gives that, so that defaults are no mistake.

    Raises:
        SettingsError: One is of a kind of modality that the objective does not generate.
    """
    if not isinstance(said, Mapping):
        return
    objective, modalities = settings.build_objective(), settings.data.modalities
    generated = objective.demands.generates
    usual = json_values(mmgen.objectives.get(settings.objective["name"])())
    for name in objective.weightless({modalities[part].kind for part in generated}):
        if said.get(name, usual[name]) == usual[name]:
            continue
        kind = name.removesuffix("_weight")
        able = [part for part, each in modalities.items() if each.kind == kind]
        way = f", or name {' or '.join(able)} in objective.modalities" if able else ""
        raise SettingsError(
            f"objective.{name} got {said[name]}, but {settings.objective['name']} generates no {kind} here, only "
            f"{_listed(generated)}; leave it out{way}"
        )


def _demanded(objective: Mapping[str, Any]) -> tuple[str, ...]:
    """The modalities that an objective looks at; none where it refuses its settings, as not all take any by name."""
    try:
        built: Objective = build_member(mmgen.objectives, objective, "objective")
    except SettingsError:
        return ()
    return tuple(built.demands.modalities)


def _listed(names: Sequence[str]) -> str:
    """``image, attributes and text``."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def train_model(
    dataset_path: Path,
    settings: ExperimentSettings,
    out: Path,
    command: str = "",
    resume: Resume = "auto",
    start: Path | None = None,
) -> Work[TrainingResult]:
    """Train a model on the training part of a split; validate on its validation part; write the best as ``out``.

    Args:
        dataset_path: Dataset file.
        settings: Completed settings (see :func:`complete_settings`).
        out: Checkpoint to write, kind "model".
        command: The command to record.
        resume: See :func:`mmgen.training.loop.train`.
        start: A model whose weights the run begins with (see :func:`mmgen.training.start.start_values`).

    Raises:
        SettingsError: The objective cannot be trained with these settings of the training.
        UsageError: ``out`` is the dataset or ``start``, or holds something other than a model; or ``start`` has other
            networks, data or another split.
    """
    settings.build_objective().check_run(settings.training)
    if start is not None:  # the file says what the weights began as, and those are the other model's
        settings = settings.model_copy(update={"model": settings.model.model_copy(update=first_weights_of(start))})

    def build(device: torch.device) -> Built:
        objective, split = settings.build_objective(), settings.data.split
        used = objective.demands.modalities
        model = build_model(settings.model, objective.demands, settings.data)
        with Dataset.open(dataset_path) as dataset:
            rows, validation = (DatasetRows.of_split(dataset, split, part, device, used) for part in ("train", "val"))
            determines = {"dataset": dataset.header.content_id}
        if start is None:
            set_first_weights(model, settings.model, rows)
        else:
            determines["start"] = load_start(start, model, settings.data, used, determines["dataset"])
        learnt = training_rows(rows, objective, settings.data, settings.training.seed)
        task = ModelTask(model, objective.trained_on(len(learnt)), settings.model.l2_attributes_decoder)
        return Built(task, learnt, validation, determines)

    stage = Stage(
        kind="model",
        settings=settings.model_dump(mode="json"),
        training=settings.training,
        parents={"dataset": dataset_path} | ({"start": start} if start else {}),
        build=build,
        description=f"training {settings.objective['name']}",
        command=command,
    )
    return run_stage(stage, out, resume)


def check_data(dataset: Dataset, path: Path, *described: Description | None) -> None:
    """Make sure that a dataset has the modalities that the model or aggregate at ``path`` was made for.

    Raises:
        UsageError: It lacks one, or has one of other words, another shape, or grey where all was black and white.
    """
    for wanted in described:
        if wanted is None:
            continue
        found = dataset.modalities.get(wanted.name)
        if found is None or not wanted.fits(found):
            raise UsageError(
                f"dataset {dataset.path} does not have the {wanted.name} that {path} was trained with; "
                "give the model's own dataset, or one of the same recipe"
            )
        if isinstance(wanted, ImageDescription) and isinstance(found, ImageDescription) and not wanted.takes(found):
            raise UsageError(
                f"dataset {dataset.path} has grey levels in {wanted.name}, expected black and white, which {path} was "
                "trained with; give a dataset that was made so"
            )


def load_model(path: Path, device: torch.device | str = "cpu") -> tuple[Header, ExperimentSettings, Model]:
    """A trained model in evaluation mode, with its header and settings.

    Raises:
        ArtifactError: The file is no model checkpoint, or its tensors do not fit its settings.
    """

    def build(header: Header, tensors: Mapping[str, Tensor]) -> tuple[ExperimentSettings, Model]:
        settings = read_experiment(header.settings)
        return settings, build_model(settings.model, settings.build_objective().demands, settings.data)

    return load_trained(path, "model", build, device)
