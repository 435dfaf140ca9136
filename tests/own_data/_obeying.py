"""The inputs that people have brought, and how to do what a refusal of one says."""

import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

CASES = Path(__file__).parents[3] / "shared" / "cases"

READ, REFUSED = 0, 1
FOLDER = "folder {} --dry-run --size 32"

Obey = Callable[[Path], str]
"""Does in a copy of the cases what the message says; returns the command to try next, {} being what it reads."""


def unpack(where: str, command: str = FOLDER, encoding: str | None = None) -> Obey:
    """Unpack all archives of a folder, or the one file."""

    def obey(root: Path) -> str:
        path = root / where
        to = path if path.is_dir() else path.parent / "unpacked"
        for archive in [*path.iterdir()] if path.is_dir() else [path]:
            if tarfile.is_tarfile(archive):
                with tarfile.open(archive) as opened:
                    opened.extractall(to, filter="data")
            elif zipfile.is_zipfile(archive):
                with zipfile.ZipFile(archive, metadata_encoding=encoding) as opened:
                    opened.extractall(to)
        return command.format(to.relative_to(root))

    return obey


def change_lines(keep: Callable[[str], bool], *files: str) -> Callable[[Path], None]:
    """Take out of all files the lines that one of them should not have."""

    def change(root: Path) -> None:
        rows = list(zip(*((root / name).read_text(encoding="utf-8").split("\n") for name in files), strict=True))
        kept = [row for row in rows[:-1] if all(map(keep, row))]
        for number, name in enumerate(files):
            (root / name).write_text("".join(f"{row[number]}\n" for row in kept), encoding="utf-8")

    return change


def then(change: Callable[[Path], None], command: str) -> Obey:
    def obey(root: Path) -> str:
        change(root)
        return command

    return obey


def write_files(*names: str) -> Callable[[Path, bytes], None]:
    def write(root: Path, data: bytes) -> None:
        for name in names:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)

    return write
