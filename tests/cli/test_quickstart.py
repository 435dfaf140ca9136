"""``mmgen quickstart``: its commands can be typed, its table says what was measured, its failures are honest."""

import itertools
import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mmgen.cli import _runs, quickstart
from mmgen.cli._main import command_names, load_command
from mmgen.cli.quickstart import _TITLE, _WIDEST, final_table, read_scores
from mmgen.core.errors import MmgenError
from mmgen.results.score import Score
from mmgen.results.table import Table
from tests.experiments.files import write_data
from tests.program import within

ROOT = Path(__file__).resolve().parents[2]
SCORE = {
    "metric": "correctness",
    "posterior": "true",
    "given": 4,
    "value": 61.25,
    "stderr": 0.5,
    "unit": "%",
    "n": 2400,
}


DATA = ("shapes", "digits")
PROGRAM = "from mmgen.cli._main import main; main()"


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("quick", [False, True])
def test_every_command_can_be_typed(quick: bool, data: str) -> None:
    for stage in quickstart.plan_stages(quick, 3, data):
        name, *arguments = stage.arguments
        assert name in command_names() and arguments[-2:] == ["-o", stage.makes]
        load_command(name).make_context(name, arguments)


@pytest.mark.parametrize("data", DATA)
def test_pictures_come_before_all_that_measures(data: str) -> None:
    """What leads to them has all cores, and no file of a judge or a rival."""
    plan = quickstart.plan_stages(False, 0, data)
    commands = [stage.command for stage in plan]
    first = commands.index("sample") + 1
    assert {"make-data", "train", "fit-aggregate", "sample"} == {*commands[:first]}
    assert {"train-classifier", "eval", "report"} <= {*commands[first:]}
    assert [stage.alone for stage in plan[:2]] == [True, True] and not any(stage.alone for stage in plan[first:])
    assert not any("judge" in stage.command_line for stage in plan[:first])


@pytest.mark.parametrize("data", DATA)
def test_short_runs_are_validated_several_times(data: str) -> None:
    """Else their learning curves would be of one point, at the end."""
    short = [stage.arguments for stage in quickstart.plan_stages(False, 0, data)
             if stage.arguments[0] in ("train-classifier", "fit-aggregate")]  # fmt: skip
    for words in short:
        every = next(int(word.partition("=")[2]) for word in words if word.startswith("training.validate_every="))
        assert int(words[words.index("--steps") + 1]) >= 5 * every
    assert len(short) >= 3


def test_all_posteriors_are_treated_alike() -> None:
    """One family, size and number of steps but for the flow; every fit is measured, and the same is asked of each."""
    plan = quickstart.plan_stages(False, 0, "digits")
    fits = [stage for stage in plan if stage.command == "fit-aggregate"]
    asked = [stage for stage in plan if stage.command == "eval" and "part" not in stage.settings]
    assert [(fit.settings["target"], fit.settings.get("text_weight")) for fit in fits] == [
        ("aggregate", None),
        ("true", None),  # with the weight of the model's training
        ("true", 1),
        ("aggregate", None),
    ]
    flow, *alike = fits
    assert flow.settings["family"] == "rectified-flow" and all("family" not in fit.settings for fit in alike)
    assert [stage.settings["model"] for stage in asked] == [
        "model.safetensors",
        *(fit.makes for fit in alike),
        flow.makes,
    ]
    assert [stage.settings["posterior"] for stage in asked] == ["prior", "true", "true", "aggregate", "aggregate"]
    # The guided one is that of one fit with a weight, and nothing else: one command measures it without and with.
    assert [stage.settings.get("guidance") for stage in asked] == [None, None, None, None, [0, "3"]]
    for stages, differ in ((alike, {"target", "text_weight"}), (asked, {"model", "posterior", "guidance"})):
        same = [{key: value for key, value in stage.settings.items() if key not in differ} for stage in stages]
        assert all(settings == same[0] for settings in same)


