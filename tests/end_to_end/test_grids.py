"""A z with places through every command: trained, fitted, drawn from, scored, shown and exported."""

import json
import os
from pathlib import Path

import pytest
import torch

import mmgen
from mmgen.artifacts import read_checkpoint, read_header, read_latents
from mmgen.training.state import state_path
from tests.conftest import Call
from tests.program import mmgen as program
from tests.worlds import added

TINY = [
    "--set", "model.latent_size=[2,4,4]", "--set", "model.image_network.width=32", "--set", "model.hidden=16",
    "--set", "model.attribute_network.hidden=16", "--set", "model.attribute_network.decoder_hidden=16",
    "--steps", "4", "--batch", "16", "--set", "training.validation_examples=20",
]  # fmt: skip
FIT = [
    "--steps",
    "4",
    "--batch",
    "16",
    "--set",
    "training.validation_examples=20",
    "--set",
    "training.validate_every=2",
]
FLOW = [
    "--family", "rectified-flow", "--set", "aggregate.family.width=16", "--set", "aggregate.family.blocks=1",
    "--set", "aggregate.family.heads=2", "--set", "aggregate.family.steps=2",
    "--set", "aggregate.family.density_steps=1", *FIT,
]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grids")
    small = ["--source", "digits", "--size", "16", "--number", "300", "--workers", "1"]
    program(folder, "make-data", "mnist-a", *small, "-o", folder / "d.h5")
    program(folder, "train", folder / "d.h5", "--objective", "elbo", *TINY, "-o", folder / "m.safetensors")
    program(folder, "fit-aggregate", folder / "m.safetensors", *FLOW, "-o", folder / "a.safetensors")
    program(folder, "train-classifier", folder / "d.h5", "--steps", "4", "-o", folder / "judge.safetensors")
    return folder


def test_files_keep_the_shape_of_z(made: Path) -> None:
    model, fit = mmgen.load(made / "m.safetensors"), mmgen.load(made / "a.safetensors")
    assert model.model.latent.shapes == fit.fitted.aggregate.latent.shapes == {"z": (2, 4, 4)}
    assert read_header(made / "a.safetensors").facts["latent_shapes"] == {"z": [2, 4, 4]}
    latents = next(path for path in made.glob("*latents*.h5"))
    assert read_latents(latents).layers == {"z": 32}
    scale = read_checkpoint(made / "a.safetensors")[1]["scale"].unflatten(0, (2, 16))
    assert scale.std(1).max() == 0 and scale[0, 0] != scale[1, 0], "one scale a channel"


@pytest.mark.slow_cases(
    "report m.safetensors a.safetensors -o r.html",
    "eval a.safetensors --metric correctness --metric coverage --metric recall --draws 4 --json",
)
@pytest.mark.parametrize(
    "words",
    [
        "show a.safetensors",
        "sample m.safetensors -n 3 -o s.png",
        "sample a.safetensors --given digit=3 -n 3 -o s.h5",
        "sample a.safetensors --given digit=3 --guidance cfg:1 -n 2 -o cfg.png",
        "sample a.safetensors --given digit=3 --guidance 3 -n 2 -o guided.png",
        "sample m.safetensors --from image --json --dataset-row 3",
        "eval a.safetensors --metric active-units --metric total-correlation --metric reconstruction --json",
        "eval a.safetensors --metric correctness --metric coverage --metric recall --draws 4 --json",
        "eval a.safetensors --metric log-likelihood --samples 2 --number 2 --json",
        "eval m.safetensors --metric log-likelihood --samples 4 --number 4 --json",
        "plot interpolation m.safetensors -o interpolation.png",
        "plot embedding m.safetensors -o embedding.png",
        "plot reconstructions m.safetensors -o reconstructions.png",
        "fit-aggregate m.safetensors --family realnvp -o nvp.safetensors " + " ".join(FIT),
        *added("ON_A_GRID"),
        "report m.safetensors a.safetensors -o r.html",
        "export a.safetensors exported",
    ],
)
def test_commands_take_it(words: str, made: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    code, _, err = call(*words.split())
    assert code == 0, err


def test_a_traversal_moves_channels(made: Path, call: Call) -> None:
    code, _, err = call("plot", "traversal", made / "m.safetensors", "-o", made / "traversal.png")
    assert code == 0 and "Each row one channel of z" in err


def test_figures_of_planes_and_other_networks_refuse_it(made: Path, call: Call) -> None:
    code, _, err = call("plot", "contours", made / "m.safetensors", "-o", made / "contours.png")
    assert code == 2 and "has 2x4x4 latent dimensions, expected 2" in err
    strided = ["--set", "model.image_network.name=strided", "--set", "model.latent_size=[2,4,4]"]
    code, _, err = call("train", made / "d.h5", "--objective", "elbo", *strided, "-o", made / "no.safetensors")
    assert code == 2 and "image network strided knows no places" in err
    shared = ["--set", "model.latent_size=[2,4,4]", "--set", "model.shared.hidden=8"]
    code, _, err = call("train", made / "d.h5", "--objective", "elbo", *shared, "-o", made / "no.safetensors")
    assert code == 2 and "lose the places" in err


@pytest.mark.parametrize("objective", ["telbo", "mvae", "jmvae", "cvae", "iwae"])
def test_objectives_train_it(objective: str, made: Path, call: Call) -> None:
    path = made / f"{objective}.safetensors"
    code, _, err = call("train", made / "d.h5", "--objective", objective, *TINY, "-o", path)
    assert code == 0, err
    given = [] if objective == "iwae" else ["--given", "digit=3"]
    code, _, err = call("sample", path, *given, "-n", "2", "-o", made / f"{objective}.h5")
    assert code == 0, err


def test_a_fit_is_resumed_bit_for_bit(made: Path, call: Call) -> None:
    whole, parts = made / "whole.safetensors", made / "parts.safetensors"
    fit = ["fit-aggregate", str(made / "m.safetensors"), *FLOW, "--set", "training.keep_state=true"]
    assert call(*fit, "-o", whole)[0] == 0
    limit = fit.index("--steps") + 1
    first = [*fit[:limit], "2", *fit[limit + 1 :], "--set", "training.schedule=constant"]
    straight = [*fit, "--set", "training.schedule=constant"]
    assert call(*straight, "--overwrite", "-o", whole)[0] == 0
    assert call(*first, "-o", parts)[0] == 0
    code, _, err = call(*straight, "-o", parts)
    assert code == 0, err
    for place in (lambda path: path, state_path):
        one, two = read_checkpoint(place(whole))[1], read_checkpoint(place(parts))[1]
        assert one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def test_fits_over_places_have_settings_of_their_own(made: Path) -> None:
    training = read_header(made / "a.safetensors").settings["training"]
    assert (training["average"], training["precision"], training["learning_rate"]) == (0.999, "auto", 1e-3)
    vector = (
        read_header(made / "nvp.safetensors").settings["training"] if os.path.exists(made / "nvp.safetensors") else {}
    )
    assert vector.get("precision", "32-true") == "32-true"
    assert json.dumps(training)
