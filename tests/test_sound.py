"""A package from outside with a kind of data of its own: everything that is done with pictures is done with sounds.

The package imports public names alone, and nothing in mmgen knows of it.
"""

import ast
import json
import wave
from pathlib import Path

import h5py
import numpy as np
import pytest

from mmgen import testing
from mmgen.artifacts import find_relatives, read_header
from tests.conftest import Call
from tests.program import mmgen
from tests.test_stranger import install_package

HERE = Path(__file__).parent / "sound"
MMD = ["--objective", "mmd-vae", "--set", "model.name=grid-vae"]
BOTH = ["--set", 'objective.modalities=["sound", "attributes"]']


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as pip would install it."""
    return install_package(HERE, "mmgen_sound", tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def made(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tones, models of them and a classifier."""
    folder = tmp_path_factory.mktemp("made")
    few = ["--batch", "32", "--seed", "0"]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        mmgen(folder, "make-data", "tones", "--number", "400", "--workers", "1", "-o", folder / "d.h5")
        mmgen(folder, "train", folder / "d.h5", *MMD, *BOTH, "--steps", "40", *few, "-o", folder / "m.safetensors")
        telbo = ["--objective", "telbo", "--set", "objective.observation=sound"]
        mmgen(folder, "train", folder / "d.h5", *telbo, "--steps", "4", *few, "-o", folder / "t.safetensors")
        mmgen(folder, "train-classifier", folder / "d.h5", "--steps", "60", "-o", folder / "judge.safetensors")
    return folder


@pytest.fixture(autouse=True)
def _installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(site))


def test_it_imports_public_names_alone() -> None:
    for file in (HERE / "mmgen_sound").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            assert not any(part.startswith("_") for name in (module, *names) for part in name.split("."))


def test_files_name_the_package(made: Path) -> None:
    assert {str(member) for member in read_header(made / "m.safetensors").members} == {
        "modality sound of mmgen-sound 0.1.0", "model grid-vae of mmgen-sound 0.1.0",
        "objective mmd-vae of mmgen-sound 0.1.0",
    }  # fmt: skip


def test_sounds_are_drawn_into_samples_and_into_a_sound_file(made: Path, call: Call) -> None:
    code, out, err = call("sample", made / "m.safetensors", "-n", "3", "-o", made / "s.h5")
    assert code == 0 and out.strip() == str(made / "s.h5"), err
    with h5py.File(made / "s.h5") as file:
        assert file["images"].shape == (3, 64) and file["z"].shape == (3, 8)
    assert call("sample", made / "m.safetensors", "-n", "3", "-o", made / "s.wav")[0] == 0
    with wave.open(str(made / "s.wav")) as file:
        assert file.getnframes() == 3 * 64 and file.getframerate() == 8000
    assert call("sample", made / "t.safetensors", "--given", "pitch=c", "-n", "2", "-o", made / "s.png")[0] == 0


def test_sounds_are_read_and_start_other_sounds(made: Path, call: Call) -> None:
    code, out, err = call("sample", made / "t.safetensors", "--from", "sound", "--json", "--dataset-row", "3")
    assert code == 0, err
    assert json.loads(out)["attributes"].keys() == {"pitch", "loudness"}
    code, _, err = call(
        "sample", made / "t.safetensors", "--from", "sound", "--to", "sound", "-o", made / "f.h5", "--dataset-row", "3"
    )
    assert code == 0, err


def test_a_classifier_learns_from_sounds_and_judges_them(made: Path, call: Call) -> None:
    assert find_relatives([made], "classifier", read_header(made / "d.h5").content_id)
    assert read_header(made / "judge.safetensors").facts["held_out_accuracy"]["mean"] > 80
    metrics = [part for name in ("correctness", "coverage", "active-units") for part in ("--metric", name)]
    code, out, err = call("eval", made / "t.safetensors", *metrics, "--draws", "4", "--json")
    assert code == 0, err
    scores = [json.loads(line) for line in out.splitlines()]
    assert {score["metric"] for score in scores} == {"correctness", "coverage", "active-units"}
    code, out, err = call("eval", made / "m.safetensors", "--metric", "active-units", "--json")
    assert code == 0 and len(json.loads(out)["details"]["activity"]) == 8, err


@pytest.mark.slow_cases("t-traversal")
@pytest.mark.parametrize("figure", ["traversal", "interpolation", "embedding"])
@pytest.mark.parametrize("model", ["m", "t"])
def test_figures_of_z(figure: str, model: str, made: Path, call: Call) -> None:
    code, _, err = call("plot", figure, made / f"{model}.safetensors", "-o", made / f"{model}-{figure}.png")
    assert code == 0, err
    assert "draw of those below" not in err
    if (figure, model) == ("traversal", "m"):
        assert "channel" in err


def test_a_posterior_given_sounds_is_fitted(made: Path, call: Call) -> None:
    code, _, err = call(
        "fit-aggregate", made / "m.safetensors", "--given", "sound", "--steps", "4", "-o", made / "a.safetensors"
    )
    assert code == 0, err


@pytest.mark.parametrize("objective", ["jmvae", "bivcca", "cvae", "telbo"])
def test_objectives_of_two_sides_take_sounds(objective: str, made: Path, call: Call) -> None:
    code, _, err = call(
        "train", made / "d.h5", "--objective", objective, "--set", "objective.observation=sound", "--steps", "2",
        "--batch", "8", "-o", made / f"two-{objective}.safetensors",
    )  # fmt: skip
    assert code == 0, err


@pytest.mark.parametrize("name", ["modality sound", "model grid-vae", "objective mmd-vae", "recipe tones"])
def test_members_keep_their_promises(name: str) -> None:
    (member,) = [member for member in testing.members_of("mmgen-sound") if str(member) == name]
    testing.check(member, **({"number": 50} if member.room == "recipe" else {}))


def test_pictures_are_waveforms(site: Path) -> None:
    from mmgen.modalities import get

    described, rows = get("sound").example(2)
    picture = described.picture(rows / 2.0**15)
    assert picture.shape == (2, 1, 32, 64) and set(np.unique(picture)) == {0, 1}
    assert (picture == 0).sum((1, 2)).tolist() == [[1] * 64] * 2
