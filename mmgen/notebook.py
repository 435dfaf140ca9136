"""The stages as functions, for notebooks and scripts: ``mmgen.train(...)`` makes the file that ``mmgen train`` makes.

Each takes paths, or what another one returned, and settings by the names that they have on the command line; it returns
something to go on with that knows its ``path``. In a notebook progress is shown; elsewhere nothing is printed.
"""

import json
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, TypeVar

from mmgen.artifacts import Dataset, check_nothing_lost, check_output, read_header
from mmgen.classifier._accuracy import Accuracy
from mmgen.classifier._training import train_classifier as work_of_judge
from mmgen.config import merge, nested, validate
from mmgen.errors import UsageError
from mmgen.figures.drawing.page import Grid
from mmgen.figures.drawing.samples import sample_grid
from mmgen.generation.asked import draw_asked
from mmgen.generation.descriptions import as_words
from mmgen.generation.judge import sees_samples
from mmgen.loading import TrainedModel, load
from mmgen.markup import facts_table
from mmgen.progress import Progress, Watch, Work
from mmgen.registry import registry_of
from mmgen.score import Scores
from mmgen.switches import Positional, Switches
from mmgen.workflow import measure, plan_fit, plan_judge, plan_training, scores_beside, write_scores

__all__ = ["Judge", "evaluate", "fit_aggregate", "make_data", "sample", "train", "train_classifier"]

T = TypeVar("T")

File = str | Path | Dataset | TrainedModel
Settings = Mapping[str, Any]

_RECIPES = "mmgen.data_recipes"  # the floor above: found by name, as members from outside are
_PAUSE = 0.2  # seconds between looks of a progress bar


class _Bar:
    """How far some work is, as a notebook shows it."""

    def __init__(self, work: Work[Any]) -> None:
        self._work, self._now, self._began = work, Progress(0), time.monotonic()

    def at(self, now: Progress) -> "_Bar":
        """The same bar, further on."""
        self._now = now
        return self

    def __repr__(self) -> str:
        figures = "".join(f", {name} {value:,.4g}" for name, value in self._now.values.items())
        seconds = time.monotonic() - self._began
        return f"{self._work.description}: {self._now.done:,} of {self._work.total:,}, {seconds:.0f} s{figures}"

    def _repr_html_(self) -> str:
        bar = f'<progress value="{self._now.done}" max="{self._work.total}"></progress>'
        return f"{bar} {escape(repr(self))}"


