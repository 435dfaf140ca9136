"""``mmgen quickstart``: from data to report in some minutes, with the commands that a user would type."""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mmgen.cli._console import follow, print_result, print_table, say
from mmgen.cli._measure import print_warnings
from mmgen.cli._members import stage_with_settings
from mmgen.cli._stages import create_output_folder
from mmgen.commands import Stage
from mmgen.core.errors import ArtifactError, MmgenError, UsageError, format_unknown_name
from mmgen.core.processes import MOST
from mmgen.data_recipes.folder import Folder
from mmgen.results.score import Score, read_scores as scores_in, tabulate_scores
from mmgen.results.summary import summarise
from mmgen.settings.config import validate
from mmgen.settings.kinds import MOST_MINUTES, MOST_STEPS, Option, Range, Seed

if TYPE_CHECKING:
    from mmgen.experiments import Stage as PlannedStage
    from mmgen.results.table import Cell


def read_scores(path: Path) -> list[Score]:
    """Read a file of scores; the error for a damaged file advises to remove it."""
    try:
        return scores_in(path)
    except ArtifactError as error:
        raise MmgenError(f"{error}; or remove it and run the quickstart again") from None


def final_table(scores: Sequence[Score]) -> "tuple[list[str], list[list[Cell]]]":
    """Return headings and rows of the final table: a row for each posterior, then of real pictures."""
    columns, rows = summarise(scores)
    return ["drawn from", *columns], [[name, *(number or "" for number in row)] for name, row in rows.items()]


PICTURE = "same-words.png"
EXPLORE = "explore.html"
REPORT = "report.html"
_TITLE = "What is drawn, in %; of several judges, each number is by the one that sees least; mmgen compare has the rest"
_WIDEST = 100
"""Letters of a line of the final table."""


@dataclass(frozen=True)
class _Data:
    """Data of the quickstart that need no download.

    Attributes:
        plan: Name of the list of stages.
        compared: File and posterior of each part of the picture; the last is guided.
        titles: Titles of parts whose posterior says too little.
        descriptions: What the picture shows; some whole descriptions of test pictures if empty.
    """

    plan: str
    compared: tuple[tuple[str, str], ...]
    titles: Mapping[str, str] = field(default_factory=dict)
    descriptions: tuple[str, ...] = ()


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
    "digits": _Data("digits", (("true", "true"), ("aggregate", "aggregate"), ("aggregate", "aggregate"))),
}


def plan_stages(quick: bool, seed: int, data: str = "shapes") -> "tuple[PlannedStage, ...]":
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


def _read_all_scores(plan: "Sequence[PlannedStage]", folder: Path) -> "list[Score]":
    return [score for stage in plan if stage.command == "eval" for score in read_scores(folder / stage.makes)]


def _say_next_steps(plan: "Sequence[PlannedStage]", folder: Path, scores: "Sequence[Score]", larger: str = "") -> None:
    """Print the weakest numbers of the scores, and what to type next."""
    from mmgen.artifacts import read_header
    from mmgen.evaluation.next_steps import advise

    made = [folder / stage.makes for stage in plan if stage.makes.endswith((".safetensors", ".h5"))]
    headers = [(path, read_header(path)) for path in made]
    if advice := str(advise(scores, {header.content_id: (path, header) for path, header in headers}, larger)):
        say(advice)


def _print_pages(plan: "Sequence[PlannedStage]", folder: Path, summary: str) -> None:
    """Print a summary and the paths of the pages; the report's path is the result."""
    explored = any(stage.makes == EXPLORE for stage in plan)
    page = f"; {folder / EXPLORE}, a page to play with" if explored else ""
    say(
        f"{summary} Open in any browser: {folder / REPORT}, the report{page}. "
        "Questions are answered in docs/questions.md."
    )
    print_result(folder / REPORT)


def _say_where(folder: Path, plan: "Sequence[PlannedStage]", script: str, verbose: bool) -> None:
    """Print where the commands run, and which file has them."""
    say(f"{len(plan)} commands run in {folder}{os.sep}; {folder / script} has them, and each can be typed there again.")
    if not verbose:
        say("A line for each that has ended follows; --verbose prints all that they say.")


