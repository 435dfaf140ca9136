"""Training of models from dataset files, their settings, and loading of trained models."""

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import torch
from pydantic import Field, SerializeAsAny, create_model
from torch import Tensor

import mmgen.models
import mmgen.objectives
from mmgen.artifacts import Dataset, Header, read_header
from mmgen.artifacts.containers import read_tensor_table
from mmgen.core.errors import SettingsError, UsageError
from mmgen.core.memory import bounded_networks, networks_of_settings
from mmgen.core.progress import Work
from mmgen.modalities import Description
from mmgen.modalities.image import ImageDescription
from mmgen.models import DataSettings, Model, ModelSettings, MultimodalSettings, Preparation, build_model
from mmgen.objectives import Objective
from mmgen.settings.config import Settings, build_member, merge, setting_names, to_json_values, validate
from mmgen.training.batches import DatasetRows
from mmgen.training.encoded import choose_examples, encode_once
from mmgen.training.loop import Resume, TrainingResult
from mmgen.training.pairing import make_training_rows
from mmgen.training.settings import TrainingSettings
from mmgen.training.stage import Stage, TaskParts, load_trained, run_stage
from mmgen.training.task import ModelTask
from mmgen.training.weights import initialisation_settings, load_start_weights, set_first_weights

_DEFAULT_MODEL = "multimodal-vae"
"""The kind of model of settings without a name, as of presets."""


class ExperimentSettings(Settings):
    """All settings that determine a trained model, in four tables: data, model, objective and training."""

    model: SerializeAsAny[ModelSettings] = Field(default_factory=MultimodalSettings)
    """The kind of model by name, and its own settings; see :func:`read_experiment`."""
    objective: dict[str, Any] = Field(default_factory=lambda: {"name": "elbo"})
    """The objective by name, and its own settings."""
    data: DataSettings = Field(default_factory=DataSettings)
    training: TrainingSettings = Field(default_factory=TrainingSettings)

    def build_objective(self) -> Objective:
        """Build the objective from its settings."""
        objective: Objective = build_member(mmgen.objectives, self.objective, "objective", setting_names(type(self)))
        return objective

    @property
    def modalities(self) -> dict[str, Description]:
        """Specifications of the modalities that the objective uses, by name."""
        used = self.build_objective().demands.modalities
        return {name: each for name, each in self.data.modalities.items() if name in used}


@cache
def _settings_class(name: str) -> type[ExperimentSettings]:
    """Return the class of settings for one kind of model."""
    member: type[ModelSettings] = mmgen.models.get(name).settings
    # Annotated as it is declared: a model of any other kind would be cut down to what all have.
    return create_model(
        "ExperimentSettings",
        __base__=ExperimentSettings,
        model=(SerializeAsAny[member], Field(default_factory=member)),  # type: ignore[valid-type, misc]  # a type that is known when the program runs
    )


def read_experiment(values: Mapping[str, Any]) -> ExperimentSettings:
    """Return checked settings of an experiment; ``model.name`` chooses the kind of model, by default multimodal-vae.

    Raises:
        UsageError: There is no such kind of model.
        SettingsError: Some keys or values are wrong; the message names all of them.
    """
    model = values.get("model")
    name = model.get("name", _DEFAULT_MODEL) if isinstance(model, Mapping) else _DEFAULT_MODEL
    if not isinstance(name, str):
        raise SettingsError(f"setting 'model.name' got {name!r}, expected one of {', '.join(mmgen.models.names())}")
    return validate(_settings_class(name), values, further_names=_objective_setting_names(values.get("objective")))


def _objective_setting_names(objective: Any) -> list[str]:
    """Return the names of the objective's settings, with dots between nested ones."""
    name = objective.get("name") if isinstance(objective, Mapping) else None
    if name not in mmgen.objectives.names():
        return []
    return setting_names(mmgen.objectives.get(str(name)), "objective")


def complete_settings(values: dict[str, Any], dataset: Dataset) -> ExperimentSettings:
    """Return checked settings with all values filled in that follow from the dataset and the objective.

    Raises:
        SettingsError: Some keys or values are wrong; the message names all of them.
    """
    # Settings of an objective without its name are those of the default one.
    settings = read_experiment(merge({"objective": {"name": "elbo"}}, values))
    settings = settings.model_copy(update={"objective": _captions_for_attributes(settings, dataset)})
    objective = settings.build_objective().for_data(dataset.modalities)
    name = settings.objective["name"]
    data_settings = settings.data.model_dump(exclude={"modalities"})
    if "split" not in settings.data.model_fields_set and settings.data.split not in dataset.schemes:
        data_settings["split"] = dataset.default_scheme or settings.data.split
    data = validate(DataSettings, {**data_settings, "modalities": dataset.modalities}, "data")
    model = mmgen.models.get(settings.model.name).complete_settings(settings.model, objective.demands, data)
    return settings.model_copy(
        update={"model": model, "objective": {"name": name, **to_json_values(objective)}, "data": data}
    )


