"""Compared scores as text: tables for people, lines for programs, Markdown and LaTeX for papers."""

import csv as csv_writer
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mmgen.core.parsing import shown as plain_letters
from mmgen.results.runs import LEVEL

if TYPE_CHECKING:
    from mmgen.results.comparing import Comparison, Row, Table
    from mmgen.results.runs import Contrast, Group

__all__ = ["csv", "json_lines", "latex", "legend", "markdown", "plain", "shown"]

_OVER = {
    "seeds": "a t interval over the seeds, which both have",
    "points": "a t interval over the same points of one run each",
    "both": "Welch's interval of two groups of other seeds",
    "examples": "a normal interval by the standard errors of one run each, as if they were independent",
}


def _places(error: float | None) -> int:
    """Decimals that an error leaves meaning to."""
    if error is None or not math.isfinite(error) or error == 0:
        return 2
    return 0 if error >= 10 else 1 if error >= 1 else min(5, 1 - math.floor(math.log10(error)))


def _number(value: float, places: int) -> str:
    return f"{value:,.{places}f}" if math.isfinite(value) else "not finite"


def _cell(cell: "Group | None", most: int, mark: Callable[[str], str], best: bool) -> str:
    """A number: with its standard deviation over seeds, or with the standard error (se) of a single run."""
    if cell is None:
        return ""
    error = cell.sd if cell.n > 1 else cell.stderr
    places = _places(error) if cell.runs[0].unit != "parameters" else 0
    mean = _number(cell.mean, places)
    text = mark(mean) if best else mean
    if error is not None and math.isfinite(error):
        text += f" ± {_number(error, places)}" if cell.n > 1 else f" (se {_number(error, places)})"
    return text + (f", n = {cell.n}" if cell.n != most else "")


def _difference(one: "Contrast | None", most: int) -> str:
    if one is None:
        return ""
    places = _places(one.stderr)
    value = f"{one.value:+,.{places}f}"
    if one.low is None or one.high is None:
        return f"{value} (no spread)" if one.stderr == 0 else value
    interval = f"[{one.low:+,.{places}f}, {one.high:+,.{places}f}]"
    return f"{value} {interval}" + (f", n = {one.n}" if one.n != most else "")


def _title(table: "Table") -> str:
    conditions = table.conditions
    unit = f", {conditions.unit}" + (" per example" if conditions.unit == "nats" else "")
    lower = ", lower is better" if table.better == "lower" else ""
    return f"{conditions.metric}{unit if conditions.unit else ''}{lower}" + (f" ({table.about})" if table.about else "")


