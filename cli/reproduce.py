"""``mmgen reproduce``: reproduction of a published table, by the commands that a user would type."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmgen.cli._console import follow, print_result, print_table, say
from mmgen.cli._options import command_line, complete_tables, read_path
from mmgen.cli._parameters import parse_seed_option, stage_function
from mmgen.cli._stages import create_output_folder
from mmgen.commands import Stage
from mmgen.core.errors import MmgenError, UsageError
from mmgen.core.processes import MOST
from mmgen.settings.kinds import Option, Range, Seed

if TYPE_CHECKING:
    from mmgen.experiments import Plan, Runs, Scale


@dataclass(frozen=True, kw_only=True)
class Reproduce(Stage[None]):
    """Make a published table again, and print it beside the paper's numbers.

    Runs the stages of an experiment file (TOML, in mmgen/experiments), each of which is a command and makes one file.
    The command can be given again at any time, here or on a cluster: files that exist and fit are used, and an
    interrupted training continues. The table goes into a page of Markdown and opens a report with pictures, whose paths
    are printed.
    """

    scale: Annotated[str, Option(metavar="SIZE", words=("cpu", "paper"))] = "cpu"
    """cpu: smaller, for two cores; paper: as published."""
    output: Annotated[Path | None, Option("-o", metavar="PATH")] = None
    """Where to write; a folder, by default the one in the experiment."""
    data: Annotated[str | None, Option(metavar="NAME|FILE", default="the usual one")] = None
    """Which dataset, if a table has several; or a dataset file to use instead of making one."""
    only: Annotated[Sequence[str] | None, Option(metavar="ROW")] = None
    """Only run the stages that this model needs; repeatable."""
    seed: Annotated[Seed | None, Option(metavar="N")] = None
    """Another seed for every command but the one that makes the dataset; in a folder of its own."""
    seeds: Annotated[str | None, Option(metavar="N|LIST", default="those of the experiment")] = None
    """Run every stage that has a seed several times, with the seeds 0 to N - 1 or with these: 0,1,7. Data and judge are
    made once; tables show means, standard deviations and n."""
    scheduler: Annotated[str | None, Option(metavar="ADDRESS", default="this machine")] = None
    """Run the stages on a Dask cluster instead, tcp://host:8786, side by side; the folder must be shared."""
    jobs: Annotated[int | None, Range(1, MOST), Option(metavar="N", default="1")] = None
    """Stages that run at once on this machine, each with its share of the cores, at most four a core; 1: one after the
    other."""
    dry_run: bool = False
    """Print the commands as a shell script and leave."""

    def check(self) -> None:
        """Refuse options that exclude each other."""
        script, runs = self.dry_run or None, "the printed script runs one command after the other"
        pairs = (
            (self.seed, "--seed", self.seeds, "--seeds", "a single run, or several"),
            (self.jobs, "--jobs", self.scheduler, "--scheduler", "this machine, or a cluster"),
            (script, "--dry-run", self.jobs, "--jobs", runs),
            (script, "--dry-run", self.scheduler, "--scheduler", runs),
        )
        for one, name, other, other_name, why in pairs:
            if one is not None and other is not None:
                raise UsageError(f"{name} and {other_name} are given together, expected one: {why}; leave one out")


def _reproduce(
    stage: Reproduce,
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            show_default=False,
            help=f"{', '.join(complete_tables(''))}, or the path of an experiment file of your own.",
            autocompletion=complete_tables,
        ),
    ],
) -> None:
    from mmgen.artifacts.files import check_replaceable, check_writable, leads_out_of_folder
    from mmgen.cli._cluster import run_on_cluster
    from mmgen.cli._runs import run_stages, say_left_out
    from mmgen.experiments import (
        check_is_dataset,
        find_experiment,
        read_plan,
        repeat_over_seeds,
        select_rows as stages_called,
        set_seed,
        shell_script,
        use_dataset,
    )

    stage.check()
    experiment_name, dataset = find_experiment(table, stage.data)
    plan = read_plan(experiment_name)
    full_scale = plan.get_scale(stage.scale)
    if experiment_name.endswith(".toml"):  # tests type the commands of the others
        _check_commands(full_scale, experiment_name)
    if stage.seed is not None:
        full_scale = set_seed(full_scale, stage.seed)
    folder = stage.output or Path(full_scale.folder)
    if stage.output is None and leads_out_of_folder(folder, Path()):
        raise UsageError(
            f"the output folder of {table}, {folder}, is a link that leads out of the current folder; type --output "
            f"{folder} to use it"
        )
    if dataset is not None:
        dataset_file = read_path(str(dataset), "dataset")
        check_is_dataset(dataset_file)
        full_scale = use_dataset(full_scale, dataset_file)
    chosen_seeds = full_scale.seeds if stage.seeds is None else parse_seed_option(stage.seeds)
    full_scale, runs = repeat_over_seeds(full_scale, chosen_seeds)  # file names depend on all stages, also with --only
    chosen = stages_called(full_scale, stage.only) if stage.only else full_scale
    if stage.dry_run:
        say_left_out(experiment_name)
        print_result(shell_script(plan, chosen, folder).rstrip())
        return
    with create_output_folder(folder):
        page = folder / f"{_results_page_name(experiment_name)}-{stage.scale}.md"
        for path in (page, page.with_suffix(".html")):
            check_replaceable(path)  # before hours of work, not after
            check_writable(path)
        say(f"{plan.title}\n{chosen.about.strip()}\nEverything happens in {folder}.")
        say_left_out(experiment_name)
        if stage.scheduler is None:
            has_run = run_stages(chosen.stage, folder, stage.jobs or 1)
        else:
            has_run = run_on_cluster(chosen.stage, folder, stage.scheduler)
        _print_tables(plan, full_scale, runs, page, has_run)


