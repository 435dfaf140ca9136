"""A signal that comes while HDF5 writes ends the work afterwards, and leaves nothing under the file's name."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mmgen.artifacts import Dataset, DatasetWriter


def write(path: Path) -> None:
    with DatasetWriter(path, size=300, settings={"recipe": "toy"}, seed=0) as writer:
        writer.add_image("image", shape=(1, 8, 8), layout="bytes")
        for start in range(0, 300, 100):
            writer.write(start, {"image": np.full((100, 1, 8, 8), start // 2, np.uint8)})
        writer.add_splits("iid", train=np.arange(200), val=np.arange(200, 250), test=np.arange(250, 300))


@pytest.fixture(autouse=True)
def _usual_handler() -> Iterator[None]:
    """Handle Ctrl-C as Python does, whatever earlier tests have left."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("part", [0.0, 0.2, 0.4, 0.6, 0.8, 0.99])
@pytest.mark.parametrize("called", ["fstat", "lseek"])
def test_a_signal_within_hdf5_is_raised_after_it(
    called: str, part: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls, chosen = getattr(os, called), 0, -1

    def interrupted(*arguments: int) -> object:
        nonlocal calls
        calls += 1
        if calls - 1 == chosen:
            signal.raise_signal(signal.SIGINT)
        return original(*arguments)

    monkeypatch.setattr(os, called, interrupted)
    write(tmp_path / "d.h5")
    (tmp_path / "d.h5").unlink()
    chosen, calls = int(part * calls), 0
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "d.h5")
    assert not list(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    write(tmp_path / "d.h5")
    with Dataset.open(tmp_path / "d.h5") as made:
        assert made.read_image("image", [299]).tolist() == [[[[100] * 8] * 8]]
