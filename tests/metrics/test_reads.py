"""Metrics say which settings they read: what none of them reads is refused, and no command that is told of is."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mmgen
from mmgen import experiments, metrics
from mmgen.cli import _own_pictures, quickstart
from mmgen.cli._main import load_command, main
from mmgen.core.errors import UsageError
from mmgen.core.worlds import CONTRIB
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.experiments._plan import read_plan
from mmgen.metrics._base import check_options_are_read, evaluate
from mmgen.testing.metrics import accepts_evaluation, small_evaluation
from tests.cli.test_docs import PAGES, command_lines

BESIDE = {"posteriors", "text_proposal", "judge"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    return small_evaluation(tmp_path_factory.mktemp("made"))


def listed() -> Iterator[list[str]]:
    for name in experiments.experiment_names():
        for scale in ("cpu", "paper"):
            yield from (list(stage.arguments) for stage in read_plan(name).get_scale(scale).stage)


def typed() -> Iterator[list[str]]:
    for data in ("shapes", "digits"):
        yield from (list(stage.arguments) for stage in quickstart.plan_stages(False, 0, data))
    captions: Any = SimpleNamespace(vocabulary=("none", "a", "b"), length=1, first=np.ones((1, 1), np.uint8))
    for attributes, said in (({"colour": ["a", "b"]}, None), ({}, captions)):
        codes = np.zeros((1, 1), np.uint8) if attributes else None
        parts = {"train": np.zeros(1, np.int64), "test": np.zeros(1, np.int64)}
        found: Any = SimpleNamespace(attributes=attributes, codes=codes, parts=parts, captions=said, images=("image",))
        planned = _own_pictures.plan_stages(Path("pictures"), found, _own_pictures.choose_sizes(500, 64), 0)
        yield from (list(stage.arguments) for stage in planned)


def told() -> Iterator[list[str]]:
    for page in PAGES:
        yield from command_lines(page)


def said_in(arguments: list[str]) -> tuple[list[str], set[str]]:
    """Metrics that a command line asks for, and settings that it gives."""
    forms = {"factor": "factors", "given_count": "dropped", "posterior": "posteriors"}
    given = load_command("eval").make_context("eval", arguments[1:]).params
    known = {*EvaluationSettings.model_fields, *BESIDE}
    said = {forms.get(name, name) for name, value in given.items() if value not in (None, [], ())}
    return list(given["metric"] or ()), said & known


@pytest.mark.slow_cases("lists")
@pytest.mark.parametrize("source", [listed, typed, told], ids=["lists", "quickstarts", "pages"])
def test_no_command_line_of_ours_gives_what_nothing_reads(source: Callable[[], Iterator[list[str]]]) -> None:
    # Metrics of somebody's own file are not there.
    lines = [line for line in source() if line[0] == "eval" and not {"[OPTIONS]", "--code"} & {*line}]
    forms = {re.sub(r"\d+", "0", " ".join(line)): line for line in lines}  # runs differ in seeds and names of files
    assert forms
    for line in forms.values():
        asked, said = said_in(line)
        if not (CONTRIB.is_dir() or {*asked} <= {*metrics.names()}):
            continue  # a page about a world that is not here
        check_options_are_read(asked or ["correctness", "coverage"], said)


@pytest.mark.parametrize("name", metrics.names())
def test_members_say_what_they_read(name: str) -> None:
    member = metrics.get(name)
    assert member.reads is not None
    implied = {"seed", "precision"} | ({"judge"} if member.judged else set())
    assert set(member.reads) <= {*EvaluationSettings.model_fields, *BESIDE} - implied


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--metric", "parameters", "--factor", "nonsense", "--pool", "5", "--protocol", "paper"],
            [
                "--factor (beta-score, dci, factor-score, factors-found, mig, sap)",
                "--pool (retrieval)",
                "--protocol (coverage)",
            ],
        ),
        (["--metric", "mig", "--text-samples", "7"], ["--metric mig got", "--text-samples (log-likelihood)"]),
        (["--metric", "active-units", "--posterior", "prior"], ["--posterior (", "log-likelihood"]),
        (["--metric", "active-units", "--judge", "JUDGE"], ["--judge (", "correctness"]),
        (["--metric", "parameters", "--part", "test"], ["--part ("]),
        (["--metric", "log-likelihood", "--given-count", "1"], ["--given-count (", "coverage"]),
    ],
)
def test_what_nothing_reads_is_refused(
    made: Evaluation, arguments: list[str], said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [word.replace("JUDGE", str(made.loaded.path.with_name("judge.safetensors"))) for word in arguments]
    with pytest.raises(SystemExit) as left:
        main(["eval", str(made.loaded.path), *arguments, "--json"])
    told = " ".join(capsys.readouterr().err.split())
    assert left.value.code == 2
    assert all(part in told for part in said), told
    assert "leave them out, or add a metric that reads them" in told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--metric", "correctness", "--metric", "correctness"], "--metric got correctness twice"),
        (["--guidance", "3,3"], "--guidance got 3 twice"),
        (["--guidance", "0", "--guidance", "3,0.0"], "--guidance got 0 twice"),
        (["--guidance", "cfg:3,cfg:3"], "--guidance got cfg:3 twice"),
        (["--posterior", "prior", "--posterior", "prior"], "--posterior got prior twice"),
        (["--given-count", "1,1"], "--given-count got 1 twice"),
        (["--given-count", "9"], "--given-count got 9, expected numbers from 0 to"),
    ],
)
def test_what_is_said_twice_or_is_too_much_is_refused(
    made: Evaluation, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["eval", str(made.loaded.path), *arguments, "--json"])
    told = " ".join(capsys.readouterr().err.split())
    assert left.value.code == 2 and f"mmgen: {said}" in told


def test_what_one_of_several_reads_is_accepted() -> None:
    check_options_are_read(["parameters", "retrieval"], ["pool", "seed", "precision"])
    with pytest.raises(UsageError, match="parameters and retrieval got options that it does not read: --proposal"):
        check_options_are_read(["parameters", "retrieval"], ["pool", "proposal"])


def test_what_is_said_to_be_nothing_is_not_said(made: Evaluation) -> None:
    measured = mmgen.evaluate(
        made.loaded.path, "parameters", made.loaded.path.with_name("p.jsonl"), given_count=None, split=""
    )
    assert {score.metric for score in measured} == {"parameters"}


def test_a_metric_that_does_not_say_reads_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics.get("parameters"), "reads", None)
    check_options_are_read(["parameters"], ["pool", "factors", "judge"])


class Watched(EvaluationSettings):
    """Settings that note which of them are read."""

    def __getattribute__(self, name: str) -> Any:
        if name in EvaluationSettings.model_fields:
            READ.add(name)
        return super().__getattribute__(name)


READ: set[str] = set()
LOOKED_AT = {
    "label-accuracy": {"text_samples"},
    "reconstruction": {"draws"},  # whether memory holds them
    "compositionality": {"dropped"},  # whether captions may be left out
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_exactly_what_is_said_is_read(made: Evaluation) -> None:
    settings = Watched(draws=4, samples=5, text_samples=20, number=10, encodings=60, dropped=(0, 1), pool=8)
    for name in metrics.names():
        read = metrics.get(name).reads
        asked = Evaluation(made.loaded, made.dataset, made._judge, made.posteriors, settings)
        READ.clear()
        if read is None or not accepts_evaluation(name, asked):
            continue
        evaluate(asked, [name]).run()
        allowed = {*read, "seed", "precision", "split", "part"} | LOOKED_AT.get(name, set())
        assert set(read) - BESIDE <= READ <= allowed, name


@pytest.mark.parametrize("name", [name for name in metrics.names() if metrics.get(name).posteriors == "together"])
def test_metrics_of_all_posteriors_read_them(name: str) -> None:
    assert "posteriors" in (metrics.get(name).reads or ())
