"""Fitting a density over z to a trained model, and loading a fitted one."""

from collections.abc import Generator, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mmgen.artifacts import Dataset, Header, Latents, check_output, read_header, require_kind
from mmgen.core.errors import ArtifactError, DataError, SettingsError, UsageError
from mmgen.core.memory import networks_of_settings
from mmgen.core.progress import Progress, Work
from mmgen.latent.space import LatentSpace
from mmgen.models import Model
from mmgen.posteriors._aggregate import Aggregate, Layers
from mmgen.posteriors._base import FitParts, given_names
from mmgen.posteriors._completions import distinct_descriptions
from mmgen.posteriors._described_examples import (
    check_described,
    examples_described_in_training,
    needs_descriptions,
    training_positions,
)
from mmgen.posteriors._encode import Encoding, LatentRows, encode, posterior_to_aggregate, split_rows
from mmgen.posteriors._settings import FitSettings
from mmgen.settings.config import validate
from mmgen.training.devices import make_fabric
from mmgen.training.loop import Resume, TrainingResult
from mmgen.training.model_run import check_data, load_model, read_experiment
from mmgen.training.precision import resolve_precision
from mmgen.training.stage import Stage, TaskParts, load_trained, run_stage
from mmgen.training.state import is_finished, state_path

_KEPT = (np.uint8, np.int64)
"""Types of the training descriptions and their counts in the file of a fit."""


