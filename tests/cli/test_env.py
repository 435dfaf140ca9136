"""``mmgen env``: everything that a bug report needs, and nothing about the person."""

import getpass
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import torch

from mmgen.core.version import __version__


def test_it_says_versions_and_extras_and_no_names(run: Callable[..., Any], tmp_path: Path) -> None:
    said = run("env")
    rows = dict(line.split("\t") for line in said.stdout.splitlines())
    assert rows["mmgen.version"] == __version__ and rows["torch.version"] == torch.__version__
    assert rows["libraries.needed.numpy"] == numpy.__version__ and "processor.cores" in rows and "plug-ins" in rows
    assert "libraries.dask.dask" in rows and "libraries.tensorboard.tensorboard" in rows
    for private in (str(Path.home()), str(tmp_path), f"/{getpass.getuser()}"):
        assert private not in said.stdout + said.stderr


def test_its_json_holds_the_same(run: Callable[..., Any]) -> None:
    found = json.loads(run("env", "--json").stdout)
    assert found["libraries"]["needed"]["numpy"] == numpy.__version__
    assert found["device"]["auto"] in ("cpu", "cuda")
