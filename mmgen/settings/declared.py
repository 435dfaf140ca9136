"""Docstrings, ranges and defaults of a class's fields, read from its source file without importing it.

Help must be fast, so it cannot import settings from modules that load torch.
"""

import ast
import importlib.util
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class SourceField:
    """Docstring, default, range and choices of one field of a class, read from the class's source.

    Attributes:
        about: Docstring as one line; "" without one.
        default: Default value if it is a literal, else None.
        least: Lower bound (``ge``); None without one.
        most: Upper bound (``le``); None without one.
        choices: Allowed words (``Literal``); empty if others are allowed.
    """

    about: str
    default: Any
    least: float | None
    most: float | None
    choices: tuple[str, ...] = ()


def read_class_fields(class_path: str) -> dict[str, SourceField]:
    """Read the fields of a class, by name, from the source of its module, without importing the module.

    Args:
        class_path: Room or module, and class: ``mmgen.metrics:EvaluationSettings``.

    Example:
        >>> read_class_fields("mmgen.training.settings:TrainingSettings")["steps"]
        SourceField(about='Optimiser steps.', default=10000, least=0, most=None, choices=())
    """
    module, _, name = class_path.partition(":")
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None, module
    path = Path(spec.origin)
    if path.name == "__init__.py":  # the room's stub names the module of the class
        stub = ast.parse(path.with_suffix(".pyi").read_text(encoding="utf-8"))
        path = path.parent / f"{next(_modules_exporting(stub, name))}.py"
    return read_class_fields_in(path, name)


def _modules_exporting(stub: ast.Module, name: str) -> Iterator[str]:
    for node in stub.body:
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            yield str(node.module)


@cache
def read_class_fields_in(path: Path, name: str) -> dict[str, SourceField]:
    """Read the fields of the class ``name`` from the Python file ``path``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    aliases = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    fields = {}
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            bounds = dict(_bounds(node.annotation, aliases))
            default = _literal_value(node.value)
            fields[node.target.id] = SourceField(
                _docstring_of(after), default, bounds.get("ge"), bounds.get("le"), _choices(node.annotation)
            )
    return fields


def _docstring_of(node: ast.AST | None) -> str:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return " ".join(node.value.value.split()) if is_text else ""  # type: ignore[union-attr]  # as just looked at


def _literal_value(node: ast.expr | None) -> Any:
    with suppress(ValueError):
        return None if node is None else ast.literal_eval(node)
    return None


def _choices(annotation: ast.expr) -> tuple[str, ...]:
    is_literal = isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Literal"
    words = ast.literal_eval(annotation.slice) if is_literal else ()  # type: ignore[attr-defined]  # as just looked at
    return words if isinstance(words, tuple) else (words,)


def _bounds(annotation: ast.expr, aliases: dict[str, ast.expr]) -> Iterator[tuple[str, Any]]:
    """Yield the bounds ("ge" or "le", number) in a field's annotation; ``aliases`` are assignments of the same file."""
    for node in ast.walk(annotation):
        if isinstance(node, ast.Name) and node.id in aliases:
            yield from _bounds(aliases[node.id], aliases)
        elif isinstance(node, ast.Call):
            yield from ((word.arg, _literal_value(word.value)) for word in node.keywords if word.arg in ("ge", "le"))
