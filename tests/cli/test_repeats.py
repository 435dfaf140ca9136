"""Several runs of one command: ``--seeds``, and several paths on stdin."""

import shutil
from pathlib import Path

import pytest

from mmgen.artifacts import read_header
from mmgen.cli._parameters import _without_options
from tests.cli.conftest import Run

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
SMALL = """
--steps 3 --batch 16 --device cpu --set model.image_network.name=mlp --set model.image_network.hidden=[4]
--set model.hidden=8 --set model.latent_size=2 --set model.head_layers=0 --set model.attribute_network.embedding=2
--set model.attribute_network.hidden=4 --set model.attribute_network.decoder_hidden=4
--set training.validation_examples=15
"""
TRAIN = ["train", "tiny.h5", "--objective", "elbo", *SMALL.split()]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    shutil.copy(GOLDEN / "dataset-v3.h5", tmp_path / "tiny.h5")
    return tmp_path


@pytest.mark.slow
def test_a_pipe_of_two_seeds(data: Path, run: Run) -> None:
    trained = run(*TRAIN, "--seeds", "2")
    assert trained.stdout == "tiny-elbo-seed0.safetensors\ntiny-elbo-seed1.safetensors\n", trained.stderr
    headers = [read_header(data / line) for line in trained.stdout.splitlines()]
    assert [header.seed for header in headers] == [0, 1]
    words = headers[1].command.split()[1:]
    assert words[-4:] == ["--seed", "1", "-o", "tiny-elbo-seed1.safetensors"] and "--seeds" not in words

    fitted = run("fit-aggregate", "-", "--steps", "2", "--device", "cpu", stdin=trained.stdout)
    names = [f"tiny-elbo-seed{seed}-aggregate-realnvp.safetensors" for seed in (0, 1)]
    assert fitted.stdout.splitlines() == names, fitted.stderr
    assert read_header(data / names[1]).command.startswith("mmgen fit-aggregate tiny-elbo-seed1.safetensors --steps 2")

    # A guided fit starts from a fit of the same seed, which is made where there is none.
    guided = ["--guidance", "3", "--seeds", "2", "--steps", "2", "--device", "cpu"]
    assert run("fit-aggregate", "tiny-elbo-seed0.safetensors", *guided).stdout.count("\n") == 2
    assert read_header(data / "tiny-elbo-seed0-aggregate-realnvp-seed1.safetensors").seed == 1

    options = ["--metric", "log-likelihood", "--number", "4", "--samples", "4", "--device", "cpu"]
    measured = run("eval", "-", *options, stdin=fitted.stdout)
    assert measured.returncode == 0, measured.stderr
    compared = run("compare", ".", "--md")
    assert "| tiny-elbo | q_agg |" in compared.stdout and "| 2 |" in compared.stdout, compared.stdout + compared.stderr


def test_each_file_is_that_of_its_own_command_and_is_kept(data: Path, run: Run) -> None:
    output = ["-o", "m.safetensors"]
    assert run(*TRAIN, *output, "--seeds=0,7").stdout.splitlines() == ["m-seed0.safetensors", "m-seed7.safetensors"]
    before = {path.name: path.stat().st_mtime_ns for path in data.glob("m-*.safetensors")}
    assert run(*TRAIN, *output, "--seeds", "0,7").stdout.splitlines() == ["m-seed0.safetensors", "m-seed7.safetensors"]
    assert before == {path.name: path.stat().st_mtime_ns for path in data.glob("m-*.safetensors")}
    assert run(*TRAIN, "--seed", "7", "-o", "single.safetensors").returncode == 0
    ids = [read_header(data / f"{name}.safetensors").content_id for name in ("m-seed0", "m-seed7", "single")]
    assert ids[1] == ids[2] != ids[0]


def test_several_paths_have_no_single_output(data: Path, run: Run) -> None:
    shutil.copy(GOLDEN / "model-v3.safetensors", data / "a.safetensors")
    shutil.copy(GOLDEN / "model-v3.safetensors", data / "b.safetensors")
    paths = "a.safetensors\nb.safetensors\n"
    done = run("eval", "-", "-o", "scores.jsonl", stdin=paths)
    assert (
        done.returncode == 2 and "--output got scores.jsonl, but - reads 2 paths; leave it out, so that" in done.stderr
    )
    done = run("export", "-", "folder", stdin=paths)
    assert done.returncode == 2 and "but - reads 2 paths; run the command once for each" in done.stderr
    done = run("show", "-", "--json", stdin=paths)
    assert done.stdout.count("\n") == 2 and done.returncode == 0
    done = run("eval", "-", "--device", "cpu", stdin="a.safetensors\nnothing.safetensors\n")
    assert (done.returncode, done.stdout) == (1, "") and "there is no model or aggregate at nothing" in done.stderr


def test_options_are_removed_in_every_spelling() -> None:
    words = ["a", "--seeds", "3", "--output=x", "-oy", "-o", "z", "--seeds=1", "--overwrite", "--set", "a=1"]
    assert _without_options(words, ("--seeds", "--output", "-o")) == ["a", "--overwrite", "--set", "a=1"]
