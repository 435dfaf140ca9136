"""One small file of every kind per format version, kept for ever: what was once written stays readable.

Never write these files again. For a new format version add new ones beside them, made by the ``make_...`` functions of
``conftest.py`` or by the commands that the files name, and their content ids here.
"""

import hashlib
import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from mmgen.aggregates._fit import load_aggregate
from mmgen.artifacts import (
    FORMAT_VERSION,
    PARTS,
    Dataset,
    DatasetWriter,
    find_parent,
    read_checkpoint,
    read_header,
    read_latents,
    read_samples,
    write_checkpoint,
    write_latents,
    write_samples,
)
from mmgen.artifacts.header import KINDS
from mmgen.core.batch import Batch
from mmgen.models._build import build_model
from mmgen.training.model_run import read_experiment
from mmgen.training.state import load_state
from mmgen.training.task import ModelTask

LOG_DENSITY = -2.193188
"""log q(z = 0 | digit 0, big) of the golden aggregate, nats, as on the day when it was fitted."""
GOLDEN = Path(__file__).parents[1] / "golden"
CONTENT_IDS = {
    "dataset-v1.h5": "02b328675960333a3f2a06063d9b060e9ce4295021001905fd14d19211293b27",
    "latents-v1.h5": "1dc511062568691cabec4d8c0651b330f4ffc9a5670705b3e28b3a52cd962c82",
    "samples-v1.h5": "7045eea8e7304005b3561be6a6ed8e9af621664cf066b047733f8399beb4fa22",
    "model-v1.safetensors": "452cf098773d9319fc62f9fdb566c80b5e5c9b5751b32bd3078284f0a4fd60ae",
    "aggregate-v1.safetensors": "a79f01faf86273270c917254eebaabbbc71e1faeaea70c7ea055cfb3d9a2412c",
    "classifier-v1.safetensors": "708ece94aaeb2fef8c844f35e5b033ee3fd3c829e593ffdd299ce59393bf2c15",
    "training-state-v1.safetensors": "c38b5cade9068deb6bd804918becd5b83685c760e11a8b351567b252caecda9b",
    "aggregate-v2.safetensors": "873f525d146f3418ea8b70b3756e04887cc494fc5f66e8b572b37b0055492885",
    "classifier-v2.safetensors": "f519fd1d16539dd57c2cda00c5a0e558ee9622d2867befe20ec871b831b0acb1",
    "dataset-v2.h5": "024594d9777a5310457f29a22c5b5665bf7618e584c3dc16fce1b5341e3260f1",
    "latents-v2.h5": "1dc511062568691cabec4d8c0651b330f4ffc9a5670705b3e28b3a52cd962c82",
    "model-v2.safetensors": "0d6b05e622b77b6ca511949392fb151a3ab211b4fac3399ea04265df835e039b",
    "samples-v2.h5": "7045eea8e7304005b3561be6a6ed8e9af621664cf066b047733f8399beb4fa22",
    "training-state-v2.safetensors": "ed96d740be776d7a234dcbfa7b36ccae43d8e5249b92029554ad4a152ddbc06a",
}


@pytest.mark.parametrize("name", CONTENT_IDS)
def test_golden_files_stay_readable(name, read_all):
    header = read_header(GOLDEN / name)
    assert header.content_id == CONTENT_IDS[name]
    assert f"-v{header.format_version}." in name
    read_all(header.kind, GOLDEN / name)


@pytest.mark.parametrize("version", [1, 2])
def test_content_id_as_the_documentation_says_without_mmgen(version):
    """docs/artifacts.md, sections "Content id" and "Header", with nothing but h5py, json and hashlib."""

    def dumps(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":"))

    lines = {}
    with h5py.File(GOLDEN / f"dataset-v{version}.h5") as file:
        header = json.loads(file.attrs["mmgen"])

        def add(name, item):
            if isinstance(item, h5py.Dataset):
                digest = hashlib.sha256(item[()].astype(item.dtype.newbyteorder("<")).tobytes()).hexdigest()
                texts = {key: value.decode() for key, value in item.attrs.items()}
                lines[name] = dumps([name, item.dtype.name, item.shape, digest, texts])

        file.visititems(add)
    said = {"kind": "dataset", "parents": [], "seed": header["seed"], "settings": header["settings"]}
    covered = {name: fact for name, fact in header["facts"].items() if not name.endswith("seconds")}
    assert bool(covered) == (version == 2)
    head = dumps(said | ({"facts": covered} if version == 2 else {}))
    text = "\n".join([head, *(lines[name] for name in sorted(lines))])
    assert hashlib.sha256(text.encode("ascii")).hexdigest() == header["content_id"]
    checksum = header.pop("checksum", None)
    assert checksum == (hashlib.sha256(dumps(header).encode("ascii")).hexdigest() if version == 2 else None)


