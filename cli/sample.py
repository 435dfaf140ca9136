"""``mmgen sample``: images from a description, or the attributes of images."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli._console import result, say, table
from cli._options import Device, InputPath, Output, Seed, command_line, read_path

if TYPE_CHECKING:
    from mmgen.classifier import Classifier
    from mmgen.loading import Loaded

__all__ = ["sample_command"]


def sample_command(
    checkpoint: InputPath,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--given",
            metavar="WORDS",
            show_default=False,
            help='What to draw, such as "digit=3 scale=big"; the rest is unknown. Repeat it for several descriptions.',
        ),
    ] = None,
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="Images for each description.")] = 16,
    output: Output = None,
    posterior: Annotated[
        str | None,
        typer.Option(
            "--posterior",
            metavar="NAME",
            show_default=False,
            help="Where z comes from: prior, text, aggregate or true; by default what was fitted, else text.",
        ),
    ] = None,
    mean: Annotated[bool, typer.Option("--mean/--sampled", help="Show means of p(image|z), or draws from it.")] = True,
    judge: Annotated[
        Path | None,
        typer.Option(
            "--judge", metavar="FILE", show_default=False, help="Who looks at the images; found beside the model."
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            show_default=False,
            help="The other way round: say what the images in a picture, samples or dataset file show.",
        ),
    ] = None,
    rows: Annotated[
        list[int] | None,
        typer.Option(
            "--dataset-row",
            metavar="N",
            min=0,
            show_default=False,
            help="Say what these rows of --from, or of the model's dataset, show; repeatable.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --from: one JSON line for each image on stdout.")
    ] = False,
    device: Device = "auto",
    seed: Seed = 0,
) -> None:
    """Draw images for a description, or say what images show.

    Writes a grid of images (.png) or every image with its z and what the judge saw (.h5), by the ending of --output.
    """
    from mmgen.errors import UsageError

    path = read_path(checkpoint, "model or aggregate")
    reads = images is not None or bool(rows)
    if reads and (given or output):
        raise UsageError("--from says what images show, got --given or --output too, which draw images; choose one")
    if as_json and not reads:
        raise UsageError("--json got no images to read; it goes with --from or --dataset-row")

    from mmgen.loading import load

    loaded = load(path, device)
    if reads:
        _read_images(loaded, images, rows or [], seed, as_json)
    else:
        out = output or path.with_name(f"{path.stem}-samples.png")
        _draw_images(loaded, given or [""], number, out, posterior, mean, judge, seed)
        result(out)


def _read_images(loaded: "Loaded", file: Path | None, rows: list[int], seed: int, as_json: bool) -> None:
    from mmgen.errors import UsageError
    from mmgen.figures.recognise import attribute_probabilities, images_of_file, reading

    if loaded.image is None or loaded.attributes is None:
        raise UsageError(f"{loaded.path} has no images or no attributes; use a model of both")
    pixels, names = images_of_file(file or loaded.dataset_path(), loaded.image.shape, rows)
    probabilities = attribute_probabilities(loaded, pixels, seed=seed)
    found = [reading(each, loaded.attributes) for each in probabilities]
    if as_json:
        for name, read in zip(names, found, strict=True):
            result(json.dumps({"image": name, "attributes": read}))
        return
    lines = [
        [name, *(f"{attribute['value']} {100 * attribute['probability']:.0f} %" for attribute in read.values())]
        for name, read in zip(names, found, strict=True)
    ]
    table("What the images show", ("image", *loaded.attributes.names), lines)


def _judge(loaded: "Loaded", given: Path | None, out: Path) -> "tuple[Path | None, Classifier | None]":
    """The judge that was named, else one found near the files; whoever cannot be found or opened is only mentioned."""
    from mmgen.classifier import load_classifier
    from mmgen.errors import ArtifactError
    from mmgen.figures.draws import find_judge

    if given is not None:
        return given, load_classifier(given, loaded.device)
    found = find_judge(loaded.model_path, [loaded.path, out]) if loaded.attributes is not None else None
    if found is None:
        say("no judge was found, so nobody checks these images: make one with mmgen train-classifier")
        return None, None
    try:
        return found, load_classifier(found, loaded.device)
    except ArtifactError as error:
        say(f"nobody checks these images: {error}")
        return None, None


def _draw_images(
    loaded: "Loaded",
    given: list[str],
    number: int,
    out: Path,
    posterior: str | None,
    mean: bool,
    judge: Path | None,
    seed: int,
) -> None:
    import numpy as np

    from mmgen.errors import UsageError
    from mmgen.figures.draws import draw
    from mmgen.figures.hierarchy import share_right
    from mmgen.figures.sampling import sample_grid, save_samples
    from mmgen.queries import parse_query

    if out.suffix.lower() not in (".png", ".h5"):
        raise UsageError(f"--output got {out}, expected a name ending in .png (a grid) or .h5 (samples)")
    info = loaded.attributes
    if info is None and any(given):
        raise UsageError(f"{loaded.path} knows no attributes, so it cannot be given a description; leave out --given")
    codes = np.stack([parse_query(text, info) if info else np.zeros(0, np.uint8) for text in given])
    found, reader = _judge(loaded, judge, out)
    drawn = draw(loaded, codes, number, posterior=posterior or loaded.default_posterior, seed=seed, judge=reader)
    verdict = share_right(drawn)
    if found and verdict:
        say(f"the judge {found} finds {verdict}")
    if out.suffix.lower() == ".h5":
        save_samples(out, drawn, loaded, judge=found, command=command_line())
    else:
        sample_grid(drawn, info, sampled=not mean, accuracy=reader.accuracy if reader else None).save(out)
