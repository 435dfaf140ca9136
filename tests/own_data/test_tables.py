"""Tables as people and their programs write them: what is read of them, and what is said of the rest."""

import codecs
import json
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmgen.core.errors import DataError, MmgenError, UsageError
from mmgen.data_recipes import Survey
from mmgen.data_recipes._own import _tables
from mmgen.data_recipes._own._inspection import Inspection
from mmgen.data_recipes._own._tables import read_table
from mmgen.data_recipes.folder import Folder
from mmgen.settings.config import validate
from tests.own_data._pictures import zipped

N = 24
NAMES = [f"{n:02d}.png" for n in range(N)]
COLOURS = [("red", "blue")[n % 2] for n in range(N)]
CAPTIONS = [f"A {colour} thing , number {n % 3} ." for n, colour in enumerate(COLOURS)]


def contents(folder: Path, files: Mapping[str, bytes | str], zip_it: bool = False, **settings: Any) -> Survey:
    """What would be made of pictures that nobody looks at, beside these files."""
    folder = folder / "p"
    for name in NAMES if "red/00.png" not in files else ():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    where = zipped(folder, folder.with_suffix(".zip")) if zip_it else folder
    source = (recipe := validate(Folder, {"pictures": where, **settings})).open()
    try:
        return recipe._survey(
            source, np.arange(len(source)), Inspection.of_nothing(len(source), len(source.pictures)), 0
        )
    finally:
        source.close()


def values(made: Survey, name: str = "colour") -> list[str]:
    """An attribute's value of each picture."""
    return [(*made.attributes[name], *[""] * 255)[code] for code in made.labels.codes[name]]


def table(sign: str = ",", head: str = "", tail: str = "", quote: str = "", end: str = "\n", first: str = "") -> str:
    """A table of pictures and colours."""
    rows = [("file_name", "colour"), *zip(NAMES, COLOURS, strict=True)]
    lines = [sign.join(f"{quote}{cell}{quote}" for cell in row) for row in rows]
    return head + end.join([first + lines[0], *lines[1:]]) + end + tail


def numbered(names: str, *cells: Any) -> str:
    return "\n".join([names, *(",".join(map(str, (n, NAMES[n], COLOURS[n], *cells))) for n in range(N))])


