"""What metrics are asked of: a model, a dataset, a judge and the settings of the questions."""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mmgen.artifacts import Dataset
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.memory import check_memory
from mmgen.core.seeding import numpy_generator
from mmgen.evaluation.drawn import JudgedPictures
from mmgen.evaluation.factors import Code, Factors, code_of, read_factors
from mmgen.evaluation.queries import Frequencies, Queries, caption_queries, fewest_dropped, queries
from mmgen.evaluation.real import Real
from mmgen.evaluation.runs import run_of_files
from mmgen.evaluation.settings import EvaluationSettings
from mmgen.generation.judge import check_judge
from mmgen.results.naming import LEARNED_PRIOR
from mmgen.results.score import Score

if TYPE_CHECKING:
    from mmgen.classifier import Classifier
    from mmgen.generation import TrainedModel
    from mmgen.modalities.attributes import AttributesDescription

__all__ = ["Evaluation", "EvaluationSettings"]


class Evaluation:
    """A model with everything that metrics need to judge it.

    Args:
        loaded: The model or aggregate.
        dataset: The dataset that queries and points come from, open.
        judge: Needed by some metrics only.
        posteriors: Where z is to come from, each one of ``loaded.posteriors``.
        settings: How to measure.
        text_proposal: Another file fitted to the model, whose q(z | y) draws of log p(y) come from as well.

    Raises:
        UsageError: The dataset is no such one as the model's, or a posterior cannot be guided as asked.
    """

    def __init__(
        self,
        loaded: "TrainedModel",
        dataset: Dataset,
        judge: "Classifier | None",
        posteriors: Sequence[str],
        settings: EvaluationSettings,
        text_proposal: "TrainedModel | None" = None,
    ) -> None:
        from mmgen.training.model_run import check_data  # loads torch, which names of metrics do without

        check_data(dataset, loaded.path, loaded.attributes, loaded.observation, loaded.text)
        # What guidance draws once for all descriptions has the seed of everything else.
        self.loaded = loaded.guided(loaded.tilt, settings.seed) if loaded.tilt else loaded
        self.dataset = dataset
        self._judge = judge
        self.posteriors = tuple(dict.fromkeys(self.loaded.posteriors[name].name for name in posteriors))
        self.settings = settings
        self.text_proposal = text_proposal
        self._runs: dict[bool, dict[str, str]] = {}

    def beside(self, judge: "Classifier | None") -> "Evaluation":
        """The same by another judge, asked for before anything is drawn: both look at the same pictures."""
        other = copy(self)  # with what guidance has drawn
        other._judge = judge
        other.__dict__.pop("real", None)
        other.draws = JudgedPictures(self.loaded, other.judge, self.settings.seed, self.settings.precision, self.draws)
        return other

    @property
    def split(self) -> str:
        """The split scheme that queries and points come from."""
        return self.settings.split or self.loaded.settings.data.split

    @property
    def judge(self) -> "Classifier":
        """The judge.

        Raises:
            UsageError: There is none, or it was trained on other attributes.
        """
        if self._judge is None:
            raise UsageError("this metric needs a judge: make one with mmgen train-classifier on the model's dataset")
        self.info  # noqa: B018  # says what is wrong with it
        check_judge(self.loaded, self._judge)
        return self._judge

    @property
    def info(self) -> "AttributesDescription":
        """Attributes of the model.

        Raises:
            UsageError: It has none.
        """
        described = self.loaded.attributes
        if described is None:
            captions = "; of captions, --metric retrieval asks the model itself" if self.loaded.text is not None else ""
            raise UsageError(
                f"this model knows no attributes, so no judge can say whether its pictures show a description{captions}"
            )
        return described

    @property
    def dropped(self) -> tuple[int, ...]:
        """Numbers of attributes to leave out; by default as few as the examples allow, and up to three more."""
        if self.settings.dropped is not None:
            return self.settings.dropped
        captioned = self.loaded.text is not None and self.loaded.given != "attributes"
        if captioned:
            return (0,)
        count = len(self.info.names)
        # Something is given; where nothing is known, queries() says so.
        fewest = min(fewest_dropped(self._codes, self.told if self._judge is not None else ()), count - 1)
        return tuple(range(fewest, min(fewest + 4, count)))

    @property
    def told(self) -> tuple[int, ...]:
        """Positions of the attributes that the judge is told, which no query leaves out."""
        return tuple(index for index, name in enumerate(self.info.names) if name in self.judge.told)

    @property
    def needs_captions(self) -> bool:
        """Whether a posterior that is asked reads whole captions, so that nothing can be left out of a query."""
        if self.loaded.tilt and self.info.name not in self.loaded.likelihood.names:
            return True  # p(words | z) is of whole captions
        return self.loaded.given == "text" and any(not self.ignores_text(name) for name in self.posteriors)

    @property
    def ids(self) -> dict[str, str]:
        """Content ids of the files behind a score without a judge."""
        header, model = self.loaded.header, self.loaded.model_header
        return {"model": model.content_id, header.kind: header.content_id, "dataset": self.dataset.header.content_id}

    @property
    def judged_ids(self) -> dict[str, str]:
        """Content ids of the files behind a score that a judge gave."""
        return self.ids | {"judge": self.judge.content_id}

    @cached_property
    def trained_share(self) -> float | None:
        """Share of the part that is asked about that the model was trained on; None of another dataset than its own,
        and where parts hold back edges between rows instead of rows.
        """
        if self.dataset.header.content_id not in [parent.content_id for parent in self.loaded.model_header.parents]:
            return None
        if self.dataset.splits_edges(self.split):
            return None
        trained = self.dataset.split(self.loaded.settings.data.split, "train")
        return float(np.isin(self.dataset.split(self.split, self.settings.part), trained).mean())

    @property
    def pixels(self) -> str:
        """What the images of the data points are, for scores of other pixels are not to be compared; "" without any.

        They are "drawn" at every sight, here with the seed of the evaluation, "fixed" in black and white, or "grey".
        """
        main = self.loaded.observation
        info = self.dataset.images.get(main.name) if main is not None else None
        return {"probabilities": "drawn", "bits": "fixed", "bytes": "grey"}[info.layout] if info else ""

    def attributes_of(self, part: str) -> NDArray[np.uint8]:
        """Codes uint8 [N, A] of one part of the split."""
        return self.dataset.read_attributes(self.info.name, self.dataset.split(self.split, part))

    def queries(self, dropped: int) -> Queries:
        """The captions or concepts of the chosen part with ``dropped`` attributes left out."""
        return queries(
            self._codes,
            dropped,
            always_given=self.told,
            most=self.settings.queries,
            captions=self.loaded.text is not None,
            seed=self.settings.seed,
        )

    @property
    def free_captions(self) -> bool:
        """Whether a posterior that is asked reads captions in free words, of whose meaning nothing is written down."""
        text = self.loaded.text
        return self.needs_captions and text is not None and not text.slots

    def captions(self) -> Queries:
        """The captions of examples of the chosen part, with the attributes of each example."""
        rows, text = self.dataset.split(self.split, self.settings.part), self.loaded.text
        assert text is not None
        tokens = self.dataset.read_text(text.name, rows)
        settings = self.settings
        return caption_queries(tokens, self._codes, needed=self.told, most=settings.queries, seed=settings.seed)

    def check_queries(self, what: str) -> None:
        """Raise a UsageError where a posterior cannot be asked what ``what`` asks."""
        text = self.loaded.text
        if not self.needs_captions:
            return
        if any(self.dropped):
            count = len(self.loaded.attributes.names) if self.loaded.attributes is not None else 0
            raise UsageError(
                f"{what} asks for descriptions with attributes left out, and this q(z | text) reads whole captions; "
                f"use --given-count {count}, or fit one with: mmgen fit-aggregate {self.loaded.model_path} "
                "--given attributes"
            )
        if text is None or not text.slots:
            raise UsageError(
                f"{what} needs captions whose positions spell attributes that a judge knows, and those of "
                f"{self.dataset.path} do not; --metric correctness and retrieval are of captions in free words too"
            )

    @property
    def number_of_points(self) -> int:
        """Data points that likelihoods are measured on."""
        return min(self.settings.number, len(self.dataset.split(self.split, self.settings.part)))

    def check_samples(self, points: int = 1) -> None:
        """Raise a UsageError where the memory cannot hold the log weights of all samples of so many points at once."""
        settings, advice = self.settings, "use fewer --samples or a smaller --number"
        check_memory(8 * settings.samples * points, f"{settings.samples:,} samples of {points:,} points", advice)
        check_memory(8 * settings.text_samples, f"{settings.text_samples:,} samples of log p(y)", "use fewer")

    def check_draws(self) -> None:
        """Raise a UsageError where the memory cannot hold the latents of a query's pictures and what a judge says."""
        numbers = self.settings.draws * max(4 * self.loaded.model.latent_size, len(self.info.names))
        check_memory(numbers, f"{self.settings.draws:,} pictures of a query", "use fewer --draws")

    def check_images(self, names: Iterable[str]) -> None:
        """Raise a UsageError where the dataset lacks a kind of images among the modalities ``names`` of the model."""
        from mmgen.training.model_run import check_data

        known = self.loaded.observed
        check_data(self.dataset, self.loaded.path, *(known[name] for name in names if name in known))

    def check_text_proposal(self) -> None:
        """Raise a UsageError where the file that log p(y) is to be drawn from is none, or of another model."""
        other = self.text_proposal
        if other is None:
            return
        if other.fitted is None or not other.fitted.reads:
            raise UsageError(
                f"--text-proposal got {other.path}, expected a fitted q(z | y); make one with: "
                f"mmgen fit-aggregate {self.loaded.model_path} --given text"
            )
        if other.model_header.content_id != self.loaded.model_header.content_id:
            raise UsageError(
                f"--text-proposal got {other.path}, which was fitted to {other.model_path}, expected one that was "
                f"fitted to {self.loaded.model_path}"
            )

    @cached_property
    def _codes(self) -> NDArray[np.uint8]:
        return self.attributes_of(self.settings.part)

    @cached_property
    def frequencies(self) -> Frequencies:
        """How often concepts occur in the training part."""
        return Frequencies(self.attributes_of("train"), self.info.sizes)

    @cached_property
    def draws(self) -> JudgedPictures:
        """Pictures, shared by the metrics that look at them."""
        return JudgedPictures(self.loaded, self.judge, self.settings.seed, self.settings.precision)

    @cached_property
    def real(self) -> Real:
        """Real pictures of descriptions, shared by the metrics that compare drawn ones with them."""
        assert self.loaded.observation is not None
        return Real(self.dataset, self.split, self.settings, self.judge, self.loaded.observation.name, self.info)

    @cached_property
    def points(self) -> Batch:
        """Data points for likelihoods and active units: a random choice of the part, on the model's device."""
        import torch

        from mmgen.training.batches import DatasetRows

        source = DatasetRows(self.dataset, self._rows_of_points, self.loaded.device, seed=self.settings.seed)
        return source.batch(torch.arange(len(source)))

    @cached_property
    def _rows_of_points(self) -> NDArray[np.int64]:
        rows = self.dataset.split(self.split, self.settings.part)
        chosen = numpy_generator(self.settings.seed, "points").permutation(len(rows))[: self.settings.number]
        return rows[np.sort(chosen)]

    @cached_property
    def sources_of_points(self) -> NDArray[np.int64] | None:
        """Which picture, source or group each data point is of; None where nothing is known of it."""
        return self.dataset.sources(self._rows_of_points)

    @cached_property
    def factors(self) -> Factors:
        """Factors behind the rows that metrics of disentanglement encode: a random choice of the part, ascending.

        Raises:
            UsageError: The dataset has too few, or not those that were asked for.
        """
        rows = self.dataset.split(self.split, self.settings.part)
        chosen = numpy_generator(self.settings.seed, "encodings").permutation(len(rows))[: self.settings.encodings]
        every = len(chosen) == len(rows)
        return read_factors(self.dataset, rows[np.sort(chosen)], self.settings.factors, every)

    @cached_property
    def code(self) -> Code:
        """Encodings beside factors, shared by the metrics of disentanglement."""
        return code_of(self.dataset, self.loaded, self.factors, self.settings.seed, self.settings.precision)

    @cached_property
    def whole_part(self) -> Batch:
        """All data points of the part, on the model's device; of a graph, with what the part holds back."""
        import torch

        from mmgen.training.batches import DatasetRows

        rows = DatasetRows.of_split(self.dataset, self.split, self.settings.part, self.loaded.device)
        return rows.batch(torch.arange(len(rows)))

    def ignores_text(self, posterior: str) -> bool:
        """Whether z comes from a density that no description changes: p(z), or a learned q(z), not guided."""
        return self.loaded.posteriors[posterior].is_unconditional

    def is_learned_prior(self, posterior: str) -> bool:
        """Return whether z comes from a fitted q(z), which is conditioned on nothing."""
        source = self.loaded.posteriors[posterior]
        return source.is_fitted and source.is_unconditional

    def run_of(self, posterior: str) -> dict[str, str]:
        """What scores tell of the run behind a posterior: of the model, and of what was fitted to it if z is its."""
        loaded = self.loaded
        fitted = posterior in loaded.posteriors and loaded.posteriors[posterior].is_fitted
        if fitted not in self._runs:
            files = [(loaded.model_path, loaded.model_header), *([(loaded.path, loaded.header)] if fitted else [])]
            self._runs[fitted] = run_of_files(files)
        return self._runs[fitted]

    def named(self, score: Score) -> Score:
        """A score as it is handed on: with its run; of a guided posterior with the weight, base and candidates too."""
        score = replace(score, run=self.run_of(score.posterior))
        if score.judge_accuracy is not None or "judge" in score.ids:
            score = replace(score, judge=self.judge.network_name)
        if score.posterior not in self.posteriors:
            return score
        source = self.loaded.posteriors[score.posterior]
        weights = source.weights
        if "guidance" not in weights:
            base = LEARNED_PRIOR if self.is_learned_prior(score.posterior) else ""
            return replace(score, text_weight=weights.get("text_weight"), base=base)
        found = self.loaded.guided_posterior(score.posterior).diagnostics if self.loaded.tilt else {}
        details = {**score.details, "guidance": found} if found else score.details
        return replace(
            score,
            posterior="guided",
            text_weight=weights.get("text_weight"),
            guidance=weights["guidance"],
            balanced=weights.get("balanced", False),
            base=source.base,
            details=details,
        )

    @property
    def guidance_notices(self) -> list[str]:
        """What is to be said of what was drawn with guidance."""
        if not self.loaded.tilt:
            return []
        told = [self.loaded.guided_posterior(name).report.notice for name in self.posteriors]
        return [notice for notice in told if notice]
