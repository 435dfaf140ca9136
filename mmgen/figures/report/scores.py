"""Tables of scores for a page, with published numbers beside one's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mmgen.results.compared import Column, ComparedTable
from mmgen.results.comparing import Entry, compare_entries
from mmgen.results.conditions import Conditions
from mmgen.results.groups import Group
from mmgen.results.number import Number
from mmgen.results.published import PublishedTable, published_tables
from mmgen.results.score import Score

__all__ = ["AttributeTable", "OtherData", "Row", "ScoreTable", "score_tables"]


@dataclass(frozen=True)
class Row:
    """One model and posterior, or one published method.

    Attributes:
        label: Name of the file or method.
        posterior: Where z came from; the source of a published number.
        cells: One for each column; None where nothing was measured.
        published: Whether it comes from a paper.
    """

    label: str
    posterior: str
    cells: list[Number | None]
    published: bool = False


@dataclass(frozen=True)
class OtherData:
    """Published numbers of other data that the same recipe makes.

    Attributes:
        source: The paper and its table.
        dataset: Its data, and what its errors are.
        differences: How one's own data differ: "size 32 instead of 64".
        rows: Its numbers, in the columns of the table that they stand below.
    """

    source: str
    dataset: str
    differences: list[str]
    rows: list[Row]


@dataclass(frozen=True)
class AttributeTable:
    """Scores by attribute.

    Attributes:
        names: The attributes.
        rows: Posterior, column of the score ("2 given"), and for each attribute its number, else "–".
    """

    names: list[str]
    rows: list[tuple[str, str, list[str]]]


@dataclass(frozen=True)
class ScoreTable:
    """All scores of one metric by one protocol, on the same data, by the same attribute classifier.

    Attributes:
        metric: "correctness".
        about: Conditions in the heading: "protocol exact, split iid, judge judge-2".
        unit: "%", "nats", ...
        better: "higher", "lower" or "neither".
        columns: Headings: "4 given", "log p(x)".
        rows: One's own first, then the papers'.
        footnotes: Meaning of the errors, datasets of the published numbers, scores that were measured twice.
        others: Published numbers of other data by the same recipe, which are not to be compared.
        explained: Meaning of the protocol and the columns, in a sentence or two.
        bounds: The same measure of real pictures, and by chance, in the same columns.
        by_attribute: The same scores attribute by attribute; None where they are of no attributes.
    """

    metric: str
    about: str
    unit: str
    better: str
    columns: list[str]
    rows: list[Row]
    footnotes: list[str]
    others: list[OtherData] = field(default_factory=list)
    explained: str = ""
    bounds: list[Row] = field(default_factory=list)
    by_attribute: AttributeTable | None = None


def score_tables(
    scores: Sequence[Score],
    names: Mapping[str, str],
    *,
    data: Mapping[str, Mapping[str, Any]] | None = None,
    models: Mapping[str, str] | None = None,
) -> list[ScoreTable]:
    """Return scores as tables, one for all that may be compared, with the papers' numbers for the same dataset below.

    Args:
        scores: The scores.
        names: Names of files by content id; others are called by the start of their id.
        data: Settings of the datasets by content id: published numbers stand beside those of the same data.
        models: Content ids of models by those of the aggregates fitted to them: samples of a model's own prior or
            encoder are the model's, whichever file was measured.
    """
    entries = [_entry(score, names, models or {}) for score in scores]
    return [_table(table, data or {}) for table in compare_entries(entries, names=names).tables]


def _entry(score: Score, names: Mapping[str, str], models: Mapping[str, str]) -> Entry:
    identity = str(score.ids.get("aggregate") or score.ids.get("model") or "")
    if (score.base or score.posterior) in ("prior", "own", "image"):
        identity = str(score.ids.get("model") or models.get(identity, identity))
    return Entry(score.run.get("settings", identity), names.get(identity) or identity[:12] or "?", score)


def _table(table: ComparedTable, data: Mapping[str, Mapping[str, Any]]) -> ScoreTable:
    conditions, columns = table.conditions, list(table.columns)
    groups = [
        (row, column, cell) for row in table.rows for column, cell in zip(columns, row.cells, strict=True) if cell
    ]
    rows = [
        Row(row.name, row.title, [_own_cell(*cell) for cell in zip(row.cells, row.best, strict=True)])
        for row in table.rows
    ]
    papers, footnotes, others = _papers(conditions, columns, data)
    seeds = sorted({group.n for *_, group in groups if group.n > 1})
    if seeds:
        counts = " or ".join(map(str, seeds))
        footnotes.insert(0, f"Rows of {counts} seeds: mean ± standard deviation; of a single run ± its standard error.")
    last = [group.runs[-1] for *_, group in groups]
    bounds = [row for row in (_ceiling(last, columns), _by_chance(last, columns)) if row]
    by_attribute = _by_attribute([(row.title, column.heading, group) for row, column, group in groups])
    headings = [column.heading for column in columns]
    return ScoreTable(
        conditions.metric, table.about, conditions.unit, table.better, headings, [*rows, *papers],
        [*table.notes, *footnotes], others, _explained(conditions, headings), bounds, by_attribute,
    )  # fmt: skip


def _own_cell(group: Group | None, best: bool) -> Number | None:
    if group is None:
        return None
    score = group.runs[-1]
    detail = [f"{group.samples:,} samples"] if group.samples else []
    if group.n > 1:
        detail.append(f"± is the standard deviation over {group.n} seeds")
    elif group.stderr is not None:
        detail.append("± is the standard error")
    for key, name in (("splits_sd", "sd over 5 splits of the queries"), ("ceiling", "real halves")):
        if group.n == 1 and isinstance(value := score.details.get(key), int | float):
            detail.append(f"{name} {Number(value)}")
    detail += [f"{name} {value:.1f}" for name, value in group.by_attribute.items()]
    if score.ids.get("dataset"):
        detail.append(f"dataset {str(score.ids['dataset'])[:12]}")
    return replace(group.number, best=best, detail=", ".join(detail))


def _published_rows(table: PublishedTable, conditions: Conditions, columns: Sequence[Column]) -> list[Row]:
    """Return the rows of a published table in the columns of a metric and protocol."""
    places = {}
    for row in table.row:
        if row.get("metric") == conditions.metric and row.get("protocol", conditions.protocol) == conditions.protocol:
            same = (column for column in columns if _is_of(row, column))
            places.update({columns.index(column): row for column in same})
    found = []
    for position, method in enumerate(table.columns):
        cells: list[Number | None] = [None] * len(columns)
        for place, row in places.items():
            value = row["values"][position]
            spread = row.get("spread", [""] * len(table.columns))[position]  # "" where none was published
            if value != "":
                error = None if spread == "" else spread
                cells[place] = Number(value, error, places=2, detail="" if error is None else table.spread_means)
        if any(cells):
            found.append(Row(method, table.label, cells, published=True))
    return found


def _is_of(row: Mapping[str, Any], column: Column) -> bool:
    if column.share is not None:
        return False
    return row.get("given") == column.given if column.given is not None else row.get("quantity", "") == column.quantity


def _papers(
    conditions: Conditions, columns: Sequence[Column], data: Mapping[str, Mapping[str, Any]]
) -> tuple[list[Row], list[str], list[OtherData]]:
    """Return published numbers of the same data, footnotes about them, and numbers of other data by the same recipe."""
    settings = data.get(conditions.dataset, {})
    if not conditions.dataset and len(data) == 1:
        settings = next(iter(data.values()))
    same, footnotes, others = [], [], []
    for table in published_tables():
        rows = _published_rows(table, conditions, columns)
        if not rows or not table.recipe or table.recipe != settings.get("recipe"):
            continue
        spread = f"; ± is the {table.spread_means}" if table.spread_means else ""
        spread += f"; {table.remarks}" if table.remarks else ""
        if differing := table.differences(settings):
            others.append(OtherData(table.label, f"{table.dataset}{spread}", differing, rows))
        else:
            same += rows
            footnotes.append(f"{table.label}: {table.dataset}{spread}.")
    return same, footnotes, others


def _by_attribute(groups: Sequence[tuple[str, str, Group]]) -> AttributeTable | None:
    """Return scores by attribute, with the classifier's own accuracy below them."""
    counted = [(posterior, column, group) for posterior, column, group in groups if group.by_attribute]
    attributes = list(dict.fromkeys(name for *_, group in counted for name in group.by_attribute))
    if not attributes:
        return None

    def cells(values: Mapping[str, float]) -> list[str]:
        return [f"{values[name]:.1f}" if name in values else "–" for name in attributes]

    rows = [(posterior or "–", column, cells(group.by_attribute)) for posterior, column, group in counted]
    accuracies = (score.judge_accuracy for *_, group in counted for score in group.runs)
    judges = {tuple(sorted(accuracy.items())) for accuracy in accuracies if accuracy}
    rows += [("judge on real pictures", "", cells(dict(accuracy))) for accuracy in sorted(judges)]
    return AttributeTable(attributes, rows)