@pytest.mark.parametrize("record", [{**SCORE, "judge_accuracy": {"digit": 90.0}}, {**SCORE, "value": 1e300}, [1]])
def test_scores_that_cannot_be_shown_are_refused_in_a_sentence(tmp_path: Path, record: Any) -> None:
    (tmp_path / "scores.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(MmgenError, match=r"scores\.jsonl: line 1 .* remove it and run the quickstart again"):
        read_scores(tmp_path / "scores.jsonl")


def scored(judge: str = "j", network: str = "", **fields: Any) -> Score:
    given = {"quantity": fields.get("metric", "correctness"), "better": "higher", "ids": {"judge": judge}, **SCORE}
    return Score(**{**given, "judge": network, **fields})


GUIDED = {"posterior": "guided", "base": "aggregate", "guidance": 3.0, "guidance_method": "cfg"}


def right(value: float, pair: float, real: float = 99.0, **fields: Any) -> Score:
    """A score of correctness with its shares of all words and the worst pair, of drawn and of real pictures."""
    found = {"all_right": value, "all_right_stderr": 0.5, "worst_pair": pair, "worst_pair_stderr": 9.0}
    beside = {f"real_{name}": real for name in ("all_right", "worst_pair")}
    named = {"worst_pair_name": "square night", "real_worst_pair_name": "star red"}
    return scored(value=99.9, details={**found, **beside, **named}, **fields)


def test_the_table() -> None:
    halves = {"ceiling": 88.25, "ceiling_stderr": 0.5}
    agreed, sharp = {"metric": "agreement", "quantity": "agreement"}, {"metric": "sharpness", "quantity": "fine detail"}
    scores = [
        scored(posterior="prior", value=30.0, stderr=None),  # of an older file, without a share of all words
        right(12.0, 7.0, posterior="prior"),
        right(83.5, 60.0, posterior="aggregate"),
        right(99.0, 42.0, posterior="aggregate", given=2),  # pairs as they are asked for, which say most of pairs
        scored(metric="recall", given=3, value=60.0, protocol="description", details=halves, posterior="aggregate"),
        scored(metric="recall", given=4, value=1.0, protocol="pooled", posterior="aggregate"),  # no column
        scored(metric="coverage", given=3, value=90.0, posterior="aggregate"),
        scored(posterior="aggregate", given=3, value=77.0, details={**halves, "ceiling": 99.5}, **agreed),
        scored(posterior="aggregate", given=4, value=99.0, **agreed),
        scored(posterior="aggregate", given=3, value=70.0, **{**agreed, "quantity": "sure"}),
        scored(posterior="aggregate", value=27.1, details={"ceiling": 100.0}, **sharp),
        scored(posterior="aggregate", value=69.0, **{**sharp, "quantity": "steepest edges"}),
        right(90.0, 80.0, **GUIDED),
        right(95.0, 54.0, metric="reconstruction", given=None, posterior="image", conditions={"part": "train"}),
    ]
    columns, rows = final_table(scores)
    assert columns == ["drawn from", "all right", "worst pair", "recall", "agreement", "sharpness"]
    assert [[str(cell) for cell in row] for row in rows] == [
        ["p(z), the prior", "12.0 ± 0.5", "", "", "", ""],
        ["q_agg", "83.5 ± 0.5", "42 ± 9 square night", "60.0 ± 0.5", "77.0 ± 0.5", "27.1 ± 0.5"],
        ["q_agg guided (cfg 3)", "90.0 ± 0.5", "", "", "", ""],
        ["(train, decoded)", "95.0 ± 0.5", "54 ± 9 square night", "", "", ""],
        ["(real pictures)", "99.0", "99.00 star red", "88.2 ± 0.5", "99.5 ± 0.5", "100.0"],
    ]
    copied = {"metric": "copies", "protocol": "pixels", "details": {"ceiling": 1.0}, "posterior": "aggregate"}
    scores.append(scored(value=0.9, quantity="copies of gaps", **copied))
    scores.append(scored(value=100.0, quantity="copies of training words", **copied))
    columns, rows = final_table(scores)
    assert [columns[-1], *(str(row[-1]) for row in rows)] == ["copies", "", "100.0 ± 0.5", "", "", "1.0"]
    assert len({*columns}) == len(columns)
    assert max(map(len, Table(_TITLE, columns, rows).text(_WIDEST).splitlines())) <= 100
    assert final_table([right(90.0, 80.0, **GUIDED)])[0] == ["drawn from", "all right", "worst pair"], "none is empty"


def test_families_of_one_posterior_are_rows_of_their_own() -> None:
    """Where there is one family alone, names of rows do without; fits of one family are told apart by their files."""
    flow = right(88.0, 1.0, posterior="aggregate", family="rectified-flow")
    guided = right(94.0, 1.0, family="rectified-flow", **{**GUIDED, "guidance_method": ""})
    coupling = right(86.0, 1.0, posterior="aggregate", family="realnvp")
    names = [str(row[0]) for row in final_table([coupling, flow, guided])[1]]
    assert names[:3] == ["q_agg, realnvp", "q_agg, rectified-flow", "q_agg guided (w = 3)"]
    assert [str(row[0]) for row in final_table([flow, guided])[1]][:2] == ["q_agg", "q_agg guided (w = 3)"]
    files = [replace(flow, run={"name": name, "settings": name, "seed": "0"}) for name in ("a", "b")]
    assert [str(row[0]) for row in final_table(files)[1]][:2] == ["q_agg, a", "q_agg, b"]


def test_of_two_judges_the_one_that_sees_least_counts_in_each_place() -> None:
    """Of real pictures too, so that what one judge misreads is not taken for the model's."""
    agg = {"posterior": "aggregate"}
    scores = [right(86.0, 60.0, 94.0, judge="a", **agg), right(80.0, 70.0, 97.0, judge="b", **agg)]
    assert [[str(cell) for cell in row] for row in final_table(scores)[1]] == [
        ["q_agg", "80.0 ± 0.5", "60 ± 9 square night"],
        ["(real pictures)", "94.0", "94.00 star red"],
    ]


def test_recall_stands_wherever_coverage_does() -> None:
    """Every command that measures coverage measures recall, by the same two judges of other networks and seeds."""
    for quick, data in itertools.product((False, True), DATA):
        plan = quickstart.plan_stages(quick, 3, data)
        judges = [stage.arguments for stage in plan if stage.arguments[0] == "train-classifier"]
        assert len(judges) == 2
        for option in ("--network", "--seed", "-o"):
            assert len({words[words.index(option) + 1] for words in judges}) == 2
        measured = [stage for stage in plan if "coverage" in stage.settings.get("metric", ())]
        assert len(measured) >= 3
        for stage in measured:
            assert stage.settings["metric"] == ["correctness", "coverage", "recall", "agreement", "sharpness"]
            assert [f"--judge {words[-1]}" in stage.command_line for words in judges] == [True, True]
        report = plan[-1].arguments
        assert report.index("judge.safetensors") < report.index("second-judge.safetensors")  # the first frames pictures


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_fails_costs_nothing_and_is_continued(jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores of an earlier run stay when a command fails; given again, it goes on with that command."""
    folder = tmp_path / "q"
    folder.mkdir()
    plan = quickstart.plan_stages(True, 0)
    kept = {
        name: f"{name} of an hour"
        for name in (*(stage.makes for stage in plan if stage.command == "eval"), "scores.jsonl")
    }
    for name, text in kept.items():
        (folder / name).write_text(text)
    write_data(folder / plan[0].makes, command=plan[0].command_line)
    ran = []

    def run_command(arguments: list[str], *_: Any, **__: Any) -> str:
        ran.append(arguments[0])
        raise MmgenError("the model cannot be trained")

    monkeypatch.setattr(_runs, "run_command", run_command)
    for _ in range(2):
        done = within(tmp_path, "quickstart", "--quick", "-o", "q", "--jobs", str(jobs))
        assert done.returncode == 1 and "the model cannot be trained" in done.stderr
    assert ran == ["train", "train"]  # alone, also where two commands may run at once
    assert {name: (folder / name).read_text() for name in kept} == kept


@pytest.mark.parametrize("data", DATA)
def test_a_dry_run_prints_the_commands_and_makes_nothing(data: str, tmp_path: Path) -> None:
    done = within(tmp_path, "quickstart", "--data", data, "--quick", "--dry-run")
    assert done.returncode == 0 and not any(tmp_path.iterdir())
    commands = [line for line in done.stdout.splitlines() if line.startswith("mmgen ")]
    assert commands == [stage.command_line for stage in quickstart.plan_stages(True, 0, data)]


def test_another_seed_is_refused_where_there_is_one(tmp_path: Path) -> None:
    first = quickstart.plan_stages(True, 0)[0]
    write_data(tmp_path / first.makes, command=first.command_line)
    done = within(tmp_path, "quickstart", "--quick", "--seed", "1", "-o", ".")
    assert (done.returncode, done.stdout) == (1, "")
    assert "was made with seed 0, expected seed 1; move it away, use another --output" in done.stderr


def run_quickstart(data: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run the quickstart at reduced size and check its pages."""
    told = ["quickstart", "--quick", "--verbose", "--data", data, "-o", str(tmp_path / "q")]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *told], capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path / 'q' / 'report.html'}\n"
    assert (tmp_path / "q" / "report.html").stat().st_size > 10_000
    assert (tmp_path / "q" / quickstart.PICTURE).exists()
    explored = (tmp_path / "q" / quickstart.EXPLORE).read_text(encoding="utf-8")
    assert len(explored) < 3_000_000 and "default-src 'none'" in explored
    assert (
        done.stderr.rstrip()
        .splitlines()[-1]
        .endswith("explore.html, a page to play with. Questions are answered in docs/questions.md.")
    )
    assert "What to look at next, weakest first:" in done.stderr and "Type now: mmgen " in done.stderr
    assert all(f"$ {stage.command_line}" in done.stderr for stage in quickstart.plan_stages(True, 0, data))
    return done


