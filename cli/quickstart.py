"""``mmgen quickstart``: from data to report in some minutes, with the commands that a user would type."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmgen.cli._console import follow, result, say, table
from mmgen.cli._folders import folder_of_run
from mmgen.cli._options import Seed, jobs_option, output_option
from mmgen.cli._own_pictures import CURVE, score_files
from mmgen.cli._quickstart_table import asked_of, final_table, finding, read_scores
from mmgen.core.errors import UsageError

if TYPE_CHECKING:
    from mmgen.experiments import Stage
    from mmgen.results.score import Score

__all__ = ["quickstart_command"]

PICTURE = "same-words.png"
EXPLORE = "explore.html"
REPORT = "report.html"
_TITLE = "What the judges say"


@dataclass(frozen=True)
class Size:
    """How much is done: everything that --quick makes smaller."""

    copies: int
    judge_steps: int
    second_judge_steps: int
    train_steps: int
    fit_steps: int
    draws: int
    pictures: int
    guidance: str = "3:balanced"


FULL = Size(copies=40, judge_steps=1000, second_judge_steps=1000, train_steps=4500, fit_steps=800, draws=24, pictures=6)
# Balance needs the most draws where a model says nothing yet: for every description that would take ten minutes.
QUICK = Size(
    copies=4, judge_steps=150, second_judge_steps=30, train_steps=150, fit_steps=100, draws=2, pictures=1, guidance="3"
)


@dataclass(frozen=True)
class Fit:
    """A posterior that is fitted to the model, and so a row of the table.

    Attributes:
        name: Its file, without the ending.
        why: What it is.
        options: What fit-aggregate is told of it.
        posterior: What eval and sample call it.
    """

    name: str
    why: str
    options: str
    posterior: str


FITS = (
    Fit(
        "true",
        "q_true: p(words | z)^w p(z), the posterior of the words with the weight w that they had in training",
        "--target true",
        "true",
    ),
    Fit("exact", "q_true with weight 1: p(z | words), as the model has it", "--target true --text-weight 1", "true"),
    Fit("aggregate", "q_agg: where pictures that fit the words really lie", "--target aggregate", "aggregate"),
)
"""Posteriors that are fitted, all of one family, size and number of steps; each is a row of the table."""

GUIDED = "aggregate"
GUIDANCE = FULL.guidance
"""The last row: this fit, tilted by p(words | z) to this power, what is left out keeping its shares; nothing more is
fitted for it. The weight comes from earlier trials, read on test concepts (benchmarks/RESULTS.md)."""

SECOND_JUDGE = "attentive"
"""Network of the second judge, whose numbers stand beside the first's; pictures are framed by the first."""

PICTURED = ("true", "aggregate")
"""Fits that the picture compares, and the guided one."""


