"""Drawing of a named figure from files, as ``mmgen plot`` does."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from mmgen.core.errors import UsageError
from mmgen.figures import plots
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.plots._base import Plot, PlotOptions
from mmgen.figures.session import gather_files, open_session
from mmgen.posteriors import AnyGuidance, Guidance

__all__ = ["draw_plot"]


def draw_plot(
    name: str,
    paths: Iterable[Path],
    *,
    descriptions: Sequence[str] = (),
    number: int | None = None,
    sources: Sequence[str] = (),
    targets: Sequence[str] = (),
    metrics: Sequence[str] = (),
    guidance: AnyGuidance = 0.0,
    rows: Sequence[int] = (),
    by: str = "",
    straight: bool = False,
    device: str = "cpu",
    seed: int = 0,
    complete: bool = True,
) -> tuple[Picture, list[str]]:
    """Draw the figure ``name`` from files; return its picture and warnings.

    Args:
        name: One of ``mmgen.figures.plots.names()``.
        paths: Models, fitted posteriors, classifiers, scores; parents and the classifier are found by lineage.
        descriptions: Descriptions as a person types them; by default the figure chooses.
        number: Number of examples or descriptions; by default as many as fit well.
        sources: Image modalities to start from, several at once as "edges+mask"; by default the figure chooses.
        targets: Image modalities to draw; by default the figure chooses.
        metrics: Metrics of the axes; by default the figure chooses.
        guidance: Weight w of additional guided posteriors, or "cfg:0.5"; 0 for none.
        rows: Rows of the dataset to start from; by default the figure chooses.
        by: Attribute or factor that points are coloured by; by default the figure chooses.
        straight: Whether to interpolate along a straight line instead of an arc.
        device: Device of the models.
        seed: Seed of every choice and draw.
        complete: Whether words that descriptions leave open are drawn first.

    Returns:
        The picture, and notices about files that could not be opened.

    Raises:
        UsageError: There is no such figure, it cannot be drawn from these files, or does not accept an option.
        ArtifactError: A file cannot be read.
    """
    member: Plot = plots.get(name)
    options = PlotOptions(
        tuple(descriptions), number, tuple(sources), tuple(targets), tuple(metrics), guidance=Guidance.parse(guidance),
        rows=tuple(rows), by=by, straight=straight,
    )  # fmt: skip
    member.check(name, options)
    if not complete and "descriptions" not in member.accepts:
        raise UsageError(f"{name} got --no-complete, but it draws nothing from descriptions; leave it out")
    paths = list(paths)
    report_files = gather_files(paths, frames=member.frames)
    if not (report_files.scores if member.reads_scores else report_files.groups):
        expected = "files of scores (.jsonl), which mmgen eval MODEL -o writes"
        expected = expected if member.reads_scores else "a model, or a posterior fitted to one"
        raise UsageError(f"{name} got {report_files.describe(paths)}, expected {expected}; give such a file")
    member.check_models(name, report_files.groups)
    if unread := report_files.unused_files(
        paths,
        scores=member.reads_scores or member.frames,
        models=member.shows != "scores",
        judges=not member.reads_scores,
    ):
        report_files.notices.append(f"{name} does not use {report_files.describe(unread)}.")
    shown = report_files.groups if member.shows != "scores" else []
    sessions = [open_session(group, seed, device, guidance, complete) for group in shown]
    notices = report_files.notices + [notice for session in sessions for notice in session.notices]
    return member(sessions, replace(options, scores=tuple(report_files.scores))), notices
