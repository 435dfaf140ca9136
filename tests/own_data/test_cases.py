"""The inputs that people have brought, one row each: read or refused, with words of the sentence."""

import shlex
import subprocess
from pathlib import Path

import pytest

from mmgen.cli._main import main
from tests.program import MMGEN, environment

CASES = Path(__file__).parents[3] / "shared" / "cases"

READ, REFUSED = 0, 1
FOLDER = "folder {} --dry-run --size 32"
PARALLEL = "parallel-text --languages en,de --min-count 2 --train {}"
PARTS = "which may be parts of a split; call all folders of one level train, val or test"
ENCODING = "holds a name in no known encoding"
OTHER_TABLE = "--metadata takes a table of another name"

ROWS: list[tuple[str, str, int, str]] = [
    ("class-called-train/pictures.zip", FOLDER, READ, "'class': it says the same as 'kind' of every picture"),
    ("coco-packed", "coco-captions {} --dry-run", REFUSED, "no file for captions_train*.json, only 3 .zip; unpack"),
    ("coco-packed", FOLDER, REFUSED, "no pictures in coco-packed, only '.zip', '.txt'; expected PNG"),
    ("flickr8k-token", FOLDER, READ, OTHER_TABLE),
    ("flickr8k-token", f"{FOLDER} --metadata flickr8k-token/Flickr8k_text/Flickr8k.token.txt", REFUSED,
     "1 picture that the table names is not in flickr8k-token: '9999_ab.jpg.1'; write each as its file is called"),
    ("ignored-list/pictures.zip", FOLDER, REFUSED, "or leave the column out with --ignore bbox"),
    ("ignored-list/pictures.zip", f"{FOLDER} --ignore bbox", READ, "attribute colour: blue 12, red 12"),
    ("nas-thumbnails/bins.zip", FOLDER, REFUSED, "holds 18 pictures, expected at least 20; left out: 4 hidden files"),
    ("nas-thumbnails/synology.zip", FOLDER, READ, "left out: 2 hidden files, and folders that begin with . @ # or $"),
    ("packed-by-tar", FOLDER, REFUSED, "convert others, and unpack archives"),
    ("packed-by-tar/pictures.tar", FOLDER, REFUSED, "it is no zip, or a truncated one"),
    ("packed-by-tar/BSR_bsds500.tgz", "patches --pictures {}", REFUSED, "unpack what is packed otherwise"),
    ("png-long-text/pictures.zip", FOLDER, READ, "pictures: 27, all of 16 x 16 pixels"),
    ("sidecar-captions/pictures.zip", FOLDER, READ, "captions 'text': "),
    ("split-folders/below-classes.zip", FOLDER, READ, "split 'given' (as the source divides): train 13, val 1"),
    ("split-folders/set-words.zip", FOLDER, REFUSED, f"'test_set', 'training_set', {PARTS}"),
    ("split-folders/twice.zip", FOLDER, REFUSED, f"'seg_test', 'seg_train', {PARTS}"),
    ("split-folders/years.zip", FOLDER, REFUSED, f"'train2017', 'val2017', {PARTS}"),
    ("table-of-another-name/capital.zip", FOLDER, READ, "attribute colour: blue 12, red 12"),
    ("table-of-another-name/json.zip", FOLDER, READ, f"1 .json; {OTHER_TABLE}"),
    ("table-of-another-name/numbered.zip", FOLDER, READ, f"1 .jsonl; {OTHER_TABLE}"),
    ("table-of-another-name/txt.zip", FOLDER, READ, f"1 .txt; {OTHER_TABLE}"),
    ("table-with-pipes/pictures.zip",
     f"{FOLDER} --metadata table-with-pipes/results.csv --image-column image_name --caption comment", READ,
     "a dog number 0 runs"),
    ("tables-from-programs/columns.zip", FOLDER, READ, "metadata.csv: column 4, which has no name and no cells"),
    ("tables-from-programs/index.zip", FOLDER, READ, "column 1, which has no name and numbers the rows"),
    ("tables-from-programs/rows.zip", FOLDER, READ, "left out: metadata.csv: 2 rows in which every cell is empty"),
    ("tables-from-programs/sep.zip", FOLDER, READ, "attribute colour: blue 12, red 12"),
    ("turkish-capital", FOLDER, READ, "captions 'text': 2 words, at most 2 in a caption"),
    ("values-spelled-twice/pictures.zip", FOLDER, READ,
     "warning: 2 values spelled in several ways, each of which is a value of its own: '1 and 1.0', 'Red and red'; "),
    ("zip-of-old-windows/z1-cp932.zip", FOLDER, REFUSED, ENCODING),
    ("zip-of-old-windows/z2-gbk.zip", FOLDER, REFUSED, ENCODING),
    ("zip-of-old-windows/z3-cp1252.zip", FOLDER, REFUSED, ENCODING),
    ("zip-of-old-windows/z4-cp932-table.zip", FOLDER, REFUSED, ENCODING),
    ("img2dataset-folder", "hub {} --dry-run --size 32", REFUSED, "has no column of pictures, only 'url', 'caption'"),
    ("parquet-of-pandas", "hub {} --dry-run --size 32", READ, "pictures: "),
    ("parquet-of-pandas/data.parquet", "hub {} --image-column image --dry-run --size 32", READ, "pictures: "),
    ("white-icons/pictures.zip", FOLDER, READ,
     "warning: 24 of 24 pictures are of one colour, with nothing to learn; of see-through ones another --background"),
    ("webdataset-points", "hub {} --dry-run --size 32", REFUSED, "name a dataset of images"),
    ("dry-run-of-nothing", "celeba-18 --celeba nowhere --dry-run", REFUSED, "there is no folder or zip nowhere"),
    ("dry-run-of-nothing", "mnist --mnist nowhere --dry-run", REFUSED, "there is no folder nowhere"),
    ("parallel-blank-lines/last/train", PARALLEL, READ, "parts: "),
    ("parallel-blank-lines/three/train", PARALLEL, REFUSED, "line 41 and 2 more lines of"),
    ("parallel-carriage-return/one/train", PARALLEL, READ, "parts: 102 train, 6 val, 12 test"),
    ("parallel-carriage-return/two/train", PARALLEL, READ, "parts: 102 train, 6 val, 12 test"),
    ("parallel-markup-lines/tags/train", PARALLEL, REFUSED, "have markup, expected a sentence; take such lines out"),
    ("parallel-markup-lines/header.tsv", PARALLEL, REFUSED, "names the columns in its first line"),
    ("parallel-other-forms/dev", PARALLEL, REFUSED, "there is no parallel-other-forms/dev.en"),
    ("parallel-other-forms/pairs.csv", PARALLEL, REFUSED, "save the table as tab-separated text (UTF-8)"),
    ("parallel-other-forms/train.jsonl", PARALLEL, REFUSED, "save the table as tab-separated text (UTF-8)"),
    ("parallel-other-forms/train.tmx", PARALLEL, REFUSED, "save the table as tab-separated text (UTF-8)"),
]  # fmt: skip

