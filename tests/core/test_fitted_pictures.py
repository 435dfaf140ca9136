"""Pictures of every kind, brought to the size of a dataset: what becomes of their pixels is known beforehand."""

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from mmgen.core.foreign import CannotReadError
from mmgen.core.pictures import FittedPicture, Fitting, fit_picture

RED, WHITE, BLACK = [255, 0, 0], [255] * 3, [0] * 3


def encoded(image: Image.Image, name: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, name, **options)
    return buffer.getvalue()


def fitted(data: bytes, size: int = 4, **how: Any) -> FittedPicture:
    found = fit_picture(data, Fitting(size, size, **how))
    assert found.pixels.shape == (1 if how.get("grey") else 3, size, size) and found.pixels.dtype == np.uint8
    return found


def colour(found: FittedPicture, row: int = 0, column: int = 0) -> list[int]:
    return found.pixels[:, row, column].tolist()


@pytest.mark.parametrize("fit", ["crop", "pad", "stretch"])
def test_pixels_of_the_wanted_size_stay(fit: Any) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (4, 4, 3), np.uint8)
    found = fitted(encoded(Image.fromarray(pixels)), fit=fit)
    np.testing.assert_array_equal(found.pixels, pixels.transpose(2, 0, 1))
    assert (found.size, found.traits) == ((4, 4), ())


def test_each_fit_does_what_it_says() -> None:
    """Eight columns of black, white, white ..., black on four rows: crop sees the middle, pad lines, stretch all."""
    wide = np.zeros((4, 8, 3), np.uint8)
    wide[:, 2:6] = 255
    data = encoded(Image.fromarray(wide))
    assert (fitted(data, fit="crop").pixels == 255).all()
    padded = fitted(data, 8, fit="pad", background="black")
    assert (padded.pixels[:, [0, 1, 6, 7]] == 0).all() and (padded.pixels[:, 2:6] == wide.transpose(2, 0, 1)).all()
    assert (fitted(data, 8, fit="pad").pixels[:, [0, 7]] == 255).all()
    stretched = fitted(data, fit="stretch").pixels[0]
    assert (stretched == stretched[0]).all() and stretched[0, 0] < 128 < stretched[0, 1]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_turns_it_as_viewers_do(orientation: int) -> None:
    """A picture that was stored turned stands upright again: red is at its upper left corner."""
    upright = Image.new("RGB", (8, 4))
    upright.putpixel((0, 0), tuple(RED))
    back = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # Pillow's transpositions that undo Exif's
    stored = upright.transpose(Image.Transpose(back[orientation])) if orientation > 1 else upright
    exif = Image.Exif()
    exif[0x0112] = orientation
    found = fit_picture(encoded(stored, exif=exif), Fitting(4, 8))
    np.testing.assert_array_equal(found.pixels, np.asarray(upright).transpose(2, 0, 1))
    assert found.size == (8, 4) and ("turned" in found.traits) == (orientation > 1)


def test_damaged_exif_leaves_the_pixels() -> None:
    found = fitted(encoded(Image.new("RGB", (4, 4), "red"), "JPEG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff"))
    assert np.abs(np.array(colour(found)) - RED).max() < 3


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA", "P", "L"])
@pytest.mark.parametrize(("background", "shown"), [("white", WHITE), ("black", BLACK)])
def test_what_one_can_see_through_shows_the_background(mode: str, background: Any, shown: list[int]) -> None:
    clear, solid = (255, 0, 0, 0), (0, 255, 0, 255)  # red hides under the clear half
    image = Image.new("RGBA", (4, 4), clear)
    image.paste(solid, (2, 0, 4, 4))
    if mode == "L":  # one grey level that means clear
        data = encoded(Image.fromarray(np.array([[9, 9, 200, 200]] * 4, np.uint8)), transparency=9)
    elif mode == "P":
        image = Image.fromarray(np.array([[0, 0, 1, 1]] * 4, np.uint8))
        image.putpalette([255, 0, 0, 0, 255, 0])
        data = encoded(image, transparency=0)
    elif mode == "PA":
        data = encoded(image, "WEBP", lossless=True)
    else:
        data = encoded(image.convert(mode))
    found = fitted(data, background=background)
    assert colour(found) == shown and colour(found, 0, 3) != shown and "see-through" in found.traits