def _ceiling(scores: Sequence[Score], columns: Sequence[Column]) -> Row | None:
    """Return the classifier's own accuracy, which bounds scores that count its answers."""
    cells: list[Number | None] = [None] * len(columns)
    for score in scores:
        if score.by_attribute and score.real_accuracy is not None:
            cells[columns.index(Column.from_score(score))] = Number(score.real_accuracy)
    return Row("held-out pictures of the dataset", "judge on real pictures", cells) if any(cells) else None


def _by_chance(scores: Sequence[Score], columns: Sequence[Column]) -> Row | None:
    """Return the score of answers by chance, and among how many."""
    cells: list[Number | None] = [None] * len(columns)
    pools = set()
    for score in scores:
        value = score.details.get("chance")
        if isinstance(value, int | float):
            cells[columns.index(Column.from_score(score))] = Number(value)
            pools.add(score.details.get("pool"))
    among = " or ".join(f"{pool:,}" for pool in sorted(pool for pool in pools if isinstance(pool, int)))
    return Row(f"among {among}" if among else "", "chance", cells) if any(cells) else None


def _explained(conditions: Conditions, headings: Sequence[str]) -> str:
    """Return sentences for a reader who has not read the papers."""
    from mmgen import metrics

    known = conditions.metric in metrics.names()
    meaning = metrics.get(conditions.metric).protocols.get(conditions.protocol, "") if known else ""
    if any(heading.endswith(" given") and heading != "0 given" for heading in headings):
        meaning += " “2 given”: two attributes are asked for, all others are left open."
    return meaning.strip()
