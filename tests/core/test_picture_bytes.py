"""What is looked at in the bytes of pictures before they are decoded."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mmgen.core.foreign import CannotReadError
from mmgen.core.picture_bytes import check_scans, strip_metadata
from mmgen.core.pictures import Fitting, decode_picture, fit_picture

MB = 2**20


def png(size: tuple[int, int] = (24, 16), mode: str = "RGB") -> bytes:
    pixels = np.random.default_rng(3).integers(0, 256, (*size[::-1], 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, "PNG")
    return buffer.getvalue()


def jpeg(**options: object) -> bytes:
    buffer = io.BytesIO()
    Image.open(io.BytesIO(png())).save(buffer, "JPEG", **options)
    return buffer.getvalue()


def chunk(kind: bytes, data: bytes, crc: int | None = None) -> bytes:
    return (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data) if crc is None else crc)
    )


def beside(*chunks: bytes) -> bytes:
    """A PNG with further chunks behind its head."""
    return png()[:33] + b"".join(chunks) + png()[33:]


LONG = zlib.compress(bytes(8 * MB))
REMARKS: dict[str, bytes] = {
    "packed text": chunk(b"zTXt", b"history\0\0" + LONG),
    "packed international text": chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + LONG),
    "plain text": chunk(b"tEXt", b"history\0" + b"x" * 2 * MB),
    "colour profile": chunk(b"iCCP", b"profile\0\0" + LONG),
    "suggested palette": chunk(b"sPLT", b"x\0\x08" + bytes(600_000)),
    "checksum of a text": chunk(b"tEXt", b"history\0x", crc=1),
    "checksum of a packed text": chunk(b"zTXt", b"history\0\0" + LONG[:40], crc=1),
    "checksum of the time": chunk(b"tIME", bytes(7), crc=1),
    "damaged Exif": chunk(b"eXIf", b"MM\0*nonsense"),
    "text that is no zlib": chunk(b"zTXt", b"Raw profile type exif\0\0nonsense"),
    "unknown method": chunk(b"zTXt", b"history\0\7nonsense"),
    "private chunk": chunk(b"prVt", bytes(MB)),
    "all at once": b"".join(chunk(b"zTXt", b"history%d\0\0" % n + LONG) for n in range(80)),
}


@pytest.mark.parametrize("case", REMARKS)
def test_remarks_in_a_png_change_no_pixel_and_are_no_reason_to_refuse(case: str) -> None:
    data = beside(REMARKS[case])
    assert decode_picture(data, "RGB").tobytes() == decode_picture(png(), "RGB").tobytes()
    assert np.array_equal(fit_picture(data, Fitting(8, 8)).pixels, fit_picture(png(), Fitting(8, 8)).pixels)


def test_exif_that_says_which_way_up_a_png_is_stays() -> None:
    picture, buffer = Image.open(io.BytesIO(png())), io.BytesIO()
    exif = picture.getexif()
    exif[0x0112] = 6
    picture.save(buffer, "PNG", exif=exif)
    assert fit_picture(buffer.getvalue(), Fitting(8, 8)).size == (16, 24)


def test_what_is_seen_of_a_png_stays() -> None:
    """See-through colours and moving pictures."""
    buffer = io.BytesIO()
    Image.open(io.BytesIO(png(mode="P"))).save(buffer, "PNG", transparency=0)
    assert "see-through" in fit_picture(buffer.getvalue(), Fitting(8, 8)).traits
    frames, buffer = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")], io.BytesIO()
    frames[0].save(buffer, "PNG", save_all=True, append_images=frames[1:])
    found = fit_picture(buffer.getvalue(), Fitting(8, 8))
    assert found.traits == ("moving",) and found.pixels[:, 0, 0].tolist() == [255, 0, 0]


def _wrong_pixel_checksum(data: bytes) -> bytes:
    at = data.index(b"IDAT") + 6
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


DAMAGED: dict[str, tuple[bytes, str]] = {
    "head of a PNG": (png()[:20] + b"\xff" + png()[21:], "a damaged PNG picture"),
    "pixels of a PNG": (_wrong_pixel_checksum(png()), "broken data"),
    "Exif of a PNG": (beside(chunk(b"eXIf", b"MM\0*nonsense", crc=1)), "a damaged PNG picture"),
    "an animation": (beside(chunk(b"acTL", bytes(8), crc=1)), "a damaged PNG picture"),
    "colours of a PNG": (beside(chunk(b"tRNS", bytes(6), crc=1)), "a damaged PNG picture"),
    "end of a PNG": (png()[:200], "truncated"),
    "a PNG of pieces": (beside(chunk(b"prVt", b"") * 200_001), "a PNG of too many chunks, expected at most 200,000"),
    "head of a JPEG": (jpeg()[:3] + b"nothing", "a damaged JPEG picture"),
    "a JPEG of gaps": (jpeg()[:2] + b"\xff" * 5_000 + jpeg()[2:], "gaps of more than 4,096 bytes"),
    "a JPEG of remarks": (jpeg()[:2] + b"\xff\xfe\0\2" * 20_001 + jpeg()[2:], "of more than 20,000 segments"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_pictures_are_refused_for_the_right_reason(case: str) -> None:
    data, says = DAMAGED[case]
    with pytest.raises(CannotReadError, match=says):
        decode_picture(data, "RGB")


def scans(number: int, size: int = 16) -> bytes:
    """A progressive JPEG whose last scan is there so many times more."""
    buffer = io.BytesIO()
    Image.new("L", (size, size), 90).save(buffer, "JPEG", progressive=True)
    data = buffer.getvalue()
    last = data.rindex(b"\xff\xda")
    return data[:-2] + data[last:-2] * number + data[-2:]


@pytest.mark.parametrize(("number", "size"), [(20_000, 16), (501, 16), (300, 4096)])
def test_a_jpeg_of_very_many_scans_is_refused_before_it_is_decoded(number: int, size: int) -> None:
    with pytest.raises(CannotReadError, match=r"it is a JPEG of more than \d+ scans, expected some ten; save it again"):
        fit_picture(scans(number, size), Fitting(8, 8))


def test_an_honest_progressive_jpeg_is_read_whatever_its_remarks_hold() -> None:
    data = jpeg(progressive=True)
    thumbnail = b"\xff\xe1" + struct.pack(">H", 2 + 4_000) + b"\xff\xda" * 2_000
    with_thumbnail = data[:2] + thumbnail + data[2:] + data * 600  # and more pictures behind its end
    check_scans(with_thumbnail, 384)
    assert decode_picture(with_thumbnail, "RGB").tobytes() == decode_picture(data, "RGB").tobytes()


def test_other_files_are_left_as_they_are(tmp_path: Path) -> None:
    for data in (b"", b"GIF89a", jpeg(), b"\x89PNG"):
        assert strip_metadata(data) is data
