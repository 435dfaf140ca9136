"""``mmgen make-data``: a recipe becomes a dataset file."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from mmgen.cli._console import follow, result, say
from mmgen.cli._options import Overwrite, Seed, Workers, command_line

__all__ = ["make_data_command"]


_DIGITS = "mnist, mnist-a, mnist-2bit, binary-mnist, fashion-mnist, multimnist"
_TWO_OBJECTS = "two-objects"
_CELEBA = "celeba-18, celeba-words, celeba-transforms"


def make_data_command(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", show_default=False, help="Such as mnist-a; mmgen list recipe names all.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PATH", show_default=False, help="Where to write; RECIPE.h5 by default."
        ),
    ] = None,
    overwrite: Overwrite = False,
    size: Annotated[
        int | None,
        typer.Option(
            metavar="PIXELS",
            show_default=False,
            help="Height and width: two-objects 112, mnist-a and celeba 64, multimnist 50, others 28.",
        ),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            show_default=False,
            help="Images in all: two-objects 100,000; of digits and faces all, digits so many times as copies says.",
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", show_default=False, help="Any other setting of the recipe."),
    ] = None,
    workers: Workers = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            show_default=False,
            help="Dask scheduler, as tcp://host:8786, whose workers do the work instead of this machine.",
        ),
    ] = None,
    seed: Seed = 0,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            rich_help_panel=_DIGITS,
            help="Where digits come from: mnist (default), or digits for the 1,797 that scikit-learn carries.",
        ),
    ] = None,
    mnist: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            show_default=False,
            rich_help_panel=_DIGITS,
            help="Folder with MNIST's (or Fashion-MNIST's) four IDX files; downloaded into the cache by default.",
        ),
    ] = None,
    copies: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            show_default=False,
            rich_help_panel=_DIGITS,
            help="Images of each source digit, without --number: mnist-a 10, others 1; multimnist has --number only.",
        ),
    ] = None,
    binarise: Annotated[
        bool | None,
        typer.Option(
            "--binarise/--grey",
            show_default=False,
            rich_help_panel=_DIGITS,
            help="Draw each pixel black or white once (mnist-a, binary-mnist), or keep grey levels (others).",
        ),
    ] = None,
    dynamic: Annotated[
        bool,
        typer.Option(
            "--dynamic",
            rich_help_panel=_DIGITS,
            help="Keep each pixel's probability of white, to be drawn anew at every sight in training and evaluation.",
        ),
    ] = False,
    objects: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            show_default=False,
            rich_help_panel=_TWO_OBJECTS,
            help="Objects in each scene: 2 (default) or 1.",
        ),
    ] = None,
    colours: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            show_default=False,
            rich_help_panel=_TWO_OBJECTS,
            help="Colours of objects, as blue,red; all eight by default.",
        ),
    ] = None,
    materials: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            show_default=False,
            rich_help_panel=_TWO_OBJECTS,
            help="Materials; rubber,metal by default.",
        ),
    ] = None,
    shapes: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            show_default=False,
            rich_help_panel=_TWO_OBJECTS,
            help="Shapes; sphere,cylinder,cube by default.",
        ),
    ] = None,
    masks: Annotated[
        bool | None,
        typer.Option(
            "--masks",
            show_default=False,
            rich_help_panel=_TWO_OBJECTS,
            help="Store which object each pixel shows.",
        ),
    ] = None,
    render: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            show_default=False,
            rich_help_panel=_TWO_OBJECTS,
            help="Render the scenes of this JSON file instead of drawing some.",
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            metavar="N", show_default=False, rich_help_panel=_TWO_OBJECTS, help="Light paths per pixel: 64 by default."
        ),
    ] = None,
    renderer: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            rich_help_panel=_TWO_OBJECTS,
            help="numba (default), or blender: Cycles, which CLEVR was made with, fifty times slower.",
        ),
    ] = None,
    blender_python: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            show_default=False,
            rich_help_panel=_TWO_OBJECTS,
            help="Python interpreter that can import bpy, for --renderer blender.",
        ),
    ] = None,
    omniglot: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            show_default=False,
            rich_help_panel="omniglot",
            help="Your copy of OMNIGLOT: chardata.mat, a zip of drawings, or a folder with either.",
        ),
    ] = None,
    celeba: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR|ZIP",
            show_default=False,
            rich_help_panel=_CELEBA,
            help="Your copy of CelebA: its aligned images, as folder or zip, and its lists.",
        ),
    ] = None,
    drop_unreadable: Annotated[
        bool | None,
        typer.Option(
            "--drop-unreadable",
            show_default=False,
            rich_help_panel=_CELEBA,
            help="Leave out images that cannot be read, instead of refusing to make the file.",
        ),
    ] = None,
    detector: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            rich_help_panel=_CELEBA,
            help="How faces are found for celeba-transforms: dlib (default), or aligned, from CelebA's own landmarks.",
        ),
    ] = None,
    drop_faceless: Annotated[
        bool | None,
        typer.Option(
            "--drop-faceless",
            show_default=False,
            rich_help_panel=_CELEBA,
            help="Leave out images in which no face is found; otherwise their masks are black.",
        ),
    ] = None,
    landmarks: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            show_default=False,
            rich_help_panel=_CELEBA,
            help="dlib's predictor of 68 landmarks; by default that of the extra 'faces', or downloaded.",
        ),
    ] = None,
) -> None:
    """Make a dataset file from a recipe.

    The file holds images, attributes, captions where there are any, every generative factor and several ways to split.
    Its content depends only on the recipe's settings and the seed, never on the number of workers.
    """
    from mmgen import data_recipes
    from mmgen.artifacts import check_nothing_lost, check_output
    from mmgen.artifacts.members import members_of
    from mmgen.config import parse_assignments, validate
    from mmgen.errors import UsageError

    given: dict[str, Any] = {
        "source": source,
        "mnist": mnist,
        "size": size,
        "copies": copies,
        "number": number,
        "binarise": "dynamic" if dynamic else binarise,
        "objects": objects,
        "colours": colours,
        "materials": materials,
        "shapes": shapes,
        "masks": masks,
        "render": render,
        "samples": samples,
        "renderer": renderer,
        "blender_python": blender_python,
        "omniglot": omniglot,
        "celeba": celeba,
        "drop_unreadable": drop_unreadable,
        "detector": detector,
        "drop_faceless": drop_faceless,
        "landmarks": landmarks,
    }
    if dynamic and binarise is not None:
        raise UsageError("--dynamic draws pixels anew at every sight, --binarise and --grey do not; give one of them")
    if scheduler is not None and workers is not None:
        raise UsageError("--workers counts processes of this machine, --scheduler uses a cluster's; give one of them")
    settings = {key: value for key, value in given.items() if value is not None}
    assigned = parse_assignments(assignments or [])
    schema = data_recipes.get(recipe)
    if scheduler is not None and any(member.file for member in members_of({"recipe": recipe})):
        raise UsageError(
            f"--scheduler sends work to machines that do not have the file of --code which {recipe} is in; leave it "
            "out, or make a package of the file and install it there"
        )
    options = {key: "--grey" if value is False else f"--{key.replace('_', '-')}" for key, value in settings.items()}
    options |= {"binarise": "--dynamic"} if dynamic else {}
    _check_options(recipe, schema, options | {key: f"setting {key}" for key in assigned})
    chosen = validate(schema, settings | assigned)
    path = output or Path(f"{recipe}.h5")
    check_output(path, "dataset")
    if not overwrite and _is_there(path, seed, recipe, chosen):
        say(f"{path} is there already, made by the same command; --overwrite makes it again")
        result(path)
        return
    check_nothing_lost(path, overwrite, "use the same command to keep it, ")
    preparing = chosen.prepare()
    if preparing is not None:
        follow(preparing)
    where = workers if scheduler is None else scheduler
    with _tidy_when_terminated(chosen.resumes):
        follow(chosen.make(path, seed=seed, workers=where, command=command_line()))
    result(path)


def _is_there(path: Path, seed: int, recipe_name: str, recipe: Any) -> bool:
    """Whether this very command has made the file already; of sources that may have changed nobody knows."""
    from mmgen.artifacts import read_header
    from mmgen.artifacts.members import members_of
    from mmgen.version import __version__

    reads_files = any(isinstance(value, Path) for _, value in recipe)
    if reads_files or not path.exists() or not path.stat().st_size:
        return False
    header = read_header(path)
    commands = [command.replace(" --overwrite", "") for command in (header.command, command_line())]
    same = (commands[0], header.seed, header.program_version) == (commands[1], seed, __version__)
    return same and header.members == members_of({"recipe": recipe_name})  # another version of a package is another one


def _check_options(recipe: str, schema: Any, options: Mapping[str, str]) -> None:
    """Refuse options, by setting, that are other recipes' only."""
    from mmgen import data_recipes
    from mmgen.errors import UsageError

    for key, option in options.items():
        if key in schema.model_fields:
            continue
        takers = [name for name, one in data_recipes.importable().items() if key in one.model_fields]
        if takers:
            raise UsageError(f"{recipe} has no {option}, which is for {', '.join(takers)}; leave it out")


@contextmanager
def _tidy_when_terminated(resumes: bool) -> Iterator[None]:
    """Let SIGTERM end the work as an error does, so that processes and temporary files go away."""
    from mmgen.errors import Interrupted

    kept = "the same command goes on from what is finished" if resumes else "nothing was written"

    def stop(number: int, frame: object) -> None:
        raise Interrupted(f"terminated before the dataset was complete; {kept}", number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
