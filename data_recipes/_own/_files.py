"""Access to files in a folder or a zip by relative names; files outside are refused."""

import contextlib
import os
import posixpath
import shlex
import stat
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from mmgen.core.errors import DataError, advise_path, reason_of
from mmgen.core.foreign import CannotReadError, open_zip, read_file, read_member
from mmgen.core.parsing import printable
from mmgen.data_recipes._streams import part_of

PICTURE_ENDINGS = (
    ".png", ".apng", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".gif", ".bmp", ".dib", ".ppm", ".pgm", ".pbm", ".pnm",
)  # fmt: skip
"""Endings of pictures; their content is checked when they are read."""

_DEPTH = 16  # folders in folders
_MOST_FILES = 10_000_000
_MOST_NAMED = 3
_ENCRYPTED = 1  # bit of a member in a zip

_UTF8 = 0x800  # bit of a member whose name is UTF-8
_HIDDEN = "hidden files, and folders that begin with . @ # or $"

_Place = Path | zipfile.ZipInfo


def list_examples(names: list[str], noun: str = "") -> str:
    """List the first names for a sentence, with the number of others: "a.png, b.png, c.png and 7 more"."""
    examples = ", ".join(f"'{printable(name, 80)}'" for name in names[:_MOST_NAMED])
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return f"{examples}{more}{f' {noun}' if noun else ''}"


def shell_quoted(name: str) -> str:
    """Quote a column's name for the shell.

    Example:
        >>> shell_quoted("age"), shell_quoted("hair colour")
        ('age', "'hair colour'")
    """
    return shlex.quote(printable(name, 60))


def is_hidden(name: str, is_folder: bool = True) -> bool:
    """Return whether a file or folder of this name is left out: what programs keep beside the user's files.

    Example:
        >>> [is_hidden(name) for name in (".git", "@eaDir", "#recycle", "$RECYCLE.BIN", "red")]
        [True, True, True, True, False]
        >>> is_hidden(".DS_Store", is_folder=False), is_hidden("#1.png", is_folder=False)
        (True, False)
    """
    return name not in (".", "..") and name.startswith((".", "@", "#", "$") if is_folder else ".")


def stays_inside(name: str) -> bool:
    """Return whether a relative path stays inside its folder, without ``..``.

    Example:
        >>> [stays_inside(name) for name in ("red/x.png", "../x.png", "/etc/passwd", "C:/x.png", "a/../x.png", "")]
        [True, False, False, False, False, False]
    """
    parts = PurePosixPath(name).parts
    drive = len(name) > 1 and name[1] == ":"
    return bool(parts) and not drive and "\0" not in name and "\\" not in name and not {"..", "/", "//"} & set(parts)


