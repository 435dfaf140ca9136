"""The pages of the site that follow from the code."""

import runpy
from functools import cache
from pathlib import Path

MADE = runpy.run_path(str(Path(__file__).resolve().parents[1] / "docs" / "generate.py"))["PAGES"]


@cache
def generated_page(name: str) -> str:
    return str(MADE[name]())
