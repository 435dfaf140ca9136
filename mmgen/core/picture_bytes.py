"""Checks of the bytes of PNG and JPEG files before decoding: unused chunks, and chunks that would take for ever."""

import re
import zlib
from collections.abc import Iterator

from mmgen.core.foreign import CannotReadError, unpack_zlib

__all__ = ["format_of", "check_scans", "describe_format", "strip_metadata"]

_PNG = b"\x89PNG\r\n\x1a\n"
_MAGIC = {"PNG": b"\x89PNG", "JPEG": b"\xff\xd8\xff", "GIF": b"GIF8", "WEBP": b"RIFF"}

_OTHERS = (
    (rb"version https://git-lfs", "a pointer of Git LFS: fetch the picture itself with git lfs pull"),
    (rb"(?i)\s*(<!doctype|<html)", "a web page, as a download that failed leaves it: load it again"),
    (rb"(?s)\s*(<\?xml.*)?<svg", "SVG: draw it as PNG"),
    (rb"(?s)....ftyp(heic|heix|hevc|heim|heis|mif1|msf1)", "HEIC: convert it"),
    (rb"(?s)....ftypavi[fs]", "AVIF: convert it"),
    (rb"II\*\0|MM\0\*", "TIFF, or a camera's raw: convert it"),
    (rb"8BPS", "PSD: convert it"),
    (rb"%PDF", "a PDF: convert it"),
    (rb"PK\x03\x04", "a zip"),
    (rb"\s*[{\[]", "a text, as a download that failed leaves it: load it again"),
)
"""First bytes of other files with names of pictures, and their kinds."""

_MOST_CHUNKS = 200_000  # a PNG of 64 MiB in pieces of 512 bytes has fewer
_MOST_TEXT = 2**20
_MOVING = (b"acTL", b"fcTL", b"fdAT")
_TEXTS = (b"tEXt", b"zTXt", b"iTXt")
_TURNING = (b"XML:com.adobe.xmp", b"Raw profile type exif")
"""Texts that may hold the orientation."""

_MARKER = re.compile(rb"\xff+([^\x00\xff\xd0-\xd7])")
_EOI, _SOS = b"\xd9", b"\xda"
_WITHOUT_LENGTH = (b"\xd8", b"\x01")
_MOST_SEGMENTS = 20_000
_MOST_PADDING = 2**12  # bytes before a marker
_MOST_SCANS = 500
_MOST_WORK = 2**31  # scans times pixels; of 33 million pixels 64 scans, of which encoders make about ten


def format_of(data: bytes) -> str:
    """Return the format that a file's first bytes show: "PNG", "JPEG", "GIF", "WEBP" or ""."""
    return next((name for name, magic in _MAGIC.items() if data.startswith(magic)), "")


def describe_format(data: bytes) -> str:
    """Return what kind of file some bytes are if they are no readable picture, with advice; "" if unknown.

    Example:
        >>> describe_format(b""), describe_format(b"8BPS..."), describe_format(b"?")
        ('empty', 'PSD: convert it', '')
    """
    if not data:
        return "empty"
    if not data.strip(b"\0"):
        return "nothing but zeros: copy it again"
    return next((what for start, what in _OTHERS if re.match(start, data[:400])), "")


def strip_metadata(data: bytes) -> bytes:
    """Remove chunks of a PNG that change no pixel, such as texts; return other files unchanged.

    Dropped chunks are not unpacked, and may be truncated. The orientation stays, up to 1 MiB.

    Raises:
        CannotReadError: It has far more pieces than a picture of 64 MiB needs.
    """
    if not data.startswith(_PNG):
        return data
    chunks = list(_png_chunks(data))
    moving_is_whole = all(_is_whole(data, start, end) for kind, start, end in chunks if kind in _MOVING)
    return _PNG + b"".join(
        data[start:end]
        for kind, start, end in chunks
        if not kind[:1].islower() or kind == b"tRNS" or (kind in _MOVING and moving_is_whole)
        or (kind in (b"eXIf", *_TEXTS) and _is_orientation(data, kind, start, end))
    )  # fmt: skip


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield kind, start and end of each chunk; a truncated last one ends with the file."""
    at = len(_PNG)
    for _ in range(_MOST_CHUNKS):
        if at >= len(data):
            return
        kind, end = data[at + 4 : at + 8], at + 12 + int.from_bytes(data[at : at + 4], "big")
        yield kind, at, end
        if kind == b"IEND":
            return
        at = end
    raise CannotReadError(f"it is a PNG of too many chunks, expected at most {_MOST_CHUNKS:,}; save it again")


def _is_whole(data: bytes, start: int, end: int) -> bool:
    return zlib.crc32(data[start + 4 : end - 4]) == int.from_bytes(data[end - 4 : end], "big")


def _is_orientation(data: bytes, kind: bytes, start: int, end: int) -> bool:
    """Return True for a whole, short chunk of a kind that may hold the orientation of the picture."""
    if not end - start <= _MOST_TEXT or not _is_whole(data, start, end):
        return False
    if kind == b"eXIf":
        return True
    keyword, _, rest = data[start + 8 : end - 4].partition(b"\0")
    if keyword not in _TURNING:
        return False
    packed = b""
    if kind == b"zTXt":
        packed = rest[1:]
    elif kind == b"iTXt" and rest[:1] == b"\1":
        packed = rest[2:].split(b"\0", 2)[-1]
    try:
        return not packed or bool(unpack_zlib(packed, _MOST_TEXT - 1))
    except CannotReadError:
        return False


def check_scans(data: bytes, pixels: int) -> None:
    """Refuse a JPEG with so many scans that decoding would take very long.

    Raises:
        CannotReadError: It has more than 500 scans, or too many for its size; or very many segments.
    """
    if format_of(data) != "JPEG":
        return
    most = min(_MOST_SCANS, _MOST_WORK // max(pixels, 1))
    at, scans, segments = 2, 0, 0
    while (match := _MARKER.search(data, at)) and match[1] != _EOI:
        at, segments, scans = match.end(), segments + 1, scans + (match[1] == _SOS)
        if scans > most:
            raise CannotReadError(f"it is a JPEG of more than {most} scans, expected some ten; save it again")
        if segments > _MOST_SEGMENTS:
            raise CannotReadError(f"it is a JPEG of more than {_MOST_SEGMENTS:,} segments; save it again")
        if match.end() - match.start() > _MOST_PADDING:
            raise CannotReadError(f"it is a JPEG with gaps of more than {_MOST_PADDING:,} bytes; save it again")
        if match[1] not in _WITHOUT_LENGTH:
            at += int.from_bytes(data[at : at + 2], "big")
