"""Checks of the bytes of PNG and JPEG files before decoding: unused chunks, and chunks that would take for ever."""

import re

from mmgen.core.foreign import CannotReadError

_PNG = b"\x89PNG\r\n\x1a\n"
_MAGIC = {"PNG": b"\x89PNG", "JPEG": b"\xff\xd8\xff", "GIF": b"GIF8", "WEBP": b"RIFF"}

_MOST_CHUNKS = 200_000  # a PNG of 64 MiB in pieces of 512 bytes has fewer
_KEPT = (b"tRNS", b"eXIf", b"acTL", b"fcTL", b"fdAT")
"""Chunks of a PNG that change what is seen, besides those that every picture must have."""

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


def strip_metadata(data: bytes) -> bytes:
    """Remove chunks of a PNG that change no pixel, such as texts; return other files unchanged.

    Raises:
        CannotReadError: It has far more pieces than a picture of 64 MiB needs.
    """
    if not data.startswith(_PNG):
        return data
    pieces, at = [_PNG], len(_PNG)
    for _ in range(_MOST_CHUNKS):
        kind, end = data[at + 4 : at + 8], at + 12 + int.from_bytes(data[at : at + 4], "big")
        if kind in _KEPT or not kind[:1].islower():
            pieces.append(data[at:end])
        if kind == b"IEND" or end >= len(data):
            return b"".join(pieces)
        at = end
    raise CannotReadError(f"it is a PNG of too many chunks, expected at most {_MOST_CHUNKS:,}; save it again")


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
