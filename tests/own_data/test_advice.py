"""What a refusal tells people to do is done here, and the command goes on."""

import csv
import json
import re
import shlex
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.own_data._pictures import write_folder
from tests.own_data._tables import PICTURES
from tests.own_data.test_cases import CASES, FOLDER, PARALLEL, REFUSED, ROWS
from tests.own_data.test_tables import REFUSED as TABLES_REFUSED
from tests.own_data.test_wrong_folders import WRONG
from tests.program import within

Obey = Callable[[Path], str]
"""Does in a copy of the cases what the message says; returns the command to try next, {} being what it reads."""

HUB = "hub {} --dry-run --size 32"
PATCHES = "patches --pictures {}"


def _unpack(where: str, command: str = FOLDER, encoding: str | None = None) -> Obey:
    """Unpack all archives of a folder, or the one file."""

    def obey(root: Path) -> str:
        path = root / where
        to = path if path.is_dir() else path.parent / "unpacked"
        for archive in [*path.iterdir()] if path.is_dir() else [path]:
            if tarfile.is_tarfile(archive):
                with tarfile.open(archive) as opened:
                    opened.extractall(to, filter="data")
            elif zipfile.is_zipfile(archive):
                with zipfile.ZipFile(archive, metadata_encoding=encoding) as opened:
                    opened.extractall(to)
        return command.format(to.relative_to(root))

    return obey


def _rename_folders(where: str, names: dict[str, str]) -> Obey:
    def obey(root: Path) -> str:
        _unpack(where)(root)
        to = (root / where).parent / "unpacked"
        for old, new in names.items():
            (to / old).rename((to / old).with_name(new))
        return FOLDER.format(to.relative_to(root))

    return obey


def _change_lines(keep: Callable[[str], bool], *files: str) -> Callable[[Path], None]:
    """Take out of all files the lines that one of them should not have."""

    def change(root: Path) -> None:
        rows = list(zip(*((root / name).read_text(encoding="utf-8").split("\n") for name in files), strict=True))
        kept = [row for row in rows[:-1] if all(map(keep, row))]
        for number, name in enumerate(files):
            (root / name).write_text("".join(f"{row[number]}\n" for row in kept), encoding="utf-8")

    return change


def _then(change: Callable[[Path], None], command: str) -> Obey:
    def obey(root: Path) -> str:
        change(root)
        return command

    return obey


def _write_pairs(root: Path, pairs: list[tuple[str, str]]) -> str:
    (root / "pairs.tsv").write_text("".join(f"{en}\t{de}\n" for en, de in pairs), encoding="utf-8")
    return PARALLEL.format("pairs.tsv")


def _convert_csv(root: Path) -> str:
    with (root / "parallel-other-forms/pairs.csv").open(encoding="utf-8", newline="") as file:
        return _write_pairs(root, [(row["en"], row["de"]) for row in csv.DictReader(file)])


def _convert_json(root: Path) -> str:
    lines = (root / "parallel-other-forms/train.jsonl").read_text(encoding="utf-8").splitlines()
    return _write_pairs(root, [(row["en"], row["de"]) for row in map(json.loads, lines)])


def _convert_tmx(root: Path) -> str:
    text = (root / "parallel-other-forms/train.tmx").read_text(encoding="utf-8")
    return _write_pairs(root, re.findall(r'"en"><seg>(.*?)</seg>.*?"de"><seg>(.*?)</seg>', text))


def _convert_sgm(root: Path) -> str:
    for language in ("en", "de"):
        text = (root / f"parallel-other-forms/dev.{language}.sgm").read_text(encoding="utf-8")
        sentences = re.findall(r"<seg[^>]*>(.*?)</seg>", text)
        (root / f"dev.{language}").write_text("".join(f"{one.strip()}\n" for one in sentences), encoding="utf-8")
    return PARALLEL.format("dev")