@pytest.mark.slow
@pytest.mark.long
def test_digits_run_at_reduced_size(tmp_path: Path) -> None:
    done = run_quickstart("digits", tmp_path)
    for words in ("q_agg guided (w = 3)", "words given", "q_true(w = 300)", "q_true(w = 1), exact"):
        assert words in done.stderr


@pytest.mark.slow
@pytest.mark.long
def test_shapes_and_the_readme_run_at_reduced_size(tmp_path: Path) -> None:
    done = run_quickstart("shapes", tmp_path)
    for words in ("q_agg guided (cfg 1.5)", "coverage, 2 words given", "plain conditional VAE"):
        assert words in done.stderr
    # The README's Python example, on what was just made.
    (example,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S | re.M)
    path = tmp_path / "q" / "aggregate.safetensors"
    made: dict[str, Any] = {}
    exec(re.sub(r"load\(.*?\)", f"load({str(path)!r})", example), made)
    assert len(made["hearts"]) == 4
    assert made["real"].shape == made["again"].shape == (16, 3, 64, 64)

    # Every command of the README that begins from the quickstart's files, as it is printed.
    (tmp_path / "q").rename(tmp_path / "quickstart")
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S | re.M)
    mmgen = f'mmgen() {{ {shlex.quote(sys.executable)} -c {shlex.quote(PROGRAM)} "$@"; }}'
    run = [block for block in blocks if "quickstart/aggregate" in block or "quickstart/shapes" in block]
    assert len(run) == 2
    for block in run:
        block = block.replace(". .venv/bin/activate", ":")
        less = re.sub(r"--steps \d+", "--steps 20", re.sub(r"--minutes \d+", "--steps 20 --batch 16", block))
        less = less.replace("| mmgen eval -", "| mmgen eval - --draws 1 --queries 8")
        script = f"set -eo pipefail\n{mmgen}\n{less}"
        done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
    for name in ("hearts.png", "stars.png", "from-export.png", "telbo.jsonl", "telbo.html"):
        assert (tmp_path / name).stat().st_size > 1000
