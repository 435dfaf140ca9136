"""``mmgen explore``: one page to play with."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from mmgen.commands._base import Drawing
from mmgen.commands._folders import expand_folders, find_explored_files
from mmgen.core.progress import Work
from mmgen.settings.kinds import Count, File, FilePath, InputFile, Option, Range, optional_path, path_of, paths_of

__all__ = ["Explore"]


@dataclass(frozen=True)
class Explore(Drawing[Path]):
    """Make one HTML page to play with: choose words, move z, look around in the latent space.

    It shows pictures of every posterior for any words, chosen or excluded, a slider from one word to another, sliders
    for the dimensions of z, a map of encodings with the picture under the pointer, and paper to draw on. Where decoder
    and flow are small, the page draws pictures itself; else it has pictures of words that are drawn beforehand, and
    neither sliders nor a map. It needs no server and no network: open it from a disk, send it, or put it on a web site.
    """

    first_in_lists: ClassVar[str | None] = ""

    files: Annotated[File | Sequence[File], InputFile("file", folders=find_explored_files), Option(metavar="FILES...")]
    """A model and its fitted posteriors, or a judge; or a folder with these, such as that of mmgen quickstart."""
    output: Annotated[FilePath | None, Option("-o", metavar="PATH")] = None
    """Where to write; explore.html by default."""
    _: KW_ONLY
    title: Annotated[str, Option(metavar="TEXT")] = ""
    """Heading; names the data by default."""
    number: Annotated[int, Range(1, 100), Option("-n")] = 6
    """Pictures of each description and posterior."""
    dimensions: Annotated[Count | None, Option(default="16 at most")] = None
    """Dimensions of z to traverse, the most informative first."""
    max_size: Annotated[float, Range(0.1, 100), Option(metavar="MB")] = 3.0
    """Megabytes of the page at most."""
    report: Annotated[FilePath | None, Option(metavar="PAGE", default="report.html beside it")] = None
    """The page of mmgen report that it links to, which need not be there yet."""

    @staticmethod
    def make_page_of_words(paths: Sequence[Path], out: Path, seed: int) -> Work[Path]:
        """Return the work that writes a page to draw from words alone, which an export holds."""
        from mmgen.contrib.explore.make import make_explorer

        return make_explorer(paths, out, words_only=True, seed=seed)

    def run(self, command: str = "") -> Path:
        """Write the page and return its path.

        Returns:
            The page.
        """
        from mmgen.artifacts.pages import check_page
        from mmgen.contrib.explore.make import Limits, make_explorer

        named, output = paths_of(self.files), path_of(self.output or "explore.html")
        paths = expand_folders(named, find_explored_files, self.watch)
        if paths != named:
            self.watch.say(f"explore {', '.join(path.name for path in paths if path.suffix != '.jsonl')}")
        check_page(output, "explore", self.overwrite, *paths)
        limits = Limits(self.number, self.dimensions, int(self.max_size * 1e6))
        work = make_explorer(
            paths, output, title=self.title, limits=limits, guidance=self.guidance, seed=self.seed, device=self.device,
            command=command or self.command_line(output=output), report=optional_path(self.report),
        )  # fmt: skip
        self.watch.follow(work)
        self.watch.say(f"explore: {output}, {output.stat().st_size / 1e6:.1f} MB; open it in any browser")
        return output