OTHER_DOORS = {
    "autoencoder-in-shards", "autoencoder-other-names", "codec-empty", "codec-many-tensors", "codec-nan", "codec-wide",
    "list-latents-link", "list-of-lists", "loop-hides-parents", "notebook-backend", "numpy-settings",
    "scores-behind-names", "seeds-set-seed", "slurm-tasks", "status-link-loop", "status-run-name", "windows-modules",
    "many-pictures", "closed-terminal", "cpu-quota", "hub-without-home", "two-writers-one-output",
    "typer-lowest-allowed",
}  # fmt: skip
"""Cases that bring no data to read: weights, lists, folders of results, systems; one is made by a script (below)."""


@pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")
@pytest.mark.parametrize(("case", "command", "code", "says"), ROWS, ids=[f"{row[0]}-{row[2]}" for row in ROWS])
def test_what_people_have_brought(
    case: str,
    command: str,
    code: int,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if command.startswith("hub"):
        datasets = pytest.importorskip("datasets")
        for name in ("HF_DATASETS_CACHE", "HF_CACHE_HOME"):
            monkeypatch.setattr(datasets.config, name, tmp_path)
    monkeypatch.chdir(CASES)
    output = [] if "--dry-run" in command else ["-o", str(tmp_path / "d.h5")]
    with pytest.raises(SystemExit) as left:
        main(["make-data", *shlex.split(command.format(case)), "--workers", "1", *output])
    out, err = capsys.readouterr()
    assert left.value.code == code, err
    assert says in out + err and "Traceback" not in err


@pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")
def test_every_case_has_a_row() -> None:
    assert {case.name for case in CASES.iterdir()} == {row[0].partition("/")[0] for row in ROWS} | OTHER_DOORS


@pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")
def test_a_home_that_is_not_there_is_named_and_not_the_folder(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    nowhere = tmp_path / "file"
    nowhere.touch()
    words = [*MMGEN, "make-data", "hub", str(CASES / "parquet-of-pandas"), "--size", "16", "-o", str(tmp_path / "h.h5")]
    variables = {**environment(), "HF_HOME": str(nowhere / "cache")}
    done = subprocess.run(words, env=variables, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("mmgen: cannot use ") == 1
    assert "name it by the variable HF_HOME" in done.stderr and "parquet-of-pandas:" not in done.stderr
