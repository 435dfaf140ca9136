"""A model with its posteriors and attribute classifier, loaded from files for drawing."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mmgen.artifacts import Dataset
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator
from mmgen.figures.drawing.samples import explain_red_frames
from mmgen.figures.session.report_files import ModelFiles
from mmgen.generation.classifiers import check_classifier, classifier_reads_samples
from mmgen.generation.concepts import choose_concepts
from mmgen.generation.descriptions import Descriptions, complete_descriptions
from mmgen.generation.draws import (
    Draws,
    convert_draws_to_pictures,
    draw,
    format_share_correct,
    last_file,
    title_of_draws,
)
from mmgen.posteriors import AnyGuidance, Guidance
from mmgen.results.naming import CONDITIONAL, PosteriorName

if TYPE_CHECKING:
    from mmgen.classifier import Classifier
    from mmgen.generation import TrainedModel
    from mmgen.posteriors import Posterior


_MOST_COMBINATIONS = 200_000


@dataclass(frozen=True)
class Source:
    """Posterior that figures draw from, with the file that holds it and its name in figures.

    Attributes:
        name: Its name in figures.
        loaded: The model, perhaps with a fitted posterior.
        posterior: Key of the posterior in ``loaded.posteriors``.
        path: Its file.
        given: Kind of description that it reads: "attributes" (some may be unknown), "text" or "nothing".
        folded: Whether a report folds it: an exact q_true beside one with the weight of the training.
    """

    name: str
    loaded: "TrainedModel"
    posterior: str
    path: Path
    given: str = "attributes"
    folded: bool = False

    @property
    def plain_name(self) -> str:
        """Name in plain words: "where real pictures lie"; ``name`` belongs beneath it."""
        if self.loaded.model.conditional_on and not self.loaded.posteriors[self.posterior].is_fitted:
            return PosteriorName(CONDITIONAL).plain
        return self.loaded.posteriors[self.posterior].named.plain

    @property
    def rank(self) -> int:
        """Sort key of posteriors: guided ones, then fits to encodings, fits to the exact posterior, the encoder."""
        if self.loaded.guidance:
            return 0
        source = self.loaded.posteriors[self.posterior]
        return 1 if _fits_encodings(source) else 2 if source.is_fitted else 3


@dataclass
class Session:
    """Model with its posteriors and attribute classifier, loaded for drawing, and the descriptions to draw.

    Attributes:
        group: The files.
        model: The model.
        judge: The attribute classifier; None without one.
        sources: Posteriors that read descriptions, by rank: guided, fitted, the encoder q(z|y).
        priors: Densities that read no description: p(z), learned q(z).
        rivals: Plain conditional VAEs of the same data, whose pictures stand left of the model's own.
        notices: Warnings about files that could not be opened, with the next step.
        concepts: Descriptions to draw, the most varied first; none for a model without attributes and text.
        seed: Seed of every choice and draw.
    """

    group: ModelFiles
    model: "TrainedModel"
    judge: "Classifier | None"
    seed: int
    sources: list[Source] = field(default_factory=list)
    priors: list[Source] = field(default_factory=list)
    rivals: list[Source] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    concepts: Descriptions = field(default_factory=lambda: Descriptions(np.zeros((0, 0), np.uint8)))

    @property
    def note(self) -> str:
        """Sentences for captions that explain the red frames and name the seed."""
        accuracy = self.judge.accuracy if self.judge else None
        return f"{explain_red_frames(accuracy, classifier_reads_samples(self.model))} Seed {self.seed}."


def _make_names_distinct(sources: list[Source]) -> list[Source]:
    """Append the name of the file to the names that several posteriors share."""
    names = [source.name for source in sources]
    return [replace(s, name=f"{s.name} ({s.path.stem})") if names.count(s.name) > 1 else s for s in sources]


def _fits_encodings(posterior: "Posterior") -> bool:
    """Return whether a posterior was fitted to encodings instead of the exact posterior."""
    return posterior.is_fitted and "text_weight" not in posterior.weights


def _sort_sources(sources: list[Source]) -> list[Source]:
    """Sort posteriors by rank, and mark those that a report folds."""
    weights = [source.loaded.posteriors[source.posterior].weights.get("text_weight") for source in sources]
    several = bool({weight for weight in weights if weight is not None} - {1.0})
    marked = [replace(s, folded=several and weight == 1.0) for s, weight in zip(sources, weights, strict=True)]
    return sorted(marked, key=lambda source: source.rank)


def _guide_sources(session: Session, guidance: Guidance) -> list[Source]:
    """Return guided copies of the posteriors that were fitted to encodings, or of all if there are none."""
    every = (*session.sources, *session.priors)
    fitted = [source for source in every if _fits_encodings(source.loaded.posteriors[source.posterior])]
    found = []
    for source in fitted or session.sources or session.priors[:1]:
        loaded = source.loaded.guided(guidance, session.seed)
        read = loaded.reads(source.posterior)
        given = "text" if loaded.text is not None and read == (loaded.text.name,) else "attributes"
        name = str(loaded.guided_posterior(source.posterior).named)
        found.append(Source(name, loaded, source.posterior, source.path, source.given.replace("nothing", given)))
    return found


def _asked(loaded: "TrainedModel", complete: bool) -> "TrainedModel":
    return loaded if complete else loaded.completing(False)


def open_session(
    group: ModelFiles, seed: int, device: str = "cpu", guidance: AnyGuidance = 0.0, complete: bool = True
) -> Session:
    """Load a model, its fitted posteriors and its attribute classifier from their files.

    Args:
        group: The files.
        seed: Seed of every choice and draw.
        device: Device of the models.
        guidance: Weight w of additional guided posteriors; 0 for none.
        complete: Whether words that descriptions leave open are drawn first.

    Raises:
        UsageError: The model has no decoder of attributes or text to guide with.
    """
    from mmgen.classifier import load_classifier
    from mmgen.generation import load

    model = _asked(load(group.model, device), complete)
    session = Session(group, model, None, seed)
    if group.judge is not None:
        try:
            session.judge = load_classifier(group.judge, model.device)
            check_classifier(model.attributes, session.judge, model.observation)
        except (ArtifactError, UsageError) as error:  # the pictures are worth showing without red frames
            session.judge = None
            session.notices.append(f"The images of {group.model.name} are not judged: {error}.")
    session.priors.append(Source(model.posteriors["prior"].named.title, model, "prior", group.model, "nothing"))
    fitted = [_asked(load(path, device), complete) for path in group.aggregates]
    session.notices += dict.fromkeys(notice for loaded in (model, *fitted) for notice in loaded.notices)
    for loaded in fitted:
        fit = loaded.posteriors[loaded.posteriors.default]
        fits = session.sources if fit.reads or loaded.model.conditional_on else session.priors
        title, given = title_of_draws(loaded, fit.name), loaded.description_kind or "nothing"
        fits.append(Source(title, loaded, fit.name, last_file(loaded), given))
    if (own := model.encoder) is not None and not model.model.conditional_on:
        session.sources.insert(
            0, Source(own.named.title, model, own.name, group.model, model.description_kind or "nothing")
        )
    elif model.model.conditional_on:
        session.sources.insert(0, Source(PosteriorName(CONDITIONAL).title, model, "prior", group.model))
    if weight := Guidance.parse(guidance):
        session.sources += _guide_sources(session, weight)
    session.sources, session.priors = (
        _sort_sources(_make_names_distinct(session.sources)),
        _make_names_distinct(session.priors),
    )
    session.concepts = _choose_concepts(session)
    return session


def _any_reads_text(session: Session, text: str) -> bool:
    """Return whether any of the model's posteriors reads captions."""
    return any(text in source.loaded.reads(source.posterior) for source in session.sources)


