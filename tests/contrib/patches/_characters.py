"""OMNIGLOT in small: drawings of 105 x 105 in zips laid out as the original ones."""

import io
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image


def drawing(alphabet: int, character: int, drawer: int) -> np.ndarray:
    """Ink bool [105, 105]: a bar whose place tells who drew what."""
    ink = np.zeros((105, 105), bool)
    ink[10 * alphabet + 5 : 10 * alphabet + 12, 20 * character : 20 * character + 30 + drawer] = True
    return ink


def write_zip(path: Path, alphabets: list[str], characters: int = 2, drawers: int = 3) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for a, alphabet in enumerate(alphabets):
            for c in range(1, characters + 1):
                for d in range(1, drawers + 1):
                    data = io.BytesIO()
                    Image.fromarray(~drawing(a, c, d)).convert("1").save(data, "PNG")
                    name = f"{path.stem}/{alphabet}/character{c:02}/{100 * a + c:04}_{d:02}.png"
                    archive.writestr(name, data.getvalue())
    return path


def build_omniglot(folder: Path) -> Path:
    """A folder with both zips: 18 drawings to train on, 6 to test on."""
    write_zip(folder / "images_background.zip", ["Greek", "Latin", "Tagalog"])
    write_zip(folder / "images_evaluation.zip", ["Tibetan"])
    return folder
