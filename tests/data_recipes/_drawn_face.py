"""Draws a cartoon of a face whose eyes, nose and mouth are where one says; dlib takes it for a face."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

WIDTH, HEIGHT = 178, 218
HAIR = {
    "Black_Hair": (28, 24, 24),
    "Blond_Hair": (214, 182, 110),
    "Brown_Hair": (96, 62, 36),
    "Gray_Hair": (150, 150, 152),
}

_SCALE = 2  # faces are drawn twice as large, for smooth edges
Colour = tuple[int, int, int]
Spots = Sequence[tuple[float, float]]


def tone(base: Sequence[float] | np.ndarray, factor: float = 1.0) -> Colour:
    r, g, b = np.clip(np.asarray(base, float) * factor, 0, 255).astype(int)
    return int(r), int(g), int(b)


@dataclass
class Pen:
    """Draws in the face's own axes: u to the right, v down, in distances between the eyes, from some origin."""

    canvas: Image.Image
    x: np.ndarray
    y: np.ndarray
    unit: float

    def at(self, origin: np.ndarray, u: float, v: float) -> tuple[float, float]:
        px, py = (origin + self.x * (u * self.unit) + self.y * (v * self.unit)) * _SCALE
        return float(px), float(py)

    def shape(self, origin: np.ndarray, spots: Spots, fill: Colour) -> None:
        ImageDraw.Draw(self.canvas).polygon([self.at(origin, *spot) for spot in spots], fill=fill)

    def oval(
        self, origin: np.ndarray, u: float, v: float, rx: float, ry: float, fill: Colour, power: float = 2
    ) -> None:
        t = np.linspace(0, 2 * np.pi, 72, endpoint=False)
        c, s = np.cos(t), np.sin(t)
        us, vs = np.sign(c) * abs(c) ** (2 / power) * rx, np.sign(s) * abs(s) ** (2 / power) * ry
        self.shape(origin, [(u + a, v + b) for a, b in zip(us, vs, strict=True)], fill)

    def curve(self, origin: np.ndarray, spots: Spots, fill: Colour, width: float) -> None:
        line, thick = [self.at(origin, *spot) for spot in spots], max(1, round(width * self.unit * _SCALE))
        ImageDraw.Draw(self.canvas).line(line, fill=fill, width=thick, joint="curve")

    def ring(self, origin: np.ndarray, box: tuple[float, float, float, float], fill: Colour, width: float) -> None:
        corners = (*self.at(origin, *box[:2]), *self.at(origin, *box[2:]))
        ImageDraw.Draw(self.canvas).ellipse(corners, outline=fill, width=round(width * self.unit * _SCALE))


