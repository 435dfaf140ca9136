"""A file that another program writes is not called damaged."""

import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import pytest

from mmgen.artifacts import Dataset, read_header
from mmgen.core.errors import ArtifactError

GOLDEN = Path(__file__).parents[1] / "golden" / "dataset-v3.h5"
WRITER = "import h5py, os, sys; f = h5py.File(sys.argv[1], 'r+'); os._exit(0)"  # killed: its flags stay behind


@pytest.mark.parametrize("killed", [False, True])
def test_a_file_that_is_open_for_writing(killed: bool, tmp_path: Path) -> None:
    path = tmp_path / "d.h5"
    shutil.copyfile(GOLDEN, path)
    if killed:
        subprocess.run([sys.executable, "-c", WRITER, path], check=True)
        writing = None
    else:
        copy = tmp_path / "copy.h5"
        writing = h5py.File(path, "r+")
        shutil.copyfile(path, copy)  # HDF5 knows its own files within one process; another sees these bytes
        path = copy
    for read in (read_header, Dataset.open):
        with pytest.raises(ArtifactError, match="another program has it open for writing, or was killed while it had"):
            read(path)
    if writing is not None:
        writing.close()
