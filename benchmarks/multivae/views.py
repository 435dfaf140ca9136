"""Six pictures of the same thing, for a model of six modalities: a coloured digit and what can be made of it.

They have the channels of Wu and Goodman's transformed faces (Section 6), so there is as much to compute; what they show
does not matter for speed, and needs no download.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from mmgen.artifacts import DatasetWriter

__all__ = ["write_views"]


def views(count: int, size: int) -> dict[str, np.ndarray]:
    """Pixels of 0 and 1, uint8 [count, C, size, size], by name; MultiVae's Bernoulli takes no others."""
    generator = np.random.default_rng(0)
    digits = load_digits().images
    ink = np.kron(digits[generator.integers(0, len(digits), count)] / 16, np.ones((size // 8, size // 8)))[:, None]
    image = 0.1 + 0.9 * ink * generator.uniform(0.3, 1, (count, 3, 1, 1))
    grayscale = image.mean(1, keepdims=True)
    edges = np.clip(4 * np.abs(np.diff(grayscale, axis=-1, prepend=0.0)), 0, 1)
    completion = image.copy()
    completion[..., size // 2 :] = 0
    watermark = image.copy()
    watermark[:, :, size // 2 :: 8] = 1
    made = {
        "image": image,
        "grayscale": grayscale,
        "edges": edges,
        "mask": (ink > 0.5).astype(float),
        "completion": completion,
        "watermark": watermark,
    }
    return {name: (generator.random(pixels.shape) < pixels).astype(np.uint8) for name, pixels in made.items()}


def write_views(path: Path, arrays: str, count: int, size: int) -> dict[str, int]:
    """Write them as a dataset and, the training part, as plain arrays; the channels of each."""
    made = views(count + 64, size)
    settings = {"recipe": "six-views"}
    with DatasetWriter(path, size=count + 64, settings=settings, seed=0, command="benchmarks/multivae") as writer:
        for name, pixels in made.items():
            writer.add_image(name, shape=pixels.shape[1:], layout="bits")
        bits = {name: np.packbits(pixels.reshape(len(pixels), -1), axis=1) for name, pixels in made.items()}
        writer.write(0, images=bits, attributes={}, factors={})
        rows = np.arange(count + 64)
        writer.add_splits("iid", train=rows[:count], val=rows[count : count + 32], test=rows[count + 32 :])
    np.savez(arrays, **{name: pixels[:count] for name, pixels in made.items()})
    return {name: pixels.shape[1] for name, pixels in made.items()}
