"""A published table: its rows and columns, the paper's numbers, and which of our scores stand beside them."""

from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from mmgen.core.errors import format_unknown_name
from mmgen.results.published import published_table
from mmgen.settings.config import Settings

__all__ = ["Column", "Row", "Selector", "Table"]


class Selector(Settings):
    """Conditions that a score must meet to be shown in a row or column of a table."""

    scores: str | None = None
    """File of scores; with wildcards ("vae-*.jsonl") the mean over all matching files."""
    metric: str | None = None
    quantity: str | None = None
    protocol: str | None = None
    posterior: str | None = None
    text_weight: float | None = None
    """Power of p(y|z) that the exact posterior was fitted with."""
    guidance: float | None = None
    """Power of p(y|z) in a guided posterior."""
    guidance_method: str | None = None
    """Method of guidance, such as cfg; with guidance the default is that by candidates."""
    given: int | None = None
    """Number of conditioning attributes."""
    field: str | None = None
    """A detail of the score to show in place of its value ("log_weight_variance"); its standard error is the detail of
    the same name with "_stderr" behind it."""
    details: dict[str, str | float] = Field(default_factory=dict)
    """Values that details of the score must have, such as the share of pairs."""

    def matches(self, file: str, score: Any) -> bool:
        """Return True if a score in ``file`` meets all conditions."""
        keys = {"metric", "quantity", "protocol", "posterior", "text_weight", "guidance", "guidance_method", "given"}
        conditions = self.model_dump(include=keys, exclude_none=True)
        conditions |= {"guidance_method": self.guidance_method or ""} if self.guidance is not None else {}
        fits = all(getattr(score, key) == value for key, value in conditions.items())
        fits = fits and all(score.details.get(key) == value for key, value in self.details.items())
        return fits and (self.scores is None or fnmatchcase(file, self.scores))

    def merge(self, others: "Selector") -> "Selector":
        """Return the conditions of both; those of ``others`` replace the same ones here."""
        conditions: dict[str, Any] = {}
        for part in (self, others):
            conditions |= part.model_dump(include=set(Selector.model_fields), exclude_none=True)
        return Selector(**{**conditions, "details": {**self.details, **others.details}})


class Column(Selector):
    """A column of a published table, such as a posterior or a metric."""

    name: str
    """Heading of the column."""
    published: str = ""
    """Name in the published table, if it is another."""


class Row(Selector):
    """A row of a published table, such as a model."""

    name: str
    """First cell of the row."""
    published: str = ""
    """Name in the published table, if it is another."""
    measured: bool = True
    """Whether we measure anything; false for a row with published numbers only."""
    paper: tuple[float | Literal[""], ...] = ()
    """The published numbers, in the order of the columns, "" where the paper has none; by default those of the
    published table, if the table names one."""


class Table(Settings):
    """A published table, and the conditions by which its cells find our scores."""

    title: str = ""
    """Its quantity, where the experiment has several tables."""
    published: str = ""
    """The published table by its source, "WG Table 2, MNIST": its numbers stand where its rows and columns meet."""
    column: Annotated[tuple[Column, ...], Field(min_length=1)]
    row: Annotated[tuple[Row, ...], Field(min_length=1)]
    against: str = ""
    """Name of a column or of a row that all others are compared with."""
    decimals: Annotated[int, Field(ge=0)] = 2

    @field_validator("row")
    @classmethod
    def _add_published_numbers(cls, value: tuple[Row, ...], info: ValidationInfo) -> tuple[Row, ...]:
        """Fill in the rows' published numbers from the file that ``published`` names."""
        source, columns = info.data.get("published"), info.data.get("column", ())
        if not source:
            return value
        table = published_table(source)
        for part in (*value, *columns):
            if part.published and part.published not in table.names:
                raise ValueError(format_unknown_name(f"part of {source}", part.published, table.names))
        if any(row.paper for row in value):
            raise ValueError(f"paper got numbers and published got {source}, expected one of the two; leave one out")
        rows = []
        for row in value:
            found = [table.number(row.published or row.name, one.published or one.name) for one in columns]
            paper = tuple("" if number is None else number for number in found)
            rows.append(row.model_copy(update={"paper": paper if any(number != "" for number in paper) else ()}))
        if not any(row.paper for row in rows):
            raise ValueError(
                f"published got {source}, none of whose numbers belongs to a cell of this table; give cells its names"
            )
        return tuple(rows)

    @model_validator(mode="after")
    def _check_shape(self) -> "Table":
        for row in self.row:
            if len(row.paper) not in (0, len(self.column)):
                raise ValueError(
                    f"row '{row.name}' has {len(row.paper)} published numbers, expected {len(self.column)}, one for "
                    "each column"
                )
            if not row.measured and not row.paper:
                raise ValueError(f"row '{row.name}' is not measured and has no published numbers; give it some")
        if self.against and self.against not in [
            *(part.name for part in self.column),
            *(part.name for part in self.row),
        ]:
            raise ValueError(f"against got '{self.against}', expected the name of a column or of a row")
        return self
