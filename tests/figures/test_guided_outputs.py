"""Guidance in every output: it is done and said, or refused in one sentence."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from mmgen.artifacts import Dataset, DatasetWriter, read_header
from mmgen.evaluation import needs
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.figures.report.scores import make_score_tables
from mmgen.generation import load
from mmgen.generation.descriptions import parse_descriptions
from mmgen.generation.draws import draw
from mmgen.generation.latents import draw_completions
from mmgen.metrics import Metric
from mmgen.metrics.correctness import Correctness
from mmgen.metrics.coverage import Coverage
from mmgen.modalities.attributes import AttributesDescription
from mmgen.results.score import read_scores
from tests.program import exit_code


@pytest.mark.slow
def test_guidance_reaches_every_output(readers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, samples = readers / "elbo-nothing.safetensors", tmp_path / "s.h5"
    words = "colour=red NOT size=big OR colour=blue"
    assert exit_code("sample", file, "--given", words, "--guidance", "2", "-n", "3", "-o", samples) == 0
    settings = read_header(samples).settings
    assert (settings["guidance"], settings["base"], settings["given"]) == (2.0, "learned prior", [words])
    assert exit_code("sample", file, "--given", words, "--guidance", "2", "-n", "3", "-o", tmp_path / "s.png") == 0
    fitted, lines = readers / "elbo-attributes.safetensors", tmp_path / "scores.jsonl"
    many = ["-m", "log-likelihood", "--number", "10", "--samples", "20"]
    assert exit_code("eval", fitted, *many, "--guidance", "0,1", "--guidance", "3", "-o", lines) == 0
    scores = [json.loads(line) for line in lines.read_text().splitlines()]
    kinds = [(s["posterior"], s.get("guidance"), s.get("base")) for s in scores if s["protocol"] == "importance"]
    assert kinds == [("aggregate", None, None), ("guided", 1.0, "aggregate"), ("guided", 3.0, "aggregate")]
    assert all(s["quantity"] == "log p(x|y)" and ("guidance" in s) == ("base" in s) for s in scores)
    page = tmp_path / "r.html"
    assert exit_code("report", fitted, lines, "--guidance", "3", "-o", page) == 0
    assert page.read_text().count("q_agg guided (w = 3)") > 1 and "q_agg guided (w = 1)" in page.read_text()
    assert exit_code("plot", "hierarchy", fitted, "--guidance", "3", "-o", tmp_path / "h.png") == 0
    assert "q_agg guided (w = 3)" in capsys.readouterr().err


@pytest.mark.slow
def test_descriptions_are_completed_with_the_captions_that_spell_them(stubs: SimpleNamespace, tmp_path: Path) -> None:
    """A description by all attributes gets its caption by itself; a part of one gets that of its completion."""
    data, file, generator = tmp_path / "data.h5", tmp_path / "m.safetensors", np.random.default_rng(0)
    codes = np.stack([np.arange(60) % 2, np.arange(60) // 2 % 2], 1).astype(np.uint8)
    with DatasetWriter(data, size=60, settings={"recipe": "toy"}, seed=0, command="mmgen make-data") as writer:
        writer.add_image("image", shape=(1, 16, 16), layout="bits")
        writer.add_attributes("attributes", {"colour": ["red", "blue"], "size": ["big", "small"]})
        writer.add_text("text", ("red", "blue", "big", "small"), 2, ("colour", "size"))
        packed = np.packbits(generator.integers(0, 2, (60, 256), np.uint8), axis=1)
        tokens = (codes + np.array([0, 2])).astype(np.uint16)
        writer.write(0, {"image": packed, "attributes": codes, "text": tokens})
        writer.add_splits("iid", train=np.arange(40), val=np.arange(40, 50), test=np.arange(50, 60))
    networks = {name: {"embedding": 4, "hidden": 8} for name in ("attribute_network", "text_network")}
    objective = {"name": "elbo", "modalities": ["image", "text", "attributes"]}
    stubs.train_tiny(data, file, objective, 2, **networks)
    loaded = load(file)
    whole, part = loaded.guided(2), "size=big"
    assert whole.sample("colour=red size=big", 3, "prior", seed=0).equal(
        loaded.completing(False).guided(2).sample("colour=red size=big", 3, "prior", seed=0)
    )
    asked = parse_descriptions(loaded, [part])
    completed = draw_completions(loaded.guided(2), "prior", asked, 40, 0).completed
    assert completed is not None and (completed[..., 1] == 0).all() and {*completed[0, :, 0].tolist()} == {0, 1}
    words = loaded.completions.batch(completed[0])
    assert words.values["text"].tolist() == [[codes[0], codes[1] + 2] for codes in completed[0].tolist()]


def missing(metric: type[Metric], evaluation: Evaluation) -> list[str]:
    """What a metric lacks beside a classifier."""
    found = [need(evaluation) for need in metric.needs if need is not needs.explain_missing_classifier]
    return [reason for reason in found if reason]


def test_questions_that_no_words_can_guide_are_refused_before_any_work(readers: Path) -> None:
    """jmvae says whole captions of free text, elbo says attributes: coverage leaves attributes out."""
    with Dataset.open(readers / "data.h5") as data:
        for name, refused in (("jmvae", True), ("elbo", False), ("both", False)):
            loaded = load(readers / f"{name}.safetensors").guided(1.0)
            evaluation = Evaluation(loaded, data, None, ("prior",), EvaluationSettings(seed=7))
            assert evaluation.questions.whole_captions == refused and not evaluation.ignores_text("prior")
            assert bool(missing(Coverage, evaluation)) == refused
            asked = Evaluation(loaded, data, None, ("prior",), EvaluationSettings(seed=7, dropped=(1,)))
            assert bool(missing(Correctness, asked)) == refused
            pools = [each.guided_posterior("prior")._estimates for each in (evaluation.loaded, loaded.guided(1.0, 7))]
            assert pools[0] is pools[1]
            unguided = Evaluation(loaded.guided(0.0), data, None, ("prior",), EvaluationSettings())
            assert not unguided.questions.whole_captions and unguided.ignores_text("prior")


@pytest.mark.slow
def test_scores_say_what_was_guided_and_how_far_candidates_went(
    readers: Path, tmp_path: Path, stubs: SimpleNamespace
) -> None:
    info = AttributesDescription(
        name="attributes", names=("colour", "size"), values=(("red", "blue"), ("big", "small"))
    )
    judge, lines = tmp_path / "judge.safetensors", tmp_path / "scores.jsonl"
    accuracy = {"colour": 90.0, "size": 90.0, "mean": 90.0}
    stubs.save_judge(readers / "data.h5", judge, 1, info, accuracy, held_out_images={"colour": 9, "size": 9})
    asked = ["--given-count", "2,1", "--draws", "3", "--judge", judge, "--guidance", "2", "-o", lines]
    assert exit_code("eval", readers / "elbo-nothing.safetensors", "-m", "correctness", "-m", "coverage", *asked) == 0
    scores = read_scores(lines)
    assert {(score.metric, score.given) for score in scores} == {
        ("correctness", 2),
        ("correctness", 1),
        ("coverage", 1),
    }
    for score in scores:
        assert (score.posterior, score.guidance, score.base) == ("guided", 2.0, "learned prior")
        told = score.details["guidance"]
        assert told["candidates"] == 60_000
        assert 1 <= told["smallest_effective_sample_size"] <= told["median_effective_sample_size"] <= 60_000
    (table, *_) = make_score_tables(scores, {})
    assert [row.posterior for row in table.rows] == ["q(z) guided (w = 2): q(z) times p(y|z)^2"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            ["sample", "elbo", "--given", "colour=red", "--guidance", "-1"],
            "guidance got -1, expected a number",
        ),
        (["sample", "elbo", "--given", "colour=red", "--guidance", "nan"], "guidance got nan, expected"),
        (["sample", "elbo", "--guidance", "3", "--no-complete"], "an empty description"),
        (["sample", "elbo", "--from", "image", "--guidance", "3"], "got --guidance too"),
        (["sample", "cvae", "--given", "colour=red", "--guidance", "3"], "guidance needs a decoder"),
        (["sample", "elbo", "--given", "colour=red", "--guidance", "3:even"], "such as 3, or with an effective"),
        (["eval", "elbo-attributes", "--guidance", "0:effective=9"], "weight above 0, such as 3:effective=9"),
        (["sample", "labels", "--given", "colour=red OR colour=blue", "--no-complete"], "leave --no-complete"),
        (["eval", "elbo-attributes", "--guidance", "1,,3"], "--guidance got nothing, expected a number from 0"),
        (["eval", "elbo-attributes", "--guidance", "1;3"], "--guidance got 1;3, expected a number from 0"),
        (["eval", "elbo-attributes", "--guidance", "1,inf"], "guidance got inf, expected"),
        (["eval", "elbo-attributes", "-m", "active-units", "--guidance", "1"], "active-units got guidance"),
        (["eval", "bare", "-m", "log-likelihood", "--guidance", "1"], "guidance needs a decoder"),
        (["plot", "contours", "elbo-attributes", "--guidance", "2"], "leave out --guidance"),
        (["plot", "hierarchy", "cvae", "--guidance", "2"], "guidance needs a decoder"),
        (["plot", "hierarchy", "elbo-attributes", "--guidance", "-2"], "guidance got -2, expected"),
        (
            ["plot", "hierarchy", "elbo-attributes", "--guidance", "2", "--given", "NOT colour=red"],
            "descriptions without operators",
        ),
        (["report", "cvae", "--guidance", "2"], "guidance needs a decoder"),
        (
            ["fit-aggregate", "elbo", "--given", "attributes", "--guidance", "3:effective=9"],
            "got '3:effective=9', expected a number without options, such as 3; set the number of candidates",
        ),
        (["fit-aggregate", "elbo", "--given", "attributes", "--guidance", "many"], "got 'many', expected a number"),
        (["plot", "hierarchy", "labels", "--given", "one red"], "reads attributes"),
        (["plot", "hierarchy", "elbo-attributes", "--given", "one red"], "reads attributes"),
        (["plot", "contours", "elbo-attributes", "--given", "one red"], "reads attributes"),
        (["plot", "contours", "elbo-text", "--given", "colour=red"], "reads text"),
        (["plot", "contours", "elbo", "--given", "big red"], "neither an encoder nor a decoder of text"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    readers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str], said: str
) -> None:
    at = 2 if command[0] == "plot" else 1
    words = [*command[:at], readers / f"{command[at]}.safetensors", *command[at + 1 :]]
    out = tmp_path / "out.html" if command[0] == "report" else tmp_path / "out.png"
    assert exit_code(*words, "-o", out) in (1, 2)
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("mmgen: ")]
    assert len(told) == 1 and said in told[0], told
    assert list(tmp_path.iterdir()) == []


def test_guided_descriptions_are_told_right_from_wrong(readers: Path) -> None:
    """The judge's verdict on negation and alternatives is about the whole description."""

    class Judge:
        names, values = ("colour", "size"), (("red", "blue"), ("big", "small"))
        hints: tuple[str, ...] = ()
        described = SimpleNamespace(name="image")
        device = torch.device("cpu")

        def predict(self, images: torch.Tensor, hints: torch.Tensor) -> torch.Tensor:
            return torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]] * 8, dtype=torch.uint8)[: len(images)]

    loaded = load(readers / "elbo-nothing.safetensors").guided(1.0)
    asked = parse_descriptions(loaded, ["colour=red NOT size=big", "NOT colour=red OR size=big", "colour=blue"])
    judge: Any = Judge()  # a stand-in, whose verdicts are known
    drawn = draw(loaded, asked, 4, posterior="aggregate", classifier=judge)
    assert drawn.mismatches is not None and loaded.attributes is not None
    assert drawn.mismatches.tolist() == [
        [True, False, True, True],
        [False, True, False, False],
        [True, True, False, False],
    ]
    assert drawn.correct_counts == (1 + 3 + 2, 12)
    assert (
        drawn.describe_mismatch(0, 0, loaded.attributes) == "judge: red, big"
        and drawn.describe_mismatch(0, 1, loaded.attributes) == ""
    )
    assert drawn.describe_mismatch(2, 0, loaded.attributes) == "judge: red"
