"""RESULTS.md begins with a summary: it is short, and every number of it stands in the section that its row links to."""

import re
from pathlib import Path

import pytest

from tests.cli.test_docs import anchors

PAGE = Path(__file__).resolve().parents[1] / "benchmarks" / "RESULTS.md"
TEXT = PAGE.read_text(encoding="utf-8")
SUMMARY = TEXT[: TEXT.index("\n## How it was measured\n")]
NUMBER = r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?"


def sections() -> dict[str, str]:
    """The text below each heading, up to the next one that is no deeper, by the name that links call it."""
    headings = list(re.finditer(r"^(#+) .+$", TEXT, re.M))
    named = anchors(PAGE)
    assert len(headings) == len(named)
    found = {}
    for number, (heading, name) in enumerate(zip(headings, named, strict=True)):
        after = (one.start() for one in headings[number + 1 :] if len(one[1]) <= len(heading[1]))
        found[name] = TEXT[heading.end() : next(after, len(TEXT))]
    return found


def rows() -> list[tuple[str, str]]:
    return re.findall(r"^\| \[[^]]+\]\(#([^)]+)\)(.+) \|$", SUMMARY, re.M)


def test_it_is_a_page() -> None:
    assert SUMMARY.startswith("# Results\n") and len(SUMMARY.split()) < 2500
    assert len(rows()) == len(re.findall(r"^\|(?!-)", SUMMARY, re.M)) - SUMMARY.count("\n|---"), "a row has no link"


@pytest.mark.parametrize(("anchor", "row"), rows())
def test_every_number_of_a_row_is_in_its_section(anchor: str, row: str) -> None:
    """The last cell, seeds or target, is no measurement; numbers are compared as they are written."""
    cells = row.split("|")[:-1]
    there = {number.strip("+,") for number in re.findall(NUMBER, sections()[anchor])}
    missing = [number for number in re.findall(NUMBER, "|".join(cells)) if number.strip("+,") not in there]
    assert not missing, f"{missing} of the summary is not in the section {anchor}"
