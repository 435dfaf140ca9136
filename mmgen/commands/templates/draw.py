"""Draws pictures from words with numpy, pillow and onnxruntime: python draw.py "shape=heart" -n 16 -o hearts.png"""

import argparse
import hashlib
import io
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from PIL import Image

FOLDER = Path(__file__).parent
PIECE = 64  # pictures at once


MOST_GUIDANCE = 100


def open_files() -> tuple[onnxruntime.InferenceSession, onnxruntime.InferenceSession, dict[str, Any]]:
    """Return posterior and decoder with what words.json holds, if they were written together."""
    try:
        posterior, decoder = (
            onnxruntime.InferenceSession(FOLDER / f"{name}.onnx") for name in ("posterior", "decoder")
        )
        for name, digest in json.loads(posterior.get_modelmeta().custom_metadata_map["written with"]).items():
            if hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() != digest:
                sys.exit(
                    f"draw.py: {name} is not the one that posterior.onnx was written with; take both from one export"
                )
        return posterior, decoder, json.loads((FOLDER / "words.json").read_bytes())
    except Exception as error:  # missing or damaged, for which onnxruntime has classes of its own
        sys.exit(f"draw.py: cannot read the files beside it ({str(error).splitlines()[0]}); export the model again")


POSTERIOR, DECODER, KNOWN = open_files()
VALUES = KNOWN["attributes"]
INPUTS = {each.name: each.shape for each in POSTERIOR.get_inputs()}


def read(text: str) -> np.ndarray:
    """Convert "shape=heart red" to codes [A], -1 where open."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        sys.exit(f"draw.py: cannot read {text!r} ({error}); put what holds a quotation mark into other ones")
    codes = np.full(len(VALUES), -1)
    for word in words:
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
    if not np.isfinite(images).all():
        sys.exit("draw.py: a picture has numbers that are not finite; use less --guidance, or train the model longer")
    return np.rint(images.clip(0, 1) * 255).astype(np.uint8).transpose(0, 2, 3, 1)


def number(least: float, most: float, kind: type = int) -> Callable[[str], float]:
    """Return a reader of numbers from ``least`` to ``most`` for argparse."""

    def parse(text: str) -> float:
        value = kind(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"got {text}, expected {least} to {most}")
        return value

    parse.__name__ = "whole number" if kind is int else "number"
    return parse


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw pictures from words.")
    parser.add_argument(
        "words", nargs="?", default="", help='such as "shape=heart colour=red"; what is left out is open'
    )
    height, width = DECODER.get_outputs()[0].shape[-2:]
    most = 8 * (Image.MAX_IMAGE_PIXELS // (8 * width * height))  # larger sheets Pillow does not open again
    parser.add_argument("-n", "--number", type=number(1, most), default=16)
    parser.add_argument("-o", "--output", type=Path, default="pictures.png")
    parser.add_argument("--seed", type=number(0, 2**63), default=0)
    if "guidance" in INPUTS:
        parser.add_argument(
            "--guidance", type=number(0, MOST_GUIDANCE, float), default=0, help="weight of classifier-free guidance"
        )
    asked = parser.parse_args()
    kind = Image.registered_extensions().get(asked.output.suffix.lower())
    if kind not in Image.SAVE or not asked.output.parent.is_dir():
        parser.error(f"-o got {asked.output}, expected a picture, such as NAME.png, in a folder that is there")
    random, (rows, shares) = np.random.default_rng(asked.seed), complete(read(asked.words))
    words = rows[random.choice(len(rows), asked.number, p=shares)]
    sheet = Image.new("RGB", (width * min(8, asked.number), height * -(-asked.number // 8)), "white")
    for start in range(0, asked.number, PIECE):
        some = words[start : start + PIECE]
        noise = random.standard_normal((len(some), INPUTS["noise"][1]))
        for place, picture in enumerate(draw(some, noise, getattr(asked, "guidance", 0)), start):
            sheet.paste(Image.fromarray(picture.squeeze()), (place % 8 * width, place // 8 * height))
    try:
        sheet.save(whole := io.BytesIO(), kind)
        asked.output.write_bytes(whole.getvalue())
    except (OSError, ValueError) as error:
        sys.exit(f"draw.py: cannot write {asked.output}: {error}; choose another -o, or a smaller -n")


if __name__ == "__main__":
    main()
