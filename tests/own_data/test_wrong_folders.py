"""Folders, zips, tables, pictures and options that are wrong: one sentence each, and nothing is written."""

import os
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.own_data._pictures import picture, rows_of, write_classes, write_csv, write_folder, write_jsonl, zipped
from tests.program import within

MB = 2**20
Break = Callable[[Path], None]


def table(change: Callable[[list[dict[str, Any]]], Any]) -> Break:
    """Breaks the table: what ``change`` does to its rows, or returns instead."""

    def broken(folder: Path) -> None:
        rows = rows_of(30)
        write_csv(folder / "metadata.csv", change(rows) or rows)

    return broken


def text(data: bytes | Callable[[bytes], bytes]) -> Break:
    """Breaks the bytes of the table."""

    def broken(folder: Path) -> None:
        path = folder / "metadata.csv"
        path.write_bytes(data if isinstance(data, bytes) else data(path.read_bytes()))

    return broken


def jsonl(*lines: str) -> Break:
    def broken(folder: Path) -> None:
        (folder / "metadata.csv").unlink()
        (folder / "metadata.jsonl").write_text("\n".join(lines) + "\n")

    return broken


def file(name: str, data: bytes) -> Break:
    def broken(folder: Path) -> None:
        (folder / name).write_bytes(data)

    return broken


def both(*breaks: Break) -> Break:
    def broken(folder: Path) -> None:
        for one in breaks:
            one(folder)

    return broken


def instead(make: Callable[[Path], object]) -> Break:
    """Puts something else in the place of a picture."""

    def broken(folder: Path) -> None:
        (folder / "005.png").unlink()
        make(folder / "005.png")

    return broken


def nothing(folder: Path) -> None:
    """Leaves all as it is: the options are wrong."""


def _two_parts(folder: Path) -> None:
    (folder / "metadata.csv").unlink()
    write_classes(folder, 30, ("train", "extra"))


def _classes(name: str) -> Break:
    """Folders that are classes, one of them called so."""

    def broken(folder: Path) -> None:
        (folder / "metadata.csv").unlink()
        write_classes(folder, 30)
        (folder / "red").rename(folder / name)

    return broken


def _many_values(folder: Path) -> None:
    write_csv(write_folder(folder, 300) / "metadata.csv", [r | {"x": f"v{n}"} for n, r in enumerate(rows_of(300))])


def column(name: str, value: Callable[[int], Any]) -> Break:
    return table(lambda rows: [row | {name: value(n)} for n, row in enumerate(rows)])


def named(name: str, row: int = 4) -> Break:
    return table(lambda rows: rows[row].update(file_name=name))


def _bomb(width: int, height: int) -> bytes:
    """A small PNG whose head says that it is large."""
    data = picture(0)
    head = data[:16] + struct.pack(">2I", width, height) + data[24:29]
    return head + struct.pack(">I", zlib.crc32(head[12:29])) + data[33:]


def _gif_bomb() -> bytes:
    """A GIF of 40 bytes that says that it is 65,535 pixels wide and high."""
    head = b"GIF89a" + struct.pack("<2H", 65535, 65535) + b"\x80\0\0\0\0\0\xff\xff\xff,"
    return head + struct.pack("<4H", 0, 0, 65535, 65535) + b"\0\2\2D\1\0;"


