"""Curves as SVG and pictures as PNG, for a page without plotting libraries."""

import base64
import io
import math
import zlib
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray
from PIL import Image

__all__ = ["Curve", "draw_curves", "encode_picture"]

Curve = tuple[Sequence[float], Sequence[float], str]
"""Steps, values and the class of a curve: "thin" for training, "thick" for validation."""

_MOST_POINTS = 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 8, 8, 22
"""Margins of a plot in its own units."""


def draw_curves(curves: Sequence[Curve], last_step: int, title: str, size: tuple[int, int] = (460, 220)) -> str:
    """Draw curves over training steps as an SVG element; its colours are those of the page.

    The axis of values leaves out a steep start, as plots of learning curves do.

    Args:
        curves: The curves.
        last_step: Right end of the axis of steps.
        title: What a screen reader says.
        size: Width and height in units.
    """
    width, height = size
    drawn = [(*_thin_out(np.asarray(steps, float), np.asarray(values, float)), kind) for steps, values, kind in curves]
    low, high = _range_of_values([values for _, values, _ in drawn])
    right = max(float(last_step), 1.0)

    def place(steps: NDArray[np.float64], values: NDArray[np.float64]) -> list[tuple[float, float]]:
        x = _LEFT + (width - _LEFT - _RIGHT) * steps / right
        y = _TOP + (height - _TOP - _BOTTOM) * (high - values) / (high - low)
        return list(zip(x.tolist(), np.clip(y, -height, 3 * height).tolist(), strict=True))

    parts = []
    for tick in _ticks(low, high, 5 if height > 150 else 4):
        y = place(np.zeros(1), np.array([tick]))[0][1]
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{width - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_format(tick)}</text>')
    for tick in _ticks(0.0, right, 3):
        x = place(np.array([tick]), np.array([low]))[0][0]
        anchor = "end" if x > width - 30 else "middle"
        parts.append(f'<text x="{x:.1f}" y="{height - 6}" text-anchor="{anchor}">{_format(tick)}</text>')
    inside = width - _LEFT - _RIGHT + 4, height - _TOP - _BOTTOM + 8
    box = f'<rect x="{_LEFT}" y="{_TOP - 4}" width="{inside[0]}" height="{inside[1]}"/>'
    name = f"clip-{zlib.crc32(title.encode()):08x}"
    lines = []
    for steps, values, kind in drawn:
        points = place(steps, values)
        if len(points) > 1:
            joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            lines.append(f'<polyline class="{kind}" points="{joined}"/>')
        if kind == "thick" and len(points) < 40:
            lines += [f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in points]
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">'
        f'<defs><clipPath id="{name}">{box}</clipPath></defs>{"".join(parts)}'
        f'<g clip-path="url(#{name})">{"".join(lines)}</g></svg>'
    )


def _thin_out(
    steps: NDArray[np.float64], values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a curve of at most 300 finite points, each the mean of neighbours."""
    good = np.isfinite(values)
    steps, values = steps[good], values[good]
    if len(steps) <= _MOST_POINTS:
        return steps, values
    edges = np.linspace(0, len(steps), _MOST_POINTS + 1).astype(int)[:-1]
    counts = np.diff(np.append(edges, len(steps)))
    return np.add.reduceat(steps, edges) / counts, np.add.reduceat(values, edges) / counts


def _range_of_values(curves: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """Return the ends of an axis that shows curves after their steep start."""
    settled = [values[len(values) // 20 :] for values in curves if len(values)]
    if not settled:
        return 0.0, 1.0
    joined = np.concatenate(settled)
    low = min(float(np.percentile(joined, 10)), *(float(values[-1]) for values in settled))
    high = float(joined.max())
    margin = 0.06 * (high - low) or abs(high) / 10 or 1.0
    return low - margin, high + margin


def _ticks(low: float, high: float, count: int) -> list[float]:
    """Return round numbers within a range, about ``count`` of them."""
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((factor * power for factor in (1, 2, 5, 10) if factor * power >= rough), 10 * power)
    first = math.ceil(low / step)
    return [step * number for number in range(first, math.floor(high / step) + 1)]


def _format(value: float) -> str:
    """Format a tick: "12k" for 12,000."""
    if value and abs(value) >= 10_000:
        return f"{value / 1000:g}k"
    return f"{value:.6g}".replace("-", "\N{MINUS SIGN}")


def encode_picture(picture: NDArray[np.floating]) -> str:
    """Return a picture [C, H, W] from 0 to 1, with one channel or three, as a PNG in a ``data:`` address."""
    pixels = np.rint(255 * np.clip(np.nan_to_num(picture), 0, 1)).astype(np.uint8)
    image = Image.fromarray(pixels[0]) if len(pixels) == 1 else Image.fromarray(np.moveaxis(pixels[:3], 0, -1).copy())
    buffer = io.BytesIO()
    image.save(buffer, format="png")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