def fit_aggregate(
    model_path: Path,
    dataset_path: Path,
    settings: FitSettings,
    out: Path,
    latents_path: Path | None = None,
    command: str = "",
    resume: Resume = "auto",
    base_path: Path | None = None,
) -> tuple[Work[Latents], Work[TrainingResult]]:
    """Return two works to run in order: one encodes the examples, the other fits a density to their encodings.

    Args:
        model_path: Model checkpoint.
        dataset_path: The dataset that it was trained on, or a similar one.
        settings: Completed settings.
        out: Checkpoint to write, kind "aggregate".
        latents_path: File for the encodings; by default beside the model.
        command: The command to record.
        resume: See :func:`mmgen.training.loop.train`.
        base_path: The fit to the same model that this one starts from, see :attr:`FitSettings.base`; it must exist
            when the second piece of work begins.

    Raises:
        UsageError: The dataset has other modalities than the model's, or a file would be written over something else.
    """
    if (base_path is not None) != (settings.base is not None):
        raise UsageError(
            "guided fits and SCAN with operators need --from, the fit to start from, and no others take it; "
            "give it with those, or leave it out"
        )
    target = settings.build_target()
    fabric = make_fabric(settings.training)
    header, trained, model = load_model(model_path, fabric.device)
    opened = {"model": header}
    inputs = posterior_to_aggregate(trained)
    data = trained.data
    with Dataset.open(dataset_path) as dataset:
        opened["dataset"] = dataset.header
        input_descriptions = [data.modalities[name] for name in inputs]
        observed = [name for name in given_names(settings.aggregate.given or "") if name in data.observed]
        read = [data.observed[name] for name in observed]
        check_data(dataset, model_path, data.attributes, data.text, *input_descriptions, *read)
        described_examples = examples_described_in_training(trained, dataset)
    _check_model(model, model_path, settings.aggregate.layers)
    check_described(described_examples, settings, needs_descriptions(data, inputs, described_examples))
    target.check(model, settings.aggregate.given or "attributes", settings.aggregate.layers)
    fitted = model.latent.of_layer(model.latent.top) if settings.aggregate.layers == "top" else model.latent
    asked = networks_of_settings(settings.model_dump(mode="json", include={"aggregate": {"family", "text_network"}}))
    with torch.random.fork_rng(devices=[]), asked:  # refuses what does not fit z or memory before pictures are encoded
        unfitted = settings.build(fitted)
    settings.training.check_optimizer(unfitted.parameters)
    # Encodings are made once, for all fits: in full precision unless bf16 is asked for.
    chosen = settings.training.precision
    precision = resolve_precision("32-true" if chosen == "auto" else chosen, fabric.device)
    examples, seed = settings.aggregate.examples, settings.training.seed
    encoding_settings = Encoding(
        model_path, dataset_path, inputs, data.split, examples, seed, precision, data, described_examples, opened
    )
    latents_path = latents_path or encoding_settings.path()
    parents = {"model": model_path, "latents": latents_path, "dataset": dataset_path}
    parents |= {} if base_path is None else {"base": base_path}
    check_output(out, "aggregate", *parents.values())
    check_output(latents_path, "latents", *(path for role, path in parents.items() if role != "latents"))
    encoding = encode(encoding_settings, model, latents_path, fabric.device, command)

    def build(device: torch.device) -> TaskParts:
        latents = encoding.result
        with Dataset.open(dataset_path) as dataset:
            is_validation = np.isin(latents.rows, split_rows(dataset, trained.data.split, "val"))
            others = {name: dataset.read_values(name, latents.rows) for name in observed}
        aggregate = settings.build(fitted).attach_model(model)
        if (words := latents.columns.get("attributes")) is not None:
            aggregate.keep_descriptions(*distinct_descriptions(words[~is_validation]))
        aggregate.to(device)
        places = (
            training_positions(latents.rows, is_validation, settings, described_examples),
            np.flatnonzero(is_validation),
        )
        rows, validation = (
            LatentRows(latents, positions, trained.data, device, aggregate.select_layers, others)
            for positions in places
        )
        if len(rows.mean) < 2:
            raise DataError(
                f"this fit got the encodings of {len(rows.mean)} training examples, expected at least 2, "
                "since one has no spread; raise --examples, or fit to a model of more data"
            )
        if not (torch.isfinite(rows.mean).all() and torch.isfinite(rows.log_sd).all()):
            raise DataError(
                f"{latents_path} holds encodings that are not finite, since the model diverged; train it again"
            )
        aggregate.check_known(rows.batch(torch.arange(len(rows))))  # here: steps look at no value

        parent_ids, base = {"latents": latents.header.content_id}, None
        if base_path is not None:
            header, base = load_base(base_path, settings, model_path, dataset_path, device)
            base.attach_model(model)
            aggregate.load_state_dict({**aggregate.state_dict(), **base.state_dict()})
            parent_ids["base"] = header.content_id
        keep_all = settings.aggregate.keep_all
        task = target.build_task(FitParts(aggregate, base, model, keep_all, rows.mean, rows.log_sd))
        facts = {"latent_shapes": {name: list(shape) for name, shape in fitted.shapes.items()}}
        return TaskParts(task, rows, validation, parent_ids, facts=facts)

    stage = Stage(
        kind="aggregate",
        settings=settings.model_dump(mode="json"),
        training=settings.training,
        parents=parents,
        opened={role: header.content_id for role, header in opened.items()},
        build=build,
        description=f"fitting {settings.name}",
        command=command,
    )

    def work() -> Generator[Progress, None, TrainingResult]:
        fitting = run_stage(stage, out, resume, fabric)  # now that the encodings are there
        yield from fitting
        return fitting.result

    return encoding, Work(stage.description, settings.training.steps, "step", work)


def load_base(
    path: Path, settings: FitSettings, model_path: Path, dataset_path: Path, device: torch.device | str = "cpu"
) -> tuple[Header, Aggregate]:
    """Load the finished fit that another fit starts from (:attr:`FitSettings.base`), after a check that it suits.

    Raises:
        UsageError: The file is a fit of another posterior, of another model or dataset, or with other settings.
    """
    expected_settings = settings.base
    assert expected_settings is not None
    header, base_settings, base = load_aggregate(path, device)
    parents = {parent.role: parent.content_id for parent in header.parents}
    for role, file in (("model", model_path), ("dataset", dataset_path)):
        if parents.get(role) != read_header(file).content_id:
            raise UsageError(
                f"{path} was fitted to another {role} than {file}; give a {expected_settings.name} of that {role}"
            )
    if (
        base_settings.aggregate.target["name"] != expected_settings.aggregate.target["name"]
        or base_settings.base is not None
    ):
        raise UsageError(
            f"{path} is a fit {base_settings.name}, expected the fit {expected_settings.name} to start from; give that"
        )
    if (base_settings.aggregate.target, base_settings.settings_to_match) != (
        expected_settings.aggregate.target,
        expected_settings.settings_to_match,
    ):
        raise UsageError(
            f"{path} was fitted with other settings ({base_settings.family_name}, --given "
            f"{base_settings.aggregate.given}, keep_all {base_settings.aggregate.keep_all:g}), expected the family, "
            "target, condition and keep_all of the fit that starts from it; fit it again with the same settings"
        )
    return header, base