def test_half_clear_is_half_background() -> None:
    found = fitted(encoded(Image.new("RGBA", (4, 4), (255, 0, 0, 128))))
    assert colour(found) == [255, 127, 127]


@pytest.mark.parametrize("name", ["PNG", "PPM"])
def test_sixteen_bits_become_eight(name: str) -> None:
    levels = np.array([[0, 128, 129, 65535]] * 4, np.uint16)
    found = fitted(encoded(Image.fromarray(levels), name), grey=True)
    assert found.pixels[0, 0].tolist() == [0, 0, 1, 255] and "16 bits" in found.traits
    assert fitted(encoded(Image.fromarray(levels), name)).pixels[:, 0, 3].tolist() == WHITE


def test_sixteen_bits_of_colour_keep_their_higher_eight() -> None:
    rows = b"".join(b"\0" + struct.pack(">12H", *[0x12FF, 0x80FF, 0xFFFF] * 4) for _ in range(4))

    def part(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = part(b"IHDR", struct.pack(">2I5B", 4, 4, 16, 2, 0, 0, 0))
    data = b"\x89PNG\r\n\x1a\n" + head + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b"")
    assert colour(fitted(data)) == [0x12, 0x80, 0xFF]


def test_cmyk_and_palettes_become_colours() -> None:
    found = fitted(encoded(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG", quality=95))
    assert np.abs(np.array(colour(found)) - RED).max() < 8 and found.traits == ("CMYK",)
    palette = Image.new("RGB", (4, 4), "red").quantize(2)
    assert (colour(fitted(encoded(palette))), colour(fitted(encoded(palette, "GIF")))) == (RED, RED)


@pytest.mark.parametrize("name", ["GIF", "PNG", "WEBP"])
def test_of_what_moves_the_first_is_taken(name: str) -> None:
    frames = [Image.new("RGB", (4, 4), each) for each in ("red", "lime", "blue")]
    options: dict[str, Any] = {"lossless": True} if name == "WEBP" else {}
    found = fitted(encoded(frames[0], name, save_all=True, append_images=frames[1:], **options))
    assert colour(found) == RED and found.traits == ("moving",)


def test_grey_and_black_and_white() -> None:
    found = fitted(encoded(Image.new("L", (4, 4), 77)))
    assert colour(found) == [77] * 3 and found.traits == ("grey",)
    assert colour(fitted(encoded(Image.new("1", (4, 4), 1)), grey=True)) == [255]
    assert colour(fitted(encoded(Image.new("RGB", (4, 4), "red")), grey=True)) == [76]  # ITU-R 601-2


def test_a_large_jpeg_is_shrunk_while_it_is_decoded() -> None:
    ramp = np.tile(np.linspace(0, 255, 512).astype(np.uint8), (512, 1))
    data = encoded(Image.fromarray(ramp), "JPEG", quality=95)
    found = fitted(data, 16, grey=True).pixels[0].astype(int)
    assert np.abs(found - np.linspace(8, 247, 16)).max() < 4
    with pytest.raises(CannotReadError, match="truncated"):
        fitted(data[: len(data) // 2], 16)


@pytest.mark.parametrize("data", [b"", b"no picture", encoded(Image.new("RGB", (64, 64)))[:60]])
def test_what_is_no_whole_picture_is_refused(data: bytes) -> None:
    with pytest.raises(CannotReadError):
        fitted(data)


def test_a_line_of_which_nothing_would_be_left_cannot_be_padded() -> None:
    data = encoded(Image.new("RGB", (4000, 1)))
    with pytest.raises(CannotReadError, match="4000 x 1 pixels, too narrow for padding"):
        fitted(data, fit="pad")
    assert colour(fitted(data, fit="crop")) == BLACK


def test_how_a_picture_becomes_one_of_a_datasets() -> None:
    assert Fitting.for_shape((3, 8, 9)) == Fitting(8, 9)
    said = {"fit": "stretch", "background": "black", "size": 64, "grey": False}
    assert Fitting.for_shape([1, 8, 8], said) == Fitting(8, 8, "stretch", True, "black")
    assert Fitting.for_shape([1, 8, 8], {"fit": "best", "background": 3}) == Fitting(8, 8, grey=True)
    assert Fitting(8, 9, grey=True).shape == (1, 8, 9)
