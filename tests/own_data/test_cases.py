"""The inputs that people have brought, one row each: read or refused, with words of the sentence."""

import shlex
from pathlib import Path

import pytest

from tests.own_data._obeying import CASES, FOLDER, READ, REFUSED
from tests.program import within
from tests.worlds import added

PARTS = "which may be parts of a split; call all folders of one level train, val or test"
ENCODING = "holds a name in no known encoding"
OTHER_TABLE = "--metadata takes a table of another name"

ROWS: list[tuple[str, str, int, str]] = [
    ("class-called-train/pictures.zip", FOLDER, READ, "'class': it says the same as 'kind' of every picture"),
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
    ("white-icons/pictures.zip", FOLDER, READ,
     "warning: 24 of 24 pictures are of one colour, with nothing to learn; of see-through ones another --background"),
    ("dry-run-of-nothing", "celeba-18 --celeba nowhere --dry-run", REFUSED, "there is no folder or zip nowhere"),
    ("dry-run-of-nothing", "mnist --mnist nowhere --dry-run", REFUSED, "there is no folder nowhere"),
    *(row for rows in added("CASES") for row in rows),
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
    case: str, command: str, code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command.startswith("hub"):
        datasets = pytest.importorskip("datasets")
        for name in ("HF_DATASETS_CACHE", "HF_CACHE_HOME"):
            monkeypatch.setattr(datasets.config, name, tmp_path)
    output = [] if "--dry-run" in command else ["-o", str(tmp_path / "d.h5")]
    done = within(CASES, "make-data", *shlex.split(command.format(case)), "--workers", "1", *output)
    assert done.returncode == code, done.stderr
    assert says in done.stdout + done.stderr and "Traceback" not in done.stderr
