"""What a refusal tells people to do is done here, and the command goes on."""

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.own_data._obeying import CASES, FOLDER, REFUSED, Obey, then, unpack
from tests.own_data._pictures import write_folder
from tests.own_data._tables import PICTURES
from tests.own_data.test_cases import ROWS
from tests.own_data.test_tables import REFUSED as TABLES_REFUSED
from tests.own_data.test_wrong_folders import WRONG
from tests.program import within
from tests.worlds import added_rows


def _rename_folders(where: str, names: dict[str, str]) -> Obey:
    def obey(root: Path) -> str:
        unpack(where)(root)
        to = (root / where).parent / "unpacked"
        for old, new in names.items():
            (to / old).rename((to / old).with_name(new))
        return FOLDER.format(to.relative_to(root))

    return obey


def _remove_rows_of(root: Path) -> None:
    table = root / "flickr8k-token/Flickr8k_text/Flickr8k.token.txt"
    lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
    table.write_text("".join(line for line in lines if not line.startswith("9999_ab.jpg.1")), encoding="utf-8")


ZIPS = {"z1-cp932": "cp932", "z2-gbk": "gbk", "z3-cp1252": "cp850", "z4-cp932-table": "cp932"}

SEGMENTS = {"seg_train": "train", "seg_test": "test"}

OBEYED: dict[tuple[str, str], Obey] = {
    ("coco-packed", "folder"): unpack("coco-packed", f"{FOLDER} --folders-are-classes"),
    ("flickr8k-token", "folder"): then(
        _remove_rows_of, f"{FOLDER} --metadata {{}}/Flickr8k_text/Flickr8k.token.txt".replace("{}", "flickr8k-token")
    ),
    ("packed-by-tar", "folder"): unpack("packed-by-tar", f"{FOLDER} --folders-are-classes"),
    ("packed-by-tar/pictures.tar", "folder"): unpack("packed-by-tar/pictures.tar"),
    ("split-folders/set-words.zip", "folder"): _rename_folders(
        "split-folders/set-words.zip", {"training_set": "train", "test_set": "test"}),
    ("split-folders/twice.zip", "folder"): _rename_folders(
        "split-folders/twice.zip", {"seg_train/seg_train": "all", "seg_test/seg_test": "all", **SEGMENTS}),
    ("split-folders/years.zip", "folder"): _rename_folders(
        "split-folders/years.zip", {"train2017": "train", "val2017": "val"}),
    **{(f"zip-of-old-windows/{name}.zip", "folder"): unpack(f"zip-of-old-windows/{name}.zip", encoding=encoding)
       for name, encoding in ZIPS.items()},
    **added_rows("OBEYED"),
}  # fmt: skip

NO_ADVICE = {"nas-thumbnails/bins.zip", "dry-run-of-nothing", "ignored-list/pictures.zip"}
"""Those that say what is missing alone, and one whose advice is a row of its own."""

ROWS_REFUSED = sorted({(case, command.split()[0]) for case, command, code, _ in ROWS if code == REFUSED})


def obeyed(root: Path, command: str) -> str:
    out = [] if "--dry-run" in command else ["-o", "d.h5"]
    done = within(root, "make-data", *command.split(), "--workers", "1", *out)
    return "" if done.returncode == 0 else done.stderr


@pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")
@pytest.mark.slow_cases("img2dataset-folder hub", "webdataset-points hub")
@pytest.mark.parametrize("row", OBEYED, ids=" ".join)
def test_who_does_what_a_refusal_says_gets_on(
    row: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if row[1] == "hub":
        datasets = pytest.importorskip("datasets")
        for name in ("HF_DATASETS_CACHE", "HF_CACHE_HOME"):
            monkeypatch.setattr(datasets.config, name, tmp_path / "cache")
    case = row[0].partition("/")[0]
    shutil.copytree(CASES / case, tmp_path / case)
    assert obeyed(tmp_path, OBEYED[row](tmp_path)) == ""


def test_every_advice_of_the_cases_is_tried() -> None:
    assert {row for row in ROWS_REFUSED if row[0] not in NO_ADVICE} == OBEYED.keys()


_BEHIND, _ABOVE = re.compile(r"[^\n]+\n\Z"), re.compile(r"\A[^\n]*\n")
TABLES: dict[str, tuple[Callable[[str], str], str]] = {
    "a pipe is missing": (lambda data: data.replace("| 4  red", "| 4| red"), ""),
    "a comma too many": (lambda data: _BEHIND.sub("", data), ""),
    "no line of names": (lambda data: f"file_name,colour\n{data}", ""),
    "another name": (str, "--image-column Filename"),
    "a column without a name": (lambda data: data.replace("colour,", "colour,place"), ""),
    "carets": (lambda data: data.replace("^", ","), ""),
    "spaces": (lambda data: data.replace(" ", ","), ""),
    "single quotes": (lambda data: data.replace("'", ""), ""),
    "comments": (lambda data: _ABOVE.sub("", data), ""),
    "comments behind it": (lambda data: _BEHIND.sub("", data), ""),
    "a title": (lambda data: _ABOVE.sub("", data), ""),
    "a blank first line": (lambda data: _ABOVE.sub("", data), ""),
    "names again": (lambda data: _BEHIND.sub("", data), ""),
    "totals": (lambda data: _BEHIND.sub("", data), ""),
    "names without endings": (lambda data: re.sub(r"^(\d+)", r"\1.png", data, flags=re.MULTILINE), ""),
    "names in capitals": (lambda data: data.replace(".PNG", ".png"), ""),
    "another folder": (lambda data: data.replace("x/", ""), ""),
    "no file name": (lambda data: _BEHIND.sub("", data), ""),
    "parts under another name": (lambda data: data.replace("TestSet", "test"), "--split usage"),
    "other words for parts": (str, "--ignore split"),
}
"""What the refusals of tables say, done: a change of the table, and an option."""


@pytest.mark.parametrize("case", TABLES)
def test_who_mends_a_table_as_it_says_gets_on(case: str, tmp_path: Path) -> None:
    change, option = TABLES[case]
    (tmp_path / "p").mkdir()
    for name, data in PICTURES.items():
        (tmp_path / "p" / name).write_bytes(data)
    (tmp_path / "p/metadata.csv").write_text(change(TABLES_REFUSED[case][0]), encoding="utf-8")
    assert obeyed(tmp_path, f"{FOLDER} {option}".format("p")) == ""


_OPTION = re.compile(r"(--drop-unreadable|--folders-are-classes|--(?:ignore|bins) (?:'[^']+'|\w+(?:,\w+)*))")


@pytest.mark.slow
def test_an_option_that_a_refusal_names_helps(tmp_path: Path) -> None:
    """Of each wrong folder: with the option the same is not said again."""
    tried = 0
    for number, (breaks, options, code, says) in enumerate(WRONG.values()):
        root = tmp_path / str(number)
        root.mkdir()
        breaks(write_folder(root / "p"))
        command = ["make-data", "folder", "p", "--size", "8", *options, "--workers", "1", "--dry-run"]
        refused = within(root, *command)
        assert refused.returncode == code or "--size" in options, says
        for option in _OPTION.findall(refused.stderr):
            done = within(root, *command, *shlex.split(option))
            assert done.stderr.splitlines()[-1:] != refused.stderr.splitlines()[-1:], option
            assert done.returncode == 0 or "unknown" not in done.stderr, (option, refused.stderr, done.stderr)
            tried += 1
    assert tried > 15
