"""Making of a report on models and their fitted posteriors: scores, pictures, maps of z, learning curves, lineage.

The page is one file without references to others, runs no script, and shows all contents of files as plain text.
"""

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmgen.artifacts import write_text_atomic
from mmgen.artifacts.pages import find_page_link
from mmgen.core.errors import UsageError
from mmgen.core.parsing import strip_controls
from mmgen.core.progress import Progress, Work
from mmgen.figures import plots
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.plots import PlotOptions
from mmgen.figures.plots.weak_supervision import make_curves
from mmgen.figures.report.context import describe_model, page_context
from mmgen.figures.report.pictures import (
    draw_abstractions,
    draw_folded,
    draw_gaps,
    draw_latent_space,
    draw_maps,
    draw_reconstructions,
    draw_same_descriptions,
    draw_varied_descriptions,
    draw_without_description,
    sort_by_scores,
)
from mmgen.figures.report.scores import scores_of_model
from mmgen.figures.session import (
    ModelFiles,
    Session,
    gather_files,
    get_setting,
    latent_sizes,
    name_data,
    open_session,
)
from mmgen.generation.decode import drawable_pictures
from mmgen.posteriors import AnyGuidance, Guidance
from mmgen.results.groups import rank_posteriors
from mmgen.results.score import Score
from mmgen.results.table import Table

if TYPE_CHECKING:
    from jinja2 import Environment


def _part_rivals(groups: Sequence[ModelFiles]) -> tuple[list[ModelFiles], list[ModelFiles]]:
    """Return the models that a report is about, and the plain conditional VAEs that it shows beside its one other model
    of the same data; without one, or with several, these are models as any other.
    """
    plain = [one for one in groups if get_setting(one.header, "objective", "name") == "cvae" and not one.aggregates]
    others = [group for group in groups if group not in plain]
    if len(others) != 1 or any(one.dataset is None or one.dataset != others[0].dataset for one in plain):
        return list(groups), []
    return others, plain


def _generates_text(session: Session) -> bool:
    """Return whether the session's model generates both images and text."""
    text = session.model.text
    return text is not None and bool(drawable_pictures(session.model)) and text.name in session.model.model.generates


def _draw_texts(session: Session) -> list[Picture]:
    """Draw the figures text-to-image and reconstructions for a model of images and text; [] for others."""
    if not _generates_text(session):
        return []
    found = [plots.get("text-to-image")([session], PlotOptions())] if session.sources else []
    if session.group.dataset is not None:
        found.append(plots.get("reconstructions")([session], PlotOptions()))
    return found


def _draw_transformations(session: Session) -> list[Picture]:
    """Draw the figure transformations for a model of several kinds of pictures; [] for others."""
    from mmgen.generation.translations import select_routes

    if (
        session.group.dataset is None
        or len(drawable_pictures(session.model)) < 2
        or not select_routes(session.model, (), ())
    ):
        return []
    return [plots.get("transformations")([session], PlotOptions())]


def _draw_further(session: Session) -> list[Picture]:
    """Draw the figures that ask to be shown for such a model, whose dataset is at hand."""
    asking = [plot for plot in plots.import_all().values() if plot.reported is not None and plot.reported(session)]
    return [plot([session], PlotOptions()) for plot in asking if session.group.dataset is not None]


def _draw_copies(session: Session) -> list[Picture]:
    """Draw the figure copies for a model of pictures whose dataset is at hand; [] for others."""
    main = session.model.observation
    if session.group.dataset is None or main is None or main.name not in drawable_pictures(session.model):
        return []
    return [plots.get("copies")([session], PlotOptions())]


def _draw_uncertainty(sessions: Sequence[Session]) -> list[Picture]:
    """Draw the figure word-uncertainty for models with the modalities of the first; [] without any."""
    speaking = [session for session in sessions if session.group.dataset is not None and _generates_text(session)]
    alike = [
        session
        for session in speaking
        if (session.model.text, session.model.observation) == (speaking[0].model.text, speaking[0].model.observation)
    ]
    return [plots.get("word-uncertainty")(alike, PlotOptions())] if alike else []


_STAGES: dict[str, Callable[[Session], Sequence[Picture]]] = {
    "gaps": draw_gaps,
    "same_words": draw_same_descriptions,
    "folded": draw_folded,
    "varied_words": draw_varied_descriptions,
    "without_words": draw_without_description,
    "reconstructed": draw_reconstructions,
    "copies": _draw_copies,
    "abstraction": draw_abstractions,
    "texts": _draw_texts,
    "transformations": _draw_transformations,
    "further": _draw_further,
    "maps": draw_maps,
    "latents": draw_latent_space,
}
_WITHOUT_PICTURES = ("further", "latents")
"""Stages that also apply to models without pictures."""


def _check_stages() -> None:
    """Refuse a stage that the page would not show: its pictures would be drawn for nobody."""
    environment = page_environment()
    assert environment.loader is not None
    source, *_ = environment.loader.get_source(environment, "report.html.jinja")
    forgotten = [stage for stage in _STAGES if not re.search(rf"\brun\.{stage}\b", source)]
    if forgotten:
        raise RuntimeError(f"report.html.jinja does not show the stage '{forgotten[0]}'; add a section with it")


