"""``mmgen show``: the contents of a file, and the files that it was made from."""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

from mmgen.commands._base import Stage
from mmgen.core.errors import UsageError
from mmgen.settings.kinds import Count, File, FilePath, InputFile, Option, Seed, path_of

__all__ = ["Show"]


@dataclass(frozen=True)
class Show(Stage[dict[str, Any]]):
    """Show an artifact, its lineage, settings and facts, and with -o sheet.png its images.

    The lineage is a tree of the file's parents. Each is compared with its content id (verified), only found if a
    comparison would take long, or marked as damaged or missing.
    """

    file: Annotated[File, InputFile("file")]
    """File that mmgen made."""
    output: Annotated[FilePath | None, Option("-o", metavar="PATH")] = None
    """Where to write a contact sheet (.png); without it none is drawn."""
    _: KW_ONLY
    number: Annotated[Count | None, Option("-n", default="32")] = None
    """Images on the contact sheet."""
    given: Annotated[str | None, Option(metavar="WORDS")] = None
    """Of a dataset, images of this description, such as "Bald=yes Male=no"; of captions, those with these words."""
    overwrite: bool = False
    """Replace the file that is there, even one that mmgen did not make."""
    seed: Annotated[Seed | None, Option(default="0")] = None
    """Which images are on the contact sheet."""

    def run(self, command: str = "") -> dict[str, Any]:
        """Return the description of the file, and write a contact sheet if there is an output.

        Returns:
            Kind, settings, facts, contents and parents, as ``mmgen show --json`` prints them.

        Raises:
            UsageError: An option is about a contact sheet, and none is drawn.
        """
        from mmgen.artifacts.contents import describe_file
        from mmgen.artifacts.pages import check_page

        path = path_of(self.file)
        options = {"--number": self.number, "--given": self.given, "--seed": self.seed}
        options |= {"--overwrite": self.overwrite or None}
        if self.output is not None:
            from mmgen.figures.drawing.picture import check_ending

            check_page(path_of(self.output), "picture", self.overwrite, path)
            check_ending(path_of(self.output), allow_vector=False)
        elif given := [name for name, value in options.items() if value is not None]:
            raise UsageError(f"{' and '.join(given)} is only for contact sheets; name one with -o sheet.png")
        described = describe_file(path)
        if self.output is not None:
            from mmgen.figures.report.show import draw_contact_sheet  # draws, which needs everything

            draw_contact_sheet(path, self.number or 32, self.seed or 0, self.given).save(path_of(self.output))
        return described
