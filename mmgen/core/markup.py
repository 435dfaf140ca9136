"""Small HTML tables for notebooks."""

from collections.abc import Iterable
from html import escape


def facts_table(title: str, facts: Iterable[tuple[str, object]]) -> str:
    """Return an HTML table of names and values below a title, all escaped.

    Example:
        >>> facts_table("a <b>", [("z", 2)])
        '<table><caption>a &lt;b&gt;</caption><tr><th scope="row">z</th><td>2</td></tr></table>'
    """
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(str(value))}</td></tr>' for name, value in facts
    )
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"
