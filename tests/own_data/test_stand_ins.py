"""A pointer of Git LFS or a web page in the place of a file is called so, at every door."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mmgen.codecs import read_pretrained
from mmgen.core.errors import ArtifactError
from tests.own_data._pictures import picture, write_folder
from tests.program import within

STAND_INS = {
    "pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "a pointer of Git LFS"),
    "page": (b"\n<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>\n", "a web page"),
}
IDX = [f"{part}-{what}-ubyte.gz" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1")]
CORA = ["x", "tx", "allx", "y", "ty", "ally", "graph", "test.index"]


def _write(*names: str) -> Callable[[Path, bytes], None]:
    def write(root: Path, data: bytes) -> None:
        for name in names:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)

    return write


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
PARALLEL = ["make-data", "parallel-text", "--languages", "en,de", "--train", "t"]
DOORS: dict[str, tuple[Callable[[Path, bytes], None], list[str]]] = {
    "table": (_among_pictures("metadata.csv"), FOLDER),
    "picture": (_among_pictures("005.png"), FOLDER),
    "zip": (_write("p.zip"), ["make-data", "folder", "p.zip", "--dry-run"]),
    "picture in a zip": (_in_a_zip, ["make-data", "folder", "p.zip", "--dry-run", "--size", "8", "--workers", "1"]),
    "patches": (_write("p.zip"), ["make-data", "patches", "--pictures", "p.zip"]),
    "dataset": (_write("d.h5"), ["train", "d.h5", "--objective", "telbo"]),
    "model": (_write("m.safetensors"), ["sample", "m.safetensors", "--given", "a=b"]),
    "scores": (_write("s.jsonl"), ["compare", "s.jsonl"]),
    "graph": (_write(*(f"g/ind.cora.{name}" for name in CORA)), ["make-data", "planetoid", "--planetoid", "g"]),
    "annotations": (
        _write("c/captions_train2017.json", "c/captions_val2017.json"),
        ["make-data", "coco-captions", "c", "--dry-run"],
    ),
    "sentences": (_write("t.en", "t.de"), PARALLEL),
    "digits": (_write(*(f"m/{name}" for name in IDX)), ["make-data", "mnist", "--mnist", "m"]),
    "sprites": (_write("s.npz"), ["make-data", "dsprites", "--dsprites", "s.npz"]),
    "parquet": (_write("x.parquet"), ["make-data", "hub", "x.parquet", "--dry-run"]),
    "webdataset": (_write("h/x.tar"), ["make-data", "hub", "h", "--dry-run"]),
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
    _write("diffusion_pytorch_model.safetensors")(tmp_path, data)
    (tmp_path / "config.json").write_text(json.dumps({"_class_name": "AutoencoderTiny"}))
    with pytest.raises(ArtifactError, match=f"it is {says} instead of the file"):
        read_pretrained(tmp_path)
