"""Tables of scores, the papers' numbers beside one's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from mmgen.results.conditions import CALLED, Conditions
from mmgen.results.published import Published, published_tables
from mmgen.results.runs import Group, common_name, is_best, summed_up
from mmgen.results.score import Score

__all__ = [
    "AttributeTable",
    "Cell",
    "OtherData",
    "Row",
    "ScoreTable",
    "score_tables",
]


@dataclass(frozen=True)
class Cell:
    """One number of a table.

    Attributes:
        text: As it is printed, with its error: "82.1 ± 0.6".
        detail: What the reader may want to know beyond it: number of samples, kind of error.
        best: Whether none of one's own in its column beats it (:func:`mmgen.results.runs.is_best`).
    """

    text: str
    detail: str = ""
    best: bool = False


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
    cells: list[Cell | None]
    published: bool = False


@dataclass(frozen=True)
class OtherData:
    """A published table of other data than one's own, made by the same recipe.

    Attributes:
        source: The paper and its table.
        dataset: What it measured on, and what its errors are.
        differences: How one's own data differ: "size 32 instead of 64".
        rows: Its numbers, in the columns of the table that they stand below.
    """

    source: str
    dataset: str
    differences: list[str]
    rows: list[Row]


@dataclass(frozen=True)
class ScoreTable:
    """All scores of one metric by one protocol, on the same data, by the same judge.

    Attributes:
        metric: "correctness".
        protocol: "exact", "paper", ...; "" where there is only one.
        split: Split scheme that queries and data points come from; "" where it was not recorded.
        about: What the heading says of the data and the judge: "split iid, part val, judge judge-2".
        unit: "%", "nats", ...
        better: "higher", "lower" or "neither".
        columns: What each column is: "4 given", "log p(x)".
        rows: One's own first, then the papers'.
        footnotes: Datasets of the published numbers, meaning of their errors; what was measured more than once.
        others: Published numbers of other data by the same recipe, which are not to be compared.
        explained: What the protocol and the columns are, in a sentence or two.
        bounds: What the judge says of real pictures, and what chance would, in the same columns.
        by_attribute: The same scores attribute by attribute; None where they are of no attributes.
    """

    metric: str
    protocol: str
    split: str
    about: str
    unit: str
    better: str
    columns: list[str]
    rows: list[Row]
    footnotes: list[str]
    others: list[OtherData] = field(default_factory=list)
    explained: str = ""
    bounds: list[Row] = field(default_factory=list)
    by_attribute: "AttributeTable | None" = None


@dataclass(frozen=True)
class AttributeTable:
    """Scores by attribute.

    Attributes:
        names: The attributes.
        rows: What was drawn from, the column of the score ("2 given"), and for each attribute its number, else "–".
    """

    names: list[str]
    rows: list[tuple[str, str, list[str]]]


def _digits(value: float, error: float | None) -> str:
    """A number with the decimals that its error leaves meaning to: one digit of the error beyond its leading one."""
    if value != value:
        return "not finite"
    places = 2
    if error is not None and error > 0:
        places = 0 if error >= 10 else 1 if error >= 0.3 else 2
    return f"{value:,.{places}f}" + (f" ± {error:,.{places}f}" if error is not None else "")


def _column(score: Score | Mapping[str, Any]) -> tuple[int, str]:
    """Which column a score belongs to, with its place: many attributes given first, then quantities by name."""
    values = score if isinstance(score, Mapping) else {"given": score.given, "quantity": score.quantity}
    given, quantity = values.get("given"), str(values.get("quantity") or "")
    if given is not None:
        return -int(given), f"{given} given"
    return 1, quantity or "value"


def _own_cell(score: Score, best: bool, seeds: int) -> Cell:
    detail = [f"{score.n:,} samples"] if score.n else []
    if seeds > 1:
        detail.append(f"± is the standard deviation over {seeds} seeds")
    elif score.stderr is not None:
        detail.append("± is the standard error")
    splits = score.extra.get("splits_sd")
    if isinstance(splits, int | float):
        detail.append(f"sd over 5 splits of the queries {splits:.2f}")
    ceiling = score.extra.get("ceiling")
    if isinstance(ceiling, int | float):
        detail.append(f"real halves {_digits(ceiling, None)}")
    each = score.extra.get("by_attribute")
    if isinstance(each, dict):
        detail += [f"{name} {value:.1f}" for name, value in each.items() if isinstance(value, int | float)]
    if score.ids.get("dataset"):
        detail.append(f"dataset {str(score.ids['dataset'])[:12]}")
    return Cell(_digits(score.value, score.stderr), ", ".join(detail), best)


def _published_rows(table: Published, metric: str, protocol: str, columns: Sequence[str]) -> list[Row]:
    rows = [
        row
        for row in table.row
        if row.get("metric") == metric and row.get("protocol", protocol) == protocol and _column(row)[1] in columns
    ]
    found = []
    for position, method in enumerate(table.columns):
        cells: list[Cell | None] = [None] * len(columns)
        for row in rows:
            value = row["values"][position]
            if value != "":
                spread = row.get("spread", [""] * len(table.columns))[position]  # "" where none was published
                text = f"{value:,.2f}" + (f" ± {spread:.2f}" if spread != "" else "")
                cells[columns.index(_column(row)[1])] = Cell(text, table.spread_means if spread != "" else "")
        if any(cells):
            found.append(Row(method, table.called, cells, published=True))
    return found


def _papers(
    key: Conditions, columns: Sequence[str], data: Mapping[str, Mapping[str, Any]]
) -> tuple[list[Row], list[str], list[OtherData]]:
    """What papers report of the same data, footnotes about it; and what of other data made by the same recipe."""
    settings = data.get(key.dataset, {})
    if not key.dataset and len(data) == 1:  # older scores do not say, but there is only one
        settings = next(iter(data.values()))
    same, footnotes, others = [], [], []
    for table in published_tables():
        rows = _published_rows(table, key.metric, key.protocol, columns)
        if not rows or not table.recipe or table.recipe != settings.get("recipe"):
            continue
        spread = f"; ± is the {table.spread_means}" if table.spread_means else ""
        spread += f"; {table.remarks}" if table.remarks else ""
        if differing := table.differences(settings):
            others.append(OtherData(table.called, f"{table.dataset}{spread}", differing, rows))
        else:
            same += rows
            footnotes.append(f"{table.called}: {table.dataset}{spread}.")
    return same, footnotes, others


def score_tables(
    scores: Sequence[Score],
    names: Mapping[str, str],
    *,
    data: Mapping[str, Mapping[str, Any]] | None = None,
    models: Mapping[str, str] | None = None,
) -> list[ScoreTable]:
    """Scores as tables, one for all that may be compared, with the papers' numbers for the same dataset below.

    Args:
        scores: From :func:`read_scores`.
        names: What to call the files, by content id; others are called by the start of their id.
        data: Settings of the datasets by content id: published numbers stand beside those of the same data.
        models: Content ids of models by those of the aggregates fitted to them: what is drawn from a model's own prior
            or posterior is the model's, whichever file it was asked of.
    """
    groups: dict[Conditions, list[Score]] = {}
    for score in scores:
        groups.setdefault(Conditions.of(score), []).append(score)
    called = _Names(names, models or {})
    return [_table(key, group, called, data or {}, _about(key, list(groups), called)) for key, group in groups.items()]


@dataclass(frozen=True)
class _Names:
    """What files and posteriors are called."""

    files: Mapping[str, str]
    models: Mapping[str, str]

    def of(self, score: Score) -> tuple[str, str, str]:
        """Identity, name of the file, name of the posterior."""
        identity = str(score.ids.get("aggregate") or score.ids.get("model") or "")
        if (score.base or score.posterior) in ("prior", "own", "image"):
            identity = str(score.ids.get("model") or self.models.get(identity, identity))
        return identity, self.file(identity), score.title

    def file(self, content_id: str) -> str:
        """Name of a file, else the start of its content id."""
        return self.files.get(content_id) or content_id[:12] or "?"


def _about(key: Conditions, keys: Sequence[Conditions], names: _Names) -> str:
    """Data and judge of a table; files are named only where tables of the same kind differ in them."""
    alike = [
        other for other in keys if (other.metric, other.protocol, other.unit) == (key.metric, key.protocol, key.unit)
    ]
    said = [f"split {key.split}"] if key.split else []
    said += [f"part {key.part}"] if key.part not in ("", "test") else []
    said += ["pixels drawn at every sight"] if key.pixels == "drawn" else []
    said += [f"dataset {names.file(key.dataset)}"] if len({other.dataset for other in alike}) > 1 else []
    said += [f"judge {names.file(key.judge)}"] if len({other.judge for other in alike}) > 1 else []
    told = {"metric", "protocol", "unit", "split", "part", "pixels", "dataset", "judge"}
    for name in [name for name in key.named if name not in told]:
        if len({other.named.get(name, "") for other in alike}) > 1:
            said.append(f"{CALLED.get(name, name)} {key.named[name] or 'not recorded'}")
    return ", ".join(said)


def _by_attribute(scores: Mapping[tuple[str, str, str], Score], names: "_Names") -> AttributeTable | None:
    """Scores that were counted by attribute, and the judge's own accuracy below them."""
    counted = [(score, each) for score in scores.values() if isinstance(each := score.extra.get("by_attribute"), dict)]
    attributes = list(dict.fromkeys(str(name) for _, each in counted for name in each))
    if not attributes:
        return None

    def cells(values: Mapping[str, Any]) -> list[str]:
        known = [values.get(name) for name in attributes]
        return [f"{value:.1f}" if isinstance(value, int | float) else "–" for value in known]

    rows = [(names.of(score)[2] or "–", _column(score)[1], cells(each)) for score, each in counted]
    judges = {tuple(sorted(score.judge_accuracy.items())) for score, _ in counted if score.judge_accuracy}
    rows += [("judge on real pictures", "", cells(dict(accuracy))) for accuracy in sorted(judges)]
    return AttributeTable(attributes, rows)