class _Shown(Watch):
    """Sentences and progress bars among a notebook's output."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display

    def say(self, text: str) -> None:
        self._display({"text/plain": text}, raw=True)

    def follow(self, work: Work[T]) -> T:
        bar, last = _Bar(work), time.monotonic()
        handle = self._display(bar, display_id=True)
        now = Progress(0)
        for now in work:
            if time.monotonic() - last >= _PAUSE:
                last = time.monotonic()
                handle.update(bar.at(now))
        handle.update(bar.at(Progress(work.total, now.values)))
        return work.result


def watch_here() -> Watch:
    """Whoever shows progress in a notebook; silence elsewhere."""
    interactive = sys.modules.get("IPython")  # a notebook has loaded it, and nobody else needs it
    shell = interactive.get_ipython() if interactive is not None else None
    if interactive is None or shell is None or not hasattr(shell, "kernel"):
        return Watch()
    return _Shown(interactive.display.display)


def _watch(progress: bool | Watch) -> Watch:
    if isinstance(progress, Watch):
        return progress
    return watch_here() if progress else Watch()


def _path(file: File) -> Path:
    return Path(file) if isinstance(file, str | Path) else file.path


def _optional(file: File | None) -> Path | None:
    return None if file is None else _path(file)


def _mode(resume: bool, overwrite: bool) -> str:
    if resume and overwrite:
        raise UsageError("resume and overwrite got both, expected one of them: continue the saved run or begin anew")
    return "require" if resume else "never" if overwrite else "auto"


def _command(words: Sequence[object], options: Mapping[str, object], settings: Settings) -> str:
    """The command that makes the same file."""
    typed = ["mmgen", *map(str, words)]
    for name, value in options.items():
        if value is not None:
            typed += [name, str(value)]
    for name, value in _flat(settings):
        typed += ["--set", f"{name}={json.dumps(value)}"]
    return shlex.join(typed)


def _flat(values: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{before}{key}.")
        elif value is not None:
            found.append((f"{before}{key}", str(value) if isinstance(value, Path) else value))
    return found


def make_data(
    recipe: str,
    output: str | Path | None = None,
    *,
    seed: int = 0,
    workers: int | str | None = None,
    overwrite: bool = False,
    progress: bool | Watch = True,
    **settings: Any,
) -> Dataset:
    """Make a dataset file from a recipe, or open the one that the same settings have made.

    Args:
        recipe: One of ``mmgen list recipe``.
        output: Where to write; RECIPE.h5 by default.
        seed: All randomness comes from this number.
        workers: Processes, all cores by default; or the address of a Dask scheduler.
        overwrite: Replace what is there.
        progress: Whether a notebook shows progress; or who watches.
        settings: Settings of the recipe; its switches are true or false.

    Returns:
        The dataset, open.

    Raises:
        UsageError: There is no such recipe, or another dataset is there.
    """
    room = registry_of(_RECIPES)
    schema: Any = room.get(recipe)
    settings = _switched(schema, settings)
    chosen: Any = validate(schema, settings)
    path = Path(output) if output is not None else Path(f"{recipe}.h5")
    check_output(path, "dataset")
    fields = schema.model_fields.items()
    placed = [name for name, field in fields if any(isinstance(one, Positional) for one in field.metadata)]
    words = [settings[name] for name in placed if name in settings]
    named = {name: value for name, value in settings.items() if name not in placed}
    command = _command(["make-data", recipe, *words], {"--seed": seed, "-o": path}, named)
    if not overwrite and path.exists() and path.stat().st_size:
        header = read_header(path)
        made_of_files = any(isinstance(value, Path) for _, value in chosen)  # which may have changed
        if (header.command, header.seed) == (command, seed) and not made_of_files:
            return Dataset.open(path)
    check_nothing_lost(path, overwrite)
    watch = _watch(progress)
    preparing = chosen.prepare()
    if preparing is not None:
        watch.follow(preparing)
    surveying = chosen.survey(seed, workers)
    for line in watch.follow(surveying) if surveying is not None else ():
        watch.say(line)
    made: Path = watch.follow(chosen.make(path, seed=seed, workers=workers, command=command))
    return Dataset.open(made)


def _switched(schema: Any, settings: Settings) -> dict[str, Any]:
    """Settings with switches of the command line, such as ``grey=True``, as the fields that they stand for."""
    found = dict(settings)
    for name, field in schema.model_fields.items():
        for switch in (
            one for switches in field.metadata if isinstance(switches, Switches) for one in switches.members
        ):
            if found.pop(switch.name.removeprefix("--").replace("-", "_"), False) is True:
                found[name] = switch.value
    return found


def train(
    dataset: File,
    output: str | Path | None = None,
    *,
    preset: str | None = None,
    config: str | Path | None = None,
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
    seed: int | None = None,
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
    watch, assignments = _watch(progress), nested(settings or {})
    plan = plan_training(
        _path(dataset), _optional_path(output), watch, preset=preset, config=_optional_path(config),
        objective=objective, options={**options, "training.keep_state": keep_state or None}, assignments=assignments,
        start=_optional(start),
    )  # fmt: skip
    typed = {"--preset": preset, "--config": config, "--objective": objective, "--from": _optional(start)}
    said = merge(nested({key: value for key, value in options.items() if value is not None}), assignments)
    command = _command(["train", plan.dataset], {**typed, "-o": plan.out}, said)
    plan.run(command, _mode(resume, overwrite), watch)
    return load(plan.out)


def _optional_path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)


def fit_aggregate(
    model: File,
    output: str | Path | None = None,
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
    seed: int = 0,
    settings: Settings | None = None,
    dataset: File | None = None,
    latents: str | Path | None = None,
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
    watch, assignments = _watch(progress), nested(settings or {})
    asked = {
        "target": target, "given": given, "examples": examples, "guidance": guidance, "layers": layers,
        "text_weight": None if text_weight is None else str(text_weight),
    }  # fmt: skip
    training = {
        "device": device, "seed": seed, "steps": steps, "batch": batch, "learning_rate": learning_rate,
        "precision": precision,
    }  # fmt: skip
    plan = plan_fit(
        _path(model), _optional_path(output), aggregate=asked, training={**training, "keep_state": keep_state},
        family=family, base=_optional(base), assignments=assignments, dataset=_optional(dataset),
        latents=_optional_path(latents),
    )  # fmt: skip
    typed: dict[str, object] = {
        f"--{name.replace('_', '-')}": value for name, value in {**asked, "family": family}.items()
    }
    typed |= {"--from": plan.base, "--dataset": plan.dataset, "--latents": plan.latents, "-o": plan.out}
    said = merge(nested({"training": {k: v for k, v in training.items() if v is not None}}), assignments)
    plan.run(_command(["fit-aggregate", plan.model], typed, said), _mode(resume, overwrite), watch)
    return load(plan.out)


class Judge:
    """A trained judge: its file, and how often it is right on images that it has not seen.

    Attributes:
        path: Its file.
        accuracy: Percent by attribute and "mean", with errors and counts.
    """

    def __init__(self, path: Path, accuracy: Accuracy) -> None:
        self.path, self.accuracy = path, accuracy

    def _told(self) -> list[tuple[str, str]]:
        errors = self.accuracy.stderr
        return [(name, f"{value:.1f} ± {errors[name]:.1f} %") for name, value in self.accuracy.percent.items()]

    def __repr__(self) -> str:
        return f"<judge {self.path}: {', '.join(f'{name} {value}' for name, value in self._told())}>"

    def _repr_html_(self) -> str:
        return facts_table(f"judge {self.path}", self._told())


def train_classifier(
    dataset: File,
    output: str | Path | None = None,
    *,
    network: str = "auto",
    told: Sequence[str] | None = None,
    split: str = "",
    augment: bool = True,
    steps: int | None = None,
    minutes: float | None = None,
    batch: int | None = None,
    learning_rate: float | None = None,
    held_out: int = 10_000,
    device: str = "auto",
    precision: str = "auto",
    seed: int = 0,
    settings: Settings | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool | Watch = True,
) -> Judge:
    """Train a judge, which says which attributes a picture shows: ``mmgen train-classifier``.

    Args:
        dataset: Dataset file.
        output: The judge to make; named after the dataset by default.
        network: One of ``mmgen list judge``, or auto.
        told: Attributes that it is told, not asked.
        split: Split scheme; the dataset's own by default.
        augment: Whether to reword and mirror descriptions of two objects, and move their pictures.
        steps: Optimiser steps.
        minutes: When to stop at the latest.
        batch: Examples per step.
        learning_rate: Step size of the optimiser.
        held_out: Test images for its accuracy.
        device: Where to compute.
        precision: auto, 32-true or bf16-mixed.
        seed: All randomness comes from this number.
        settings: Any settings, as ``{"training.tensorboard": True}`` or nested, over everything else.
        resume: Insist on continuing a saved run.
        overwrite: Begin anew even if a run was saved.
        progress: Whether a notebook shows progress; or who watches.

    Raises:
        SettingsError: Names all wrong keys and values.
    """
    assignments = nested(settings or {})
    training = {
        "steps": steps, "minutes": minutes, "batch": batch, "learning_rate": learning_rate, "device": device,
        "precision": precision, "seed": seed,
    }  # fmt: skip
    others = {"augment": augment, "split": split, "held_out": held_out}
    path = _path(dataset)
    chosen, out = plan_judge(
        path, _optional_path(output), network=network, told=told, training=training, others=others,
        assignments=assignments,
    )  # fmt: skip
    typed = {"--network": network, "--told": None if told is None else ",".join(told) or "nothing", "-o": out}
    said = merge(nested({"training": {k: v for k, v in training.items() if v is not None}, **others}), assignments)
    command = _command(["train-classifier", path], typed, said)
    accuracy = _watch(progress).follow(work_of_judge(path, out, chosen, command, _mode(resume, overwrite)))
    return Judge(out, accuracy)


def evaluate(
    model: File,
    metric: str | Sequence[str] = (),
    output: str | Path | None = None,
    *,
    posterior: str | Sequence[str] = (),
    guidance: float | Sequence[float] = 0.0,
    given_count: Sequence[int] | None = None,
    judge: "str | Path | Judge | None" = None,
    dataset: File | None = None,
    text_proposal: File | None = None,
    device: str = "auto",
    overwrite: bool = False,
    progress: bool | Watch = True,
    **settings: Any,
) -> Scores:
    """Measure how good a model or an aggregate is: ``mmgen eval``; the same seed, the same scores.

    Args:
        model: The model or aggregate.
        metric: Names; correctness by default, and coverage where attributes are given.
        output: JSON lines of the scores; NAME-scores.jsonl beside the model by default.
        posterior: Where z comes from: prior, own, true or aggregate.
        guidance: Weight of guidance, or several.
        given_count: Numbers of attributes that queries give.
        judge: Classifier; found by itself if near.
        dataset: Dataset; found by itself if near.
        text_proposal: A q(z | y) fitted to the same model, that log p(y) is drawn from as well.
        device: Where to compute.
        overwrite: Replace the scores that are there.
        progress: Whether a notebook shows progress; or who watches.
        settings: What ``mmgen eval`` takes besides, such as ``draws=24, queries=1000, part="test", seed=0``.

    Raises:
        UsageError: Something cannot be asked of this model, or scores are there already.
    """
    path = _path(model)
    kept = _optional_path(output) or scores_beside(path)
    check_output(kept, None, path)
    check_nothing_lost(kept, overwrite)
    scores = measure(
        path, _watch(progress), metrics=_several(metric), posteriors=_several(posterior),
        weights=guidance if isinstance(guidance, Sequence) else [guidance], values=settings, given_count=given_count,
        judge=judge.path if isinstance(judge, Judge) else _optional_path(judge), dataset=_optional(dataset),
        text_proposal=_optional(text_proposal), device=device,
    )  # fmt: skip
    write_scores(kept, scores)
    return Scores(scores, kept)


def _several(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def sample(
    model: File,
    given: str | Mapping[str, str] | Sequence[str] = "",
    n: int = 16,
    output: str | Path | None = None,
    *,
    posterior: str | None = None,
    guidance: float = 0.0,
    mean: bool = True,
    judge: "str | Path | Judge | None" = None,
    device: str = "auto",
    seed: int = 0,
    progress: bool | Watch = True,
) -> Grid:
    """Draw pictures for descriptions, framed where the judge reads them differently: ``mmgen sample``.

    For the pictures as numbers use ``mmgen.load(model).sample(...)``.

    Args:
        model: The model or aggregate.
        given: A description, or several.
        n: Pictures of each.
        output: Also write it there, .png.
        posterior: Where z comes from; what was fitted, else the model's own, by default.
        guidance: How literally the words are taken.
        mean: Show means of p(image | z), or draws from it.
        judge: Who looks at the pictures; found beside the model.
        device: Where to compute.
        seed: Seed of the draws.
        progress: Whether a notebook is told what the judge says; or who is.

    Returns:
        A picture that a notebook shows and that ``save`` writes.

    Raises:
        UsageError: The model does not know the words, or has no such posterior.
    """
    loaded = model if isinstance(model, TrainedModel) else load(_path(model), device)
    loaded = loaded.guided(guidance, seed)
    words = [as_words(given)] if isinstance(given, str | Mapping) else [as_words(one) for one in given]
    named = judge.path if isinstance(judge, Judge) else _optional_path(judge)
    out = _optional_path(output)
    drawn, _, judging = draw_asked(
        loaded, words, n, _watch(progress), posterior=posterior, judge=named, near=out, seed=seed
    )
    picture: Grid = sample_grid(
        drawn, loaded.attributes, text=loaded.text, sampled=not mean, judged_samples=sees_samples(loaded),
        accuracy=judging.accuracy if judging else None,
    )  # fmt: skip
    if out is not None:
        check_output(out, None, loaded.path)
        picture.save(out)
    return picture
