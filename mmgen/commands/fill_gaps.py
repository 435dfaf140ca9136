"""``mmgen fill-gaps``: a dataset with pictures of words that none of its pictures has, drawn by analogy."""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from mmgen.commands._base import Stage
from mmgen.settings.kinds import Count, File, FilePath, InputFile, Option, Range, Seed, path_of

if TYPE_CHECKING:
    from mmgen.artifacts import Dataset

__all__ = ["FillGaps"]


@dataclass(frozen=True)
class FillGaps(Stage["Dataset"]):
    """Add pictures of combinations of words that no training picture has, by changing one word of those that there are.

    Each pixel changes as it does between other pictures that differ in this word alone. Training pictures are hidden
    and drawn again first, which says how good the new ones are; where most would be wrong, no picture is added. They
    join the training part: a model learns from them, while judges and copies are told of real pictures alone.
    """

    first_in_lists: ClassVar[str | None] = "dataset"

    dataset: Annotated[File, InputFile("dataset")]
    """Dataset file."""
    output: Annotated[FilePath | None, Option("-o", metavar="PATH")] = None
    """Where to write; NAME-filled.h5 beside the dataset by default."""
    _: KW_ONLY
    number: Annotated[Count | None, Option("--number", "-n")] = None
    """Pictures to add at most; as many as there are training pictures by default."""
    least: Annotated[float, Range(0, 100)] = 50.0
    """Percentage of hidden pictures that must be nearest to a real picture of their words, for a word to be changed."""
    split: Annotated[str | None, Option(metavar="NAME")] = None
    """Split scheme whose training part is filled; the default one by default."""
    overwrite: bool = False
    """Replace the file that is there."""
    seed: Seed = 0
    """All choices come from this number."""

    def run(self, command: str = "") -> "Dataset":
        """Write the dataset and open it.

        Returns:
            The dataset, open.

        Raises:
            UsageError: The dataset has no pictures with attributes, or something would be lost.
        """
        from mmgen.artifacts import Dataset

        return Dataset.open(self.write_file(command))

    def write_file(self, command: str = "") -> Path:
        """Write the dataset and return its path, without opening it."""
        from mmgen.artifacts import check_nothing_lost, check_output
        from mmgen.generation.fill_gaps import fill_gaps

        source = path_of(self.dataset)
        check_output(self.file, "dataset", source)
        check_nothing_lost(self.file, self.overwrite)
        command = command or self.command_line(output=self.file)
        filled = fill_gaps(source, self.file, self.split, self.number, self.least, self.seed, command)
        for line in self.watch.follow(filled):
            self.watch.say(line)
        return self.file

    @cached_property
    def file(self) -> Path:
        """The file that is written."""
        source = path_of(self.dataset)
        return path_of(self.output) if self.output else source.with_name(f"{source.stem}-filled.h5")
