"""Tables of scores on a report's page, with published numbers of the same data."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mmgen.figures.session import ReportFiles
from mmgen.results.comparing import Entry, compare_entries
from mmgen.results.comparison import Column, ComparedTable
from mmgen.results.conditions import Conditions
from mmgen.results.frame import pivot
from mmgen.results.groups import MeasuredPosterior, RunGroup, differ, rank_posteriors
from mmgen.results.naming import CONDITIONAL, RETRIEVAL
from mmgen.results.number import Number
from mmgen.results.published import PublishedTable, published_tables
from mmgen.results.score import Score
from mmgen.results.summary import DECODED, name_rows, summarise

_MEASURED, _PAPER, _BOUND = "measured", "paper", "bound"
_RowKey = tuple[str, str, str]
"""Name of the file or method, name of the posterior or source, and which of these three kinds a row is."""
_Cell = tuple[_RowKey, Column, Number]


@dataclass(frozen=True)
class Row:
    """Row in a report's table of scores: one model and posterior, or one published method.

    Attributes:
        label: Name of the file or method.
        posterior: Name of the posterior, or source of a published number.
        cells: Number in each column; None if not measured.
        published: Whether it comes from a paper.
    """

    label: str
    posterior: str
    cells: list[Number | None]
    published: bool = False


@dataclass(frozen=True)
class AttributeTable:
    """Table of the scores of each attribute, with a row for each model and posterior.

    Attributes:
        names: Names of the attributes.
        rows: Posterior, column of the score ("2 given"), and for each attribute its number, else "–".
    """

    names: list[str]
    rows: list[tuple[str, str, list[str]]]


@dataclass(frozen=True)
class ScoreTable:
    """Table of comparable scores on a page: one metric and protocol, the same data and attribute classifier.

    Attributes:
        metric: Name of the metric.
        about: Conditions in the heading: "protocol exact, split iid, judge judge-2".
        unit: Unit of the scores: "%", "nats", ...
        better: The better direction: "higher", "lower" or "neither".
        columns: Headings: "4 given", "log p(x)".
        rows: Measured scores, then published ones.
        footnotes: Meaning of the errors, datasets of the published numbers, scores that were measured twice.
        explained: Meaning of the protocol and the columns, in a sentence or two.
        bounds: Scores of real pictures and of chance, in the same columns.
        by_attribute: The same scores by attribute; None if there are none.
        judge: Name of the attribute classifier; "" without one.
    """

    metric: str
    about: str
    unit: str
    better: str
    columns: list[str]
    rows: list[Row]
    footnotes: list[str]
    explained: str = ""
    bounds: list[Row] = field(default_factory=list)
    by_attribute: AttributeTable | None = None
    judge: str = ""


def make_score_tables(
    scores: Sequence[Score],
    names: Mapping[str, str],
    *,
    data: Mapping[str, Mapping[str, Any]] | None = None,
    models: Mapping[str, str] | None = None,
) -> list[ScoreTable]:
    """Arrange scores in tables, one for each set of comparable scores, with published numbers of the same data.

    Args:
        scores: The scores.
        names: Names of files by content id; others are named by the start of their id.
        data: Settings of datasets by content id, to find published numbers of the same data.
        models: Content ids of models by those of their fitted posteriors, since scores of a model's prior or encoder
            belong to the model even if a fitted posterior's file was measured.
    """
    entries = [_entry(score, names, models or {}) for score in scores]
    return [_score_table(table, data or {}, names) for table in compare_entries(entries, names=names).tables]


def _entry(score: Score, names: Mapping[str, str], models: Mapping[str, str]) -> Entry:
    identity = str(score.ids.get("aggregate") or score.ids.get("model") or "")
    if (score.base or score.posterior) in ("prior", "own", "image", RETRIEVAL):
        identity = str(score.ids.get("model") or models.get(identity, identity))
    name = names.get(identity) or score.run.get("name") or identity[:12] or "?"
    return Entry(score.run.get("settings", identity), name, score)


def _score_table(table: ComparedTable, data: Mapping[str, Mapping[str, Any]], names: Mapping[str, str]) -> ScoreTable:
    conditions, records = table.conditions, table.records
    papers, footnotes = _published_numbers(conditions, list(table.columns), data)
    seeds = sorted({record.group.n for record in records if record.group.n > 1})
    if seeds:
        counts = " or ".join(map(str, seeds))
        footnotes.insert(0, f"Rows of {counts} seeds: mean ± standard deviation; of a single run ± its standard error.")
    cells: list[_Cell] = [
        ((one.name, one.group.runs[-1].title, _MEASURED), one.column, _measured_cell(one.group, one.best))
        for one in records
    ]
    pools = sorted({pool for one in records if isinstance(pool := one.group.runs[-1].details.get("pool"), int)})
    among = f"among {' or '.join(f'{pool:,}' for pool in pools)}" if pools else ""
    for name, about, of in _BOUNDS:
        numbers = [(one.column, number) for one in records if (number := of(one.group.runs[-1]))]
        cells += [((about or among, name, _BOUND), column, number) for column, number in numbers]
    columns, rows = pivot([*cells, *papers], table.columns)
    by_kind = [[Row(*key[:2], found, kind == _PAPER) for key, found in rows.items() if key[2] == kind]
               for kind in (_MEASURED, _PAPER, _BOUND)]  # fmt: skip
    judge = conditions.format_value("judge", names) if conditions.judge else ""
    return ScoreTable(
        conditions.metric, table.about, conditions.unit, table.better, [table.columns[one] for one in columns],
        [*by_kind[0], *by_kind[1]], [*table.notes, *footnotes], _explain_conditions(conditions, columns), by_kind[2],
        _attribute_table(table), judge,
    )  # fmt: skip


def _measured_cell(group: RunGroup, best: bool) -> Number:
    score = group.runs[-1]
    detail = [f"{group.samples:,} samples"] if group.samples else []
    if group.n > 1:
        detail.append(f"± is the standard deviation over {group.n} seeds")
    elif group.stderr is not None:
        detail.append("± is the standard error")
    for key, name in (("splits_sd", "sd over 5 splits of the queries"), ("ceiling", "real pictures")):
        if group.n == 1 and isinstance(value := score.details.get(key), int | float):
            detail.append(f"{name} {Number(value)}")
    detail += [f"{name} {value:.1f}" for name, value in group.by_attribute.items()]
    if score.ids.get("dataset"):
        detail.append(f"dataset {str(score.ids['dataset'])[:12]}")
    return replace(group.number, best=best, detail=", ".join(detail))


def _published_cells(table: PublishedTable, conditions: Conditions, columns: Sequence[Column]) -> list[_Cell]:
    """Return the numbers of a published table that were measured under these conditions."""
    found: list[_Cell] = []
    for position, method in enumerate(table.columns):
        for row in table.row:
            value = row["values"][position]
            spread = row.get("spread", [""] * len(table.columns))[position]  # "" where none was published
            same = row.get("metric") == conditions.metric
            same = same and row.get("protocol", conditions.protocol) == conditions.protocol and value != ""
            detail = "" if spread == "" else table.spread_means
            number = Number(value, None if spread == "" else spread, places=2, detail=detail) if same else None
            key = method, table.label, _PAPER
            found += [(key, one, number) for one in columns if number and _matches_column(row, one)]
    return found


def _matches_column(row: Mapping[str, Any], column: Column) -> bool:
    if column.share is not None:
        return False
    return row.get("given") == column.given if column.given is not None else row.get("quantity", "") == column.quantity


def _published_numbers(
    conditions: Conditions, columns: Sequence[Column], data: Mapping[str, Mapping[str, Any]]
) -> tuple[list[_Cell], list[str]]:
    """Return published numbers of the same data, and their footnotes."""
    settings = data.get(conditions.dataset, {})
    if not conditions.dataset and len(data) == 1:
        settings = next(iter(data.values()))
    same: list[_Cell] = []
    footnotes = []
    for table in published_tables():
        cells = _published_cells(table, conditions, columns)
        recipe = settings.get("recipe")
        if not cells or not table.recipe or table.recipe != recipe or table.differences(settings):
            continue
        spread = f"; ± is the {table.spread_means}" if table.spread_means else ""
        spread += f"; {table.remarks}" if table.remarks else ""
        same += cells
        footnotes.append(f"{table.label}: {table.dataset}{spread}.")
    return same, footnotes


def _attribute_table(table: ComparedTable) -> AttributeTable | None:
    """Make the table of scores by attribute, with the classifier's accuracy at the bottom; None without such scores."""
    counted = [record for record in table.records if record.group.by_attribute]
    if not counted:
        return None
    titles = {record.row: record.group.runs[-1].title for record in table.records}
    twins = Counter(titles.values())
    names = {row: f"{title} ({row[0]})" if twins[title] > 1 else title or "–" for row, title in titles.items()}
    cells = [
        ((names[record.row], table.columns[record.column]), name, value)
        for record in counted
        for name, value in record.group.by_attribute.items()
    ]
    known = (one.judge_accuracy for record in counted for one in record.group.runs if "ceiling" not in one.details)
    accuracy, measured = next(filter(None, known), {}), {name for _, name, _ in cells}
    cells += [(("judge on real pictures", ""), name, value) for name, value in accuracy.items() if name in measured]
    attributes, rows = pivot(cells)
    shown = [["–" if value is None else f"{value:.1f}" for value in values] for values in rows.values()]
    return AttributeTable(attributes, [(*key, values) for key, values in zip(rows, shown, strict=True)])


