"""Evaluation: a model, its data, an attribute classifier and settings, from which metrics take what they need."""

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mmgen.artifacts import Dataset
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.seeding import numpy_generator
from mmgen.evaluation.drawn import ClassifiedPictures
from mmgen.evaluation.factors import Code, Factors, encode_with_factors, read_factors
from mmgen.evaluation.provenance import Provenance
from mmgen.evaluation.queries import Questions
from mmgen.evaluation.real import RealPictures
from mmgen.evaluation.retrieved import RetrievedPictures
from mmgen.evaluation.settings import EvaluationSettings
from mmgen.evaluation.training_pictures import TrainingPictures
from mmgen.generation.classifiers import check_classifier
from mmgen.results.naming import RETRIEVAL

if TYPE_CHECKING:
    from mmgen.classifier import Classifier
    from mmgen.generation import TrainedModel
    from mmgen.modalities.attributes import AttributesDescription
    from mmgen.posteriors import CandidateStatistics


class Evaluation:
    """A model with the data to evaluate it on. Queries, pictures and encodings are made once for all metrics.

    Args:
        loaded: The model or aggregated posterior.
        dataset: The open dataset that queries and points come from.
        judge: The attribute classifier; None without one.
        posteriors: Where z comes from, each one of ``loaded.posteriors``, or ``RETRIEVAL`` for training pictures whose
            words fit descriptions best.
        settings: How to measure.
        text_proposal: Another posterior fitted to the model, whose q(z | y) is a further proposal for log p(y).
        other_judges: Attribute classifiers of other pictures than the main one.

    Raises:
        UsageError: The dataset does not suit the model, or a posterior cannot be guided.
    """

    def __init__(
        self,
        loaded: "TrainedModel",
        dataset: Dataset,
        judge: "Classifier | None",
        posteriors: Sequence[str],
        settings: EvaluationSettings,
        text_proposal: "TrainedModel | None" = None,
        other_judges: "Sequence[Classifier]" = (),
    ) -> None:
        from mmgen.training.model_run import check_data  # loads torch, which names of metrics do without

        check_data(dataset, loaded.path, loaded.attributes, loaded.observation, loaded.text)
        if RETRIEVAL in posteriors and loaded.guidance:
            raise UsageError(
                f"posterior '{RETRIEVAL}' returns training pictures, which guidance cannot change, got guidance "
                f"{loaded.guidance}; measure {RETRIEVAL} without guidance"
            )
        self.candidates: dict[str, CandidateStatistics] = {}
        """Statistics of the candidates of this evaluation's guided draws, by posterior."""
        # Candidates that guidance draws once for all descriptions have the seed of everything else.
        guided = loaded.guidance
        self.loaded = loaded.guided(guided, settings.seed).recording(self.candidates) if guided else loaded
        self.dataset = dataset
        self._judge, self._other_judges = judge, other_judges
        self.has_further_judge = False
        """True if another judge was given before this one, so that scores without a judge are measured already."""
        self.further: list[Evaluation] = []
        """The same evaluation by each further judge, in order."""
        self._factors: Factors | None = None
        self.posteriors = tuple(
            dict.fromkeys(name if name == RETRIEVAL else self.loaded.posteriors[name].name for name in posteriors)
        )
        self.settings = settings
        self.text_proposal = text_proposal

    def replace_classifier(self, judge: "Classifier | None") -> "Evaluation":
        """Return this evaluation with another attribute classifier, which classifies the same drawn pictures.

        It has to be made before anything is drawn. This evaluation keeps it in :attr:`further`.
        """
        other = copy(self)  # with the candidates of guidance
        other._judge, other.has_further_judge, other.further = judge, True, []
        for name in ("real_pictures", "training_pictures", "questions", "provenance"):
            other.__dict__.pop(name, None)
        other.drawn_pictures = ClassifiedPictures(
            self.loaded,
            other.judge,
            self.settings.seed,
            self.settings.precision,
            self.drawn_pictures,
            self._retrieved_pictures,
        )
        self.further.append(other)
        return other

    @property
    def split(self) -> str:
        """The split scheme that the evaluated examples come from."""
        return self.settings.split or self.loaded.settings.data.split

    @property
    def judge(self) -> "Classifier":
        """The attribute classifier; an error if there is none, see :meth:`check_judge`."""
        self.check_judge()
        assert self._judge is not None
        return self._judge

    @property
    def judges_of_views(self) -> "dict[str, Classifier]":
        """An attribute classifier of each modality that has one, by the modality that it was trained on."""
        every = [*([] if self._judge is None else [self._judge]), *self._other_judges]
        return {judge.described.name: judge for judge in reversed(every)}

    @property
    def has_judge(self) -> bool:
        """True if an attribute classifier was given."""
        return self._judge is not None

    def check_judge(self) -> None:
        """Raise an error without an attribute classifier of the main modality and the model's attributes.

        Raises:
            UsageError: There is none, or it was trained on another modality or on other attributes.
        """
        if self._judge is None:
            raise UsageError(
                "this metric needs a judge (attribute classifier), got none; make one with mmgen train-classifier on "
                "the model's dataset"
            )
        check_classifier(self.attributes, self._judge, self.loaded.observation)

    @property
    def attributes(self) -> "AttributesDescription":
        """Specification of the model's attributes: their names and values.

        Raises:
            UsageError: It has none.
        """
        described = self.loaded.attributes
        if described is None:
            captions = "; --metric retrieval measures captions without a judge" if self.loaded.text is not None else ""
            raise UsageError(
                f"this metric needs a model with attributes for the judge to check; this one has none{captions}"
            )
        return described

    @property
    def source_modalities(self) -> tuple[str, ...]:
        """Modalities that z is inferred from: the main one alone if possible, else all that the encoder needs."""
        assert self.loaded.observation is not None
        alone = (self.loaded.observation.name,)
        return alone if self.loaded.model.has_posterior(alone) else self.loaded.encoder_inputs

    @property
    def content_ids(self) -> dict[str, str]:
        """Content ids of the model, dataset and classifier that the scores are measured with."""
        loaded = self.loaded
        files = {"model": loaded.model_header, loaded.header.kind: loaded.header}
        files |= {"sharpener": loaded.sharpener.header} if loaded.sharpener else {}
        ids = {role: header.content_id for role, header in files.items()}
        return {**ids, "dataset": self.dataset.header.content_id}

    def ignores_text(self, posterior: str) -> bool:
        """Return True if the posterior ignores descriptions: p(z), or a fitted q(z), without guidance."""
        return posterior != RETRIEVAL and self.loaded.posteriors[posterior].is_unconditional

    def rows(self, part: str | None = None) -> NDArray[np.int64]:
        """Return the row numbers of a part of the split, in increasing order; by default of the evaluated part."""
        return self.dataset.split(self.split, part or self.settings.part)

    @cached_property
    def provenance(self) -> Provenance:
        """The files, run and settings that are recorded with each score."""
        return Provenance(self)

    @cached_property
    def questions(self) -> Questions:
        """Maker of the descriptions that pictures are drawn for."""
        return Questions(self)

    @cached_property
    def drawn_pictures(self) -> ClassifiedPictures:
        """The model's drawn pictures, with the classifier's outputs for them if there is one."""
        return ClassifiedPictures(
            self.loaded, self._judge, self.settings.seed, self.settings.precision, retrieved=self._retrieved_pictures
        )

    @property
    def _retrieved_pictures(self) -> RetrievedPictures | None:
        if RETRIEVAL not in self.posteriors:
            return None
        return RetrievedPictures(self.dataset, self.loaded, self.training_pictures.rows, self.settings.seed)

    @cached_property
    def real_pictures(self) -> RealPictures:
        """Real pictures of the same descriptions as the drawn ones."""
        assert self.loaded.observation is not None
        return RealPictures(
            self.dataset, self.split, self.settings, self.judge, self.loaded.observation.name, self.attributes
        )

    @cached_property
    def training_pictures(self) -> TrainingPictures:
        """The model's training pictures, and the nearest ones of drawn pictures."""
        return TrainingPictures(self)

    @cached_property
    def data_points(self) -> Batch:
        """The examples for likelihoods and encodings: a random choice of the evaluated part."""
        import torch

        from mmgen.training.batches import DatasetRows

        source = DatasetRows(self.dataset, self.rows_of_points, self.loaded.device, seed=self.settings.seed)
        return source.batch(torch.arange(len(source)))

    @cached_property
    def rows_of_points(self) -> NDArray[np.int64]:
        """Row numbers of :attr:`data_points` in the dataset, increasing."""
        return self._choose_rows("points", self.settings.number)

    def read_factors(self) -> Factors:
        """Read the generative factors of the encoded examples; later calls return the same.

        Raises:
            UsageError: The dataset has too few factors, or lacks one of ``settings.factors``.
        """
        if self._factors is None:
            chosen = self._choose_rows("encodings", self.settings.encodings)
            every = len(chosen) == len(self.rows())
            self._factors = read_factors(self.dataset, chosen, self.settings.factors, every)
        return self._factors

    @cached_property
    def encodings(self) -> Code:
        """Encodings of the examples of the evaluated part, with their generative factors."""
        return encode_with_factors(
            self.dataset, self.loaded, self.read_factors(), self.settings.seed, self.settings.precision
        )

    def _choose_rows(self, purpose: str, limit: int) -> NDArray[np.int64]:
        rows = self.rows()
        return rows[np.sort(numpy_generator(self.settings.seed, purpose).permutation(len(rows))[:limit])]

    @property
    def guidance_notices(self) -> list[str]:
        """Warnings to show with scores of pictures that were drawn with guidance."""
        if not self.loaded.guidance:
            return []
        notices = [self.loaded.guided_posterior(name).describe_draws(self.candidates[name]) for name in self.posteriors]
        return [notice for notice in notices if notice]
