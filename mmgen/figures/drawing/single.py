"""Single pictures, a PNG file each, without title, margin and frames: named by their words and a number."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import grey_dilation, label

from mmgen.artifacts.files import atomic_folder
from mmgen.core.pictures import Background
from mmgen.figures.drawing.page import convert_to_rgb, save_image

_LONGEST = 60
"""Letters of words in a name at most."""
_NEAR = 24
"""Difference from the ground's colour, of 255, up to which a pixel belongs to the ground."""


def clear_ground(image: np.ndarray, ground: Background) -> np.ndarray:
    """Return a picture whose ground one can see through, RGBA.

    The ground is what has nearly its colour and reaches the picture's edge; what is of this colour inside stays. Pixels
    beside it are mixtures of the ground and the brightest difference around them, and are made see-through by as much.

    Args:
        image: uint8 [H, W, 3].
        ground: Colour behind the pictures of the dataset.

    Returns:
        uint8 [H, W, 4].

    Example:
        >>> image = np.full((5, 5, 3), 255, np.uint8)
        >>> image[1:4, 1:4] = 0
        >>> image[2, 2] = 255
        >>> clear_ground(image, "white")[..., 3].tolist()[2]
        [0, 255, 255, 255, 0]
    """
    colour = 255.0 if ground == "white" else 0.0
    distance = np.abs(image - colour).max(-1)
    areas, _ = label(distance <= _NEAR)
    edges = {*areas[0], *areas[-1], *areas[:, 0], *areas[:, -1]} - {0}
    cleared = np.isin(areas, [*edges])
    beside = grey_dilation(cleared.astype(np.uint8), (3, 3)).astype(bool) & ~cleared
    share = distance / np.maximum(grey_dilation(distance, (3, 3)), 1.0)
    opacity = np.where(cleared, 0.0, np.where(beside, share, 1.0))[..., None]
    pure = colour + (image - colour) / np.maximum(opacity, 0.01)
    return np.concatenate([pure.clip(0, 255), 255 * opacity], -1).round().astype(np.uint8)


def write_pictures(
    folder: Path, labels: Sequence[str], pictures: Mapping[str, np.ndarray], scale: int, ground: Background | None
) -> int:
    """Write single pictures to a new folder, which is there whole or not at all.

    Args:
        folder: The folder; one that :func:`mmgen.artifacts.pages.check_folder` allows to replace is replaced.
        labels: Words of each description [Q].
        pictures: Pictures by modality, [Q, n, C, H, W] each; of several, names end in the modality.
        scale: By how much to enlarge them, by Lanczos.
        ground: Colour of the ground to clear; None to keep it.

    Returns:
        Number of pictures in which there was no ground to clear.

    Raises:
        ArtifactError: The file system refuses.
    """
    numbers, opaque = Counter[str](), 0
    with atomic_folder(folder, replaces=True) as part:
        for row, words in enumerate(labels):
            stem = re.sub(r"\W+", "-", words)[:_LONGEST].strip("-") or "any"
            images = {name: convert_to_rgb(each[row]) for name, each in pictures.items()}
            for place in range(len(next(iter(images.values())))):
                numbers[stem] += 1
                for name, each in images.items():
                    shown = each[place] if ground is None else clear_ground(each[place], ground)
                    opaque += ground is not None and bool((shown[..., 3] == 255).all())
                    one = Image.fromarray(shown)
                    size = (scale * one.width, scale * one.height)
                    path = part / f"{stem}-{numbers[stem]:02}{f'-{name}' if len(images) > 1 else ''}.png"
                    save_image(one.resize(size, Image.Resampling.LANCZOS) if scale > 1 else one, path, ".png")
    return opaque
