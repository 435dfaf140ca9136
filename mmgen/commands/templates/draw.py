"""Draws pictures from words with numpy, pillow and onnxruntime: python draw.py "shape=heart" -n 16 -o hearts.png"""

import argparse
import json
import shlex
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

FOLDER = Path(__file__).parent
KNOWN = json.loads((FOLDER / "words.json").read_text("utf-8"))
VALUES = KNOWN["attributes"]
POSTERIOR, DECODER = (onnxruntime.InferenceSession(FOLDER / name) for name in ("posterior.onnx", "decoder.onnx"))
INPUTS = {each.name: each.shape for each in POSTERIOR.get_inputs()}


def read(text: str) -> np.ndarray:
    """Convert "shape=heart red" to codes [A], -1 where open."""
    codes = np.full(len(VALUES), -1)
    for word in shlex.split(text):
        name, value = word.split("=", 1) if "=" in word else ("", word)
        places = [a for a, each in enumerate(VALUES) if name in ("", each) and value in VALUES[each] and codes[a] < 0]
        if len(places) != 1:
            known = " ".join(f"{each}={'|'.join(values)}" for each, values in VALUES.items())
            sys.exit(f"draw.py: {word!r} is no word, or could be several, or is one too many; expected {known}")
        codes[places[0]] = list(VALUES.values())[places[0]].index(value)
    return codes


def complete(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return training descriptions [N, A], in which ``codes`` [A] replace the words that are given, and shares [N]."""
    rows, given = np.array(KNOWN["descriptions"] or [codes]), codes >= 0
    sizes, odds = np.array([len(values) for values in VALUES.values()]), KNOWN["odds"]
    near = np.where(rows == codes, 1, np.where(rows < 0, (1 + (sizes - 1) * odds) / sizes, odds))
    agree = (rows == codes)[:, given].all(1)
    shares = np.array(KNOWN["counts"] or [1]) * (agree if agree.any() else near[:, given].prod(1))
    return np.where(given, codes, rows), shares / shares.sum()


def draw(words: np.ndarray, noise: np.ndarray, guidance: float = 0) -> np.ndarray:
    """Return pictures uint8 [n, H, W, C] of descriptions [n, A] and standard Gaussian noise [n, N]."""
    given = {"words": words, "noise": noise.astype(np.float32), "guidance": np.full(1, guidance, np.float32)}
    (z,) = POSTERIOR.run(None, {name: given[name] for name in INPUTS})
    (images,) = DECODER.run(None, {"z": z})
    return np.rint(images.clip(0, 1) * 255).astype(np.uint8).transpose(0, 2, 3, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw pictures from words.")
    parser.add_argument(
        "words", nargs="?", default="", help='such as "shape=heart colour=red"; what is left out is open'
    )
    parser.add_argument("-n", "--number", type=int, default=16)
    parser.add_argument("-o", "--output", default="pictures.png")
    parser.add_argument("--seed", type=int, default=0)
    if "guidance" in INPUTS:
        parser.add_argument("--guidance", type=float, default=0, help="weight of classifier-free guidance")
    asked = parser.parse_args()
    if asked.number < 1:
        parser.error(f"-n got {asked.number}, expected at least 1")
    random, (rows, shares) = np.random.default_rng(asked.seed), complete(read(asked.words))
    words = rows[random.choice(len(rows), asked.number, p=shares)]
    pictures = draw(words, random.standard_normal((asked.number, INPUTS["noise"][1])), getattr(asked, "guidance", 0))
    _, height, width, _ = pictures.shape
    sheet = Image.new("RGB", (width * min(8, asked.number), height * -(-asked.number // 8)), "white")
    for place, picture in enumerate(pictures):
        sheet.paste(Image.fromarray(picture.squeeze()), (place % 8 * width, place // 8 * height))
    sheet.save(asked.output)


if __name__ == "__main__":
    main()
