"""Prints the lowest version that pyproject.toml allows of every dependency, extras too, for pip install -c."""

import re
import tomllib
from pathlib import Path

with open(Path(__file__).resolve().parents[1] / "pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
lists = [project["dependencies"], *project["optional-dependencies"].values()]
requirements = sorted({one for each in lists for one in each if not one.startswith(project["name"])})
print("\n".join(re.sub(r"^([\w.-]+)(?:\[\w+\])?>=([\w.]+).*", r"\1==\2", one) for one in requirements))  # noqa: T201
