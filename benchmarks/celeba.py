"""How fast the CelebA recipes are, on faces that are drawn for it, and what all six modalities look like.

    python benchmarks/celeba.py [--number 2000] [--workers 2] [--celeba DIR|ZIP] [--detector aligned] [--sheet PNG]

Prints for each recipe seconds, faces per second, CPU seconds of all processes and bytes per face; for the transforms,
how many faces were found and how far landmarks lie from the known points. Faces per second are counted from the first
finished part to the complete file, so that starting the processes does not count. Without --celeba nothing of CelebA is
needed.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from mmgen import data_recipes
from mmgen.artifacts import Dataset

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.data_recipes._faces import build_celeba

MEANT = 150  # faces per second on two cores, all six modalities, --detector aligned
CELEBA = 202_599
SHOWN = 12
MODALITIES = ("image", "grayscale", "edges", "mask", "completion", "watermark")


def cpu_seconds() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def measure(name: str, settings: dict[str, object], path: Path, workers: int) -> float:
    """Make the dataset; returns faces per second from the first finished part on, and to the end of the file."""
    recipe = data_recipes.get(name)(**settings)
    preparing = recipe.prepare()
    if preparing is not None:
        preparing.run()
    begun, start_cpu = time.perf_counter(), cpu_seconds()
    work = recipe.make(path, workers=workers)
    first = None
    for progress in work:
        if first is None:
            first = time.perf_counter(), progress.done
    end = time.perf_counter()
    assert first is not None
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)  # only finished children have their CPU time counted
    rate = (len(work) - first[1]) / (end - first[0])
    size = path.stat().st_size / len(work)
    print(
        f"{name:18s} {end - begun:6.1f} s ({first[0] - begun:.1f} s to the first part)  {rate:6.1f} faces/s  "
        f"{cpu_seconds() - start_cpu:6.1f} CPU s  {size:6.0f} bytes a face",
        flush=True,
    )
    return rate


def sheet(dataset: Dataset, path: Path) -> None:
    """One row a modality, one column a face."""
    rows = np.linspace(0, dataset.size - 1, SHOWN).astype(int)
    lines = []
    for name in MODALITIES:
        pictures = dataset.read_image(name, rows)
        pictures = np.broadcast_to(pictures, (len(rows), 3, *pictures.shape[2:]))
        pictures = np.pad(pictures, ((0, 0), (0, 0), (2, 2), (2, 2)), constant_values=255)
        lines.append(np.concatenate(list(pictures.transpose(0, 2, 3, 1)), axis=1))
    image = Image.fromarray(np.concatenate(lines))
    image.resize((image.width * 2, image.height * 2), Image.Resampling.NEAREST).save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=2000, help="faces to draw")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--celeba", type=Path, help="a copy of CelebA, instead of drawn faces")
    parser.add_argument("--detector", default="aligned", choices=["aligned", "dlib"])
    parser.add_argument("--sheet", type=Path, default=Path("celeba.png"), help="picture of all six modalities")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        celeba = options.celeba
        if celeba is None:
            print(f"drawing {options.number} faces ...", flush=True)
            celeba = build_celeba(folder / "celeba", options.number, zipped="images")
        print(f"{options.workers} processes on {os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}")
        for recipe in ("celeba-18", "celeba-words"):
            measure(recipe, {"celeba": celeba}, folder / f"{recipe}.h5", options.workers)
        path = folder / "celeba-transforms.h5"
        settings = {"celeba": celeba, "detector": options.detector}
        rate = measure("celeba-transforms", settings, path, options.workers)
        print(f"all of CelebA would take {CELEBA / rate / 60:.0f} minutes   (meant: {MEANT} faces/s, two cores)")
        with Dataset.open(path) as dataset:
            found, error = dataset.read_factor("face_found"), dataset.read_factor("landmark_error")
            print(
                f"faces found: {(found > 0).sum():,} of {len(found):,}; landmarks lie {np.nanmean(error):.2f} pixels "
                f"from the known points in the mean, 99 % within {np.nanpercentile(error, 99):.2f}"
            )
            sheet(dataset, options.sheet)
        print(f"sheet: {options.sheet}")


if __name__ == "__main__":
    main()
