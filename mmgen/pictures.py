"""The one way in for pictures that somebody gives: from a file's bytes to pixels.

Pillow knows some fifty formats, and asks each of its decoders; that for EPS starts Ghostscript from the PATH. Here only
a few formats of pixels are tried, and the size that the file's head tells is looked at before anything is decoded.
"""

import io
import warnings
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from mmgen.foreign import CannotReadError, read_file

__all__ = ["FORMATS", "WrongSizeError", "decode_picture", "read_picture"]

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "PPM")
"""Formats of pictures that are read; what a file is called says nothing, what it begins with does."""

MOST_BYTES = 2**26
"""Larger files are not read."""

MOST_PIXELS = 2**25
"""Larger pictures are not decoded: 5,800 x 5,800."""

_MODES = ("1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr")
"""Pillow's names of what has 8 bits or less a channel. It cuts the others off at 255 without a word."""


class WrongSizeError(CannotReadError):
    """The picture has another size than the expected one.

    Attributes:
        size: Its width and height in pixels.
    """

    def __init__(self, size: tuple[int, int], expected: tuple[int, int]) -> None:
        super().__init__(f"it has {size[0]} x {size[1]} pixels, expected {expected[0]} x {expected[1]}")
        self.size = size


def decode_picture(
    data: bytes, mode: str, *, size: tuple[int, int] | None = None, formats: Sequence[str] = FORMATS
) -> Image.Image:
    """The picture in a file's bytes; of a moving one, the first.

    Args:
        data: The file's bytes.
        mode: "RGB" or "L" (grey): what it becomes.
        size: Width and height in pixels that it must have; any by default.
        formats: Some of :data:`FORMATS`: what else it may be is not tried.

    Raises:
        WrongSizeError: It has another size; nothing was decoded.
        CannotReadError: It is none of these formats, too large, damaged, or has more than 8 bits a channel.
    """
    listed = " or ".join(filter(None, [", ".join(formats[:-1]), formats[-1]]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd palettes, odd Exif, many pixels: what matters is refused here
            with Image.open(io.BytesIO(data), formats=list(formats)) as image:
                if size is not None and image.size != size:
                    raise WrongSizeError(image.size, size)
                if image.width * image.height > MOST_PIXELS:
                    raise CannotReadError(
                        f"it has {image.width} x {image.height} pixels, expected at most {MOST_PIXELS:,} in all"
                    )
                if image.mode not in _MODES:
                    raise CannotReadError(f"its pixels are of kind {image.mode}, expected 8 bits a channel")
                return image.convert(mode)
    except CannotReadError:
        raise
    except Image.UnidentifiedImageError:
        raise CannotReadError(f"it is no {listed} picture") from None
    except Exception as error:  # what Pillow's decoders raise for damaged files is written down nowhere
        raise CannotReadError.of(error) from None


def read_picture(path: Path, mode: str, *, size: tuple[int, int] | None = None) -> Image.Image:
    """The picture in a regular file; see :func:`decode_picture`.

    Raises:
        WrongSizeError: It has another size.
        CannotReadError: It cannot be read, or is no such picture.
    """
    return decode_picture(read_file(path, MOST_BYTES), mode, size=size)
