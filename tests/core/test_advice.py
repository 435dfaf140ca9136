"""What people are told to install: libraries that the package declares, or a clone, and nobody else's names."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from mmgen.core import extras
from mmgen.core.extras import extra_requirements, how_to_install

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {name: wants for name, wants in PROJECT["optional-dependencies"].items() if name != "dev"}
TOLD = [
    path
    for place in ("mmgen", "cli", "data_recipes", "docs", "README.md", "CONTRIBUTING.md", "benchmarks")
    for path in ([ROOT / place] if (ROOT / place).is_file() else (ROOT / place).rglob("*"))
    if path.suffix in (".py", ".md", ".toml", ".html", ".ipynb", ".sh") and (ROOT / "mmgen" / "cli") not in path.parents
]
OURS = r"'?\.(\[|['\s`]|$)|\{|-|`"  # a clone, what how_to_install says, an option; or no command at all


def test_extras_are_those_that_the_package_declares() -> None:
    """Both come from pyproject.toml, so that no message names what an extra has not, or the other way round."""
    found = extra_requirements()
    for name, wants in EXTRAS.items():
        assert {*map(Requirement, found[name])} == {*map(Requirement, wants)}
        told = how_to_install(name)
        command = told[: told.index(" (in a clone")]
        assert shlex.split(command) == ["pip", "install", *found[name]]
        assert told.endswith(f"(in a clone of mmgen: pip install '.[{name}]')")


def test_without_an_installation_the_clone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "DISTRIBUTION", "no-such-thing")
    assert how_to_install("hub") == "pip install '.[hub]' in a clone of mmgen"


def test_nobody_is_told_to_install_what_is_not_ours() -> None:
    """On PyPI `mmgen` is another project's, and whoever registers a name that is free runs code on users' machines."""
    libraries = {re.split(r"[\[<>=~!]", want)[0] for wants in EXTRAS.values() for want in wants}
    found = []
    for path in TOLD:
        text = path.read_text(encoding="utf-8")
        for match in re.finditer(r"(pip3?|pipx|uv|conda)( pip)? (install|add) +(?P<what>\S*)", text):
            what = match["what"]
            if not re.match(OURS, what) and re.split(r"[\[<>=~!)`'\"]", what.lstrip("'\""))[0] not in libraries:
                found.append(f"{path.relative_to(ROOT)}: {match[0]}")
        hits = re.finditer(r"mmgen(-toolkit)?(\[[a-z{]|[<>=]=)", text)
        found += [f"{path.relative_to(ROOT)}: {hit[0]}" for hit in hits]
    assert len(TOLD) > 400
    assert not found
