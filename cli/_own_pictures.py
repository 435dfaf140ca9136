"""The plan of ``mmgen quickstart --images``: sizes by number and size of the pictures, and the stages."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mmgen.core.errors import UsageError

if TYPE_CHECKING:
    from mmgen.data_recipes import Survey
    from mmgen.experiments import Stage

__all__ = [
    "COMMANDS",
    "Sizes",
    "check_folder",
    "check_size",
    "descriptions_of",
    "keep_commands",
    "plan_in_words",
    "sizes_for",
    "stages",
]

COMMANDS = "commands.sh"
"""Script in the folder of the run."""
_GUIDANCE = {"attributes": "3:balanced", "captions": "3"}
"""Guidance of the quickstart; nothing more is fitted for it. Captions do not say what they leave out."""
_DESCRIPTIONS = 3  # that the picture shows
_LARGE = 48  # pixels of pictures that are worth more than the fewest
_STEP_SECONDS = {32: 0.025, 64: 0.065}  # of model or judge, on one of two cores that have nothing else to do
_SECOND_STEP_SECONDS = {32: 0.04, 64: 0.15}  # of the second judge
_OTHER_SECONDS = {32: 140, 64: 190}  # of all but training


@dataclass(frozen=True)
class Sizes:
    """Sizes of the quickstart: pictures, networks and numbers of steps.

    Attributes:
        side: Height and width of pictures.
        latent_size: Dimensions of z.
        model_steps: Steps of the model.
        judge_steps: Steps of the judge.
        second_judge_steps: Steps of the second judge.
        fit_steps: Steps of the aggregated posterior.
        draws: Pictures of each query.
        pictures: Pictures of each description on the page to play with.
    """

    side: int
    latent_size: int
    model_steps: int
    judge_steps: int = 1000
    second_judge_steps: int = 600
    fit_steps: int = 800
    draws: int = 24
    pictures: int = 6

    def minutes(self, judged: bool, jobs: int) -> int:
        """Return the approximate duration on two cores."""
        seconds = _STEP_SECONDS[self.side] * self.model_steps
        if judged:
            judges = _STEP_SECONDS[self.side] * self.judge_steps
            judges += _SECOND_STEP_SECONDS[self.side] * self.second_judge_steps
            seconds = max(seconds, judges) if jobs > 1 else seconds + judges
        return max(1, round((seconds + _OTHER_SECONDS[self.side]) / 60))


def check_size(size: int | None) -> None:
    """Refuse a size of pictures for which there are no settings."""
    if size not in (None, *_STEP_SECONDS):
        raise UsageError(
            f"--size got {size}, expected {' or '.join(map(str, _STEP_SECONDS))}; for another one type the commands of "
            "docs/own-data.md"
        )


def sizes_for(number: int, side: int, quick: bool = False, size: int | None = None) -> Sizes:
    """Return sizes for some pictures, by the rule of docs/own-data.md."""
    many = number >= 2000
    pixels = size or (64 if many and side >= _LARGE else 32)
    latent_size = 24 if many else 12
    if quick:
        return Sizes(pixels, latent_size, 40, judge_steps=30, second_judge_steps=20, fit_steps=30, draws=2, pictures=1)
    return Sizes(pixels, latent_size, model_steps=min(2500 + number // 4, 7500 if pixels == 32 else 3500))


def plan_in_words(survey: "Survey", sizes: Sizes, jobs: int, quick: bool) -> str:
    """Return sentences on the pictures, the plan and its duration."""
    words = [f"attributes {', '.join(survey.attributes)}"] * bool(survey.attributes)
    words += ["captions"] * bool(survey.captions)
    judge = f"a judge in {sizes.judge_steps:,} steps, " if survey.attributes else ""
    left = "; captions are left out where there are attributes" if survey.attributes and survey.captions else ""
    return (
        f"Found {survey.number:,} pictures, about {survey.side} pixels high or wide, with {' and '.join(words)}.\n"
        f"Plan, by number and size of pictures: {sizes.side} x {sizes.side} pixels, {judge}a model of "
        f"{sizes.latent_size} dimensions in {sizes.model_steps:,}, its aggregate in {sizes.fit_steps:,}; about "
        f"{sizes.minutes(bool(survey.attributes), jobs)} minutes on two cores{left}."
        f"{_lost_detail(survey, sizes, jobs, quick)}"
    )


def _lost_detail(survey: "Survey", sizes: Sizes, jobs: int, quick: bool) -> str:
    """Return a sentence on the detail that pictures lose, and the option that keeps it; "" where they lose none."""
    largest = max(_STEP_SECONDS)
    if sizes.side == largest or survey.side < _LARGE:
        return ""
    minutes = sizes_for(survey.number, survey.side, quick, largest).minutes(bool(survey.attributes), jobs)
    return (
        f" Pictures are shrunk to {sizes.side} pixels, which costs detail that letters or faces are told apart by: "
        f"--size {largest} keeps more of it, in about {minutes} minutes."
    )


def descriptions_of(survey: "Survey") -> list[str]:
    """Return the most frequent descriptions, as --given takes them: attributes if there are some, else captions."""
    from mmgen.core.notation import UNKNOWN
    from mmgen.descriptions import format_caption, format_query
    from mmgen.modalities.attributes import AttributesDescription
    from mmgen.modalities.text import TextDescription

    if survey.codes is not None:
        known = (survey.codes != UNKNOWN).sum(1)
        values = tuple(map(tuple, survey.attributes.values()))
        attributes = AttributesDescription(names=tuple(survey.attributes), values=values)
        return [format_query(row, attributes) for row in _most(survey.codes[known == known.max()].tolist())]
    if survey.captions is None:
        return []
    text = TextDescription(vocabulary=tuple(survey.captions.vocabulary), length=survey.captions.length)
    said = [row for row in survey.captions.codes.tolist() if row[0] != text.padding]
    return [format_caption(row, text) for row in _most(said)]


def _most(rows: list[list[int]]) -> list[tuple[int, ...]]:
    counts = Counter(map(tuple, rows))
    return sorted(counts, key=lambda row: (-counts[row], row))[:_DESCRIPTIONS]


_MAY = "may be the table"  # said of files beside the pictures


def _check_described(images: Path, survey: "Survey") -> None:
    """Refuse pictures with too few descriptions for all commands, before any of them has begun."""
    from mmgen.core.notation import UNKNOWN

    if not survey.attributes and survey.captions is None:
        perhaps = next((f" ({line.partition(': --metadata')[0].strip()})" for line in survey.notes if _MAY in line), "")
        raise UsageError(
            f"--images got {images}, of whose pictures nothing is said: neither folders that are classes nor a table; "
            f"add a metadata.csv with a column file_name and others{perhaps} (docs/own-data.md)"
        )
    if survey.codes is None:
        return
    for part, use in (("train", "learn from"), ("test", "measure with")):
        rows = survey.parts[part]
        if not (survey.codes[rows] != UNKNOWN).any():
            raise UsageError(
                f"--images got {images}, where none of the {len(rows):,} pictures of the part '{part}' has a known "
                f"attribute to {use}; say more of the pictures, or divide them with a column split (docs/own-data.md)"
            )


def stages(
    images: Path, survey: "Survey", sizes: Sizes, seed: int, *, drop_unreadable: bool = False
) -> "tuple[Stage, ...]":
    """Return all commands, in order (mmgen/experiments/_own_pictures.toml)."""
    from mmgen.experiments import own_stages

    _check_described(images, survey)
    names = asdict(sizes) | {
        "images": str(images.absolute()),
        "attributes": ", ".join(survey.attributes),
        "descriptions": descriptions_of(survey),
        "guidance": _GUIDANCE["attributes" if survey.attributes and survey.captions is None else "captions"],
        "seed": seed,
        "other_seed": seed ^ 1,
        "make-data": {"drop_unreadable": True} if drop_unreadable else {},
    }
    return own_stages("own_pictures", "attributes" if survey.attributes else "captions", names)


def check_folder(folder: Path, planned: "Sequence[Stage]", survey: "Survey") -> None:
    """Refuse a folder with files that these commands did not make."""
    from mmgen.core.parsing import Malformed, read_bounded

    path, text = folder / COMMANDS, _script(planned, survey)
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


def keep_commands(folder: Path, planned: "Sequence[Stage]", survey: "Survey") -> None:
    """Keep the commands as a script in ``folder``, unless they are there."""
    from mmgen.artifacts import write_text_atomic

    if not (folder / COMMANDS).exists():
        write_text_atomic(folder / COMMANDS, _script(planned, survey))


def _script(planned: "Sequence[Stage]", survey: "Survey") -> str:
    from mmgen.experiments import comment

    lines = ["#!/bin/sh", *comment(f"pictures and table: sha256 {survey.sha256}"), "set -eu"]
    return "\n".join([*lines, *(stage.typed for stage in planned), ""])