reproduce_command = stage_function(Reproduce, _reproduce)


def _check_commands(scale: "Scale", experiment_name: str) -> None:
    """Refuse a user's experiment file with a command line that mmgen cannot parse, before any stage runs."""
    from mmgen.cli._main import format_parser_error, load_command
    from mmgen.cli._members import MemberCommands, all_parameters

    for number, stage in enumerate(scale.stage, 1):
        command, *words = stage.arguments
        try:
            loaded = load_command(command)
            if truths := [key for key, value in stage.settings.items() if isinstance(value, bool)]:
                options = [one for one in all_parameters(loaded) if not getattr(one, "is_flag", True)]
                of_values = {name for one in options for name in one.opts}
                if wrong := next((key for key in truths if f"--{key.replace('_', '-')}" in of_values), None):
                    truth = str(stage.settings[wrong]).lower()
                    raise UsageError(f"{wrong} got {truth}, expected a value; give one, or leave the setting out")
            context = loaded.make_context(f"mmgen {command}", list(words))
            if isinstance(loaded, MemberCommands) and context.command is loaded:  # no member is named
                raise UsageError(loaded.registry.format_unknown(words[0]))
        except (MmgenError, typer.TyperException) as error:
            problem = format_parser_error(error) if isinstance(error, typer.TyperException) else str(error)
            raise UsageError(f"{experiment_name}: stage {number}, mmgen {command}: {problem.rstrip('.')}") from None


def _results_page_name(experiment_name: str) -> str:
    """Return the name, without ending, of the page on which an experiment's results are written."""
    return Path(experiment_name).stem if experiment_name.endswith(".toml") else experiment_name.replace("/", "-")


def _print_tables(plan: "Plan", scale: "Scale", runs: "Runs", page: Path, has_run: bool) -> None:
    """Print the tables, and write them to a page of Markdown and to a report with pictures."""
    from mmgen.artifacts import write_text_atomic
    from mmgen.experiments import (
        classifier_accuracy_sentence,
        compare_table,
        comparison_tables,
        finished_files,
        is_artifact_name,
        page_markdown,
    )
    from mmgen.figures.report.make import make_report
    from mmgen.results.score import read_scores

    folder = page.parent
    finished = finished_files(scale, folder)
    scores = {file: read_scores(folder / file) for file in finished if file.endswith(".jsonl")}
    compared = [compare_table(part, scores, runs) for part in plan.table]
    note = classifier_accuracy_sentence(compared)
    say("")
    tables = comparison_tables(plan, compared)
    for one in tables:
        print_table(one.title, one.columns, one.rows)
    if note:
        say(note)
    write_text_atomic(page, page_markdown(plan, scale, compared, folder, finished))
    print_result(page)
    # A report tells of artifacts and scores, and draws its own pictures; other pages stand for themselves.
    told = [file for file in finished if is_artifact_name(Path(file)) or file.endswith(".jsonl")]
    for file in finished:
        if file not in told:
            print_result(folder / file)
    report = page.with_suffix(".html")
    paths = [folder / stage.makes for stage in scale.stage if not stage.is_data and stage.makes in told]
    if not paths:
        say("nothing was made that a report tells of, so there is none")
        return
    if has_run or not report.exists():
        tables[-1:] = [replace(last, note=f"{scale.about} {note}".strip()) for last in tables[-1:]]
        # Pictures of one seed, the scores of all.
        other_seeds = {file for files in runs.values() for file in files[1:] if not file.endswith(".jsonl")}
        paths = [path for path in paths if path.name not in other_seeds]
        work = make_report(paths, report, title=plan.title, device="auto", command=command_line(), summaries=tables)
        follow(work)
    print_result(report)