def _ceiling(scores: Sequence[Score], columns: Sequence[str]) -> Row | None:
    """The judge's own accuracy, which bounds what counts its answers; with told words where these are counted."""
    cells: list[Cell | None] = [None] * len(columns)
    for score in scores:
        accuracy = score.judge_accuracy or {}
        if not accuracy or not isinstance(score.extra.get("by_attribute"), dict):
            continue
        told = score.protocol in ("paper", "generated-text") and "words" in accuracy
        value = accuracy.get("words" if told else "mean")
        if value is not None:
            cells[columns.index(_column(score)[1])] = Cell(f"{value:.1f}")
    return Row("held-out pictures of the dataset", "judge on real pictures", cells) if any(cells) else None


def _by_chance(scores: Sequence[Score], columns: Sequence[str]) -> Row | None:
    """What who knows nothing would reach, where scores tell it, and among how many."""
    cells: list[Cell | None] = [None] * len(columns)
    pools = set()
    for score in scores:
        value = score.extra.get("chance")
        if isinstance(value, int | float):
            cells[columns.index(_column(score)[1])] = Cell(_digits(value, None))
            pools.add(score.extra.get("pool"))
    among = " or ".join(f"{pool:,}" for pool in sorted(pool for pool in pools if isinstance(pool, int)))
    return Row(f"among {among}" if among else "", "chance", cells) if any(cells) else None


