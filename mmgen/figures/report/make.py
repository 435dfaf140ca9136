"""One self-contained page about models and what was fitted to them: scores, samples, latent maps, curves, lineage.

The page refers to nothing outside itself, runs no script, and shows whatever stands in a file as text.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmgen.artifacts import write_text_atomic
from mmgen.artifacts.pages import link_to
from mmgen.core.errors import UsageError
from mmgen.core.parsing import strip_controls
from mmgen.core.progress import Progress, Work
from mmgen.figures import plots
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.plots import PlotOptions
from mmgen.figures.plots.weak_supervision import curves_of
from mmgen.figures.report.context import about, context
from mmgen.figures.report.judges import confusions
from mmgen.figures.report.pictures import (
    TileSheet,
    abstracted,
    folded,
    latents,
    maps,
    same_words,
    varied_words,
    without_words,
)
from mmgen.figures.report.reconstructions import reconstructed
from mmgen.figures.session import Session, gather, latent_sizes, open_session
from mmgen.generation.decode import drawable_pictures
from mmgen.posteriors import AnyGuidance, Guidance
from mmgen.results.score import Score
from mmgen.results.table import Table

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["make_report", "render"]


def _speaks(session: Session) -> bool:
    """Return whether the model generates images and text."""
    text = session.model.text
    return text is not None and bool(drawable_pictures(session.model)) and text.name in session.model.model.generates


def _texts(session: Session) -> list[Picture]:
    """Draw text-to-image and reconstructions for a model of images and text; [] for others."""
    if not _speaks(session):
        return []
    found = [plots.get("text-to-image")([session], PlotOptions())] if session.sources else []
    if session.group.dataset is not None:
        found.append(plots.get("reconstructions")([session], PlotOptions()))
    return found


def _transformations(session: Session) -> list[Picture]:
    """Draw each kind of picture from the others, for a model of several kinds; [] for others."""
    from mmgen.generation.translations import select_routes

    if (
        session.group.dataset is None
        or len(drawable_pictures(session.model)) < 2
        or not select_routes(session.model, (), ())
    ):
        return []
    return [plots.get("transformations")([session], PlotOptions())]


def _uncertainty(sessions: Sequence[Session]) -> list[Picture]:
    """Draw how uncertain models are of their words, for models with the first one's modalities."""
    speaking = [session for session in sessions if session.group.dataset is not None and _speaks(session)]
    alike = [
        session
        for session in speaking
        if (session.model.text, session.model.observation) == (speaking[0].model.text, speaking[0].model.observation)
    ]
    return [plots.get("word-uncertainty")(alike, PlotOptions())] if alike else []


_STAGES: dict[str, Callable[[Session], Sequence[Picture | TileSheet]]] = {
    "same_words": same_words,
    "folded": folded,
    "varied_words": varied_words,
    "without_words": without_words,
    "reconstructed": reconstructed,
    "abstraction": abstracted,
    "texts": _texts,
    "transformations": _transformations,
    "maps": maps,
    "latents": latents,
}
_WITHOUT_PICTURES = ("latents",)
"""Stages for models that draw no pictures."""


def _curves(scores: Sequence[Score]) -> list[Picture]:
    """Draw accuracies over numbers of pairs, where scores are of several such numbers."""
    try:
        curves = curves_of(scores)
    except UsageError:
        return []
    if len({point.pairs for curve in curves for point in curve.points}) < 2:
        return []
    return [plots.get("weak-supervision")([], PlotOptions(scores=tuple(scores)))]


def _plain_letters(value: Any) -> Any:
    """Return text without control characters, numbers and their units on one line."""
    if type(value) is not str:  # what is marked as a page's own
        return value
    return strip_controls(value).replace(" %", "\N{NO-BREAK SPACE}%")  # a number and its unit stay on one line


def page_environment(room: str = "report") -> "Environment":
    """Return the environment of a room's templates: every value is escaped and shown as plain letters."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(f"mmgen.figures.{room}"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=_plain_letters,
    )


def render(values: Mapping[str, Any]) -> str:
    """Return the page for the values of :func:`mmgen.figures.report.context.context`."""
    return page_environment().get_template("report.html.jinja").render(values)


def make_report(
    paths: Iterable[Path],
    out: Path,
    *,
    title: str = "",
    seed: int = 0,
    device: str = "cpu",
    command: str = "",
    summaries: Sequence[Table] = (),
    guidance: AnyGuidance = 0.0,
    explore: Path | None = None,
) -> Work[Path]:
    """Return a report as work to do: read the files, draw the pictures, write the page.

    Args:
        paths: Checkpoints, aggregates, judges, datasets, samples, scores and logs; their parents are found by lineage.
        out: The page.
        title: Its heading; by default it names the models.
        seed: Seed of every choice and draw in its pictures.
        device: Where models run.
        command: The command that makes it, for its foot.
        summaries: Tables to open the page with, such as a paper's numbers beside one's own.
        guidance: Weight w of guided posteriors, which are shown beside the others, or "3:balanced"; 0 for none.
        explore: The page to explore that it links to, which need not be there yet; by default explore.html beside it.

    Raises:
        UsageError: No model that was named can be guided so, or ``explore`` is no such page.
        ArtifactError: A file cannot be read, or is nothing that a report shows.
    """
    material = gather(paths)
    if Guidance.of(guidance) and not material.groups:
        raise UsageError("got guidance, but no model that could draw with it; leave it out, or name a model")
    models = [group.header.content_id for group in material.groups]
    link_to(out, "explore", models, explore)  # what is wrong with it is said before work starts
    curves = _curves(material.scores)
    if curves:  # they show what baselines reached; a table of models has no row for them
        material.scores = [score for score in material.scores if score.protocol != "baseline"]
    names = [material.names[group.header.content_id] for group in material.groups]
    heading = title or (f"Report on {' and '.join(names)}" if 0 < len(names) < 4 else "Report")
    total = len(material.groups) * len(_STAGES) + 1

    def generator() -> Generator[Progress, None, Path]:
        runs: list[dict[str, Any]] = []
        sessions: list[Session] = []
        done = 0
        for group in material.groups:
            session = open_session(group, seed, device, guidance)
            material.notices += session.notices
            sessions.append(session)
            run: dict[str, Any] = {"name": material.names[group.header.content_id], "about": about(group)}
            run["dimensions"] = f"z of {latent_sizes(group.header)} dimensions"
            pictured = bool(drawable_pictures(session.model))
            if not pictured:
                material.notices.append(
                    f"{run['name']} generates no pictures: its scores, encodings, curves and lineage are here."
                )
            run["note"] = session.note
            for stage, drawn in _STAGES.items():
                try:
                    run[stage] = drawn(session) if pictured or stage in _WITHOUT_PICTURES else []
                except UsageError as error:  # of data without test examples: the rest of the page is worth showing
                    run[stage] = []
                    material.notices.append(f"{run['name']}: {error}.")
                for picture in run[stage]:  # packed now, so that progress tells the truth
                    if isinstance(picture, Picture):
                        _ = picture.uri
                done += 1
                yield Progress(done)
            runs.append(run)
        mistaken = {str(s.judge.content_id): confusions(s) for s in sessions if s.judge is not None}
        values = context(material, runs, heading, command, seed, mistaken)
        values |= {"models": models, "explored": link_to(out, "explore", models, explore)}
        values |= {"uncertainty": _uncertainty(sessions), "summaries": list(summaries), "curves_of_pairs": curves}
        write_text_atomic(out, render(values))
        yield Progress(total)
        return out

    return Work(f"drawing {out.name}", total, "stage", generator)
