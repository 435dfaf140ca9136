"""RESULTS.md is made from data files; it is short, and every number of a finding stands in its file."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in ROOT.glob("benchmarks/results/*.toml")}
PAGE = FILES.pop("page")
NUMBER = r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?"


def numbers(texts: list[str]) -> set[str]:
    return {number.strip("+,") for text in texts for number in re.findall(NUMBER, text)}


def numbers_of(name: str) -> set[str]:
    """All numbers of a data file but those of its findings."""
    found = FILES[name]
    rows = [
        row for table in found.get("table", []) for row in [table["columns"], *table["rows"], [table.get("about", "")]]
    ]
    return numbers([found["measured"], *(cell for row in rows for cell in row)])


def test_the_page_is_made_from_the_files_and_short() -> None:
    made: dict[str, Any] = {"__file__": str(ROOT / "benchmarks" / "results.py"), "__name__": "results"}
    exec((ROOT / "benchmarks" / "results.py").read_text(encoding="utf-8"), made)
    text = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    assert made["page"]() == text, "run: python benchmarks/results.py"
    assert len(text.split()) < 3500
    assert all(made["tables"](name).startswith(f"# {found['title']}") for name, found in FILES.items())


@pytest.mark.parametrize("name", sorted(FILES))
def test_every_number_of_a_finding_is_in_its_file(name: str) -> None:
    """Targets and seeds are no measurements; numbers are compared as they are written."""
    found = FILES[name]
    assert set(found) <= {"title", "measured", "finding", "table"} and found["measured"]
    there, groups = numbers_of(name), {group["name"]: group for group in PAGE["group"]}
    for one in found.get("finding", []):
        group = groups[one["group"]]
        assert name in group["files"]
        named = zip(group["columns"][1:], one["cells"], strict=True)
        measured = [cell for column, cell in named if column not in ("target", "seeds")]
        assert not numbers(measured) - there, f"{one['what']}: a number is not in the file"
    for table in found.get("table", []):
        assert all(len(row) == len(table["columns"]) for row in table["rows"]), table["title"]


@pytest.mark.parametrize("group", PAGE["group"], ids=lambda group: str(group["name"]))
def test_every_number_of_a_groups_text_is_in_one_of_its_files(group: dict[str, Any]) -> None:
    there = set[str]().union(*map(numbers_of, group["files"]))
    said = re.sub(r"\]\([^)]*\)|\d+\.\d+\.\d+", "]", group["text"])  # addresses and versions are no numbers
    assert not numbers([said]) - there
