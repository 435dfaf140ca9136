"""What translation adds to tables of the core's tests."""

import csv
import json
import re
from pathlib import Path

from mmgen.testing.data import NUMBER
from tests.own_data._obeying import CASES as SHARED, READ, REFUSED, change_lines, then, write_files


def _write_sentences(folder: Path, _: object) -> Path:
    path = folder / "pairs.tsv"
    path.write_text("".join(f"a dog {row}\tein hund {row}\n" for row in range(NUMBER)) * 2)
    return path


SMALL_SOURCES = {"train": _write_sentences}
CHOSEN_BY_PAPERS = {"parallel-text": ("languages", "max_words")}
OF_POINTS = {"sentences", "translation"}
RECIPES_OF_SOURCES = {"parallel-text"}

_WORDS = {"kind": "text", "vocabulary": ("<unk>", "a", "dog"), "length": 3}
DATA_OF_PRESETS = {"wu/translation": {"modalities": {"en": _WORDS, "de": _WORDS, "vi": _WORDS}, "main": "en"}}

PARALLEL = "parallel-text --languages en,de --min-count 2 --train {}"
TAGS = [f"parallel-markup-lines/tags/train.{language}" for language in ("en", "de")]
BLANK = [f"parallel-blank-lines/three/train.{language}" for language in ("en", "de")]


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


CASES = [
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
OBEYED = {
    ("parallel-blank-lines/three/train", "parallel-text"): then(
        change_lines(lambda line: bool(line.strip()), *BLANK), PARALLEL.format("parallel-blank-lines/three/train")),
    ("parallel-markup-lines/tags/train", "parallel-text"): then(
        change_lines(lambda line: "<" not in line, *TAGS), PARALLEL.format("parallel-markup-lines/tags/train")),
    ("parallel-markup-lines/header.tsv", "parallel-text"): then(
        lambda root: (root / "parallel-markup-lines/header.tsv").write_text(
            (SHARED / "parallel-markup-lines/header.tsv").read_text(encoding="utf-8").partition("\n")[2],
            encoding="utf-8") and None,
        PARALLEL.format("parallel-markup-lines/header.tsv")),
    ("parallel-other-forms/dev", "parallel-text"): _convert_sgm,
    ("parallel-other-forms/pairs.csv", "parallel-text"): _convert_csv,
    ("parallel-other-forms/train.jsonl", "parallel-text"): _convert_json,
    ("parallel-other-forms/train.tmx", "parallel-text"): _convert_tmx,
}  # fmt: skip
DOORS = {
    "sentences": (write_files("t.en", "t.de"), ["make-data", "parallel-text", "--languages", "en,de", "--train", "t"]),
}  # fmt: skip
PATHS_OF_RECIPES = {"train", "val", "test"}