def shown(
    table: "Table", mark: Callable[[str], str] = lambda text: f"{text}*"
) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Title, headings and rows of the table, and of one of differences where rows are compared with one.

    Args:
        table: The table.
        mark: Makes what is not beaten stand out.
    """
    headings = [plain_letters(column.heading) for column in table.columns]
    rows = [[*map(plain_letters, (row.name, row.posterior)), *_cells(row, mark), str(row.n)] for row in table.rows]
    title = plain_letters(_title(table))
    yield title, ["", "drawn from", *headings, "seeds"], rows
    compared = [row for row in table.rows if any(row.differences)]
    if compared:
        most = [max(one.n for one in row.differences if one is not None) for row in compared]
        rows = [
            [
                plain_letters(row.name),
                plain_letters(row.posterior),
                *(_difference(one, n) for one in row.differences),
                str(n),
            ]
            for row, n in zip(compared, most, strict=True)
        ]
        yield f"{title}: difference from {plain_letters(table.against)}", ["", "drawn from", *headings, "seeds"], rows


def _cells(row: "Row", mark: Callable[[str], str]) -> list[str]:
    return [_cell(cell, row.n, mark, best) for cell, best in zip(row.cells, row.best, strict=True)]


def legend(compared: "Comparison", mark: str = "*", errors: bool = True) -> str:
    """What the numbers of the tables are; without their errors where captions say it."""
    every = [cell for table in compared.tables for row in table.rows for cell in row.cells if cell is not None]
    said = []
    if errors and any(cell.n > 1 for cell in every):
        said.append("± is the standard deviation over seeds")
    if errors and any(cell.n == 1 and cell.stderr is not None for cell in every):
        said.append("se is the standard error of a single run, over its examples")
    if any(any(row.best) for table in compared.tables for row in table.rows):
        said.append(
            f"{mark} is what no other row beats: the {LEVEL:.0%} interval of the difference holds 0".replace("%", " %")
        )
    differences = [one for table in compared.tables for row in table.rows for one in row.differences if one is not None]
    if found := {one.over for one in differences if one.low is not None}:
        kinds = " or ".join(_OVER[name] for name in _OVER if name in found)
        said.append(f"[low, high] is a {LEVEL:.0%} interval of the difference: {kinds}".replace("%", " %"))
    if any(one.stderr == 0 for one in differences):
        said.append("no spread: what is compared differs by the same everywhere, which gives no interval")
    return "; ".join(said) + "." if said else ""


_FIELDS = (
    "metric", "quantity", "protocol", "split", "part", "given", "guidance", "balanced", "share", "dataset", "judge",
    "name", "posterior", "n", "mean", "sd", "stderr", "unit", "better", "best", "seeds", "against", "difference",
    "difference_stderr", "difference_low", "difference_high", "difference_n", "difference_over",
)  # fmt: skip


def _records(compared: "Comparison") -> Iterator[dict[str, Any]]:
    """Every number, as plain values."""
    for table in compared.tables:
        conditions = table.conditions
        for row in table.rows:
            for column, cell, best, one in zip(table.columns, row.cells, row.best, row.differences, strict=True):
                if cell is None:
                    continue
                yield {
                    "metric": conditions.metric,
                    "quantity": column.quantity,
                    "protocol": conditions.protocol,
                    "split": conditions.split,
                    "part": conditions.part,
                    "given": column.given,
                    "guidance": row.guidance or None,
                    "balanced": row.balanced or None,
                    "share": column.share,
                    "dataset": conditions.dataset,
                    "judge": conditions.judge,
                    "name": row.name,
                    "posterior": row.posterior,
                    "n": cell.n,
                    "mean": _finite(cell.mean),
                    "sd": _finite(cell.sd),
                    "stderr": _finite(cell.stderr),
                    "unit": conditions.unit,
                    "better": table.better,
                    "best": best,
                    "seeds": ",".join(cell.by_seed),
                    "against": table.against or None,
                    "difference": _finite(one.value) if one else None,
                    "difference_stderr": _finite(one.stderr) if one else None,
                    "difference_low": _finite(one.low) if one else None,
                    "difference_high": _finite(one.high) if one else None,
                    "difference_n": one.n if one else None,
                    "difference_over": one.over if one else None,
                }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _as_text(record: dict[str, Any]) -> list[str]:
    return ["" if (value := record[name]) is None else str(value) for name in _FIELDS]


def plain(compared: "Comparison") -> list[list[str]]:
    """A line of cells for every number, as of :func:`csv` without its heading."""
    return [_as_text(record) for record in _records(compared)]


def csv(compared: "Comparison") -> str:
    """A heading, and a line for every number; what a file says is kept from being read as a formula."""
    out = io.StringIO()
    writer = csv_writer.writer(out, lineterminator="\n")
    writer.writerow(_FIELDS)
    writer.writerows([[_no_formula(cell) for cell in line] for line in plain(compared)])
    return out.getvalue()


def _no_formula(cell: str) -> str:
    try:
        float(cell)
    except ValueError:
        return f"'{cell}" if cell[:1] in "=+-@\t" and cell else cell
    return cell


def json_lines(compared: "Comparison") -> str:
    """A JSON object for every number."""
    return "\n".join(json.dumps(record, allow_nan=False) for record in _records(compared))


def markdown(compared: "Comparison") -> str:
    """Every table, with its title."""
    lines = []
    for table in compared.tables:
        for title, columns, rows in shown(table, lambda text: f"**{text}**"):
            rule = ["---", "---", *["---:"] * len(columns[2:])]
            lines += [f"**{_in_markdown(title)}**", "", *map(_row, (columns, rule, *rows)), ""]
    return "\n".join([*lines, _in_markdown(legend(compared, "bold"))])


def _in_markdown(text: str) -> str:
    return plain_letters(text).replace("|", "\\|")


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_in_markdown, cells)) + " |"


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}",
    "<": r"\textless{}", ">": r"\textgreater{}",
    "±": r"$\pm$", "−": "$-$",
}  # fmt: skip


def _in_latex(text: str) -> str:
    """Text as LaTeX prints it, letter by letter."""
    return "".join(_LATEX.get(letter, letter) for letter in plain_letters(text))


def _math(text: str) -> str:
    """Numbers in mathematics, where a comma between digits is no comma of a list, and blanks are not printed."""
    return re.sub(r"(?<=\d),(?=\d)", "{,}", text).replace(" [", r"\ [")


def latex(compared: "Comparison") -> str:
    r"""Every table as a ``table`` of booktabs (``\usepackage{booktabs}``), its numbers in one format."""
    lines, labels = [r"% \usepackage{booktabs}"], Counter[str]()
    for table in compared.tables:
        places = _common_places(table)
        numbers = [
            [_latex_cell(cell, row.n, places, best) for cell, best in zip(row.cells, row.best, strict=True)]
            for row in table.rows
        ]
        for kind, (title, columns, rows) in zip(("", "difference"), shown(table), strict=False):
            label = _label(table, kind)
            labels[label] += 1
            label += f"-{labels[label]}" if labels[label] > 1 else ""
            if kind:
                numbers = [[f"${_math(cell)}$" if cell else "" for cell in row[2:-1]] for row in rows]
            cells = [[*map(_in_latex, row[:2]), *own, row[-1]] for row, own in zip(rows, numbers, strict=True)]
            errors = _errors(table) if not kind else ""
            lines += [r"\begin{table}", r"\centering", rf"\caption{{{_in_latex(title)}{errors}}}"]
            lines += [rf"\label{{{label}}}", rf"\begin{{tabular}}{{ll{'r' * (len(columns) - 2)}}}", r"\toprule"]
            lines += [_latex_row(map(_in_latex, columns)), r"\midrule", *map(_latex_row, cells)]
            lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]
    said = legend(compared, "bold", errors=False)
    return "\n".join([*lines, f"% {plain_letters(said)}"])


def _errors(table: "Table") -> str:
    """What stands behind ±, as the end of a caption."""
    several = {cell.n > 1 for row in table.rows for cell in row.cells if cell is not None and _error(cell) is not None}
    one, more = "standard error", "standard deviation over seeds"
    said = f"{more}, of a single run its {one}" if several == {True, False} else more if True in several else one
    return rf". $\pm$: {said}" if several else ""


def _error(cell: "Group") -> float | None:
    error = cell.sd if cell.n > 1 else cell.stderr
    return error if error is not None and math.isfinite(error) else None


def _common_places(table: "Table") -> int:
    """Decimals of all numbers of a table: those of the largest error, more where the least one would show as 0."""
    cells = [cell for row in table.rows for cell in row.cells if cell is not None]
    if any(cell.runs[0].unit == "parameters" for cell in cells):
        return 0
    errors = [error for cell in cells if (error := _error(cell))]
    if not errors:
        return 2
    return max(_places(max(errors)), min(5, max(0, -math.floor(math.log10(min(errors))))))


def _latex_cell(cell: "Group | None", most: int, places: int, best: bool) -> str:
    if cell is None:
        return ""
    mean = _math(_number(cell.mean, places))
    if not math.isfinite(cell.mean):
        return mean
    text = rf"\mathbf{{{mean}}}" if best else mean
    error = _error(cell)
    text += rf" \pm {_math(_number(error, places))}" if error is not None else ""
    return f"${text}$" + (f", $n = {cell.n}$" if cell.n != most else "")


def _label(table: "Table", kind: str) -> str:
    """What a table is referred to by: letters, digits and dashes, whatever files say."""
    words = [table.conditions.metric, table.conditions.protocol, table.conditions.split, kind]
    return "tab:" + "-".join(filter(None, (re.sub("[^a-z0-9]+", "-", word.lower()).strip("-") for word in words)))


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