def _choose_concepts(session: Session, count: int = 24) -> Descriptions:
    """Choose varied descriptions to draw: of test examples, or from the vocabulary if the dataset is missing."""
    model = session.model
    info, text = model.attributes, model.text
    spelled = info is not None and text is not None and set(text.slots) == set(info.names)
    if session.group.dataset is not None:
        with Dataset.open(session.group.dataset) as data:
            rows = data.split(model.settings.data.split, "test")
            if text is not None and not spelled and (info is None or _any_reads_text(session, text.name)):
                captions, places = np.unique(data.read_text(text.name, rows), axis=0, return_index=True)
                chosen = numpy_generator(session.seed, "captions").permutation(len(captions))[:count]
                # Free text says nothing of attributes: those of an example with that text go with it.
                free = info is not None and not text.slots
                codes = data.read_attributes(info.name, rows[places[chosen]]) if free and info is not None else None
                return complete_descriptions(model, codes, captions[chosen])
            if info is None:
                return session.concepts
            codes = data.read_attributes(info.name, rows)
            if (codes == UNKNOWN).all():
                return session.concepts
            concepts = choose_concepts(codes, count, session.seed)
            return complete_descriptions(model, np.sort(concepts, axis=0) if len(info.names) == 1 else concepts)
    if info is None:
        return session.concepts
    if len(info.values) == 1:
        return complete_descriptions(model, np.arange(min(len(info.values[0]), count), dtype=np.uint8)[:, None])
    sizes = [len(words) for words in info.values]
    generator = numpy_generator(session.seed, "vocabulary")
    most = min(_MOST_COMBINATIONS, int(np.prod(sizes, dtype=np.float64)), 4096)
    drawn = np.stack([generator.integers(0, size, most) for size in sizes], 1).astype(np.uint8)
    return complete_descriptions(model, choose_concepts(drawn, count, session.seed))


def draw_from_sources(
    session: Session, descriptions: Descriptions, count: int, sources: Sequence[Source]
) -> list[tuple[str, Draws]]:
    """Draw ``count`` pictures for each description from each of several posteriors; return (name, draws) for each."""
    return [(source.name, draw_pictures(session, source, descriptions, count)) for source in sources]


def draw_pictures(
    session: Session, source: Source, descriptions: Descriptions, count: int, *, classify: bool = True
) -> Draws:
    """Draw ``count`` pictures for each description from one posterior; other kinds of data become pictures."""
    judge = session.judge if classify else None
    drawn = draw(source.loaded, descriptions, count, posterior=source.posterior, seed=session.seed, classifier=judge)
    return convert_draws_to_pictures(source.loaded, drawn)


def images_per_row(sources: Sequence[Source]) -> int:
    """Return how many images in a row each of several posteriors gets, so that the rows fit on a screen."""
    return {1: 10, 2: 6}.get(len(sources), max(2, 12 // max(1, len(sources))))


def name_blocks(draws: Sequence[tuple[str, Draws]]) -> str:
    """Format for a caption the names of several posteriors, each with its share of confirmed attributes."""
    verdicts = [(name, format_share_correct(drawn)) for name, drawn in draws]
    return "; ".join(f"{name} ({verdict})" if verdict else name for name, verdict in verdicts)
