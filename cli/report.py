"""``mmgen report``: one self-contained page."""

from pathlib import Path
from typing import Annotated

import typer

from mmgen.cli._console import follow, result, say
from mmgen.cli._options import Device, Guidance, OverwriteOthers, Seed, command_line, output_option, read_paths

__all__ = ["report_command"]


def report_command(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES...",
            show_default=False,
            help="Checkpoints, aggregates, judges, scores of mmgen eval (.jsonl), logs, or a folder with these; '-' "
            "reads paths from stdin.",
        ),
    ],
    output: Annotated[Path | None, output_option("report.html by default")] = None,
    title: Annotated[
        str, typer.Option("--title", metavar="TEXT", show_default=False, help="Heading; names the models by default.")
    ] = "",
    overwrite: OverwriteOthers = False,
    guidance: Guidance = "0",
    explore: Annotated[
        Path | None,
        typer.Option(
            "--explore",
            metavar="PAGE",
            show_default="explore.html beside it",
            help="The page of mmgen explore that it links to, which need not be there yet.",
        ),
    ] = None,
    device: Device = "auto",
    seed: Seed = 0,
) -> None:
    """Make one self-contained HTML page: scores beside the papers' numbers, samples, latent maps, curves, lineage.

    Parents, logs and the judge are found through the files' lineage. The page needs no other file and no network.
    """
    from mmgen.artifacts.pages import check_page

    paths = read_paths(files, folders=True)
    out = output or Path("report.html")
    check_page(out, "report", overwrite, *paths)

    from mmgen.figures.report.make import make_report  # seconds, which a mistake need not take

    work = make_report(
        paths, out, title=title, seed=seed, device=device, command=command_line(), guidance=guidance,
        explore=explore,
    )  # fmt: skip
    follow(work)
    say(f"report: {out.resolve().as_uri()}")
    result(out)
