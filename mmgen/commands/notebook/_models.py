"""Models, and what is fitted to them."""

from mmgen.commands.notebook._typed import File, Settings, command_of, mode_of, optional, path_of
from mmgen.commands.notebook._watching import watching
from mmgen.commands.workflow import plan_fit, plan_training
from mmgen.core.progress import Watch
from mmgen.generation.loading import TrainedModel, load
from mmgen.settings.arguments import FilePath, Seed, checked
from mmgen.settings.config import merge, nested

__all__ = ["fit_aggregate", "train"]


@checked
def train(
    dataset: File,
    output: FilePath | None = None,
    *,
    preset: str | None = None,
    config: FilePath | None = None,
    objective: str | None = None,
    start: File | None = None,
    split: str | None = None,
    paired: float | None = None,
    steps: int | None = None,
    minutes: float | None = None,
    batch: int | None = None,
    learning_rate: float | None = None,
    device: str | None = None,
    precision: str | None = None,
    seed: Seed | None = None,
    settings: Settings | None = None,
    resume: bool = False,
    overwrite: bool = False,
    keep_state: bool = False,
    progress: bool | Watch = True,
) -> TrainedModel:
    """Train a model on a dataset: ``mmgen train``; called again, it goes on where it was, or finds that it is done.

    Args:
        dataset: Dataset file.
        output: The model to make; named after dataset and preset or objective by default.
        preset: Settings of a published experiment.
        config: A TOML file of settings, over the preset.
        objective: What is maximised.
        start: A model whose weights the run begins with (``--from``).
        split: Split scheme to train on.
        paired: Share of the examples that stay paired.
        steps: Optimiser steps.
        minutes: When to stop at the latest.
        batch: Examples per step.
        learning_rate: Step size of the optimiser.
        device: auto, cpu, cuda, cuda:1.
        precision: auto, bf16-mixed or 32-true.
        seed: All randomness comes from this number.
        settings: Any settings, as ``{"objective.beta": 0.5}`` or nested, over everything else.
        resume: Insist on continuing a saved run.
        overwrite: Begin anew even if a run was saved.
        keep_state: Keep what more steps need after the last one.
        progress: Whether a notebook shows progress; or who watches.

    Returns:
        The trained model, on the CPU.

    Raises:
        SettingsError: Names all wrong keys and values.
    """
    options = {
        "training.steps": steps, "training.minutes": minutes, "training.batch": batch,
        "training.learning_rate": learning_rate, "training.device": device, "training.precision": precision,
        "training.seed": seed, "data.split": split, "data.paired": paired,
    }  # fmt: skip
    watch, assignments = watching(progress), nested(settings or {})
    plan = plan_training(
        path_of(dataset), optional(output), watch, preset=preset, config=optional(config),
        objective=objective, options={**options, "training.keep_state": keep_state or None}, assignments=assignments,
        start=optional(start),
    )  # fmt: skip
    typed = {"--preset": preset, "--config": config, "--objective": objective, "--from": optional(start)}
    said = merge(nested({key: value for key, value in options.items() if value is not None}), assignments)
    command = command_of(["train", plan.dataset], {**typed, "-o": plan.out}, said)
    plan.run(command, mode_of(resume, overwrite), watch)
    return load(plan.out)


@checked
def fit_aggregate(
    model: File,
    output: FilePath | None = None,
    *,
    given: str | None = None,
    target: str = "aggregate",
    text_weight: float | str | None = None,
    guidance: float | None = None,
    base: File | None = None,
    family: str | None = None,
    layers: str | None = None,
    examples: int | None = None,
    steps: int | None = None,
    batch: int | None = None,
    learning_rate: float | None = None,
    precision: str | None = None,
    device: str = "auto",
    seed: Seed = 0,
    settings: Settings | None = None,
    dataset: File | None = None,
    latents: FilePath | None = None,
    resume: bool = False,
    overwrite: bool = False,
    keep_state: bool = False,
    progress: bool | Watch = True,
) -> TrainedModel:
    """Learn the aggregate posterior q(z | description) of a trained model: ``mmgen fit-aggregate``.

    Args:
        model: The model.
        output: The aggregate to make; named after the model and what is fitted by default.
        given: attributes, text or nothing; text if the model generates it, else attributes, by default.
        target: aggregate, or true: p(words | z)^W p(z).
        text_weight: W of target true: a number, or "training".
        guidance: Weight that target aggregate is tilted by.
        base: With guidance, the fitted q_agg to start from (``--from``).
        family: What is fitted; realnvp by default.
        layers: Which layers of z, of a model with several: all or top.
        examples: Training examples to encode at most.
        steps: Optimiser steps.
        batch: Encodings per step.
        learning_rate: Step size of the optimiser.
        precision: Arithmetic of the encoder.
        device: Where to compute.
        seed: All randomness comes from this number.
        settings: Any settings, as ``{"training.batch": 256}`` or nested, over everything else.
        dataset: The model's dataset, if it is not found by itself.
        latents: Where encodings are cached.
        resume: Insist on continuing a saved run.
        overwrite: Begin anew even if a run was saved.
        keep_state: Keep what more steps need after the last one.
        progress: Whether a notebook shows progress; or who watches.

    Returns:
        The aggregate with its model, on the CPU.

    Raises:
        SettingsError: Names all wrong keys and values.
    """
    watch, assignments = watching(progress), nested(settings or {})
    asked = {
        "target": target, "given": given, "examples": examples, "guidance": guidance, "layers": layers,
        "text_weight": None if text_weight is None else str(text_weight),
    }  # fmt: skip
    training = {
        "device": device, "seed": seed, "steps": steps, "batch": batch, "learning_rate": learning_rate,
        "precision": precision,
    }  # fmt: skip
    plan = plan_fit(
        path_of(model), optional(output), aggregate=asked, training={**training, "keep_state": keep_state},
        family=family, base=optional(base), assignments=assignments, dataset=optional(dataset),
        latents=optional(latents),
    )  # fmt: skip
    typed: dict[str, object] = {
        f"--{name.replace('_', '-')}": value for name, value in {**asked, "family": family}.items()
    }
    typed |= {"--from": plan.base, "--dataset": plan.dataset, "--latents": plan.latents, "-o": plan.out}
    said = merge(nested({"training": {k: v for k, v in training.items() if v is not None}}), assignments)
    plan.run(command_of(["fit-aggregate", plan.model], typed, said), mode_of(resume, overwrite), watch)
    return load(plan.out)
