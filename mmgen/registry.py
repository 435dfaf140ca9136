"""How members are found: a package is its own registry.

The members of a room are its files without a leading underscore; ``get`` imports just the one file and returns the
single public object of its ``__all__``. Names use hyphens where files use underscores (``mnist_a.py`` is ``mnist-a``).
Nothing is kept by hand, so a new member is one new file.
"""

import ast
import difflib
import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mmgen.errors import UsageError, clip

__all__ = ["Registry", "nearest", "unknown_name"]

_LONGEST_NAME = 100
"""Characters of a name that a message repeats, and that are compared with others."""


def nearest(got: str, expected: Sequence[str]) -> str | None:
    """The name that was most likely meant; None where none is like it, since a wild guess is worse than none.

    Example:
        >>> nearest("lst", ["list", "plot"]), nearest("version", ["train", "eval"])
        ('list', None)
    """
    # 0.6 lets two slips through in a word of five letters, and takes no word for another that shares half its letters.
    return next(iter(difflib.get_close_matches(got[:_LONGEST_NAME], expected, n=1, cutoff=0.6)), None)


def unknown_name(what: str, got: str, expected: Sequence[str]) -> str:
    """The one sentence for a name that does not exist: it suggests the nearest and lists the rest.

    Example:
        >>> unknown_name("objective", "tebo", ["elbo", "telbo"])
        "unknown objective 'tebo': did you mean 'telbo'? Available: elbo, telbo"
    """
    near = nearest(got, expected)
    hint = f"did you mean '{near}'? " if near else ""
    return f"unknown {what} '{clip(got, _LONGEST_NAME)}': {hint}Available: {', '.join(expected)}"


class Registry:
    """The members of one package.

    Args:
        package: Dotted name of the package (``__name__`` of its ``__init__``).
        noun: What a member is called in messages ("objective").
    """

    def __init__(self, package: str, noun: str) -> None:
        self.package = package
        self.noun = noun

    def _folder(self) -> Path:
        spec = importlib.util.find_spec(self.package)
        assert spec is not None and spec.origin is not None
        return Path(spec.origin).parent

    def names(self) -> list[str]:
        """Names of all members, sorted; imports none of them."""
        return sorted(p.stem.replace("_", "-") for p in self._folder().glob("*.py") if not p.stem.startswith("_"))

    def _check(self, name: str) -> str:
        if name not in self.names():
            raise UsageError(unknown_name(self.noun, name, self.names()))
        return name.replace("-", "_")

    def get(self, name: str) -> Any:
        """The member called ``name``.

        Raises:
            UsageError: There is no such member.
        """
        module = importlib.import_module(f"{self.package}.{self._check(name)}")
        public: list[str] = module.__all__
        assert len(public) == 1, f"{module.__name__} must offer exactly one public object, offers {public}"
        return getattr(module, public[0])

    def describe(self, name: str) -> str:
        """First line of the member's module docstring, read without importing it (so that listing stays fast)."""
        source = (self._folder() / f"{self._check(name)}.py").read_text(encoding="utf-8")
        return (ast.get_docstring(ast.parse(source)) or "").split("\n")[0].rstrip(".")
