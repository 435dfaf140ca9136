"""Metrics say which settings they read and what they lack: what cannot be asked is refused before any work."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mmgen
from mmgen import experiments, metrics
from mmgen.artifacts import Dataset
from mmgen.cli import _own_pictures, quickstart
from mmgen.cli._main import load_command, main
from mmgen.core.errors import UsageError
from mmgen.core.worlds import CONTRIB
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.experiments._plan import read_plan
from mmgen.metrics import log_likelihood
from mmgen.metrics._base import check_options_are_read, dropped_counts, evaluate
from mmgen.modalities.image import ImageDescription
from mmgen.testing.metrics import accepts_evaluation, small_evaluation
from tests.cli.test_docs import PAGES, command_lines
from tests.metrics.toy import Judge, loaded_painter, write_dataset
from tests.posteriors.stand_in import StandIn

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
    assert "posteriors" in member.reads or member.posteriors != "together"


UNREAD = "leave them out, or add a metric that reads them"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            "--metric parameters --factor nonsense --pool 5 --protocol paper",
            [
                "--factor (beta-score, dci, factor-score, factors-found, mig, sap)",
                "--pool (retrieval)",
                "--protocol (coverage)",
                UNREAD,
            ],
        ),
        ("--metric mig --text-samples 7", ["--metric mig got", "--text-samples (log-likelihood)", UNREAD]),
        ("--metric active-units --posterior prior", ["--posterior (", "log-likelihood", UNREAD]),
        ("--metric active-units --judge JUDGE", ["--judge (", "correctness", UNREAD]),
        ("--metric parameters --part test", ["--part (", UNREAD]),
        ("--metric log-likelihood --given-count 1", ["--given-count (", "coverage", UNREAD]),
        ("--metric correctness --metric correctness", ["mmgen: --metric got correctness twice"]),
        ("--guidance 3,3", ["mmgen: --guidance got 3 twice"]),
        ("--guidance 0 --guidance 3,0.0", ["mmgen: --guidance got 0 twice"]),
        ("--guidance cfg:3,cfg:3", ["mmgen: --guidance got cfg:3 twice"]),
        ("--posterior prior --posterior prior", ["mmgen: --posterior got prior twice"]),
        ("--given-count 1,1", ["mmgen: --given-count got 1 twice"]),
        ("--given-count 3", ["mmgen: --given-count got 3, expected numbers from 0 to 2"]),
    ],
)
def test_what_nothing_reads_or_is_said_twice_is_refused(
    made: Evaluation, arguments: str, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = arguments.replace("JUDGE", str(made.loaded.path.with_name("judge.safetensors"))).split()
    with pytest.raises(SystemExit) as left:
        main(["eval", str(made.loaded.path), *words, "--json"])
    told = " ".join(capsys.readouterr().err.split())
    assert left.value.code == 2 and all(part in told for part in said), told


def test_what_one_of_several_reads_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    check_options_are_read(["parameters", "retrieval"], ["pool", "seed", "precision"])
    with pytest.raises(UsageError, match="parameters and retrieval got options that it does not read: --proposal"):
        check_options_are_read(["parameters", "retrieval"], ["pool", "proposal"])
    monkeypatch.setattr(metrics.get("parameters"), "reads", None)  # that does not say reads everything
    check_options_are_read(["parameters"], ["pool", "factors", "judge"])


def test_what_is_said_to_be_nothing_is_not_said(made: Evaluation) -> None:
    measured = mmgen.evaluate(
        made.loaded.path, "parameters", made.loaded.path.with_name("p.jsonl"), given_count=None, split=""
    )
    assert {score.metric for score in measured} == {"parameters"}
    assert dropped_counts(None, made.loaded) is None and dropped_counts([2, 0], made.loaded) == [0, 2]


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


EDGES = ImageDescription(name="edges", shape=(1, 1, 2), layout="bytes")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.open(write_dataset(tmp_path_factory.mktemp("toy") / "toy.h5"))


def asked_of(dataset: Dataset, loaded: Any, text_proposal: Any = None) -> Evaluation:
    settings = EvaluationSettings(samples=3, text_samples=4, number=4)
    return Evaluation(loaded, dataset, Judge(), ("prior",), settings, text_proposal)


@pytest.mark.parametrize("metric", ["log-likelihood", "active-units"])
@pytest.mark.parametrize("shape", [None, (1, 4, 2)], ids=["missing", "other shape"])
def test_images_that_the_dataset_lacks(
    dataset: Dataset, metric: str, shape: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """log p of all modalities would be that of those which the dataset happens to have, under the name of all."""
    loaded = loaded_painter(Path("m.safetensors"))
    name = "edges" if shape is None else "image"
    other = ImageDescription(name=name, shape=shape or (1, 1, 2), layout="bytes")
    loaded.images = loaded.observed = {"image": loaded.observation, name: other}
    monkeypatch.setattr(
        type(loaded.model),
        "modalities",
        dict.fromkeys(("image", "edges", "attributes"), SimpleNamespace(is_independent=True)),
    )
    monkeypatch.setattr(type(loaded.model), "has_posterior", lambda model, given: given != ("image",))
    loaded.encoder_inputs = ("image", "edges", "attributes")
    with pytest.raises(UsageError, match=rf"does not have the {name} that m.safetensors was trained with; give"):
        evaluate(asked_of(dataset, loaded), [metric])


def fitted(**changes: Any) -> Any:
    loaded = loaded_painter(Path("q.safetensors"))
    loaded.fitted = StandIn("aggregate", fitted=True)
    for name, value in changes.items():
        setattr(loaded, name, value)
    return loaded


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"fitted": StandIn("aggregate", fitted=True, reads=())}, r"got q.safetensors, expected a fitted q\(z \| y\)"),
        ({"fitted": None}, r"--text-proposal got q.safetensors, expected a fitted q\(z \| y\); make"),
        (
            {"model_header": SimpleNamespace(content_id="another")},
            r"which was fitted to q.safetensors, expected one .* fitted to m.safetensors",
        ),
    ],
)
def test_text_proposals_that_are_none(dataset: Dataset, changes: dict[str, Any], said: str) -> None:
    model = loaded_painter(Path("m.safetensors"))
    evaluate(asked_of(dataset, model, fitted()), ["log-likelihood"])
    with pytest.raises(UsageError, match=said):
        evaluate(asked_of(dataset, model, fitted(**changes)), ["log-likelihood"])


class Other(Judge):
    names = ("digit", "colour")


def blind(loaded: Any) -> None:
    loaded.model.has_posterior = lambda given: False


def blank(loaded: Any) -> None:
    loaded.observation = None


@pytest.mark.parametrize(
    ("metric", "judge", "change", "said"),
    [
        ("correctness", Other(), None, "the judge was trained on the attributes digit, colour"),
        ("coverage", None, None, "needs a judge"),
        ("reconstruction", Judge(), blind, "no such posterior"),
        ("compositionality", Judge(), None, "--split compositional"),
        *((name, None, None, f"{name} needs a model that draws pictures of 5 x 5") for name in ("sharpness", "truth")),
        *((name, Judge(), blank, f"{name} needs a model that draws something besides words")
          for name in ("precision", "recall", "fid", "kid")),
    ],
)  # fmt: skip
def test_what_a_metric_lacks_is_said(dataset: Dataset, metric: str, judge: Any, change: Any, said: str) -> None:
    loaded = loaded_painter(Path("m.safetensors"))
    if change:
        change(loaded)
    with pytest.raises(UsageError, match=said):
        evaluate(Evaluation(loaded, dataset, judge, ("own",), EvaluationSettings()), [metric])


def test_scores_name_the_file_that_log_p_of_the_description_was_drawn_from(dataset: Dataset) -> None:
    """As they name all other files that decide them: lists tell by it whether scores are of what is there."""
    evaluation = asked_of(
        dataset, loaded_painter(Path("m.safetensors")), fitted(header=SimpleNamespace(content_id="q"))
    )
    named = {"text-proposal": "q"}
    for quantity, expected in (("log p(y)", named), ("log p(x|y)", named), ("log p(x)", {})):
        assert log_likelihood._proposal_ids(evaluation, quantity) == expected
    evaluation.text_proposal = None
    assert log_likelihood._proposal_ids(evaluation, "log p(y)") == {}