def _explained(key: Conditions, columns: Sequence[str]) -> str:
    """What a reader who has not read the papers must know of a table."""
    from mmgen import metrics

    meaning = metrics.get(key.metric).protocols.get(key.protocol, "") if key.metric in metrics.names() else ""
    if any(column.endswith(" given") and column != "0 given" for column in columns):
        meaning += " “2 given”: two attributes are asked for, all others are left open."
    return meaning.strip()


def _merged(group: Group) -> Score:
    """The score of a single run, or one that says of several what each of them says, on average."""
    if group.n == 1:
        return group.runs[0]
    said = [each for score in group.runs if isinstance(each := score.extra.get("by_attribute"), dict)]
    names = [name for name in (said[0] if said else ()) if all(name in one for one in said)]
    means = {name: fmean(each[name] for each in said) for name in names}
    samples = sum(score.n for score in group.runs)
    extra = {"by_attribute": means} if means else {}
    return replace(group.runs[-1], value=group.mean, stderr=group.sd, n=samples, extra=extra)


def _table(
    key: Conditions, group: Sequence[Score], names: _Names, data: Mapping[str, Mapping[str, Any]], about: str
) -> ScoreTable:
    # Many attributes given first; quantities in the order of their metric.
    columns = [name for _, name in sorted(dict.fromkeys(map(_column, group)), key=lambda column: column[0])]
    better = group[0].better
    found: dict[tuple[str, str, str], dict[str, Score]] = {}
    labels: dict[str, list[str]] = {}
    repeated = set()
    for score in group:
        identity, label, posterior = names.of(score)
        run, seed = score.run.get("settings", identity), score.run.get("seed", "")
        labels.setdefault(run, []).append(label)
        runs = found.setdefault((run, posterior, _column(score)[1]), {})
        if seed in runs and (runs[seed].value, runs[seed].stderr) != (score.value, score.stderr):
            repeated.add((run, posterior, _column(score)[1], seed))
        runs[seed] = score
    groups = {place: summed_up(list(runs.values())) for place, runs in found.items()}
    shown = {place: _merged(one) for place, one in groups.items()}
    rows: dict[tuple[str, str], Row] = {}
    for place, one in groups.items():
        run, posterior, column = place
        row = rows.setdefault((run, posterior), Row(common_name(labels[run]), posterior, [None] * len(columns)))
        rivals = [other for elsewhere, other in groups.items() if elsewhere[2] == column and elsewhere != place]
        row.cells[columns.index(column)] = _own_cell(shown[place], is_best(one, rivals), one.n)
    papers, footnotes, others = _papers(key, columns, data)
    if several := sorted({one.n for one in groups.values() if one.n > 1}):
        counts = " or ".join(map(str, several))
        said = f"Rows of {counts} seeds: their mean ± standard deviation; of a single run ± its standard error."
        footnotes.insert(0, said)
    if repeated:
        count = "1 number was" if len(repeated) == 1 else f"{len(repeated)} numbers were"
        footnotes.insert(0, f"{count} measured more than once, with other seeds or settings; the last line is shown.")
    every = [*rows.values(), *papers]
    return ScoreTable(
        key.metric, key.protocol, key.split, about, key.unit, better, columns, every, footnotes, others,
        _explained(key, columns), [row for row in (_ceiling(group, columns), _by_chance(group, columns)) if row],
        _by_attribute(shown, names),
    )  # fmt: skip
