"""Decoding of text files: bytes become text, or an error explains why they are none.

Byte order marks are obeyed, and no other encoding than Unicode's is guessed: a letter that a guess gets wrong would be
another value in silence. A newline alone ends a line, with or without a carriage return before it, as in wc; only a
text without any newline, of an old Mac, has lines that end in carriage returns.
"""

import codecs
import io
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

_ENCODINGS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16's, with which it begins
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Encodings by byte order mark."""

MARKS = tuple(mark for mark, _ in _ENCODINGS)
"""First bytes of a text that tell its encoding."""

_HEAD = 4  # bytes that are looked at


class NotTextError(ValueError):
    """Error for bytes that are no text; its message is the reason."""


def decode_text(data: bytes) -> str:
    r"""Decode bytes as UTF-8, or in the encoding of their byte order mark; ends of lines become ``\n``.

    Raises:
        NotTextError: It is in another encoding, or holds a zero character.

    Example:
        >>> decode_text(b"\xef\xbb\xbfone\r\ntwo\rthree"), decode_text(b"one\rtwo")
        ('one\ntwo\rthree', 'one\ntwo')
        >>> decode_text("grün".encode("utf-16")), decode_text(b"")
        ('grün', '')
        >>> decode_text("grün".encode("latin-1"))
        Traceback (most recent call last):
        mmgen.core.plain_text.NotTextError: it is no text in UTF-8 (line 1 has the byte 0xFC; ... if it is text)
    """
    encoding = _detect_encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise _decoding_error(data, encoding, error) from None
    if "\0" in text:
        raise _zero_character_error(text.count("\n", 0, text.index("\0")) + 1)
    return text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")


def decode_lines(file: BinaryIO, limit: int = 2**28) -> Iterator[str]:
    r"""Yield the decoded lines of a file of any size, each with its newline; see :func:`decode_text`.

    Args:
        file: The file at its beginning.
        limit: Letters that a line may have.

    Raises:
        NotTextError: As :func:`decode_text`, or a line is longer; some lines may have come before.
    """
    head = file.read(_HEAD)
    encoding = _detect_encoding(head)
    file.seek(0)
    text = io.TextIOWrapper(file, encoding, newline="\n")
    number = 0
    try:
        while line := text.readline(limit + 1):
            number += 1
            if len(line) > limit:
                raise NotTextError(f"line {number:,} has more than {limit:,} letters")
            if "\0" in line:
                raise _zero_character_error(number)
            if line.endswith("\n"):
                yield line.removesuffix("\r\n").removesuffix("\n") + "\n"
            else:  # the last line, or a text of an old Mac
                yield from io.StringIO(line, newline=None if number == 1 else "\n")
    except UnicodeDecodeError as error:
        raise _first_decoding_error(file, encoding, error) from None
    finally:
        with suppress(ValueError):  # the file may be closed by now
            text.detach()  # else it would close the file


def _first_decoding_error(file: BinaryIO, encoding: str, error: UnicodeDecodeError) -> NotTextError:
    """Return an error that names the first line of a file that cannot be decoded."""
    if not encoding.startswith("utf-8"):
        return _decoding_error(b"", encoding, error)
    file.seek(0)
    before = 0
    for line in file:
        try:
            line.decode()
        except UnicodeDecodeError as here:
            return _utf8_error(before + _line_number(line[: here.start]), line[here.start])
        before += 1
    return _utf8_error(before, 0)


def _detect_encoding(data: bytes) -> str:
    """Return the text encoding that the first bytes of a file show."""
    return next((encoding for mark, encoding in _ENCODINGS if data.startswith(mark)), "utf-8")


def _zero_character_error(line: int) -> NotTextError:
    return NotTextError(f"it is no text (line {line:,} has a zero character, NUL: save it as text in UTF-8)")


def _decoding_error(data: bytes, encoding: str, error: UnicodeDecodeError) -> NotTextError:
    if encoding.startswith("utf-8"):
        place = error.start + (3 if encoding == "utf-8-sig" else 0)
        return _utf8_error(_line_number(data[:place]), data[place])
    return NotTextError(f"it is no text in {encoding.upper()}, as which it begins (it is damaged: save it as UTF-8)")


def _utf8_error(line: int, byte: int) -> NotTextError:
    return NotTextError(
        f"it is no text in UTF-8 (line {line:,} has the byte 0x{byte:02X}; save it as UTF-8 if it is text)"
    )


def _line_number(before: bytes) -> int:
    """Return the number of the line on which the bytes ``before`` end."""
    return (before.count(b"\n") or before.count(b"\r")) + 1
