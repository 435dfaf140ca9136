"""Five grounds: pictures of one digit on crops of photographs, a ground for each of two to five modalities.

References:
    Generalized Multimodal ELBO (Sutter, Daunhawer, Vogt, 2021), arXiv:2105.02470, Appendix: PolyMNIST
    MUNITE (Yeo, Sung, 2026), PolyMNIST-D-Q: digits in quadrants
"""

import hashlib
import importlib.util
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from pydantic import Field, model_validator

from mmgen.core.errors import DataError, UsageError
from mmgen.core.extras import how_to_install
from mmgen.core.foreign import CannotReadError
from mmgen.core.pictures import image_array, read_picture
from mmgen.core.progress import Work
from mmgen.data_recipes._base import Rows, Workers
from mmgen.data_recipes._digits import resize_digits
from mmgen.data_recipes._several_digits import PARTS, DigitPools, SeveralDigitsRecipe
from mmgen.data_recipes._streams import Bits, random_bits, random_integers, random_order, stream_keys

__all__ = ["FiveGrounds"]

_SHIPPED = {
    "chelsea": ("chelsea.png", "Stefan van der Walt; CC0"),
    "coffee": ("coffee.png", "Rachel Michetti; CC0"),
    "hubble": ("hubble_deep_field.jpg", "NASA; public domain"),
    "retina": ("retina.jpg", "Mikael Häggström; CC0"),
    "rocket": ("rocket.jpg", "SpaceX; public domain"),
}
"""Pictures inside scikit-image's wheel, with their authors and licences as it tells them."""
_QUADRANTS = ("top-left", "top-right", "bottom-left", "bottom-right")
_TILES = 1.5
"""Side of the tiles that a ground is divided into, in crops: each belongs to a part, and holds its crops whole."""
# Draws of an example, by slot of its stream; those of the modalities follow each other.
_QUADRANT, _DIGIT, _TILE, _ACROSS, _DOWN = 0, 1, 8, 16, 24


Ground = tuple[str, str, NDArray[np.uint8]]
"""Name, licence and pixels [3, H, W] of a picture that crops are taken from."""


def _read_ground(name: str) -> Ground:
    """Read one of scikit-image's pictures by name, or the user's by path."""
    path, licence = Path(name), "the user's own"
    if name in _SHIPPED:
        package = importlib.util.find_spec("skimage")
        if package is None or package.origin is None:
            how = how_to_install("grounds")
            raise UsageError(f"the ground {name} is in scikit-image, which is not installed; {how}")
        path, licence = Path(package.origin).parent / "data" / _SHIPPED[name][0], _SHIPPED[name][1]
    try:
        return name if name in _SHIPPED else path.name, licence, image_array(read_picture(path, "RGB"))
    except CannotReadError as error:
        known = ", ".join(_SHIPPED)
        raise DataError(f"cannot read the ground {name}: {error}; name a picture, or one of {known}") from None


