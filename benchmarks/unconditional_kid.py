"""Kernel distance (KID) of pictures drawn without any description to test pictures, in a judge's features.

Usage: python benchmarks/unconditional_kid.py DATASET JUDGE FILE... [--pictures 2000] [--split official]

Each FILE is a model, drawn from p(z), or a density that was fitted to one with --given nothing. The floor is that of
one half of the test pictures to the other. Errors are by jackknife over twenty groups of drawn pictures.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from mmgen.artifacts import Dataset
from mmgen.classifier import load_classifier
from mmgen.evaluation.distances import kernel_distance
from mmgen.generation import load

GROUPS = 20


def features(judge, images: torch.Tensor) -> np.ndarray:
    with torch.inference_mode():
        return torch.cat([judge.features(part).float() for part in images.split(500)]).numpy()


def drawn_pictures(path: Path, count: int, seed: int) -> torch.Tensor:
    """Draw binary or grey pictures [n, C, H, W] from the file's density over z."""
    loaded = load(path)
    posterior = loaded.posteriors["prior" if loaded.fitted is None else loaded.fitted.name]
    generator = torch.Generator().manual_seed(seed)
    name = loaded.observation.name
    blank = loaded.describe("")
    with torch.inference_mode():
        z = torch.cat([posterior.sample(blank, 500, generator)[:, 0] for _ in range(-(-count // 500))])[:count]
        return torch.cat([loaded.model.sample(name, part, generator) for part in z.split(500)])


def distance_with_error(drawn: np.ndarray, real: np.ndarray) -> tuple[float, float]:
    whole = kernel_distance(drawn, real)
    groups = np.arange(len(drawn)) % GROUPS
    others = np.array([kernel_distance(drawn[groups != group], real) for group in range(GROUPS)])
    return whole, float(np.sqrt((GROUPS - 1) / GROUPS * ((others - others.mean()) ** 2).sum()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("judge", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--pictures", type=int, default=2000)
    parser.add_argument("--split", default="official")
    options = parser.parse_args()
    judge = load_classifier(options.judge, "cpu")
    with Dataset.open(options.dataset) as data:
        rows = np.random.default_rng(0).permutation(data.split(options.split, "test"))[: 2 * options.pictures]
        images = torch.from_numpy(data.read_pixels("image", np.sort(rows)).astype(np.float32))
    real = features(judge, images)[np.random.default_rng(1).permutation(len(rows))]
    one, other = real[: options.pictures], real[options.pictures :]
    print("test pictures\t{:.4f}\t{:.4f}".format(*distance_with_error(other, one)))
    for path in options.files:
        pictures = drawn_pictures(path, options.pictures, seed=0)
        print("{}\t{:.4f}\t{:.4f}".format(path.stem, *distance_with_error(features(judge, pictures), one)), flush=True)


if __name__ == "__main__":
    main()