def draw_face(points: np.ndarray, has: dict[str, bool], skin: np.ndarray, random: np.random.Generator) -> Image.Image:
    """A picture of 178 x 218.

    Args:
        points: Eyes, nose tip and mouth corners [5, 2] in pixels.
        has: Attributes.
        skin: Its colour [3].
        random: For ground, clothes, eyes, light and grain.
    """
    left, right, nose, mouth_left, mouth_right = points
    eyes, across = (left + right) / 2, right - left
    unit = float(np.linalg.norm(across))
    ground = tone(random.integers(60, 230, 3))
    canvas = Image.new("RGB", (WIDTH * _SCALE, HEIGHT * _SCALE), ground)
    pen = Pen(canvas, across / unit, np.array([-across[1], across[0]]) / unit, unit)
    hair = np.array(next((colour for name, colour in HAIR.items() if has[name]), skin * 0.9), float)
    _head(pen, eyes, has, skin, hair, random)
    _eyes(pen, (left, right), has, skin, hair, random)
    _nose(pen, nose, eyes, skin)
    _mouth(pen, mouth_left, mouth_right, has, skin, hair)
    if has["Eyeglasses"]:
        for eye in (left, right):
            pen.ring(eye, (-0.40, -0.27, 0.40, 0.31), (20, 20, 24), 0.055)
        pen.curve(eyes, [(-0.12, -0.02), (0.12, -0.02)], (20, 20, 24), 0.06)
    soft = canvas.filter(ImageFilter.GaussianBlur(1.6))
    pixels = np.asarray(soft.resize((WIDTH, HEIGHT), Image.Resampling.BOX), float)
    light = 1 + 0.12 * random.choice([-1, 1]) * (np.arange(WIDTH) - WIDTH / 2) / WIDTH
    pixels = pixels * light[:, None] + random.normal(0, 2.5, pixels.shape[:2])[..., None]
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def _head(
    pen: Pen, eyes: np.ndarray, has: dict[str, bool], skin: np.ndarray, hair: np.ndarray, random: np.random.Generator
) -> None:
    if not has["Bald"]:
        pen.oval(eyes, 0, -0.10, 1.36, 1.62, tone(hair, 0.8))
    for side in (-1, 1) if not has["Male"] and not has["Bald"] else ():
        pen.oval(eyes, side * 1.08, 1.1, 0.42, 1.7, tone(hair, 0.8))
        for k in range(5 if has["Wavy_Hair"] else 0):
            pen.oval(eyes, side * (1.30 + 0.12 * (k % 2)), -0.2 + 0.55 * k, 0.30, 0.36, tone(hair, 0.85))
    pen.oval(eyes, 0, 2.1, 0.62, 0.9, tone(skin, 0.72))
    pen.oval(eyes, 0, 3.35, 2.0, 0.95, tone(random.integers(20, 220, 3)))
    pen.oval(eyes, 0, 0.42, 1.17, 1.52, tone(skin, 0.88), 2.2)
    pen.oval(eyes, 0, 0.40, 1.08, 1.46, tone(skin), 2.2)
    cheek = tone(skin * [1.0, 0.84, 0.82]) if has["Heavy_Makeup"] else tone(skin, 0.97)
    for side in (-1, 1):
        pen.oval(eyes, side * 1.17, 0.25, 0.12, 0.30, tone(skin, 0.85))
        pen.oval(eyes, side * 0.62, 0.72, 0.24, 0.20, cheek)
    if not has["Bald"]:
        brim = -0.62 if has["Bangs"] else -0.86
        crown = [(1.2, 0.05), (1.15, -1.2), (0.75, -1.55), (0, -1.7), (-0.75, -1.55), (-1.15, -1.2)]
        pen.shape(eyes, [(-1.2, 0.05), (-1.0, brim), (1.0, brim), *crown], tone(hair))
        if not has["Bangs"]:
            pen.oval(eyes, 0, -0.55, 0.98, 0.52, tone(skin), 2.4)
            pen.oval(eyes, 0, -0.3, 1.05, 0.4, tone(skin), 3)
    if has["Wearing_Hat"]:
        hat = random.integers(20, 200, 3)
        pen.oval(eyes, 0, -1.15, 1.42, 0.75, tone(hat), 3)
        pen.oval(eyes, 0, -0.72, 1.62, 0.16, tone(hat, 0.5), 3)


def _eyes(
    pen: Pen,
    eyes: tuple[np.ndarray, np.ndarray],
    has: dict[str, bool],
    skin: np.ndarray,
    hair: np.ndarray,
    random: np.random.Generator,
) -> None:
    brow = tone(np.minimum(skin * 0.45 if has["Bald"] else hair * 0.6, skin * 0.6))
    iris = random.choice(np.array([[70, 48, 30], [60, 90, 130], [70, 100, 70]]))
    for eye, side in zip(eyes, (-1, 1), strict=True):
        pen.oval(eye, 0, -0.01, 0.36, 0.20, tone(skin, 0.90))
        white = [
            (-0.29, 0.03),
            (-0.14, -0.10),
            (0.02, -0.125),
            (0.16, -0.09),
            (0.29, 0.02),
            (0.14, 0.09),
            (-0.12, 0.10),
        ]
        pen.shape(eye, white, (240, 238, 235))
        pen.oval(eye, 0, -0.01, 0.105, 0.105, tone(iris))
        pen.oval(eye, 0, -0.01, 0.05, 0.05, (10, 10, 10))
        pen.oval(eye, -0.03, -0.04, 0.018, 0.018, (250, 250, 250))
        lash = [(-0.30, 0.03), (-0.14, -0.105), (0.02, -0.135), (0.16, -0.10), (0.30, 0.02)]
        pen.curve(eye, lash, (35, 22, 20), 0.05 if has["Heavy_Makeup"] else 0.032)
        pen.curve(eye, [(-0.26, 0.05), (-0.12, 0.105), (0.14, 0.095), (0.28, 0.04)], tone(skin, 0.62), 0.02)
        pen.curve(eye, [(-0.27, -0.17), (0, -0.22), (0.26, -0.16)], tone(skin, 0.74), 0.02)
        arch = [(-0.36 * side, -0.31), (-0.1 * side, -0.41), (0.2 * side, -0.41), (0.40 * side, -0.30)]
        pen.curve(eye, arch, brow, 0.12 if has["Bushy_Eyebrows"] else 0.07)


