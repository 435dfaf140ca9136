"""Tables as people and their programs write them: what is read, and what is refused."""

import codecs
import json
import subprocess
from pathlib import Path

import pytest

from mmgen.artifacts import Dataset
from mmgen.core.errors import DataError, MmgenError
from mmgen.modalities.attributes import AttributesDescription
from tests.own_data._tables import COLOURS, NAMES, PICTURES, N, contents, numbered, table, values
from tests.program import MMGEN, environment

READ: dict[str, tuple[str | bytes, str]] = {
    "as it should be": (table(), "attribute colour: blue 12, red 12"),
    "semicolons": (table(";"), ""),
    "tabs": (table("\t"), ""),
    "pipes": (table("|"), ""),
    "spaces behind commas": (table(", "), ""),
    "quotes": (table(quote='"'), ""),
    "Excel's first line": (table(";", "sep=;\r\n", end="\r\n"), ""),
    "blank lines": (table(tail="\n \n\n"), ""),
    "rows of commas": (table(tail=",\n,\n"), "left out: metadata.csv: 2 rows in which every cell is empty"),
    "old Macs": (table(end="\r"), ""),
    "a byte order mark": (codecs.BOM_UTF8 + table().encode(), ""),
    "UTF-16 of Excel": (table("\t", end="\r\n").encode("utf-16"), ""),
    "pandas' index": (numbered(",file_name,colour"), "metadata.csv: column 1, which has no name and numbers the rows"),
    "empty columns": (numbered(",file_name,colour,", ""), "metadata.csv: column 4, which has no name and no cells"),
    "names of Windows": (table().replace("\n", "\n.\\").removesuffix(".\\"), ""),
    "the same in two columns": (
        "\n".join(["file_name,colour,kind", *(f"{n},{c},{c}" for n, c in zip(NAMES, COLOURS, strict=True))]),
        "left out: column 'kind': it says the same as 'colour' of every picture"),
}  # fmt: skip


def test_a_comma_is_the_decimal_sign_between_semicolons(tmp_path: Path) -> None:
    rows = [f"{name};{number // 12},5;1,2 and 3" for number, name in enumerate(NAMES)]
    data = "\n".join(["file_name;height;text", *rows])
    made = contents(tmp_path, {"metadata.csv": data})
    assert made.attributes["height"] == ["0.5", "1.5"] and "attribute height: 0.5 12, 1.5 12" in made.notes
    assert 'such as "1 2 and 3"' in str(made.notes), "a text stays"


