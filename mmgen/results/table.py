"""One type of table, and its printers: terminal, tab-separated lines, CSV, Markdown, LaTeX and HTML."""

import csv as csv_writer
import io
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape

from mmgen.core.parsing import strip_controls
from mmgen.results.number import Number

__all__ = ["Cell", "Table"]

Cell = str | Number
"""A cell of a table: words, or a number that the printers round."""

_GAP = 3
"""Letters between two columns of a terminal, with a blank at each side."""
_TALLEST = 6
"""Lines of a cell, beyond which a narrow column is harder to read than a block."""
_NUMERIC = ("", *"+-0123456789")
"""How words begin that are aligned as numbers are."""


@dataclass(frozen=True)
class Table:
    """A table: words and numbers below headings.

    Attributes:
        title: Printed above it; may be empty.
        columns: The headings.
        rows: A cell for each column; :class:`mmgen.results.number.Number` for what has an error or is rounded.
        note: Sentences printed below it; may be empty.
        label: What LaTeX refers to it by: "tab:correctness".

    Example:
        >>> table = Table("Scores", ["drawn from", "correctness"], [["prior", Number(29.71, 0.26)]])
        >>> print(table.text())
        Scores
         drawn from   correctness
        ──────────────────────────
         prior        29.71 ± 0.26
        >>> print(table.csv(), end="")
        drawn from,correctness,correctness: error
        prior,29.71,0.26
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    label: str = ""

    def text(self, width: int | None = None) -> str:
        """Return lines for a terminal: numbers to the right, words to the left, no word broken.

        A table that is too wide names above it what all rows share; one that is still too wide becomes blocks of lines,
        one for each row.

        Args:
            width: Columns of the terminal; None for any number.
        """
        words = replace(self, columns=_plain(self.columns), rows=[_plain(_texts(row)) for row in self.rows])
        lines = _in_columns(words, width) or _in_blocks(words, width or 80)
        return "\n".join(line.rstrip() for line in [*lines, *filter(None, [strip_controls(self.note)])])

    def tabs(self) -> str:
        """Return rows for ``grep`` and ``cut``: cells with tabs between, numbers in full, without headings."""
        _, rows = self._in_full()
        return "\n".join("\t".join(" ".join(cell.split()) for cell in row) for row in rows)

    def csv(self) -> str:
        """Return a heading and rows with numbers in full, and errors in columns of their own.

        A cell that a spreadsheet would take for a formula is quoted.
        """
        columns, rows = self._in_full()
        out = io.StringIO()
        writer = csv_writer.writer(out, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([[_no_formula(cell) for cell in row] for row in rows])
        return out.getvalue()

    def markdown(self) -> str:
        """Return a table of Markdown, with its title in bold; the best numbers are bold."""
        rule = ["---:" if self._is_numeric(place) else "---" for place in self._places]
        rows = [_texts(row, "**", "**") for row in self.rows]
        head = [f"**{_in_markdown(self.title)}**", ""] if self.title else []
        foot = ["", _in_markdown(self.note)] if self.note else []
        lines = ("| " + " | ".join(map(_in_markdown, row)) + " |" for row in (self.columns, rule, *rows))
        return "\n".join([*head, *lines, *foot])

    def latex(self) -> str:
        r"""Return a ``table`` for the package booktabs; the best numbers are bold, the note is a comment."""
        numbers = "".join("r" if self._is_numeric(place) else "l" for place in self._places)
        caption = [rf"\caption{{{_in_latex(self.title)}}}"] if self.title else []
        caption += [rf"\label{{{self.label}}}"] if self.label else []
        lines = [r"\begin{table}", r"\centering", *caption, rf"\begin{{tabular}}{{{numbers}}}", r"\toprule"]
        lines += [_latex_row(map(_in_latex, self.columns)), r"\midrule"]
        lines += [
            _latex_row(_number_in_latex(c) if isinstance(c, Number) else _in_latex(c) for c in row) for row in self.rows
        ]
        note = [f"% {' '.join(strip_controls(self.note).split())}"] if self.note else []
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", *note])

    def html(self) -> str:
        """Return a ``table`` element; all text is escaped, the best numbers are bold."""
        caption = f"<caption>{escape(strip_controls(self.title))}</caption>" if self.title else ""
        heads = "".join(f'<th scope="col">{escape(strip_controls(column))}</th>' for column in self.columns)
        body = "".join("<tr>" + "".join(map(_in_html, row)) + "</tr>" for row in self.rows)
        foot = f"<p>{escape(strip_controls(self.note))}</p>" if self.note else ""
        return f"<table>{caption}<tr>{heads}</tr>{body}</table>{foot}"

    def _repr_html_(self) -> str:
        return self.html()

    @property
    def _places(self) -> range:
        return range(len(self.columns))

    def _is_numeric(self, place: int) -> bool:
        """Return whether a column is aligned to the right."""
        cells = [row[place] for row in self.rows]
        return place > 0 and all(isinstance(cell, Number) or cell[:1] in _NUMERIC for cell in cells)

    def _in_full(self) -> tuple[list[str], list[list[str]]]:
        """Return headings and cells with errors in columns of their own."""
        columns: list[str] = []
        rows: list[list[str]] = [[] for _ in self.rows]
        for place, heading in enumerate(self.columns):
            cells = [row[place] for row in self.rows]
            columns.append(heading)
            for line, cell in zip(rows, cells, strict=True):
                line.append(str(cell.value) if isinstance(cell, Number) else cell)
            if any(isinstance(cell, Number) and cell.error is not None for cell in cells):
                columns.append(f"{heading}: error")
                for line, cell in zip(rows, cells, strict=True):
                    line.append(str(cell.error) if isinstance(cell, Number) and cell.error is not None else "")
        return columns, rows


def _texts(row: Iterable[Cell], before: str = "", after: str = "*") -> list[str]:
    """Return cells as text, with marks around the best."""
    return [
        cell if isinstance(cell, str) else cell.marked(before, after) if cell.best else cell.marked() for cell in row
    ]


def _plain(cells: Iterable[str]) -> list[str]:
    return [strip_controls(cell) for cell in cells]


# --- terminal


def _wide(text: str) -> int:
    """Return the columns of a terminal that a text takes."""
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else not unicodedata.combining(one) for one in text)


def _longest(text: str) -> int:
    """Return the minimal width of a cell; a number and its error are one word."""
    return max(map(_wide, _whole(text).split(" ")), default=0)


def _whole(text: str) -> str:
    """Join a number with its error and unit by spaces that do not break."""
    joined = " ".join(text.split()).replace(" %", "\N{NO-BREAK SPACE}%")
    return joined.replace(" ", "\N{NO-BREAK SPACE}") if "±" in text and text[:1] in _NUMERIC else joined


def _widths(columns: Sequence[Sequence[str]], room: int | None) -> list[int] | None:
    """Return widths of columns so that all fit without breaking words; None if impossible or too narrow to read."""
    least = [max(map(_longest, cells)) for cells in columns]
    most = [max(map(_wide, cells)) for cells in columns]
    if room is None:
        return most
    left = room - sum(least)
    if left < 0:
        return None
    # Numbers and names, which are short, get all their room first.
    for place in sorted(range(len(columns)), key=lambda place: most[place] - least[place]):
        more = min(most[place] - least[place], left)
        least[place] += more
        left -= more
    return None if any(high > _TALLEST * low for high, low in zip(most, least, strict=True)) else least


def _in_columns(table: Table, width: int | None) -> list[str] | None:
    """Return a table in columns; None where it is too wide."""
    rows: list[list[str]] = [[*row] for row in table.rows]  # type: ignore[list-item]
    every = list(table._places)
    differing = [place for place in every if len(rows) < 2 or len({row[place] for row in rows}) > 1]
    for chosen in (every, differing):
        cells = [[table.columns[place], *(row[place] for row in rows)] for place in chosen]
        widths = _widths(cells, None if width is None else width - _GAP * len(chosen)) if chosen else None
        if widths is None:
            continue
        same = "; ".join(f"{table.columns[place]}: {rows[0][place]}" for place in every if place not in chosen)
        heads = [line for part in (strip_controls(table.title), same) if part for line in _wrapped(part, width)]
        return [*heads, *_drawn(cells, widths)]
    return None


def _wrapped(text: str, width: int | None) -> list[str]:
    if width is None:
        return [text]
    lines = textwrap.wrap(_whole(text), max(1, width), break_long_words=False, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines] or [""]


def _drawn(columns: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    right = [index > 0 and all(cell[:1] in _NUMERIC for cell in cells[1:]) for index, cells in enumerate(columns)]
    lines = []
    for number, row in enumerate(zip(*columns, strict=True)):
        parts = [_wrapped(cell, size) for cell, size in zip(row, widths, strict=True)]
        for level in range(max(map(len, parts))):
            cells = [part[level] if level < len(part) else "" for part in parts]
            lines.append("   ".join(_padded(*one) for one in zip(cells, widths, right, strict=True)))
        if not number:
            lines.append("─" * (sum(widths) + _GAP * (len(widths) - 1) + 1))
    return [line if line.startswith("─") else f" {line}" for line in lines]


def _padded(cell: str, size: int, right: bool) -> str:
    blanks = " " * max(0, size - _wide(cell))
    return blanks + cell if right else cell + blanks


def _in_blocks(table: Table, width: int) -> list[str]:
    """Return each row as lines of heading and value; the value stands below where the terminal is narrow."""
    aligned = max(map(_wide, table.columns), default=0)
    beside = all(_longest(str(cell)) <= width - aligned - 4 for row in table.rows for cell in row)
    lines = _wrapped(strip_controls(table.title), width) if table.title else []
    for row in table.rows:
        lines.append("")
        for name, cell in zip(table.columns, row, strict=True):
            if beside:
                first, *further = _wrapped(str(cell), width - aligned - 4)
                lines += [
                    f"  {_padded(name, aligned, False)}  {first}",
                    *(" " * (aligned + 4) + line for line in further),
                ]
            else:
                lines += [f"  {name}", *(f"    {line}" for line in _wrapped(str(cell), width - 4))]
    return lines


# --- CSV, Markdown, LaTeX, HTML


def _no_formula(cell: str) -> str:
    try:
        float(cell)
    except ValueError:
        return f"'{cell}" if cell[:1] in "=+-@\t" and cell else cell
    return cell


def _in_markdown(text: str) -> str:
    return strip_controls(text).replace("|", "\\|").replace("\n", " ")


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}",
    "<": r"\textless{}", ">": r"\textgreater{}",
    "±": r"$\pm$", "−": "$-$",
}  # fmt: skip


def _in_latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in strip_controls(text))


def _number_in_latex(number: Number) -> str:
    """Return a number in mathematics, where a comma between digits is no comma of a list and blanks are not printed."""
    if number.rounded == "not finite":
        return number.rounded
    text = replace(number, unit="", note="").marked(*((r"\mathbf{", "}") if number.best else ("", "")))
    text = re.sub(r"(?<=\d),(?=\d)", "{,}", text).replace(" [", r"\ [").replace("±", r"\pm")
    return f"${text}$" + _in_latex((f" {number.unit}" if number.unit else "") + number.note)


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _in_html(cell: Cell) -> str:
    if isinstance(cell, str):
        return f"<td>{escape(strip_controls(cell))}</td>"
    detail = f' title="{escape(strip_controls(cell.detail))}"' if cell.detail else ""
    text = escape(strip_controls(str(cell)))
    return f"<td{detail}>{f'<b>{text}</b>' if cell.best else text}</td>"
