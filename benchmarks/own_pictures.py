"""Own pictures: how sharp they are drawn, and how fast ``mmgen make-data folder`` is on generated ones.

    python benchmarks/own_pictures.py sharpness AGGREGATE... [--part PART] [--guidance G] [--sheet SHEET.png]
    python benchmarks/own_pictures.py speed [--number N] [--side PIXELS] [--workers N] [--format png|jpeg]

``sharpness`` compares pictures of a part of the data with their reconstructions and with pictures drawn for their
words: PSNR [dB]; the share of gradients that is wrong; steepest gradients, of those of real pictures; weave, the
root mean square of what is finer than five pixels where pictures are even [grey levels of 255]. A sheet shows real
pictures, then for each file reconstructions and drawn ones.

``speed`` draws pictures first. Prints seconds, pictures per second (each is read and decoded once), the
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
import torch
from make_data import family, resident_mib
from PIL import Image
from torch import Tensor
from torch.nn import functional

import mmgen
from mmgen.artifacts import Dataset, read_header
from mmgen.generation.draws import draw as draw_pictures

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


def steepness(pictures: Tensor) -> Tensor:
    """Magnitudes of the gradient of grey pictures [..., H, W] a pixel, [..., H - 1, W - 1]."""
    down, right = (pictures.diff(dim=dim) for dim in (-2, -1))
    return (down[..., :-1].square() + right[..., :-1, :].square()).sqrt()


def steepest(pictures: Tensor) -> Tensor:
    """Mean of the steepest 2 % of gradients of pictures [N, C, H, W]."""
    gradients = steepness(pictures.mean(1)).flatten(1)
    return gradients.topk(gradients.shape[1] // 50, 1).values.mean()


def wrong_edges(real: Tensor, other: Tensor) -> Tensor:
    """Mean difference of gradients of pictures [N, C, H, W], of the mean of the real ones."""
    wanted = steepness(real.mean(1))
    return (wanted - steepness(other.mean(1))).abs().mean() / wanted.mean()


def weave(pictures: Tensor) -> Tensor:
    """Root mean square [grey levels] of what is finer than five pixels where pictures [N, C, H, W] are even."""

    def smooth(values: Tensor) -> Tensor:
        return functional.avg_pool2d(functional.pad(values, [2] * 4, mode="replicate"), 5, 1)

    steep = functional.pad(steepness(smooth(pictures.mean(1, keepdim=True))), [0, 1, 0, 1], mode="replicate")
    even = functional.max_pool2d(steep, 7, 1, 3) < 3 / 255
    fine = (pictures - smooth(pictures)).square().mean(1, keepdim=True)
    return 255 * (fine * even).sum().div(even.sum()).sqrt()


@torch.inference_mode()
def measure_sharpness(files: list[Path], part: str, guidance: str, sheet: Path | None) -> None:
    """Print a line for each aggregate; write the first twelve pictures of each kind."""
    rows: list[Tensor] = []
    for file in files:
        model = mmgen.load(file)
        assert model.attributes is not None and model.observation is not None
        with Dataset.open(model.dataset_path()) as data:
            chosen = data.split("iid", part)[:120]
            real = torch.from_numpy(data.read_pixels(model.observation.name, chosen))
            codes = data.read_attributes(model.attributes.name, chosen)
        made = model.model.mean(model.observation.name, model.encode(real.numpy(), codes).mean)
        drawn = torch.from_numpy(draw_pictures(model.guided(guidance), codes, 3, posterior="aggregate").means)
        every = drawn.flatten(0, 1)
        psnr = -10 * (real - made).square().flatten(1).mean(1).log10().mean()
        values = [psnr, 100 * wrong_edges(real, made), 100 * wrong_edges(real.repeat_interleave(3, 0), every)]
        values += [100 * steepest(each) / steepest(real) for each in (made, every)]
        values += [weave(each) for each in (real, made, every)]
        wrong = f"wrong edges {values[1]:.0f} %, drawn {values[2]:.0f}"
        steep = f"steepest {values[3]:.0f} % of real, drawn {values[4]:.0f}"
        fine = f"weave real {values[5]:.2f}, reconstructed {values[6]:.2f}, drawn {values[7]:.2f}"
        print(f"{file}: reconstructed {values[0]:.1f} dB; {wrong}; {steep}; {fine}")
        rows += [*([] if rows else [real[:12]]), made[:12], drawn[:12, 0]]
    if sheet is not None:
        pixels = (255 * torch.cat([torch.cat(list(row), 2) for row in rows], 1)).round().byte().permute(1, 2, 0)
        whole = Image.fromarray(pixels.numpy())
        whole.resize((2 * whole.width, 2 * whole.height), Image.Resampling.NEAREST).save(sheet)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    sharpness = kinds.add_parser("sharpness")
    sharpness.add_argument("files", type=Path, nargs="+")
    sharpness.add_argument("--part", default="test")
    sharpness.add_argument("--guidance", default="cfg:1.5")
    sharpness.add_argument("--sheet", type=Path)
    speed = kinds.add_parser("speed")
    speed.add_argument("--number", type=int, default=20_000)
    speed.add_argument("--side", type=int, default=64)
    speed.add_argument("--workers", type=int, default=1)
    speed.add_argument("--format", choices=["png", "jpeg"], default="png")
    options = parser.parse_args()
    if options.kind == "sharpness":
        measure_sharpness(options.files, options.part, options.guidance, options.sheet)
    else:
        measure_speed(options)


def measure_speed(options: argparse.Namespace) -> None:
    """Make pictures and a dataset of them; print seconds and memory."""
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
