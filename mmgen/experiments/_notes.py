"""Notes of which command made a file, where the file cannot tell it or tells it in other words.

They lie in ``.stages`` beside the files: a line that says which content is meant, and the command.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from mmgen.artifacts import read_header, write_text_atomic
from mmgen.artifacts.files import own_folder
from mmgen.core.errors import ArtifactError
from mmgen.core.foreign import CannotReadError, read_file
from mmgen.core.parsing import Malformed, read_bounded
from mmgen.experiments._stages import Stage
from mmgen.experiments._typed import words

__all__ = ["Note", "has_header", "note_of", "remember"]

_MOST = 2**30  # bytes; no page and no table of scores has more


@dataclass(frozen=True)
class Note:
    """What was noted of a file.

    Attributes:
        command: The command that has made it, or has found it to be its own.
        content: What the file held then, as :func:`_content_of` says it; "" in notes of earlier versions.
    """

    command: str
    content: str

    def is_of(self, stage: Stage, path: Path) -> bool:
        """Whether it says that the stage's command made the file as it is now."""
        return words(self.command) == words(stage.typed) and self.content in ("", _content_of(path))


def remember(stage: Stage, folder: Path) -> None:
    """Note that a stage's command has made its file, or has found it to be its own."""
    path = _path(stage, folder)
    for place in [*path.relative_to(folder).parents][-2::-1]:  # .stages, and what is in it
        own_folder(folder / place)
    write_text_atomic(path, f"{_content_of(folder / stage.makes)}\n{stage.typed}\n")


def note_of(stage: Stage, folder: Path) -> Note | None:
    """The note of a stage's file; None where there is none."""
    try:
        first, _, rest = read_bounded(_path(stage, folder)).strip().partition("\n")
    except (OSError, Malformed):
        return None
    return Note(rest, first) if rest else Note(first, "")


def has_header(path: Path) -> bool:
    """Whether a file of this name is an artifact, which tells where it comes from."""
    return path.suffix in (".h5", ".safetensors")


def _path(stage: Stage, folder: Path) -> Path:
    return folder / ".stages" / f"{stage.makes}.txt"


def _content_of(path: Path) -> str:
    """The content id of an artifact, the sha256 of any other file.

    Raises:
        ArtifactError: It is no file that can be read.
    """
    if has_header(path):
        return read_header(path).content_id
    try:
        return hashlib.sha256(read_file(path, _MOST)).hexdigest()
    except CannotReadError as error:
        raise ArtifactError(f"cannot read {path}: {error}; check the path") from None
