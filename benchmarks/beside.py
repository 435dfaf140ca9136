"""Speed of two installations of mmgen beside each other: help, training, sampling and likelihoods.

    python benchmarks/beside.py ../before/.venv/bin/mmgen .venv/bin/mmgen

Each command runs alternately with both, so that a machine that slows down slows down both. The table gives the least
time of each in seconds, and the median of the ratios of neighbours (below 1: the second one is faster). Start-up is in
all of them; training and likelihoods are long enough for it to be a few percent.
"""

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

TRAIN = ("train", "digits.h5", "--preset", "vedantam/telbo-mnist-a-cpu", "--steps", "400", "--device", "cpu")
SAMPLE = ("sample", "model.safetensors", "--given", "digit=3 scale=big", "-n", "4000", "--device", "cpu")
LIKELIHOOD = ("eval", "model.safetensors", "--metric", "log-likelihood", "--number", "100", "--device", "cpu", "--json")
COMMANDS = {
    "help": ("--help",),
    "help of a command": ("train", "--help"),
    "train, 400 steps": (*TRAIN, "--overwrite", "-o", "again.safetensors"),
    "sample 4,000": (*SAMPLE, "-o", "samples.h5"),
    "log p(x)": LIKELIHOOD,
}


def run(program: str, arguments: tuple[str, ...], folder: Path) -> float:
    """Run one command; returns the seconds it took."""
    start = time.perf_counter()
    subprocess.run([program, *arguments], cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", action="append", choices=list(COMMANDS))
    options = parser.parse_args()
    programs = [str(Path(program).absolute()) for program in (options.before, options.after)]
    with tempfile.TemporaryDirectory() as name:
        folders = []
        for number, program in enumerate(programs):  # each reads its own files: formats may differ
            folder = Path(name, str(number))
            folder.mkdir()
            run(program, ("make-data", "mnist-a", "--source", "digits", "--number", "4000", "-o", "digits.h5"), folder)
            run(program, (*TRAIN, "-o", "model.safetensors"), folder)
            folders.append(folder)
        print("| | before (s) | after (s) | ratio |\n|---|---|---|---|")
        for title, arguments in COMMANDS.items():
            if options.only and title not in options.only:
                continue
            pairs = [
                [run(program, arguments, folder) for program, folder in zip(programs, folders, strict=True)]
                for _ in range(options.repeats)
            ]
            before, after = (min(times) for times in zip(*pairs, strict=True))
            ratio = statistics.median(second / first for first, second in pairs)
            print(f"| {title} | {before:.2f} | {after:.2f} | {ratio:.3f} |", flush=True)


if __name__ == "__main__":
    main()