def test_every_golden_file_is_listed_and_every_kind_has_one():
    assert {path.name for path in GOLDEN.iterdir()} == set(CONTENT_IDS)
    for version in range(1, FORMAT_VERSION + 1):
        there = {name.rsplit("-v", 1)[0] for name in CONTENT_IDS if f"-v{version}." in name}
        assert there == KINDS.keys()


@pytest.mark.parametrize("version", [1, 2])
def test_the_golden_aggregate_is_still_a_density(version):
    _, settings, aggregate = load_aggregate(GOLDEN / f"aggregate-v{version}.safetensors")
    assert settings.aggregate.family == {"name": "realnvp", "steps": 1, "hidden": [4]}
    values, present = torch.zeros(1, 4, dtype=torch.int64), torch.tensor([[True, True, False, False]])
    found = aggregate.log_prob(torch.zeros(1, 1, 2), Batch({"attributes": values}, {"attributes": present}))
    assert found.item() == pytest.approx(LOG_DENSITY, abs=1e-4)


@pytest.mark.parametrize("version", [1, 2])
def test_the_golden_training_state_still_continues(version):
    path = GOLDEN / f"training-state-v{version}.safetensors"
    header = read_header(path)
    settings = read_experiment({name: v for name, v in header.settings.items() if name != "dataset"})
    objective = settings.build_objective()
    task = ModelTask(build_model(settings.model, objective.demands, settings.data), objective)
    optimizer = torch.optim.Adam(task.parameter_groups())
    state = load_state(path, task, {"all": optimizer}, header.settings, header.facts["precision"])
    assert (state.step, state.finished) == (3, True)
    assert len(optimizer.state) == len(list(task.parameters()))
    assert {float(moments["step"]) for moments in optimizer.state.values()} == {3.0}


@pytest.mark.parametrize("version", [1, 2])
def test_parent_of_the_golden_model(tmp_path, version):
    for name in (f"dataset-v{version}.h5", f"model-v{version}.safetensors"):
        shutil.copy(GOLDEN / name, tmp_path)
    assert find_parent(tmp_path / f"model-v{version}.safetensors", "dataset") == tmp_path / f"dataset-v{version}.h5"


def _again(header):
    return {"settings": header.settings, "seed": header.seed}


def test_dataset_written_again_has_the_same_content_id(tmp_path):
    with Dataset.open(GOLDEN / "dataset-v1.h5") as old:
        assert old.read_image("image", slice(1)).tolist() == [[[[0, 1, 1, 1, 1], [1, 0, 1, 0, 1], [1, 1, 1, 1, 0]]]]
        assert old.read_attributes("attributes", slice(3)).tolist() == [[0, 1], [2, 0], [255, 1]]
        assert old.split("iid", "test").tolist() == [25, 26, 27, 28, 29]
        with DatasetWriter(tmp_path / "new.h5", old.size, **_again(old.header)) as new:
            for image in old.images.values():
                new.add_image(image.name, image.shape, image.layout)
            for info in old.attributes.values():
                new.add_attributes(info.name, dict(zip(info.names, info.values, strict=True)))
            for factor in old.factors.values():
                new.add_factor(factor.name, factor.dtype, factor.unit, factor.meaning)
            new.write(
                0,
                {
                    **{name: old.read_packed(name) for name in old.images},
                    **{name: old.read_attributes(name) for name in old.attributes},
                },
                {name: old.factor(name) for name in old.factors},
            )
            for scheme in old.schemes:
                new.add_splits(scheme, **{part: old.split(scheme, part) for part in PARTS})
    assert read_header(tmp_path / "new.h5").content_id == old.header.content_id


def test_the_others_written_again_have_the_same_content_id(tmp_path):
    header, tensors = read_checkpoint(GOLDEN / "model-v1.safetensors", "model")
    assert tensors["step"].item() == 17
    new = write_checkpoint(tmp_path / "m", kind="model", tensors=tensors, parents=header.parents, **_again(header))
    assert new.content_id == header.content_id

    latents = read_latents(GOLDEN / "latents-v1.h5")
    arrays = {name: getattr(latents, name) for name in ("mean", "log_sd", "rows", "columns", "split")}
    assert write_latents(tmp_path / "l", **arrays, **_again(latents.header)).content_id == latents.header.content_id
    np.testing.assert_array_equal(latents.rows, [0, 2, 4, 6, 8, 10])

    samples = read_samples(GOLDEN / "samples-v1.h5")
    names = ("images", "images_sampled", "attributes", "attributes_judged", "z", "info")
    arrays = {name: getattr(samples, name) for name in names}
    assert write_samples(tmp_path / "s", **arrays, **_again(samples.header)).content_id == samples.header.content_id
