"""Models, and what is fitted to them."""

from mmgen.commands._watching import watching
from mmgen.commands.notebook._typed import File, Settings, command_of, mode_of, optional, path_of
from mmgen.commands.workflow import plan_fit
from mmgen.core.progress import Watch
from mmgen.generation.loading import TrainedModel, load
from mmgen.settings.arguments import checked
from mmgen.settings.config import merge, nested
from mmgen.settings.kinds import FilePath, Seed

__all__ = ["fit_aggregate"]


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
