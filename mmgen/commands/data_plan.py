"""A dataset from what a person says of it to its file: the same for the command line and for notebooks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmgen.artifacts import check_nothing_lost, check_output, read_header
from mmgen.artifacts.members import members_of
from mmgen.core.progress import Watch
from mmgen.core.version import __version__

__all__ = ["DataPlan", "look_ahead", "plan_data"]


@dataclass(frozen=True)
class DataPlan:
    """A dataset that can be made.

    Attributes:
        recipe: The recipe with its settings.
        path: Where it goes.
        seed: All randomness comes from this number.
        command: The command that makes it again.
        is_there: Whether that very command has made it already.
    """

    recipe: Any
    path: Path
    seed: int
    command: str
    is_there: bool

    def run(self, watch: Watch, workers: int | str | None) -> Path:
        """Prepare, look and make; what was found is said before anything is written."""
        preparing = self.recipe.prepare()
        if preparing is not None:
            watch.follow(preparing)
        surveying = self.recipe.survey(self.seed, workers)
        surveyed = {} if surveying is None else {"survey": watch.follow(surveying)}
        for line in surveyed["survey"].notes if surveyed else ():
            watch.say(line)
        making = self.recipe.make(self.path, seed=self.seed, workers=workers, command=self.command, **surveyed)
        for line in making.notes:
            watch.say(line)
        made: Path = watch.follow(making)
        return made


def look_ahead(recipe: Any, seed: int) -> list[str]:
    """What can be known before anything is written: sources are opened and checked as the run itself does first.

    Args:
        recipe: A recipe without a survey of its own.
        seed: Seed of the dataset.

    Returns:
        Lines for people: what would be fetched first, or how much would be made, and of what.

    Raises:
        MmgenError: As :meth:`DataPlan.run` would, of what it looks at first.
    """
    preparing = recipe.prepare()
    if preparing is not None and preparing.unit == "byte":
        return [f"to do first: {preparing.description}, {len(preparing):,} bytes; nothing is known of them yet"]
    making = recipe.make(Path("unwritten.h5"), seed=seed)  # whose work is not done
    first = [f"to do first: {preparing.description}"] if preparing is not None else []
    units = f"{making.unit}es" if making.unit.endswith("ch") else f"{making.unit}s"
    return [*first, f"to do: {making.description}, {len(making):,} {units}", *making.notes]


def plan_data(
    name: str, recipe: Any, out: Path | None, *, seed: int, command: str, overwrite: bool = False
) -> DataPlan:
    """What is to be made, after making sure that nothing is lost.

    Args:
        name: The recipe's name.
        recipe: The recipe with its settings.
        out: The dataset to make; RECIPE.h5 if None.
        seed: Seed of the dataset.
        command: The command that makes it again.
        overwrite: Make it again even if it is there.

    Raises:
        UsageError: Another dataset is there, or something else.
    """
    path = out or Path(f"{name}.h5")
    check_output(path, "dataset")
    # Of sources that the user may have changed since nobody knows.
    reads_files = recipe.reads_sources or any(isinstance(value, Path) for _, value in recipe)
    is_there = not overwrite and not reads_files and _is_made(path, name, seed, command)
    if not is_there:
        check_nothing_lost(path, overwrite, "" if reads_files else "use the same command to keep it, ")
    return DataPlan(recipe, path, seed, command, is_there)


def _is_made(path: Path, name: str, seed: int, command: str) -> bool:
    """Whether a command has made the file already, with this mmgen and the packages that are installed."""
    if not path.exists() or not path.stat().st_size:
        return False
    header = read_header(path)
    made, wanted = (text.replace(" --overwrite", "") for text in (header.command, command))
    same = (made, header.seed, header.program_version) == (wanted, seed, __version__)
    return same and header.members == members_of({"recipe": name})  # another version of a package is another one
