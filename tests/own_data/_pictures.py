"""Pictures with a table, drawn for tests: squares of one colour with some noise."""

import csv
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

COLOURS = {"red": (220, 40, 40), "green": (40, 170, 60), "blue": (50, 80, 220)}


def picture(number: int, size: tuple[int, int] = (16, 16), mode: str = "RGB") -> bytes:
    """A PNG unlike those of other numbers."""
    colour = list(COLOURS.values())[number % 3]
    pixels = np.random.default_rng(number).integers(-20, 20, (*size[::-1], 3)) + np.array(colour)
    buffer = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).convert(mode).save(buffer, "PNG")
    return buffer.getvalue()


def rows_of(number: int) -> list[dict[str, Any]]:
    """A table of as many pictures: every tenth colour is missing."""
    names = list(COLOURS)
    return [
        {
            "file_name": f"{n:03d}.png",
            "colour": names[n % 3] if n % 10 else "",
            "size": "large" if n % 2 else "small",
            "text": f"A {'large' if n % 2 else 'small'}, {names[n % 3]} square.",
        }
        for n in range(number)
    ]


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_folder(folder: Path, number: int = 30, table: bool = True) -> Path:
    """Pictures 000.png and so on, and metadata.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    for n in range(number):
        (folder / f"{n:03d}.png").write_bytes(picture(n))
    if table:
        write_csv(folder / "metadata.csv", rows_of(number))
    return folder


def write_classes(folder: Path, number: int = 30, parts: Sequence[str] = ("",)) -> Path:
    """Pictures in folders by colour, in folders by part."""
    for n in range(number):
        place = folder / parts[n % len(parts)] / list(COLOURS)[n % 3]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{n:03d}.png").write_bytes(picture(n))
    return folder


def zipped(folder: Path, path: Path, inside: str = "") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, inside + file.relative_to(folder).as_posix())
    return path
