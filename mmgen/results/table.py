"""Tables, printed for a terminal or as tab-separated lines, CSV, Markdown, LaTeX or HTML."""

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

Cell = str | Number
"""A cell of a table: text, or a number that the printers round."""

_GAP = 3
"""Width of the gap between two columns in a terminal."""
_TALLEST = 6
"""Largest number of lines of a cell; a taller cell is easier to read in a block."""
_NUMERIC = ("", *"+-0123456789")
"""First characters of texts that are aligned to the right like numbers."""


@dataclass(frozen=True)
class Table:
    """Table with title, headings and cells of texts and numbers.

    Attributes:
        title: Text above it; may be empty.
        columns: The headings.
        rows: Rows of cells, one for each column; a :class:`mmgen.results.number.Number` is rounded by the printers.
        note: Sentences below it; may be empty.
        label: Label of references in LaTeX: "tab:correctness".

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
        """Format the table for a terminal: numbers to the right, texts to the left, no word broken.

        If the table is too wide, columns with the same value in all rows move above it; if it is still too wide, each
        row becomes a block of lines.

        Args:
            width: Columns of the terminal; None for no limit.
        """
        words = replace(
            self,
            columns=[strip_controls(column) for column in self.columns],
            rows=[[strip_controls(cell) for cell in _format_row(row)] for row in self.rows],
        )
        lines = _format_columns(words, width) or _format_blocks(words, width or 80)
        return "\n".join(line.rstrip() for line in [*lines, *filter(None, [strip_controls(self.note)])])

    def tab_separated(self) -> str:
        """Format the rows as lines of tab-separated cells, for ``grep`` and ``cut``: unrounded numbers, no headings."""
        _, rows = self._unrounded_cells()
        return "\n".join("\t".join(" ".join(cell.split()) for cell in row) for row in rows)

    def csv(self) -> str:
        """Format the table as CSV: headings, then rows with unrounded numbers and separate columns of errors.

        A cell that a spreadsheet would take for a formula is quoted.
        """
        columns, rows = self._unrounded_cells()
        out = io.StringIO()
        writer = csv_writer.writer(out, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([[_quote_formula(cell) for cell in row] for row in rows])
        return out.getvalue()

    def markdown(self) -> str:
        """Format the table in Markdown, with the title and the best numbers in bold."""
        rule = ["---:" if self._is_numeric(place) else "---" for place in range(len(self.columns))]
        rows = [_format_row(row, "**", "**") for row in self.rows]
        head = [f"**{_escape_markdown(self.title)}**", ""] if self.title else []
        foot = ["", _escape_markdown(self.note)] if self.note else []
        lines = ("| " + " | ".join(map(_escape_markdown, row)) + " |" for row in (self.columns, rule, *rows))
        return "\n".join([*head, *lines, *foot])

    def latex(self) -> str:
        r"""Format the table in LaTeX with the package booktabs; the best numbers are bold, the note is a comment."""
        numbers = "".join("r" if self._is_numeric(place) else "l" for place in range(len(self.columns)))
        caption = [rf"\caption{{{_escape_latex(self.title)}}}"] if self.title else []
        caption += [rf"\label{{{self.label}}}"] if self.label else []
        lines = [r"\begin{table}", r"\centering", *caption, rf"\begin{{tabular}}{{{numbers}}}", r"\toprule"]
        lines += [_latex_row(map(_escape_latex, self.columns)), r"\midrule"]
        lines += [
            _latex_row(_format_latex_number(c) if isinstance(c, Number) else _escape_latex(c) for c in row)
            for row in self.rows
        ]
        note = [f"% {' '.join(strip_controls(self.note).split())}"] if self.note else []
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", *note])

    def html(self) -> str:
        """Format the table in HTML; all text is escaped, the best numbers are bold."""
        caption = f"<caption>{escape(strip_controls(self.title))}</caption>" if self.title else ""
        heads = "".join(f'<th scope="col">{escape(strip_controls(column))}</th>' for column in self.columns)
        body = "".join("<tr>" + "".join(map(_html_cell, row)) + "</tr>" for row in self.rows)
        foot = f"<p>{escape(strip_controls(self.note))}</p>" if self.note else ""
        return f"<table>{caption}<tr>{heads}</tr>{body}</table>{foot}"

    def _repr_html_(self) -> str:
        return self.html()

    def _is_numeric(self, place: int) -> bool:
        """Return whether the column at this place holds numbers, so that it is aligned to the right."""
        cells = [row[place] for row in self.rows]
        return place > 0 and all(isinstance(cell, Number) or cell[:1] in _NUMERIC for cell in cells)

    def _unrounded_cells(self) -> tuple[list[str], list[list[str]]]:
        """Return headings and rows of cells with unrounded numbers, whose errors stand in columns of their own."""
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


def _format_row(row: Iterable[Cell], before: str = "", after: str = "*") -> list[str]:
    """Format the cells of a row as text, with marks around the best numbers."""
    return [
        cell if isinstance(cell, str) else cell.text_with_marks(before, after) if cell.best else cell.text_with_marks()
        for cell in row
    ]


# --- terminal


def _display_width(text: str) -> int:
    """Return the width of a text in a terminal, in characters."""
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else not unicodedata.combining(one) for one in text)


def _minimal_width(text: str) -> int:
    """Return the least width of a cell: that of its longest word; a number and its error are one word."""
    return max(map(_display_width, _join_unbreakable(text).split(" ")), default=0)


def _join_unbreakable(text: str) -> str:
    """Join a number with its error and unit by non-breaking spaces."""
    joined = " ".join(text.split()).replace(" %", "\N{NO-BREAK SPACE}%")
    return joined.replace(" ", "\N{NO-BREAK SPACE}") if "±" in text and text[:1] in _NUMERIC else joined


def _fit_widths(columns: Sequence[Sequence[str]], room: int | None) -> list[int] | None:
    """Choose widths of columns that together fit into ``room`` without breaking words; None if there are none."""
    least = [max(map(_minimal_width, cells)) for cells in columns]
    most = [max(map(_display_width, cells)) for cells in columns]
    if room is None:
        return most
    left = room - sum(least)
    if left < 0:
        return None
    # Columns with short texts reach their full width first.
    for place in sorted(range(len(columns)), key=lambda place: most[place] - least[place]):
        extra = min(most[place] - least[place], left)
        least[place] += extra
        left -= extra
    return None if any(high > _TALLEST * low for high, low in zip(most, least, strict=True)) else least


def _format_columns(table: Table, width: int | None) -> list[str] | None:
    """Format a table as lines with aligned columns; None if it is too wide."""
    rows: list[list[str]] = [[*row] for row in table.rows]  # type: ignore[list-item]
    every = list(range(len(table.columns)))
    differing = [place for place in every if len(rows) < 2 or len({row[place] for row in rows}) > 1]
    for chosen in (every, differing):
        cells = [[table.columns[place], *(row[place] for row in rows)] for place in chosen]
        widths = _fit_widths(cells, None if width is None else width - _GAP * len(chosen)) if chosen else None
        if widths is None:
            continue
        same = "; ".join(f"{table.columns[place]}: {rows[0][place]}" for place in every if place not in chosen)
        heads = [line for part in (strip_controls(table.title), same) if part for line in _wrap(part, width)]
        return [*heads, *_draw_columns(cells, widths)]
    return None


def _wrap(text: str, width: int | None) -> list[str]:
    if width is None:
        return [text]
    lines = textwrap.wrap(_join_unbreakable(text), max(1, width), break_long_words=False, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines] or [""]


def _draw_columns(columns: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    right = [index > 0 and all(cell[:1] in _NUMERIC for cell in cells[1:]) for index, cells in enumerate(columns)]
    lines = []
    for number, row in enumerate(zip(*columns, strict=True)):
        parts = [_wrap(cell, size) for cell, size in zip(row, widths, strict=True)]
        for level in range(max(map(len, parts))):
            cells = [part[level] if level < len(part) else "" for part in parts]
            lines.append("   ".join(_pad(*one) for one in zip(cells, widths, right, strict=True)))
        if not number:
            lines.append("─" * (sum(widths) + _GAP * (len(widths) - 1) + 1))
    return [line if line.startswith("─") else f" {line}" for line in lines]


def _pad(cell: str, size: int, right: bool) -> str:
    blanks = " " * max(0, size - _display_width(cell))
    return blanks + cell if right else cell + blanks


def _format_blocks(table: Table, width: int) -> list[str]:
    """Format a table that is too wide for columns: each row as lines of heading and value."""
    aligned = max(map(_display_width, table.columns), default=0)
    beside = all(_minimal_width(str(cell)) <= width - aligned - 4 for row in table.rows for cell in row)
    lines = _wrap(strip_controls(table.title), width) if table.title else []
    for row in table.rows:
        lines.append("")
        for name, cell in zip(table.columns, row, strict=True):
            if beside:
                first, *further = _wrap(str(cell), width - aligned - 4)
                lines += [
                    f"  {_pad(name, aligned, False)}  {first}",
                    *(" " * (aligned + 4) + line for line in further),
                ]
            else:
                lines += [f"  {name}", *(f"    {line}" for line in _wrap(str(cell), width - 4))]
    return lines


# --- CSV, Markdown, LaTeX, HTML


def _quote_formula(cell: str) -> str:
    try:
        float(cell)
    except ValueError:
        return f"'{cell}" if cell[:1] in "=+-@\t" and cell else cell
    return cell


def _escape_markdown(text: str) -> str:
    return strip_controls(text).replace("|", "\\|").replace("\n", " ")


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}",
    "<": r"\textless{}", ">": r"\textgreater{}",
    "±": r"$\pm$", "−": "$-$",
}  # fmt: skip


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in strip_controls(text))


def _format_latex_number(number: Number) -> str:
    """Format a number in math mode, where a comma between digits and blanks need escapes."""
    if number.value_text == "not finite":
        return number.value_text
    text = replace(number, unit="", note="").text_with_marks(*((r"\mathbf{", "}") if number.best else ("", "")))
    text = re.sub(r"(?<=\d),(?=\d)", "{,}", text).replace(" [", r"\ [").replace("±", r"\pm")
    return f"${text}$" + _escape_latex((f" {number.unit}" if number.unit else "") + number.note)


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _html_cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return f"<td>{escape(strip_controls(cell))}</td>"
    detail = f' title="{escape(strip_controls(cell.detail))}"' if cell.detail else ""
    text = escape(strip_controls(str(cell)))
    return f"<td{detail}>{f'<b>{text}</b>' if cell.best else text}</td>"
