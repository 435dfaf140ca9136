"""From files to one figure: what ``mmgen plot`` does."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from mmgen.core.errors import UsageError
from mmgen.figures import plots
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.plots._base import Plot, PlotOptions
from mmgen.figures.session import gather, open_session
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
) -> tuple[Picture, list[str]]:
    """Draw a figure by name.

    Args:
        name: One of ``mmgen.figures.plots.names()``.
        paths: Models, aggregates, judges, scores; their parents and the judge are found by lineage.
        descriptions: In words; by default the figure chooses.
        number: How many examples or descriptions it shows; by default as many as fit well.
        sources: Image modalities to start from, several at once as "edges+mask"; by default the figure chooses.
        targets: Image modalities to draw; by default the figure chooses.
        metrics: What is measured along the axes; by default the figure chooses.
        guidance: Weight w of guided posteriors, which are shown beside the others, or "3:balanced"; 0 for none.
        rows: Rows of the dataset to start from; by default the figure chooses.
        by: The attribute or factor that points are coloured by; by default the figure chooses.
        straight: Interpolate straight instead of by the arc.
        device: Where models run.
        seed: Seed of every choice and draw.

    Returns:
        The picture, and what could not be opened.

    Raises:
        UsageError: There is no such figure, it cannot be drawn from these files, or does not accept an option.
        ArtifactError: A file cannot be read.
    """
    member: Plot = plots.get(name)
    options = PlotOptions(
        tuple(descriptions), number, tuple(sources), tuple(targets), tuple(metrics), guidance=Guidance.of(guidance),
        rows=tuple(rows), by=by, straight=straight,
    )  # fmt: skip
    member.check(name, options)
    paths = list(paths)
    material = gather(paths, frames=member.frames)
    if not (material.scores if member.reads_scores else material.groups):
        expected = "files of scores (.jsonl), which mmgen eval MODEL -o writes"
        expected = expected if member.reads_scores else "a model, or something fitted to one"
        raise UsageError(f"{name} got {material.describe(paths)}, expected {expected}")
    member.check_models(name, material.groups)
    if unread := material.unread(
        paths,
        scores=member.reads_scores or member.frames,
        models=member.shows != "scores",
        judges=not member.reads_scores,
    ):
        material.notices.append(f"{name} shows nothing of {material.describe(unread)}.")
    shown = material.groups if member.shows != "scores" else []
    sessions = [open_session(group, seed, device, guidance) for group in shown]
    notices = material.notices + [notice for session in sessions for notice in session.notices]
    return member(sessions, replace(options, scores=tuple(material.scores))), notices