def _divide_ground(ground: Ground, size: int, seed: int) -> list[NDArray[np.int64]]:
    """Return for each part its tiles [n, 4] (left, top, width, height); no pixel is in tiles of two parts."""
    name, _, pixels = ground
    height, width = pixels.shape[1:]
    across, down = (int(side // (_TILES * size)) for side in (width, height))
    if across * down < len(PARTS):
        raise DataError(
            f"the ground {name} got {width} x {height} pixels, expected a tile of {_TILES:g} crops of {size} pixels "
            f"for each part of a split, such as {round(_TILES * size * 3)} x {round(_TILES * size)}; use a larger "
            "picture, or a smaller --size"
        )
    x, y = (np.linspace(0, side, count + 1).astype(np.int64) for side, count in ((width, across), (height, down)))
    every = np.array([(x[i], y[j], x[i + 1] - x[i], y[j + 1] - y[j]) for j in range(down) for i in range(across)])
    order = random_order(seed, f"five-grounds tiles {name}", len(every))
    test, val = (max(1, round(share * len(every))) for share in (0.1, 0.05))
    return [every[chosen] for chosen in (order[test + val :], order[:val], order[val : test + val])]


class FiveGrounds(SeveralDigitsRecipe):
    """Pictures m0, m1, ... of the same digit on different grounds, as in PolyMNIST, without a download of photographs.

    Every modality has its own ground, from which an example gets a crop at a random place, inverted under the digit.
    The digits of an example are different pictures of one kind. Digits and crops are divided into parts before they
    are paired: a ground is cut into tiles, and each tile belongs to a part. (PolyMNIST divides digits alone.) Edges of
    digits invert as far as they are inked, where PolyMNIST's are hard.
    """

    size: Literal[28, 32, 64] = 28
    """Height and width of the pictures in pixels."""

    grounds: Annotated[tuple[str, ...], Field(exclude=True, min_length=2, max_length=5)] = tuple(_SHIPPED)
    """Two to five pictures, one for each modality: chelsea (a cat), coffee, hubble, retina or rocket, which are inside
    scikit-image, or files of yours, neither small nor of a middle grey."""

    quadrants: bool = False
    """Put the digit into a quadrant of 32 pixels, the same in all modalities, and describe it too; needs size 64."""

    name: ClassVar[str] = "five-grounds"
    _read: list[Ground]
    _tiles: list[list[NDArray[np.int64]]]

    @model_validator(mode="after")
    def _check_quadrants(self) -> Self:
        if self.quadrants and self.size != 64:
            raise ValueError(f"quadrants got size {self.size}, expected 64; use --size 64")
        return self

    def make(
        self, path: Path, *, seed: int = 0, workers: Workers = None, chunk: int = 512, command: str = ""
    ) -> Work[Path]:
        self._read = [_read_ground(name) for name in self.grounds]
        self._tiles = [_divide_ground(ground, self.size, seed) for ground in self._read]
        return super().make(path, seed=seed, workers=workers, chunk=chunk, command=command)

    def further_settings(self, seed: int) -> dict[str, Any]:
        names, licences, pixels = zip(*self._read, strict=True)
        digests = [hashlib.sha256(each.data).hexdigest() for each in pixels]
        return {"grounds": names, "licences": licences, "grounds_sha256": digests}

    def add_elements(self, writer: Any) -> None:
        for view in range(len(self.grounds)):
            writer.add_image(f"m{view}", (3, self.size, self.size), "bytes")
        digit = {"digit": [str(number) for number in range(10)]}
        writer.add_attributes("attributes", digit | ({"quadrant": [*_QUADRANTS]} if self.quadrants else {}))
        number = "number of each modality's source digit, in published order, training digits first"
        writer.add_factor("source", "uint32", "", number, (len(self.grounds),))
        for axis, edge in (("x", "left"), ("y", "top")):
            meaning = f"{edge} edge of each modality's crop in its ground"
            writer.add_factor(f"crop_{axis}", "uint16", "pixel", meaning, (len(self.grounds),))

    def check_digits(self, pools: DigitPools) -> None:
        for code, part in enumerate(PARTS):
            kinds = np.bincount(pools.digits.labels[pools.members(code)])
            if len(kinds) and (few := kinds[kinds > 0].min()) < len(self.grounds):
                raise DataError(
                    f"the source digits got {few} of a kind in the {part} part, expected at least {len(self.grounds)}, "
                    "one for each modality; use fewer --grounds, or more digits"
                )

    def choose_digits(
        self, pools: DigitPools, part: NDArray[np.int64], indices: NDArray[np.int64], seed: int
    ) -> tuple[Any, ...]:
        keys, views = stream_keys(seed, self.name, indices), len(self.grounds)
        labels, source = pools.digits.labels, np.empty((len(indices), views), np.int64)
        corner, window = np.empty((len(indices), views, 2), np.int64), (self.size, self.size)
        for code in range(len(PARTS)):
            of_part = np.flatnonzero(part == code)
            source[of_part] = _draw_alike(pools.members(code), labels, keys[of_part], views)
            for view, tiles in enumerate(self._tiles):
                chosen = tiles[code][random_integers(random_bits(keys[of_part], _TILE + view), len(tiles[code]))]
                for axis, slot in enumerate((_ACROSS, _DOWN)):
                    free = chosen[:, 2 + axis] - self.size + 1
                    bits = random_bits(keys[of_part], slot + view)
                    corner[of_part, view, axis] = chosen[:, axis] + random_integers(bits, free)
        crops = [
            sliding_window_view(pixels, window, (1, 2))[:, corner[:, view, 1], corner[:, view, 0]]
            for view, (_, _, pixels) in enumerate(self._read)
        ]
        quadrant = random_integers(random_bits(keys, _QUADRANT), len(_QUADRANTS)) if self.quadrants else None
        return crops, pools.digits.images[source], labels[source[:, 0]], quadrant, source, corner

    @staticmethod
    def make_rows(
        crops: list[NDArray[np.uint8]], digits: NDArray[np.uint8], labels: NDArray[np.uint8],
        quadrant: NDArray[np.int64] | None, source: NDArray[np.int64], corner: NDArray[np.int64],
    ) -> Rows:  # fmt: skip
        """Make examples in stored form; runs in a worker.

        Args:
            crops: Crops [3, n, H, W] of each modality's ground.
            digits: Source digits [n, M, 28, 28].
            labels: Their digit [n].
            quadrant: Number of the digit's quadrant [n]; None if it fills the picture.
            source: Numbers of the source digits [n, M].
            corner: Left and top edge of the crops [n, M, 2].
        """
        side = crops[0].shape[-1]
        columns: dict[str, NDArray[Any]] = {}
        for view, crop in enumerate(crops):
            ink = resize_digits(np.ascontiguousarray(digits[:, view]), side if quadrant is None else side // 2)
            if quadrant is not None:
                tiled = np.zeros((len(ink), 2, side // 2, 2, side // 2), np.uint8)
                tiled[np.arange(len(ink)), quadrant // 2, :, quadrant % 2] = ink
                ink = tiled.reshape(-1, side, side)
            # Inked to the share a, v becomes v + a (255 - 2 v): 255 - v where a is 1.
            values = crop + ink / np.float32(255) * (255 - 2 * crop.astype(np.float32))
            columns[f"m{view}"] = np.rint(values).astype(np.uint8).transpose(1, 0, 2, 3)
        codes = [labels] if quadrant is None else [labels, quadrant.astype(np.uint8)]
        places = {f"crop_{axis}": corner[..., k].astype(np.uint16) for k, axis in enumerate("xy")}
        columns["attributes"] = np.stack(codes, 1)
        return Rows(columns, {"source": source.astype(np.uint32), **places})


def _draw_alike(members: NDArray[np.int64], labels: NDArray[np.uint8], keys: Bits, views: int) -> NDArray[np.int64]:
    """Draw different source digits with one label [n, M] from a part's ``members``: the first uniformly."""
    by_label = [members[labels[members] == label] for label in range(10)]
    label = labels[members[random_integers(random_bits(keys, _DIGIT), len(members))]]
    count = np.array([len(some) for some in by_label])[label]
    places = np.empty((len(keys), 0), np.int64)
    for view in range(views):  # without replacement: a number among those that are left, which skips the chosen ones
        place = random_integers(random_bits(keys, _DIGIT + 1 + view), count - view)
        for earlier in np.sort(places, 1).T:
            place += place >= earlier
        places = np.column_stack([places, place])
    first = np.cumsum([0, *(len(some) for some in by_label)])[label]
    return np.concatenate(by_label)[first[:, None] + places]