def _nose(pen: Pen, nose: np.ndarray, eyes: np.ndarray, skin: np.ndarray) -> None:
    down = float((nose - eyes) @ pen.y / pen.unit)
    for side in (-1, 1):
        bridge = [(side * 0.10, 0.05), (side * 0.13, down - 0.22), (side * 0.20, down + 0.02)]
        pen.curve(eyes, bridge, tone(skin, 0.85), 0.05)
    pen.oval(nose, 0, -0.35, 0.05, 0.34, tone(skin, 1.08))
    pen.oval(nose, 0, 0.0, 0.13, 0.11, tone(skin, 1.08))
    for side in (-1, 1):
        pen.oval(nose, side * 0.17, 0.07, 0.08, 0.08, tone(skin, 0.86))
        pen.oval(nose, side * 0.085, 0.135, 0.055, 0.03, tone(skin, 0.42))
    below = [(-0.21, 0.12), (-0.09, 0.17), (0, 0.19), (0.09, 0.17), (0.21, 0.12)]
    pen.curve(nose, below, tone(skin, 0.6), 0.03)


def _mouth(
    pen: Pen, left: np.ndarray, right: np.ndarray, has: dict[str, bool], skin: np.ndarray, hair: np.ndarray
) -> None:
    mouth, wide = (left + right) / 2, float(np.linalg.norm(right - left) / pen.unit / 2)
    lips = np.array([186, 40, 60]) if has["Heavy_Makeup"] else skin * [0.82, 0.56, 0.56]
    smile, gape = 0.10 * has["Smiling"], 0.10 * has["Mouth_Slightly_Open"]
    low = smile + gape
    pen.curve(mouth, [(-wide - 0.02, 0), (0, smile), (wide + 0.02, 0)], tone(skin, 0.7), 0.05)
    upper = [(-wide, 0), (-0.12, -0.12 + smile), (0, -0.09 + smile), (0.12, -0.12 + smile), (wide, 0)]
    pen.shape(mouth, [*upper, (0.22, 0.15 + low), (0, 0.19 + low), (-0.22, 0.15 + low)], tone(lips))
    if gape:
        inner, teeth = wide * 0.82, wide * 0.6
        pen.shape(mouth, [(-inner, 0.02), (0, smile - 0.01), (inner, 0.02), (0, 0.05 + low)], (60, 16, 20))
        row = [(-teeth, 0.02 + smile * 0.4), (0, smile), (teeth, 0.02 + smile * 0.4), (0, 0.06 + smile)]
        pen.shape(mouth, row, (240, 238, 232))
    else:
        parting = [(-wide, 0), (-0.14, 0.03 + smile), (0, 0.02 + smile), (0.14, 0.03 + smile), (wide, 0)]
        pen.curve(mouth, parting, tone(lips, 0.5), 0.03)
    pen.curve(mouth, [(-0.18, 0.29 + low), (0, 0.32 + low), (0.18, 0.29 + low)], tone(skin, 0.82), 0.05)
    if has["Mustache"]:
        pen.oval(mouth, 0, -0.2 + smile / 2, wide, 0.075, tone(np.minimum(hair * 0.7, skin * 0.55)), 3)
