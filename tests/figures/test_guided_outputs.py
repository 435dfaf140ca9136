"""Guidance by weights, classifier-free and by gradients in every output: it is done and said, or refused."""

import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import mmgen
from mmgen.artifacts import Dataset, read_header
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
from mmgen.posteriors import CandidateStatistics, ClassifierFree, GradientGuided, Guidance
from mmgen.results.score import read_scores
from tests.program import exit_code
from tests.small_data import write_small


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
    tokens, pictures = (codes + np.array([0, 2])).astype(np.uint16), generator.integers(0, 2, (60, 1, 16, 16), np.uint8)
    words, known = ("red", "blue", "big", "small"), {"colour": ["red", "blue"], "size": ["big", "small"]}
    values = {"image": pictures, "attributes": codes, "text": tokens}
    write_small(data, values, known, (words, ("colour", "size")), (40, 10), "bits")
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


REFUSED = """
sample elbo --given colour=red --guidance -1 | guidance got -1, expected a number
sample elbo --given colour=red --guidance nan | guidance got nan, expected
sample elbo --guidance 3 --no-complete | an empty description
sample elbo --from image --guidance 3 | got --guidance too
sample cvae --given colour=red --guidance 3 | guidance needs a decoder
sample elbo --given colour=red --guidance 3:even | such as 3, or with an effective
eval elbo-attributes --guidance 0:effective=9 | weight above 0, such as 3:effective=9
sample labels --given 'colour=red OR colour=blue' --no-complete | leave --no-complete
eval elbo-attributes --guidance 1,,3 | --guidance got nothing, expected a number from 0
eval elbo-attributes --guidance 1;3 | --guidance got 1;3, expected a number from 0
eval elbo-attributes --guidance 1,inf | guidance got inf, expected
eval elbo-attributes -m active-units --guidance 1 | active-units got guidance
eval bare -m log-likelihood --guidance 1 | guidance needs a decoder
plot contours elbo-attributes --guidance 2 | leave out --guidance
plot hierarchy cvae --guidance 2 | guidance needs a decoder
plot hierarchy elbo-attributes --guidance -2 | guidance got -2, expected
plot hierarchy elbo-attributes --guidance 2 --given 'NOT colour=red' | draw it with mmgen sample --guidance
report cvae --guidance 2 | guidance needs a decoder
fit-aggregate elbo --given attributes --guidance 3:effective=9 | such as 3; set the number of candidates
fit-aggregate elbo --given attributes --guidance many | got 'many', expected a number
plot hierarchy labels --given 'one red' | reads attributes
plot hierarchy elbo-attributes --given 'one red' | reads attributes
plot contours elbo-attributes --given 'one red' | reads attributes
plot contours elbo-text --given colour=red | reads text
plot contours elbo --given 'big red' | neither an encoder nor a decoder of text
sample jmvae --given 'big red' --no-complete | whose descriptions leave no attributes open
eval bare -m log-likelihood --no-complete | whose descriptions leave no attributes open
eval labels -m active-units --no-complete | options that it does not read: --no-complete
sample labels --from image --to image --no-complete | got --no-complete too
sample labels --given 'NOT colour=red' --no-complete | drawn by completing descriptions
sample elbo-attributes --given 'NOT colour=red' -p prior | reads no descriptions
plot embedding elbo --no-complete | draws nothing from descriptions
sample elbo-attributes --given colour=green | colour has no value 'green'
sample elbo-attributes --given form=round | form
sample elbo --given colour=red --guidance cfg:1 | needs a fitted rectified flow, but
sample elbo-attributes --given colour=red --guidance cfg:1 | a fitted rectified flow;
sample nothing --given colour=red --guidance cfg:1 | got q(z), expected a posterior
sample certain --given colour=red --guidance cfg:1 | unconditional=0
sample guided --given colour=red --guidance cfg:1 | fitted with guidance by p(words | z)
sample attributes --given colour=red --guidance cfg | guidance got cfg, expected
sample attributes --given colour=red --guidance cfg:0 | above 0, such as cfg:0.5
sample attributes --given colour=red --guidance cfg:1:candidates=9 | option of weights
sample attributes --given colour=red --guidance cfg:1:start=0.8:end=0.2 | 0 <= start < end <= 1
sample attributes --given colour=red --guidance gradient:1:effective=9 | option of
sample attributes --given colour=red --guidance 3:start=0.2 | option of cfg and gradient
sample attributes --given colour=red --guidance cfg:1:start=nan | 0 <= start < end <= 1
sample attributes --given colour=red --posterior prior --guidance cfg:1 | prior
sample elbo --given colour=red --guidance gradient:1 | needs a fitted rectified flow, but
sample elbo-attributes --given colour=red --guidance gradient:1 | a fitted rectified flow
sample attributes --given colour=red --guidance gradient:0 | such as gradient:0.5
eval attributes --guidance cfg:1,cfg:1 | --guidance got cfg:1 twice
fit-aggregate elbo --target true --family rectified-flow | use --family realnvp
fit-aggregate elbo --guidance cfg:1 | expected a number without options
""".strip().splitlines()


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_is_one_sentence(
    readers: Path, flows: Path, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed, said = line.split(" | ", 1)
    name, *words = shlex.split(typed)
    figure = [words.pop(0)] if name == "plot" else []
    model = f"{words.pop(0)}.safetensors"
    out = tmp_path / {"report": "out.html", "eval": "out.jsonl"}.get(name, "out.png")
    file = (flows if (flows / model).exists() else readers) / model
    assert exit_code(name, *figure, file, *words, "-o", out) in (1, 2)
    told = [one for one in capsys.readouterr().err.splitlines() if one.startswith("mmgen: ")]
    assert len(told) == 1 and said in told[0], told
    assert list(tmp_path.iterdir()) == []


def test_a_report_without_a_model_completes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "scores.jsonl").write_text('{"metric": "correctness", "value": 1.0}\n')
    assert exit_code("report", tmp_path / "scores.jsonl", "--no-complete", "-o", tmp_path / "x.html") == 2
    assert "got --no-complete, but no model to draw from" in capsys.readouterr().err


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


