"""``mmgen eval``: how good a model or an aggregate is, by any metrics."""

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mmgen.commands._base import Completing, Stage
from mmgen.core.errors import UsageError
from mmgen.core.parsing import split_list
from mmgen.settings.kinds import File, FilePath, InputFile, MemberOf, Option, Range, Seed, path_of

if TYPE_CHECKING:
    from mmgen.artifacts import Dataset
    from mmgen.classifier import Classifier
    from mmgen.evaluation import EvaluationSettings
    from mmgen.generation import TrainedModel
    from mmgen.posteriors import Guidance
    from mmgen.results.score import Score, Scores

__all__ = ["Evaluate"]

_SETTINGS = "mmgen.evaluation:EvaluationSettings"


@dataclass(frozen=True)
class Evaluate(Completing, Stage["Scores"]):
    """Measure how good a model or an aggregate is; the same seed, the same scores."""

    first_in_lists: ClassVar[str | None] = "model"
    described_by: ClassVar[tuple[str, ...]] = (_SETTINGS,)
    shows_described_defaults: ClassVar[bool] = True
    first_options: ClassVar[tuple[str, ...]] = ("metric", "output", "queries", "overwrite")

    model: Annotated[File, InputFile("model or aggregate")]
    """Model or aggregate."""
    metric: Annotated[str | Sequence[str], Option("-m"), MemberOf("mmgen.metrics")] = ()
    """Metrics: {mmgen.metrics}; repeatable. By default correctness, with coverage and recall if attributes are given;
    retrieval if there are only captions."""
    output: Annotated[FilePath | None, Option("-o", metavar="FILE", default="NAME-scores.jsonl beside the model")] = (
        None
    )
    """Where to write the scores, as JSON lines."""
    _: KW_ONLY
    posterior: Annotated[
        str | Sequence[str],
        Option("-p", metavar="NAME", words=("prior", "own", "aggregate", "true", "scan", "retrieval")),
    ] = ()
    """Posterior to draw z from: prior, own (the encoder's q(z | words)), true, aggregate or scan; or retrieval, a
    baseline of the training pictures that match the description best; repeatable. By default prior and own for a model,
    the fitted one for an aggregate."""
    guidance: Annotated[float | str | Sequence[float | str], Option(metavar="LIST", default="0")] = 0.0
    """Tilt posteriors by p(words | z)^W, the model's own reading of z: one weight, or several such as 1,3,10 for a set
    of scores each; repeatable. 3:effective=100:candidates=65536 chooses from more candidates. cfg:0.5 is
    classifier-free guidance of a fitted rectified flow, without p(words | z). gradient:1 adds the gradient of
    log p(words | z) to the flow's path."""
    protocol: str | None = None
    given_count: Annotated[Sequence[int] | None, Option(commas=True, default="all, and 1, 2 and 3 fewer")] = None
    """Numbers of attributes that queries give, such as 4,3; the others are left open."""
    samples: Annotated[int | None, Option(metavar="K")] = None
    proposal: str | None = None
    text_samples: Annotated[int | None, Range(2), Option(metavar="K")] = None
    text_proposal: Annotated[File | None, InputFile("aggregate")] = None
    """A q(z | y) fitted to the same model, that log p(y) is drawn from as well."""
    number: Annotated[int | None, Range(2), Option("-n")] = None
    encodings: int | None = None
    factors: Annotated[Sequence[str] | None, Option("--factor", metavar="NAME")] = None
    pool: int | None = None
    draws: int | None = None
    queries: int | None = None
    split: Annotated[str | None, Option(metavar="SCHEME")] = None
    part: str | None = None
    judge: Annotated[File | Sequence[File] | None, InputFile("classifier")] = None
    """Classifier; found by itself if near. Repeatable: all judges look at the same pictures."""
    dataset: Annotated[File | None, InputFile("dataset")] = None
    """Dataset; found by itself if near."""
    overwrite: bool = False
    """Replace the scores that are there."""
    precision: str = "auto"
    device: Annotated[str, Option(metavar="NAME")] = "auto"
    """Where to compute: auto, cpu, cuda, cuda:1."""
    seed: Seed = 0

    def run(self, command: str = "") -> "Scores":
        """Measure the scores, and write them to a file where a file may be written.

        Returns:
            The scores, which know their file.

        Raises:
            UsageError: Something cannot be asked of this model, or scores are there already.
        """
        from mmgen.evaluation import write_scores
        from mmgen.results.score import Scores

        path = self.scores_path()
        scores = self.measure()
        if path is not None:
            write_scores(path, scores)
        return Scores(scores, path)

    def scores_path(self, hint: str = "") -> Path | None:
        """Return the file to which scores are written; None if its folder cannot be written to.

        Args:
            hint: What else to do where scores are there already, for the message.

        Raises:
            UsageError: Scores are there already.
        """
        from mmgen.artifacts import check_nothing_lost, check_output
        from mmgen.evaluation import default_scores_file

        output = path_of(self.output) if self.output else default_scores_file(self._model_path)
        if self.output is None and not os.access(output.parent, os.W_OK):
            self.watch.say(
                f"the scores are only printed, since {output.parent} cannot be written to; --output keeps them "
                "elsewhere"
            )
            return None
        check_output(output, None, self._model_path)
        check_nothing_lost(output, self.overwrite, "" if self.output else hint)
        return output

    def measure(self) -> "list[Score]":
        """Measure and return the scores for each weight of guidance and each classifier, without writing them.

        Raises:
            UsageError: Something cannot be asked of this model; before any work is done.
        """
        from mmgen.artifacts import Dataset
        from mmgen.generation.decode import drawable_pictures
        from mmgen.metrics import check_options_are_read, default_metrics, get

        settings, guidances = self._evaluation_settings(), self._parse_guidances()
        self._check_names()
        loaded = self._model
        guided = [loaded.guided(guidance, settings.seed) for guidance in guidances]
        metrics = _as_list(self.metric) or default_metrics(loaded)
        check_options_are_read(metrics, self._names_of_set_options())
        judged = [name for name in metrics if get(name).judged]
        if judged and loaded.attributes is None:  # before a judge is looked for, which there cannot be
            other = ", such as retrieval for captions" if loaded.text is not None else ""
            raise UsageError(
                f"--metric {','.join(judged)} needs a model with attributes, but {self._model_path} has none; choose "
                f"another metric{other}"
            )
        with Dataset.open(path_of(self.dataset) if self.dataset else loaded.dataset_path()) as data:
            views = drawable_pictures(loaded) if any(get(name).judges_views for name in metrics) else []
            judges = self._load_classifiers(data, views) if judged or views or self.judge else []
            others = [judge for judge in judges if views and judge.described.name != views[0]]
            judges = [judge for judge in judges if judge not in others]
            scores = self._measure_all(guided, metrics, data, judges, others)
        measured = {score.metric for score in scores}
        reasons = [f"{name}: {get(name).unmeasured}" for name in dict.fromkeys(metrics) if name not in measured]
        if reasons and not scores:
            raise UsageError(f"{'; '.join(reasons)}; choose other descriptions with --given-count, or another --part")
        for reason in reasons:
            self.watch.say(reason)
        return scores

    def _measure_all(
        self, guided: "list[TrainedModel]", metrics: list[str], data: "Dataset", judges: "list[Classifier]",
        others: "list[Classifier]",
    ) -> "list[Score]":  # fmt: skip
        from mmgen.evaluation import Evaluation
        from mmgen.generation import load
        from mmgen.generation.latents import check_reads_parts
        from mmgen.metrics import dropped_counts, evaluate_with_classifiers, training_images_warning

        loaded, first = self._model, judges[0] if judges else None
        settings = self._evaluation_settings(dropped_counts(self.given_count, loaded))
        proposal = load(path_of(self.text_proposal), self.device) if self.text_proposal else None
        default = [loaded.fitted.name] if loaded.fitted is not None else list(loaded.posteriors)
        posteriors = _as_list(self.posterior) or default
        if not self.complete and settings.dropped != (0,):
            for name in posteriors:
                if name in loaded.posteriors:
                    check_reads_parts(loaded, name)
        evaluations = [Evaluation(each, data, first, posteriors, settings, proposal, others) for each in guided]
        if warning := training_images_warning(evaluations[0], metrics):
            self.watch.say(warning)
        # All of it before any is done, which checks what is asked.
        work = [evaluate_with_classifiers(evaluation, metrics, judges[1:]) for evaluation in evaluations]
        scores: list[Score] = []
        for evaluation, by_judge in zip(evaluations, work, strict=True):
            for measuring in by_judge:
                measured = self.watch.follow(measuring)
                scores += measured
            for text in evaluation.guidance_notices:
                self.watch.say(text)
        return scores

    @property
    def _model_path(self) -> Path:
        return path_of(self.model)

    @cached_property
    def _model(self) -> "TrainedModel":
        from mmgen.generation import load

        loaded = load(self._model_path, self.device)
        loaded = loaded if self.complete else loaded.completing(False)
        for text in loaded.notices:
            self.watch.say(text)
        return loaded

    def _evaluation_settings(self, dropped: Sequence[int] | None = None) -> "EvaluationSettings":
        from mmgen.evaluation import EvaluationSettings
        from mmgen.settings.config import validate

        fields = {name: getattr(self, name) for name in EvaluationSettings.model_fields if name != "dropped"}
        values = {name: value for name, value in fields.items() if value is not None}
        return validate(EvaluationSettings, {**values, "dropped": dropped})

    def _names_of_set_options(self) -> list[str]:
        """Return the names of the evaluation options that the user has set."""
        names = [
            name
            for name, value in self._evaluation_settings()
            if name != "dropped" and getattr(self, name) not in (None, "")
        ]
        names += ["dropped"] * (self.given_count is not None)
        names += ["posteriors"] * bool(_as_list(self.posterior))
        names += ["complete"] * (not self.complete)
        return names + [name for name in ("judge", "text_proposal") if getattr(self, name)]

    def _parse_guidances(self) -> "list[Guidance]":
        """Parse the weights of guidance, such as "1,cfg:0.5"."""
        from mmgen.metrics import check_distinct
        from mmgen.posteriors import Guidance

        weights: list[Any] = [*self.guidance] if isinstance(self.guidance, list | tuple) else [self.guidance]
        try:
            parts = [part for one in weights for part in (split_list(one) if isinstance(one, str) else [one])]
            guidances = [Guidance.parse(part) for part in parts or [0.0]]
        except UsageError as error:
            raise UsageError(f"--{error}; separate several weights by commas: 1,3,10") from None
        check_distinct("--guidance", guidances)
        check_distinct(
            "--guidance",
            [
                str(Guidance(guidance.weight, guidance.method, start=guidance.start, end=guidance.end))
                for guidance in guidances
            ],
        )  # by which rows are called
        return guidances

    def _check_names(self) -> None:
        """Refuse metrics, posteriors or parts that do not exist or occur twice."""
        from mmgen.metrics import check_distinct, get

        for name in _as_list(self.metric):
            get(name)
        check_distinct("--metric", _as_list(self.metric))
        check_distinct("--posterior", _as_list(self.posterior))
        check_distinct("--factor", self.factors or ())

    def _load_classifiers(self, data: "Dataset", views: Sequence[str]) -> "list[Classifier]":
        """Load the named classifiers, else one near the model or data for each of ``views``, or the main modality."""
        from mmgen.generation.classifiers import find_dataset_classifier, format_accuracy, load_classifiers

        near = [self._model_path.parent, self._model.model_path.parent, data.path.parent, Path.cwd()]
        named = self.judge if isinstance(self.judge, Sequence) and not isinstance(self.judge, str) else [self.judge]
        files = [path_of(one) for one in named if one is not None]
        main = self._model.observation.name if self._model.observation is not None else ""
        files = files or [find_dataset_classifier(data, near, view) for view in views or [main]]
        opened = load_classifiers(files, self._model.device)
        for file, one in zip(files, opened, strict=True):
            self.watch.say(f"judge: {file} ({format_accuracy(one)} on images that it has not seen)")
        return opened


def _as_list(names: str | Sequence[str]) -> list[str]:
    """Return names as a list; a text is split at commas."""
    return [names] if isinstance(names, str) else list(names)
