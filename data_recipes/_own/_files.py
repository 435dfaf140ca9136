"""Access to a folder or a zip by relative names, restricted to files inside."""

import os
import posixpath
import shlex
import stat
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from mmgen.core.errors import DataError, reason_of
from mmgen.core.foreign import CannotReadError, open_zip, read_file, read_member
from mmgen.core.parsing import printable
from mmgen.data_recipes._left_out import reason_to_skip
from mmgen.data_recipes._part_names import part_of

__all__ = ["PICTURES", "Files", "inside", "listed", "shell_quoted"]

PICTURES = (
    ".png",
    ".apng",
    ".jpg",
    ".jpeg",
    ".jpe",
    ".jfif",
    ".webp",
    ".gif",
    ".bmp",
    ".dib",
    ".ppm",
    ".pgm",
    ".pbm",
    ".pnm",
)
"""Endings of pictures; reading tells whether they are ones."""

_DEPTH = 16  # folders in folders
_MOST_FILES = 10_000_000
_SAID = 3
_ENCRYPTED = 1  # bit of a member in a zip

_KINDS = dict.fromkeys((".csv", ".tsv", ".jsonl", ".json", ".parquet", ".xlsx", ".txt"), "a table") | dict.fromkeys(
    (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff"), "a picture"
)
"""Kinds of files that users name in place of their folder."""

_Place = Path | zipfile.ZipInfo


def listed(names: list[str], what: str = "") -> str:
    """Return some names for a sentence: "a.png, b.png, c.png and 7 more"."""
    examples = ", ".join(f"'{printable(name, 80)}'" for name in names[:_SAID])
    more = f" and {len(names) - _SAID:,} more" if len(names) > _SAID else ""
    return f"{examples}{more}{f' {what}' if what else ''}"


def shell_quoted(name: str) -> str:
    """Quote a column's name for the shell.

    Example:
        >>> shell_quoted("age"), shell_quoted("hair colour")
        ('age', "'hair colour'")
    """
    return shlex.quote(printable(name, 60))


def inside(name: str) -> bool:
    """Return whether a name with slashes stays in the folder that it is relative to.

    Example:
        >>> [inside(name) for name in ("red/x.png", "../x.png", "/etc/passwd", "C:/x.png", "a/../x.png", "")]
        [True, False, False, False, False, False]
    """
    parts = PurePosixPath(name).parts
    drive = len(name) > 1 and name[1] == ":"
    return bool(parts) and not drive and "\0" not in name and "\\" not in name and not {"..", "/", "//"} & set(parts)


class Files:
    """A folder or a zip.

    Where everything lies in one folder inside, names are relative to that, so that a zip of a folder is the folder.
    Files that are hidden or of a system are passed over, and so are links to folders; a link to a file outside is
    refused. Backslashes in names, as in zips of Windows, are slashes.

    Args:
        path: The folder or zip.

    Attributes:
        names: Names of all files, sorted, with slashes.
        left_out: How many files were passed over, by reason.
        within: The one folder that everything lies in, with a slash; "" where there is none.

    Raises:
        DataError: There is none, it is neither, or it holds names that lead out of it, or one name twice.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.left_out: Counter[str] = Counter()
        self._zip: zipfile.ZipFile | None = None
        if what := _KINDS.get(path.suffix.lower()) if path.is_file() else None:
            raise DataError(
                f"{path} is {what}, expected a folder or a zip; name the folder that holds it, {path.parent}"
            )
        try:
            places: dict[str, _Place] = {}
            for name, place in self._members() if not path.is_dir() else self._walk(path, "", 0):
                if name in places:
                    raise DataError(f"{path} holds '{printable(name, 100)}' twice; make it again, or remove one")
                places[name] = place
        except BaseException:
            self.close()
            raise
        self.within = _one_folder(places)
        self._places = {name[len(self.within) :]: place for name, place in places.items()}
        self.names = sorted(self._places)

    def close(self) -> None:
        """Close the zip."""
        if self._zip is not None:
            self._zip.close()

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def is_file(self, name: str, path: Path) -> bool:
        """Return whether a file is the one at a path."""
        place = self._places[name]
        return isinstance(place, Path) and place.name == path.name and os.path.samefile(place, path)

    def read(self, name: str, most: int) -> bytes:
        """Read a whole file of at most ``most`` bytes."""
        place = self._places[name]
        if isinstance(place, Path):
            return read_file(place, most)
        assert self._zip is not None, "places in a zip come from one"
        return read_member(self._zip, place, most)

    def in_words(self, name: str) -> str:
        """Return a file in words."""
        return f"{printable(self.within + name)} in {self.path}"

    def _walk(self, folder: Path, before: str, depth: int) -> Iterator[tuple[str, _Place]]:
        try:
            with os.scandir(folder) as entries:
                every = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            why = f"cannot look into {folder}: {reason_of(error)}"
            raise DataError(f"{why}; make it readable, or move it elsewhere") from None
        for entry in every:
            name = self._safe_name(before + entry.name) if "\\" in entry.name else before + entry.name
            if why := reason_to_skip(entry.name, not entry.is_dir()):
                self.left_out[why] += 1
            elif entry.is_dir():
                if entry.is_symlink() or depth == _DEPTH:
                    why = "links to folders" if entry.is_symlink() else f"folders more than {_DEPTH} deep"
                    self.left_out[why] += 1
                else:
                    yield from self._walk(Path(entry.path), f"{name}/", depth + 1)
            elif entry.is_symlink() and not self._stays(entry.path):
                raise DataError(
                    f"{printable(str(Path(self.path, name)))} is a link to something that is not in {self.path}; copy "
                    "the file there, or remove the link"
                )
            else:
                yield name, Path(entry.path)

    def _safe_name(self, name: str) -> str:
        """Return a name with slashes between its folders; refuse one that leads out of the source."""
        plain = str(PurePosixPath(name.replace("\\", "/")))
        if not inside(plain):
            raise DataError(
                f"{self.path} holds the name {printable(name, 100)!r}, which leads out of it; make the zip again"
            )
        return plain

    def _stays(self, path: str) -> bool:
        root = os.path.realpath(self.path)
        return os.path.commonpath([root, os.path.realpath(path)]) == root

    def _members(self) -> Iterator[tuple[str, _Place]]:
        if not os.path.lexists(self.path):
            raise DataError(f"there is no folder or zip {self.path}; name the one that holds your pictures")
        try:
            self._zip = open_zip(self.path)
        except CannotReadError as error:
            raise DataError(f"cannot read {self.path}: {error}; expected a folder or a zip of pictures") from None
        left_out: set[str] = set()
        for number, member in enumerate(self._zip.infolist()):
            if member.filename.endswith(("/", "\\")):
                continue
            name = self._safe_name(member.filename)
            why, above = _reason_to_skip(name)
            if why:
                self.left_out[why] += above not in left_out
                left_out.add(above)
            elif stat.S_ISLNK(member.external_attr >> 16):
                self.left_out["links in the zip"] += 1
            elif member.flag_bits & _ENCRYPTED:
                raise DataError(
                    f"{self.path} is a zip with a password, which '{printable(name, 100)}' asks for; unpack it and "
                    "name the folder"
                )
            else:
                yield name, member
            if number >= _MOST_FILES:
                raise DataError(f"{self.path} holds more than {_MOST_FILES:,} files; take fewer")


def _reason_to_skip(name: str) -> tuple[str, str]:
    """Return why a member of a zip is no data, "" if it is; and the file or topmost folder that is left out."""
    parts = name.split("/")
    for level, part in enumerate(parts):
        if why := reason_to_skip(part, level == len(parts) - 1):
            return why, "/".join(parts[: level + 1])
    return "", ""


def _one_folder(names: dict[str, _Place]) -> str:
    """Return the folders that all names begin with, with slashes, without names of parts of a split."""
    if not names:
        return ""
    folders = []
    for folder in posixpath.commonpath([posixpath.dirname(name) for name in names]).split("/"):
        if part_of(folder):
            break
        folders.append(folder)
    return "".join(f"{folder}/" for folder in folders if folder)
