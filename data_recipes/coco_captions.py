"""COCO captions: your own copy of COCO's pictures, each with several captions in free text.

References:
    Generating Images from Captions with Attention (Mansimov, Parisotto, Ba, Salakhutdinov, 2015), arXiv:1511.02793,
    Section 4.3, and the authors' published code: pictures of 32x32, captions of 7 to 29 words
    Microsoft COCO Captions: Data Collection and Evaluation Server (Chen et al., 2015), arXiv:1504.00325
"""

from pathlib import Path
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from mmgen.data_recipes._own._coco import CocoSource
from mmgen.data_recipes._own._recipe import OwnRecipe
from mmgen.data_recipes._own._source import Source
from mmgen.settings.kinds import Option

__all__ = ["CocoCaptions"]


class CocoCaptions(OwnRecipe):
    """COCO's pictures with their captions, from a folder or zip of train2014, val2014 and annotations.

    All captions of 7 to 29 words of a picture are kept, and each sight of it in training draws one. The split ``given``
    has the training pictures, and the pictures of validation divided into val and test.
    """

    coco: Annotated[Path, Field(exclude=True), Option(metavar="COCO", positional=True)]
    """Folder or zip of pictures, and of captions_train*.json and captions_val*.json."""

    train_annotations: Annotated[Path | None, Field(exclude=True)] = None
    """Captions of the training pictures in COCO's form; by default captions_train*.json in COCO."""

    val_annotations: Annotated[Path | None, Field(exclude=True)] = None
    """Captions of the validation pictures in COCO's form; by default captions_val*.json in COCO."""

    held_out: Annotated[int, Field(ge=1)] = 1000
    """Pictures of validation that become the part test, half of them at most; chosen by their names."""

    fewest_words: Annotated[int, Field(ge=1)] = 7
    """Words that a caption needs to be kept."""

    size: Annotated[int, Field(ge=8, le=1024)] = 32
    """Height and width in pixels that pictures are made."""

    max_words: Annotated[int, Field(ge=1, le=1000)] = 29
    """Words that a caption that is kept has at most."""

    name: ClassVar[str] = "coco-captions"

    @model_validator(mode="after")
    def _check_words(self) -> Self:
        if self.max_words < self.fewest_words:
            raise ValueError(
                f"--max-words got {self.max_words}, expected at least --fewest-words {self.fewest_words}; set more"
            )
        return self

    def open_source(self) -> Source:
        annotations = {"train": self.train_annotations, "val": self.val_annotations}
        return CocoSource(self.coco, annotations, (self.fewest_words, self.max_words), self.held_out)
