"""What ``mmgen quickstart --images`` does: settings by what was found, and the commands, as a list of stages."""

import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mmgen.core.errors import UsageError

if TYPE_CHECKING:
    from mmgen.data_recipes import Survey
    from mmgen.experiments import Stage

__all__ = [
    "COMMANDS",
    "CURVE",
    "EXPLORE",
    "REPORT",
    "Sizes",
    "check_folder",
    "check_size",
    "descriptions_of",
    "keep_commands",
    "score_files",
    "shrunk",
    "sizes_for",
    "stages",
]

EXPLORE = "explore.html"
REPORT = "report.html"
_PRIOR_SCORES = "prior-scores.jsonl"
_SCORES = "aggregate-scores.jsonl"
GUIDANCE, BALANCED = "3", "3:balanced"
"""That of the quickstart; nothing more is fitted for it. Captions do not say what they leave out."""

CURVE = "--set training.validate_every=100"
"""Judges and fits are short: without it their curves in the report would have one point of validation."""

COMMANDS = "commands.sh"  # in the folder of the run
_DESCRIPTIONS = 3  # that the picture shows
_SECOND_JUDGE = "attentive"
_STEP_SECONDS = {32: 0.025, 64: 0.065}  # of model or judge, on one of two cores that have nothing else to do
_LARGE = 48  # pixels of pictures that are worth more than the fewest
_SECOND_STEP_SECONDS = {32: 0.04, 64: 0.15}  # of the second judge
_OTHER_SECONDS = {32: 140, 64: 190}  # of all but training


@dataclass(frozen=True)
class Sizes:
    """How much is done.

    Attributes:
        side: Height and width of pictures.
        latent_size: Dimensions of z.
        judge_steps: Steps of the judge.
        second_judge_steps: Steps of the second judge.
        model_steps: Steps of the model.
        fit_steps: Steps of the aggregate.
        draws: Pictures of each query.
        pictures: Pictures of each description on the page to play with.
    """

    side: int
    latent_size: int
    judge_steps: int
    second_judge_steps: int
    model_steps: int
    fit_steps: int
    draws: int
    pictures: int

    def minutes(self, judged: bool, jobs: int) -> int:
        """What it takes about, on two cores.

        Args:
            judged: Whether there are judges, which are trained beside the model where several commands run at once.
            jobs: Commands that run at once.
        """
        seconds = _STEP_SECONDS[self.side] * self.model_steps
        if judged:
            judges = _STEP_SECONDS[self.side] * self.judge_steps
            judges += _SECOND_STEP_SECONDS[self.side] * self.second_judge_steps
            seconds = max(seconds, judges) if jobs > 1 else seconds + judges
        return max(1, round((seconds + _OTHER_SECONDS[self.side]) / 60))


def check_size(size: int | None) -> None:
    """Refuse a size of pictures that there are no settings for.

    Raises:
        UsageError: It is another.
    """
    if size not in (None, *_STEP_SECONDS):
        raise UsageError(
            f"--size got {size}, expected {' or '.join(map(str, _STEP_SECONDS))}; for another one type the commands of "
            "docs/own-data.md"
        )


