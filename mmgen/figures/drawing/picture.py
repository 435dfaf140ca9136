"""One picture of a page or alone: an image with its title and how it was made."""

from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

from mmgen.artifacts import atomic_path
from mmgen.artifacts.pages import MAKER
from mmgen.core.errors import UsageError
from mmgen.figures.drawing.page import Grid, annotated, framed
from mmgen.figures.drawing.style import data_uri, figure_image, plain_words

__all__ = ["Picture", "check_ending"]


def check_ending(path: Path, lines: bool) -> None:
    """Refuse a file name that does not end in .png, or .pdf and .svg for line drawings.

    Args:
        path: Where it is to go.
        lines: Whether the picture is drawn in lines, which .pdf and .svg hold too.

    Raises:
        UsageError: It has another ending.
    """
    if path.suffix.lower() not in ((".png", ".pdf", ".svg") if lines else (".png",)):
        raise UsageError(f"--output got {path}, expected a name ending in .png{', .pdf or .svg' if lines else ''}")


@dataclass(frozen=True)
class Picture:
    """An image on a page.

    Attributes:
        title: What it shows, in a few words.
        caption: How it was made: numbers, seeds.
        drawn: The image itself.
        note: What is true of all pictures of its section, which a page says once: what frames mean, who judged.
        telling: Whether its colours are named in words, so that no page may turn them into others.
    """

    title: str
    caption: str
    drawn: Grid | Figure
    note: str = ""
    telling: bool = False

    @property
    def ground(self) -> str:
        """Return the background: "lines" on white, which a dark page may invert, or "paper" with images."""
        turned = isinstance(self.drawn, Figure) and not any(axes.images for axes in self.drawn.axes)
        return "lines" if turned and not self.telling else "paper"

    @property
    def words(self) -> str:
        """Return the caption, with a remark if images are shown on another background."""
        remark = self.drawn.remark if isinstance(self.drawn, Grid) else ""
        return f"{self.caption} {remark}".strip()

    @property
    def full_caption(self) -> str:
        """Return the caption with all explanations, for a picture that stands alone."""
        return f"{self.words} {self.note}".strip()

    @cached_property
    def uri(self) -> str:
        """Return the PNG as a ``data:`` address."""
        if isinstance(self.drawn, Grid):
            return data_uri(self.drawn.image)
        return data_uri(figure_image(self.drawn), palette=True)

    @property
    def width(self) -> int:
        """Return the width on the page in CSS pixels; the PNG has more, for sharp screens."""
        if isinstance(self.drawn, Grid):
            return round(self.drawn.image.width / 2)
        return round(96 * self.drawn.get_figwidth())

    def _repr_html_(self) -> str:
        image = f'<img alt="{escape(self.title)}" width="{self.width}" src="{self.uri}">'
        return f"<figure>{image}<figcaption>{escape(self.full_caption)}</figcaption></figure>"

    def save(self, path: Path) -> None:
        """Write the picture: .png with title and caption, or bare lines as .pdf and .svg.

        Raises:
            UsageError: Another ending, or lines asked of a picture of images.
        """
        check_ending(path, lines=isinstance(self.drawn, Figure))
        ending = path.suffix.lower()
        if ending == ".png":
            grid = self.drawn if isinstance(self.drawn, Grid) else framed(figure_image(self.drawn))
            annotated(grid, self.title, self.full_caption).save(path)
            return
        assert isinstance(self.drawn, Figure)
        with atomic_path(path) as temporary, plain_words(self.drawn):
            self.drawn.savefig(temporary, format=ending[1:], facecolor="white", metadata={"Creator": MAKER})
