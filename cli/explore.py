"""``mmgen explore``: one page to play with."""

from pathlib import Path
from typing import Annotated

import typer

from mmgen.cli._console import follow, result, say
from mmgen.cli._options import Device, Guidance, OverwriteOthers, Seed, command_line, output_option, read_paths

__all__ = ["explore_command"]


def explore_command(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES...",
            show_default=False,
            help="A model and what was fitted to it, or a judge; '-' reads paths from stdin.",
        ),
    ],
    output: Annotated[Path | None, output_option("explore.html by default")] = None,
    title: Annotated[
        str, typer.Option("--title", metavar="TEXT", show_default=False, help="Heading; names the model by default.")
    ] = "",
    number: Annotated[
        int, typer.Option("--number", "-n", min=1, max=100, help="Pictures of each description and posterior.")
    ] = 6,
    descriptions: Annotated[
        int,
        typer.Option(
            "--descriptions",
            metavar="N",
            min=1,
            max=100_000,
            help="Descriptions that the page holds at most, the most frequent; fewer where they would exceed "
            "--max-size.",
        ),
    ] = 2000,
    dimensions: Annotated[
        int | None,
        typer.Option(
            "--dimensions",
            metavar="N",
            min=1,
            show_default="16 at most",
            help="Dimensions of z that are traversed, those that say most of the data.",
        ),
    ] = None,
    max_size: Annotated[
        float, typer.Option("--max-size", metavar="MB", min=0.1, max=100, help="Megabytes of the page at most.")
    ] = 3.0,
    overwrite: OverwriteOthers = False,
    guidance: Guidance = "0",
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="PAGE",
            show_default="report.html beside it",
            help="The page of mmgen report that it links to, which need not be there yet.",
        ),
    ] = None,
    device: Device = "auto",
    seed: Seed = 0,
) -> None:
    """Make one HTML page to play with: choose words, move z, look around in the latent space.

    It shows pictures of every posterior for any words, what each dimension of z changes, and a map of encodings with
    what is decoded under the pointer. Everything is drawn beforehand: the page needs no server and no network, so that
    it can be opened from a disk, sent, or put on a web site.
    """
    from mmgen.artifacts.pages import check_page

    paths = read_paths(files)
    out = output or Path("explore.html")
    check_page(out, "explore", overwrite, *paths)

    from mmgen.figures.explore.make import Limits, make_explorer  # seconds, which a mistake need not take

    limits = Limits(number, descriptions, dimensions, int(max_size * 1e6))
    work = make_explorer(
        paths, out, title=title, limits=limits, guidance=guidance, seed=seed, device=device, command=command_line(),
        report=report,
    )  # fmt: skip
    follow(work)
    say(f"explore: {out}, {out.stat().st_size / 1e6:.1f} MB; open it in any browser")
    result(out)
