"""What worlds beside the core add to tables of the core's tests: names in their ``tests/contrib/NAME/_added.py``."""

import importlib
from pathlib import Path
from typing import Any


def added(table: str) -> list[Any]:
    """What each world adds to a table, such as "READERS"; nothing where there is none."""
    files = sorted(Path(__file__).parent.glob("contrib/*/_added.py"))
    modules = [importlib.import_module(f"tests.contrib.{file.parent.name}._added") for file in files]
    return [getattr(module, table) for module in modules if hasattr(module, table)]


def added_rows(table: str) -> dict[Any, Any]:
    """The same of tables by name, as one."""
    return {key: row for rows in added(table) for key, row in rows.items()}