TINY = ["--family", "rectified-flow", "--steps", "3", "--examples", "40", "--set", "aggregate.family.width=8",
        "--set", "aggregate.family.blocks=1", "--set", "aggregate.family.steps=2",
        "--set", "aggregate.family.density_steps=2"]  # fmt: skip


@pytest.fixture(scope="module")
def flows(readers: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of flows fitted to a model of attributes, given attributes and nothing."""
    folder = tmp_path_factory.mktemp("flows")
    model = readers / "elbo.safetensors"
    fits = {
        "attributes": ["--given", "attributes"],
        "nothing": ["--given", "nothing"],
        "certain": ["--given", "attributes", "--set", "aggregate.family.unconditional=0"],
        "guided": ["--from", str(folder / "attributes.safetensors"), "--guidance", "2"],
    }
    for name, options in fits.items():
        settings = TINY if name != "guided" else ["--steps", "3", "--examples", "40"]
        assert exit_code("fit-aggregate", model, *options, *settings, "-o", folder / f"{name}.safetensors") == 0
    return folder


@pytest.mark.slow_cases("cfg")
@pytest.mark.parametrize(
    ("method", "words", "window", "said"),
    [
        ("cfg", "colour=red NOT size=big", "start=0.2:end=0.8", "q_agg guided (cfg 1, start 0.2, end 0.8)"),
        ("gradient", "colour=red NOT size=big OR colour=blue", "end=0.8", "q_agg guided (gradient 1, end 0.8)"),
    ],
    ids=["cfg", "gradient"],
)
def test_guidance_of_flows_reaches_every_output(
    flows: Path, method: str, words: str, window: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, samples, lines = flows / "attributes.safetensors", tmp_path / "s.h5", tmp_path / "scores.jsonl"
    assert read_header(file).settings["training"]["average"] == 0.999
    assert exit_code("sample", file, "--given", words, "--guidance", f"{method}:2", "-n", "3", "-o", samples) == 0
    settings = read_header(samples).settings
    assert (settings["guidance"], settings["method"], settings["base"]) == (2.0, method, "aggregate")
    assert "candidates" not in settings
    weights = f"0,{method}:1,{method}:1:{window}"
    asked = ["-m", "log-likelihood", "--number", "3", "--samples", "3", "--guidance", weights]
    assert exit_code("eval", file, *asked, "-o", lines) == 0
    scores = [json.loads(line) for line in lines.read_text().splitlines()]
    kinds = [(s.get("guidance"), s.get("guidance_method")) for s in scores if s["protocol"] == "importance"]
    assert kinds == [(None, None), (1.0, method), (1.0, f"{method}:{window}")]
    assert exit_code("compare", lines) == 0
    assert f"q_agg guided ({method} 1)" in capsys.readouterr().out
    if method == "gradient":  # a flow that reads no description answers every one, by p(words | z) alone
        nothing = flows / "nothing.safetensors"
        assert exit_code("sample", nothing, "--given", words, "--guidance", "gradient:2", "-o", tmp_path / "n.h5") == 0
        return
    page = tmp_path / "r.html"
    assert exit_code("report", file, lines, "--guidance", "cfg:1", "-o", page) == 0
    assert said in page.read_text() and page.read_text().count("q_agg guided (cfg 1)") > 1
    assert exit_code("explore", file, "--guidance", "cfg:1", "-o", tmp_path / "e.html") == 0
    assert exit_code("plot", "hierarchy", file, "--guidance", "cfg:1", "-o", tmp_path / "h.png") == 0


@pytest.mark.parametrize(("method", "kind"), [("cfg", ClassifierFree), ("gradient", GradientGuided)])
def test_guidance_of_flows_in_python(flows: Path, method: str, kind: type) -> None:
    model = mmgen.load(flows / "attributes.safetensors")
    guided = model.guided(f"{method}:1")
    posterior, words = guided.posteriors["aggregate"], guided.describe("colour=red")
    assert list(guided.posteriors) == ["aggregate"]
    assert isinstance(posterior, kind) and posterior.guidance == Guidance(1.0, method)
    z, again = (posterior.sample(words, 4, torch.Generator().manual_seed(0)) for _ in range(2))
    assert z.equal(again) and z.shape == (4, 1, model.model.latent_size)
    assert not z.equal(model.posteriors["aggregate"].sample(words, 4, torch.Generator().manual_seed(0)))
    density = posterior.log_prob(z, words)
    assert density.shape == (4, 1) and bool(density.isfinite().all())


@pytest.mark.slow
def test_a_flow_chooses_among_few_candidates_by_default(flows: Path, readers: Path, tmp_path: Path) -> None:
    """Their draws are slow; the number is in the file, and more are drawn where they are asked for."""
    for file, guidance, expected in (
        (flows / "attributes.safetensors", "3", (8, 1.0)),
        (flows / "attributes.safetensors", "3:candidates=4", (4, 10.0)),
        (flows / "attributes.safetensors", "3:effective=2", (4096, 2.0)),
        (readers / "elbo-attributes.safetensors", "3", (4096, 10.0)),
        (flows / "nothing.safetensors", "3", (4096, 10.0)),  # from a pool that all descriptions share
    ):
        samples = tmp_path / f"{file.stem}-{guidance.replace(':', '-')}.h5"
        assert exit_code("sample", file, "--given", "colour=red", "--guidance", guidance, "-n", "2", "-o", samples) == 0
        settings = read_header(samples).settings
        assert (settings["candidates"], settings["effective"]) == expected
    statistics: dict[str, CandidateStatistics] = {}
    model = mmgen.load(flows / "attributes.safetensors").guided(3).recording(statistics)
    posterior = model.guided_posterior("aggregate")
    posterior.sample(model.describe("colour=red"), 5, torch.Generator().manual_seed(0))
    assert {*statistics["aggregate"].candidates} == {8}
    assert "found few latents" not in posterior.describe_draws(statistics["aggregate"])


def test_gradients_raise_what_the_model_reads(flows: Path) -> None:
    model = mmgen.load(flows / "attributes.safetensors")
    words, read = model.describe("colour=red"), []
    for each in (model, model.guided("gradient:20")):
        z = each.posteriors["aggregate"].sample(words, 300, torch.Generator().manual_seed(0))
        read.append(float(model.likelihood.log_prob(z, words).mean()))
    assert read[1] > read[0] + 0.05


def test_guided_parts_are_mixtures_of_guided_whole_descriptions(flows: Path) -> None:
    model = mmgen.load(flows / "attributes.safetensors").guided("cfg:2")
    part, source = model.describe("colour=red"), model.posteriors["aggregate"]
    whole, shares = model.completions.complete(np.array([0, 255], np.uint8))
    assert len(whole) == 2
    z = source.sample(part, 5, torch.Generator().manual_seed(0))
    parts = torch.stack([source.log_prob(z, model.describe_codes(one[None]))[:, 0] for one in whole], -1)
    expected = (parts + torch.from_numpy(shares).log()).logsumexp(-1)
    torch.testing.assert_close(source.log_prob(z, part)[:, 0].double(), expected, atol=1e-4, rtol=1e-4)
