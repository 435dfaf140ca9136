"""A sharpener through every command: trained, drawn with, scored, shown and exported."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import mmgen
from mmgen.artifacts import read_checkpoint, read_header
from mmgen.artifacts.samples import read_samples
from mmgen.generation.descriptions import parse_descriptions
from mmgen.generation.draws import draw
from mmgen.results.score import read_scores
from tests.conftest import Call
from tests.program import mmgen as program

TINY = ["--batch", "8", "--device", "cpu", "--set", "training.validation_examples=8"]
MODEL = [
    "--set", "model.latent_size=3", "--set", "model.hidden=8", "--set", "model.image_network.name=mlp",
    "--steps", "3", *TINY,
]  # fmt: skip
SHARPENER = [
    "--set", "sharpener.width=4", "--set", "sharpener.blocks=1", "--set", "sharpener.discriminator_width=4",
    "--set", "training.learning_rate=0.02", "--set", "training.validate_every=2", *TINY,
]  # fmt: skip
FILE = "m-aggregate-gaussian-sharpened.safetensors"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sharp")
    program(folder, "make-data", "two-objects", "--number", "60", "--size", "16", "--workers", "1", "-o", "d.h5")
    program(folder, "train", "d.h5", "--objective", "elbo", *MODEL, "-o", "m.safetensors")
    fit = program(
        folder, "fit-aggregate", "m.safetensors", "--family", "gaussian", "--given", "attributes",
        "--steps", "3", *TINY, "-o", "m-aggregate-gaussian.safetensors",
    )  # fmt: skip
    assert program(folder, "fit-sharpener", fit.strip(), "--steps", "4", *SHARPENER).strip() == FILE
    program(folder, "train-classifier", "d.h5", "--network", "small", "--steps", "3", "-o", "judge.safetensors")
    return folder


def test_the_model_is_loaded_with_the_sharpener(made: Path) -> None:
    plain, sharp = mmgen.load(made / "m-aggregate-gaussian.safetensors"), mmgen.load(made / FILE)
    assert sharp.sharpener is not None and sharp.path == plain.path
    before, after = (model.sample("colour_1=red", n=4, seed=3) for model in (plain, sharp))
    assert before.shape == after.shape and not torch.allclose(before, after)
    completed = draw(sharp, parse_descriptions(sharp, ["colour_1=red"]), 4, posterior="aggregate", seed=3).completed
    assert completed is not None and (completed != 255).all()
    described = sharp.completions.batch(completed[0])
    torch.testing.assert_close(
        sharp.sharpener.network(before, described), after, atol=2e-3, rtol=0
    )  # in bf16 here or there
    roles = {parent.role: parent.kind for parent in read_header(made / FILE).parents}
    assert roles == {"aggregate": "aggregate", "model": "model", "dataset": "dataset"}


@pytest.mark.slow
def test_a_stopped_run_goes_on_as_if_it_had_not_stopped(made: Path, tmp_path: Path) -> None:
    source = made / "m-aggregate-gaussian.safetensors"
    for name, parts in {"whole": ["4"], "parts": ["2", "4"]}.items():
        for steps in parts:
            program(
                tmp_path, "fit-sharpener", source, "--steps", steps, *SHARPENER, "--keep-state",
                "-o", f"{name}.safetensors",
            )  # fmt: skip
    whole, parts = (read_checkpoint(tmp_path / f"{name}.safetensors")[1] for name in ("whole", "parts"))
    assert all(whole[name].equal(parts[name]) for name in whole)


def test_samples_say_that_they_are_sharpened(made: Path) -> None:
    program(made, "sample", FILE, "--given", "colour_1=red", "-n", "2", "-o", "s.h5")
    samples = read_samples(made / "s.h5")
    sampled = samples.images_sampled
    assert sampled is not None and np.abs(sampled / 255 - samples.images).max() <= 0.5 / 255 + 1e-6
    assert {parent.role for parent in read_header(made / "s.h5").parents} >= {"aggregate", "sharpener"}
    program(made, "sample", FILE, "--given", "colour_1=red", "-n", "2", "-o", "s.png")
    assert (made / "s.png").stat().st_size > 0


def test_scores_stand_beside_those_before(made: Path) -> None:
    for file, name in (("m-aggregate-gaussian.safetensors", "before"), (FILE, "after")):
        program(
            made, "eval", file, "-m", "correctness", "-m", "reconstruction", "--queries", "4", "--draws", "2",
            "--number", "6", "--judge", "judge.safetensors", "--device", "cpu", "-o", f"{name}.jsonl",
        )  # fmt: skip
    before, after = (read_scores(made / f"{name}.jsonl") for name in ("before", "after"))
    assert {score.source for score in before if score.metric == "correctness"} == {"q_agg"}
    assert {score.source for score in after if score.metric == "correctness"} == {"q_agg, sharpened"}
    assert all(score.sharpened and "sharpener" in score.ids for score in after)
    table = program(made, "compare", "before.jsonl", "after.jsonl")
    assert "q_agg, sharpened" in table


@pytest.mark.slow
def test_a_report_shows_both(made: Path) -> None:
    program(made, "report", "m-aggregate-gaussian.safetensors", FILE, "--device", "cpu", "-o", "r.html")
    assert "q_agg: fitted to the aggregate, sharpened" in (made / "r.html").read_text(encoding="utf-8")
    program(made, "plot", "interpolation", FILE, "--device", "cpu", "-o", "p.png")


def test_an_export_holds_it(made: Path, tmp_path: Path) -> None:
    program(made, "export", FILE, tmp_path / "out", "--judge", "judge.safetensors")
    exported = mmgen.load(tmp_path / "out")
    assert exported.sharpener is not None and exported.sharpener.path.name == "sharpener.safetensors"
    here, there = (model.sample("colour_1=red", n=2, seed=0) for model in (mmgen.load(made / FILE), exported))
    assert here.equal(there)


@pytest.mark.slow
def test_a_sharpener_of_the_model_alone(made: Path) -> None:
    out = program(made, "fit-sharpener", "m.safetensors", "--steps", "1", *SHARPENER, "-o", "own.safetensors")
    assert out.strip() == "own.safetensors" and mmgen.load(made / "own.safetensors").sharpener is not None
    program(made, "report", "own.safetensors", "--device", "cpu", "-o", "own.html")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([FILE], "is a sharpener already"),
        (["m.safetensors", "--posterior", "agregate"], "posterior"),
        (["m.safetensors", "--set", "sharpener.widht=3"], "width"),
        (
            ["m-aggregate-gaussian.safetensors", "-p", "prior", "--set", "sharpener.reconstructed=1"],
            "--posterior got prior",
        ),
        (["d.h5"], "expected"),
        (["m.safetensors", "-o", "d.h5"], "d.h5"),
    ],
)
def test_mistakes_get_a_sentence(
    made: Path, call: Call, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(made)
    code, out, err = call("fit-sharpener", *arguments, "--steps", "1", *TINY)
    assert code in (1, 2) and not out and words in err and "Traceback" not in err


def test_draws_of_pixels_are_refused(made: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    code, _, err = call("sample", FILE, "--given", "colour_1=red", "--sampled", "-o", "noise.png")
    assert code == 2 and "have no noise of pixels" in err and not Path("noise.png").exists()


def test_retrieved_pictures_are_not_called_sharpened(made: Path) -> None:
    options = ["-m", "correctness", "--queries", "4", "--draws", "2", "--judge", "judge.safetensors", "--device", "cpu"]
    program(made, "eval", FILE, "--posterior", "retrieval", "--posterior", "aggregate", *options, "-o", "both.jsonl")
    scores = read_scores(made / "both.jsonl")
    assert {score.posterior for score in scores if not score.sharpened} == {"retrieval"}
    assert {score.posterior for score in scores if score.sharpened} == {"aggregate"}


def test_settings_are_printed(made: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    code, out, _ = call("fit-sharpener", "m-aggregate-gaussian.safetensors", "--steps", "7", "--dry-run")
    settings = json.loads(out)
    training = settings["training"]
    assert (training["steps"], training["learning_rate"], training["average"]) == (7, 2e-4, 0.999)
    assert code == 0 and settings["posterior"] == "aggregate" and settings["sharpener"]["low_pass_weight"] == 10
