"""Images with title and caption, which a page shows or a file holds."""

from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import ImageOps

from mmgen.artifacts import atomic_path
from mmgen.artifacts.pages import MAKER
from mmgen.core.errors import UsageError
from mmgen.figures.drawing.page import MARGIN, Grid, add_title_and_note
from mmgen.figures.drawing.style import data_uri, plain_text_labels, render_figure

_FRAME_TIME, _LAST_TIME = 350, 2000
"""Milliseconds that a picture of an animation is shown, and the last one."""


def check_ending(path: Path, allow_vector: bool, animated: bool = False) -> None:
    """Raise an error if a file name does not end in .png (for line drawings also .pdf or .svg, for animations .gif).

    Args:
        path: The output file.
        allow_vector: Whether .pdf and .svg are allowed, as for line drawings.
        animated: Whether .gif is allowed.

    Raises:
        UsageError: The file name has another ending.
    """
    endings = [".png", *([".pdf", ".svg"] if allow_vector else []), *([".gif"] if animated else [])]
    if path.suffix.lower() not in endings:
        words = " or ".join([", ".join(endings[:-1]), endings[-1]] if endings[1:] else endings)
        raise UsageError(f"--output got {path}, expected a name ending in {words}")


@dataclass(frozen=True)
class Picture:
    """Image with title and caption, which a page shows or a file holds.

    Attributes:
        title: Title of a few words.
        caption: Explanation: numbers, seeds.
        drawn: The image or drawing.
        note: Explanation shared by all pictures of a section of a page: frames, attribute classifier.
        telling: Whether the caption names its colours, so that a page must not invert them.
        frames: Images of an animation, which a .gif holds; none by default.
    """

    title: str
    caption: str
    drawn: Grid | Figure
    note: str = ""
    telling: bool = False
    frames: tuple[Grid, ...] = ()

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
            return round(self.drawn.canvas.shape[1] / 2)
        return round(96 * self.drawn.get_figwidth())

    def __repr__(self) -> str:
        return f"<picture {self.title!r}: {self.full_caption}>"

    def _repr_html_(self) -> str:
        image = f'<img alt="{escape(self.title)}" width="{self.width}" src="{self.uri}">'
        return f"<figure>{image}<figcaption>{escape(self.full_caption)}</figcaption></figure>"

    def save(self, path: Path) -> None:
        """Write the picture to a file: .png with title and caption, a bare line drawing as .pdf or .svg, or an
        animation as .gif.

        Raises:
            UsageError: The file name has another ending, or one of line drawings for a picture of images.
        """
        check_ending(path, allow_vector=isinstance(self.drawn, Figure), animated=bool(self.frames))
        ending = path.suffix.lower()
        if ending == ".gif":
            first, *others = (add_title_and_note(frame, self.title, "").image for frame in self.frames)
            times = [_FRAME_TIME] * len(others) + [_LAST_TIME]
            comment = b"Software\0" + MAKER.encode("ascii")
            with atomic_path(path) as temporary:
                first.save(
                    temporary,
                    format="gif",
                    save_all=True,
                    append_images=others,
                    duration=times,
                    loop=0,
                    comment=comment,
                )
            return
        if ending == ".png":
            grid = self.drawn
            if isinstance(grid, Figure):
                grid = Grid(np.asarray(ImageOps.expand(render_figure(grid), MARGIN, "white")))
            add_title_and_note(grid, self.title, self.full_caption).save(path)
            return
        assert isinstance(self.drawn, Figure)
        with atomic_path(path) as temporary, plain_text_labels(self.drawn):
            self.drawn.savefig(temporary, format=ending[1:], facecolor="white", metadata={"Creator": MAKER})