READ: dict[str, tuple[str | bytes, str]] = {
    "as it should be": (table(), "attribute colour: blue 12, red 12"),
    "semicolons": (table(";"), "metadata.csv: its columns are parted by semicolons"),
    "tabs": (table("\t"), "parted by tabs"),
    "pipes": (table("|"), "parted by pipes (|)"),
    "carets": (table("^"), "parted by carets (^)"),
    "colons": (table(":"), "parted by colons"),
    "spaces": (table("   "), "parted by spaces"),
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
    "UTF-16 of Excel": (table("\t", end="\r\n").encode("utf-16"), "parted by tabs"),
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
        "has 2 cells in line 25 ('23.png|4  red'), expected 3 as in its first line, parted by pipes"),
    "a comma too many": (table(tail="00.png,red,dark\n"), "has 3 cells in line 26 ('00.png,red,dark'), expected 2"),
    "an open quote": (table(tail='00.png,"red\n'), "is not closed, or is followed by a text"),
    "no line of names": (table().partition("\n")[2], "has no line with the names of columns, but begins with '00.png'"),
    "another name": (table().replace("file_name", "Filename"), "name the pictures with --image-column Filename"),
    "a column without a name": (numbered(",file_name,colour,", "x"), "has no name for column 4 ('x')"),
    "a web page": ("<!DOCTYPE html>\n<html>", "is a web page or XML"),
    "JSON": ('[{"file_name": "00.png"}]', "begins as JSON does; call it .json"),
    "a pointer": ("version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "another sign": (table("~"), "has one column, 'file_name~colour', whose cells may be parted by '~'"),
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


def test_one_set_of_words_for_unknown(tmp_path: Path) -> None:
    words = ["", "?", "*", "any", "unknown", "NA", "N/A", "nan", "None", "null", "-", "missing", "#N/A", "<NA>"]
    rows = [f"{name},{words[n] if n < len(words) else COLOURS[n]}" for n, name in enumerate(NAMES)]
    text = "\n".join(["file_name,colour", *rows])
    made = contents(tmp_path, {"metadata.csv": text})
    assert made.attributes == {"colour": ["blue", "red"]}
    assert values(made) == [""] * len(words) + COLOURS[len(words) :]
    said = [line for line in made.notes if "taken as unknown" in line]
    assert any("'NA' 1, 'N/A' 1, 'nan' 1" in line and "--unknown" in line for line in said)
    assert any("'unknown' 1" in line and "rename it" in line for line in said)
    made = contents(tmp_path, {"metadata.csv": text}, unknown=("NA", "red"))
    assert {"None", "null", "-"} < {*made.attributes["colour"]} and "red" not in made.attributes["colour"]


def test_words_for_unknown_are_nobody_and_no_caption(tmp_path: Path) -> None:
    rows = [
        f"{name},{'unknown' if n % 2 else f'p{n}'},{'nan' if n == 3 else 'a thing'}" for n, name in enumerate(NAMES)
    ]
    made = contents(tmp_path, {"metadata.csv": "\n".join(["file_name,who,text", *rows])}, group="who")
    assert len(made.parts["train"]) > 12, "twelve pictures of nobody in particular are no group"
    assert made.captions is not None and made.captions.vocabulary == ["a", "thing"]


SPELLED = {
    "case": (["Red", "red"], "'Red' and 'red' differ in case only; fix the table if they are one"),
    "hyphens": (["dark red", "dark-red"], "'dark red' and 'dark-red' differ in case, spaces or hyphens only"),
    "width": (["red", "\uff52\uff45\uff44"], "differ in how their letters are written only"),
    "numbers": (["1", "1.0"], "'1' and '1.0' are one number"),
    "zeros": (["01", "1"], "'01' and '1' are one number"),
    "decimal commas": (["1,5", "1.5"], "'1,5' and '1.5' are one number"),
    "thousands": (["1,000", "1000"], "'1,000' and '1000' are one number"),
    "signs about them": (["red", "red."], "'red' and 'red.' differ in signs about them only"),
}


@pytest.mark.parametrize("case", SPELLED)
def test_values_that_are_spelled_twice_are_named(case: str, tmp_path: Path) -> None:
    words, says = SPELLED[case]
    text = "\n".join(["file_name,colour", *(f'{name},"{[*words, "x2"][n % 3]}"' for n, name in enumerate(NAMES))])
    assert any(says in line for line in contents(tmp_path, {"metadata.csv": text}).notes)


def test_yes_and_no_in_several_words_are_named(tmp_path: Path) -> None:
    text = "\n".join(
        ["file_name,hat", *(f"{name},{('yes', 'True', '1', 'no')[n % 4]}" for n, name in enumerate(NAMES))]
    )
    said = contents(tmp_path, {"metadata.csv": text}).notes
    assert "  hat: '1' and 'True' and 'yes' say the same; fix the table if they are one" in said


def test_values_that_are_not_one_are_not(tmp_path: Path) -> None:
    text = "\n".join(
        [
            "file_name,colour",
            *(f"{name},{('1', '-1', '1_0', '10', 'A', 'A-', '+', '+-')[n % 8]}" for n, name in enumerate(NAMES)),
        ]
    )
    assert not any("fix the table" in line for line in contents(tmp_path, {"metadata.csv": text}).notes)


OTHERS: dict[str, tuple[str, str | bytes, str]] = {
    "json": ("metadata.json", json.dumps([{"file_name": n, "colour": c} for n, c in zip(NAMES, COLOURS, strict=True)]),
             "metadata.json may be the table: --metadata {}metadata.json"),
    "json by column": ("data.json", json.dumps({"file_name": {str(n): name for n, name in enumerate(NAMES)}}),
                       "data.json may be the table: --metadata {}data.json"),
    "captions": ("captions.txt", table().replace("file_name", "image"),
                 "captions.txt may be the table: --metadata {}captions.txt --image-column image"),
    "copied": ("metadata (1).csv", table(), "metadata (1).csv may be the table: --metadata '{}metadata (1).csv'"),
    "tabs": ("labels.tsv", table("\t"), "labels.tsv may be the table: --metadata {}labels.tsv"),
    "below": ("about/labels.csv", table(), "about/labels.csv may be the table"),
    "without endings": ("labels.csv", table().replace(".png", ""), "labels.csv may be the table"),
    "no line of names": ("labels.csv", table().partition("\n")[2], "write a line with names of columns above it"),
    "another ending": ("labels.dat", table(), "'labels.dat' may be the table, which is not read so: save it as"),
    "of another program": ("about/imagelabels.mat", b"MATLAB", "save it as metadata.csv (CSV UTF-8)"),
    "names at the top": ("labels.json", '{"00.png": "red"}', "has names of files at its top"),
    "a workbook": ("labels.xlsx", b"PK\3\4", "save it as metadata.csv (CSV UTF-8)"),
    "COCO": ("x.json", '{"images": [{"file_name": "00.png"}], "annotations": []}', "is in COCO's form"),
    "packed": ("labels.csv.gz", b"\x1f\x8b", "'labels.csv.gz' may be the table, which is not read so: unpack it"),
    "no table": ("README.txt", "Pictures, of some things.\nMade by hand.\n", ""),
    "sizes": ("sizes.csv", "a,b\n1,2\n3,4\n", ""),
}  # fmt: skip


@pytest.mark.parametrize("zip_it", [False, True])
@pytest.mark.parametrize("case", OTHERS)
def test_a_table_of_another_name_is_named(case: str, zip_it: bool, tmp_path: Path) -> None:
    name, data, says = OTHERS[case]
    made = contents(tmp_path, {name: data}, zip_it)
    says = says.format("" if zip_it else f"{tmp_path}/p/")
    found = [line for line in made.notes if "may be the table" in line]
    assert any(says in line for line in found) if says else not found, made.notes


def test_and_what_is_to_be_typed_works(tmp_path: Path) -> None:
    for zip_it, metadata in ((False, tmp_path / "p" / "labels.txt"), (True, Path("labels.txt"))):
        made = contents(tmp_path, {"labels.txt": table(";")}, zip_it, metadata=metadata)
        assert values(made) == COLOURS


def test_capitals_are_no_other_name(tmp_path: Path) -> None:
    assert values(contents(tmp_path, {"Metadata.CSV": table()})) == COLOURS
    with pytest.raises(DataError, match="there are two tables"):
        contents(tmp_path, {"metadata.csv": table()})


def test_a_text_for_each_picture_is_named(tmp_path: Path) -> None:
    for where, ending in (("", ".txt"), ("texts/", ".txt"), ("", ".xml"), ("", ".png.json")):  # as some publishers do
        texts = {where + name.replace(".png", ending): "a thing" for name in NAMES}
        made = contents(tmp_path / f"{where}{ending}x", texts)
        assert sum("may say something of one picture each" in line for line in made.notes) == 1


def test_a_value_called_as_totals_are_is_a_value(tmp_path: Path) -> None:
    rows = [f"{'average' if n == N - 1 else 'slim'},{name}" for n, name in enumerate(NAMES)]
    made = contents(tmp_path, {"metadata.csv": "\n".join(["build,file_name", *rows])})
    assert values(made, "build")[-1] == "average"


def test_a_table_that_was_named_is_not_left_out(tmp_path: Path) -> None:
    made = contents(tmp_path, {"labels.txt": table()}, metadata=tmp_path / "p" / "labels.txt")
    assert not any("no pictures" in line for line in made.notes)


def test_a_column_of_parts_may_say_what_folders_say(tmp_path: Path) -> None:
    """It is used up by that, and no attribute."""
    rows = [f"{('train', 'test')[n % 2]}/{name},{('train', 'test')[n % 2]},{n % 3}" for n, name in enumerate(NAMES)]
    files = {"metadata.csv": "\n".join(["file_name,split,kind", *rows]), "red/00.png": b""}
    made = contents(tmp_path, {**files, **{row.partition(",")[0]: b"" for row in rows}})
    assert list(made.attributes) == ["kind"] and made.scheme[0] == "given"


def test_a_table_of_names_alone_is_read_and_not_named(tmp_path: Path) -> None:
    made = contents(tmp_path, {"metadata.csv": "\n".join(["file_name", *NAMES[:20]])})
    assert len(made.rows) == 20 and not any("may be the table" in line for line in made.notes)


@pytest.mark.parametrize("text", ['[{"file_name": "00.png"}]', '[\n{"file_name": "00.png"}\n]'])
def test_a_list_is_no_json_lines(text: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="begins as a list"):
        contents(tmp_path, {"metadata.jsonl": text})


@pytest.mark.parametrize("name", ["train.txt", "lists/val.lst", "train_test_split.txt", "folds.csv"])
def test_files_that_may_say_parts_are_named(name: str, tmp_path: Path) -> None:
    made = contents(tmp_path, {name: "\n".join(NAMES)})
    assert any("says which pictures are of which part" in line for line in made.notes)
    assert not any("above it" in line for line in made.notes) or name == "folds.csv"


@pytest.mark.parametrize("masks", [["masks/00.png"], ["00_mask.png", "01-mask.png"], ["annotations/trimaps/00.png"]])
def test_masks_among_pictures_are_named(masks: list[str], tmp_path: Path) -> None:
    made = contents(tmp_path, dict.fromkeys(masks, b""))
    assert any("are called as masks" in line for line in made.notes)
    assert not any("masks" in line for line in contents(tmp_path / "without", {}).notes)


def _captions(made: Survey) -> list[str]:
    assert made.captions is not None
    words = [*made.captions.vocabulary, ""]
    return [" ".join(words[code] for code in row).strip() for row in made.captions.codes]


def _several(n: int) -> list[str]:
    return [f"number {n}", f"the thing {n}", f"it is {n}"]


SEVERAL: dict[str, tuple[str, str, dict[str, Any]]] = {
    "rows": ("metadata.csv", "\n".join(["file_name,colour,text", *(
        f"{name},{COLOURS[n]},{text}" for n, name in enumerate(NAMES) for text in _several(n))]), {}),
    "Flickr30k": ("results.csv", "\n".join(["image_name| comment_number| comment", *(
        f"{name}| {k}| {text}" for n, name in enumerate(NAMES) for k, text in enumerate(_several(n)))]),
        {"image_column": ("image_name",), "caption": "comment"}),
    "Flickr8k": ("tokens.txt", "\n".join(
        f"{name}#{k}\t{text}" for n, name in enumerate(NAMES) for k, text in enumerate(_several(n))), {}),
    "columns": ("metadata.csv", "\n".join(["file_name,colour,caption_0,caption_1,caption_2", *(
        ",".join([name, COLOURS[n], *_several(n)]) for n, name in enumerate(NAMES))]), {}),
    "COCO": ("captions.json", json.dumps({
        "images": [{"id": 9 * n, "file_name": name} for n, name in enumerate(NAMES)],
        "annotations": [{"image_id": 9 * n, "id": k, "caption": text} for n in range(N)
                        for k, text in enumerate(_several(n))]}), {}),
    "columns, the first without a number": ("metadata.csv", "\n".join(["file_name,caption,caption2,caption3", *(
        ",".join([name, *_several(n)]) for n, name in enumerate(NAMES))]), {}),
    "lists": ("metadata.jsonl", "\n".join(
        json.dumps({"file_name": name, "captions": _several(n)}) for n, name in enumerate(NAMES)), {}),
}  # fmt: skip


@pytest.mark.parametrize("case", SEVERAL)
def test_of_several_captions_one_is_drawn(case: str, tmp_path: Path) -> None:
    """By the seed and the picture's name, whatever the form or the order of rows."""
    name, text, settings = SEVERAL[case]
    settings = settings | ({} if "metadata" in name else {"metadata": tmp_path / "p" / name})
    made = contents(tmp_path, {name: text}, **settings)
    said = _captions(made)
    assert all(one in _several(n) for n, one in enumerate(said)) and len({one.split()[0] for one in said}) == 3
    assert "  3 captions a picture, 72 in all: one of them is drawn for each, by the seed" in made.notes
    first = contents(tmp_path / "other", {"metadata.csv": SEVERAL["rows"][1]})
    assert said == _captions(first)
    if case in ("rows", "columns"):
        assert values(made) == COLOURS
    if "\n" in text and case == "rows":
        head, *rows = text.split("\n")
        assert said == _captions(contents(tmp_path / "turned", {name: "\n".join([head, *rows[::-1]])}))


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    head, *rows = SEVERAL["rows"][1].split("\n")
    hashes = set()
    for number, some in enumerate((rows, rows[::-1])):
        contents(tmp_path / str(number), {"metadata.csv": "\n".join([head, *some])})
        source = validate(Folder, {"pictures": tmp_path / str(number) / "p"}).open()
        hashes.add(source.sha256(np.arange(N), np.zeros((N, 1, 32), np.uint8)))
        source.close()
    assert len(hashes) == 1


def test_what_rows_of_one_picture_say_differently_is_refused(tmp_path: Path) -> None:
    tail = "00.png,green\n"
    with pytest.raises(DataError, match="'colour' says several things of one picture, such as 'green' and 'red' of"):
        contents(tmp_path, {"metadata.csv": table(tail=tail)})
    made = contents(tmp_path, {"metadata.csv": table(tail="00.png,red\n")})
    assert values(made) == COLOURS and any("25 rows are of 24 pictures" in line for line in made.notes)
    rows = "\n".join(json.dumps({"file_name": name, "tags": ["a", "b"]}) for name in NAMES)
    (tmp_path / "p" / "metadata.csv").unlink()
    with pytest.raises(DataError, match="leave it out with --ignore tags"):
        contents(tmp_path, {"metadata.jsonl": rows})


def _null_rows(path: Path) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({f"c{n}": pyarrow.nulls(2**12) for n in range(17)}), path)
    return path.read_bytes()


