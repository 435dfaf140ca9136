"""Folder: your own pictures, in a folder or a zip, with classes by folder or a table of anything about them."""

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from mmgen.data_recipes._own._folder import FolderSource
from mmgen.data_recipes._own._recipe import SPLIT, OwnRecipe
from mmgen.data_recipes._own._source import Source
from mmgen.settings.kinds import Option

__all__ = ["Folder"]


class Folder(OwnRecipe):
    """Pictures with folders as classes (red/x.png), with metadata.csv, .jsonl or .parquet, or with both."""

    pictures: Annotated[Path, Field(exclude=True), Option(metavar="PICTURES", positional=True)]
    """Folder or zip of pictures."""

    metadata: Annotated[Path | None, Field(exclude=True)] = None
    """Table of another name or place (.csv, .tsv, .txt, .jsonl, .json, .parquet): a column file_name, and others."""

    folders_are_classes: Annotated[bool, Field(exclude=True)] = False
    """Take every folder as a class, also those that are called train or test."""

    name: ClassVar[str] = "folder"

    def open_source(self) -> Source:
        split = self.split or ("" if SPLIT in self.ignore else SPLIT)
        return FolderSource(
            self.pictures, self.metadata, self.image_column, self.ignore, split, self.folders_are_classes
        )
