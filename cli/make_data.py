"""``mmgen make-data``: a recipe becomes a dataset file."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from cli._console import follow, result
from cli._options import Seed, Workers, command_line

__all__ = ["make_data_command"]


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
    source: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="Where digits come from: mnist (default), or digits for the 1,797 that scikit-learn carries.",
        ),
    ] = None,
    mnist: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            show_default=False,
            help="Folder with MNIST's four IDX files, gzipped or not; downloaded into the cache by default.",
        ),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(metavar="PIXELS", show_default=False, help="Height and width: mnist-a 64, others 28."),
    ] = None,
    copies: Annotated[
        int | None,
        typer.Option(metavar="N", show_default=False, help="Images of each source digit: mnist-a 10, others 1."),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option(metavar="N", show_default=False, help="Images in all, instead of copies of every digit."),
    ] = None,
    binarise: Annotated[
        bool | None,
        typer.Option(
            "--binarise/--grey",
            show_default=False,
            help="Draw each pixel black or white once (mnist-a), or keep grey levels (others).",
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", show_default=False, help="Any other setting of the recipe."),
    ] = None,
    workers: Workers = None,
    seed: Seed = 0,
) -> None:
    """Make a dataset file from a recipe.

    The file holds images, attributes, every generative factor and several ways to split. Its content depends only on
    the recipe's settings and the seed, never on the number of workers.
    """
    import data_recipes
    from mmgen.config import parse_assignments, validate

    given: dict[str, Any] = {
        "source": source,
        "mnist": mnist,
        "size": size,
        "copies": copies,
        "number": number,
        "binarise": binarise,
    }
    settings = {key: value for key, value in given.items() if value is not None}
    chosen = validate(data_recipes.get(recipe), settings | parse_assignments(assignments or []))
    path = output or Path(f"{recipe}.h5")
    preparing = chosen.prepare()
    if preparing is not None:
        follow(preparing)
    with _tidy_when_terminated():
        follow(chosen.make(path, seed=seed, workers=workers, command=command_line()))
    result(path)


@contextmanager
def _tidy_when_terminated() -> Iterator[None]:
    """Let SIGTERM end the work as an error does, so that processes and temporary files go away."""
    from mmgen.errors import Interrupted

    def stop(number: int, frame: object) -> None:
        raise Interrupted("terminated before the dataset was complete; nothing was written", number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
