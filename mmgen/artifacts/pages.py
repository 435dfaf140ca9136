"""Pages and pictures, which are replaced without a word where mmgen made them, and only then."""

import os
from pathlib import Path
from typing import Literal

from mmgen.artifacts.lineage import check_output
from mmgen.errors import UsageError

__all__ = ["MAKER", "check_page"]

MAKER = "mmgen"
"""Name that files of pictures bear, as programs write theirs: Software of PNG, Creator of PDF and SVG."""
_MARKS = {
    "report": (b'<meta name="generator" content="mmgen report">',),
    "explore": (b'<meta name="generator" content="mmgen explore">',),
    "picture": (b"Software\0mmgen", b"/Creator (mmgen)", b"<dc:title>mmgen</dc:title>"),
}
_NEAR = 2**14
"""Bytes at either end of a file among which its mark is."""


def check_page(path: Path, kind: Literal["report", "explore", "picture"], overwrite: bool, *inputs: Path) -> None:
    """Make sure that a page or a picture may be written to ``path``; asked before work starts.

    Args:
        path: File to write.
        kind: What it will be.
        overwrite: Whether the user said that what is there may go.
        inputs: Files that the work reads.

    Raises:
        UsageError: ``path`` is one of ``inputs`` or an artifact, or a file that does not say that mmgen made it as one
            of this kind.
        ArtifactError: It cannot be written there.
    """
    check_output(path, None, *inputs)
    if overwrite or not os.path.exists(path) or not os.path.getsize(path):
        return
    ends = _ends(path)
    if not any(mark in ends for mark in _MARKS[kind]):
        what = "picture that mmgen made" if kind == "picture" else f"page of mmgen {kind}"
        raise UsageError(
            f"{path} is there already and is no {what}, so it would be lost; use another --output, or "
            "--overwrite to replace it"
        )


def _ends(path: Path) -> bytes:
    """What a file begins and ends with; b"" of one that cannot be read."""
    try:
        with open(path, "rb") as file:
            start = file.read(_NEAR)
            file.seek(max(0, os.path.getsize(path) - _NEAR))
            return start + file.read(_NEAR)
    except OSError:
        return b""
