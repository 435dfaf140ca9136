"""How fast and how lean: ``mmgen make-data folder`` on generated pictures.

    python benchmarks/own_pictures.py [--number N] [--side PIXELS] [--workers N] [--format png|jpeg]

Draws the pictures first. Prints seconds, pictures per second (each is read and decoded once), the
largest sum of resident memory of all processes, the file's size and its content id. Linux only.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from make_data import family, resident_mib
from PIL import Image

from mmgen.artifacts import read_header

COLOURS = {"red": (220, 40, 40), "green": (40, 170, 60), "blue": (50, 80, 220)}


def draw(folder: Path, number: int, side: int, ending: str) -> None:
    """Discs of some colour, noisy, with a table of two attributes and a caption."""
    random = np.random.default_rng(0)
    rows, columns = np.mgrid[:side, :side]
    with (folder / "metadata.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["file_name", "colour", "size", "text"])
        for n in range(number):
            colour, size = list(COLOURS)[random.integers(3)], ("small", "large")[random.integers(2)]
            centre = random.uniform(0.3, 0.7, 2) * side
            inside = (rows - centre[0]) ** 2 + (columns - centre[1]) ** 2 < (side * (0.1, 0.25)[size == "large"]) ** 2
            pixels = np.where(inside[..., None], COLOURS[colour], 240) + random.integers(-12, 13, (side, side, 1))
            name = f"{n:06d}.{ending}"
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / name)
            table.writerow([name, colour if random.random() > 0.1 else "", size, f"A {size} {colour} disc."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=20_000)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--format", choices=["png", "jpeg"], default="png")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pictures, path = Path(folder) / "pictures", Path(folder) / "own.h5"
        pictures.mkdir()
        draw(pictures, options.number, options.side, options.format)
        arguments = [pictures, "--workers", options.workers, "-o", path]
        command = [sys.executable, "-c", "from mmgen.cli._main import main; main()", "make-data", "folder"]
        start = time.perf_counter()
        process = subprocess.Popen([*command, *map(str, arguments)])
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, sum(resident_mib(pid) for pid in family(process.pid)))
            time.sleep(0.1)
        seconds = time.perf_counter() - start
        assert process.returncode == 0
        print(f"{seconds:.1f} s, {options.number / seconds:,.0f} pictures/s, at most {peak:,.0f} MiB")
        print(f"{path.stat().st_size / 1e6:.1f} MB, {read_header(path).content_id}")


if __name__ == "__main__":
    main()