def _rename_members(root: Path) -> str:
    old = root / "webdataset-points/00000.tar"
    with tarfile.open(old) as source, tarfile.open(root / "renamed.tar", "w") as target:
        for member in source:
            stem, _, ending = member.name.rpartition(".")
            member.name = f"{stem.replace('.', '-')}.{ending}"
            target.addfile(member, source.extractfile(member))
    return HUB.format("renamed.tar")


def _remove_rows_of(root: Path) -> None:
    table = root / "flickr8k-token/Flickr8k_text/Flickr8k.token.txt"
    lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
    table.write_text("".join(line for line in lines if not line.startswith("9999_ab.jpg.1")), encoding="utf-8")


TAGS = [f"parallel-markup-lines/tags/train.{language}" for language in ("en", "de")]
BLANK = [f"parallel-blank-lines/three/train.{language}" for language in ("en", "de")]
ZIPS = {"z1-cp932": "cp932", "z2-gbk": "gbk", "z3-cp1252": "cp850", "z4-cp932-table": "cp932"}

SEGMENTS = {"seg_train": "train", "seg_test": "test"}

OBEYED: dict[tuple[str, str], Obey] = {
    ("coco-packed", "coco-captions"): _unpack("coco-packed", "coco-captions {} --dry-run"),
    ("coco-packed", "folder"): _unpack("coco-packed", f"{FOLDER} --folders-are-classes"),
    ("flickr8k-token", "folder"): _then(
        _remove_rows_of, f"{FOLDER} --metadata {{}}/Flickr8k_text/Flickr8k.token.txt".replace("{}", "flickr8k-token")
    ),
    ("packed-by-tar", "folder"): _unpack("packed-by-tar", f"{FOLDER} --folders-are-classes"),
    ("packed-by-tar/pictures.tar", "folder"): _unpack("packed-by-tar/pictures.tar"),
    ("packed-by-tar/BSR_bsds500.tgz", "patches"): _unpack("packed-by-tar/BSR_bsds500.tgz", PATCHES),
    ("split-folders/set-words.zip", "folder"): _rename_folders(
        "split-folders/set-words.zip", {"training_set": "train", "test_set": "test"}),
    ("split-folders/twice.zip", "folder"): _rename_folders(
        "split-folders/twice.zip", {"seg_train/seg_train": "all", "seg_test/seg_test": "all", **SEGMENTS}),
    ("split-folders/years.zip", "folder"): _rename_folders(
        "split-folders/years.zip", {"train2017": "train", "val2017": "val"}),
    **{(f"zip-of-old-windows/{name}.zip", "folder"): _unpack(f"zip-of-old-windows/{name}.zip", encoding=encoding)
       for name, encoding in ZIPS.items()},
    ("img2dataset-folder", "hub"): _then(
        lambda root: None, f"{HUB} --caption text --ignore key".format("img2dataset-folder/00000.tar")),
    ("webdataset-points", "hub"): _rename_members,
    ("parallel-blank-lines/three/train", "parallel-text"): _then(
        _change_lines(lambda line: bool(line.strip()), *BLANK), PARALLEL.format("parallel-blank-lines/three/train")),
    ("parallel-markup-lines/tags/train", "parallel-text"): _then(
        _change_lines(lambda line: "<" not in line, *TAGS), PARALLEL.format("parallel-markup-lines/tags/train")),
    ("parallel-markup-lines/header.tsv", "parallel-text"): _then(
        lambda root: (root / "parallel-markup-lines/header.tsv").write_text(
            (CASES / "parallel-markup-lines/header.tsv").read_text(encoding="utf-8").partition("\n")[2],
            encoding="utf-8") and None,
        PARALLEL.format("parallel-markup-lines/header.tsv")),
    ("parallel-other-forms/dev", "parallel-text"): _convert_sgm,
    ("parallel-other-forms/pairs.csv", "parallel-text"): _convert_csv,
    ("parallel-other-forms/train.jsonl", "parallel-text"): _convert_json,
    ("parallel-other-forms/train.tmx", "parallel-text"): _convert_tmx,
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
