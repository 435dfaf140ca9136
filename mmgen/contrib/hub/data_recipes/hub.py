"""Hub: any image dataset of the Hugging Face hub, or a copy on your disk: a folder, Parquet files, WebDataset."""

import os
from typing import Annotated, Any, ClassVar

from pydantic import Field

from mmgen.contrib.hub.data_recipes._hub import HubSource
from mmgen.data_recipes._own._recipe import OwnRecipe
from mmgen.data_recipes._own._source import Source
from mmgen.settings.kinds import Option

__all__ = ["Hub"]


class Hub(OwnRecipe):
    """Pictures and columns read by the library datasets (extra hub); no code of a dataset is run."""

    dataset: Annotated[str, Field(exclude=True), Option(metavar="NAME|DIR", positional=True)]
    """Name on the hub (owner/name), or a folder, .parquet, .arrow or .tar on your disk."""

    subset: str | None = None
    """Configuration of a dataset that has several."""

    revision: str | None = None
    """Branch, tag or commit of a dataset of the hub."""

    name: ClassVar[str] = "hub"
    fetches_anything: ClassVar[bool] = True

    def open_source(self) -> Source:
        return HubSource(self.dataset, self.subset, self.revision, self.image_column, self.ignore)

    def source_settings(self) -> dict[str, Any]:
        return {} if os.path.exists(self.dataset) else {"dataset": self.dataset}
