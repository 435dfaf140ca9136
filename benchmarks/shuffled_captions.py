"""Share of attributes that a judge reads as the caption's own example has them, and as another example has them.

Usage: python benchmarks/shuffled_captions.py DATASET JUDGE MODEL... [--captions 1000] [--splits iid heldout]

Each MODEL draws a picture for the caption of each test example from its prior. Shuffled captions are the chance level.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from mmgen.artifacts import Dataset
from mmgen.classifier import load_classifier
from mmgen.core.notation import UNKNOWN
from mmgen.generation import load
from mmgen.generation.descriptions import complete_descriptions


def agreement(read: np.ndarray, said: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Return percentages: of known attributes with its standard error over examples, and of each attribute."""
    known = said != UNKNOWN
    right = (read == said) & known
    each = 100 * right.sum(1) / known.sum(1)
    return float(each.mean()), float(each.std(ddof=1) / len(each) ** 0.5), 100 * right.sum(0) / known.sum(0)


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("judge", type=Path)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--captions", type=int, default=1000)
    parser.add_argument("--splits", nargs="+", default=["iid", "heldout"])
    options = parser.parse_args()
    judge = load_classifier(options.judge, "cpu")
    for path in options.models:
        loaded = load(path)
        for split in options.splits:
            with Dataset.open(options.dataset) as data:
                rows = np.sort(np.random.default_rng(0).permutation(data.split(split, "test"))[: options.captions])
                codes, tokens = data.read_attributes("attributes", rows), data.read_text("text", rows)
            batch = complete_descriptions(loaded, codes, tokens).batch(loaded, slice(None))
            z = loaded.model.posterior(batch, ()).sample(torch.Generator().manual_seed(0))
            read = judge.predict(loaded.model.mean("image", z, batch)).numpy()
            other = np.roll(codes, 1, axis=0)[np.random.default_rng(1).permutation(len(codes))]
            for name, said in (("own", codes), ("shuffled", other)):
                share, error, each = agreement(read, said)
                numbers = f"{share:.1f}\t{error:.1f}\t{np.round(each, 1).tolist()}"
                print(f"{path.stem}\t{split}\t{name}\t{numbers}", flush=True)


if __name__ == "__main__":
    main()
