"""Each stage from what a person says of it to its file: the same for the command line and for notebooks.

What is said meanwhile, and how progress is shown, is up to a :class:`~mmgen.core.progress.Watch`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmgen.aggregates import (
    FitSettings,
    complete_fit_settings,
    describe_fit,
    few_candidates,
    fit_aggregate,
    is_fit,
    load_aggregate,
    load_base,
)  # fmt: skip
from mmgen.artifacts import Dataset, check_output, find_parent, read_header
from mmgen.classifier import (
    Classifier,
    ClassifierSettings,
    default_training,
    names as judge_networks,
    resolve_network,
    resolve_told,
)  # fmt: skip
from mmgen.core.errors import UsageError
from mmgen.core.progress import Watch
from mmgen.evaluation import Evaluation, EvaluationSettings
from mmgen.generation.judge import find_judge_of_dataset, load_judges, said_accuracy
from mmgen.generation.loading import TrainedModel, load
from mmgen.generation.tilt import AnyTilt, Tilt
from mmgen.metrics import (
    check_once,
    check_read,
    evaluate_by_all,
    get as metric_called,
    left_out,
    notice,
    usual_metrics,
)  # fmt: skip
from mmgen.results.naming import posterior_called
from mmgen.results.score import Score
from mmgen.settings.config import merge, validate
from mmgen.settings.registry import unknown_name
from mmgen.training.model_run import load_model
from mmgen.training.state import state_path

__all__ = ["FitPlan", "measure", "plan_fit", "plan_judge"]


@dataclass(frozen=True)
class FitPlan:
    """A fit that can begin.

    Attributes:
        model: The model that it is fitted to.
        settings: Completed settings.
        out: The aggregate to make.
        base: The fit that this one starts from, if it was named.
        dataset: The model's dataset, if it was named.
        latents: Where encodings are cached, if it was named.
    """

    model: Path
    settings: FitSettings
    out: Path
    base: Path | None = None
    dataset: Path | None = None
    latents: Path | None = None

    def check(self) -> None:
        """Refuse what :func:`mmgen.aggregates._fit.fit_aggregate` refuses before its work."""
        data = self.dataset or find_parent(self.model, "dataset")
        fit_aggregate(self.model, data, self.settings, self.out, self.latents, base_path=self._start)

    @property
    def _start(self) -> Path | None:
        """The fit that this one starts from: the one that was named, else one beside the model, missing or not."""
        if self.settings.base is None or self.base is not None:
            return self.base
        return self.model.with_name(f"{self.model.stem}-{self.settings.base.slug}.safetensors")

    def run(self, command: str, resume: str, watch: Watch) -> None:
        """Encode and fit; what a fit starts from, if it was not given, is made first, beside the model."""
        settings, data = self.settings, self.dataset or find_parent(self.model, "dataset")
        base = self._start
        before: list[tuple[FitSettings, Path, Path | None, str]] = []
        if settings.base is not None and base is not None and self.base is None:
            check_output(self.out, "aggregate", base)
            if not is_fit(base, settings.base, self.model, data):
                if resume == "auto" and base.exists() and not state_path(base).exists():
                    raise UsageError(
                        f"{base} is there already, and is no {settings.base.name} of {self.model} on {data} as this "
                        "fit starts from; give one with --from, or use --overwrite to replace it"
                    )
                # --resume asks for a state of the last fit; that of the one it starts from may have ended.
                before.append((settings.base, base, None, "auto" if resume == "require" else resume))
        if text := describe_fit(self.model, data, settings):
            watch.say(text)
        for fit, made, begun, how in [*before, (settings, self.out, base, resume)]:
            encoding, fitting = fit_aggregate(self.model, data, fit, made, self.latents, command, how, begun)
            watch.follow(encoding)
            watch.follow(fitting)
        if settings.aggregate.candidates and self.out.exists():
            text = few_candidates(read_header(self.out).facts, settings.aggregate.candidates)
            if text:
                watch.say(text)


def plan_fit(
    model: Path,
    out: Path | None,
    *,
    aggregate: Mapping[str, Any],
    training: Mapping[str, Any],
    family: str | None = None,
    base: Path | None = None,
    assignments: Mapping[str, Any] | None = None,
    dataset: Path | None = None,
    latents: Path | None = None,
) -> FitPlan:
    """Settings of a fit.

    Args:
        model: The model.
        out: The aggregate to make; named after the model and what is fitted if None.
        aggregate: Settings of the aggregate; None is not said.
        training: Settings of its training; None is not said.
        family: What is fitted; realnvp, or as ``base``, if None.
        base: The fit that this one starts from, such as the q_agg of a guided one.
        assignments: Nested values, over the others.
        dataset: The model's dataset, if it is not to be found by itself.
        latents: Where encodings are cached.

    Raises:
        SettingsError: Names all wrong keys and values.
        UsageError: ``base`` is none for this fit.
    """
    values: dict[str, Any] = {
        room: {key: value for key, value in said.items() if value is not None}
        for room, said in (("aggregate", aggregate), ("training", training))
    }
    trained = load_model(model)[1]
    if family or base is None:
        values["aggregate"]["family"] = {"name": family or "realnvp"}
    if base is not None:
        fitted = load_aggregate(base)[1].aggregate
        shape = {key: fitted.model_dump(mode="json")[key] for key in ("given", "family", "text_network", "layers")}
        values["aggregate"] = merge(shape, values["aggregate"])
    settings = complete_fit_settings(merge(values, dict(assignments or {})), trained)
    if base is not None and settings.base is None:
        raise UsageError(
            f"--from got {base}, expected nothing: only a fit with --guidance and a SCAN with operators start from one"
        )
    if base is not None:
        load_base(base, settings, model, dataset or find_parent(model, "dataset"))  # before anything slow
    out = out or model.with_name(f"{model.stem}-{settings.slug}.safetensors")
    return FitPlan(model, settings, out, base, dataset, latents)


def plan_judge(
    dataset: Path,
    out: Path | None,
    *,
    network: str = "auto",
    told: Sequence[str] | None = None,
    training: Mapping[str, Any],
    others: Mapping[str, Any],
    assignments: Mapping[str, Any] | None = None,
) -> tuple[ClassifierSettings, Path]:
    """Settings of a judge, and where it goes.

    Args:
        dataset: Dataset file.
        out: The judge to make; beside the dataset, and named after it, if None.
        network: One by name, or auto: by data and device.
        told: Attributes that it is told; None for the usual ones.
        training: Settings of its training; None is not said.
        others: Its other settings.
        assignments: Nested values, over the others.

    Raises:
        SettingsError: Names all wrong keys and values.
        UsageError: There is no such network or attribute.
    """
    if network not in ("auto", *judge_networks()):
        raise UsageError(unknown_name("judge network", network, ["auto", *judge_networks()]))
    with Dataset.open(dataset) as opened:  # a file that is no dataset is reported before any work
        tell = resolve_told(told, opened)
    chosen = resolve_network(network, str(training.get("device") or "auto"), bool(tell))
    said = {key: value for key, value in training.items() if value is not None}
    values = {"network": chosen, "told": tell, **others, "training": {**default_training(chosen), **said}}
    settings = validate(ClassifierSettings, merge(values, dict(assignments or {})))
    return settings, out or dataset.with_name(f"{dataset.stem}-judge.safetensors")


def measure(
    path: Path,
    watch: Watch,
    *,
    metrics: Sequence[str] = (),
    posteriors: Sequence[str] = (),
    weights: Sequence[AnyTilt] = (0.0,),
    values: Mapping[str, Any] | None = None,
    dropped: Sequence[int] | None = None,
    given_count: Sequence[int] | None = None,
    judges: Sequence[Path] = (),
    dataset: Path | None = None,
    text_proposal: Path | None = None,
    device: str = "auto",
) -> list[Score]:
    """Measure how good a model or an aggregate is.

    Args:
        path: The model or aggregate.
        watch: Is told who judges and what is to be known of the scores.
        metrics: Names; correctness by default, and coverage and recall where attributes are given; retrieval where
            there are only captions.
        posteriors: Where z comes from; of a model prior and own, of an aggregate what was fitted, by default.
        weights: Weights of guidance, or such as "3:balanced"; a set of scores for each.
        values: Settings of :class:`~mmgen.evaluation.evaluation.EvaluationSettings`.
        dropped: Numbers of attributes that queries leave out, where ``values`` do not say it.
        given_count: Numbers of attributes that queries give, instead.
        judges: Classifiers, which look at the same pictures, the scores of each following those of the one before;
            found by itself if near.
        dataset: Dataset; found by itself if near.
        text_proposal: A q(z | y) fitted to the same model, that log p(y) is drawn from as well.
        device: Where to compute.

    Raises:
        UsageError: Something cannot be asked of this model; before any work is done.
    """
    for name in metrics:
        metric_called(name)  # every name is checked before anything slow
    check_once("--metric", metrics)
    check_once("--posterior", [posterior_called(name) for name in posteriors])
    asking = validate(EvaluationSettings, dict(values or {}))
    if dropped is not None and asking.dropped is not None:
        raise UsageError(f"dropped got {list(dropped)} and {list(asking.dropped)}, expected it once")
    tilts = [Tilt.of(weight) for weight in weights]
    check_once("--guidance", tilts)
    check_once("--guidance", [str(Tilt(tilt.weight, tilt.balanced)) for tilt in tilts])  # by which rows are called
    check_once("--factor", asking.factors or ())
    loaded = load(path, device)
    for said in loaded.notices:
        watch.say(said)
    guided = [loaded.guided(tilt, asking.seed) for tilt in tilts]
    asked_for = list(metrics) or usual_metrics(loaded)
    further = {"dropped": dropped is not None or given_count is not None, "posteriors": posteriors, "judge": judges}
    further["text_proposal"] = text_proposal
    further |= {name: getattr(asking, name) not in (None, "") for name in asking.model_fields_set - {"dropped"}}
    check_read(asked_for, [name for name, said in further.items() if said])
    judged = [name for name in asked_for if metric_called(name).judged]
    if judged and loaded.attributes is None:  # before a judge is looked for, which there cannot be
        other = "; of captions there is --metric retrieval" if loaded.text is not None else ""
        raise UsageError(f"{' and '.join(judged)} needs a judge of attributes, and {path} knows no attributes{other}")
    numbers = left_out(asking.dropped if dropped is None else dropped, given_count, loaded)
    settings = validate(EvaluationSettings, {**(values or {}), "dropped": numbers})
    source = dataset or loaded.dataset_path()
    with Dataset.open(source) as data:
        judging: list[Classifier | None] = [None]
        if judged:
            near = [path.parent, loaded.model_path.parent, source.parent, Path.cwd()]
            opened = load_judges(judges := judges or [find_judge_of_dataset(data, near)], loaded.device)
            for file, one in zip(judges, opened, strict=True):
                watch.say(f"judge: {file} ({said_accuracy(one)} on images that it has not seen)")
            judging = [*opened]
        drawn_from = load(text_proposal, device) if text_proposal else None
        names = _posteriors(posteriors, loaded)
        asked = [Evaluation(each, data, judging[0], names, settings, drawn_from) for each in guided]
        if warning := notice(asked[0], asked_for):
            watch.say(warning)
        # All of it before any is done, which checks what is asked.
        work = [evaluate_by_all(evaluation, asked_for, judging[1:]) for evaluation in asked]
        scores: list[Score] = []
        for evaluation, by_judge in zip(asked, work, strict=True):
            for measuring in by_judge:
                found = watch.follow(measuring)
                scores += found
            for said in evaluation.guidance_notices:
                watch.say(said)
    for name in dict.fromkeys(asked_for):
        if all(score.metric != name for score in scores):
            watch.say(f"{name}: {metric_called(name).unmeasured}")
    return scores


def _posteriors(asked: Sequence[str], loaded: TrainedModel) -> list[str]:
    """Where z is to come from; every name is checked before any work."""
    names = list(dict.fromkeys(asked)) or ([loaded.target] if loaded.target else loaded.posteriors)
    for name in names:
        loaded.latent_sampler(name)
    return names
