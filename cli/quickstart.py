"""``mmgen quickstart``: from data to report in some minutes, with the commands that a user would type."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmgen.cli._console import follow, print_result, print_table, say
from mmgen.cli._folders import create_output_folder
from mmgen.cli._next_steps import describe_next_steps
from mmgen.cli._options import Seed, jobs_option, output_option
from mmgen.cli._quickstart_table import choose_columns, describe_differences, final_table, read_scores
from mmgen.core.errors import UsageError

if TYPE_CHECKING:
    from mmgen.experiments import Stage
    from mmgen.results.score import Score

__all__ = ["quickstart_command"]

PICTURE = "same-words.png"
EXPLORE = "explore.html"
REPORT = "report.html"
_TITLE = "What the judges say"
_FILES_AND_POSTERIORS = {"true": ["true"], "aggregate": ["aggregate", "guided"]}
"""Posteriors that the picture compares, by the file that holds them."""


def plan_stages(quick: bool, seed: int) -> "tuple[Stage, ...]":
    """Return the stages of the quickstart on digits, in order (mmgen/experiments/_quickstart.toml)."""
    from mmgen.experiments import packaged_stages

    return packaged_stages("quickstart", "quick" if quick else "full", {"seed": seed, "other_seed": seed ^ 1})


def _draw_picture(folder: Path, guidance: str, seed: int) -> None:
    """Draw pictures of the same words from several posteriors; red frames mark errors by the judge."""
    from mmgen.artifacts import Dataset
    from mmgen.classifier import load_classifier
    from mmgen.descriptions import format_values
    from mmgen.figures.drawing.comparison import draw_comparison, explain_red_frames
    from mmgen.generation import load
    from mmgen.generation.classifiers import classifier_reads_samples
    from mmgen.generation.concepts import choose_concepts
    from mmgen.generation.draws import draw

    judge = load_classifier(folder / "judge.safetensors", "cpu")
    models = {name: load(folder / f"{name}.safetensors") for name in _FILES_AND_POSTERIORS}
    info = models["true"].attributes
    assert info is not None
    with Dataset.open(folder / "digits.h5") as data:
        codes = data.read_attributes(info.name, data.split("iid", "test"))
    concepts = choose_concepts(codes, 5, seed)
    draws = []
    for name in ("true", "aggregate", "guided"):
        posterior = "aggregate" if name == "guided" else name
        model = models[posterior].guided(guidance, seed) if name == "guided" else models[posterior]
        pictures = draw(model, concepts, 6, posterior=posterior, seed=seed, classifier=judge)
        draws.append((model.posteriors[posterior].title, pictures))
    labels = [format_values(concept, info) for concept in concepts]
    note = explain_red_frames(judge.accuracy, classifier_reads_samples(models["true"]))
    grid = draw_comparison(draws, labels, title="The same words, drawn from each posterior", note=note)
    grid.save(folder / PICTURE)


def _read_all_scores(plan: "Sequence[Stage]", folder: Path) -> "list[Score]":
    return [score for stage in plan if stage.command == "eval" for score in read_scores(folder / stage.makes)]


def _print_pages(folder: Path, summary: str) -> None:
    """Print a summary and the paths of the pages; the report's path is the result."""
    say(f"{summary} Open in any browser: {folder / REPORT}, the report; {folder / EXPLORE}, a page to play with.")
    print_result(folder / REPORT)


def _run_on_digits(output: Path | None, *, quick: bool, seed: int, jobs: int) -> None:
    """Run the quickstart on digits that need no download."""
    from mmgen.artifacts import check_replaceable
    from mmgen.cli._runs import run_stages

    folder = output or Path("quickstart-quick" if quick else "quickstart")
    plan = plan_stages(quick, seed)
    guidance = next(str(stage.settings["guidance"]) for stage in plan if stage.command == "report")
    started = time.monotonic()
    with create_output_folder(folder):
        for name in (*(stage.makes for stage in plan), PICTURE):
            check_replaceable(folder / name)
        say(f"The commands run in {folder}{os.sep}; each can be typed there again.")
        run_stages(plan, folder, jobs, "the quickstart")
    _draw_picture(folder, guidance, seed)
    scores = _read_all_scores(plan, folder)
    say("")
    print_table(_TITLE, *final_table(scores))
    say(describe_differences(scores))
    summary = f"Took {time.monotonic() - started:.0f} s. The same words, drawn from each: {folder / PICTURE}."
    _print_pages(folder, summary)


