"""The plan of ``mmgen quickstart --images``: its stages, with sizes by number and size of the pictures."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mmgen.data_recipes import Survey
    from mmgen.experiments import Stage
    from mmgen.modalities.attributes import AttributesDescription


MODEL = "model.safetensors"
GAPS = "gaps.png"
"""Picture of combinations of words that no picture has."""
FILLED = "own-filled.h5"
"""Data with pictures in the gaps of their words."""
COMMAND_FILE = "commands.sh"
"""Script in the folder of the run."""
_GUIDANCE = {"attributes": "cfg:1.5", "captions": "3"}
"""Guidance of the quickstart by kind of description."""
_DESCRIPTIONS = 3  # descriptions in the picture
_GAPS = 10  # combinations without a picture that are drawn
_LATENT_SIZE = 32
_PLAIN_BETA, _PLAIN_SIDE = 10.0, 64
"""Weight of the divergence of the plain conditional VAE, and the height and width of pictures that it suits."""
_SIDES = (32, 64)  # heights and widths of pictures for which there are settings
_FEWEST_STEPS, _MOST_STEPS = 200, 100_000  # of a judge, and of a model that the clock ends
_MODEL, _MODEL_OF_ONE, _MODEL_ALONE = 0.6, 0.5, 0.8  # of --minutes: with two commands at once, one, and without judges
_RIVAL, _JUDGE, _SECOND_JUDGE = 1 / 3, 1 / 6, 1 / 4  # of the model's time
FEW_QUERIES = 12
"""Queries with the same number of words that scores take when the time is over."""


@dataclass(frozen=True)
class Sizes:
    """Size of pictures, size of the latent, and numbers of steps and draws of a quickstart.

    Attributes:
        side: Height and width of pictures.
        latent_size: Dimensions of z.
        model_steps: Steps of the model.
        clock: Minutes of training that end the model before its steps, and the others after a share of them; None
            without a limit.
        judge_steps: Steps of the judge, which stops when it has converged.
        second_judge_steps: Steps of the second judge, which stops as well.
        fit_steps: Steps of the aggregated posterior.
        draws: Pictures of each query.
        queries: Largest number of queries with the same number of words.
        pictures: Pictures of each description on the page to play with.
    """

    side: int
    latent_size: int
    model_steps: int
    clock: float | None = None
    judge_steps: int = 800
    second_judge_steps: int = 600
    fit_steps: int = 1000
    draws: int = 8
    queries: int = 40
    pictures: int = 6

    @property
    def plain_beta(self) -> float:
        """Weight of the divergence of the plain conditional VAE, which grows with the number of pixels."""
        return _PLAIN_BETA * (self.side / _PLAIN_SIDE) ** 2

    @property
    def plain_steps(self) -> int:
        """Steps of the plain conditional VAE that the model is compared with, each a third of the model's."""
        return self.model_steps

    @property
    def limits(self) -> dict[str, float | list[float]]:
        """Minutes of each training by name; [] without a limit."""
        shares = {"model": 1, "plain": _RIVAL, "judge": _JUDGE, "second_judge": _SECOND_JUDGE}
        clock = self.clock
        return {f"{name}_minutes": round(share * clock, 2) if clock else [] for name, share in shares.items()}

    def with_steps(self, steps: int) -> "Sizes":
        """Return the same sizes with so many steps of the model; of few, the judges have fewer too."""
        return replace(
            self,
            model_steps=steps,
            judge_steps=min(self.judge_steps, max(_FEWEST_STEPS, steps // 2)),
            second_judge_steps=min(self.second_judge_steps, max(_FEWEST_STEPS, steps // 3)),
        )

    def within_minutes(self, minutes: float, has_judge: bool, jobs: int) -> "Sizes":
        """Return the same sizes with trainings that the clock ends: the model has a fixed share of all minutes.

        However busy the machine is, the model has its share, and scores take fewer descriptions when time is over.
        """
        share = (_MODEL if jobs > 1 else _MODEL_OF_ONE) if has_judge else _MODEL_ALONE
        return replace(self, model_steps=_MOST_STEPS, clock=share * minutes)

    @property
    def usual_steps(self) -> dict[str, int]:
        """Steps of the trainings that the clock may end, by the file that they make."""
        return {MODEL: self.model_steps, "plain-cvae.safetensors": self.plain_steps}


def check_options(size: int | None, steps: int | None, minutes: float | None) -> None:
    """Refuse a height and width of pictures for which there are no settings, and two lengths of training."""
    if size not in (None, *_SIDES):
        raise UsageError(
            f"--size got {size}, expected {' or '.join(map(str, _SIDES))}; for another one type the commands of "
            "docs/own-data.md"
        )
    if steps is not None and minutes is not None:
        raise UsageError(f"--steps got {steps} and --minutes got {minutes:g}, expected one of them; leave one out")


def choose_sizes(pictures: int, picture_side: int, quick: bool = False, size: int | None = None) -> Sizes:
    """Choose the sizes of a quickstart by the number and side of pictures (rule: docs/own-data.md).

    Args:
        pictures: Number of pictures.
        picture_side: Median of their shorter sides, in pixels.
        quick: Whether to choose the smallest sizes, for tests.
        size: Height and width of pictures that the user asks for.
    """
    from mmgen.data_recipes import usual_size

    pixels = size or usual_size(picture_side)
    if quick:
        return Sizes(pixels, 12, 40, judge_steps=30, second_judge_steps=20, fit_steps=30, draws=2, pictures=1)
    steps = min(1700 + pictures // 10, 3200 if pixels == 32 else 2600)
    return Sizes(pixels, _LATENT_SIZE, steps)


def describe_plan(survey: "Survey", sizes: Sizes, usual: int) -> str:
    """Describe the pictures and the plan in sentences; ``usual`` is the number of steps without a clock."""
    words = [f"kinds {', '.join(survey.images)}"] * (len(survey.images) > 1)
    words += [f"attributes {', '.join(survey.attributes)}"] * bool(survey.attributes)
    words += ["captions"] * bool(survey.captions)
    length = f"{sizes.model_steps:,} steps"
    if sizes.clock:
        length = f"{sizes.clock:.1f} minutes, usually {usual:,} steps"
    measured = "; then two judges and a plain conditional VAE, which has a third of that time" * bool(survey.attributes)
    omitted = "; captions are left out where there are attributes" if survey.attributes and survey.captions else ""
    return (
        f"Found {survey.number:,} pictures, about {survey.side} pixels high or wide, with {' and '.join(words)}.\n"
        f"Plan, by number and size of pictures: {sizes.side} x {sizes.side} pixels, a model of {sizes.latent_size} "
        f"dimensions in {length}, its aggregate in {sizes.fit_steps:,} steps then pictures{measured}{omitted}. "
        f"How long a training takes is said after its first steps.{_describe_lost_detail(survey, sizes)}"
    )


def _describe_lost_detail(survey: "Survey", sizes: Sizes) -> str:
    """Return a sentence on detail that smaller pictures lose, and the option that keeps it; "" if none is lost."""
    largest = max(_SIDES)
    if not _loses_detail(survey, sizes):
        return ""
    return (
        f" Pictures are shrunk to {sizes.side} pixels, which costs detail that distinguishes letters or faces: "
        f"--size {largest} keeps more of it, in steps that take about three times as long."
    )


def scale_sizes(
    sizes: Sizes, survey: "Survey", jobs: int, steps: int | None = None, minutes: float | None = None
) -> Sizes:
    """Apply the options --steps and --minutes to the sizes of a plan."""
    if minutes is not None:
        return sizes.within_minutes(minutes, bool(survey.attributes), jobs)
    return sizes if steps is None else sizes.with_steps(steps)


def _typed_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of make-data folder as its options are typed in another folder."""
    joined = {name: ",".join(one) if isinstance(one, list | tuple) else one for name, one in settings.items()}
    return {name: str(one.absolute()) if isinstance(one, Path) else one for name, one in joined.items()}


def larger_command(images: Path, survey: "Survey", sizes: Sizes, settings: Mapping[str, Any]) -> str:
    """Return the command that keeps detail of pictures which this plan shrinks; "" if it shrinks little."""
    if not _loses_detail(survey, sizes):
        return ""
    options = {"images": images, "size": max(_SIDES), **_typed_settings(settings)}
    words = [[f"--{name.replace('_', '-')}", *([] if one is True else [str(one)])] for name, one in options.items()]
    return shlex.join(["mmgen", "quickstart", *(word for option in words for word in option)])


def _loses_detail(survey: "Survey", sizes: Sizes) -> bool:
    return sizes.side < choose_sizes(0, survey.side).side


def frequent_descriptions(survey: "Survey") -> list[str]:
    """Return the most frequent descriptions in the form of ``--given``: of attributes, else of captions."""
    from mmgen.descriptions import format_caption, format_query
    from mmgen.modalities.text import TextDescription

    if survey.codes is not None:
        known = (survey.codes != UNKNOWN).sum(1)
        frequent = _most_frequent_rows(survey.codes[known == known.max()].tolist())
        return [format_query(row, _attributes_of(survey)) for row in frequent]
    if survey.captions is None:
        return []
    text = TextDescription(vocabulary=tuple(survey.captions.vocabulary), length=survey.captions.length)
    rows = [row for row in survey.captions.first.tolist() if row[0] != text.padding]
    return [format_caption(row, text) for row in _most_frequent_rows(rows)]


def gaps_sentence(survey: "Survey") -> str:
    """Return a sentence on the combinations of words that no picture has: "27 of 180 ..."; "" without any."""
    from mmgen.generation import find_gaps

    return find_gaps(survey.codes).sentence if survey.codes is not None else ""


def has_gaps(survey: "Survey") -> bool:
    """Return whether combinations of words lack a training picture that ``mmgen fill-gaps`` can draw."""
    from mmgen.generation import find_gaps

    if survey.codes is None or len(survey.images) != 1:
        return False
    return len(find_gaps(survey.codes[survey.parts["train"]])) > 0


def describe_gaps(survey: "Survey", seed: int) -> list[str]:
    """Return some combinations of words that no picture has, in the form of ``--given``."""
    from mmgen.descriptions import format_query
    from mmgen.generation import find_gaps

    if survey.codes is None:
        return []
    return [format_query(code, _attributes_of(survey)) for code in find_gaps(survey.codes).choose(_GAPS, seed)]


def _attributes_of(survey: "Survey") -> "AttributesDescription":
    from mmgen.modalities.attributes import AttributesDescription

    values = tuple(map(tuple, survey.attributes.values()))
    return AttributesDescription(names=tuple(survey.attributes), values=values)


def _most_frequent_rows(rows: list[list[int]]) -> list[tuple[int, ...]]:
    """Return the most frequent rows; of equally frequent ones, those that have least in common with the ones before."""
    counts, chosen = Counter(map(tuple, rows)), list[tuple[int, ...]]()
    while counts and len(chosen) < _DESCRIPTIONS:
        shared = {row: sum(sum(map(int.__eq__, row, one)) for one in chosen) for row in counts}
        chosen.append(min((-counts[row], shared[row], row) for row in counts)[2])
        del counts[chosen[-1]]
    return chosen


def given_counts(codes: "NDArray[np.uint8]") -> list[int]:
    """Return the numbers of words that scores are measured with: all that test pictures have, two and one.

    Args:
        codes: Attribute codes [N, A] of test pictures.

    Example:
        >>> import numpy as np
        >>> given_counts(np.array([[0, 1, 255, 2], [0, 255, 255, 255]], np.uint8))
        [3, 2, 1]
    """
    most = int((codes != UNKNOWN).sum(1).max(initial=1))
    return sorted({most, min(2, most), 1}, reverse=True)


def _check_descriptions(images: Path, survey: "Survey") -> None:
    """Refuse pictures with too few descriptions for one of the commands."""
    if not survey.attributes and survey.captions is None:
        raise UsageError(
            f"--images got {images}, which describes no picture: it has neither class folders nor a table with a "
            "column of words; add a metadata.csv with a column file_name and others (docs/own-data.md)"
        )
    if survey.codes is None:
        return
    for part, use in (("train", "learn from"), ("test", "measure with")):
        rows = survey.parts[part]
        if not (survey.codes[rows] != UNKNOWN).any():
            raise UsageError(
                f"--images got {images}, where none of the {len(rows):,} pictures of the part '{part}' has a known "
                f"attribute to {use}; describe more pictures, or assign parts in a column split (docs/own-data.md)"
            )


def plan_stages(
    images: Path, survey: "Survey", sizes: Sizes, seed: int, settings: Mapping[str, Any] = MappingProxyType({})
) -> "tuple[Stage, ...]":
    """Return the stages of a quickstart on own pictures, in order (mmgen/experiments/_own_pictures.toml).

    Args:
        images: Folder or zip of the pictures.
        survey: What was found there.
        sizes: Sizes by number and size of the pictures, or those asked for.
        seed: Seed of all stages.
        settings: Settings of make-data folder that were asked for.

    Raises:
        UsageError: The pictures have too few descriptions.
    """
    from mmgen.experiments import packaged_stages

    _check_descriptions(images, survey)
    counts = given_counts(survey.codes[survey.parts["test"]]) if survey.codes is not None else []
    fills = has_gaps(survey)
    names = asdict(sizes) | {
        "data": FILLED if fills else "own.h5",
        "images": str(images.absolute()),
        "attributes": ", ".join(survey.attributes),
        "descriptions": frequent_descriptions(survey),
        "gaps": describe_gaps(survey, seed),
        "plain_beta": sizes.plain_beta,
        "plain_steps": sizes.plain_steps,
        **sizes.limits,
        "given_counts": ",".join(map(str, counts)),
        "guidance": _GUIDANCE["attributes" if survey.attributes else "captions"],
        "seed": seed,
        "other_seed": seed ^ 1,
        "make-data": _typed_settings(settings),
    }
    stages = packaged_stages("own_pictures", "attributes" if survey.attributes else "captions", names)
    left_out = {*([] if names["gaps"] and fills else [GAPS]), *([] if fills else [FILLED])}
    return tuple(stage for stage in stages if stage.makes not in left_out)


def check_folder_is_unused(folder: Path, planned: "Sequence[Stage]", survey: "Survey") -> None:
    """Refuse an output folder that has a file of another command or of another plan."""
    from mmgen.core.parsing import MalformedError, read_text

    path, text = folder / COMMAND_FILE, format_own_script(planned, survey)
    if path.exists():
        try:
            same = read_text(path) == text
        except MalformedError as error:
            raise UsageError(f"{path} holds no commands: {error}; remove it, or use another --output") from None
        if not same:
            raise UsageError(
                f"{folder} holds a quickstart of other pictures, words or settings ({COMMAND_FILE}); remove it, or use "
                "another --output"
            )
        return
    existing = [stage.makes for stage in planned if (folder / stage.makes).exists()]
    if existing:
        raise UsageError(f"{folder} holds {existing[0]}, which another command made; use another --output")


def write_commands(folder: Path, planned: "Sequence[Stage]", survey: "Survey") -> None:
    """Write the commands as a script into ``folder``, unless it is there."""
    from mmgen.artifacts import write_text_atomic

    if not (folder / COMMAND_FILE).exists():
        write_text_atomic(folder / COMMAND_FILE, format_own_script(planned, survey))


def format_own_script(planned: "Sequence[Stage]", survey: "Survey") -> str:
    """Return the commands as a script, which names its pictures by a hash."""
    return format_shell_script(planned, f"pictures and table: sha256 {survey.sha256}")


def format_shell_script(planned: "Sequence[Stage]", about: str) -> str:
    """Return the commands as a script for a shell, with a comment on top."""
    from mmgen.experiments import comment_lines

    lines = ["#!/bin/sh", *comment_lines(about), "set -eu"]
    return "\n".join([*lines, *(stage.command_line for stage in planned), ""])