def _captions_for_attributes(settings: ExperimentSettings, dataset: Dataset) -> dict[str, Any]:
    """Return the objective's settings with captions in place of attributes, if the data have captions only."""
    objective, defaults = settings.objective, to_json_values(settings.build_objective())
    if "attributes" in dataset.modalities or "text" not in dataset.modalities:
        return objective
    changed = dict(objective)
    if "description" in defaults and "description" not in objective:
        changed["description"] = "text"
    if "modalities" in defaults and "modalities" not in objective:
        changed["modalities"] = ["text" if name == "attributes" else name for name in defaults["modalities"]]
    return changed


def describe_unused_modalities(settings: ExperimentSettings, user_settings: Mapping[str, Any] | None = None) -> str:
    """Describe in one sentence the modalities of the dataset that the objective ignores; "" if it uses all.

    Args:
        settings: Completed settings (see :func:`complete_settings`).
        user_settings: Nested values that the user set, in contrast to those of a preset: only these are checked.

    Raises:
        SettingsError: The dataset lacks a modality that the objective needs, and others could be chosen instead; or
            the user set a weight of a modality that the objective does not generate.
    """
    data, objective, name = settings.data, settings.build_objective(), settings.objective["name"]
    used = objective.demands.modalities
    lacking = [part for part in used if part not in data.modalities]
    if lacking:
        usable = [part for part, each in data.modalities.items() if each.has_rows]
        choices: list[dict[str, Any]] = [{"observation": part} for part in data.observed]
        choices += [{"modalities": usable}, {"modalities": usable, "given": usable[:1]}]
        for choice in choices if usable else ():
            if (modalities := _used_modalities(settings.objective | choice)) and set(modalities) <= set(usable):
                chosen = " ".join(
                    f"--set {shlex.quote(f'objective.{key}={value if isinstance(value, str) else json.dumps(value)}')}"
                    for key, value in choice.items()
                )
                raise SettingsError(
                    f"{name} uses {_join_words(used)}, but the dataset holds no {lacking[0]}; use {chosen}"
                )
        return ""  # what the model says of it when it is built is enough
    _check_weights(settings, (user_settings or {}).get("objective"))
    unused = [name for name in data.modalities if name not in used]
    if not unused:
        return ""
    sentence = f"{name} uses {_join_words(used)}, and leaves out {_join_words(unused)} of this dataset"
    if not all(data.modalities[part].has_rows for part in used if part in data.modalities):
        return f"{sentence}."  # no objective here learns a graph together with other modalities
    generated = objective.demands.generates
    extended = [*generated, *(part for part in unused if part not in generated)]
    if _used_modalities(settings.objective | {"modalities": extended}):
        chosen = shlex.quote(f"objective.modalities={json.dumps(extended)}")
        advice = f"--set {chosen} takes {'it' if len(unused) == 1 else 'them'} in"
    else:
        several = [
            other
            for other in mmgen.objectives.import_all()
            if _used_modalities({"name": other, "modalities": extended})
        ]
        advice = f"{_join_words(several)} can learn from more modalities"
        described = settings.objective.get("description", unused[-1])
        if described != unused[-1] in ("attributes", "text") and not objective.demands.conditions_on:
            advice = f"--set objective.description={unused[-1]} takes {unused[-1]} instead of {described}"
    return f"{sentence}; {advice}."


def _check_weights(settings: ExperimentSettings, user_settings: Any) -> None:
    """Refuse a weight that the user set for a modality that the objective does not generate."""
    if not isinstance(user_settings, Mapping):
        return
    objective, modalities = settings.build_objective(), settings.data.modalities
    generated = objective.demands.generates
    defaults = to_json_values(mmgen.objectives.get(settings.objective["name"])())
    for name in objective.ineffective_weights({modalities[part].kind for part in generated}):
        if user_settings.get(name, defaults[name]) == defaults[name]:
            continue
        kind = name.removesuffix("_weight")
        usable = [part for part, each in modalities.items() if each.kind == kind]
        advice = f", or name {' or '.join(usable)} in objective.modalities" if usable else ""
        raise SettingsError(
            f"objective.{name} got {user_settings[name]}, but {settings.objective['name']} generates no {kind} here, "
            f"only {_join_words(generated)}; leave it out{advice}"
        )


