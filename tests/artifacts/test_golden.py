"""One small file of every kind in the current format: files of one format version stay readable.

``python -m tests.artifacts.remake_golden`` makes them anew.
"""

import hashlib
import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

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
from mmgen.posteriors import load_aggregate
from mmgen.training.model_run import read_experiment
from mmgen.training.state import load_state
from mmgen.training.task import ModelTask

LOG_DENSITY = -2.193188
"""log q(z = 0 | digit 0, big) of the golden aggregate, nats, as on the day when it was fitted."""
GOLDEN = Path(__file__).parents[1] / "golden"
CONTENT_IDS = json.loads((GOLDEN / "content-ids.json").read_text())


@pytest.mark.parametrize("name", CONTENT_IDS)
def test_golden_files_stay_readable(name, read_all):
    header = read_header(GOLDEN / name)
    assert header.content_id == CONTENT_IDS[name]
    assert f"-v{header.format_version}." in name
    read_all(header.kind, GOLDEN / name)


def test_content_id_as_the_documentation_says_without_mmgen():
    """docs/artifacts.md, sections "Content id" and "Header", with nothing but h5py, json and hashlib."""

    def dumps(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":"))

    lines = {}
    with h5py.File(GOLDEN / "dataset-v3.h5") as file:
        header = json.loads(file.attrs["mmgen"])

        def add(name, item):
            if isinstance(item, h5py.Dataset):
                digest = hashlib.sha256(item[()].astype(item.dtype.newbyteorder("<")).tobytes()).hexdigest()
                texts = {key: value.decode() for key, value in item.attrs.items()}
                lines[name] = dumps([name, item.dtype.name, item.shape, digest, texts])

        file.visititems(add)
    said = {"kind": "dataset", "parents": [], "seed": header["seed"], "settings": header["settings"]}
    covered = {name: fact for name, fact in header["facts"].items() if not name.endswith("seconds")}
    assert covered
    head = dumps(said | {"facts": covered})
    text = "\n".join([head, *(lines[name] for name in sorted(lines))])
    assert hashlib.sha256(text.encode("ascii")).hexdigest() == header["content_id"]
    checksum = header.pop("checksum")
    assert checksum == hashlib.sha256(dumps(header).encode("ascii")).hexdigest()


def test_every_golden_file_is_listed_and_every_kind_has_one():
    assert {path.name for path in GOLDEN.iterdir()} == {*CONTENT_IDS, "content-ids.json"}
    assert {name.rsplit("-v", 1)[0] for name in CONTENT_IDS} == KINDS.keys()
    assert all(f"-v{FORMAT_VERSION}." in name for name in CONTENT_IDS)


def test_the_golden_aggregate_is_still_a_density():
    _, settings, aggregate = load_aggregate(GOLDEN / "aggregate-v3.safetensors")
    assert settings.aggregate.family == {"name": "realnvp", "steps": 1, "hidden": [4]}
    values, present = torch.zeros(1, 4, dtype=torch.int64), torch.tensor([[True, True, False, False]])
    found = aggregate.log_prob(torch.zeros(1, 1, 2), Batch({"attributes": values}, {"attributes": present}))
    assert found.item() == pytest.approx(LOG_DENSITY, abs=1e-4)


def test_the_golden_training_state_still_continues():
    path = GOLDEN / "training-state-v3.safetensors"
    header = read_header(path)
    settings = read_experiment({name: v for name, v in header.settings.items() if name != "dataset"})
    objective = settings.build_objective()
    task = ModelTask(build_model(settings.model, objective.demands, settings.data), objective)
    optimizer = torch.optim.Adam(task.parameter_groups())
    state = load_state(path, task, {"all": optimizer}, header.settings, header.facts["precision"])
    assert (state.step, state.finished) == (3, True)
    assert len(optimizer.state) == len(list(task.parameters()))
    assert {float(moments["step"]) for moments in optimizer.state.values()} == {3.0}


def test_parent_of_the_golden_model(tmp_path):
    for name in ("dataset-v3.h5", "model-v3.safetensors"):
        shutil.copy(GOLDEN / name, tmp_path)
    assert find_parent(tmp_path / "model-v3.safetensors", "dataset") == tmp_path / "dataset-v3.h5"


def _again(header):
    return {"settings": header.settings, "seed": header.seed, "facts": header.facts}


def test_dataset_written_again_has_the_same_content_id(tmp_path):
    with Dataset.open(GOLDEN / "dataset-v3.h5") as old:
        assert old.read_image("image", slice(1)).tolist() == [[[[0, 1, 1, 1, 1], [1, 0, 1, 0, 1], [1, 1, 1, 1, 0]]]]
        assert old.read_attributes("attributes", slice(3)).tolist() == [[0, 1], [2, 0], [255, 1]]
        assert old.split("iid", "test").tolist() == [25, 26, 27, 28, 29]
        with DatasetWriter(tmp_path / "new.h5", old.size, **_again(old.header)) as new:
            for described in old.modalities.values():
                new.add(described)
            for factor in old.factors.values():
                new.add_factor(factor.name, factor.dtype, factor.unit, factor.meaning, factor.shape)
            new.write(
                0,
                {name: old.read_packed(name) for name in old.modalities},
                {name: old.read_factor(name) for name in old.factors},
            )
            for scheme in old.schemes:
                new.add_splits(scheme, **{part: old.split(scheme, part) for part in PARTS})
    assert read_header(tmp_path / "new.h5").content_id == old.header.content_id


def test_the_others_written_again_have_the_same_content_id(tmp_path):
    header, tensors = read_checkpoint(GOLDEN / "model-v3.safetensors", "model")
    assert tensors["step"].item() == 17
    new = write_checkpoint(tmp_path / "m", kind="model", tensors=tensors, parents=header.parents, **_again(header))
    assert new.content_id == header.content_id

    latents = read_latents(GOLDEN / "latents-v3.h5")
    arrays = {name: getattr(latents, name) for name in ("mean", "log_sd", "rows", "columns", "split")}
    assert write_latents(tmp_path / "l", **arrays, **_again(latents.header)).content_id == latents.header.content_id
    np.testing.assert_array_equal(latents.rows, [0, 2, 4, 6, 8, 10])

    samples = read_samples(GOLDEN / "samples-v3.h5")
    names = ("images", "images_sampled", "attributes", "attributes_judged", "z", "info")
    arrays = {name: getattr(samples, name) for name in names}
    assert write_samples(tmp_path / "s", **arrays, **_again(samples.header)).content_id == samples.header.content_id
