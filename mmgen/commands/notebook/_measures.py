"""Judges and scores."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mmgen.artifacts import check_nothing_lost, check_output
from mmgen.classifier import Accuracy, train_classifier as work_of_judge
from mmgen.commands._watching import watching
from mmgen.commands.notebook._typed import File, Settings, command_of, mode_of, optional, path_of
from mmgen.commands.workflow import measure, plan_judge
from mmgen.core.markup import facts_table
from mmgen.core.progress import Watch
from mmgen.evaluation import EvaluationSettings, scores_beside, write_scores
from mmgen.generation.tilt import AnyTilt, tilts
from mmgen.results.score import Scores
from mmgen.settings.arguments import checked, unknown_argument
from mmgen.settings.config import merge, nested
from mmgen.settings.kinds import FilePath, Seed

__all__ = ["Judge", "evaluate", "train_classifier"]


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


@checked
def train_classifier(
    dataset: File,
    output: FilePath | None = None,
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
    seed: Seed = 0,
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
        settings: Any settings, as ``{"training.log_to": ["tensorboard"]}`` or nested, over everything else.
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
    path = path_of(dataset)
    chosen, out = plan_judge(
        path, optional(output), network=network, told=told, training=training, others=others,
        assignments=assignments,
    )  # fmt: skip
    typed = {"--network": network, "--told": None if told is None else ",".join(told) or "nothing", "-o": out}
    said = merge(nested({"training": {k: v for k, v in training.items() if v is not None}, **others}), assignments)
    command = command_of(["train-classifier", path], typed, said)
    accuracy = watching(progress).follow(work_of_judge(path, out, chosen, command, mode_of(resume, overwrite)))
    return Judge(out, accuracy)


@checked
def evaluate(
    model: File,
    metric: str | Sequence[str] = (),
    output: FilePath | None = None,
    *,
    posterior: str | Sequence[str] = (),
    guidance: AnyTilt | Sequence[AnyTilt] = 0.0,
    given_count: Sequence[int] | None = None,
    judge: FilePath | Judge | Sequence[FilePath | Judge] | None = None,
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
        metric: Names; correctness by default, and coverage and recall where attributes are given; retrieval where
            there are only captions.
        output: JSON lines of the scores; NAME-scores.jsonl beside the model by default.
        posterior: Where z comes from: prior, own, true, aggregate or scan.
        guidance: Weight of guidance, or several; "3:balanced" keeps the shares of attributes that are left out.
        given_count: Numbers of attributes that queries give.
        judge: Classifier, or several, which look at the same pictures; found by itself if near.
        dataset: Dataset; found by itself if near.
        text_proposal: A q(z | y) fitted to the same model, that log p(y) is drawn from as well.
        device: Where to compute.
        overwrite: Replace the scores that are there.
        progress: Whether a notebook shows progress; or who watches.
        settings: What ``mmgen eval`` takes besides, such as ``draws=24, dropped=[0, 1], part="test", seed=0``.

    Raises:
        UsageError: Something cannot be asked of this model, or scores are there already.
    """
    for name in settings:
        if name not in EvaluationSettings.model_fields:
            raise unknown_argument(evaluate, name, EvaluationSettings.model_fields)
    path = path_of(model)
    kept = optional(output) or scores_beside(path)
    check_output(kept, None, path)
    check_nothing_lost(kept, overwrite)
    scores = measure(
        path, watching(progress), metrics=_several(metric), posteriors=_several(posterior),
        weights=tilts(guidance), values=settings, given_count=given_count,
        judges=_judges(judge), dataset=optional(dataset),
        text_proposal=optional(text_proposal), device=device,
    )  # fmt: skip
    write_scores(kept, scores)
    return Scores(scores, kept)


def _judges(judge: "str | Path | Judge | Sequence[str | Path | Judge] | None") -> list[Path]:
    each = [judge] if isinstance(judge, str | Path | Judge) else list(judge or ())
    return [one.path if isinstance(one, Judge) else path_of(one) for one in each]


def _several(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