def _used_modalities(objective: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the modalities that an objective uses; () if its settings are wrong."""
    try:
        built: Objective = build_member(mmgen.objectives, objective, "objective")
    except SettingsError:
        return ()
    return tuple(built.demands.modalities)


def _join_words(names: Sequence[str]) -> str:
    """Join names as ``image, attributes and text``."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def train_model(
    dataset_path: Path,
    settings: ExperimentSettings,
    out: Path,
    command: str = "",
    resume: Resume = "auto",
    start: Path | None = None,
) -> Work[TrainingResult]:
    """Return the work that trains a model on a split's training part and writes the best weights to ``out``.

    Args:
        dataset_path: Dataset file.
        settings: Completed settings (see :func:`complete_settings`).
        out: Checkpoint to write, kind "model".
        command: The command to record.
        resume: See :func:`mmgen.training.loop.train`.
        start: A model whose weights the run begins with (see :func:`mmgen.training.weights.settings_from_start`).

    Raises:
        SettingsError: The objective cannot be trained with these settings of the training.
        UsageError: ``out`` is the dataset or ``start``, or holds something other than a model; or ``start`` has other
            networks, data or another split.
    """
    settings.build_objective().check_run(settings.training)
    if start is not None:  # the file says what the weights began as, and those are the other model's
        settings = settings.model_copy(
            update={"model": settings.model.model_copy(update=initialisation_settings(start))}
        )

    stage = Stage(
        kind="model",
        settings=settings.model_dump(mode="json"),
        training=settings.training,
        parents={"dataset": dataset_path} | ({"start": start} if start else {}),
        build=lambda device: build_parts(dataset_path, settings, device, start),
        description=f"training {settings.objective['name']}",
        command=command,
    )
    return run_stage(stage, out, resume)


def build_parts(
    dataset_path: Path, settings: ExperimentSettings, device: torch.device, start: Path | None = None
) -> TaskParts:
    """Build the task and the examples of a training; first weights are drawn from torch's global generator.

    Arguments and errors are those of :func:`train_model`.
    """
    objective, split = settings.build_objective(), settings.data.split
    used = objective.demands.modalities
    asked = networks_of_settings(settings.model_dump(mode="json", include={"model"}))
    with asked, _bounded_by(start) if start is not None else nullcontext():
        model = build_model(settings.model, objective.demands, settings.data)
    with Dataset.open(dataset_path) as dataset:
        pairs = [(one, dataset.modalities.get(name)) for name, one in settings.data.modalities.items()]
        if not all(found and wanted.is_compatible(found) for wanted, found in pairs):
            raise UsageError(f"{dataset_path} is not the dataset of these settings any more; type the command again")
        rows, validation = (DatasetRows.open_split(dataset, split, part, device, used) for part in ("train", "val"))
        run_settings = {"dataset": dataset.header.content_id}
    prepared = Preparation()
    if start is not None:
        run_settings["start"] = load_start_weights(start, model, settings.data, used, run_settings["dataset"])
        facts = read_header(start).facts
        prepared = Preparation({name: facts[name] for name in model.lasting_facts if name in facts})
    else:
        set_first_weights(model, settings.model, rows)
        if len(rows) and len(validation):
            prepared = model.prepare(settings.model, choose_examples(rows), choose_examples(validation))
    learnt = make_training_rows(rows, objective, settings.data, settings.training.seed)
    decay = settings.model.l2_attributes_decoder
    with networks_of_settings(settings.model_dump(mode="json", include={"objective"})):
        task = ModelTask(model, objective.for_training_size(len(learnt)), decay, settings.data.modalities)
    return TaskParts(
        task,
        encode_once(learnt, model, settings.data),
        encode_once(validation, model, settings.data),
        {**run_settings, **prepared.run_settings},
        facts=prepared.facts,
        note=prepared.note,
    )


def _bounded_by(start: Path) -> AbstractContextManager[None]:
    """Return a block in which no networks are built that are far larger than those of the model at ``start``."""
    shapes = [tensor.shape for tensor in read_tensor_table(start).tensors.values()]
    return bounded_networks(sum(map(math.prod, shapes)), f"--from got {start}, whose", "; name another model")


def check_data(dataset: Dataset, path: Path, *described: Description | None) -> None:
    """Refuse a dataset that differs in one of the modalities which the model or fit at ``path`` was made for.

    Raises:
        UsageError: It lacks one, or has one of other words, another shape, or grey where all was black and white.
    """
    for wanted in described:
        if wanted is None:
            continue
        found = dataset.modalities.get(wanted.name)
        if found is None or not wanted.is_compatible(found):
            raise UsageError(
                f"dataset {dataset.path} does not have the {wanted.name} that {path} was trained with; "
                "give the model's own dataset, or one of the same recipe"
            )
        if (
            isinstance(wanted, ImageDescription)
            and isinstance(found, ImageDescription)
            and not wanted.has_density_for(found)
        ):
            raise UsageError(
                f"dataset {dataset.path} has grey levels in {wanted.name}, expected black and white, which {path} was "
                "trained with; give a dataset that was made so"
            )


def load_model(path: Path, device: torch.device | str = "cpu") -> tuple[Header, ExperimentSettings, Model]:
    """Load a trained model for evaluation, with its header and settings.

    Raises:
        ArtifactError: The file is no model checkpoint, or its tensors do not fit its settings.
    """

    def build(header: Header, tensors: Mapping[str, Tensor]) -> tuple[ExperimentSettings, Model]:
        settings = read_experiment(header.settings)
        return settings, build_model(settings.model, settings.build_objective().demands, settings.data)

    return load_trained(path, "model", build, device)
