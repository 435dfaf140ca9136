"""``mmgen quickstart``: from data to report in some minutes, with the commands that a user would type."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmgen.cli._console import follow, print_result, print_table, say
from mmgen.cli._measure import print_warnings
from mmgen.cli._options import Seed, jobs_option, output_option
from mmgen.cli._quickstart_table import (
    COLUMNS,
    Columns,
    choose_columns,
    describe_differences,
    final_table,
    read_scores,
)
from mmgen.cli._stages import create_output_folder
from mmgen.core.errors import UsageError, format_unknown_name

if TYPE_CHECKING:
    from mmgen.experiments import Stage
    from mmgen.results.score import Score


PICTURE = "same-words.png"
EXPLORE = "explore.html"
REPORT = "report.html"
_TITLE = "What the judges say"


@dataclass(frozen=True)
class _Data:
    """Data of the quickstart that need no download.

    Attributes:
        plan: Name of the list of stages.
        compared: File and posterior of each part of the picture; the last is guided.
        titles: Titles of parts whose posterior says too little.
        descriptions: What the picture shows; some whole descriptions of test pictures if empty.
        columns: Columns of the table, and differences below it; None for those that scores have.
    """

    plan: str
    compared: tuple[tuple[str, str], ...]
    titles: Mapping[str, str] = field(default_factory=dict)
    descriptions: tuple[str, ...] = ()
    columns: Columns | None = None


_DATA = {
    "shapes": _Data(
        "shapes",
        (("plain-cvae", "prior"), ("aggregate", "aggregate"), ("aggregate", "aggregate")),
        {"plain-cvae": "A plain conditional VAE"},
        (
            "shape=star colour=yellow ground=night",
            "shape=heart colour=red",
            "shape=moon size=small",
            "colour=green ground=sand",
            "size=big",
        ),
    ),
    "digits": _Data(
        "digits", (("true", "true"), ("aggregate", "aggregate"), ("aggregate", "aggregate")), columns=COLUMNS
    ),
}


def plan_stages(quick: bool, seed: int, data: str = "shapes") -> "tuple[Stage, ...]":
    """Return the stages of the quickstart, in order (mmgen/experiments/_shapes.toml and _digits.toml)."""
    from mmgen.experiments import packaged_stages

    return packaged_stages(_DATA[data].plan, "quick" if quick else "full", {"seed": seed, "other_seed": seed ^ 1})


def _draw_picture(folder: Path, chosen: _Data, guidance: str, seed: int) -> None:
    """Draw pictures of the same words from several posteriors; red frames mark errors by the judge."""
    from mmgen.artifacts import Dataset
    from mmgen.classifier import load_classifier
    from mmgen.descriptions import format_values
    from mmgen.figures.drawing.samples import draw_comparison, explain_red_frames
    from mmgen.generation import load, parse_descriptions
    from mmgen.generation.classifiers import classifier_reads_samples
    from mmgen.generation.concepts import choose_concepts
    from mmgen.generation.draws import draw

    judge = load_classifier(folder / "judge.safetensors", "cpu")
    models = {name: load(folder / f"{name}.safetensors") for name, _ in chosen.compared}
    model = models["aggregate"]
    info = model.attributes
    assert info is not None
    with Dataset.open(model.dataset_path()) as data:
        codes = data.read_attributes(info.name, data.split("iid", "test"))
    concepts = choose_concepts(codes, 5, seed)
    labels = [*chosen.descriptions] or [format_values(concept, info) for concept in concepts]
    draws = []
    for number, (name, posterior) in enumerate(chosen.compared, 1):
        model = models[name].guided(guidance, seed) if number == len(chosen.compared) else models[name]
        words = parse_descriptions(model, chosen.descriptions) if chosen.descriptions else concepts
        pictures = draw(model, words, 6, posterior=posterior, seed=seed, classifier=judge)
        density = model.posteriors[posterior]
        plain = density.named.plain
        title = f"{plain[:1].upper()}{plain[1:]}: {density.named}"
        draws.append((chosen.titles.get(name, title), pictures))
    note = explain_red_frames(judge.accuracy, classifier_reads_samples(model))
    grid = draw_comparison(draws, labels, title="The same words, drawn from each", note=note)
    grid.save(folder / PICTURE)


def _read_all_scores(plan: "Sequence[Stage]", folder: Path) -> "list[Score]":
    return [score for stage in plan if stage.command == "eval" for score in read_scores(folder / stage.makes)]


def _say_next_steps(plan: "Sequence[Stage]", folder: Path, scores: "Sequence[Score]", larger: str = "") -> None:
    """Print the weakest numbers of the scores, and what to type next."""
    from mmgen.artifacts import read_header
    from mmgen.evaluation.next_steps import advise

    made = [folder / stage.makes for stage in plan if stage.makes.endswith((".safetensors", ".h5"))]
    headers = [(path, read_header(path)) for path in made]
    if advice := str(advise(scores, {header.content_id: (path, header) for path, header in headers}, larger)):
        say(advice)


def _print_pages(folder: Path, summary: str) -> None:
    """Print a summary and the paths of the pages; the report's path is the result."""
    say(f"{summary} Open in any browser: {folder / REPORT}, the report; {folder / EXPLORE}, a page to play with.")
    print_result(folder / REPORT)


