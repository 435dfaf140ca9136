"""What CI installs as the lowest versions is what pyproject.toml allows."""

import itertools
import subprocess
import sys
import tomllib

from tests.program import ROOT


def test_each_dependency_has_a_lowest_version_and_ci_installs_it() -> None:
    done = subprocess.run([sys.executable, ROOT / ".ci" / "lowest.py"], capture_output=True, text=True, check=True)
    lowest = dict(line.split("==") for line in done.stdout.splitlines())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for one in itertools.chain(project["dependencies"], *project["optional-dependencies"].values()):
        name, version = one.partition("[")[0].partition(">")[0], one.partition(">=")[2].partition(",")[0]
        assert name == project["name"] or lowest[name] == version, one
    assert lowest["typer"] == "0.29", "0.26 to 0.28 lack what the command line reads"