@dataclass(frozen=True, kw_only=True)
class Quickstart(Stage[None]):
    """Go from data to report in some minutes, on pictures that need no download, or on your own.

    Runs the commands that you would type: first those that lead to pictures and to a page to play with, then those that
    measure, and ends with a table: how right and how varied pictures are that are drawn from words in several ways.
    Everything made stays in a folder ("quickstart").

    What leads to pictures has all cores; commands that do not wait for each other then run side by side. The same
    command again goes on where it was interrupted.
    With --images it says first what it found, what it left out and what it will do; how long that takes is said after
    the first steps.
    """

    member_settings: ClassVar[str] = "folder"

    data: Annotated[str | None, Option(metavar="NAME", default="shapes", words=tuple(_DATA))] = None
    """shapes in colours, which mmgen draws, or digits, handwritten, which scikit-learn carries."""
    images: Annotated[Path | None, Option(metavar="DIR")] = None
    """Your own pictures instead: a folder or zip, as make-data folder takes it, with settings by their number and
    size."""
    size: Annotated[int | None, Option(metavar="PIXELS", default="by number and size of pictures")] = None
    """With --images: height and width of pictures, 32 or 64."""
    steps: Annotated[int | None, Range(1, MOST_STEPS), Option(metavar="N", default="by number")] = None
    """With --images: training steps of the model."""
    minutes: Annotated[float | None, Range(1, MOST_MINUTES), Option(metavar="NUMBER")] = None
    """With --images: about how long all takes; the clock ends each training, on slow machines after fewer steps, so
    that the same seed does not give the same pictures. When time is over, scores take fewer descriptions."""
    output: Annotated[Path | None, Option("-o", metavar="PATH")] = None
    """Where to write; a folder, quickstart or NAME-quickstart by default."""
    quick: bool = False
    """Far too small to show anything, but every command runs: for testing."""
    seed: Seed = 0
    """All randomness comes from this number."""
    jobs: Annotated[int | None, Range(1, MOST), Option(metavar="N", default="2, on one core 1")] = None
    """Commands that run at once on this machine, each with its share of the cores, at most four a core; 1: one after
    the other."""
    verbose: bool = False
    """Print each command and all that it says."""
    dry_run: bool = False
    """Print the plan and the commands as a shell script, and do nothing."""
    folder: Mapping[str, Any] = field(default_factory=dict)
    """With --images: settings of make-data folder, each an option."""


def _quickstart(stage: Quickstart) -> None:
    from mmgen.cli._runs import choose_job_count

    if stage.images is not None and stage.data is not None:
        raise UsageError(
            f"--data got {stage.data} and --images got {stage.images}, expected one of them; leave one out"
        )
    stage = replace(stage, jobs=choose_job_count(stage.jobs))
    if stage.images is not None:
        _run_on_own_pictures(stage, stage.images)
        return
    asked = [name for name in ("size", "steps", "minutes") if getattr(stage, name) is not None]
    for name in (*asked, *stage.folder):
        option = f"--{name.replace('_', '-')}"
        raise UsageError(f"{option} is for your own pictures; name them with --images DIR, or leave it out")
    data = stage.data or "shapes"
    if data not in _DATA:
        raise UsageError(format_unknown_name("quickstart", data, [*_DATA]))
    _run_on_packaged_data(stage, data)


quickstart_command = stage_with_settings(Quickstart, _quickstart, Folder, "With --images, as in make-data folder")


def _run_on_packaged_data(asked: Quickstart, data: str) -> None:
    """Run the quickstart on data that need no download."""
    from mmgen.artifacts import check_replaceable, write_text_atomic
    from mmgen.cli._own_pictures import COMMAND_FILE, format_shell_script
    from mmgen.cli._runs import run_stages, say_left_out

    folder = asked.output or Path("quickstart-quick" if asked.quick else "quickstart")
    plan, chosen = plan_stages(asked.quick, asked.seed, data), _DATA[data]
    script = format_shell_script(plan, f"mmgen quickstart on {data}")
    if asked.dry_run:
        say_left_out(f"_{chosen.plan}")
        print_result(script)
        return
    guidance = next(str(stage.settings["guidance"]) for stage in plan if stage.command == "report")
    started = time.monotonic()
    with create_output_folder(folder, [COMMAND_FILE]):
        for name in (*(stage.makes for stage in plan), PICTURE, COMMAND_FILE):
            check_replaceable(folder / name)
        write_text_atomic(folder / COMMAND_FILE, script)
        say_left_out(f"_{chosen.plan}")
        _say_where(folder, plan, COMMAND_FILE, asked.verbose)
        run_stages(plan, folder, asked.jobs or 1, "the quickstart", verbose=asked.verbose)
    _draw_picture(folder, chosen, guidance, asked.seed)
    scores = _read_all_scores(plan, folder)
    say("")
    print_table(_TITLE, *final_table(scores), widest=_WIDEST)
    print_warnings(scores)
    _say_next_steps(plan, folder, scores)
    summary = f"Took {time.monotonic() - started:.0f} s. The same words, drawn from each: {folder / PICTURE}."
    _print_pages(plan, folder, summary)