def _say_where(folder: Path, plan: "Sequence[Stage]", script: str, verbose: bool) -> None:
    """Print where the commands run, and which file has them."""
    say(f"{len(plan)} commands run in {folder}{os.sep}; {folder / script} has them, and each can be typed there again.")
    if not verbose:
        say("A line for each that has ended follows; --verbose prints all that they say.")


def _run_on_packaged_data(
    data: str, output: Path | None, *, quick: bool, seed: int, jobs: int, verbose: bool, dry_run: bool
) -> None:
    """Run the quickstart on data that need no download."""
    from mmgen.artifacts import check_replaceable, write_text_atomic
    from mmgen.cli._own_pictures import COMMAND_FILE, format_shell_script
    from mmgen.cli._runs import run_stages

    folder = output or Path("quickstart-quick" if quick else "quickstart")
    plan, chosen = plan_stages(quick, seed, data), _DATA[data]
    script = format_shell_script(plan, f"mmgen quickstart on {data}")
    if dry_run:
        print_result(script)
        return
    guidance = next(str(stage.settings["guidance"]) for stage in plan if stage.command == "report")
    started = time.monotonic()
    with create_output_folder(folder, [COMMAND_FILE]):
        for name in (*(stage.makes for stage in plan), PICTURE, COMMAND_FILE):
            check_replaceable(folder / name)
        write_text_atomic(folder / COMMAND_FILE, script)
        _say_where(folder, plan, COMMAND_FILE, verbose)
        run_stages(plan, folder, jobs, "the quickstart", verbose=verbose)
    _draw_picture(folder, chosen, guidance, seed)
    scores = _read_all_scores(plan, folder)
    say("")
    print_table(_TITLE, *final_table(scores, chosen.columns or choose_columns(scores)))
    if chosen.columns:
        say(describe_differences(scores))
    print_warnings(scores)
    _say_next_steps(plan, folder, scores)
    summary = f"Took {time.monotonic() - started:.0f} s. The same words, drawn from each: {folder / PICTURE}."
    _print_pages(folder, summary)


