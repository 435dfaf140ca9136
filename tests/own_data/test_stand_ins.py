"""A pointer of Git LFS or a web page in the place of a file is called so, at every door."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mmgen.codecs import read_pretrained
from mmgen.core.errors import ArtifactError
from tests.own_data._obeying import write_files
from tests.own_data._pictures import picture, write_folder
from tests.program import within
from tests.worlds import added_rows

STAND_INS = {
    "pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "a pointer of Git LFS"),
    "page": (b"\n<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>\n", "a web page"),
}
IDX = [f"{part}-{what}-ubyte.gz" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1")]


def _among_pictures(name: str) -> Callable[[Path, bytes], None]:
    def write(root: Path, data: bytes) -> None:
        (write_folder(root / "p", table=False) / name).write_bytes(data)

    return write


def _in_a_zip(root: Path, data: bytes) -> None:
    with zipfile.ZipFile(root / "p.zip", "w") as archive:
        for number in range(25):
            archive.writestr(f"a/{number}.png", picture(number))
        archive.writestr("a/x.png", data)


FOLDER = ["make-data", "folder", "p", "--dry-run", "--size", "8", "--workers", "1"]
DOORS: dict[str, tuple[Callable[[Path, bytes], None], list[str]]] = {
    "table": (_among_pictures("metadata.csv"), FOLDER),
    "picture": (_among_pictures("005.png"), FOLDER),
    "zip": (write_files("p.zip"), ["make-data", "folder", "p.zip", "--dry-run"]),
    "picture in a zip": (_in_a_zip, ["make-data", "folder", "p.zip", "--dry-run", "--size", "8", "--workers", "1"]),
    "dataset": (write_files("d.h5"), ["train", "d.h5", "--objective", "telbo"]),
    "model": (write_files("m.safetensors"), ["sample", "m.safetensors", "--given", "a=b"]),
    "scores": (write_files("s.jsonl"), ["compare", "s.jsonl"]),
    "digits": (write_files(*(f"m/{name}" for name in IDX)), ["make-data", "mnist", "--mnist", "m"]),
    "sprites": (write_files("s.npz"), ["make-data", "dsprites", "--dsprites", "s.npz"]),
    **added_rows("DOORS"),
}  # fmt: skip


@pytest.mark.slow_cases("pointer-parquet", "page-parquet", "pointer-webdataset", "page-webdataset")
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", STAND_INS)
def test_a_stand_in_is_called_so(kind: str, door: str, tmp_path: Path) -> None:
    if door in ("parquet", "webdataset"):
        pytest.importorskip("datasets")
    (data, says), (write, command) = STAND_INS[kind], DOORS[door]
    write(tmp_path, data)
    before = sorted(tmp_path.rglob("*"))
    done = within(tmp_path, *command)
    assert done.returncode in (1, 2) and f"it is {says} instead of the file" in done.stderr, done.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kind", STAND_INS)
def test_a_stand_in_for_weights_is_called_so(kind: str, tmp_path: Path) -> None:
    data, says = STAND_INS[kind]
    write_files("diffusion_pytorch_model.safetensors")(tmp_path, data)
    (tmp_path / "config.json").write_text(json.dumps({"_class_name": "AutoencoderTiny"}))
    with pytest.raises(ArtifactError, match=f"it is {says} instead of the file"):
        read_pretrained(tmp_path)