def _judge_on_real_pictures(score: Score) -> Number | None:
    measured = score.by_attribute and score.real_accuracy is not None and "ceiling" not in score.details
    return Number(score.real_accuracy) if measured and score.real_accuracy is not None else None


def _score_of_real_pictures(score: Score) -> Number | None:
    value, error = (score.details.get(key) for key in ("ceiling", "ceiling_stderr"))
    return Number(float(value), error if isinstance(error, float) else None) if isinstance(value, int | float) else None


def _score_of_chance(score: Score) -> Number | None:
    value = score.details.get("chance")
    return Number(value) if isinstance(value, int | float) else None


def _explain_conditions(conditions: Conditions, columns: Sequence[Column]) -> str:
    """Explain the protocol and the columns of a table of scores in sentences."""
    from mmgen import metrics

    known = conditions.metric in metrics.names()
    meaning = metrics.get(conditions.metric).protocols.get(conditions.protocol, "") if known else ""
    if given := [column.given for column in columns if column.given]:
        words = f"{given[0]} attribute{' is' if given[0] == 1 else 's are'} asked for"
        meaning += f" “{given[0]} given”: {words}, all others are left open."
    return meaning.strip()


_BOUNDS = (
    ("judge on real pictures", "held-out pictures of the dataset", _judge_on_real_pictures),
    ("real pictures", "held-out pictures in place of drawn ones", _score_of_real_pictures),
    ("chance", "", _score_of_chance),
)
"""What bounds scores: name, what it is measured on, and its number; chance tells among how many."""


