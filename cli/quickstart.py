"""``mmgen quickstart``: from data to report in some minutes, with the commands that a user would type."""

import json
import math
import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mmgen.cli._console import result, say, table
from mmgen.cli._options import Seed, output_option
from mmgen.cli._stages import end_with_children, run_command
from mmgen.errors import MmgenError

__all__ = ["quickstart_command"]

SCORES = "scores.jsonl"
PICTURE = "same-words.png"


@dataclass(frozen=True)
class Size:
    """How much is done: everything that --quick makes smaller."""

    copies: int
    judge_steps: int
    train_steps: int
    fit_steps: int
    draws: int


FULL = Size(copies=40, judge_steps=1000, train_steps=5000, fit_steps=1000, draws=24)
QUICK = Size(copies=4, judge_steps=150, train_steps=150, fit_steps=100, draws=2)


@dataclass(frozen=True)
class Stage:
    """One command: why, what is typed after ``mmgen``, and the file that its results are added to, if any."""

    why: str
    command: str
    kept_in: str | None = None

    @property
    def typed(self) -> str:
        """The command as a user would type it."""
        return f"mmgen {self.command}" + (f" >> {self.kept_in}" if self.kept_in else "")


def stages(size: Size, seed: int) -> list[Stage]:
    """All commands, in order; the paths in them are relative to the folder that they run in."""
    fit = f"--steps {size.fit_steps} --seed {seed}"
    measure = f"--metric correctness --metric coverage --given-count 4,3 --draws {size.draws} --seed {seed} --json"
    words = f"--given 'digit=3 scale=big location=top-left' --seed {seed}"
    return [
        Stage(
            "Data: handwritten digits, each turned, scaled and placed at random, and described in four words",
            f"make-data mnist-a --source digits --size 32 --grey --copies {size.copies} --seed {seed} -o digits.h5",
        ),
        Stage(
            "A judge: it reads those words off a picture, and is measured on digits that it has not seen",
            f"train-classifier digits.h5 --network small --steps {size.judge_steps} --seed {seed} -o judge.safetensors",
        ),
        Stage(
            "A joint model of pictures and words, p(z) p(picture | z) p(words | z), inferred from pictures",
            f"train digits.h5 --preset quickstart/digits --steps {size.train_steps} --seed {seed} -o model.safetensors",
        ),
        Stage(
            "q_true(z | words): the posterior that the model itself implies",
            f"fit-aggregate model.safetensors --target true {fit} -o true.safetensors",
        ),
        Stage(
            "q_agg(z | words): where pictures that fit the words really lie",
            f"fit-aggregate model.safetensors --target aggregate {fit} -o aggregate.safetensors",
        ),
        Stage(
            "Scores of the prior and of q_true, by the judge",
            f"eval true.safetensors --posterior prior --posterior true {measure}",
            SCORES,
        ),
        Stage("Scores of q_agg", f"eval aggregate.safetensors --posterior aggregate {measure}", SCORES),
        Stage("Pictures from q_true ...", f"sample true.safetensors {words} -o true.png"),
        Stage("... and from q_agg", f"sample aggregate.safetensors {words} -o aggregate.png"),
        Stage(
            "Everything on one page",
            f"report model.safetensors true.safetensors aggregate.safetensors {SCORES} -o report.html",
        ),
    ]


def run_stage(stage: Stage, folder: Path) -> None:
    """Run one command in ``folder`` as a process of its own; its talk goes to our stderr.

    Raises:
        MmgenError: It failed; our exit code is its own.
    """
    made = run_command(shlex.split(stage.command), folder, "the quickstart")
    if stage.kept_in:
        with (folder / stage.kept_in).open("a", encoding="utf-8") as file:
            file.write(made)


