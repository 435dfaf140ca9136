"""``mmgen report``: one self-contained page."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from mmgen.commands._base import Completing, Drawing
from mmgen.commands._folders import expand_folders, find_reported_files
from mmgen.settings.kinds import File, FilePath, InputFile, Option, optional_path, path_of, paths_of

__all__ = ["Report"]


@dataclass(frozen=True)
class Report(Completing, Drawing[Path]):
    """Make one self-contained HTML page: scores beside the papers' numbers, samples, latent maps, curves, lineage.

    Parents, logs and the judge are found through the files' lineage. The page needs no other file and no network.
    """

    first_in_lists: ClassVar[str | None] = ""

    files: Annotated[File | Sequence[File], InputFile("file", folders=find_reported_files), Option(metavar="FILES...")]
    """Checkpoints, aggregates, judges, scores of mmgen eval (.jsonl), logs, or a folder with these, such as that of
    mmgen quickstart or mmgen export."""
    output: Annotated[FilePath | None, Option("-o", metavar="PATH")] = None
    """Where to write; report.html by default."""
    _: KW_ONLY
    title: Annotated[str, Option(metavar="TEXT")] = ""
    """Heading; names the models by default."""
    explore: Annotated[FilePath | None, Option(metavar="PAGE", default="explore.html beside it")] = None
    """The page of mmgen explore that it links to, which need not be there yet."""

    def run(self, command: str = "") -> Path:
        """Write the page and return its path.

        Returns:
            The page.
        """
        from mmgen.artifacts.pages import check_page
        from mmgen.figures.report.make import make_report

        paths = expand_folders(paths_of(self.files), find_reported_files, self.watch)
        output = path_of(self.output or "report.html")
        check_page(output, "report", self.overwrite, *paths)
        work = make_report(
            paths, output, title=self.title, seed=self.seed, device=self.device, guidance=self.guidance,
            complete=self.complete, command=command or self.command_line(output=output),
            explore=optional_path(self.explore),
        )  # fmt: skip
        self.watch.follow(work)
        self.watch.say(f"report: {output.resolve().as_uri()}")
        return output
