"""The pictures of one model in a report: samples, abstraction hierarchy, latent maps."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from mmgen.artifacts import Dataset, atomic_path
from mmgen.errors import ArtifactError, UsageError
from mmgen.figures._material import Group
from mmgen.figures._page import SENTENCE_TILE, TILE, Grid, annotated, framed
from mmgen.figures._style import data_uri, figure_image, plain_words
from mmgen.figures.comparison import choose_concepts, comparison, judge_note, sees_samples
from mmgen.figures.draws import Draws, check_judge, draw
from mmgen.figures.grids import Panel, image_grid, image_table
from mmgen.figures.hierarchy import hierarchy, hierarchy_queries, share_right
from mmgen.generation.descriptions import Descriptions, complete, nothing
from mmgen.notation import UNKNOWN
from mmgen.queries import format_query
from mmgen.seeding import numpy_generator

if TYPE_CHECKING:
    from mmgen.classifier import Classifier
    from mmgen.loading import Loaded

__all__ = ["Picture", "Session", "Source", "open_session"]

_MOST_COMBINATIONS = 200_000


@dataclass(frozen=True)
class Picture:
    """An image on a page.

    Attributes:
        title: What it shows, in a few words.
        caption: How it was made: numbers, seeds.
        drawn: The image itself.
        note: What is true of all pictures of its section, which a page says once: what frames mean, who judged.
    """

    title: str
    caption: str
    drawn: Grid | Figure
    note: str = ""

    @property
    def words(self) -> str:
        """The caption, with how the images are shown where that is not as they are."""
        remark = self.drawn.remark if isinstance(self.drawn, Grid) else ""
        return f"{self.caption} {remark}".strip()

    @property
    def told(self) -> str:
        """All of it, for a picture that stands alone."""
        return f"{self.words} {self.note}".strip()

    @cached_property
    def uri(self) -> str:
        """The PNG as a ``data:`` address."""
        if isinstance(self.drawn, Grid):
            return data_uri(self.drawn.image)
        return data_uri(figure_image(self.drawn), palette=True)

    @property
    def width(self) -> int:
        """Width on the page in CSS pixels; the PNG has more, for sharp screens."""
        if isinstance(self.drawn, Grid):
            return round(self.drawn.image.width / 2)
        return round(96 * self.drawn.get_figwidth())

    def save(self, path: Path) -> None:
        """Write it alone: .png with title and caption, or bare lines as .pdf and .svg.

        Raises:
            UsageError: Another ending, or lines asked of a picture of images.
        """
        ending = path.suffix.lower()
        if ending not in ((".png",) if isinstance(self.drawn, Grid) else (".png", ".pdf", ".svg")):
            lines = "" if isinstance(self.drawn, Grid) else ", .pdf or .svg"
            raise UsageError(f"--output got {path}, expected a name ending in .png{lines}")
        if ending == ".png":
            drawn = self.drawn if isinstance(self.drawn, Grid) else framed(figure_image(self.drawn))
            annotated(drawn, self.title, self.told).save(path)
            return
        assert isinstance(self.drawn, Figure)
        with atomic_path(path) as temporary, plain_words(self.drawn):
            self.drawn.savefig(temporary, format=ending[1:], facecolor="white")


@dataclass(frozen=True)
class Source:
    """Something that draws latents for a description.

    Attributes:
        name: What it is called.
        loaded: The model or aggregate.
        posterior: The posterior to ask it for.
        path: Its file.
        given: What it must be given: "attributes", of which any may be unknown, a whole "text", or "nothing".
    """

    name: str
    loaded: "Loaded"
    posterior: str
    path: Path
    given: str = "attributes"


@dataclass
class Session:
    """A group of files opened for drawing.

    Attributes:
        group: The files.
        model: The model.
        judge: The judge, or None.
        sources: What draws for descriptions: the model's own q(z|y), fitted posteriors.
        priors: What draws without a description: p(z), learned q(z).
        notices: What could not be opened, and what to do about it.
        concepts: Descriptions to draw, the most varied first; none for a model that knows neither attributes nor text.
        seed: Seed of every choice and draw.
    """

    group: Group
    model: "Loaded"
    judge: "Classifier | None"
    seed: int
    sources: list[Source] = field(default_factory=list)
    priors: list[Source] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    concepts: Descriptions = field(default_factory=lambda: Descriptions(np.zeros((0, 0), np.uint8)))

    @property
    def note(self) -> str:
        """What a reader must know about frames and seeds."""
        return f"{judge_note(self.judge.accuracy if self.judge else None, sees_samples(self.model))} Seed {self.seed}."


def _distinct(sources: list[Source]) -> list[Source]:
    """Sources with the same name told apart by their file."""
    names = [source.name for source in sources]
    return [replace(s, name=f"{s.name} ({s.path.stem})") if names.count(s.name) > 1 else s for s in sources]


def _guided(session: Session, weight: float) -> list[Source]:
    """Guided posteriors to show beside the others: of what was fitted to encodings, else of what else there is.

    Raises:
        UsageError: The model has no p(words | z).
    """
    fitted = [s for s in (*session.sources, *session.priors) if s.posterior == "aggregate"]
    found = []
    for source in fitted or session.sources or session.priors[:1]:
        loaded = source.loaded.guided(weight, session.seed)
        read = loaded.reads(source.posterior)
        given = "text" if loaded.text is not None and read == (loaded.text.name,) else "attributes"
        name = str(loaded.guide(source.posterior).told)
        found.append(Source(name, loaded, source.posterior, source.path, source.given.replace("nothing", given)))
    return found


def open_session(group: Group, seed: int, device: str = "cpu", guidance: float = 0.0) -> Session:
    """Load a model, its aggregates and its judge.

    Args:
        group: The files.
        seed: Seed of every choice and draw.
        device: Where models run.
        guidance: Weight w of guided posteriors, which are sources beside the others; 0 for none.

    Raises:
        UsageError: The model has no p(words | z) to guide with.
    """
    from mmgen.classifier import load_classifier
    from mmgen.loading import load

    model = load(group.model, device)
    session = Session(group, model, None, seed)
    if group.judge is not None:
        try:
            session.judge = load_classifier(group.judge, model.device)
            check_judge(model, session.judge)
        except (ArtifactError, UsageError) as error:  # the pictures are worth showing without red frames
            session.judge = None
            session.notices.append(f"Nobody judged the images of {group.model.name}: {error}.")
    session.priors.append(Source(model.title_of("prior"), model, "prior", group.model, "nothing"))
    fitted = [load(path, device) for path in group.aggregates]
    for loaded in fitted:
        if loaded.aggregate is not None and loaded.target is not None:
            given = loaded.aggregate.given
            fits = session.priors if given == "nothing" else session.sources
            fits.append(Source(loaded.title_of(loaded.target), loaded, loaded.target, loaded.path, given))
    if "text" in model.posteriors and not model.model.conditional_on:
        session.sources.insert(0, Source(model.title_of("text"), model, "text", group.model, model.given or "nothing"))
    elif model.model.conditional_on:
        session.sources.insert(0, Source("p(z), the decoder sees y", model, "prior", group.model))
    if guidance:
        session.sources += _guided(session, guidance)
    session.sources, session.priors = _distinct(session.sources), _distinct(session.priors)
    session.concepts = _concepts(session)
    return session


def _concepts(session: Session, count: int = 24) -> Descriptions:
    """Descriptions from the test part; from the vocabulary where the dataset is gone."""
    model = session.model
    info, text = model.attributes, model.text
    spelled = info is not None and text is not None and set(text.slots) == set(info.names)
    if session.group.dataset is not None:
        with Dataset.open(session.group.dataset) as data:
            rows = data.split(model.settings.data.split, "test")
            if text is not None and not spelled:
                captions, places = np.unique(data.read_text(text.name, rows), axis=0, return_index=True)
                chosen = numpy_generator(session.seed, "captions").permutation(len(captions))[:count]
                # Free text says nothing of attributes: those of an example with that text go with it.
                free = info is not None and not text.slots
                codes = data.read_attributes(info.name, rows[places[chosen]]) if free and info is not None else None
                return complete(model, codes, captions[chosen])
            if info is None:
                return session.concepts
            concepts = choose_concepts(data.read_attributes(info.name, rows), count, session.seed)
            return complete(model, np.sort(concepts, axis=0) if len(info.names) == 1 else concepts)
    if info is None:
        return session.concepts
    if len(info.values) == 1:
        return complete(model, np.arange(min(len(info.values[0]), count), dtype=np.uint8)[:, None])
    sizes = [len(words) for words in info.values]
    generator = numpy_generator(session.seed, "vocabulary")
    most = min(_MOST_COMBINATIONS, int(np.prod(sizes, dtype=np.float64)), 4096)
    drawn = np.stack([generator.integers(0, size, most) for size in sizes], 1).astype(np.uint8)
    return complete(model, choose_concepts(drawn, count, session.seed))


def _draw(session: Session, asked: Descriptions, count: int, sources: Sequence[Source]) -> list[tuple[str, Draws]]:
    return [
        (s.name, draw(s.loaded, asked, count, posterior=s.posterior, seed=session.seed, judge=session.judge))
        for s in sources
    ]


def _across(sources: Sequence[Source]) -> int:
    """Images a row and source, so that a page is not wider than a screen."""
    return {1: 10, 2: 6}.get(len(sources), max(2, 12 // max(1, len(sources))))


def _blocks(draws: Sequence[tuple[str, Draws]]) -> str:
    """The blocks of a picture in words, for readers who search or listen."""
    verdicts = [(name, share_right(drawn)) for name, drawn in draws]
    return "; ".join(f"{name} ({verdict})" if verdict else name for name, verdict in verdicts)


def _single(session: Session) -> bool:
    """Whether a description is the value of a single attribute, such as a digit."""
    asked = session.concepts
    return len(asked) > 0 and asked.tokens is None and asked.codes.shape[1] == 1


def same_words(session: Session) -> list[Picture]:
    """The same descriptions drawn by every posterior."""
    if not len(session.concepts) or not session.sources:
        return []
    count = _across(session.sources)
    asked = session.concepts[: 12 if _single(session) else 6]
    draws = _draw(session, asked, count, session.sources)
    grid = comparison(draws, asked.values(session.model))
    caption = f"Each row one description, {count} images from each of: {_blocks(draws)}."
    return [Picture("The same words, drawn from each posterior", caption, grid, session.note)]


def varied_words(session: Session) -> list[Picture]:
    """One image for each of many descriptions, with the judge's reading where it differs (VE Fig. 3 and 10)."""
    info, asked = session.model.attributes, session.concepts
    if not len(asked) or (_single(session) and len(asked) <= 12):  # all of them are among the same words
        return []
    pictures = []
    for name, drawn in _draw(session, asked, 1, session.sources):
        captions = asked.values(session.model)
        wrong = read = None
        if info is not None and drawn.judged is not None and drawn.wrong is not None:
            wrong = drawn.wrong[:, 0]
            read = [drawn.remark(row, 0, info) for row in range(len(drawn.asked))]
        tile = TILE if asked.tokens is None else SENTENCE_TILE
        grid = image_grid(drawn.means[:, 0], columns=6, captions=captions, remarks=read, wrong=wrong, tile=tile)
        verdict = share_right(drawn)
        caption = f"One image for each of {len(captions)} descriptions of the test part"
        pictures.append(Picture(name, f"{caption}{', ' + verdict if verdict else ''}.", grid, session.note))
    return pictures


