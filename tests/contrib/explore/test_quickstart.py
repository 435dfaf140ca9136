"""The page to explore of the quickstarts."""

import pytest

from mmgen.cli import quickstart


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