@dataclass(frozen=True)
class Finding:
    """Comparison of the posteriors of one model by their scores.

    Attributes:
        best: Sentences on the posterior with the highest sum of correctness and coverage, and those within its error.
        model: Name of the model.
        columns: Headings of the scores in ``rows``.
        rows: Plain name, name with formula, and scores as text: of plain conditional VAEs, then of each posterior in
            the order of the scores, of decoded and of real pictures.
    """

    best: str
    model: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, str, tuple[str, ...]], ...] = ()


def describe_findings(report_files: ReportFiles) -> list[Finding]:
    """Compare the posteriors of each model, on the first dataset."""
    steps, findings = {one.header.content_id: one.header.facts.get("step") for one in report_files.groups}, []
    for group in report_files.groups:
        identity = group.header.content_id
        own = scores_of_model(report_files, identity)
        if rows := rank_posteriors(own):
            right = rows[0].right
            rivals = [score for score in report_files.scores if score.base == CONDITIONAL]
            of_words = [score for score in own if score.posterior not in ("prior", RETRIEVAL)]
            judges = {None, *(score.ids.get("judge") for score in own if score.source == right.source)}
            alike = [score for score in (*rivals, *of_words) if _is_comparable(score, right)]
            alike = [score for score in alike if score.ids.get("judge") in judges]
            finding = _describe_model(report_files.names[identity], rows, alike)
            trained = [steps.get(str(score.ids.get("model"))) for score in alike if score.base == CONDITIONAL]
            unequal = [f"{number:,}" for number in trained if number and number != steps[identity]]
            if unequal and steps[identity]:
                said = f" It was trained for {steps[identity]:,} steps, the plain conditional VAE for {unequal[0]}."
                finding = replace(finding, best=finding.best + said)
            findings.append(finding)
    return findings


def _is_comparable(score: Score, best: Score) -> bool:
    """Return whether a score is of the same data, split and part; of decoded pictures the part may be another."""
    own, other = (
        (one.ids.get("dataset"), one.conditions.get("split"), one.metric == DECODED or one.conditions.get("part"))
        for one in (score, best)
    )
    return own[:2] == other[:2] and own[2] in (True, other[2])


def scores_of_model(report_files: ReportFiles, model: str) -> list[Score]:
    """Return the scores of a model and of its fitted posteriors."""
    owners = report_files.models
    identities = [str(score.ids.get("aggregate") or score.ids.get("model") or "") for score in report_files.scores]
    return [
        score
        for score, identity in zip(report_files.scores, identities, strict=True)
        if owners.get(identity, identity) == model
    ]


def _describe_model(name: str, rows: list[MeasuredPosterior], scores: Sequence[Score]) -> Finding:
    """Describe a model's posteriors, the best by correctness and coverage first, beside plain conditional VAEs."""
    right, varied = rows[0].right, rows[0].varied
    best = [rows[0].right, *(row.right for row in rows[1:] if not differ(rows[0].right, row.right))]
    text = f"{name} draws {'best' if len(best) == 1 else 'about as well'} from "
    text += " and ".join(f"{score.plain_name} ({score.source})" for score in best) + "."
    given = f"{right.given} given attributes" if right.given != 1 else "given attribute"
    text += f" {right.number_with_unit} of the {given} are right (correctness{', the first' if len(best) > 1 else ''})."
    if varied is not None:
        text += (
            f" What is left open varies as in real pictures to {varied.number_with_unit} (coverage, {varied.given} "
            "given)."
        )
    columns, numbers = summarise(scores)
    drawn = {row: score for row, score in zip(name_rows(scores), scores, strict=True) if score.metric != DECODED}
    listed = []
    for row, cells in numbers.items():
        plain, title = row.strip("()"), ""
        if row in drawn:
            plain, title = drawn[row].plain_name, row.replace(drawn[row].source, drawn[row].title, 1)
        texts = tuple("–" if number is None else str(number) for number in cells)
        listed.append((plain[:1].upper() + plain[1:], title, texts))
    return Finding(text, name, tuple(columns), tuple(listed))