def sizes_for(number: int, side: int, quick: bool = False, size: int | None = None) -> Sizes:
    """The rule of docs/own-data.md.

    Args:
        number: Pictures.
        side: Median of their shorter sides in pixels.
        quick: Far too little, but every command runs.
        size: Height and width of pictures, where somebody said it.
    """
    many = number >= 2000
    pixels = size or (64 if many and side >= _LARGE else 32)
    latent_size = 24 if many else 12
    if quick:
        return Sizes(
            pixels,
            latent_size,
            judge_steps=30,
            second_judge_steps=20,
            model_steps=40,
            fit_steps=30,
            draws=2,
            pictures=1,
        )
    model_steps = min(2500 + number // 4, 7500 if pixels == 32 else 3500)
    return Sizes(
        pixels, latent_size, judge_steps=1000, second_judge_steps=600, model_steps=model_steps, fit_steps=800, draws=24,
        pictures=6,
    )  # fmt: skip


def shrunk(found: "Survey", sizes: Sizes, jobs: int, quick: bool) -> str:
    """A sentence on the detail that pictures lose and what to type to keep it, with a blank before it; "" without."""
    largest = max(_STEP_SECONDS)
    if sizes.side == largest or found.side < _LARGE:
        return ""
    minutes = sizes_for(found.number, found.side, quick, largest).minutes(bool(found.attributes), jobs)
    return (
        f" Pictures are shrunk to {sizes.side} pixels, which costs detail that letters or faces are told apart by: "
        f"--size {largest} keeps more of it, in about {minutes} minutes."
    )


def descriptions_of(found: "Survey") -> list[str]:
    """What is said of the most pictures, as --given takes it: in attributes if there are some, else in captions."""
    from mmgen.core.notation import UNKNOWN
    from mmgen.descriptions import format_caption, format_query
    from mmgen.modalities.attributes import AttributesDescription
    from mmgen.modalities.text import TextDescription

    if found.codes is not None:
        known = (found.codes != UNKNOWN).sum(1)
        values = tuple(map(tuple, found.attributes.values()))
        attributes = AttributesDescription(names=tuple(found.attributes), values=values)
        return [format_query(row, attributes) for row in _most(found.codes[known == known.max()].tolist())]
    if found.captions is None:
        return []
    text = TextDescription(vocabulary=tuple(found.captions.vocabulary), length=found.captions.length)
    said = [row for row in found.captions.codes.tolist() if row[0] != text.padding]
    return [format_caption(row, text) for row in _most(said)]


def _most(rows: list[list[int]]) -> list[tuple[int, ...]]:
    counts = Counter(map(tuple, rows))
    return sorted(counts, key=lambda row: (-counts[row], row))[:_DESCRIPTIONS]


_MAY = "may be the table"  # said of files beside the pictures


def _check_described(images: Path, found: "Survey") -> None:
    """Refuse pictures of which too little is said for all commands, before any of them has begun.

    Examples that are known in part are enough: what is known of them is learnt, and asked for.

    Raises:
        UsageError: Nothing is said of the pictures, or of those of a part that a command reads.
    """
    from mmgen.core.notation import UNKNOWN

    if not found.attributes and found.captions is None:
        perhaps = next((f" ({line.partition(': --metadata')[0].strip()})" for line in found.notes if _MAY in line), "")
        raise UsageError(
            f"--images got {images}, of whose pictures nothing is said: neither folders that are classes nor a table; "
            f"add a metadata.csv with a column file_name and others{perhaps} (docs/own-data.md)"
        )
    if found.codes is None:
        return
    for part, use in (("train", "learn from"), ("test", "measure with")):
        rows = found.parts[part]
        if not (found.codes[rows] != UNKNOWN).any():
            raise UsageError(
                f"--images got {images}, where none of the {len(rows):,} pictures of the part '{part}' has a known "
                f"attribute to {use}; say more of the pictures, or divide them with a column split (docs/own-data.md)"
            )


def stages(images: Path, found: "Survey", sizes: Sizes, seed: int, *, drop_unreadable: bool = False) -> "list[Stage]":
    """All commands, in order; the paths in them are relative to the folder that they run in, but that of the pictures.

    Args:
        images: The pictures.
        found: What a look at them found.
        sizes: How much is done.
        seed: Seed of every command.
        drop_unreadable: Leave out pictures that cannot be read, as the look did.

    Raises:
        UsageError: Too little is said of the pictures.
    """
    from mmgen.experiments import Stage

    _check_described(images, found)
    dropping = "--drop-unreadable " if drop_unreadable else ""
    seeded = f"--seed {seed}"
    words = "attributes" if found.attributes else "captions"
    measure = "--metric correctness --metric coverage --metric recall" if found.attributes else "--metric retrieval"
    judge = "judge.safetensors"  # named wherever it is used: what runs side by side waits for what it names
    second = "second-judge.safetensors"
    judged = f"--judge {judge} " if found.attributes else ""
    seen_by = f"{judge} " if found.attributes else ""
    both = f"{judged}--judge {second} "
    asked = f"{measure} --draws {sizes.draws} {both}{seeded}" if found.attributes else f"{measure} {seeded}"
    guidance = BALANCED if found.attributes and found.captions is None else GUIDANCE
    guided = f"--guidance 0 --guidance {guidance} " if found.attributes else ""
    given = " ".join(f"--given {shlex.quote(description)}" for description in descriptions_of(found))
    listed = [
        (
            "Data: your pictures, brought to one size, and what is said of them",
            f"make-data folder {shlex.quote(str(images.absolute()))} --size {sizes.side} {dropping}{seeded}",
            "own.h5",
        ),
        (
            f"A joint model of pictures and {words}, p(z) p(picture | z) p(words | z), inferred from pictures",
            f"train own.h5 --preset quickstart/pictures --steps {sizes.model_steps} "
            f"--set model.latent_size={sizes.latent_size} {seeded}",
            "model.safetensors",
        ),
        (
            "q_agg: where pictures that fit the words really lie",
            f"fit-aggregate model.safetensors --steps {sizes.fit_steps} {CURVE} {seeded}",
            "aggregate.safetensors",
        ),
        (
            "Scores of q_agg, and of q_agg guided by the model's own reading of z"
            if found.attributes
            else "Scores: whether a picture finds its caption among others, and a caption its picture",
            f"eval aggregate.safetensors {guided}{asked}",
            _SCORES,
        ),
        (
            "Pictures from q_agg, guided: what is said of the most of yours",
            f"sample aggregate.safetensors --guidance {guidance} {given} --number 8 {judged}{seeded}",
            "guided.png",
        ),
        (
            "A page to play with: pictures of any words, what each dimension changes, a map; no server, no network",
            f"explore model.safetensors aggregate.safetensors {seen_by}--guidance {guidance} --number {sizes.pictures} "
            f"{seeded} --report {REPORT}",
            EXPLORE,
        ),
    ]
    if found.attributes:
        judging = (
            f"A judge: it reads {', '.join(found.attributes)} off a picture, and is measured on pictures new to it",
            f"train-classifier own.h5 --network small --steps {sizes.judge_steps} {CURVE} {seeded}",
            judge,
        )
        another = (
            "A second judge, of another architecture and seed: what one alone sees is a judge's, not the model's",
            f"train-classifier own.h5 --network {_SECOND_JUDGE} --steps {sizes.second_judge_steps} {CURVE} "
            f"--seed {seed ^ 1}",
            second,
        )
        listed.insert(1, judging)
        listed.insert(3, another)
        prior = f"eval model.safetensors --posterior prior {asked}"
        listed.insert(5, ("Scores of the prior, by both judges", prior, _PRIOR_SCORES))
    scores = " ".join(makes for _, _, makes in listed if makes.endswith(".jsonl"))
    seen_by += f"{second} " if found.attributes else ""
    report = (
        f"report model.safetensors aggregate.safetensors {seen_by}{scores} --guidance {guidance} --explore {EXPLORE} "
        f"{seeded}"
    )
    listed.append(("Everything on one page", report, REPORT))
    return [Stage(why=why, command=f"mmgen {command} -o {makes}", makes=makes) for why, command, makes in listed]


def score_files(planned: "list[Stage]") -> list[str]:
    """Files of scores that the commands make."""
    return [stage.makes for stage in planned if stage.makes.endswith(".jsonl")]


def check_folder(folder: Path, planned: "list[Stage]", found: "Survey") -> None:
    """Refuse a folder with files that these commands did not make; what is not there yet may be.

    Raises:
        UsageError: The folder has files of other commands, pictures or words.
    """
    from mmgen.core.parsing import Malformed, read_bounded

    path, text = folder / COMMANDS, _script(planned, found)
    if path.exists():
        try:
            same = read_bounded(path) == text
        except Malformed as error:
            raise UsageError(f"{path} holds no commands: {error}; remove it, or use another --output") from None
        if not same:
            raise UsageError(
                f"{folder} holds a quickstart of other pictures, words or settings ({COMMANDS}); remove it, or use "
                "another --output"
            )
        return
    there = [stage.makes for stage in planned if (folder / stage.makes).exists()]
    if there:
        raise UsageError(f"{folder} holds {there[0]}, which another command made; use another --output")


def keep_commands(folder: Path, planned: "list[Stage]", found: "Survey") -> None:
    """Keep the commands as a script in ``folder``, unless they are there.

    Raises:
        ArtifactError: It cannot be written.
    """
    from mmgen.artifacts import write_text_atomic

    if not (folder / COMMANDS).exists():
        write_text_atomic(folder / COMMANDS, _script(planned, found))


def _script(planned: "list[Stage]", found: "Survey") -> str:
    from mmgen.experiments import comment

    lines = ["#!/bin/sh", *comment(f"pictures and table: sha256 {found.sha256}"), "set -eu"]
    return "\n".join([*lines, *(stage.typed for stage in planned), ""])
