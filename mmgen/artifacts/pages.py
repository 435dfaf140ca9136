"""Pages and pictures, which are replaced silently only if mmgen made them."""

import os
import re
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from mmgen.artifacts.files import check_writable, note_output
from mmgen.artifacts.lineage import check_output
from mmgen.core.errors import UsageError
from mmgen.core.parsing import read_beginning

MAKER = "mmgen"
"""The name in files of pictures: Software of PNG, Creator of PDF and SVG."""
_SOFTWARE = 0x0131  # Exif's tag
EXIF = struct.pack("<2sHIHHHIII6s", b"II", 42, 8, 1, _SOFTWARE, 2, 6, 26, 0, MAKER.encode() + b"\0")
"""The same in pictures whose format takes Exif data alone."""
_MARKS = {
    "report": (b'<meta name="generator" content="mmgen report">',),
    "explore": (b'<meta name="generator" content="mmgen explore">',),
    "picture": (b"Software\0mmgen", b"/Creator (mmgen)", b"<dc:title>mmgen</dc:title>", EXIF),
}
_MODEL = re.compile(rb'<meta name="mmgen-model" content="([0-9a-f]{64})">')
_NEAR = 2**14
"""Bytes at either end of a file among which its mark is."""


def check_page(path: Path, kind: Literal["report", "explore", "picture"], overwrite: bool, *inputs: Path) -> None:
    """Raise an error, before work starts, if a page or picture may not be written to ``path``.

    Args:
        path: File to write.
        kind: What it will be.
        overwrite: Whether the user allows to replace it.
        inputs: Files that the work reads.

    Raises:
        UsageError: ``path`` is one of ``inputs`` or an artifact, has another ending than a page, or is a file that does
            not say that mmgen made it as one of this kind.
        ArtifactError: It cannot be written there.
    """
    check_output(path, None, *inputs)
    if kind != "picture" and path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--output got {path}, expected a name ending in .html, for a page of mmgen {kind}")
    if not overwrite and not is_replaceable(path, kind):
        what = "picture that mmgen made" if kind == "picture" else f"page of mmgen {kind}"
        raise UsageError(
            f"{path} is there already and is no {what}, so it would be lost; use another --output, or "
            "--overwrite to replace it"
        )


def is_replaceable(path: Path, kind: Literal["report", "explore", "picture"]) -> bool:
    """Return whether ``path`` is missing or empty, or a page or picture of this kind that mmgen made."""
    if not os.path.exists(path) or not os.path.getsize(path):
        return True
    ends = _read_ends(path)
    return any(mark in ends for mark in _MARKS[kind])


def check_folder(path: Path, overwrite: bool) -> None:
    """Raise an error, before work starts, if a folder of pictures may not be written to ``path``.

    Raises:
        UsageError: Something is there that would be lost.
        ArtifactError: The file system refuses.
    """
    is_folder = path.is_dir() and not path.is_symlink()
    there = [*path.iterdir()] if is_folder else [path] * os.path.lexists(path)
    ours = [is_folder and each.is_file() and is_replaceable(each, "picture") for each in there]
    if there and not (overwrite and all(ours)):
        other = "" if all(ours) else f" with {there[ours.index(False)].name}, which mmgen did not draw"
        raise UsageError(
            f"{path} is there already{other}; choose another folder, or --overwrite to replace pictures of mmgen alone"
        )
    check_writable(path)
    note_output(path)


def find_page_link(
    out: Path, kind: Literal["report", "explore"], models: Iterable[str], page: Path | None = None
) -> str:
    """Return the relative link from the page ``out`` to the page of ``kind`` about the same models; "" without one.

    Args:
        out: The page with the link.
        kind: The other one.
        models: Content ids of the models that ``out`` shows.
        page: The other page, which need not be there yet; by default report.html or explore.html beside ``out``, if
            one of the models is on it.

    Raises:
        UsageError: ``page`` is no page, another kind of page, or ``out`` itself.
    """
    target = page or out.with_name(f"{kind}.html")
    start = read_beginning(target).encode()
    is_page = _MARKS[kind][0] in start
    if page is None:
        marks = [f'<meta name="mmgen-model" content="{model}">'.encode() for model in models]
        if not is_page or not any(mark in start for mark in marks):
            return ""
    elif page.suffix.lower() not in (".html", ".htm") or page.absolute() == out.absolute():
        raise UsageError(f"--{kind} got {page}, expected another page, made by mmgen {kind}, such as {kind}.html")
    elif os.path.lexists(page) and not is_page:
        raise UsageError(f"--{kind} got {page}, a file that mmgen {kind} did not make; name a page that it made")
    return quote(Path(os.path.relpath(target, out.parent)).as_posix())


def read_page_models(path: Path) -> tuple[str, tuple[str, ...]] | None:
    """Return the kind of a page, "report" or "explore", and the content ids of its models; None for other files."""
    start = read_beginning(path).encode()
    kind = next((kind for kind in ("report", "explore") if _MARKS[kind][0] in start), None)
    return None if kind is None else (kind, tuple(found.decode() for found in _MODEL.findall(start)))


def _read_ends(path: Path) -> bytes:
    """Return the first and last bytes of a file; b"" if it cannot be read."""
    try:
        with open(path, "rb") as file:
            start = file.read(_NEAR)
            file.seek(max(0, os.path.getsize(path) - _NEAR))
            return start + file.read(_NEAR)
    except OSError:
        return b""
