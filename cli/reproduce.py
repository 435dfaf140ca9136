"""``mmgen reproduce``: a published table made again, by the commands that a user would type."""

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli._console import follow, result, say, table
from cli._options import Output, command_line, read_path
from cli._stages import end_with_children, run_command
from mmgen.errors import MmgenError

if TYPE_CHECKING:
    from mmgen.reproductions._plan import Scale

__all__ = ["reproduce_command"]


def reproduce_command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="TABLE", show_default=False, help="cremer-table1, cremer-table2, or the path of a list of your own."
        ),
    ],
    scale: Annotated[
        str, typer.Option("--scale", metavar="SIZE", help="cpu: smaller, for two cores; paper: as published.")
    ] = "cpu",
    output: Output = None,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="FILE", show_default=False, help="Dataset to use instead of making one."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the commands as a shell script and leave.")] = False,
) -> None:
    """Make a published table again, and print it beside the paper's numbers.

    Runs the commands of a plain list (TOML, in mmgen/reproductions), each of which makes one file. Files that are there
    and fit are used as they are, and an interrupted training is continued; so the command can be given again at any
    time. The table goes into a page of Markdown and opens a report with pictures, whose paths are printed.
    """
    from mmgen.reproductions._plan import read_plan, script, with_data

    plan = read_plan(name)
    chosen = plan.at(scale)
    folder = output or Path(chosen.folder)
    if data is not None:
        chosen = with_data(chosen, read_path(data, "dataset"))
    if dry_run:
        result(script(plan, chosen, folder).rstrip())
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MmgenError(f"cannot use the folder {folder}: {error.strerror}; choose another with --output") from None
    end_with_children()
    say(f"{plan.title}\n{chosen.about.strip()}\nEverything happens in {folder}.")
    ran = _run(chosen, folder)

    from mmgen.artifacts import write_text_atomic
    from mmgen.figures.report import Summary, make_report
    from mmgen.figures.scores import read_scores
    from mmgen.reproductions._comparison import compare, judge_sentence, markdown, table_of

    files = [folder / stage.makes for stage in chosen.stage if stage.makes.endswith(".jsonl")]
    compared = compare(plan, [score for file in files for score in read_scores(file)])
    say("")
    table(plan.title, *table_of(plan, compared))
    say(judge_sentence(compared))
    page = folder / f"{Path(name).stem}-{scale}.md"
    write_text_atomic(page, markdown(plan, chosen, compared, folder))
    result(page)
    pictures = page.with_suffix(".html")
    if ran or not pictures.exists():
        summary = Summary(plan.title, *table_of(plan, compared), note=f"{chosen.about} {judge_sentence(compared)}")
        shown = [folder / stage.makes for stage in chosen.stage if not stage.is_data]
        work = make_report(
            shown, pictures, title=plan.title, device="auto", command=command_line(), summaries=[summary]
        )
        follow(work)
    result(pictures)


def _run(scale: "Scale", folder: Path) -> bool:
    """Run what is not there yet, in order; returns whether there was anything."""
    from mmgen.reproductions._plan import state_of

    ran = False
    made = [stage.makes for stage in scale.stage]
    for number, stage in enumerate(scale.stage, 1):
        state = state_of(stage, folder, made[: number - 1])
        remark = {"done": f"{stage.makes} is there", "unfinished": "continued"}.get(state, "")
        say(f"\n[{number}/{len(made)}] {stage.why}" + (f" ({remark})" if remark else "") + f"\n$ {stage.command}")
        if state == "done":
            continue
        began = time.monotonic()
        run_command(stage.arguments, folder, "the reproduction")
        ran = True
        if not (folder / stage.makes).exists():
            raise MmgenError(
                f"this command did not make {stage.makes}, as its list says: {shlex.join(stage.arguments)}"
            )
        say(f"took {time.monotonic() - began:,.0f} s")
    return ran
