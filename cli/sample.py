"""``mmgen sample``: images from a description or from other kinds of pictures, or what images show."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmgen.cli._completion import words
from mmgen.cli._console import CONSOLE, result, result_table, say
from mmgen.cli._options import (
    Device,
    Guidance,
    InputPath,
    Output,
    OverwriteOthers,
    Reads,
    ReadsPictures,
    Seed,
    command_line,
    read_path,
)
from mmgen.commands import check_words

if TYPE_CHECKING:
    import numpy as np

    from mmgen.generation import TrainedModel
    from mmgen.generation.translations import Start

__all__ = ["sample_command"]

_EXAMPLES = 8
"""Test examples to start from unless rows are named."""


def sample_command(
    checkpoint: InputPath,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--given",
            metavar="WORDS",
            show_default=False,
            help='What to draw: "digit=3 scale=big", the rest unknown, or a whole caption where the model knows text, '
            '"large red rubber cube left small blue metal sphere". Repeat it for several descriptions. With --guidance '
            'also NOT and OR: "digit=3 NOT scale=big OR digit=8".',
        ),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option(
            "--number",
            "-n",
            min=1,
            max=2**63 - 1,
            show_default=False,
            help="Images for each description (16 by default), or for each picture of --from (4).",
        ),
    ] = None,
    output: Output = None,
    overwrite: OverwriteOthers = False,
    posterior: Annotated[
        str | None,
        typer.Option(
            "--posterior",
            "-p",
            metavar="NAME",
            show_default=False,
            help="Where z comes from: prior, own (the model's q(z | words)), aggregate, true or scan; by default what "
            "was fitted, else own.",
            autocompletion=words("prior", "own", "aggregate", "true", "scan"),
        ),
    ] = None,
    guidance: Guidance = "0",
    mean: Annotated[
        bool | None,
        typer.Option(
            "--mean/--sampled", show_default="mean", help="Of a .png: show means of p(image|z), or draws from it."
        ),
    ] = None,
    judge: Annotated[
        Path | None,
        typer.Option(
            "--judge", metavar="FILE", show_default=False, help="Who looks at the images; found beside the model."
        ),
        Reads("classifier"),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="SOURCE",
            show_default=False,
            help="Read images instead of drawing them. SOURCE is a picture of any size, resized as those of the "
            "dataset were, a samples or dataset file; or a kind of picture, whose test examples are taken: edges, or "
            "several together, edges+mask; or edges=FILE. With "
            "--to it is what other pictures are drawn from.",
        ),
        ReadsPictures(),
    ] = None,
    targets: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            metavar="NAME",
            show_default=False,
            help="The kind of picture to draw, such as mask, where the model has several; repeatable, for pictures "
            "of the same z. By default the main one.",
        ),
    ] = None,
    rows: Annotated[
        list[int] | None,
        typer.Option(
            "--dataset-row",
            metavar="N",
            min=0,
            show_default=False,
            help="Which rows of --from, or of the model's dataset; repeatable. By default 8 of its test part.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --from: one JSON line for each image instead of a table.")
    ] = False,
    device: Device = "auto",
    seed: Seed = 0,
) -> None:
    """Draw images for a description or from other kinds of pictures, or say what images show.

    Writes a grid of images (.png) or every image with its z and what the judge saw (.h5), by the ending of --output.
    """
    from mmgen.core.errors import UsageError
    from mmgen.posteriors import Tilt

    path = read_path(checkpoint, "model or aggregate")
    starts = source is not None or bool(rows)
    _check_start(
        starts,
        bool(targets),
        drawing={
            "--given": given,
            "--output": output,
            "--number": number,
            "--sampled": mean is False,
            "--mean": mean,
            "--overwrite": overwrite,
        },
        described={"--posterior": posterior, "--judge": judge, "--guidance": Tilt.of(guidance)},
    )
    if as_json and (not starts or targets):
        raise UsageError("--json got no images to read; it goes with --from or --dataset-row, without --to")
    out = output or path.with_name(f"{path.stem}-samples.png")
    if mean is not None and out.suffix.lower() == ".h5":
        typed = "--mean" if mean else "--sampled"
        raise UsageError(f"{typed} got {out}, expected a picture (.png): a file of samples holds both; leave it out")

    check_words(path, given or [])  # before seconds of loading

    from mmgen.generation import load
    from mmgen.generation.translations import parse_start

    loaded = load(path, device).guided(guidance, seed)
    for notice in loaded.notices:
        say(notice)
    if starts:
        main = loaded.observation.name if loaded.observation is not None else ""
        start = parse_start(loaded, source or main)
        if not targets:
            _read_images(loaded, start, rows or [], seed, as_json)
            return
        _check_output(loaded, out, overwrite, targets, *([start.file] if start.file else []))
        _translate_images(loaded, start, targets, given or [""], number or 4, rows or [], out, mean is not False, seed)
    else:
        _check_output(loaded, out, overwrite, targets or [])
        _draw_images(loaded, given or [""], number or 16, out, posterior, mean is not False, judge, seed, targets or [])
    result(out)


def _check_start(starts: bool, draws: bool, drawing: dict[str, object], described: dict[str, object]) -> None:
    """Refuse options that this mode would ignore.

    Args:
        starts: Pictures are given.
        draws: Pictures are to be drawn from them.
        drawing: Options of everything that draws.
        described: Options of drawing for a description alone.

    Raises:
        UsageError: An option does not go with --from.
    """
    from mmgen.core.errors import UsageError

    if not starts:
        return
    if asked := [name for name, value in described.items() if value]:
        raise UsageError(
            f"--from or --dataset-row got {' and '.join(asked)} too, which only drawing for a description knows: z is "
            "inferred from the pictures, and nobody judges; leave one or the other out"
        )
    if not draws and (asked := [name for name, value in drawing.items() if value]):
        raise UsageError(
            f"--from says what images show, got {' and '.join(asked)} too, which is for drawing images; choose one, or "
            "say with --to what to draw from them"
        )


def _read_images(loaded: "TrainedModel", start: "Start", rows: list[int], seed: int, as_json: bool) -> None:
    from mmgen.core.errors import UsageError
    from mmgen.generation.read import attribute_probabilities, reading
    from mmgen.generation.translations import started

    if loaded.attributes is None and loaded.text is None:
        raise UsageError(f"{loaded.path} knows no words to say what is shown; use a model of data and words")
    shown = started(loaded, start, _EXAMPLES, seed, rows)
    if shown.notice:
        say(shown.notice)
    names = list(shown.names)
    # The main picture may be encoded with unknown words, by models that infer nothing from it alone.
    pixels: np.ndarray | dict[str, np.ndarray] = {name: shown.pictures[name] for name in start.sources}
    if loaded.observation is not None and start.sources == (loaded.observation.name,):
        pixels = shown.pictures[loaded.observation.name]
    if loaded.text is not None and loaded.text.name in loaded.model.generates:
        _read_texts(loaded, pixels, names, seed, as_json)
        return
    probabilities = attribute_probabilities(loaded, pixels, seed=seed)
    assert loaded.attributes is not None
    found = [reading(each, loaded.attributes) for each in probabilities]
    if as_json:
        for name, read in zip(names, found, strict=True):
            result(json.dumps({"image": name, "attributes": read}))
        return
    lines = [
        [name, *(f"{attribute['value']} {100 * attribute['probability']:.0f} %" for attribute in read.values())]
        for name, read in zip(names, found, strict=True)
    ]
    result_table("What the images show", ("image", *loaded.attributes.names), lines)


def _read_texts(
    loaded: "TrainedModel", pixels: "np.ndarray | dict[str, np.ndarray]", names: list[str], seed: int, as_json: bool
) -> None:
    from mmgen.generation.read import texts_of_images

    for name, texts in zip(names, found := texts_of_images(loaded, pixels, seed=seed), strict=True):
        if as_json:
            result(json.dumps({"image": name, "text": texts[0], "texts": texts[1:]}))
    if not as_json:
        result_table(
            "What the images show",
            ("image", "likeliest words at the mean of q(z|x)", "a draw"),
            [[name, texts[0], texts[1]] for name, texts in zip(names, found, strict=True)],
        )


def _check_output(loaded: "TrainedModel", out: Path, overwrite: bool, targets: list[str], *inputs: Path) -> None:
    from mmgen.artifacts import check_output
    from mmgen.artifacts.pages import check_page
    from mmgen.core.errors import UsageError
    from mmgen.generation.decode import wanted_images

    ending = out.suffix.lower()
    described = loaded.observed[wanted_images(loaded, targets)[0]]
    if ending not in (".png", ".h5", *described.files):
        own = "".join(f", {each} ({described.name})" for each in described.files)
        raise UsageError(f"--output got {out}, expected a name ending in .png (a grid) or .h5 (samples){own}")
    if ending == ".png" and described.picture_shape is None:
        raise UsageError(f"--output got {out}, but a {described.kind} has no picture; use a file of samples (.h5)")
    if ending != ".h5":
        check_page(out, "picture", overwrite, *inputs)
    elif overwrite:
        raise UsageError(
            f"--overwrite got {out}, expected a picture (.png): samples replace samples anyway; leave it out"
        )
    else:
        check_output(out, "samples", *inputs)


def _translate_images(
    loaded: "TrainedModel",
    start: "Start",
    targets: list[str],
    given: list[str],
    number: int,
    rows: list[int],
    out: Path,
    mean: bool,
    seed: int,
) -> None:
    from mmgen.core.errors import UsageError
    from mmgen.figures.drawing.samples import translated_grid
    from mmgen.generation.draws import as_pictures
    from mmgen.generation.samples import save_samples, write_values
    from mmgen.generation.translations import as_pictures_of, drawn_from, started

    if len(given) > 1:
        raise UsageError(f"--given got {len(given)} descriptions, expected one to go with the pictures of --from")
    shown = started(loaded, start, _EXAMPLES, seed, rows)
    if shown.notice:
        say(shown.notice)
    drawn = drawn_from(loaded, shown, start.sources, targets, number, seed, given[0])
    if out.suffix.lower() == ".h5":
        of = {"from": list(start.sources), "pictures": list(shown.names)}
        save_samples(out, drawn, loaded, command=command_line(), start=of)
    elif out.suffix.lower() == ".png":
        pictures = as_pictures_of(loaded, shown), start.sources, as_pictures(loaded, drawn)
        translated_grid(*pictures, description=given[0], sampled=not mean).save(out)
    else:
        write_values(out, loaded, drawn, sampled=not mean)


def _draw_images(
    loaded: "TrainedModel",
    given: list[str],
    number: int,
    out: Path,
    posterior: str | None,
    mean: bool,
    judge: Path | None,
    seed: int,
    targets: list[str],
) -> None:
    from mmgen.figures.drawing.samples import sample_grid
    from mmgen.generation.asked import draw_asked
    from mmgen.generation.draws import as_pictures
    from mmgen.generation.judge import sees_samples
    from mmgen.generation.samples import save_samples, write_values

    drawn, found, judging = draw_asked(
        loaded, given, number, CONSOLE, posterior=posterior, judge=judge, near=out, seed=seed, targets=targets
    )
    if out.suffix.lower() == ".h5":
        save_samples(out, drawn, loaded, judge=found, command=command_line())
    elif out.suffix.lower() == ".png":
        accuracy = judging.accuracy if judging else None
        sample_grid(
            as_pictures(loaded, drawn), loaded.attributes, text=loaded.text, sampled=not mean, accuracy=accuracy,
            judged_samples=sees_samples(loaded),
        ).save(out)  # fmt: skip
    else:
        write_values(out, loaded, drawn, sampled=not mean)