def _measure_less_after(end: float | None) -> "Callable[[PlannedStage], PlannedStage]":
    """Return what stages become: if time is over when the first score is measured, all take fewer descriptions."""
    from mmgen.cli._own_pictures import FEW_QUERIES

    is_late: list[bool] = []  # decided once, so that all scores of a table are of the same descriptions

    def adapt(stage: "PlannedStage") -> "PlannedStage":
        queries = stage.settings.get("queries")
        if stage.command != "eval" or end is None or not isinstance(queries, int) or queries <= FEW_QUERIES:
            return stage
        if not is_late:
            is_late.append(time.monotonic() > end)
            if is_late[0]:
                say(f"The time is over: scores take {FEW_QUERIES} descriptions of each length instead of {queries}.")
        return stage.model_copy(update={"settings": stage.settings | {"queries": FEW_QUERIES}}) if is_late[0] else stage

    return adapt


def _say_few_steps(model: Path, usual: int, minutes: float) -> None:
    """Advise more minutes, before all else, where a model has less than half of its usual steps."""
    from mmgen.artifacts import read_header

    steps = int(read_header(model).facts["step"])
    if 2 * steps < usual:
        enough = math.ceil(minutes * usual / max(steps, 1))
        say(
            f"The model had time for {steps:,} of its usual {usual:,} steps, so that what follows says little about "
            f"your pictures: on this machine --minutes {enough} would do, with another --output.\n"
        )


def _run_on_own_pictures(asked: Quickstart, images: Path) -> None:
    """Run the quickstart on the user's own pictures."""
    from mmgen.cli import _own_pictures as own
    from mmgen.cli._runs import run_stages, say_left_out

    own.check_options(asked.size, asked.steps, asked.minutes)
    seed, jobs = asked.seed, asked.jobs or 1
    survey = follow(validate(Folder, {"pictures": images, **asked.folder}).survey(seed, None))
    for line in survey.warnings:
        say(line)
    chosen = own.choose_sizes(survey.number, survey.side, asked.quick, asked.size)
    sizes = own.scale_sizes(chosen, survey, jobs, asked.steps, asked.minutes)
    plan = own.plan_stages(images, survey, sizes, seed, asked.folder)
    folder = asked.output or Path(f"{images.absolute().stem}-quickstart{'-quick' if asked.quick else ''}")
    if folder.absolute().resolve().is_relative_to(images.resolve()):
        raise UsageError(f"{folder} lies in {images}, where drawn pictures would mix with yours; use another --output")
    own.check_folder_is_unused(folder, plan, survey)
    started = time.monotonic()
    say(own.describe_plan(survey, sizes, chosen.model_steps))
    say_left_out("_own_pictures")
    if asked.dry_run:
        print_result(own.format_own_script(plan, survey))
        return
    _say_where(folder, plan, own.COMMAND_FILE, asked.verbose)
    with create_output_folder(folder, [own.COMMAND_FILE]):
        own.write_commands(folder, plan, survey)
        over = None if asked.minutes is None else started + 60 * asked.minutes
        usual = chosen.usual_steps if survey.attributes else {}  # of captions, a file holds the best step, not the last
        run_stages(
            plan, folder, jobs, "the quickstart", verbose=asked.verbose, usual=usual, adapt=_measure_less_after(over)
        )
    say("")
    if asked.minutes is not None and usual:
        _say_few_steps(folder / own.MODEL, usual[own.MODEL], asked.minutes)
    scores = _read_all_scores(plan, folder)
    if sentence := own.gaps_sentence(survey):
        say(f"{sentence}; drawn: {folder / own.GAPS}.\n")
    if survey.attributes:
        print_table(_TITLE, *final_table(scores), widest=_WIDEST)
        _say_next_steps(plan, folder, scores, own.larger_command(images, survey, sizes, asked.folder))
    else:
        score_table = tabulate_scores(scores, "Scores")
        print_table(score_table.title, score_table.columns, score_table.rows)
    print_warnings(scores)
    _print_pages(plan, folder, f"Took {time.monotonic() - started:.0f} s.")
