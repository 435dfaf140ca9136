"""Runs ``docs/notebook.ipynb`` from its first cell to its last and keeps what each shows.

``python docs/execute.py`` writes it. A notebook is JSON; no more than Python is needed to run this one.
"""

import ast
import base64
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("notebook.ipynb")


def _shown(value: Any) -> dict[str, Any]:
    """Return a value as a notebook stores it: its text, and its picture or its table."""
    found: dict[str, Any] = {"text/plain": repr(value)}
    if hasattr(value, "_repr_png_"):
        found = {"image/png": base64.b64encode(value._repr_png_()).decode("ascii"), "text/plain": type(value).__name__}
    elif hasattr(value, "_repr_html_"):
        found["text/html"] = value._repr_html_()
    return found


def _run(source: str, names: dict[str, Any]) -> tuple[list[dict[str, Any]], Any]:
    """Run one cell, and return its outputs: printed text, and the value of its last expression."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), PAGE.name, "exec"), names)
        if last is not None:
            assert isinstance(last, ast.Expr)
            value = eval(compile(ast.Expression(last.value), PAGE.name, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    return outputs, value


def executed(notebook: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run the cells of a notebook in a folder, one after the other, and return the notebook."""
    names: dict[str, Any] = {"__name__": "__main__"}
    done = json.loads(json.dumps(notebook))
    before = Path.cwd()
    os.chdir(folder)
    try:
        count = 0
        for cell in done["cells"]:
            if cell["cell_type"] != "code":
                continue
            count += 1
            outputs, value = _run("".join(cell["source"]), names)
            if value is not None:
                result = {"output_type": "execute_result", "execution_count": count, "metadata": {}}
                outputs.append({**result, "data": _shown(value)})
            cell["execution_count"], cell["outputs"] = count, outputs
    finally:
        os.chdir(before)
    return done


def main() -> None:
    """Run the notebook in an empty folder and write it with what it showed."""
    notebook = json.loads(PAGE.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        done = executed(notebook, Path(folder))
    PAGE.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