def stages(size: Size, seed: int) -> "list[Stage]":
    """All commands, in order; the paths in them are relative to the folder that they run in."""
    from mmgen.experiments import Stage

    alike = f"--steps {size.fit_steps} {CURVE} --seed {seed}"
    judge = "judge.safetensors"  # named wherever it is used: what runs side by side waits for what it names
    second = "second-judge.safetensors"
    measure = (
        "--metric correctness --metric coverage --metric recall --given-count 4,3 "
        f"--draws {size.draws} --judge {judge} --judge {second} --seed {seed}"
    )
    pictured = " ".join(f"{name}.safetensors" for name in PICTURED)
    words = f"--given 'digit=3 scale=big location=top-left' --judge {judge} --seed {seed}"
    files = " ".join(f"{fit.name}.safetensors" for fit in FITS)
    listed = [
        (
            "Data: handwritten digits, each turned, scaled and placed at random, and described in four words",
            f"make-data mnist-a --source digits --size 32 --grey --copies {size.copies} --seed {seed}",
            "digits.h5",
        ),
        (
            "A judge: it reads those words off a picture, and is measured on digits that it has not seen",
            f"train-classifier digits.h5 --network small --steps {size.judge_steps} {CURVE} --seed {seed}",
            judge,
        ),
        (
            "A joint model of pictures and words, p(z) p(picture | z) p(words | z), inferred from pictures",
            f"train digits.h5 --preset quickstart/digits --steps {size.train_steps} --seed {seed}",
            "model.safetensors",
        ),
        (
            "A second judge, of another architecture and seed: what one alone sees is a judge's, not the model's",
            f"train-classifier digits.h5 --network {SECOND_JUDGE} --steps {size.second_judge_steps} {CURVE} "
            f"--seed {seed ^ 1}",
            second,
        ),
        *(
            (fit.why, f"fit-aggregate model.safetensors {fit.options} {alike}", f"{fit.name}.safetensors")
            for fit in FITS
        ),
        (
            "Scores of the prior, by both judges",
            f"eval model.safetensors --posterior prior {measure}",
            _scores_of("prior"),
        ),
        *(
            (
                f"Scores of {fit.why.split(':')[0]}",
                f"eval {fit.name}.safetensors --posterior {fit.posterior} {measure}",
                _scores_of(fit.name),
            )
            for fit in FITS
            if fit.name != GUIDED
        ),
        (
            "Scores of q_agg, and of q_agg guided by the model's own reading of z: more of what says the words clearly",
            f"eval {GUIDED}.safetensors --posterior {GUIDED} --guidance 0 --guidance {size.guidance} {measure}",
            _scores_of(GUIDED),
        ),
        (
            "Pictures from q_agg, guided",
            f"sample {GUIDED}.safetensors --guidance {size.guidance} {words}",
            "guided.png",
        ),
        (
            "A page to play with: pictures of any words, what each dimension changes, a map; no server, no network",
            f"explore {pictured} {judge} --guidance {size.guidance} --number {size.pictures} --seed {seed} "
            f"--report {REPORT}",
            EXPLORE,
        ),
    ]
    scores = " ".join(makes for _, _, makes in listed if makes.endswith(".jsonl"))
    report = (
        f"report model.safetensors {files} {judge} {second} {scores} --guidance {size.guidance} --explore {EXPLORE}"
    )
    listed.append(("Everything on one page", report, REPORT))
    return [Stage(why=why, command=f"mmgen {command} -o {makes}", makes=makes) for why, command, makes in listed]


def _scores_of(name: str) -> str:
    """The file with the scores of a fit; eval itself would call that of NAME.safetensors NAME-scores.jsonl."""
    return f"scores-{name}.jsonl"


def draw_picture(folder: Path, seed: int) -> None:
    """The same words drawn from the fits that are pictured side by side, the judge's mistakes framed red."""
    from mmgen.artifacts import Dataset
    from mmgen.classifier import load_classifier
    from mmgen.descriptions import format_values
    from mmgen.figures.drawing.comparison import comparison, judge_note
    from mmgen.generation import load
    from mmgen.generation.concepts import choose_concepts
    from mmgen.generation.draws import draw
    from mmgen.generation.judge import sees_samples

    judge = load_classifier(folder / "judge.safetensors", "cpu")
    loaded = {fit: load(folder / f"{fit.name}.safetensors") for fit in FITS if fit.name in PICTURED}
    info = next(iter(loaded.values())).attributes
    assert info is not None
    with Dataset.open(folder / "digits.h5") as data:
        codes = data.read_attributes(info.name, data.split("iid", "test"))
    concepts = choose_concepts(codes, 5, seed)
    shown = [(model, fit.posterior) for fit, model in loaded.items()]
    shown += [(model.guided(GUIDANCE, seed), fit.posterior) for fit, model in loaded.items() if fit.name == GUIDED]
    draws = [
        (model.posteriors[posterior].title, draw(model, concepts, 6, posterior=posterior, seed=seed, judge=judge))
        for model, posterior in shown
    ]
    labels = [format_values(concept, info) for concept in concepts]
    note = judge_note(judge.accuracy, sees_samples(next(iter(loaded.values()))))
    grid = comparison(draws, labels, title="The same words, drawn from each posterior", note=note)
    grid.save(folder / PICTURE)


def _say_own_scores(scores: "Sequence[Score]") -> None:
    """A table: of attributes by where z came from and by judge; of captions each number."""
    from mmgen.results.score_table import table_of

    if any(score.metric == "correctness" for score in scores):
        table(_TITLE, *final_table(scores, asked_of(scores)))
    else:
        found = table_of(scores, "Scores")
        table(found.title, found.columns, found.rows)


