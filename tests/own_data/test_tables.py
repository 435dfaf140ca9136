"""Tables as people and their programs write them: what is read, and what is refused."""

import codecs
import json
from pathlib import Path

import pytest

from mmgen.core.errors import DataError, MmgenError
from tests.own_data._tables import COLOURS, NAMES, N, contents, numbered, table, values

READ: dict[str, tuple[str | bytes, str]] = {
    "as it should be": (table(), "attribute colour: blue 12, red 12"),
    "semicolons": (table(";"), "metadata.csv: its columns are separated by semicolons"),
    "tabs": (table("\t"), "separated by tabs"),
    "pipes": (table("|"), "separated by pipes (|)"),
    "carets": (table("^"), "separated by carets (^)"),
    "colons": (table(":"), "separated by colons"),
    "spaces": (table("   "), "separated by spaces"),
    "spaces behind commas": (table(", "), "attribute colour"),
    "quotes": (table(quote='"'), "attribute colour"),
    "single quotes": (table(quote="'"), "attribute colour"),
    "Excel's first line": (table(";", "sep=;\r\n", end="\r\n"), "metadata.csv: its first line, 'sep=;', is Excel's"),
    "comments": (table(head="# by hand\n#\n", tail="# the end\n"), "1 row that are comments (#)"),
    "a head behind a #": (table(first="# "), "attribute colour"),
    "empty lines": (table(head="\n\n", tail="\n \n\n"), "attribute colour"),
    "rows of commas": (table(tail=",\n,\n"), "left out: metadata.csv: 2 rows in which every cell is empty"),
    "rows with more commas": (table(tail=",,,,\n"), "1 row in which every cell is empty"),
    "the head again": (table(tail="file_name,colour\n"), "1 row that name the columns again"),
    "totals": (table(tail="Total:,24\n"), "1 row of totals"),
    "several totals": (table(tail=",\nSum,24\nAverage:,1\n"), "2 rows of totals"),
    "the head again in capitals": (table(tail="FILE_NAME,Colour\n"), "1 row that name the columns again"),
    "Markdown": (
        "\n".join(["|file_name|colour|", "|---|:--|", *(f"|{n}|{c}|" for n, c in zip(NAMES, COLOURS, strict=True))]),
        "1 row that are drawn lines"),
    "boxes of databases": (table("|", "+---+---+\n", "+---+---+\n"), "1 row that are drawn lines"),
    "cells that Excel shall not count": (
        table().replace("red", '="red"').replace("blue", '="blue"'), "attribute colour"),
    "a comma behind the names alone": (table(first="").replace("colour\n", "colour,\n"), "every cell is empty"),
    "an index of two tables": (
        "\n".join([",file_name,colour", *(f"{n % 12},{NAMES[n]},{COLOURS[n]}" for n in range(N))]),
        "column 1, which has no name and numbers the rows"),
    "an index of numbers with points": (
        "\n".join([",file_name,colour", *(f"{n}.0,{NAMES[n]},{COLOURS[n]}" for n in range(N))]),
        "column 1, which has no name and numbers the rows"),
    "letters that were lost": (table(first="").replace("\n", ",x\ufffdy\n").replace("x\ufffdy", "note", 1),
                               "it holds the sign \ufffd"),
    "old Macs": (table(end="\r"), "attribute colour"),
    "a byte order mark": (codecs.BOM_UTF8 + table().encode(), "attribute colour"),
    "UTF-16 of Excel": (table("\t", end="\r\n").encode("utf-16"), "separated by tabs"),
    "pandas' index": (numbered(",file_name,colour"), "left out: metadata.csv: column 1, which has no name and numbers"),
    "pandas' index, twice": (numbered("Unnamed: 0,file_name,colour"), "column 1 ('Unnamed: 0'), which has no name"),
    "an index by name": (numbered("index,file_name,colour"), "left out: column 'index': it numbers the pictures"),
    "empty columns": (numbered(",file_name,colour,,", "", ""), "2 columns without a name in which every cell is empty"),
    "a title": (table(head="Things,,\n,,\n"), "metadata.csv: 2 lines above the names of columns are left out"),
    "put together": ("\ufeff" + table(tail="\ufeff" + table()), "1 row that name the columns again"),
    "other folders": (
        table().replace("\n", "\nthings/").removesuffix("things/"),
        "24 names in tables name other folders than their files"),
    "R's numbers": (
        "\n".join(['"file_name" "colour"', *(f'"{n + 1}" "{NAMES[n]}" "{COLOURS[n]}"' for n in range(N))]),
        "column 1, which has no name and numbers the rows"),
    "names without endings": (table().replace(".png", ""), "24 names in tables lack the ending of their files"),
    "names in capitals": (table().replace(".png", ".PNG"), "24 names in tables are spelled otherwise than their files"),
    "names of Windows": (table().replace("\n", "\n.\\").removesuffix(".\\"), "attribute colour"),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_tables_as_programs_write_them(case: str, tmp_path: Path) -> None:
    """The same colours, whatever else stands there; and it is said what that was."""
    data, says = READ[case]
    made = contents(tmp_path, {"metadata.csv": data})
    assert values(made) == COLOURS
    assert any(says in line for line in made.notes), made.notes


REFUSED: dict[str, tuple[str, str]] = {
    "a pipe is missing": (
        "file_name| number| colour\n" + "".join(f"{name}| 0| red\n" for name in NAMES[:-1]) + f"{NAMES[-1]}| 4  red\n",
        "has 2 cells in line 25 ('23.png|4  red'), expected 3 as in its first line, separated by pipes"),
    "a comma too many": (table(tail="00.png,red,dark\n"), "has 3 cells in line 26 ('00.png,red,dark'), expected 2"),
    "an open quote": (table(tail='00.png,"red\n'), "is not closed, or is followed by a text"),
    "no line of names": (table().partition("\n")[2], "has no line with the names of columns, but begins with '00.png'"),
    "another name": (table().replace("file_name", "Filename"), "name the pictures with --image-column Filename"),
    "a column without a name": (numbered(",file_name,colour,", "x"), "has no name for column 4 ('x')"),
    "a web page": ("<!DOCTYPE html>\n<html>", "is a web page or XML"),
    "JSON": ('[{"file_name": "00.png"}]', "begins as JSON does; call it .json"),
    "a pointer": ("version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "another sign": (table("~"), "has one column, 'file_name~colour', whose cells may be separated by '~'"),
    "one column": ("length(cm)\n1\n2\n", "has no column file_name, only 'length(cm)'"),
    "quotes about lines": ("\n".join(f'"{line}"' for line in table().splitlines()), "or be in quotes all together"),
    "names with a space": (table().replace("file_name", "file name"), "--image-column 'file name'"),
    "all names are others": (table().replace(".png", ".jpeg"), "as files there are called, such as '00.png'"),
    "names of columns are empty": (table().replace("file_name,colour", ","), "begins with empty cells"),
    "no file name": (table(tail=",red\n"), "has no 'file_name' in line 26"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_tables_that_say_too_little(case: str, tmp_path: Path) -> None:
    data, says = REFUSED[case]
    with pytest.raises(MmgenError) as refused:
        contents(tmp_path, {"metadata.csv": data})
    assert says in str(refused.value)


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


@pytest.mark.parametrize("text", ['[{"file_name": "00.png"}]', '[\n{"file_name": "00.png"}\n]'])
def test_a_list_is_no_json_lines(text: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="begins as a list"):
        contents(tmp_path, {"metadata.jsonl": text})
