"""Images with title and caption, which a page shows or a file holds."""

from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

from mmgen.artifacts import atomic_path
from mmgen.artifacts.pages import MAKER
from mmgen.core.errors import UsageError
from mmgen.figures.drawing.page import Grid, add_margins, add_title_and_note
from mmgen.figures.drawing.style import data_uri, plain_text_labels, render_figure

__all__ = ["Picture", "check_ending"]


def check_ending(path: Path, allow_vector: bool) -> None:
    """Raise an error if a file name does not end in .png (for line drawings also .pdf or .svg).

    Args:
        path: The output file.
        allow_vector: Whether .pdf and .svg are allowed, as for line drawings.

    Raises:
        UsageError: The file name has another ending.
    """
    if path.suffix.lower() not in ((".png", ".pdf", ".svg") if allow_vector else (".png",)):
        raise UsageError(
            f"--output got {path}, expected a name ending in .png{', .pdf or .svg' if allow_vector else ''}"
        )


@dataclass(frozen=True)
class Picture:
    """Image with title and caption, which a page shows or a file holds.

    Attributes:
        title: Title of a few words.
        caption: Explanation: numbers, seeds.
        drawn: The image or drawing.
        note: Explanation shared by all pictures of a section of a page: frames, attribute classifier.
        telling: Whether the caption names its colours, so that a page must not invert them.
    """

    title: str
    caption: str
    drawn: Grid | Figure
    note: str = ""
    telling: bool = False

    @property
    def ground(self) -> str:
        """Kind of background: "lines" for a drawing on white, which a dark page may invert, "paper" for images."""
        turned = isinstance(self.drawn, Figure) and not any(axes.images for axes in self.drawn.axes)
        return "lines" if turned and not self.telling else "paper"

    @property
    def words(self) -> str:
        """Caption of the picture, with a remark if dark images were lightened."""
        remark = self.drawn.remark if isinstance(self.drawn, Grid) else ""
        return f"{self.caption} {remark}".strip()

    @property
    def full_caption(self) -> str:
        """Caption with all explanations, for a picture outside a page."""
        return f"{self.words} {self.note}".strip()

    @cached_property
    def uri(self) -> str:
        """The image as a PNG in a ``data:`` address, for HTML."""
        if isinstance(self.drawn, Grid):
            return data_uri(self.drawn.image)
        return data_uri(render_figure(self.drawn), palette=True)

    @property
    def width(self) -> int:
        """Width of the picture on a page, in CSS pixels; the PNG has more pixels, for sharp screens."""
        if isinstance(self.drawn, Grid):
            return round(self.drawn.image.width / 2)
        return round(96 * self.drawn.get_figwidth())

    def _repr_html_(self) -> str:
        image = f'<img alt="{escape(self.title)}" width="{self.width}" src="{self.uri}">'
        return f"<figure>{image}<figcaption>{escape(self.full_caption)}</figcaption></figure>"

    def save(self, path: Path) -> None:
        """Write the picture to a file: .png with title and caption, or a bare line drawing as .pdf or .svg.

        Raises:
            UsageError: The file name has another ending, or one of line drawings for a picture of images.
        """
        check_ending(path, allow_vector=isinstance(self.drawn, Figure))
        ending = path.suffix.lower()
        if ending == ".png":
            grid = self.drawn if isinstance(self.drawn, Grid) else add_margins(render_figure(self.drawn))
            add_title_and_note(grid, self.title, self.full_caption).save(path)
            return
        assert isinstance(self.drawn, Figure)
        with atomic_path(path) as temporary, plain_text_labels(self.drawn):
            self.drawn.savefig(temporary, format=ending[1:], facecolor="white", metadata={"Creator": MAKER})