def read_scores(path: Path) -> list[dict[str, Any]]:
    """The JSON lines that ``mmgen eval --json`` printed."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


NAMES = {"prior": "p(z), the prior", "true": "q_true(z | words)", "aggregate": "q_agg(z | words)"}


def _find(scores: Sequence[dict[str, Any]], metric: str, posterior: str, given: int) -> dict[str, Any] | None:
    matching = (s for s in scores if (s["metric"], s["posterior"], s["given"]) == (metric, posterior, given))
    return next(matching, None)


def _with_error(score: dict[str, Any] | None) -> str:
    if score is None or score["value"] is None:
        return ""
    error = "" if score["stderr"] is None else f" ± {score['stderr']:.1f}"
    return f"{score['value']:.1f}{error} {score['unit']}"


def final_table(scores: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows: where z came from against correctness and coverage, and the judge's own accuracy below."""
    asked = [("correctness", 4), ("correctness", 3), ("coverage", 3)]
    columns = ["pictures drawn from", *(f"{metric}, {given} words given" for metric, given in asked)]
    rows = [
        [name, *(_with_error(_find(scores, metric, posterior, given)) for metric, given in asked)]
        for posterior, name in NAMES.items()
    ]
    accuracy = next((s["judge_accuracy"] for s in scores if s["judge_accuracy"]), None)
    if accuracy:
        rows.append(["(the judge itself, on real pictures)", f"{accuracy['mean']:.1f} %", "", ""])
    return columns, rows


def finding(scores: Sequence[dict[str, Any]]) -> str:
    """The sentence that the quickstart is for."""
    true, aggregate = (_find(scores, "correctness", posterior, 4) for posterior in ("true", "aggregate"))
    if true is None or aggregate is None:
        return ""
    if true["value"] is None or aggregate["value"] is None:
        return ""
    difference = f"{aggregate['value'] - true['value']:+.1f}"
    if true["stderr"] is not None and aggregate["stderr"] is not None:
        difference += f" ± {math.hypot(aggregate['stderr'], true['stderr']):.1f}"
    images = min(true["n"], aggregate["n"])
    return (
        f"Drawn from the learned aggregate, pictures are right {difference} points more often than from q_true "
        f"(same family, size and steps; {images:,} pictures each, of concepts in the test split; ± combines their "
        "standard errors)."
    )


def draw_picture(folder: Path, seed: int) -> None:
    """The same words drawn from q_true and from q_agg side by side, the judge's mistakes framed red."""
    from mmgen.artifacts import Dataset
    from mmgen.classifier import load_classifier
    from mmgen.figures.comparison import POSTERIORS, choose_concepts, comparison, judge_note
    from mmgen.figures.draws import draw
    from mmgen.loading import load
    from mmgen.queries import format_values

    judge = load_classifier(folder / "judge.safetensors", "cpu")
    loaded = {posterior: load(folder / f"{posterior}.safetensors") for posterior in ("true", "aggregate")}
    info = loaded["true"].attributes
    assert info is not None
    with Dataset.open(folder / "digits.h5") as data:
        codes = data.read_attributes(info.name, data.split("iid", "test"))
    concepts = choose_concepts(codes, 5, seed)
    draws = [
        (POSTERIORS[posterior], draw(model, concepts, 6, posterior=posterior, seed=seed, judge=judge))
        for posterior, model in loaded.items()
    ]
    labels = [format_values(concept, info) for concept in concepts]
    grid = comparison(draws, labels, title="The same words, two posteriors", note=judge_note(judge.accuracy))
    grid.save(folder / PICTURE)


def quickstart_command(
    output: Annotated[Path | None, output_option("a folder, quickstart by default")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Far too small to show anything, but every command runs: for testing.")
    ] = False,
    seed: Seed = 0,
) -> None:
    """Go from data to report in some minutes, on digits that need no download.

    Runs the commands that you would type, printing each, and ends with the main finding: what is drawn from q(z | text)
    is poor, what is drawn from the learned aggregate is good. Everything made stays in a folder ("quickstart").
    """
    from mmgen.artifacts import check_place

    folder = output or Path("quickstart-quick" if quick else "quickstart")
    for name in (SCORES, PICTURE):
        if folder.exists():
            check_place(folder / name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SCORES).unlink(missing_ok=True)
    except OSError as error:
        raise MmgenError(f"cannot use the folder {folder}: {error.strerror}; choose another with --output") from None
    end_with_children()
    started = time.monotonic()
    plan = stages(QUICK if quick else FULL, seed)
    say(f"The commands run in {folder}{os.sep}; each can be typed there again.")
    for number, stage in enumerate(plan, 1):
        say(f"\n[{number}/{len(plan)}] {stage.why}\n$ {stage.typed}")
        run_stage(stage, folder)
    draw_picture(folder, seed)
    scores = read_scores(folder / SCORES)
    say("")
    table("What the judge says", *final_table(scores))
    say(finding(scores))
    say(f"Took {time.monotonic() - started:.0f} s. The same words, drawn from both: {folder / PICTURE}. Report:")
    result(folder / "report.html")
