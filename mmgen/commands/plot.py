"""``mmgen plot``: one figure by name."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mmgen.commands._base import Completing, Drawing
from mmgen.settings.kinds import Count, File, FilePath, InputFile, MemberOf, Option, Range, optional_path, paths_of

if TYPE_CHECKING:
    from mmgen.figures.plots import Picture

__all__ = ["Plot"]


@dataclass(frozen=True)
class Plot(Completing, Drawing["Picture"]):
    """Draw one figure of a paper from your own files.

    Parents and the judge are found through the files' lineage. Writes .png; drawings of lines also .pdf and .svg, steps
    of drawing also .gif.
    """

    first_in_lists: ClassVar[str | None] = "figure"

    name: Annotated[str, MemberOf("mmgen.figures.plots")]
    """The figure: {mmgen.figures.plots}."""
    files: Annotated[File | Sequence[File], InputFile("file"), Option(metavar="FILES...")]
    """The model and its fitted posteriors, or several models."""
    output: Annotated[FilePath | None, Option("-o", metavar="PATH")] = None
    """Where to write; the command writes NAME.png by default."""
    _: KW_ONLY
    given: Annotated[str | Sequence[str], Option(metavar="WORDS")] = ()
    """A description to draw, such as "large red cube" or "digit=3"; repeatable. By default several."""
    number: Annotated[Count | None, Option("-n")] = None
    """How many examples or descriptions to show."""
    sources: Annotated[Sequence[str], Option("--from", metavar="NAME")] = ()
    """For transformations: the kind of picture to start from, such as edges, or several together, edges+mask;
    repeatable."""
    targets: Annotated[Sequence[str], Option("--to", metavar="NAME")] = ()
    """For transformations: the kind of picture to draw, such as image; repeatable."""
    metrics: Annotated[Sequence[str], Option("--metric", "-m"), MemberOf("mmgen.metrics")] = ()
    """For trade-off: precision, for precision over recall; or two metrics, the upward one first, correctness over
    coverage by default. For disentanglement: the upward one, factor-score by default."""
    rows: Annotated[Sequence[Annotated[int, Range(0, 2**63 - 1)]], Option("--dataset-row")] = ()
    """For traversal, interpolation and analogies: a row of the dataset to start from; repeatable, for interpolation in
    pairs. By default test examples at random."""
    by: Annotated[str, Option(metavar="NAME")] = ""
    """For embedding: the attribute or factor that colours mean. For analogies: the one that columns change."""
    straight: bool = False
    """For interpolation: straight from one z to another instead of by the arc."""

    def run(self, command: str = "") -> "Picture":
        """Draw the figure, write it if there is an output, and return it.

        Returns:
            A picture that a notebook shows and that ``save`` writes.
        """
        from mmgen.artifacts.pages import check_page
        from mmgen.figures import plots
        from mmgen.figures.plots import draw_plot

        paths, output = paths_of(self.files), optional_path(self.output)
        words = [self.given] if isinstance(self.given, str) else self.given
        if output is not None:
            check_page(output, "picture", self.overwrite, *paths)
            plots.get(self.name).check_output(output)
        further: dict[str, Any] = {
            name: getattr(self, name)
            for name in (
                "number", "sources", "targets", "metrics", "guidance", "rows", "by", "straight", "device", "seed",
                "complete",
            )
        }  # fmt: skip
        picture, notices = draw_plot(self.name, paths, descriptions=words, **further)
        for notice in notices:
            self.watch.say(notice)
        self.watch.say(picture.full_caption)
        if output is not None:
            picture.save(output)
        return picture
