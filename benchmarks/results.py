"""Writes RESULTS.md from the data files in ``results/``, or prints one of them as tables.

    python benchmarks/results.py            # writes RESULTS.md
    python benchmarks/results.py mnist-a    # prints results/mnist-a.toml

A data file has ``title``, ``measured`` (what, when, at which commit, with which seeds and judges), tables (with
``about``, what differs), and findings: rows of RESULTS.md, each in a group of ``results/page.toml``. Every number of a
finding stands in its file, every number of a group's text in one of its files.
"""

import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "results"


def read(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml") if path.stem != "page")


def markdown(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def page() -> str:
    """Return the page: introduction, a table for each group of findings, and the list of data files."""
    settings, files = read("page"), {name: read(name) for name in names()}
    parts = [f"# Results\n\n{settings['introduction'].strip()}"]
    for group in settings["group"]:
        parts.append(f"## {group['heading']}\n\n{group['text'].strip()}")
        rows = [
            [f"[{one['what']}](results/{name}.toml)", *one["cells"]]
            for name in group["files"]
            for one in files[name].get("finding", [])
            if one["group"] == group["name"]
        ]
        parts.append(markdown(group["columns"], rows))
    parts.append(f"## Not measured\n\n{settings['not_measured'].strip()}")
    listed = "\n".join(f"* [{one['title']}](results/{name}.toml)" for name, one in files.items())
    parts.append(f"## Data files\n\n`python benchmarks/results.py NAME` prints one as tables.\n\n{listed}")
    return "\n\n".join(parts) + "\n"


def tables(name: str) -> str:
    """Return one data file as Markdown: its findings, its tables, then how they were measured."""
    found, groups = read(name), {one["name"]: one["columns"] for one in read("page")["group"]}
    parts = [f"# {found['title']}"]
    for group, columns in groups.items():
        rows = [[one["what"], *one["cells"]] for one in found.get("finding", []) if one["group"] == group]
        parts += [markdown(columns, rows)] if rows else []
    for one in found.get("table", []):
        parts += [f"## {one['title']}"] if one["title"] else []
        parts += [one["about"]] if "about" in one else []
        parts.append(markdown(one["columns"], one["rows"]))
    return "\n\n".join([*parts, "## How it was measured", found["measured"]])


def main() -> None:
    if len(sys.argv) == 1:
        (HERE / "RESULTS.md").write_text(page(), encoding="utf-8")
    elif sys.argv[1] in names():
        print(tables(sys.argv[1]))
    else:
        sys.exit(f"unknown data file {sys.argv[1]!r}: available are {', '.join(names())}")


if __name__ == "__main__":
    main()