def test_bounds_hold_before_memory_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables whose rows times columns are far more than their bytes; of a bound that is small, to be quick."""
    monkeypatch.setattr(_tables, "_MOST_CELLS", 2**16)
    wide = json.dumps({"file_name": "a", **{f"c{n}": 1 for n in range(999)}})
    bombs = {
        "t.jsonl": (wide + "\n" + "{}\n" * 2_000).encode(),
        "t.csv": b"\n" * (2**16 + 1),
        "t.parquet": _null_rows(tmp_path / "t.parquet"),
    }
    for name, data in bombs.items():
        tracemalloc.start()
        try:
            with pytest.raises(DataError, match="65,536"):
                read_table(data, name)
            assert tracemalloc.get_traced_memory()[1] < 2**22, name
        finally:
            tracemalloc.stop()


def test_a_word_that_every_row_has_is_there_once(tmp_path: Path) -> None:
    """Parquet keeps a long text by number; were it unpacked, 1,024 rows of it would take 100 MB."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    words = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 200 * N), ["x" * 100_000])
    columns = {"file_name": NAMES * 200, "x": words}
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet", store_schema=False)
    tracemalloc.start()
    try:
        found = read_table((tmp_path / "t.parquet").read_bytes(), "t.parquet")
        assert tracemalloc.get_traced_memory()[1] < 2**23 and len(found.columns["x"]) == N * 200
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("different", [3, N])
def test_sentences_without_a_name_are_named(different: int, tmp_path: Path) -> None:
    rows = [f"{name},A thing that is {n % different}." for n, name in enumerate(NAMES)]
    made = contents(tmp_path, {"metadata.csv": "\n".join(["file_name,comment", *rows])})
    assert any("--caption comment takes them as captions" in line for line in made.notes)


def test_a_damaged_table_in_parquet_is_refused_or_read(tmp_path: Path) -> None:
    """Whatever bytes are wrong: a word that is not there is not looked for."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"file_name": NAMES * 5, "x": COLOURS * 5}), tmp_path / "t.parquet")
    data = np.frombuffer((tmp_path / "t.parquet").read_bytes(), np.uint8)
    drawn, refused = np.random.default_rng(0), 0
    for _ in range(600):
        wrong = data.copy()
        wrong[drawn.integers(len(data), size=3)] = drawn.integers(256, size=3)
        try:
            read_table(wrong.tobytes(), "t.parquet")
        except DataError as error:
            refused += str(error).isprintable()
    assert refused > 300


def test_tables_of_other_endings(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--metadata got t.xlsx, .*; save it as CSV \(UTF-8\)"):
        contents(tmp_path, {}, metadata=Path("t.xlsx"))
