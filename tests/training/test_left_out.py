"""A modality of the dataset that an objective does not look at is named before training, and how to have it taken."""

import json
import shlex
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import mmgen.objectives
from mmgen.artifacts import Dataset, DatasetWriter
from mmgen.cli._main import main
from mmgen.core.errors import SettingsError
from mmgen.modalities.vector import VectorDescription
from mmgen.models._build import build_model
from mmgen.settings.config import merge, parse_assignments
from mmgen.training.model_run import complete_settings, describe_unused_modalities
from tests.small_data import write_small

MODALITIES = ("image", "edges", "attributes", "text")
SMALL = ["model.latent_size=2", "model.hidden=8", "model.image_network.name=mlp", "model.image_network.hidden=[8]"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two kinds of pictures, attributes and text: no objective looks at all of them unless told."""
    path = tmp_path_factory.mktemp("left") / "all.h5"
    pictures, codes = np.zeros((8, 1, 8, 8), np.uint8), (np.arange(8) % 2)[:, None].astype(np.uint8)
    values = {"image": pictures, "edges": pictures, "attributes": codes, "text": np.zeros((8, 2), np.uint16)}
    return write_small(path, values, {"digit": ["0", "1"]}, (("red", "cube"), ()), (4, 2))


def said(path: Path, assignments: list[str], objective: str) -> str:
    kind = ["model.name=semi-supervised-vae", "model.hidden=[8]"] if objective == "semi-supervised" else []
    values = merge({"objective": {"name": objective}}, parse_assignments([*SMALL, *kind, *assignments]))
    with Dataset.open(path) as dataset:
        settings = complete_settings(values, dataset)
    build_model(settings.model, settings.build_objective().demands, settings.data)
    return describe_unused_modalities(settings)


OF_PICTURES = [
    name
    for name, one in mmgen.objectives.import_all().items()
    if "image" in one().demands.modalities and "fixed encoder" not in one().demands.needs
]
"""Objectives that can be asked of the dataset here; a graph's cannot."""


TAKE_MORE = {
    "beta-tcvae",
    "capacity",
    "crmvae",
    "elbo",
    "factor-vae",
    "hfvae",
    "iwae",
    "mmvae",
    "mvae",
    "mvtcae",
    "reader",
}


@pytest.mark.parametrize("name", OF_PICTURES)
def test_what_an_objective_leaves_out_is_named(name: str, path: Path) -> None:
    with Dataset.open(path) as dataset:  # an objective may follow the data
        used = mmgen.objectives.get(name)().for_data(dataset.modalities).demands.modalities
    sentence = said(path, [], name)
    assert sentence.startswith(f"{name} uses ")
    seen, left = sentence.split(";")[0].split(", and leaves out ")
    for modality in MODALITIES:
        assert (modality in seen) == (modality in used)
        assert (modality in left) == (modality not in used)


@pytest.mark.parametrize("name", OF_PICTURES)
def test_the_way_to_have_it_taken_works(name: str, path: Path) -> None:
    words = shlex.split(said(path, [], name))
    if "--set" in words:
        assignment = words[words.index("--set") + 1]
        rest = said(path, [assignment], name)
        assert "text" not in rest.split(";")[0].split("leaves out")[-1]
        if assignment.startswith("objective.modalities"):
            assert rest == ""
    else:
        sentence = " ".join(words)
        assert "can learn from more modalities" in sentence and all(one in sentence for one in TAKE_MORE)


def test_nothing_is_said_where_nothing_is_left_out(path: Path) -> None:
    assert said(path, [f"objective.modalities={json.dumps(MODALITIES)}"], "mvae") == ""


def test_the_command_says_it_on_stderr(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["train", str(path), "--objective", "mvae", "--dry-run"]
    options = [word for setting in SMALL for word in ("--set", setting)]
    for dry in (True, False):
        out = str(path.with_name("m.safetensors"))
        rest = [] if dry else ["-o", out, "--steps", "1", "--device", "cpu"]
        with pytest.raises(SystemExit) as stop:
            main([*arguments[: None if dry else -1], *options, *rest])
        assert not stop.value.code
        stderr = capsys.readouterr().err
        assert stderr.count("mvae uses image and attributes, and leaves out edges and text of this dataset;") == 1


def test_networks_that_do_not_fit_the_pictures_are_told_by_a_dry_run_too(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [f"model.image_network.{setting}" for setting in ("name=spatial-broadcast", "patch=4", "cell=5")]
    options = [word for setting in ("model.latent_size=2", *cells) for word in ("--set", setting)]
    with pytest.raises(SystemExit) as stop:
        main(["train", str(path), "--objective", "elbo", "--dry-run", *options])
    captured = capsys.readouterr()
    assert (stop.value.code, captured.out) == (2, "")
    assert captured.err.endswith(
        "got images of 8x8, expected sides divisible by 5; use images of another size, or change the network's cell\n"
    )


@pytest.mark.parametrize("objective", ["telbo", "jmvae", "bivcca"])
def test_a_dataset_of_captions_alone_is_described_by_them(objective: str, tmp_path: Path) -> None:
    with Dataset.open(_captions_alone(tmp_path / "captions.h5")) as data:
        assert complete_settings({"objective": {"name": objective}}, data).objective["description"] == "text"
        # What a person says stays as it is, and is refused where the data do not have it.
        said = complete_settings({"objective": {"name": objective, "description": "attributes"}}, data)
        assert said.objective["description"] == "attributes"


@pytest.mark.parametrize("objective", ["elbo", "mvae"])
def test_modalities_of_a_dataset_of_captions_alone(objective: str, tmp_path: Path) -> None:
    with Dataset.open(_captions_alone(tmp_path / "captions.h5")) as data:
        settings = complete_settings({"objective": {"name": objective}}, data)
        assert tuple(settings.objective["modalities"]) == ("image", "text")
        assert describe_unused_modalities(settings) == ""


@pytest.mark.parametrize("name", ["beta-tcvae", "capacity", "elbo", "factor-vae", "hfvae", "iwae", "mvae"])
def test_what_the_data_lack_is_told_with_what_they_have(name: str, tmp_path: Path) -> None:
    """And what is told to set works."""
    with DatasetWriter(tmp_path / "v.h5", size=8, settings={"recipe": "mine"}, seed=0) as writer:
        writer.add(VectorDescription(name="numbers", size=4))
        writer.write(0, {"numbers": np.zeros((8, 4), np.float32)})
        writer.add_splits("iid", train=np.arange(4), val=[4, 5], test=[6, 7])
    with Dataset.open(tmp_path / "v.h5") as data:
        settings = complete_settings({"objective": {"name": name, "modalities": ["image"]}}, data)
        with pytest.raises(
            SettingsError, match=r"holds no image; use --set 'objective.modalities=\[\"numbers\"\]'"
        ) as error:
            describe_unused_modalities(settings)
        words = shlex.split(str(error.value).split("; use ")[1])
        told = parse_assignments([word for word in words if word != "--set"])
        assert describe_unused_modalities(complete_settings(merge({"objective": {"name": name}}, told), data)) == ""


def _captions_alone(path: Path) -> Path:
    values = {"image": np.zeros((4, 1, 8, 8), np.uint8), "text": np.array([[0, 1]] * 4, np.uint16)}
    return write_small(path, values, None, (["a", "dot"], ()), (2, 1), recipe="mine")


WEIGHED = {
    name: [field.name for field in fields(one) if field.name.endswith("_weight")]
    for name, one in mmgen.objectives.import_all().items()
    if "modalities" in {field.name for field in fields(one)}
}
"""Weights by kind of the objectives that are told what to generate."""


@pytest.mark.parametrize("name", [name for name, weights in WEIGHED.items() if weights])
@pytest.mark.parametrize("generated", [["image"], ["edges"], ["image", "attributes"], ["image", "text"], ["text"]])
def test_a_weight_of_what_is_not_generated_is_refused(name: str, generated: list[str], path: Path) -> None:
    kinds = {"image" if one == "edges" else one for one in generated}
    chosen: dict[str, object] = {"name": name, "modalities": generated}
    if "given" in {field.name for field in fields(mmgen.objectives.get(name))}:
        chosen["given"] = generated[:1]
    elif len(generated) == 1:
        with Dataset.open(path) as dataset, pytest.raises(SettingsError, match="expected at least two"):
            describe_unused_modalities(complete_settings({"objective": chosen}, dataset))
        return
    for weight in WEIGHED[name]:
        kind = weight.removesuffix("_weight")
        given = {"objective": {weight: 3.0}}
        with Dataset.open(path) as dataset:
            settings = complete_settings(merge({"objective": chosen}, given), dataset)
        describe_unused_modalities(settings)  # a preset has weights for other datasets
        describe_unused_modalities(settings, {"objective": {weight: 1.0}})  # a model's settings say all defaults
        if kind in kinds:
            describe_unused_modalities(settings, given)
            continue
        there = {"image": "image or edges"}.get(kind, kind)
        refusal = rf"{weight} got 3\.0, but {name} generates no {kind} here, only .*; leave it out, or name {there} in"
        with pytest.raises(SettingsError, match=refusal):
            describe_unused_modalities(settings, given)


def test_a_weight_of_what_the_data_lack(tmp_path: Path) -> None:
    """What is generated and lacks is told first; nothing is advised that the data do not have."""
    with Dataset.open(_captions_alone(tmp_path / "captions.h5")) as data:
        weight = {"objective": {"attributes_weight": 3.0}}
        settings = complete_settings(
            merge({"objective": {"modalities": ["sketch"], "given": ["sketch"]}}, weight), data
        )
        with pytest.raises(SettingsError, match="elbo uses sketch, but the dataset holds no sketch"):
            describe_unused_modalities(settings, weight)
        settings = complete_settings(merge({"objective": {"modalities": ["image"]}}, weight), data)
        with pytest.raises(SettingsError, match=r"generates no attributes here, only image; leave it out$"):
            describe_unused_modalities(settings, weight)


def test_the_command_refuses_it_and_takes_it_from_a_preset(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [word for setting in SMALL for word in ("--set", setting)]
    picture = ["--set", 'objective.modalities=["image"]']
    (tmp_path / "mine.toml").write_text('[objective]\nname = "elbo"\nmodalities = ["image"]\ntext_weight = 2\n')
    (tmp_path / "extends.toml").write_text('extends = "cremer/two-objects-cpu"\n')
    preset = ["--preset", "cremer/two-objects-cpu", "--set", "training.optimizer=adam", *picture]
    for given, code in (
        ([*preset, "--set", "objective.text_weight=2"], 2),
        (preset, 0),
        (["--config", str(tmp_path / "mine.toml")], 2),
        (["--config", str(tmp_path / "extends.toml"), "--set", "training.optimizer=adam", *picture], 0),
    ):
        with pytest.raises(SystemExit) as stop:
            main(["train", str(path), "--dry-run", *options, *given])
        said = capsys.readouterr().err
        assert (stop.value.code or 0) == code, said
        assert ("objective.text_weight got 2, but elbo generates no text" in said) is bool(code)


def test_a_dry_run_tells_of_an_optimiser_that_has_nothing_to_do(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [word for setting in SMALL for word in ("--set", setting)]
    with pytest.raises(SystemExit) as stop:
        main(["train", str(path), "--objective", "elbo", "--dry-run", *options, "--set", "training.optimizer=muon"])
    assert stop.value.code == 2
    assert "training.optimizer got muon, which is for kernels, but" in capsys.readouterr().err
