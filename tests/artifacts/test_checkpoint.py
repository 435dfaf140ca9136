"""Checkpoints, latents and samples: round trips and content ids."""

import json
import struct

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from mmgen.artifacts import (
    read_checkpoint,
    read_header,
    read_latents,
    read_samples,
    write_checkpoint,
    write_latents,
    write_samples,
)
from mmgen.core.errors import ArtifactError

to_json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_tensors_come_back_bit_for_bit(tmp_path, checkpoint_at):
    path = tmp_path / "model.safetensors"
    tensors = checkpoint_at(path)
    header, found = read_checkpoint(path, "model")
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)
    assert header == read_header(path)
    assert (header.kind, header.seed, header.command) == ("model", 2, "mmgen train tiny.h5")
    assert header.facts == {"bound": -1.5}


def test_writing_twice_gives_the_same_bytes(tmp_path, checkpoint_at):
    checkpoint_at(tmp_path / "a.safetensors")
    checkpoint_at(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_shared_memory_and_gradients_are_no_trouble(tmp_path):
    path = tmp_path / "m.safetensors"
    weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
    write_checkpoint(path, kind="model", tensors={"a": weight, "b": weight, "c": weight[0]}, settings={}, seed=0)
    _, tensors = read_checkpoint(path)
    assert torch.equal(tensors["b"], weight)
    assert torch.equal(tensors["c"], weight[0])


@pytest.mark.slow
@given(
    st.dictionaries(st.text(min_size=1, max_size=8), st.integers(0, 2**31), max_size=5),
    st.dictionaries(st.text(), to_json_values, max_size=4),
    st.dictionaries(st.text(), to_json_values, max_size=4),
    st.text(),
    st.integers(0, 2**63 - 1),
)
@settings(max_examples=25)
def test_any_header_comes_back(tmp_path_factory, seeds, values, facts, command, seed):
    path = tmp_path_factory.mktemp("any") / "m.safetensors"
    tensors = {
        f"t{name}": torch.randn(seed % 5, generator=torch.Generator().manual_seed(seed)) for name, seed in seeds.items()
    }
    written = write_checkpoint(
        path, kind="classifier", tensors=tensors, settings=values, seed=seed, facts=facts, command=command
    )
    header, found = read_checkpoint(path, "classifier")
    assert header == written
    assert (header.settings, header.facts, header.command, header.seed) == (values, facts, command, seed)
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())


def test_plain_values_are_what_json_can_say(tmp_path):
    facts = {
        "numpy": np.float32(0.5),
        "array": np.arange(2),
        "path": tmp_path,
        "bound": float("nan"),
        "names": ("a", "b"),
    }
    header = write_checkpoint(tmp_path / "m", kind="model", tensors={}, settings={}, seed=np.int64(3), facts=facts)
    assert header.facts == {
        "numpy": 0.5, "array": [0, 1], "path": tmp_path.as_posix(), "bound": None, "names": ["a", "b"],
    }  # fmt: skip
    assert read_header(tmp_path / "m") == header


def _content_id(path, **changed):
    values = {"kind": "model", "tensors": {"w": torch.zeros(2, 3)}, "settings": {"a": 1}, "seed": 0} | changed
    return write_checkpoint(path, **values).content_id


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"facts": {"seconds": 3, "total_seconds": 4}}, True),
        ({"facts": {"held_out_accuracy": {"mean": 97.0}}}, False),
        ({"kind": "training-state", "facts": {"seconds": 3}}, False),
        ({"command": "mmgen train"}, True),
        ({"settings": {"a": 2}}, False),
        ({"seed": 1}, False),
        ({"kind": "classifier"}, False),
        ({"tensors": {"w": torch.zeros(3, 2)}}, False),
        ({"tensors": {"v": torch.zeros(2, 3)}}, False),
        ({"tensors": {"w": torch.zeros(2, 3, dtype=torch.int32)}}, False),
        ({"tensors": {"w": torch.full((2, 3), 1e-30)}}, False),
    ],
)
def test_what_the_content_id_covers(tmp_path, changed, same):
    assert (_content_id(tmp_path / "a") == _content_id(tmp_path / "b", **changed)) == same


def test_a_changed_bit_is_noticed(tmp_path, checkpoint_at):
    path = tmp_path / "m.safetensors"
    checkpoint_at(path)
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match="do not match its content id"):
        read_checkpoint(path)


def test_a_changed_setting_is_noticed(tmp_path, checkpoint_at):
    path = tmp_path / "m.safetensors"
    checkpoint_at(path)
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    head = json.loads(data[8 : 8 + length])
    head["__metadata__"]["mmgen"] = head["__metadata__"]["mmgen"].replace('"steps":10', '"steps":11')
    text = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])
    with pytest.raises(ArtifactError, match="header does not match its checksum"):
        read_header(path)


def test_latents_come_back(tmp_path):
    random = np.random.default_rng(0)
    mean, log_sd = random.normal(size=(2, 9, 4)).astype(np.float32)
    codes = random.integers(0, 3, (9, 2), dtype=np.uint8)
    header = write_latents(
        tmp_path / "l.h5", mean=mean, log_sd=log_sd, rows=np.arange(9)[::-1],
        columns={"attributes": codes}, split="iid/train",
        settings={"a": 1}, seed=2, facts={"seconds": 1.5}, command="mmgen fit-aggregate m",
    )  # fmt: skip
    latents = read_latents(tmp_path / "l.h5")
    assert latents.header == header == read_header(tmp_path / "l.h5")
    np.testing.assert_array_equal(latents.mean, mean)
    np.testing.assert_array_equal(latents.log_sd, log_sd)
    np.testing.assert_array_equal(latents.rows, np.arange(9)[::-1])
    np.testing.assert_array_equal(latents.columns["attributes"], codes)
    assert latents.split == "iid/train"


def test_latents_that_do_not_fit_together(tmp_path):
    good = {
        "mean": np.zeros((2, 3)), "log_sd": np.zeros((2, 3)), "rows": np.arange(2),
        "columns": {"attributes": np.zeros((2, 1), np.uint8)}, "split": "train", "settings": {}, "seed": 0,
    }  # fmt: skip
    for change in (
        {"log_sd": np.zeros((2, 2))},
        {"rows": np.arange(3)},
        {"columns": {"attributes": np.zeros((2, 1), int)}},
    ):
        with pytest.raises(ValueError):
            write_latents(tmp_path / "l.h5", **(good | change))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_samples_come_back(tmp_path, info, judged, sampled, named):
    random = np.random.default_rng(0)
    images = random.random((3, 1, 4, 5), dtype=np.float32)
    codes = np.array([[0, 1], [2, 255], [255, 255]], np.uint8)
    z = random.normal(size=(3, 2)).astype(np.float32)
    header = write_samples(
        tmp_path / "s.h5", images=images, attributes=codes, z=z, settings={}, seed=0,
        images_sampled=np.uint8(255 * images) if sampled else None, attributes_judged=codes if judged else None,
        info=info if named else None,
    )  # fmt: skip
    samples = read_samples(tmp_path / "s.h5")
    assert samples.header == header
    np.testing.assert_array_equal(samples.images, images)
    np.testing.assert_array_equal(samples.attributes, codes)
    np.testing.assert_array_equal(samples.z, z)
    assert (samples.images_sampled is not None, samples.attributes_judged is not None) == (sampled, judged)
    assert samples.info == (info if named else None)