def abstraction(session: Session, concepts: Descriptions | None = None) -> list[Picture]:
    """A concept, the first of ``concepts``, and its ancestors (VE Fig. 4b)."""
    concepts = session.concepts if concepts is None else concepts
    info = session.model.attributes
    sources = [source for source in session.sources if source.given != "text"]  # a sentence is whole
    if info is None or not sources or not len(concepts):
        return []
    concept = concepts.codes[0]
    known = int((concept != UNKNOWN).sum())
    # Beyond six levels rows only repeat the lesson; the last attributes then stay given.
    levels = hierarchy_queries(concept)[max(0, known - 6) :]
    count = _across(sources)
    draws = _draw(session, Descriptions(levels), count, sources)
    grid = hierarchy(draws, info)
    caption = (
        f"From abstract (top) to {format_query(levels[-1], info)} (bottom): attributes are dropped one by one, and "
        f"what is not given should vary. {count} images a row from each of: {_blocks(draws)}."
    )
    return [Picture("Abstraction hierarchy", caption, grid, session.note)]


def without_words(session: Session) -> list[Picture]:
    """Images from the prior and from the learned prior, nothing given."""
    if session.model.model.conditional_on:  # its decoder wants a description
        return []
    across, rows = _across(session.priors), 3
    panels = []
    for source in session.priors:
        name = source.name
        drawn = draw(
            source.loaded, nothing(source.loaded), across * rows, posterior=source.posterior, seed=session.seed
        )
        images = drawn.means[0].reshape(rows, across, *drawn.means.shape[2:])
        panels.append(Panel(name, images))
    grid = image_table(panels, ["nothing given"] + [""] * (rows - 1))
    names = "; ".join(panel.title for panel in panels)
    caption = f"{across * rows} images from each of: {names}. Shown: means of p(image|z). Seed {session.seed}."
    return [Picture("Without words", caption, grid)]
