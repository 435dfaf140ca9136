"""Random number generators: independent streams by name, all from one seed.

A stream's key is a hash of the seed and the stream's name, so that streams do not depend on the order in which they are
asked for, and adding one changes no other. Work on examples keys a stream by the example's own index.
"""

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def stream_key(seed: int, *name: str | int) -> int:
    """Return a 63-bit key for the random stream called ``name``; it depends on ``seed`` and name alone.

    Example:
        >>> stream_key(0, "noise", 1) == stream_key(0, "noise", 1)
        True
        >>> stream_key(0, "noise", 1) == stream_key(0, "noise", 2)
        False
    """
    text = "\x1f".join([str(seed), *(f"{type(part).__name__}:{part}" for part in name)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def numpy_generator(seed: int, *name: str | int) -> np.random.Generator:
    """Return numpy's random generator for the stream ``name`` of ``seed``, equal on every machine."""
    return np.random.Generator(np.random.Philox(key=stream_key(seed, *name)))


def torch_generator(seed: int, *name: str | int, device: "torch.device | str") -> "torch.Generator":
    """Return torch's random generator for the stream ``name`` of ``seed``.

    Args:
        seed: Seed of everything.
        name: Name of the stream.
        device: Where it draws, which is always said: torch refuses a generator of another device than the numbers.
    """
    import torch

    return torch.Generator(device=device).manual_seed(stream_key(seed, *name))
