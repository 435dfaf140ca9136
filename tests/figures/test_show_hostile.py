"""``mmgen show`` of damaged and hostile files: a sentence, and no other file is opened."""

import struct
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pytest

from mmgen.artifacts import write_checkpoint, write_latents
from mmgen.artifacts.contents import describe_file, summarise_contents
from mmgen.cli._main import main
from mmgen.core.errors import ArtifactError


def checkpoint(path: Path) -> bytes:
    import torch

    write_checkpoint(path, kind="model", tensors={"w": torch.zeros(2, 3), "b": torch.zeros(4)}, settings={}, seed=0)
    return path.read_bytes()


def test_no_flipped_bit_of_a_checkpoint_is_a_traceback(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    data = checkpoint(path)
    (length,) = struct.unpack("<Q", data[:8])
    refused = 0
    for position in range(0, 8 + length, 3):
        changed = bytearray(data)
        changed[position] ^= 1 << position % 8
        path.write_bytes(changed)
        with suppress(ArtifactError):
            describe_file(path)
            continue
        refused += 1
    assert refused > length // 6


def test_contents_of_a_checkpoint_are_its_tensors(tmp_path: Path) -> None:
    checkpoint(tmp_path / "m.safetensors")
    assert summarise_contents(tmp_path / "m.safetensors") == {"tensors": 2, "numbers": 10}


@pytest.mark.parametrize("link", ["external", "soft", "storage", "virtual"])
def test_show_opens_no_other_file(tmp_path: Path, link: str, capsys: pytest.CaptureFixture[str]) -> None:
    path, other = tmp_path / "l.h5", tmp_path / "other.h5"
    zeros = np.zeros((2, 3), np.float32)
    write_latents(
        path, mean=zeros, log_sd=zeros, rows=np.arange(2),
        columns={"attributes": np.zeros((2, 1), np.uint8)}, split="iid/train",
        settings={}, seed=0,
    )  # fmt: skip
    with h5py.File(other, "w") as file:
        file["secret"] = np.arange(12345)
    with h5py.File(path, "r+") as file:
        if link == "external":
            file["extra"] = h5py.ExternalLink(str(other), "/secret")
        elif link == "soft":
            file["extra"] = h5py.SoftLink("/mean")
        elif link == "storage":
            file.create_dataset("extra", (12345,), "i8", external=[(str(other), 0, h5py.h5f.UNLIMITED)])
        else:
            layout = h5py.VirtualLayout((12345,), "i8")
            layout[:] = h5py.VirtualSource(str(other), "secret", (12345,))
            file.create_virtual_dataset("extra", layout)
    with pytest.raises(ArtifactError, match="this is no file that mmgen makes"):
        summarise_contents(path)
    with pytest.raises(SystemExit) as left:
        main(["show", str(path)])
    assert left.value.code == 1
    out, err = capsys.readouterr()
    assert out == "" and "12345" not in err and len(err.splitlines()) == 1