def _own_pictures(
    images: Path, output: Path | None, *, quick: bool, seed: int, jobs: int, drop_unreadable: bool, size: int | None
) -> None:
    """The quickstart on somebody's own pictures."""
    from mmgen.cli import _own_pictures as own
    from mmgen.cli._side_by_side import run_side_by_side
    from mmgen.data_recipes.folder import Folder

    own.check_size(size)
    recipe = Folder(pictures=images, drop_unreadable=drop_unreadable)
    found = follow(recipe.survey(seed, None))
    sizes = own.sizes_for(found.number, found.side, quick, size)
    plan = own.stages(images, found, sizes, seed, drop_unreadable=drop_unreadable)
    folder = output or Path(f"{images.absolute().stem}-quickstart{'-quick' if quick else ''}")
    if folder.absolute().resolve().is_relative_to(images.resolve()):
        raise UsageError(
            f"{folder} lies in {images}, whose pictures would then be joined by what is drawn; use another --output"
        )
    own.check_folder(folder, plan, found)
    started = time.monotonic()
    said = [f"attributes {', '.join(found.attributes)}"] * bool(found.attributes) + ["captions"] * bool(found.captions)
    judge = f"a judge in {sizes.judge_steps:,} steps, " if found.attributes else ""
    left = "; captions are left out where there are attributes" if found.attributes and found.captions else ""
    say(
        f"Found {found.number:,} pictures, about {found.side} pixels high or wide, with {' and '.join(said)}.\n"
        f"Plan, by number and size of pictures: {sizes.side} x {sizes.side} pixels, {judge}a model of "
        f"{sizes.latent_size} dimensions in {sizes.model_steps:,}, its aggregate in {sizes.fit_steps:,}; about "
        f"{sizes.minutes(bool(found.attributes), jobs)} minutes on two cores{left}."
        f"{own.shrunk(found, sizes, jobs, quick)}"
    )
    say(f"The commands run in {folder}{os.sep}; each can be typed there again.")
    with folder_of_run(folder, [own.COMMANDS]):
        own.keep_commands(folder, plan, found)
        run_side_by_side(plan, folder, jobs, "the quickstart")
    say("")
    _say_own_scores([score for file in score_files(plan) for score in read_scores(folder / file)])
    _say_pages(folder, own.REPORT, own.EXPLORE, f"Took {time.monotonic() - started:.0f} s.")


def _say_pages(folder: Path, report: str, explore: str, before: str) -> None:
    """The last words, with the paths of the pages in them; that of the report is the result."""
    say(f"{before} Open in any browser: {folder / report}, the report; {folder / explore}, a page to play with.")
    result(folder / report)


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
    from mmgen.artifacts import check_place
    from mmgen.cli._side_by_side import jobs_for, run_side_by_side

    if images is not None:
        _own_pictures(
            images, output, quick=quick, seed=seed, jobs=jobs_for(jobs), drop_unreadable=drop_unreadable, size=size
        )
        return
    if size is not None:
        raise UsageError("--size is of your own pictures; name them with --images DIR, or leave it out")
    if drop_unreadable:
        raise UsageError("--drop-unreadable is of your own pictures; name them with --images DIR, or leave it out")
    folder = output or Path("quickstart-quick" if quick else "quickstart")
    plan = stages(QUICK if quick else FULL, seed)
    started = time.monotonic()
    with folder_of_run(folder):
        for name in (*(stage.makes for stage in plan), PICTURE):
            check_place(folder / name)
        say(f"The commands run in {folder}{os.sep}; each can be typed there again.")
        run_side_by_side(plan, folder, jobs_for(jobs), "the quickstart")
    draw_picture(folder, seed)
    scores = [score for file in score_files(plan) for score in read_scores(folder / file)]
    say("")
    table(_TITLE, *final_table(scores))
    say(finding(scores))
    took = f"Took {time.monotonic() - started:.0f} s. The same words, drawn from each: {folder / PICTURE}."
    _say_pages(folder, REPORT, EXPLORE, took)
