"""Files beside pictures that may be a table, parts or masks: they are named, with the option that takes them."""

import json
from pathlib import Path

import pytest

from mmgen.core.errors import DataError, UsageError
from tests.own_data._tables import COLOURS, NAMES, contents, table, values

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


def test_tables_of_other_endings(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--metadata got t.xlsx, .*; save it as CSV \(UTF-8\)"):
        contents(tmp_path, {}, metadata=Path("t.xlsx"))
