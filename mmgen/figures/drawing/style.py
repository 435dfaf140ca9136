"""The common style of figures: colours that colour-blind readers can tell apart, typeface, axes."""

import base64
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import CSS4_COLORS, to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image, ImageFont

from mmgen.core.parsing import strip_controls

INK = "#1a1a1a"
SMALL = 9
"""Points of the smallest type in drawings, which pages show at their own size: 12 pixels."""
DOTS = 160
"""Pixels per inch of drawings."""
MUTED = "#5f6368"
_MOST_LETTERS = 1000  # of a title or label; no page is made for more
OUR_FORMULAS = ("$z_1$", "$z_2$")
RULE = "#d4d7dc"
FAINT = "#f4f5f7"
WRONG = "#c8102e"
"""Colour of frames and words where the classifier disagrees; thickness marks them as well."""

_LEAST_CONTRAST = 1.6  # to white, of a mark without a rim

# Okabe and Ito (2008), "Color Universal Design": told apart with every common form of colour blindness. Their yellow
# and black are left out: one vanishes on white, the other is the colour of text.
_OKABE_ITO = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
# Tol (2021), "Colour Schemes", muted: for up to ten categories.
_TOL_MUTED = (
    "#332288", "#cc6677", "#117733", "#88ccee", "#ddcc77", "#882255", "#44aa99", "#999933", "#aa4499", "#7a7a7a",
)  # fmt: skip


def category_colours(count: int) -> list[str]:
    """Return ``count`` distinct colours #rrggbb: from a palette, or for more than ten evenly from the colour wheel."""
    if count <= len(_OKABE_ITO):
        return list(_OKABE_ITO[:count])
    if count <= len(_TOL_MUTED):
        return list(_TOL_MUTED[:count])
    wheel = matplotlib.colormaps["turbo"]
    return [
        "#{:02x}{:02x}{:02x}".format(*(round(255 * 0.85 * c) for c in wheel(i / (count - 1))[:3])) for i in range(count)
    ]


def value_colours(words: Sequence[str]) -> list[str]:
    """Return a colour #rrggbb for each value of an attribute; if all values name colours ("red"), these."""
    named = [_css_colour(word) for word in words]
    if None in named or len(set(named)) < len(words):
        return category_colours(len(words))
    return [colour for colour in named if colour is not None]


def _css_colour(word: str) -> str | None:
    name = word.rpartition("=")[2].strip("'\" ").lower()
    if re.fullmatch("#([0-9a-f]{3}|[0-9a-f]{6})", name):
        return to_hex(name)
    return str(CSS4_COLORS.get(re.sub("[ _-]", "", name), "")).lower() or None


def outline_colour(colour: str) -> str:
    """Return the colour for the outline of a mark on white: grey for pale marks, else the mark's own colour."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in hex_to_rgb(colour))
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]  # as WCAG 2 has it
    return MUTED if 1.05 / (luminance + 0.05) < _LEAST_CONTRAST else colour


def hex_to_rgb(colour: str) -> tuple[int, int, int]:
    """Convert ``#rrggbb`` to three bytes."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


@lru_cache
def load_font(size: int, bold: bool = False) -> ImageFont.FreeTypeFont:
    """Load DejaVu Sans from matplotlib, so that pictures are the same on every machine."""
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name), size)


def new_figure(width: float, height: float) -> Figure:
    """Make an empty matplotlib figure of ``width`` by ``height`` inches, without pyplot's global state."""
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def style_axes(axes: Axes, title: str = "", x: str = "", y: str = "") -> Axes:
    """Give axes the common style (two spines, small type, title to the left), a title and labels ``x`` and ``y``."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(MUTED)
    axes.tick_params(colors=MUTED, labelsize=SMALL, length=3)
    label: dict[str, Any] = {"fontsize": 10, "color": INK}
    if title:
        axes.set_title(title, loc="left", fontsize=11, color=INK)
    if x:
        axes.set_xlabel(x, **label)
    if y:
        axes.set_ylabel(y, **label)
    return axes


@contextmanager
def default_style() -> Iterator[None]:
    """Draw with matplotlib's own defaults within the context, whatever the user's session has set."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        yield


@contextmanager
def plain_text_labels(figure: Figure) -> Iterator[None]:
    """Make matplotlib show texts of a figure as plain letters within the context, even if they look like formulas.

    Only labels in :data:`OUR_FORMULAS` stay formulas.
    """
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        if text.get_text() not in OUR_FORMULAS:
            text.set_parse_math(False)
            text.set_text(strip_controls(text.get_text()[:_MOST_LETTERS], keep="\n"))
    with default_style(), warnings.catch_warnings():
        matplotlib.rcParams["text.parse_math"] = False
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # a box stands for it
        warnings.filterwarnings("ignore", "constrained_layout not applied", UserWarning)  # names too long for the page
        yield


def render_figure(figure: Figure, dots_per_inch: int = DOTS) -> Image.Image:
    """Render a matplotlib figure to an RGB image."""
    figure.set_dpi(dots_per_inch)
    canvas = FigureCanvasAgg(figure)
    with plain_text_labels(figure):
        canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def data_uri(image: Image.Image, palette: bool = False) -> str:
    """Encode an image as a ``data:`` address holding a PNG.

    Args:
        image: An RGB or RGBA image.
        palette: Whether to reduce it to 256 colours, enough for charts, which takes a third of the bytes and time.
    """
    buffer = io.BytesIO()
    if palette:
        image = image.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    image.save(buffer, format="png")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
