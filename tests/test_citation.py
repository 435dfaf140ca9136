"""CITATION.cff says what the package says, and has what its format (1.2.0) asks for."""

import re
import tomllib
from pathlib import Path

from mmgen.core.version import __version__

ROOT = Path(__file__).resolve().parents[1]


def test_the_citation_is_of_this_version_and_has_every_required_key() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    keys = dict(re.findall(r"^([a-z-]+): *(.*)$", text, re.M))
    assert {"cff-version", "message", "title", "authors"} <= keys.keys()  # required by the schema
    known = "cff-version message title authors abstract type version license keywords"
    assert keys.keys() <= set(known.split())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (keys["cff-version"], keys["type"], keys["version"]) == ("1.2.0", "software", __version__)
    assert keys["license"] == project["license"] and f"- name: {project['authors'][0]['name']}" in text
    assert re.findall(r"^  - (.*)$", text.split("keywords:")[1], re.M) == project["keywords"]