class Files:
    """Files in the user's folder or zip, by name.

    If everything lies in one folder inside, names are relative to it, so that a zip of a folder equals the folder.
    Hidden files and links to folders are left out; a link to a file outside is refused. Backslashes in names, as in
    zips of Windows, count as slashes.

    Args:
        path: The folder or zip.

    Attributes:
        names: Names of all files, sorted, with slashes.
        left_out: Number of files that were left out, by reason.
        common_folder: The one folder that everything lies in, with a slash; "" where there is none.

    Raises:
        DataError: The path is missing or neither folder nor zip, or a name leads outside, occurs twice, or is in no
            known encoding.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.left_out: Counter[str] = Counter()
        self._zip: zipfile.ZipFile | None = None
        try:
            places: dict[str, _Place] = {}
            for name, place in self._zip_members() if not path.is_dir() else self._folder_members(path, "", 0):
                if name in places:
                    raise DataError(f"{path} holds '{printable(name, 100)}' twice; make it again, or remove one")
                places[name] = place
        except BaseException:
            self.close()
            raise
        self.common_folder = _common_folder(places)
        self._places = {name[len(self.common_folder) :]: place for name, place in places.items()}
        self.names = sorted(self._places)

    def close(self) -> None:
        """Close the zip."""
        if self._zip is not None:
            self._zip.close()

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def is_file(self, name: str, path: Path) -> bool:
        """Return whether the file ``name`` is the file at ``path``."""
        place = self._places[name]
        return isinstance(place, Path) and place.name == path.name and os.path.samefile(place, path)

    def read(self, name: str, most: int) -> bytes:
        """Read a whole file; raise an error if it has more than ``most`` bytes."""
        place = self._places[name]
        if isinstance(place, Path):
            return read_file(place, most)
        assert self._zip is not None, "places in a zip come from one"
        return read_member(self._zip, place, most)

    def describe_file(self, name: str) -> str:
        """Name a file and its folder or zip, for errors."""
        return f"{printable(self.common_folder + name)} in {self.path}"

    def _folder_members(self, folder: Path, prefix: str, depth: int) -> Iterator[tuple[str, _Place]]:
        try:
            with os.scandir(folder) as entries:
                sorted_entries = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            reason = f"cannot look into {folder}: {reason_of(error)}"
            raise DataError(f"{reason}; make it readable, or move it elsewhere") from None
        for entry in sorted_entries:
            # Names are UTF-8, whatever a locale (C) takes them for.
            name = prefix + os.fsencode(entry.name).decode("utf-8", "surrogateescape")
            name = self._safe_name(name) if "\\" in entry.name else name
            try:
                is_folder = entry.is_dir()
            except OSError:  # a loop of links
                self.left_out["links that cannot be followed"] += 1
                continue
            if is_hidden(entry.name, is_folder):
                self.left_out[_HIDDEN] += 1
            elif is_folder:
                if entry.is_symlink() or depth == _DEPTH:
                    reason = "links to folders" if entry.is_symlink() else f"folders more than {_DEPTH} deep"
                    self.left_out[reason] += 1
                else:
                    yield from self._folder_members(Path(entry.path), f"{name}/", depth + 1)
            elif entry.is_symlink() and not self._is_within_source(entry.path):
                raise DataError(
                    f"{printable(str(Path(self.path, name)))} is a link to something that is not in {self.path}; copy "
                    "the file there, or remove the link"
                )
            else:
                yield name, Path(entry.path)

    def _safe_name(self, name: str) -> str:
        """Return a name with slashes between its folders; refuse one that leads out of the source."""
        plain = str(PurePosixPath(name.replace("\\", "/")))
        if not stays_inside(plain):
            raise DataError(
                f"{self.path} holds the name {printable(name, 100)!r}, which leads out of it; make the zip again"
            )
        return plain

    def _is_within_source(self, path: str) -> bool:
        root = os.path.realpath(self.path)
        return os.path.commonpath([root, os.path.realpath(path)]) == root

    def _zip_members(self) -> Iterator[tuple[str, _Place]]:
        if not os.path.lexists(self.path):
            advice = advise_path(self.path, "name the one that holds your pictures")
            raise DataError(f"there is no folder or zip {self.path}; {advice}")
        try:
            self._zip = open_zip(self.path)
        except CannotReadError as error:
            raise DataError(
                f"cannot read {self.path}: {error}; name a folder or a zip of pictures: unpack what is packed otherwise"
            ) from None
        hidden: set[str] = set()
        for number, member in enumerate(self._zip.infolist()):
            if number >= _MOST_FILES:
                raise DataError(f"{self.path} holds more than {_MOST_FILES:,} files; take fewer")
            if member.filename.endswith(("/", "\\")):
                continue
            name = self._safe_name(member.filename)
            known = name.isascii() or member.flag_bits & _UTF8
            if not known:  # zipfile takes such bytes for code page 437
                with contextlib.suppress(UnicodeError):
                    name, known = self._safe_name(member.filename.encode("cp437").decode("utf-8")), True
            if outermost := _hidden_part(name):
                hidden.add(outermost)
            elif stat.S_ISLNK(member.external_attr >> 16):
                self.left_out["links in the zip"] += 1
            elif member.flag_bits & _ENCRYPTED:
                raise DataError(
                    f"{self.path} is a zip with a password, which '{printable(name, 100)}' asks for; unpack it and "
                    "name the folder"
                )
            elif not known:
                raise DataError(
                    f"{self.path} holds a name in no known encoding ('{printable(name, 100)}'); unpack it and name the "
                    "folder, or make the zip again with names in UTF-8"
                )
            else:
                yield name, member
        if hidden:
            self.left_out[_HIDDEN] = len(hidden)


def _hidden_part(name: str) -> str:
    """Return the outermost folder of a name that is hidden, or the name if its file is; "" if nothing is."""
    parts = name.split("/")
    for level, part in enumerate(parts):
        if is_hidden(part, level < len(parts) - 1):
            return "/".join(parts[: level + 1])
    return ""


def _common_folder(names: dict[str, _Place]) -> str:
    """Return the folder that holds all files, with a slash at its end; folders named as parts do not count."""
    if not names:
        return ""
    folders = []
    for folder in posixpath.commonpath([posixpath.dirname(name) for name in names]).split("/"):
        if part_of(folder):
            break
        folders.append(folder)
    return "".join(f"{folder}/" for folder in folders if folder)
