"""Output folders of commands of several stages: created if missing, removed if left empty."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mmgen.core.errors import MmgenError, reason_of

__all__ = ["folder_of_run"]


@contextmanager
def folder_of_run(folder: Path, notes: Collection[str] = ()) -> Iterator[None]:
    """Create a folder and its parents for this block; remove those that stay empty after an error."""
    created: list[Path] = []
    try:
        try:
            created = [place for place in (folder, *folder.parents) if not place.exists()]
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = "it is there and is no folder" if isinstance(error, FileExistsError) else reason_of(error)
            raise MmgenError(f"cannot use the folder {folder}: {why}; choose another with --output") from None
        yield
    except BaseException:
        with suppress(OSError):  # somebody else may be at work there too
            if folder in created and all(path.name in notes for path in folder.iterdir()):
                for name in notes:
                    (folder / name).unlink(missing_ok=True)
        for place in created:
            with suppress(OSError):  # one that holds something stays
                place.rmdir()
        raise
