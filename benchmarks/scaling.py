"""How cost grows: processor seconds and peak memory of each command on 2,000, 8,000 and 32,000 own pictures.

    benchmarks/scaling.sh [OUTPUT_FOLDER] [NUMBER ...]

Shapes are drawn by their recipe and written as PNG with a table. Every command runs in a process of its own with one
thread; the kernel counts its seconds and its memory. The slope is that of log(seconds), less those of the same command
on the fewest pictures it takes, over log(number), between the two largest numbers: 1 is as the pictures, 2 as their
square. Prints rows as ``results/scaling.toml`` has them.
"""

import csv
import json
import math
import os
import subprocess
import sys
from pathlib import Path

from PIL import Image

from mmgen.artifacts import Dataset

SIDE = 32
FEWEST = 200
"""Pictures of the runs whose seconds are start: imports, networks, pages."""
STEPS = ["--steps", "1"]
COMMANDS = {
    "make-data folder": ["make-data", "folder", "pictures", "--size", str(SIDE), "--workers", "1", "-o", "own.h5"],
    "train, a step": ["train", "own.h5", "--preset", "quickstart/pictures", *STEPS, "-o", "model.safetensors"],
    "train-classifier, a step": ["train-classifier", "own.h5", "--network", "small", *STEPS, "-o", "judge.safetensors"],
    "encode, and a step of a fit": ["fit-aggregate", "model.safetensors", *STEPS, "-o", "fit.safetensors"],
    "a step of a fit, encoded before": [
        "fit-aggregate", "model.safetensors", *STEPS, "--learning-rate", "0.0001", "-o", "again.safetensors",
    ],
    "sample": ["sample", "fit.safetensors", "--given", "shape=heart colour=red", "-n", "64", "-o", "sheet.png"],
    "eval": [
        "eval", "fit.safetensors", "--judge", "judge.safetensors", "--queries", "20", "--draws", "4",
        *("-m", "correctness", "-m", "coverage", "-m", "copies", "-m", "recall", "-m", "kid"), "-o", "scores.jsonl",
    ],
    "explore": ["explore", "model.safetensors", "fit.safetensors", "-o", "explore.html"],
    "report": ["report", "fit.safetensors", "scores.jsonl", "-o", "report.html"],
    "status": ["status", "."],
}  # fmt: skip


def write_pictures(folder: Path, number: int) -> None:
    """Write pictures of shapes as PNG, and what they show as a table."""
    run(
        ["make-data", "shapes", "--number", str(number), "--size", str(SIDE), "--workers", "1", "-o", "shapes.h5"],
        folder,
    )
    (folder / "pictures").mkdir(exist_ok=True)
    with Dataset.open(folder / "shapes.h5") as data, (folder / "pictures/metadata.csv").open("w", newline="") as file:
        words = data.attributes["attributes"]
        table = csv.writer(file)
        table.writerow(["file_name", *words.names])
        for row in range(number):  # one by one: the kernel counts this process's memory as that of its children
            name, only = f"{row:06d}.png", slice(row, row + 1)
            Image.fromarray(data.read_image("image", only)[0].transpose(1, 2, 0)).save(folder / "pictures" / name)
            codes = data.read_attributes("attributes", only)[0]
            table.writerow([name, *(known[code] for known, code in zip(words.values, codes, strict=True))])


def run(arguments: list[str], folder: Path) -> tuple[float, float]:
    """Run a command in a folder; return its processor seconds and its peak memory in MB."""
    command = [sys.executable, "-c", "from mmgen.cli._main import main; main()", *arguments]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=(folder / "log.txt").open("a"))
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"failed, see {folder / 'log.txt'}: mmgen {' '.join(arguments)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def slope(few: float, many: float, ratio: float, start: float) -> str:
    """Return the slope between two sizes of the seconds above those of the start; "" where there are hardly any."""
    few, many = few - start, many - start
    return f"{math.log(many / few, ratio):.2f}" if few > 0.5 else ""


def main() -> None:
    out, numbers = Path(sys.argv[1]), [FEWEST, *map(int, " ".join(sys.argv[2:]).split())]
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for number in numbers:
        folder = out / str(number)
        folder.mkdir(parents=True)
        write_pictures(folder, number)
        for name, arguments in COMMANDS.items():
            found[name].append(run(arguments, folder))
            print(number, name, *(f"{one:.1f}" for one in found[name][-1]), file=sys.stderr, flush=True)
    for name, each in found.items():
        seconds = [one for one, _ in each]
        growth = slope(*seconds[-2:], numbers[-1] / numbers[-2], seconds[0])
        cells = [name, *(f"{one:.1f}" for one in seconds), growth, *(f"{memory:,.0f}" for _, memory in each)]
        print(f"  {json.dumps(cells)},")


if __name__ == "__main__":
    main()
