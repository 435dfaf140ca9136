"""Output folders of commands of several stages: created if missing, removed if left empty."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mmgen.core.errors import MmgenError, reason_of

__all__ = ["create_output_folder"]


@contextmanager
def create_output_folder(folder: Path, disposable: Collection[str] = ()) -> Iterator[None]:
    """Create a folder and its parents for this block; if the block fails, remove those that are still empty.

    Args:
        folder: The output folder.
        disposable: Names of files that are removed with an otherwise empty folder.

    Raises:
        MmgenError: The folder cannot be created.
    """
    created: list[Path] = []
    try:
        try:
            created = [path for path in (folder, *folder.parents) if not path.exists()]
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = "it is there and is no folder" if isinstance(error, FileExistsError) else reason_of(error)
            raise MmgenError(f"cannot use the folder {folder}: {why}; choose another with --output") from None
        yield
    except BaseException:
        with suppress(OSError):  # another process may use it too
            if folder in created and all(path.name in disposable for path in folder.iterdir()):
                for name in disposable:
                    (folder / name).unlink(missing_ok=True)
        for path in created:
            with suppress(OSError):  # one with content stays
                path.rmdir()
        raise
