"""A published table: its rows and columns, the paper's numbers, and which of our scores stand beside them."""

from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from mmgen.config import Settings
from mmgen.naming import posterior_called

__all__ = ["Column", "Row", "Selector", "Table"]


class Selector(Settings):
    """Which score is meant; what is left out is said by the other axis of the table, or does not matter."""

    scores: str | None = None
    """File of scores, one that a stage makes; with wildcards ("vae-*.jsonl"), the mean over all files of such names."""
    metric: str | None = None
    quantity: str | None = None
    protocol: str | None = None
    posterior: Annotated[str, AfterValidator(posterior_called)] | None = None
    text_weight: float | None = None
    """Of the posterior "true", the power of p(y|z) that it was fitted with."""
    guidance: float | None = None
    """The power of p(y|z) that tilts the posterior."""
    field: str | None = None
    """Which of its numbers, where it is not the value: one of its further ones ("log_weight_variance"), whose standard
    error has the same name with "_stderr" behind it."""
    extra: dict[str, str | float] = Field(default_factory=dict)
    """What its further numbers must be, such as the share of pairs."""

    def matches(self, file: str, score: Any) -> bool:
        """Whether a score of a file is meant."""
        keys = {"metric", "quantity", "protocol", "posterior", "text_weight", "guidance"}
        wanted = self.model_dump(include=keys, exclude_none=True)
        fits = all(getattr(score, key) == value for key, value in wanted.items())
        fits = fits and all(score.extra.get(key) == value for key, value in self.extra.items())
        return fits and (self.scores is None or fnmatchcase(file, self.scores))

    def with_more(self, other: "Selector") -> "Selector":
        """What both say; the other where both say something."""
        said: dict[str, Any] = {}
        for part in (self, other):
            said |= part.model_dump(include=set(Selector.model_fields), exclude_none=True)
        return Selector(**{**said, "extra": {**self.extra, **other.extra}})


class Column(Selector):
    """One column: a posterior, or a quantity."""

    name: str
    """Its heading."""


class Row(Selector):
    """One row: a quantity, or a model."""

    name: str
    """What is measured, or on what."""
    paper: tuple[float | Literal[""], ...] = ()
    """The published numbers, in the order of the columns, "" where the paper has none; left out, it has none at all."""


class Table(Settings):
    """Rows and columns; the score of a cell is the last that fits what its row and its column say."""

    title: str = ""
    """What it says, where the list has several tables."""
    column: Annotated[tuple[Column, ...], Field(min_length=1)]
    row: Annotated[tuple[Row, ...], Field(min_length=1)]
    against: str = ""
    """Name of a column or of a row that all others are compared with."""
    decimals: Annotated[int, Field(ge=0)] = 2

    @model_validator(mode="after")
    def _fits(self) -> "Table":
        for row in self.row:
            if len(row.paper) not in (0, len(self.column)):
                raise ValueError(
                    f"row '{row.name}' has {len(row.paper)} published numbers, expected {len(self.column)}, one for "
                    "each column"
                )
        if self.against and self.against not in [
            *(part.name for part in self.column),
            *(part.name for part in self.row),
        ]:
            raise ValueError(f"against got '{self.against}', expected the name of a column or of a row")
        return self