def test_names_are_utf_8_whatever_the_locale_takes_them_for(tmp_path: Path) -> None:
    for number in range(24):
        folder = tmp_path / "p" / ("grün" if number % 2 else "rot")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"ü{number}.png").write_bytes(PICTURES[NAMES[number]])
    rows = [f"{'grün' if number % 2 else 'rot'}/ü{number}.png,{number % 3}" for number in range(24)]
    (tmp_path / "p" / "metadata.csv").write_text("\n".join(["file_name,shade", *rows]), encoding="utf-8")
    variables = {**environment(), "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    words = [*MMGEN, "make-data", "folder", "p", "--size", "8", "--workers", "1", "-o", "d.h5", "--folders-are-classes"]
    done = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with Dataset.open(tmp_path / "d.h5") as made:
        described = made.modalities["attributes"]
        assert isinstance(described, AttributesDescription)
        assert dict(zip(described.names, described.values, strict=True))["class"] == ("grün", "rot")


@pytest.mark.parametrize("case", READ)
def test_tables_that_are_read(case: str, tmp_path: Path) -> None:
    """The same colours, whatever else stands there; and what was left out is said."""
    data, says = READ[case]
    made = contents(tmp_path, {"metadata.csv": data})
    assert values(made) == COLOURS
    assert any(says in line for line in made.notes), made.notes


NO_COLUMN = "has no column file_name in its first line, only"
REFUSED: dict[str, tuple[str, str]] = {
    "a pipe is missing": (
        "file_name| number| colour\n" + "".join(f"{name}| 0| red\n" for name in NAMES[:-1]) + f"{NAMES[-1]}| 4  red\n",
        "has 2 cells in line 25 ('23.png|4  red'), expected 3 as in its first line, separated by pipes (|); fix this"),
    "a comma too many": (table(tail="00.png,red,dark\n"), "has 3 cells in line 26 ('00.png,red,dark'), expected 2"),
    "a comma more behind each": (table(tail="00.png,red,\n"), "has 3 cells in line 26"),
    "an open quote": (table(tail='00.png,"red\n'), "in or behind line 26 a quote that is not closed"),
    "no line of names": (table().partition("\n")[2], f"{NO_COLUMN} '00.png', 'red'"),
    "another name": (table().replace("file_name", "Filename"), "which column names the pictures with --image-column"),
    "a column without a name": (numbered(",file_name,colour,", "x"), "has no name for column 4 ('x')"),
    "a web page": ("<!DOCTYPE html>\n<html>\n", "it is a web page instead of the file"),
    "JSON": ('[{"file_name": "00.png"},\n1,2\n', f"{NO_COLUMN} '[{{"),
    "a pointer of Git LFS": ("version https://git-lfs.github.com/spec/v1\n", "it is a pointer of Git LFS"),
    "carets": (table("^"), f"{NO_COLUMN} 'file_name^colour'"),
    "colons": (table(":"), f"{NO_COLUMN} 'file_name:colour'"),
    "spaces": (table(" "), f"{NO_COLUMN} 'file_name colour'"),
    "single quotes": (table(quote="'"), f"{NO_COLUMN} ''file_name''"),
    "quotes about lines": ("\n".join(f'"{line}"' for line in table().splitlines()), f"{NO_COLUMN} 'file_name,colour'"),
    "comments": (table(head="# by hand\n"), "has 2 cells in line 2 ('file_name,colour'), expected 1"),
    "comments behind it": (table(tail="# the end\n"), "has 1 cell in line 26 ('# the end'), expected 2"),
    "a title": (table(head="Things,,\n"), "has 2 cells in line 2 ('file_name,colour'), expected 3"),
    "a blank first line": (table(head="\n"), "has an empty first line; expected columns separated by commas"),
    "another sign by Excel": (table("^", "sep=^\n"), "says that '^' separates its columns; expected"),
    "Markdown": ("|file_name|colour|\n|---|---|\n", "1 picture that the table names is not in"),
    "boxes of databases": (table("|", "+---+---+\n"), f"{NO_COLUMN} '+---+---+'"),
    "names again": (table(tail="file_name,colour\n"), "1 picture that the table names is not in"),
    "totals": (table(tail="Total:,24\n"), "1 picture that the table names is not in"),
    "names without endings": (table().replace(".png", ""), "write each as its file is called, with its folder and"),
    "names in capitals": (table().replace(".png", ".PNG"), "24 pictures that the table names are not in"),
    "another folder": (table().replace("\n", "\nx/").removesuffix("x/"), "24 pictures that the table names are not in"),
    "names of columns are empty": (table().replace("file_name,colour", ","), "has no name for column 1 ('00.png')"),
    "no file name": (table(tail=",red\n"), "has no 'file_name' in line 26"),
    "parts under another name": (
        "\n".join(["file_name,usage", *(f"{name},{('Training', 'TestSet')[n % 2]}" for n, name in enumerate(NAMES))]),
        "the column 'usage' holds TestSet and Training, which may be parts of a split; use it as the split with "
        "--split"),
    "other words for parts": (
        "\n".join(["file_name,split", *(f"{name},{('train', 'holdout')[n % 2]}" for n, name in enumerate(NAMES))]),
        "the column 'split' has 'holdout' for '01.png', expected train, val or test; fix it, or leave the column out"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_tables_that_are_refused(case: str, tmp_path: Path) -> None:
    data, says = REFUSED[case]
    with pytest.raises(MmgenError) as refused:
        contents(tmp_path, {"metadata.csv": data})
    assert says in str(refused.value)


def test_words_for_unknown(tmp_path: Path) -> None:
    words = ["", "?", "*", "any", "unknown", "NA", "N/A", "nan", "None", "null"]
    rows = [f"{name},{words[n] if n < len(words) else COLOURS[n]}" for n, name in enumerate(NAMES)]
    text = "\n".join(["file_name,colour", *rows])
    made = contents(tmp_path, {"metadata.csv": text})
    assert made.attributes == {"colour": ["blue", "red"]}
    assert values(made) == [""] * len(words) + COLOURS[len(words) :]
    assert any("taken as unknown: " in line and "'NA' 1" in line and "--unknown" in line for line in made.notes)
    made = contents(tmp_path, {"metadata.csv": text}, unknown=("NA", "red"), attributes=("colour",))
    assert {"None", "null"} < {*made.attributes["colour"]} and "red" not in made.attributes["colour"]


def test_words_for_unknown_are_nobody_and_no_caption(tmp_path: Path) -> None:
    rows = [
        f"{name},{'unknown' if n % 2 else f'p{n}'},{'nan' if n == 3 else 'a thing'}" for n, name in enumerate(NAMES)
    ]
    made = contents(tmp_path, {"metadata.csv": "\n".join(["file_name,who,text", *rows])}, group="who")
    assert len(made.parts["train"]) > 12, "twelve pictures of nobody in particular are no group"
    assert made.captions is not None and made.captions.vocabulary == ["a", "thing"]


def test_tables_of_other_names_and_endings(tmp_path: Path) -> None:
    """One in the folder is told of, and read if it is named; in a zip too."""
    for zip_it, metadata in ((False, tmp_path / "p" / "labels.txt"), (True, Path("labels.txt"))):
        files = {"labels.txt": table(";")}
        said = contents(tmp_path, files, zip_it).notes
        assert any("1 .txt; --metadata takes a table of another name" in line for line in said)
        made = contents(tmp_path, files, zip_it, metadata=metadata)
        assert values(made) == COLOURS and not any("no pictures" in line for line in made.notes)
    (tmp_path / "p" / "labels.txt").unlink()
    assert values(contents(tmp_path, {"Metadata.CSV": table()})) == COLOURS
    with pytest.raises(MmgenError, match="there are two tables"):
        contents(tmp_path, {"metadata.csv": table()})
    with pytest.raises(MmgenError, match=r"--metadata got t.xlsx, .*; save it as CSV \(UTF-8\)"):
        contents(tmp_path, {}, metadata=Path("t.xlsx"))
    with pytest.raises(MmgenError, match=r"t.json is not in COCO's form .* save another table as JSON lines"):
        contents(tmp_path, {"t.json": '[{"file_name": "00.png"}]'}, metadata=tmp_path / "p" / "t.json")


STRANGE = {
    "a list": [1, 2, 3, 4], "an object": {"x": 1}, "a control character": "a\x07", "a large number": 10**30,
    "an infinite one": float("inf"), "a key twice": "TWICE", "a long text": "x" * 200_000, "deep": [[[[]]]] * 3,
}  # fmt: skip


@pytest.mark.parametrize("kind", STRANGE)
def test_an_ignored_column_is_not_looked_at(kind: str, tmp_path: Path) -> None:
    rows = [
        {"file_name": name, "colour": colour, "x": STRANGE[kind]} for name, colour in zip(NAMES, COLOURS, strict=True)
    ]
    text = "\n".join(map(json.dumps, rows)).replace('"TWICE"', '{"a": 1, "a": 2}')
    with pytest.raises(DataError, match=r"of the column 'x'.*--ignore x"):
        contents(tmp_path, {"metadata.jsonl": text})
    made = contents(tmp_path, {"metadata.jsonl": text}, ignore=("x",))
    assert values(made) == COLOURS and "left out: column 'x', as --ignore says" in made.notes


def test_nor_in_other_tables(tmp_path: Path) -> None:
    """The same in CSV and Parquet, and in the hash: what is ignored is no part of the data."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"file_name": NAMES, "colour": COLOURS, "x": [b"\0\1"] * N, "y": [[{"a": 1}]] * N}
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    made = contents(tmp_path, {"metadata.parquet": (tmp_path / "t.parquet").read_bytes()}, ignore=("x", "y"))
    assert values(made) == COLOURS
    (tmp_path / "p" / "metadata.parquet").unlink()
    text = table().replace("\n", ",\a\n").replace("colour,\a", "colour,x")
    made = contents(tmp_path, {"metadata.csv": text}, ignore=("x",))
    assert values(made) == COLOURS