def load_aggregate(path: Path, device: torch.device | str = "cpu") -> tuple[Header, FitSettings, Aggregate]:
    """Load a fitted density for evaluation, with its header and settings.

    Raises:
        ArtifactError: The file is no fitted density, or its tensors do not fit its settings.
    """

    def build(header: Header, tensors: Mapping[str, Tensor]) -> tuple[FitSettings, Aggregate]:
        settings = validate(FitSettings, header.settings)
        aggregate = settings.build(_read_latent(header, len(tensors["shift"])))
        if "described_rows" in tensors:
            shapes = (tensors[f"described_{part}"].shape for part in ("rows", "counts"))
            aggregate.keep_descriptions(*(np.zeros(shape, kind) for shape, kind in zip(shapes, _KEPT, strict=True)))
        return settings, aggregate

    return load_trained(path, "aggregate", build, device)


def _read_latent(header: Header, size: int) -> LatentSpace:
    """Return the space of the fitted layers from a header, for a density over ``size`` dimensions."""
    shapes = {str(name): tuple(shape) for name, shape in dict(header.facts["latent_shapes"]).items()}
    numbers = [number for shape in shapes.values() for number in shape]
    positive = all(shapes.values()) and all(type(number) is int and number > 0 for number in numbers)
    if not positive or (latent := LatentSpace(shapes)).size != size:
        raise ValueError(f"latent_shapes got {shapes}, expected shapes of {size} numbers together")
    return latent


def _check_model(model: Model, path: Path, layers: Layers) -> None:
    """Refuse models whose encodings are points or hold labels, and ``--layers top`` for a model of one layer."""
    if "density" not in model.capabilities:
        raise UsageError(
            f"{path} has a deterministic encoder, whose encodings are points without a density; use a variational model"
        )
    if model.discrete_layers:
        raise UsageError(
            f"z of {path} holds discrete {' and '.join(model.latent_modalities)}, but a fitted density is continuous; "
            "use --posterior own, or a model of another kind"
        )
    if layers == "top" and (len(model.latent.layers) == 1 or model.latent.owners):
        raise UsageError(
            f"--layers got top, but z of {path} has no layer above another, expected all; leave it out, or fit to a "
            "model of such layers, such as hierarchical-vae"
        )


def is_finished_fit(path: Path, settings: FitSettings, model_path: Path, dataset_path: Path) -> bool:
    """Return True if ``path`` holds a finished fit of these settings, model and dataset that no run is continuing."""
    if not path.exists() or state_path(path).exists():
        return False
    try:
        header = require_kind(path, "aggregate")
        finished = validate(FitSettings, header.settings)
    except (ArtifactError, SettingsError):
        return False
    parents = {parent.role: parent.content_id for parent in header.parents}
    files = {"model": model_path, "dataset": dataset_path}
    has_same_parents = all(parents.get(role) == read_header(file).content_id for role, file in files.items())
    return has_same_parents and finished == settings and is_finished(header)


def describe_described_examples(model_path: Path, dataset_path: Path, settings: FitSettings) -> str:
    """Describe in one sentence how many examples with a description a fit has; "" if all have one.

    Raises:
        DataError: There are too few described examples.
    """
    model = read_experiment(read_header(model_path).settings)
    with Dataset.open(dataset_path) as dataset:
        described_examples = examples_described_in_training(model, dataset)
    return check_described(
        described_examples, settings, needs_descriptions(model.data, posterior_to_aggregate(model), described_examples)
    )