def _draw_curves(scores: Sequence[Score]) -> list[Picture]:
    """Draw the figure weak-supervision if there are scores of several numbers of pairs; else []."""
    try:
        curves = make_curves(scores)
    except UsageError:
        return []
    if len({point.x.value for curve in curves for point in curve.points}) < 2:
        return []
    return [plots.get("weak-supervision")([], PlotOptions(scores=tuple(scores)))]


def _strip_control_characters(value: Any) -> Any:
    """Strip control characters from text, and join numbers and units by no-break spaces; keep other values."""
    if type(value) is not str:  # markup of the page itself
        return value
    return strip_controls(value).replace(" %", "\N{NO-BREAK SPACE}%")  # a number and its unit stay on one line


def page_environment(package: str = "mmgen.figures.report") -> "Environment":
    """Return the jinja environment of a package's folder "templates", which escapes all values."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=_strip_control_characters,
    )


def render_page(values: Mapping[str, Any]) -> str:
    """Render the HTML page of a report from the values of :func:`mmgen.figures.report.context.page_context`."""
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
    complete: bool = True,
) -> Work[Path]:
    """Return the work that draws the pictures of a report and writes its HTML page to ``out``.

    Args:
        paths: Models, fitted posteriors, classifiers, datasets, samples, scores and logs; parents are found by lineage.
        out: The file of the page.
        title: Heading of the page; by default it names the data, and models whose data are gone.
        seed: Seed of every choice and draw.
        device: Device of the models.
        command: The command that makes the page, for its foot.
        summaries: Tables at the top of the page, such as a comparison with a paper.
        guidance: Weight w of additional guided posteriors, or "cfg:0.5"; 0 for none.
        explore: The linked page to explore, which may not exist yet; by default explore.html beside the report.
        complete: Whether words that descriptions leave open are drawn first.

    Raises:
        UsageError: Guidance without a model that can be guided, or ``explore`` is no page to explore.
        ArtifactError: A file cannot be read, or a report cannot show it.
    """
    _check_stages()
    report_files = gather_files(paths)
    if Guidance.parse(guidance) and not report_files.groups:
        raise UsageError("got guidance, but no model to guide; leave guidance out, or give the file of a model")
    if not complete and not report_files.groups:
        raise UsageError("got --no-complete, but no model to draw from; leave it out, or give the file of a model")
    models = [group.header.content_id for group in report_files.groups]
    find_page_link(out, "explore", models, explore)  # refuse a wrong file before the work starts
    curves = _draw_curves(report_files.scores)
    if curves:  # they show what baselines reached; a table of models has no row for them
        report_files.scores = [score for score in report_files.scores if score.protocol != "baseline"]
    groups, rivals = _part_rivals(report_files.groups)
    names = list(dict.fromkeys(map(name_data, groups)))
    heading = title or (f"Report on {' and '.join(names)}" if 0 < len(names) < 4 else "Report")
    total = len(groups) * len(_STAGES) + 1

    def generator() -> Generator[Progress, None, Path]:
        runs: list[dict[str, Any]] = []
        sessions: list[Session] = []
        done = 0
        for group in groups:
            session = open_session(group, seed, device, guidance, complete)
            ranked = rank_posteriors(scores_of_model(report_files, group.header.content_id))
            beside = [open_session(one, seed, device, 0.0, complete) for one in rivals]
            session.rivals = [source for one in beside for source in one.sources]
            session.sources = sort_by_scores(session.sources, ranked, len(session.rivals))
            report_files.notices += session.notices
            sessions.append(session)
            run: dict[str, Any] = {"name": report_files.names[group.header.content_id], "about": describe_model(group)}
            run["dimensions"] = f"z of {latent_sizes(group.header)} dimensions"
            pictured = bool(drawable_pictures(session.model))
            if not pictured:
                report_files.notices.append(
                    f"{run['name']} generates no pictures: its scores, encodings, curves and lineage are here."
                )
            run["note"] = session.note
            for stage, drawn in _STAGES.items():
                try:
                    run[stage] = drawn(session) if pictured or stage in _WITHOUT_PICTURES else []
                except UsageError as error:  # of data without test examples: the rest of the page is worth showing
                    run[stage] = []
                    report_files.notices.append(f"{run['name']}: {error}.")
                for picture in run[stage]:  # packed now, so that progress tells the truth
                    _ = picture.uri
                done += 1
                yield Progress(done)
            runs.append(run)
        values = page_context(report_files, runs, heading, command, seed)
        values |= {"models": models, "explored": find_page_link(out, "explore", models, explore)}
        values |= {"uncertainty": _draw_uncertainty(sessions), "summaries": list(summaries), "curves_of_pairs": curves}
        write_text_atomic(out, render_page(values))
        yield Progress(total)
        return out

    return Work(f"drawing {out.name}", total, "stage", generator)
