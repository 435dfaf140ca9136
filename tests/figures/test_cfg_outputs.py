"""Guidance of rectified flows in every output, classifier-free and by gradients, or a refusal in one sentence."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import mmgen
from mmgen.artifacts import read_header
from mmgen.posteriors import CandidateStatistics, ClassifierFree, GradientGuided, Guidance
from tests.program import exit_code

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


@pytest.mark.slow
def test_cfg_reaches_every_output(flows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, samples, lines = flows / "attributes.safetensors", tmp_path / "s.h5", tmp_path / "scores.jsonl"
    assert read_header(file).settings["training"]["average"] == 0.999
    words = "colour=red NOT size=big"
    assert exit_code("sample", file, "--given", words, "--guidance", "cfg:2", "-n", "3", "-o", samples) == 0
    settings = read_header(samples).settings
    assert (settings["guidance"], settings["method"], settings["base"]) == (2.0, "cfg", "aggregate")
    assert "candidates" not in settings
    asked = ["-m", "log-likelihood", "--number", "4", "--samples", "4", "--guidance", "0,cfg:1,cfg:1:start=0.2:end=0.8"]
    assert exit_code("eval", file, *asked, "-o", lines) == 0
    scores = [json.loads(line) for line in lines.read_text().splitlines()]
    kinds = [(s.get("guidance"), s.get("guidance_method")) for s in scores if s["protocol"] == "importance"]
    assert kinds == [(None, None), (1.0, "cfg"), (1.0, "cfg:start=0.2:end=0.8")]
    page = tmp_path / "r.html"
    assert exit_code("report", file, lines, "--guidance", "cfg:1", "-o", page) == 0
    assert "q_agg guided (cfg 1, start 0.2, end 0.8)" in page.read_text()
    assert page.read_text().count("q_agg guided (cfg 1)") > 1
    assert exit_code("explore", file, "--guidance", "cfg:1", "-o", tmp_path / "e.html") == 0
    assert exit_code("plot", "hierarchy", file, "--guidance", "cfg:1", "-o", tmp_path / "h.png") == 0
    assert exit_code("compare", lines) == 0
    assert "q_agg guided (cfg 1)" in capsys.readouterr().out


def test_gradients_reach_every_output(flows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, samples, lines = flows / "attributes.safetensors", tmp_path / "s.h5", tmp_path / "scores.jsonl"
    words = "colour=red NOT size=big OR colour=blue"
    assert exit_code("sample", file, "--given", words, "--guidance", "gradient:2", "-n", "3", "-o", samples) == 0
    settings = read_header(samples).settings
    assert (settings["guidance"], settings["method"], settings["base"]) == (2.0, "gradient", "aggregate")
    assert "candidates" not in settings
    asked = ["-m", "log-likelihood", "--number", "3", "--samples", "3", "--guidance", "gradient:1,gradient:1:end=0.8"]
    assert exit_code("eval", file, *asked, "-o", lines) == 0
    scores = [json.loads(line) for line in lines.read_text().splitlines()]
    kinds = [(s.get("guidance"), s.get("guidance_method")) for s in scores if s["protocol"] == "importance"]
    assert kinds == [(1.0, "gradient"), (1.0, "gradient:end=0.8")]
    assert exit_code("compare", lines) == 0
    assert "q_agg guided (gradient 1)" in capsys.readouterr().out
    # A flow that reads no description answers every one, by p(words | z) alone.
    nothing = flows / "nothing.safetensors"
    assert exit_code("sample", nothing, "--given", words, "--guidance", "gradient:2", "-o", tmp_path / "n.h5") == 0


@pytest.mark.parametrize("method", ["cfg:1", "gradient:1"])
def test_guidance_of_flows_in_python(flows: Path, method: str) -> None:
    guided = mmgen.load(flows / "attributes.safetensors").guided(method)
    posterior, words = guided.posteriors["aggregate"], guided.describe("colour=red")
    z = posterior.sample(words, 4, torch.Generator().manual_seed(0))
    again = posterior.sample(words, 4, torch.Generator().manual_seed(0))
    assert z.equal(again) and z.shape[:2] == (4, 1)
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
    guided = model.guided("gradient:20")
    words, likelihood = model.describe("colour=red"), model.likelihood
    drawn = {
        name: each.posteriors["aggregate"].sample(words, 300, torch.Generator().manual_seed(0))
        for name, each in (("plain", model), ("guided", guided))
    }
    read = {name: float(likelihood.log_prob(z, words).mean()) for name, z in drawn.items()}
    assert read["guided"] > read["plain"] + 0.05
    posterior = guided.posteriors["aggregate"]
    assert isinstance(posterior, GradientGuided) and posterior.guidance == Guidance(20.0, "gradient")


def test_cfg_in_python(flows: Path) -> None:
    model = mmgen.load(flows / "attributes.safetensors")
    guided = model.guided("cfg:1")
    assert list(guided.posteriors) == ["aggregate"]
    posterior, words = guided.posteriors["aggregate"], guided.describe("colour=red")
    assert isinstance(posterior, ClassifierFree) and posterior.guidance == Guidance(1.0, "cfg")
    z = posterior.sample(words, 5, torch.Generator().manual_seed(0))
    assert posterior.log_prob(z, words).shape == (5, 1) and z.shape == (5, 1, model.model.latent_size)
    plain = model.posteriors["aggregate"].sample(words, 5, torch.Generator().manual_seed(0))
    assert not z.equal(plain)


def test_guided_parts_are_mixtures_of_guided_whole_descriptions(flows: Path) -> None:
    model = mmgen.load(flows / "attributes.safetensors").guided("cfg:2")
    part, source = model.describe("colour=red"), model.posteriors["aggregate"]
    whole, shares = model.completions.complete(np.array([0, 255], np.uint8))
    assert len(whole) == 2
    z = source.sample(part, 5, torch.Generator().manual_seed(0))
    parts = torch.stack([source.log_prob(z, model.describe_codes(one[None]))[:, 0] for one in whole], -1)
    expected = (parts + torch.from_numpy(shares).log()).logsumexp(-1)
    torch.testing.assert_close(source.log_prob(z, part)[:, 0].double(), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["sample", "elbo", "--given", "colour=red", "--guidance", "cfg:1"], "needs a fitted rectified flow, but"),
        (["sample", "elbo-attributes", "--given", "colour=red", "--guidance", "cfg:1"], "a fitted rectified flow;"),
        (["sample", "nothing", "--given", "colour=red", "--guidance", "cfg:1"], "got q(z), expected a posterior"),
        (["sample", "certain", "--given", "colour=red", "--guidance", "cfg:1"], "unconditional=0"),
        (["sample", "guided", "--given", "colour=red", "--guidance", "cfg:1"], "fitted with guidance by p(words | z)"),
        (["sample", "attributes", "--given", "colour=red", "--guidance", "cfg"], "guidance got cfg, expected"),
        (["sample", "attributes", "--given", "colour=red", "--guidance", "cfg:0"], "above 0, such as cfg:0.5"),
        (["sample", "attributes", "--given", "colour=red", "--guidance", "cfg:1:candidates=9"], "option of weights"),
        (
            ["sample", "attributes", "--given", "colour=red", "--guidance", "cfg:1:start=0.8:end=0.2"],
            "0 <= start < end <= 1",
        ),
        (["sample", "attributes", "--given", "colour=red", "--guidance", "gradient:1:effective=9"], "option of"),
        (["sample", "attributes", "--given", "colour=red", "--guidance", "3:start=0.2"], "option of cfg and gradient"),
        (["sample", "attributes", "--given", "colour=red", "--guidance", "cfg:1:start=nan"], "0 <= start < end <= 1"),
        (["sample", "attributes", "--given", "colour=red", "--posterior", "prior", "--guidance", "cfg:1"], "prior"),
        (["sample", "elbo", "--given", "colour=red", "--guidance", "gradient:1"], "needs a fitted rectified flow, but"),
        (["sample", "elbo-attributes", "--given", "colour=red", "--guidance", "gradient:1"], "a fitted rectified flow"),
        (["sample", "attributes", "--given", "colour=red", "--guidance", "gradient:0"], "such as gradient:0.5"),
        (["eval", "attributes", "--guidance", "cfg:1,cfg:1"], "--guidance got cfg:1 twice"),
        (["fit-aggregate", "elbo", "--target", "true", "--family", "rectified-flow"], "use --family realnvp"),
        (["fit-aggregate", "elbo", "--guidance", "cfg:1"], "expected a number without options"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_sentence(
    readers: Path, flows: Path, command: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, model, *options = command
    folder = flows if (flows / f"{model}.safetensors").exists() else readers
    out = ["-o", str(tmp_path / "out.h5")] if name == "sample" else []
    assert exit_code(name, folder / f"{model}.safetensors", *options, *out) in (1, 2)
    error = " ".join(capsys.readouterr().err.split())
    assert said in error and error.count("mmgen: ") == 1