def _run_on_own_pictures(
    images: Path,
    output: Path | None,
    *,
    quick: bool,
    seed: int,
    jobs: int,
    drop_unreadable: bool,
    size: int | None,
    steps: int | None,
    minutes: float | None,
    verbose: bool,
    dry_run: bool,
) -> None:
    """Run the quickstart on the user's own pictures."""
    from mmgen.cli import _own_pictures as own
    from mmgen.cli._runs import run_stages
    from mmgen.data_recipes.folder import Folder
    from mmgen.results.score import tabulate_scores

    own.check_options(size, steps, minutes)
    recipe = Folder(pictures=images, drop_unreadable=drop_unreadable)
    survey = follow(recipe.survey(seed, None))
    sizes = own.scale_sizes(own.choose_sizes(survey.number, survey.side, quick, size), survey, jobs, steps, minutes)
    plan = own.plan_stages(images, survey, sizes, seed, drop_unreadable=drop_unreadable)
    folder = output or Path(f"{images.absolute().stem}-quickstart{'-quick' if quick else ''}")
    if folder.absolute().resolve().is_relative_to(images.resolve()):
        raise UsageError(f"{folder} lies in {images}, where drawn pictures would mix with yours; use another --output")
    own.check_folder_is_unused(folder, plan, survey)
    started = time.monotonic()
    say(own.describe_plan(survey, sizes, jobs, quick))
    if dry_run:
        print_result(own.format_own_script(plan, survey))
        return
    _say_where(folder, plan, own.COMMAND_FILE, verbose)
    with create_output_folder(folder, [own.COMMAND_FILE]):
        own.write_commands(folder, plan, survey)
        run_stages(plan, folder, jobs, "the quickstart", verbose=verbose)
    say("")
    scores = _read_all_scores(plan, folder)
    if sentence := own.gaps_sentence(survey):
        say(f"{sentence}; drawn: {folder / own.GAPS}.\n")
    if survey.attributes:
        print_table(_TITLE, *final_table(scores, choose_columns(scores)))
        _say_next_steps(plan, folder, scores, own.larger_command(images, survey, sizes))
    else:
        score_table = tabulate_scores(scores, "Scores")
        print_table(score_table.title, score_table.columns, score_table.rows)
    print_warnings(scores)
    _print_pages(folder, f"Took {time.monotonic() - started:.0f} s.")


def quickstart_command(
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="NAME",
            show_default="shapes",
            help="shapes in colours, which mmgen draws, or digits, handwritten, which scikit-learn carries.",
            autocompletion=lambda: [*_DATA],
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            "--images",
            metavar="DIR",
            help="Your own pictures instead: a folder or zip, as make-data folder takes it, with settings by their "
            "number and size.",
        ),
    ] = None,
    drop_unreadable: Annotated[
        bool,
        typer.Option(
            "--drop-unreadable",
            help="With --images: leave out pictures that cannot be read, instead of refusing to begin.",
        ),
    ] = False,
    size: Annotated[
        int | None,
        typer.Option(
            "--size",
            metavar="PIXELS",
            show_default="by number and size of pictures",
            help="With --images: height and width of pictures, 32 or 64.",
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps", metavar="N", min=1, show_default="by number", help="With --images: training steps of the model."
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes",
            metavar="NUMBER",
            min=1,
            show_default=False,
            help="With --images: as many training steps as take about this long, all in all, on two cores.",
        ),
    ] = None,
    output: Annotated[Path | None, output_option("a folder, quickstart or NAME-quickstart by default")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Far too small to show anything, but every command runs: for testing.")
    ] = False,
    seed: Seed = 0,
    jobs: Annotated[int | None, jobs_option("2, on one core 1", "Commands")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print each command and all that it says.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and the commands as a shell script, and do nothing.")
    ] = False,
) -> None:
    """Go from data to report in some minutes, on pictures that need no download, or on your own.

    Runs the commands that you would type: first those that lead to pictures and to a page to play with, then those that
    measure, and ends with a table: how right and how varied pictures are that are drawn from words in several ways.
    Everything made stays in a folder ("quickstart").

    What leads to pictures has all cores; commands that do not wait for each other then run side by side. The same
    command again goes on where it was interrupted.
    With --images it says first what it found, what it will do and how long that takes.
    """
    from mmgen.cli._runs import choose_job_count

    if images is not None and data is not None:
        raise UsageError(f"--data got {data} and --images got {images}, expected one of them; leave one out")
    if images is not None:
        _run_on_own_pictures(
            images,
            output,
            quick=quick,
            seed=seed,
            jobs=choose_job_count(jobs),
            drop_unreadable=drop_unreadable,
            size=size,
            steps=steps,
            minutes=minutes,
            verbose=verbose,
            dry_run=dry_run,
        )
        return
    for option, is_given in (
        ("--size", size is not None),
        ("--steps", steps is not None),
        ("--minutes", minutes is not None),
        ("--drop-unreadable", drop_unreadable),
    ):
        if is_given:
            raise UsageError(f"{option} is for your own pictures; name them with --images DIR, or leave it out")
    data = data or "shapes"
    if data not in _DATA:
        raise UsageError(format_unknown_name("quickstart", data, [*_DATA]))
    _run_on_packaged_data(
        data, output, quick=quick, seed=seed, jobs=choose_job_count(jobs), verbose=verbose, dry_run=dry_run
    )
