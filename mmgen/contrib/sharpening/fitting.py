"""Training of a sharpener on the pictures of a frozen model."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mmgen.artifacts import Dataset, check_output
from mmgen.contrib.sharpening import SharpeningSettings, SharpeningTask, build_discriminator, build_sharpener
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError, format_unknown_name
from mmgen.core.progress import Work
from mmgen.generation.loading import load
from mmgen.generation.trained_model import TrainedModel
from mmgen.posteriors import drop_attributes
from mmgen.settings.config import merge, validate
from mmgen.training.batches import DatasetRows
from mmgen.training.loop import Resume, TrainingResult
from mmgen.training.model_run import check_data
from mmgen.training.stage import Stage, TaskParts, run_stage

_KEEP_ALL = 0.5
"""Share of descriptions whose attributes all stay; fits of posteriors have the same."""


def complete_sharpening_settings(values: dict[str, Any], loaded: TrainedModel) -> SharpeningSettings:
    """Return the settings of a sharpener with the model's data and the posterior filled in.

    Args:
        values: Nested settings of the user.
        loaded: Model, with a fitted posterior or without.

    Raises:
        SettingsError: Names all wrong keys and values.
        UsageError: The model has no such posterior.
    """
    conditional = loaded.model.conditional_on and loaded.fitted is None
    usual = "prior" if conditional else loaded.posteriors.default
    defaults = SharpeningSettings(posterior=usual, data=loaded.settings.data).model_dump(mode="json")
    settings = validate(SharpeningSettings, merge(defaults, values))
    if settings.posterior not in loaded.posteriors:
        raise UsageError(format_unknown_name("posterior", settings.posterior, [*loaded.posteriors]))
    return settings


def fit_sharpener(
    source_path: Path,
    dataset_path: Path,
    settings: SharpeningSettings,
    out: Path,
    command: str = "",
    resume: Resume = "auto",
) -> Work[TrainingResult]:
    """Return the work that trains a sharpener on pictures of a model, which stays as it is.

    Args:
        source_path: Model or aggregate whose pictures are sharpened.
        dataset_path: Dataset with real pictures.
        settings: Completed settings.
        out: Checkpoint to write, kind "sharpener".
        command: The command to record.
        resume: See :func:`mmgen.training.loop.train`.

    Raises:
        UsageError: The dataset has other modalities than the model's, or a file would be written over something else.
        SettingsError: The model has no pictures of grey levels or colours.
    """
    loaded = load(source_path)
    if loaded.sharpener is not None:
        raise UsageError(f"{source_path} is a sharpener already, expected a model or aggregate; give that")
    if loaded.image is not None and loaded.image.name not in loaded.model.generates:
        raise UsageError(
            f"{source_path} does not draw {loaded.image.name}, so there is nothing to sharpen; use another"
        )
    if settings.sharpener.reconstructed == 1 and settings.posterior != loaded.posteriors.default:
        raise UsageError(
            f"--posterior got {settings.posterior}, which sharpener.reconstructed=1 never draws from; leave one out"
        )
    parents = {loaded.header.kind: source_path, "model": loaded.model_path, "dataset": dataset_path}
    check_output(out, "sharpener", *parents.values())
    build_sharpener(settings)  # refuses data without such pictures before any work
    with Dataset.open(dataset_path) as dataset:
        check_data(dataset, source_path, *settings.data.modalities.values())

    def build(device: torch.device) -> TaskParts:
        model = loaded if loaded.device == device else load(source_path, str(device))
        with Dataset.open(dataset_path) as dataset:
            names = tuple(settings.data.modalities)
            rows, validation = (
                DatasetRows.open_split(dataset, settings.data.split, part, device, names) for part in ("train", "val")
            )
        task = SharpeningTask(
            build_sharpener(settings),
            build_discriminator(settings),
            settings.sharpener,
            lambda batch: _hide_words(model, batch),
            lambda batch, words: _draw_pictures(model, settings, batch, words),
        )
        contents = {"model": model.model_header.content_id, model.header.kind: model.header.content_id}
        return TaskParts(task, rows, validation, contents)

    stage = Stage(
        kind="sharpener",
        settings=settings.model_dump(mode="json"),
        training=settings.training,
        parents=parents,
        build=build,
        description="training a sharpener",
        command=command,
    )
    return run_stage(stage, out, resume)


def _hide_words(loaded: TrainedModel, batch: Batch) -> Batch:
    """Return the words of examples, with attributes hidden at random."""
    words = [part.name for part in (loaded.attributes, loaded.text) if part is not None and part.name in batch.values]
    part = Batch(*({name: values[name] for name in words} for values in (batch.values, batch.present)))
    return drop_attributes(part, loaded.attributes.name, _KEEP_ALL) if loaded.attributes is not None else part


def _draw_pictures(loaded: TrainedModel, settings: SharpeningSettings, batch: Batch, words: Batch) -> Tensor:
    """Return the model's pictures [B, C, H, W] of examples: some reconstructed, the others drawn for the words."""
    assert loaded.image is not None
    model, name = loaded.model, loaded.image.name
    q = model.posterior(batch, loaded.encoder_inputs)
    drawn = loaded.posteriors[settings.posterior].draw(words, 1, None)[0].expand(batch.size, -1)
    reconstructed = torch.rand(batch.size, 1, device=drawn.device) < settings.sharpener.reconstructed
    z = torch.where(reconstructed, q.sample(), drawn)
    return model.mean(name, z, batch if model.conditional_on else None).float()
