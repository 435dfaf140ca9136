"""Folders as classes and parts of a split, and what is left out of them."""

import zipfile
from pathlib import Path
from typing import Any

import pytest

from mmgen.core.errors import DataError
from mmgen.data_recipes._own._source import Source
from mmgen.data_recipes.folder import Folder
from mmgen.settings.config import validate
from tests.own_data._pictures import picture, write_csv


def write(folder: Path, names: tuple[str, ...], **columns: Any) -> Path:
    """Thirty pictures in these folders, and a table of further columns by function of the number."""
    for n in range(30):
        place = folder / names[n % len(names)]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{n:03d}.png").write_bytes(picture(n))
    if columns:
        rows = [
            {"file_name": f"{names[n % len(names)]}/{n:03d}.png", **{name: of(n) for name, of in columns.items()}}
            for n in range(30)
        ]
        write_csv(folder / "metadata.csv", rows)
    return folder


def opened(folder: Path, **settings: Any) -> Source:
    return validate(Folder, {"pictures": folder, **settings}).open_source()


DIVIDED: dict[str, tuple[tuple[str, ...], set[str] | None, set[str | None]]] = {
    "parts": (("train", "val", "test"), {"train", "val", "test"}, set()),
    "other words": (("Training", "Validation", "TESTING"), {"train", "val", "test"}, set()),
    "with classes": (("train/a", "test/a", "test/b"), {"train", "test"}, {"a", "b"}),
    "below classes": (("a/train", "b/test"), {"train", "test"}, {"a", "b"}),
    "a class of that name in parts": (("train/train", "train/bus", "test/bus"), {"train", "test"}, {"train", "bus"}),
    "all of train": (("train/a", "train/b"), {"train"}, {"a", "b"}),
    "classes": (("red", "blue"), None, {"red", "blue"}),
    "false friends": (("testa", "contest", "valley"), None, {"testa", "contest", "valley"}),
    "no folders": ((".", "."), None, set()),
}


@pytest.mark.parametrize("case", DIVIDED)
def test_folders_are_parts_where_all_of_a_level_are(case: str, tmp_path: Path) -> None:
    names, parts, classes = DIVIDED[case]
    source = opened(write(tmp_path / "p", names))
    assert (None if source.parts is None else {*source.parts}) == parts
    assert {*source.columns.get("class", [])} - {None} == (classes if len(classes) > 1 else set())


MIXED = {
    "one of three": (("bus", "car", "train"), "'bus', 'car', 'train', which may be parts of a split"),
    "an extra": (("train", "test", "extra"), "'extra', 'test', 'train'"),
    "test alone": (("cat", "dog", "test"), "'cat', 'dog', 'test'"),
    "pictures beside them": (("train/a", "."), "none, 'train'"),
    "words about them": (("train_set", "test_set"), "'test_set', 'train_set'"),
    "years": (("train2017", "val2017"), "'train2017', 'val2017'"),
    "the same words inside": (("train/seg_train", "test/seg_test"), "'seg_test', 'seg_train'"),
    "two levels": (("train/test/a", "test/train/a"), "'test', 'train'"),
    "things": (("train stations", "test tubes"), "'test tubes', 'train stations'"),
    "trainval": (("trainval", "test"), "'test', 'trainval'"),
}


@pytest.mark.parametrize("case", MIXED)
def test_what_may_be_parts_is_refused_or_taken_as_classes(case: str, tmp_path: Path) -> None:
    names, says = MIXED[case]
    folder = write(tmp_path / "p", names)
    with pytest.raises(
        DataError, match="call all folders of one level train, val or test, and none of another, or take all as cl"
    ) as no:
        opened(folder)
    assert says in str(no.value)
    assert opened(folder, folders_are_classes=True).parts is None


def test_parts_without_train_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no picture is in the part train, only in test, val; name one part train"):
        validate(Folder, {"pictures": write(tmp_path / "p", ("val", "test"))}).survey(0, 1)


