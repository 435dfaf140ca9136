"""The page to explore of the quickstarts."""

from pathlib import Path
from typing import Any

import pytest

import mmgen
from mmgen.cli import quickstart
from mmgen.contrib.explore.make import Limits
from tests.contrib.explore._pages_to_explore import page_of


@pytest.mark.parametrize(("data", "guidance"), [("shapes", "cfg:1.5"), ("digits", "3")])
def test_the_report_shows_the_best_row_and_waits_for_the_page_that_it_links_to(data: str, guidance: str) -> None:
    """The page is named by the report, which is made after it; the page names the report, which is not there yet."""
    plan = quickstart.plan_stages(False, 0, data)
    explored, report = (next(stage for stage in plan if stage.command == name) for name in ("explore", "report"))
    assert (explored.makes, report.makes) == (quickstart.EXPLORE, quickstart.REPORT)
    for stage, other in ((explored, "--report report.html"), (report, "--explore explore.html")):
        assert f"--guidance {guidance} " in stage.command_line and other in stage.command_line


@pytest.mark.parametrize("data", ["shapes", "digits"])
def test_the_page_comes_before_all_that_measures(data: str) -> None:
    """And needs no judge."""
    plan = quickstart.plan_stages(False, 0, data)
    commands = [stage.command for stage in plan]
    first = commands.index("explore") + 1
    assert {"make-data", "train", "fit-aggregate", "sample"} == {*commands[: first - 1]}
    assert not any("judge" in stage.command_line for stage in plan[:first])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "recipe", "made", "finger"),
    [
        ("shapes", "shapes", {"number": 120}, False),
        ("digits", "mnist-a", {"size": 32, "grey": True, "copies": 1}, True),
    ],
)
def test_the_page_draws_by_itself(preset: str, recipe: str, made: dict[str, Any], finger: bool, tmp_path: Path) -> None:
    """Networks of the quickstart's sizes, as they are before training, fit on its page: sliders, map, and the finger
    where the encoder reads pictures alone.
    """
    data, model, fit = (tmp_path / name for name in ("data.h5", "model.safetensors", "fit.safetensors"))
    source = {"source": "digits"} if recipe == "mnist-a" else {}
    mmgen.make_data(recipe, data, workers=1, progress=False, **made, **source)
    few: dict[str, Any] = {"steps": 1, "batch": 8, "device": "cpu", "progress": False}
    mmgen.train(data, preset=f"quickstart/{preset}", output=model, **few)
    mmgen.fit_aggregate(model, family="rectified-flow", output=fit, **few)
    text, found = page_of([fit], tmp_path / "explore.html", limits=Limits(1))
    assert found["live"]["decoder"] and found["live"]["flows"] and bool(found["live"]["encoder"]) == finger
    assert found["map"] and found["traversals"] and "drawn beforehand" not in text