def _run_on_own_pictures(
    images: Path, output: Path | None, *, quick: bool, seed: int, jobs: int, drop_unreadable: bool, size: int | None
) -> None:
    """Run the quickstart on the user's own pictures."""
    from mmgen.cli import _own_pictures as own
    from mmgen.cli._runs import run_stages
    from mmgen.data_recipes.folder import Folder
    from mmgen.results.score_table import tabulate_scores

    own.check_size(size)
    recipe = Folder(pictures=images, drop_unreadable=drop_unreadable)
    survey = follow(recipe.survey(seed, None))
    sizes = own.choose_sizes(survey.number, survey.side, quick, size)
    plan = own.plan_stages(images, survey, sizes, seed, drop_unreadable=drop_unreadable)
    folder = output or Path(f"{images.absolute().stem}-quickstart{'-quick' if quick else ''}")
    if folder.absolute().resolve().is_relative_to(images.resolve()):
        raise UsageError(f"{folder} lies in {images}, where drawn pictures would mix with yours; use another --output")
    own.check_folder_is_unused(folder, plan, survey)
    started = time.monotonic()
    say(own.describe_plan(survey, sizes, jobs, quick))
    say(f"The commands run in {folder}{os.sep}; each can be typed there again.")
    with create_output_folder(folder, [own.COMMAND_FILE]):
        own.write_commands(folder, plan, survey)
        run_stages(plan, folder, jobs, "the quickstart")
    say("")
    scores = _read_all_scores(plan, folder)
    if survey.attributes:
        print_table(_TITLE, *final_table(scores, choose_columns(scores)))
        if lines := describe_next_steps(scores, own.larger_command(images, survey, sizes)):
            say("\n".join(["What to look at next, weakest first:", *lines]))
    else:
        score_table = tabulate_scores(scores, "Scores")
        print_table(score_table.title, score_table.columns, score_table.rows)
    _print_pages(folder, f"Took {time.monotonic() - started:.0f} s.")


def quickstart_command(
    images: Annotated[
        Path | None,
        typer.Option(
            "--images",
            metavar="DIR",
            show_default="digits",
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
    output: Annotated[Path | None, output_option("a folder, quickstart or NAME-quickstart by default")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Far too small to show anything, but every command runs: for testing.")
    ] = False,
    seed: Seed = 0,
    jobs: Annotated[int | None, jobs_option("2, on one core 1", "Commands")] = None,
) -> None:
    """Go from data to report in some minutes, on digits that need no download, or on your own pictures.

    Runs the commands that you would type, printing each, and ends with a table: how right and how varied pictures are
    that are drawn from each posterior of the words. Everything made stays in a folder ("quickstart").

    Commands that do not wait for each other run side by side. The same command again goes on where it was interrupted.
    With --images it says first what it found, what it will do and how long that takes.
    """
    from mmgen.cli._runs import choose_job_count

    if images is not None:
        _run_on_own_pictures(
            images,
            output,
            quick=quick,
            seed=seed,
            jobs=choose_job_count(jobs),
            drop_unreadable=drop_unreadable,
            size=size,
        )
        return
    for option, is_given in (("--size", size is not None), ("--drop-unreadable", drop_unreadable)):
        if is_given:
            raise UsageError(f"{option} is for your own pictures; name them with --images DIR, or leave it out")
    _run_on_digits(output, quick=quick, seed=seed, jobs=choose_job_count(jobs))