def test_a_class_called_train_beside_a_column_of_parts(tmp_path: Path) -> None:
    names = ("bus", "car", "train")
    write(tmp_path / "p", names, split=lambda n: "Testing" if n % 5 == 0 else "training")
    survey = Folder(pictures=tmp_path / "p").survey(0, 1).run()
    assert "attribute class: bus 10, car 10, train 10" in survey.notes
    order = sorted(range(30), key=lambda n: (names[n % 3], n))
    assert survey.parts["test"].tolist() == [row for row, n in enumerate(order) if n % 5 == 0]


def test_a_column_and_folders_that_divide_differently(tmp_path: Path) -> None:
    folder = write(tmp_path / "p", ("test", "train"), split=lambda n: "train" if n % 3 else "test")
    with pytest.raises(DataError, match=r"different parts .*; leave the column out .* with --folders-are-classes"):
        Folder(pictures=folder).survey(0, 1)
    assert Folder(pictures=folder, folders_are_classes=True).survey(0, 1).run().notes
    write(folder, ("test", "train"), split=lambda n: ("test", "train")[n % 2], kind=lambda n: n % 3)
    survey = Folder(pictures=folder).survey(0, 1).run()
    assert list(survey.attributes) == ["kind"] and survey.scheme[0] == "given"


@pytest.mark.parametrize("words", [("train", "bus"), ("val", "test"), ("0", "1")])
def test_columns_that_only_look_so_are_attributes(words: tuple[str, str], tmp_path: Path) -> None:
    folder = write(tmp_path / "p", ("a",), phase=lambda n: words[n % 2])
    assert list(Folder(pictures=folder).survey(0, 1).run().attributes) == ["phase"]


def test_a_column_of_parts_is_an_attribute_if_it_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "p", ("a",), phase=lambda n: ("train", "test")[n % 2])
    notes = Folder(pictures=folder, attributes=("phase",)).survey(0, 1).run().notes
    assert "attribute phase: test 15, train 15" in notes
    assert Folder(pictures=folder, split="phase").survey(0, 1).run().scheme[0] == "given"


HIDDEN = ["@eaDir/a.png", "#recycle/a.png", "$RECYCLE.BIN/a.png", "@tmp/b/a.png", ".git/a.png", "._a.png", ".DS_Store"]


@pytest.mark.parametrize("zipped", [False, True])
def test_what_is_hidden_is_left_out_and_counted(zipped: bool, tmp_path: Path) -> None:
    folder = write(tmp_path / "p", ("red", "blue"))
    for name in (*HIDDEN, *(f"blue/{name}" for name in HIDDEN)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    if zipped:
        with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
            for file in sorted(folder.rglob("*")):
                archive.write(file, file.relative_to(folder).as_posix())
    source = opened(tmp_path / "p.zip" if zipped else folder)
    assert len(source) == 30 and {*source.columns["class"]} == {"red", "blue"}
    assert source.left_out == [f"{2 * len(HIDDEN)} hidden files, and folders that begin with . @ # or $"]
    source.close()


def test_a_table_may_name_files_that_begin_so(tmp_path: Path) -> None:
    folder = write(tmp_path / "p", (".",))
    (folder / "000.png").rename(folder / "#000.png")
    assert "#000.png" in opened(folder).names


def test_names_of_a_zip_in_utf8_are_read_without_their_flag(tmp_path: Path) -> None:
    """As zip programs of macOS write them."""
    folder = write(tmp_path / "p", ("Grün", "Weiß"))
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        for file in sorted(folder.rglob("*.png")):
            archive.write(file, file.relative_to(folder).as_posix())
    data = (tmp_path / "p.zip").read_bytes()
    for start, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        first, *others = data.split(start)
        data = start.join([first, *(one[: place - 4] + b"\0\0" + one[place - 2 :] for one in others)])
    (tmp_path / "plain.zip").write_bytes(data)
    assert not any(member.flag_bits for member in zipfile.ZipFile(tmp_path / "plain.zip").infolist())
    source = opened(tmp_path / "plain.zip")
    assert len(source) == 30 and {*source.columns["class"]} == {"Grün", "Weiß"}
    source.close()