WRONG: dict[str, tuple[Break, list[str], int, str]] = {
    # What the table says.
    "missing files": (named("nowhere.png"), [], 1, "1 picture that the table names is not in p: 'nowhere.png'"),
    "all files missing": (
        table(lambda rows: [row | {"file_name": f"x{n}.png"} for n, row in enumerate(rows)]), [], 1,
        "30 pictures that the table names are not in p: 'x0.png', 'x1.png', 'x2.png' and 27 more"),
    "double names": (
        named("003.png"), [], 1, "the column 'colour' has several values for one picture, such as 'green' and 'red' for"
        " '003.png'"),
    "path traversal": (named("../secret.png"), [], 1, "names '../secret.png' in line 6, expected a file in p"),
    "inner traversal": (named("a/../../secret.png"), [], 1, "in line 6, expected a file in p"),
    "absolute path": (named("/etc/passwd"), [], 1, "names '/etc/passwd' in line 6"),
    "drive": (named("C:/secret.png"), [], 1, "names 'C:/secret.png' in line 6"),
    "backslash": (named("..\\secret.png"), [], 1, "in line 6, expected a file in p, without '..'"),
    "no file name": (named(""), [], 1, "has no 'file_name' in line 6"),
    "very long name": (named("x" * 5000), [], 1, "in line 6, expected a file in p"),
    "no column file_name": (
        table(lambda rows: [{"picture": row["file_name"], "colour": row["colour"]} for row in rows]), [], 1,
        "has no column file_name in its first line, only 'picture', 'colour'"),
    "no rows": (text(b"file_name,colour\n"), [], 1, "metadata.csv has no rows"),
    "empty table": (text(b"\n  \n"), [], 1, "metadata.csv has an empty first line; expected columns separated"),
    "ragged row": (
        text(lambda data: data + b"029.png,red\n"), [], 1, "has 2 cells in line 32 ('029.png,red'), expected 4"),
    "column twice": (text(b"file_name,colour,colour\n000.png,red,red\n"), [], 1, "has two columns 'colour'"),
    "column without name": (text(b",file_name\nx,000.png\n"), [], 1, "has no name for column 1 ('x')"),
    "latin-1": (text(lambda data: data.replace(b"red", b"gr\xfcn")), [], 1,
                "line 2 has the byte 0xFC; save it as UTF-8 if it is text"),
    "a workbook": (text(b"PK\3\4" + bytes(99)), [], 1, "it is no text (line 1 has a zero character"),
    "zero character": (text(lambda data: data.replace(b"green", b"gr\0en")), [], 1, "line 3 has a zero character"),
    "escape sequence": (
        column("x", lambda n: f"\x1b[2J{n % 2}"), [], 1, "line 2 of the column 'x' a control character ('?[2J0')"),
    "huge cell": (column("x", lambda n: "x" * 200_000), [], 1, "or a cell of more than 131,072 letters"),
    "open quote": (text(lambda data: data + b'"029.png,red'), [], 1, "in or behind line 32 a quote that is not closed"),
    "2,000 columns": (
        text(b"file_name," + b",".join(b"c%d" % n for n in range(2000)) + b"\n"), [], 1, "has 2,001 columns"),
    "rare words": (nothing, ["--min-count", "1000"], 1, "have no words: none occurs 1000 times"),
    "300 values": (
        _many_values, ["--attributes", "x"], 1, "the column 'x' has 300 different values, expected at most 255"),
    "numbers": (column("age", lambda n: n), [], 1, "the column 'age' holds more than 20 different numbers; make bins"),
    "two columns of numbers": (
        table(lambda rows: [row | {"age": n, "id": n * 7} for n, row in enumerate(rows)]), [], 1,
        "--bins 'age=5', or leave out with --ignore age,id"),
    "numbers by name": (column("age", lambda n: n), ["--attributes", "age"], 1, "make bins of them"),
    "bins of words": (column("age", lambda n: n), ["--bins", "colour=3"], 1, "picture 2 has 'green' there"),
    "bins of one number": (column("age", lambda n: 7), ["--bins", "age=3"], 1, "too few different numbers for bins"),
    "value of 500 letters": (column("x", lambda n: "xy"[n % 2] * 500), [], 1, "has a value of 500 letters"),
    "split of another word": (column("split", lambda n: "fold1"), [], 1, "has 'fold1' for '000.png', expected train"),
    "no train": (column("split", lambda n: "test"), [], 1, "no picture is in the part train, only in test"),
    "group in two parts": (
        table(lambda rows: [r | {"split": ["train", "test"][n % 2], "who": n // 2} for n, r in enumerate(rows)]),
        ["--group", "who"], 1, "are of one group, as are 15 in all"),
    "one group": (column("who", lambda n: "she"), ["--group", "who"], 1, "make 1 groups"),
    "two captions": (column("caption", lambda n: "x"), [], 2, "columns 'text' and 'caption' could be captions"),
    "no words": (column("c", lambda n: "?!"), ["--caption", "c"], 1, "have no words: it holds none"),
    "same attribute": (
        table(lambda rows: [r | {"a b": n % 2, "a_b": n % 3} for n, r in enumerate(rows)]), [], 2,
        "two columns would be the attribute 'a_b'"),
    "modality called text": (
        table(lambda rows: [r | {"text_file_name": r["file_name"]} for r in rows]), [], 2,
        "would be the image modality 'text'"),
    "no second picture": (
        table(lambda rows: [r | {"mask_file_name": ""} for r in rows]), [], 1, "has no 'mask_file_name' in line 2"),
    # JSON lines and Parquet.
    "json list": (jsonl('["000.png"]'), [], 1, "has no record of JSON in line 1"),
    "json broken": (jsonl('{"file_name": "000.png"', "}"), [], 1, "has no record of JSON in line 1"),
    "json key twice": (jsonl('{"file_name": "0", "a": 1, "a": 2}'), [], 1, "has the key 'a' twice"),
    "json infinite": (jsonl('{"file_name": "000.png", "a": -Infinity}'), [], 1, "-Infinity is not a JSON number"),
    "json number": (jsonl('{"file_name": "000.png", "a": 1' + "0" * 30 + "}"), [], 1, "has more than 64 bits)"),
    "json cell": (jsonl('{"file_name": "000.png", "box": [1, 2]}'), [], 1, "in line 1 of the column 'box'"),
    "json deep": (jsonl("[" * 100_000), [], 1, "has no record of JSON in line 1"),
    "two tables": (file("metadata.jsonl", b"{}"), [], 1, "there are two tables"),
    "no parquet": (
        both(lambda folder: (folder / "metadata.csv").unlink(), file("metadata.parquet", b"PAR1nonsensePAR1")), [], 1,
        "is no table in Parquet, or damaged"),
    # The pictures.
    "no picture": (file("005.png", b"no picture"), [], 1, "cannot be read: 005.png (it is no PNG"),
    "empty picture": (file("005.png", b""), [], 1, "1 of 30 pictures in p cannot be read: 005.png"),
    "several broken ones": (
        both(*(file(f"00{n}.png", b"x") for n in range(5))), [], 1,
        "000.png (it is no PNG, JPEG, WEBP, GIF, BMP or PPM picture), 001.png (it is no PNG, JPEG, WEBP, GIF, BMP or "
        "PPM picture), 002.png"),
    "truncated picture": (file("005.png", picture(5)[:200]), [], 1, "1 of 30 pictures in p cannot be read: 005.png"),
    "PNG bomb": (file("005.png", _bomb(60_000, 60_000)), [], 1, "cannot be read: 005.png ("),
    "many pixels": (file("005.png", _bomb(8000, 8000)), [], 1, "it has 8000 x 8000 pixels, expected at most"),
    "GIF bomb": (file("005.png", _gif_bomb()), [], 1, "cannot be read: 005.png ("),
    "program for Ghostscript": (file("005.png", b"%!PS-Adobe-3.0 EPSF-3.0\n"), [], 1, "005.png (it is no PNG"),
    "pipe": (instead(os.mkfifo), [], 1, "005.png (it is a device or a pipe, expected a file)"),
    "huge file": (lambda folder: os.truncate(folder / "005.png", 2**40), [], 1, "005.png (it has 1,099,511,627,776 b"),
    "huge table": (lambda folder: os.truncate(folder / "metadata.csv", 2**40), [], 1, "expected at most 268,435,456"),
    "link to outside": (
        instead(lambda path: path.symlink_to("/etc/passwd")), [], 1, "005.png is a link to something that is not in p"),
    "broken link": (instead(lambda path: path.symlink_to("gone.png")), [], 1, "005.png (no such file or directory)"),
    "mostly broken": (
        both(*(file(f"{n:03d}.png", b"x") for n in range(25))), ["--drop-unreadable"], 1,
        "5 pictures in p can be read, expected at least 20"),
    # What is asked for.
    "unknown attribute": (nothing, ["--attributes", "color"], 2, "did you mean 'colour'?"),
    "unknown caption": (nothing, ["--caption", "txt"], 2, "--caption: unknown column 'txt'"),
    "unknown group": (nothing, ["--group", "person"], 2, "--group: unknown column 'person'"),
    "unknown split": (nothing, ["--split", "fold"], 2, "--split: unknown column 'fold'"),
    "unknown ignore": (nothing, ["--ignore", "id"], 2, "--ignore: unknown column 'id'"),
    "unknown bins": (nothing, ["--bins", "age=3"], 2, "--bins: unknown column 'age'"),
    "bins without number": (nothing, ["--bins", "colour"], 2, "--bins got 'colour', expected a column"),
    "bins that descend": (nothing, ["--bins", "colour=3:2"], 2, "where they meet, ascending"),
    "one bin": (nothing, ["--bins", "colour=1"], 2, "expected 2 to 255 bins"),
    "unknown image column": (nothing, ["--image-column", "x"], 2, "--image-column: unknown column 'x'"),
    "wrong fit": (nothing, ["--fit", "zoom"], 2, "setting 'fit' got 'zoom', expected 'crop', 'pad' or"),
    "size of nothing": (nothing, ["--size", "0"], 2, "setting 'size' got 0"),
    "table of another kind": (nothing, ["--metadata", "t.xlsx"], 2, "--metadata got t.xlsx, expected"),
    "no such table": (nothing, ["--metadata", "t.csv"], 1, "cannot read t.csv: no such file"),
    "second folder": (nothing, ["q"], 2, "unexpected extra argument"),
    # The folder itself.
    "few pictures": (table(lambda rows: rows[:19]), [], 1, "p holds 19 pictures, expected at least 20"),
    "two classes of one name": (
        both(_classes("c d"), lambda folder: (folder / "green").rename(folder / "c\nd")), [], 1,
        "p has folders 'c\\nd' and 'c d', which would be one class 'c d'; rename one, or merge them"),
    "control character in a class": (
        _classes("red\x1b[2Jx"), [], 1, "p has a folder 'red?[2Jx', whose name holds a control character"),
    "class that is no text": (
        _classes("red\udcff"), [], 1, "p has a folder 'red?', whose name holds a control character or is no text"),
    "parts and others": (
        _two_parts, [], 1, "pictures in p are in the folders none, 'extra', 'train', which may be parts of a split"),
}  # fmt: skip


def refused(here: Path, code: int, *arguments: str) -> str:
    """The sentence that a command leaves with."""
    done = within(here, "make-data", "folder", *arguments, "-o", "d.h5", "--workers", "1")
    err = done.stderr
    assert (done.returncode, done.stdout) == (code, ""), err
    said = [line for line in err.splitlines() if line.startswith("mmgen: ")]
    assert len(said) == 1 and "Traceback" not in err and said[0].removeprefix("mmgen: ").isprintable()
    assert not [path for path in here.iterdir() if "d.h5" in path.name]
    return said[0]


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_folder_ends_in_a_sentence(case: str, tmp_path: Path) -> None:
    breaks, options, code, says = WRONG[case]
    breaks(write_folder(tmp_path / "p"))
    size = [] if "--size" in options else ["--size", "8"]
    assert says in refused(tmp_path, code, "p", *size, *options)


def _member(name: str, data: bytes = b"x", **facts: Any) -> Callable[[zipfile.ZipFile], None]:
    def add(archive: zipfile.ZipFile) -> None:
        member = zipfile.ZipInfo(name)
        for fact, value in facts.items():
            setattr(member, fact, value)
        archive.writestr(member, data)

    return add


ZIPS: dict[str, tuple[Callable[[zipfile.ZipFile], None], str]] = {
    "traversal": (_member("../evil.png"), "holds the name '../evil.png', which leads out of it"),
    "absolute": (_member("/evil.png"), "holds the name '/evil.png', which leads out of it"),
    "drive": (_member("C:/evil.png"), "holds the name 'C:/evil.png', which leads out of it"),
    "double name": (_member("000.png"), "holds '000.png' twice"),
    "bomb": (_member("bomb.png", bytes(100 * MB), compress_type=zipfile.ZIP_DEFLATED), "bomb.png (it has 104,857,600"),
    "other packing": (_member("x.png", picture(1), compress_type=zipfile.ZIP_LZMA), "x.png (it is packed by lzma"),
}


@pytest.mark.slow_cases("bomb")
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("case", ZIPS)
def test_a_wrong_zip_ends_in_a_sentence(case: str, tmp_path: Path) -> None:
    add, says = ZIPS[case]
    path = zipped(write_folder(tmp_path / "p", table=False), tmp_path / "p.zip")
    with zipfile.ZipFile(path, "a") as archive:
        add(archive)
    tracemalloc.start()
    try:
        assert says in refused(tmp_path, 1, "p.zip", "--size", "8")
        assert tracemalloc.get_traced_memory()[1] < 20 * MB
    finally:
        tracemalloc.stop()
    assert not (tmp_path.parent / "evil.png").exists()


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "there is no folder or zip p; name the one that holds your pictures"),
        ({"p": b""}, "cannot read p: it is no zip"),
        ({"p": b"PK\3\4 broken"}, "cannot read p: it is no zip"),
        ({"p/": b""}, "there are no pictures in p, only nothing"),
        ({"p/a.tiff": b""}, "there are no pictures in p, only '.tiff'; expected PNG, JPEG"),
    ],
)
def test_what_holds_no_pictures(files: dict[str, bytes], says: str, tmp_path: Path) -> None:
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).write_bytes(data)
    assert says in refused(tmp_path, 1, "p")


def test_a_table_of_very_many_pictures_and_values(tmp_path: Path) -> None:
    rows = [{"file_name": f"{n}.png", "x": f"v{n}", "y": n} for n in range(12_000)]
    write_jsonl(write_folder(tmp_path / "p", table=False) / "metadata.jsonl", rows)
    assert "12,000 pictures that the table names are not in p" in refused(tmp_path, 1, "p")
