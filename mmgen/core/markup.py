"""Small tables of HTML, which notebooks show for what would be a line of text elsewhere."""

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["facts_table", "grid_table"]


def facts_table(title: str, facts: Iterable[tuple[str, object]]) -> str:
    """Names and values below a title; everything is text, whatever files put into it.

    Example:
        >>> facts_table("a <b>", [("z", 2)])
        '<table><caption>a &lt;b&gt;</caption><tr><th scope="row">z</th><td>2</td></tr></table>'
    """
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(str(value))}</td></tr>' for name, value in facts
    )
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"


def grid_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with headings.

    Example:
        >>> grid_table(["a"], [["<"]])
        '<table><tr><th scope="col">a</th></tr><tr><td>&lt;</td></tr></table>'
    """
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{heads}</tr>{body}</table>"
