"""Decoding of the user's pictures: from a file's bytes to pixels of a given size.

Pillow knows some fifty formats, and asks each of its decoders; that for EPS starts Ghostscript from the PATH. Here only
a few formats of pixels are tried, and the size that the file's head tells is looked at before anything is decoded.

:func:`decode_picture` takes a picture as it is; :func:`fit_picture` brings any picture to the size of a dataset, the
same way for the pictures of the dataset and for a photo that is shown to a model of it.
"""

import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from mmgen.core.foreign import CannotReadError, read_file
from mmgen.core.picture_bytes import check_scans, format_of, strip_metadata

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "PPM")
"""Readable formats of pictures, known by their first bytes and not by names."""

MOST_BYTES = 2**26
"""Larger files are not read."""

MOST_PIXELS = 2**25
"""Larger pictures are not decoded: 5,800 x 5,800."""

_MODES = ("1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr")
"""Pillow's modes with 8 bits or less a channel. It silently clips the others at 255."""

_DEEP = ("I", "I;16", "I;16B", "I;16L")
"""Pillow's modes of grey pictures of 16 bits. It reduces colours of 16 bits to their higher 8 by itself."""

_ORIENTATION = 0x0112  # Exif's tag

Fit = Literal["crop", "pad", "stretch"]
"""Treatment of a picture of another shape: crop the middle, add borders, or stretch."""

Background = Literal["white", "black"]
"""Colour behind see-through parts and beside padded pictures."""


class WrongSizeError(CannotReadError):
    """Error for a picture that does not have the expected size.

    Attributes:
        size: Its width and height in pixels.
    """

    def __init__(self, size: tuple[int, int], expected: tuple[int, int]) -> None:
        super().__init__(f"it has {size[0]} x {size[1]} pixels, expected {expected[0]} x {expected[1]}")
        self.size = size


@dataclass(frozen=True)
class Fitting:
    """Settings for cropping, padding and resizing pictures to the size of a dataset.

    Attributes:
        height: In pixels.
        width: In pixels.
        fit: Treatment of other shapes.
        grey: Whether they have one channel, and not three.
        background: Colour behind and beside them.
    """

    height: int
    width: int
    fit: Fit = "crop"
    grey: bool = False
    background: Background = "white"

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C, H, W)."""
        return (1 if self.grey else 3, self.height, self.width)

    @staticmethod
    def for_shape(shape: Sequence[int], settings: Mapping[str, Any] | None = None) -> "Fitting":
        """Return the settings that fit pictures to the shape [C, H, W] of a dataset's images.

        Args:
            shape: (C, H, W) of the dataset's images.
            settings: The dataset's settings; where they say nothing of fitting, the middle of the picture is taken.

        Example:
            >>> Fitting.for_shape((1, 32, 32), {"recipe": "folder", "fit": "pad", "background": "black"})
            Fitting(height=32, width=32, fit='pad', grey=True, background='black')
        """
        channels, height, width = (int(n) for n in shape)
        recorded = settings or {}
        fits: dict[Any, Fit] = {name: name for name in get_args(Fit)}
        backgrounds: dict[Any, Background] = {name: name for name in get_args(Background)}
        fit = fits.get(recorded.get("fit"), "crop")
        return Fitting(height, width, fit, channels == 1, backgrounds.get(recorded.get("background"), "white"))


@dataclass(frozen=True)
class FittedPicture:
    """A picture after cropping and resizing, with facts about the changes.

    Attributes:
        pixels: uint8 [C, H, W].
        size: Original width and height in pixels, upright.
        traits: Special properties that have been handled: "turned", "see-through", "16 bits", "CMYK",
            "moving", "grey".
    """

    pixels: NDArray[np.uint8]
    size: tuple[int, int]
    traits: tuple[str, ...]


@contextmanager
def _open_image(data: bytes, formats: Sequence[str]) -> Iterator[Image.Image]:
    """Open a picture and check size and cost from its header; errors in the block become CannotReadError."""
    listed = " or ".join(filter(None, [", ".join(formats[:-1]), formats[-1]]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd palettes, odd Exif, many pixels: what matters is refused here
            with Image.open(io.BytesIO(strip_metadata(data)), formats=list(formats)) as image:
                yield image
    except CannotReadError:
        raise
    except Image.UnidentifiedImageError:
        known = format_of(data)
        why = f"it is a damaged {known} picture" if known in formats else f"it is no {listed} picture"
        raise CannotReadError(why) from None
    except Exception as error:  # what Pillow's decoders raise for damaged files is written down nowhere
        raise CannotReadError.from_error(error) from None


def _check_decoding_cost(image: Image.Image, data: bytes) -> None:
    """Refuse a picture whose decoding would take too much memory or time."""
    check_scans(data, image.width * image.height)
    if image.width * image.height > MOST_PIXELS:
        raise CannotReadError(f"it has {image.width} x {image.height} pixels, expected at most {MOST_PIXELS:,} in all")


def decode_picture(
    data: bytes, mode: str, *, size: tuple[int, int] | None = None, formats: Sequence[str] = FORMATS
) -> Image.Image:
    """Decode the bytes of a picture file to a picture in the colour mode ``mode``; of an animation, the first frame.

    Args:
        data: The file's bytes.
        mode: "RGB" or "L" (grey): what it becomes.
        size: Width and height in pixels that it must have; any by default.
        formats: Some of :data:`FORMATS`: what else it may be is not tried.

    Raises:
        WrongSizeError: It has another size; nothing was decoded.
        CannotReadError: It is none of these formats, too large, damaged, or has more than 8 bits a channel.
    """
    with _open_image(data, formats) as image:
        if size is not None and image.size != size:
            raise WrongSizeError(image.size, size)
        _check_decoding_cost(image, data)
        if image.mode not in _MODES:
            raise CannotReadError(f"its pixels are of kind {image.mode}, expected 8 bits a channel")
        return image.convert(mode)


def picture_side(data: bytes) -> int:
    """Return the shorter side of a picture, in pixels, from the head of its file.

    Raises:
        CannotReadError: It is none of :data:`FORMATS`.
    """
    with _open_image(data, FORMATS) as image:
        return min(image.size)


def fit_picture(data: bytes, fitting: Fitting) -> FittedPicture:
    """Decode the bytes of any picture file, and crop and resize the picture to the size of a dataset.

    =========== =======================================================================================
    turned      Exif's orientation is applied, as every viewer does
    see-through parts that one can see through show the background
    16 bits     grey levels are divided by 257, so that 65,535 becomes 255; of colours the higher 8 bits
    CMYK        becomes RGB by Pillow's formula; profiles of colours are not looked at
    palette     becomes RGB
    moving      its first picture
    =========== =======================================================================================

    It is resized once, bilinearly with antialiasing; one of that size keeps its pixels.

    Raises:
        CannotReadError: It is none of :data:`FORMATS`, too large, damaged, or of numbers that are no colours.
    """
    with _open_image(data, FORMATS) as image:
        _check_decoding_cost(image, data)
        size, traits = image.size, []
        if getattr(image, "is_animated", False):
            traits.append("moving")
            image.seek(0)
        orientation = _exif_orientation(image)
        _shrink_while_decoding(image, fitting)
        upright = _to_eight_bits(image, traits)
        if orientation in range(2, 9):
            upright = ImageOps.exif_transpose(upright)
            traits.append("turned")
            size = size if orientation < 5 else size[::-1]
        plain = _convert_colours(upright, fitting, traits)
        return FittedPicture(image_array(_resize(plain, fitting)), size, tuple(traits))


def _exif_orientation(image: Image.Image) -> int:
    """Return the orientation in a picture's Exif data, 1 to 8; 1 (upright) if it is missing or damaged."""
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # what Pillow raises for damaged Exif is written down nowhere; the pixels may be whole
        return 1


