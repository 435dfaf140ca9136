"""``mmgen reproduce``: a published table made again, by the commands that a user would type."""

import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmgen.cli._completion import tables, words
from mmgen.cli._console import follow, result, say, table
from mmgen.cli._options import command_line, output_option, read_path
from mmgen.cli._stages import end_with_children, run_command
from mmgen.errors import MmgenError

if TYPE_CHECKING:
    from mmgen.reproductions._stages import Plan, Scale

__all__ = ["reproduce_command"]


def reproduce_command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            show_default=False,
            help="cremer-table1, cremer-table2, wu-table2, wu-figure3, or the path of a list of your own.",
            autocompletion=tables,
        ),
    ],
    scale: Annotated[
        str,
        typer.Option(
            "--scale",
            metavar="SIZE",
            help="cpu: smaller, for two cores; paper: as published.",
            autocompletion=words("cpu", "paper"),
        ),
    ] = "cpu",
    output: Annotated[Path | None, output_option("a folder, by default the one that the list names")] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="NAME|FILE",
            show_default=False,
            help="Which dataset, where a table is of several; or a dataset file to use instead of making one.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="ROW", show_default=False, help="Only run what this model needs; repeatable."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            min=0,
            metavar="N",
            show_default=False,
            help="Another seed for every command but the one that makes the dataset; in a folder of its own.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the commands as a shell script and leave.")] = False,
) -> None:
    """Make a published table again, and print it beside the paper's numbers.

    Runs the commands of a plain list (TOML, in mmgen/reproductions), each of which makes one file. Files that are there
    and fit are used as they are, and an interrupted training is continued; so the command can be given again at any
    time. The table goes into a page of Markdown and opens a report with pictures, whose paths are printed.
    """
    from mmgen.artifacts import check_place
    from mmgen.reproductions import _plan

    listed, dataset = _plan.find_list(name, data)
    plan = _plan.read_plan(listed)
    everything = plan.at(scale)
    if seed is not None:
        everything = _plan.with_seed(everything, seed)
    folder = output or Path(everything.folder)
    if dataset is not None:
        everything = _plan.with_data(everything, read_path(str(dataset), "dataset"))
    chosen = _plan.only(everything, only) if only else everything
    if dry_run:
        result(_plan.script(plan, chosen, folder).rstrip())
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MmgenError(f"cannot use the folder {folder}: {error.strerror}; choose another with --output") from None
    page = folder / f"{_stem(listed)}-{scale}.md"
    for path in (page, page.with_suffix(".html")):
        check_place(path)  # before hours of work, not after
    end_with_children()
    say(f"{plan.title}\n{chosen.about.strip()}\nEverything happens in {folder}.")
    ran = _run(chosen, folder)
    _present(plan, everything, page, ran)


def _stem(listed: str) -> str:
    """What a list's pages are called: a table of several datasets has a page for each."""
    return Path(listed).stem if listed.endswith(".toml") else listed.replace("/", "-")


def _present(plan: "Plan", scale: "Scale", page: Path, ran: bool) -> None:
    """The tables, on the terminal, in a page of Markdown and in a report with pictures."""
    from mmgen.artifacts import write_text_atomic
    from mmgen.figures.report.make import Summary, make_report
    from mmgen.reproductions._comparison import compare
    from mmgen.reproductions._page import judge_sentence, markdown, tables_of
    from mmgen.reproductions._plan import fitting
    from mmgen.score import read_scores

    folder = page.parent
    there = fitting(scale, folder)
    scores = {file: read_scores(folder / file) for file in there if file.endswith(".jsonl")}
    compared = [compare(part, scores) for part in plan.table]
    note = judge_sentence(compared)
    say("")
    for title, columns, rows in tables_of(plan, compared):
        table(title, columns, rows)
    if note:
        say(note)
    write_text_atomic(page, markdown(plan, scale, compared, folder))
    result(page)
    drawn = [file for file in there if file.endswith(".png")]
    for file in drawn:
        result(folder / file)
    pictures = page.with_suffix(".html")
    if ran or not pictures.exists():
        summaries = [Summary(*shown) for shown in tables_of(plan, compared)]
        summaries[-1:] = [replace(last, note=f"{scale.about} {note}".strip()) for last in summaries[-1:]]
        shown = [folder / stage.makes for stage in scale.stage if not stage.is_data and stage.makes in there]
        shown = [path for path in shown if path.name not in drawn]  # the report draws its own
        work = make_report(
            shown, pictures, title=plan.title, device="auto", command=command_line(), summaries=summaries
        )
        follow(work)
    result(pictures)


def _overwrites(command: str) -> bool:
    """Whether a command replaces a finished file only when told."""
    from mmgen.cli._main import load_command

    return any("--overwrite" in parameter.opts for parameter in load_command(command).params)


def _run(scale: "Scale", folder: Path) -> bool:
    """Run what is not there yet, in order; returns whether there was anything."""
    from mmgen.reproductions._plan import state_of

    ran = False
    made = [stage.makes for stage in scale.stage]
    for number, stage in enumerate(scale.stage, 1):
        state = state_of(stage, folder, made[: number - 1])
        remark = {"done": f"{stage.makes} is there", "unfinished": "continued"}.get(state, "")
        say(f"\n[{number}/{len(made)}] {stage.why}" + (f" ({remark})" if remark else "") + f"\n$ {stage.typed}")
        if state == "done":
            continue
        began = time.monotonic()
        replaces = ["--overwrite"] if state == "outdated" and _overwrites(stage.arguments[0]) else []
        run_command([*stage.arguments, *replaces], folder, "the reproduction")
        ran = True
        if not (folder / stage.makes).exists():
            raise MmgenError(
                f"this command did not make {stage.makes}, as its list says: {shlex.join(stage.arguments)}"
            )
        say(f"took {time.monotonic() - began:,.0f} s")
    return ran
