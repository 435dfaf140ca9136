"""``mmgen plot``: one figure by name."""

from pathlib import Path
from typing import Annotated

import typer

from mmgen.cli._completion import members
from mmgen.cli._console import result, say
from mmgen.cli._options import Device, Guidance, LookedAt, OverwriteOthers, Seed, output_option, read_paths
from mmgen.cli._words import check_words

__all__ = ["plot_command"]


def _check_figure(name: str) -> None:
    from mmgen.figures import plots

    plots.describe(name)


def plot_command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            show_default=False,
            help="The figure: {mmgen.figures.plots}.",
            autocompletion=members("mmgen.figures.plots"),
        ),
        LookedAt(_check_figure),
    ],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES...",
            show_default=False,
            help="The model and what was fitted to it, or several models; '-' reads paths from stdin.",
        ),
    ],
    output: Annotated[Path | None, output_option("NAME.png by default")] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--given",
            metavar="WORDS",
            show_default=False,
            help='A description to draw, such as "large red cube" or "digit=3"; repeatable. By default several.',
        ),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option("--number", "-n", min=1, show_default=False, help="How many examples or descriptions to show."),
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="NAME",
            show_default=False,
            help="Of transformations: the kind of picture to start from, such as edges, or several together, "
            "edges+mask; repeatable.",
        ),
    ] = None,
    targets: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            metavar="NAME",
            show_default=False,
            help="Of transformations: the kind of picture to draw, such as image; repeatable.",
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="NAME",
            show_default=False,
            help="Of trade-off: precision, for precision over recall; or two metrics, the upward one first. "
            "Correctness over coverage by default. Of disentanglement: the upward one, factor-score by default.",
            autocompletion=members("mmgen.metrics"),
        ),
    ] = None,
    rows: Annotated[
        list[int] | None,
        typer.Option(
            "--dataset-row",
            metavar="N",
            min=0,
            show_default=False,
            help="Of traversal, interpolation and analogies: a row of the dataset to start from; repeatable, for "
            "interpolation in pairs. By default test examples at random.",
        ),
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="NAME",
            show_default=False,
            help="Of embedding: the attribute or factor that colours mean; of analogies: the one that columns change.",
        ),
    ] = "",
    straight: Annotated[
        bool, typer.Option("--straight", help="Of interpolation: straight from one z to another instead of by the arc.")
    ] = False,
    overwrite: OverwriteOthers = False,
    guidance: Guidance = "0",
    device: Device = "auto",
    seed: Seed = 0,
) -> None:
    """Draw one figure of a paper from your own files.

    Parents and the judge are found through the files' lineage. Writes .png; drawings of lines also .pdf and .svg.
    """
    from mmgen.artifacts.pages import check_page

    paths = read_paths(files)
    out = output or Path(f"{name}.png")
    check_page(out, "picture", overwrite, *paths)
    for path in paths:
        check_words(path, given or ())

    from mmgen.figures import plots  # seconds, which a mistake need not take
    from mmgen.figures.plots import draw_plot

    plots.get(name).check_output(out)
    picture, notices = draw_plot(
        name,
        paths,
        descriptions=given or (),
        number=number,
        sources=sources or (),
        targets=targets or (),
        metrics=metrics or (),
        guidance=guidance,
        rows=rows or (),
        by=by,
        straight=straight,
        device=device,
        seed=seed,
    )
    for notice in notices:
        say(notice)
    say(picture.told)
    picture.save(out)
    result(out)