def _shrink_while_decoding(image: Image.Image, fitting: Fitting) -> None:
    """Let JPEG decode a large picture at 1/2, 1/4 or 1/8, but at least twice the target size."""
    scale = 2 * max(fitting.height, fitting.width) / min(image.size)
    if scale < 1 and image.format == "JPEG":
        image.draft(None, (round(image.width * scale), round(image.height * scale)))


def _to_eight_bits(image: Image.Image, traits: list[str]) -> Image.Image:
    if image.mode in _DEEP:
        traits.append("16 bits")
        levels = np.asarray(image).astype(np.int64)
        eight = Image.fromarray((np.clip(levels, 0, 65535) / 257 + 0.5).astype(np.uint8))
        eight.info["exif"] = image.info.get("exif", b"")
        return eight
    if image.mode not in _MODES:
        raise CannotReadError(f"its pixels are of kind {image.mode}, expected 8 or 16 bits a channel")
    return image


def _convert_colours(image: Image.Image, fitting: Fitting, traits: list[str]) -> Image.Image:
    """Convert a picture to RGB or grey; transparent pixels show the background colour."""
    if image.mode == "CMYK":
        traits.append("CMYK")
    if image.mode in ("1", "L", "LA", "La"):
        traits.append("grey")
    if image.has_transparency_data:
        layered = image.convert("RGBA")
        behind = Image.new("RGBA", layered.size, fitting.background)
        if np.asarray(layered)[..., 3].min() < 255:
            traits.append("see-through")
        image = Image.alpha_composite(behind, layered)
    return image.convert("L" if fitting.grey else "RGB")


def _resize(image: Image.Image, fitting: Fitting) -> Image.Image:
    size, method = (fitting.width, fitting.height), Image.Resampling.BILINEAR
    if fitting.fit == "crop":
        return ImageOps.fit(image, size, method)
    if fitting.fit == "pad":
        if min(image.width / image.height * fitting.height, image.height / image.width * fitting.width) < 1:
            raise CannotReadError(
                f"it has {image.width} x {image.height} pixels, too narrow for padding; use --fit crop"
            )
        return ImageOps.pad(image, size, method, color=fitting.background)
    return image.resize(size, method)


def pillow_images(pictures: NDArray[Any]) -> list[Image.Image]:
    """Convert pictures [n, C, H, W] in [0, 1], of one or three channels, to n images of Pillow."""
    levels = np.rint(pictures.clip(0, 1) * 255).astype(np.uint8).transpose(0, 2, 3, 1)
    return [Image.fromarray(each.squeeze(-1) if each.shape[-1] == 1 else each) for each in levels]


def image_array(image: Image.Image) -> NDArray[np.uint8]:
    """Return a picture as uint8 [C, H, W]."""
    pixels = np.asarray(image)
    return pixels[None] if pixels.ndim == 2 else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def read_picture(path: Path, mode: str, *, size: tuple[int, int] | None = None) -> Image.Image:
    """Read and decode a picture file; see :func:`decode_picture`.

    Raises:
        WrongSizeError: It has another size.
        CannotReadError: It cannot be read, or is no such picture.
    """
    return decode_picture(read_file(path, MOST_BYTES), mode, size=size)
