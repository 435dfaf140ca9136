"""What folders, columns and splits are taken as parts by their names, what as classes, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from mmgen.core.errors import DataError
from mmgen.data_recipes._own._folder import FolderSource
from mmgen.data_recipes._own._folder_parts import parts_by_folder, parts_by_name
from mmgen.data_recipes._own._parts import check_no_part_columns, parts_of_column
from mmgen.data_recipes._part_names import PARTS, part_of
from mmgen.data_recipes.folder import Folder
from tests.own_data._pictures import COLOURS, picture, write_csv

WORDS = {
    "train": "train Train TRAIN training training_set train_set trainset training-images train2017 01_train "
    "TrainingSet train_data TrainData trn train.1 trainimages train_split tRaIn "
    "entrenamiento Entrai\u0302nement 训练集",
    "val": "val valid validate validation dev VALID val2017 validation_set devset 2_val valData Val-Images "
    "vALID Validierung validação",
    "test": "test testing test1 TEST testset test_images holdout hold-out HeldOut held_out unseen eval evaluation tst "
    "tEsT TeST prueba teste 测试",
}


@pytest.mark.parametrize("part", PARTS)
def test_words_for_parts_in_any_case_with_numbers_and_sets(part: str) -> None:
    assert {word: part_of(word) for word in WORDS[part].split()} == dict.fromkeys(WORDS[part].split(), part)


@pytest.mark.parametrize(
    "name",
    [
        "test tubes", "train stations", "train_station", "trained", "trainer", "contest", "protest", "latest", "valley",
        "val d'Isere", "development", "device", "devil", "testa", "testament", "strain", "rainset", "evaluate", "seen",
        "invalid", "validity", "set", "data", "images", "01", "", "trainval", "seg_train", "crash_test", "testube",
    ],
)  # fmt: skip
def test_words_that_only_look_like_parts(name: str) -> None:
    assert part_of(name) == ""


def divided(*names: str, elsewhere: bool = False) -> tuple[list[str] | None, list[str]]:
    parts, classes = parts_by_folder([tuple(filter(None, name.split("/"))) for name in names], "p", elsewhere)
    return parts, ["/".join(each) for each in classes]


DIVIDED = {
    "the publisher's words": (("training_set/a", "test_set/a"), ["train", "test"], ["a", "a"]),
    "beside a word of their own": (("seg_train/a", "seg_test/b"), ["train", "test"], ["a", "b"]),
    "behind it": (("cats-train/a", "cats-val/b", "cats-test/b"), ["train", "val", "test"], ["a", "b", "b"]),
    "years": (("train2017", "val2017"), ["train", "val"], ["", ""]),
    "several years": (("train2014", "train2017", "val2017"), ["train", "train", "val"], ["", "", ""]),
    "below classes": (("a/train", "a/test", "b/train"), ["train", "test", "train"], ["a", "a", "b"]),
    "in the middle": (("x/train/a", "y/test/b"), ["train", "test"], ["x/a", "y/b"]),
    "far below": (("x/a/1/Train", "x/b/2/Unseen"), ["train", "test"], ["x/a/1", "x/b/2"]),
    "twice": (("seg_train/seg_train/a", "seg_test/seg_test/a"), ["train", "test"], ["a", "a"]),
    "twice in one of them": (("train/train/a", "test/a", "test/b"), ["train", "test", "test"], ["a", "a", "b"]),
    "a class of that name in parts": (("train/train", "train/bus", "test/bus"), ["train", "train", "test"],
                                      ["train", "bus", "bus"]),
    "all of train": (("train/a", "train/b"), ["train", "train"], ["a", "b"]),
    "classes": (("red", "blue"), None, ["red", "blue"]),
    "false friends": (("train stations", "test tubes"), None, ["train stations", "test tubes"]),
    "more of them": (("testa", "contest", "valley", "trained"), None, ["testa", "contest", "valley", "trained"]),
    "crash tests": (("crash_test", "crash_site"), None, ["crash_test", "crash_site"]),
    "no folders": (("", ""), None, ["", ""]),
}  # fmt: skip


@pytest.mark.parametrize("case", DIVIDED)
def test_folders_are_parts_where_all_of_a_level_are(case: str) -> None:
    names, parts, classes = DIVIDED[case]
    assert divided(*names) == (parts, classes)


OTHERS = {
    "one of three": (("bus", "car", "train"), "in the folders 'train' and some in 'bus', 'car'"),
    "an extra": (("train", "test", "extra"), "some in 'extra'"),
    "test alone": (("cat", "dog", "test"), "in the folders 'test' and some in 'cat', 'dog'"),
    "pictures beside them": (("train/a", ""), "'train' and some in 'none at all'"),
    "one more with its word": (("seg_train", "seg_test", "seg_pred"), "'seg_test', 'seg_train' and some in 'seg_pred'"),
    "two tests": (("Training", "PublicTest", "PrivateTest"), "'Training' and some in 'PrivateTest', 'PublicTest'"),
    "train with val": (("trainval", "test"), "'test' and some in 'trainval'"),
    "two domains": (("trainA", "trainB", "testA", "testB"), "may be parts of a split, but it cannot be told which"),
    "below classes": (("a/train", "a/x", "b/test"), "'test', 'train' and some in 'x'"),
    "below some": (("a/train", "a", "b/test"), "'test', 'train' and some in 'none at all'"),
    "two levels": (("train/test/a", "test/train/a"), "say different parts"),
    "no train": (("val/a", "test/a"), "no picture in p is in the part train, only in 'test', 'val'"),
    "valid and invalid": (("valid", "invalid"), "'valid' and some in 'invalid'"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_may_be_parts_is_refused_and_says_how_to_say_it(case: str) -> None:
    names, says = OTHERS[case]
    with pytest.raises(DataError) as refused:
        divided(*names)
    assert says in str(refused.value) and "--folders-are-classes" in str(refused.value)


BY_NAME: dict[str, tuple[list[str], list[str] | None]] = {
    "in one folder": (["train_001.png", "test_001.png"], ["train", "test"]),
    "with a word of their own": (["COCO_train2014_1.jpg", "COCO_val2014_1.jpg"], ["train", "val"]),
    "in folders of classes": (["red/train1.png", "red/test1.png", "blue/train2.png"], ["train", "test", "train"]),
    "that tell what folders are about": (["train stations/train 1.png", "test tubes/test 1.png"], None),
    "some of them": (["train_1.png", "bus_1.png"], None),
    "no train": (["test_1.png", "val_1.png"], None),
    "one part": (["train_1.png", "train_2.png"], None),
}


@pytest.mark.parametrize("case", BY_NAME)
def test_names_of_files_that_all_say_a_part_divide(case: str) -> None:
    names, parts = BY_NAME[case]
    assert parts_by_name(names) == parts


def test_pictures_whose_names_divide_are_not_divided_anew(tmp_path: Path) -> None:
    for n in range(30):
        (tmp_path / f"{'test' if n % 3 == 0 else 'train'}_{n:03d}.png").write_bytes(picture(n))
    assert FolderSource(tmp_path, None, ()).parts == ["test"] * 10 + ["train"] * 20
    assert FolderSource(tmp_path, None, (), classes=True).parts is None


def test_what_a_table_says_leaves_folders_that_may_be_parts_as_classes() -> None:
    assert divided("bus", "car", "train", elsewhere=True) == (None, ["bus", "car", "train"])
    assert divided("train/a", "test/a", elsewhere=True) == (["train", "test"], ["a", "a"])


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


def test_a_class_called_train_beside_a_column_of_parts(tmp_path: Path) -> None:
    write(tmp_path / "p", ("bus", "car", "train"), split=lambda n: "holdout" if n % 5 == 0 else "training_set")
    recipe = Folder(pictures=tmp_path / "p")
    survey = recipe.survey(0, 1).run()
    assert "attribute class: bus 10, car 10, train 10" in survey.notes
    parts = survey.parts
    assert parts["test"].tolist() == [row for row, n in enumerate(_order()) if n % 5 == 0]


def _order() -> list[int]:
    """Numbers of the pictures in the order of their names."""
    return sorted(range(30), key=lambda n: (("bus", "car", "train")[n % 3], n))


def test_folders_are_classes_where_somebody_says_so(tmp_path: Path) -> None:
    folder = write(tmp_path / "p", ("test", "train"))
    assert FolderSource(folder, None, ()).parts is not None
    source = FolderSource(folder, None, (), classes=True)
    assert source.parts is None and {*source.columns["class"]} == {"test", "train"}
    said = Folder(pictures=folder, folders_are_classes=True).survey(0, 1).run().notes
    assert "attribute class: test 15, train 15" in said and any("split 'iid'" in line for line in said)


def test_a_column_and_folders_that_divide_differently(tmp_path: Path) -> None:
    folder = write(tmp_path / "p", ("test", "train"), split=lambda n: "train" if n % 3 else "test")
    with pytest.raises(DataError, match=r"state different parts; leave the column out .* with --folders-are-classes"):
        Folder(pictures=folder).survey(0, 1)
    assert Folder(pictures=folder, folders_are_classes=True).survey(0, 1).run().notes


@pytest.mark.parametrize("words", [("train", "test"), ("Training", "Validation"), ("x_train", "x_dev", "x_test")])
def test_a_column_of_another_name_that_divides_is_no_attribute_in_silence(words: tuple[str, ...]) -> None:
    with pytest.raises(DataError, match=r"use it as the split with --split phase, leave it out with --ignore phase"):
        check_no_part_columns({"size": ["a", "b"], "phase": [*words, None]})
    assert parts_of_column("phase", words, ["1", "2", "3"]) == [part_of(word.split("_")[-1]) for word in words]


@pytest.mark.parametrize("words", [("train", "bus"), ("val", "test"), ("test tubes", "train stations"), ("train",)])
def test_columns_that_only_look_so_are_attributes(words: tuple[str, ...]) -> None:
    check_no_part_columns({"what": words})
    assert not all(part_of(word) for word in words) or "train" not in map(part_of, words) or len(words) == 1


def test_a_column_of_parts_that_is_named_as_an_attribute(tmp_path: Path) -> None:
    folder = write(tmp_path / "p", ("a",), phase=lambda n: ("train", "test")[n % 2], hue=lambda n: list(COLOURS)[n % 3])
    with pytest.raises(DataError, match="the column 'phase' holds test and train"):
        Folder(pictures=folder).survey(0, 1)
    assert (
        "attribute phase: test 15, train 15" in Folder(pictures=folder, attributes=("phase",)).survey(0, 1).run().notes
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [("Usage", ["Training", "PublicTest"]), ("set", ["train", "trainval"]), ("subset", ["train", "unlabeled"]),
     ("partition", ["0", "1", "2"]), ("Split", ["1", "2"]), ("fold", ["0", "1", "2", "3", "4"]),
     ("is_train", ["0", "1"]), ("isTrain", ["True", "False"]), ("data_split", ["0", "1"])],
)  # fmt: skip
def test_a_column_called_as_a_division_is_no_attribute_in_silence(name: str, words: list[str]) -> None:
    with pytest.raises(DataError, match=f"write train, val and test there to use it as the split with --split {name}"):
        check_no_part_columns({name: words})


@pytest.mark.parametrize(
    ("name", "words"),
    [("vehicle", ["bus", "train"]), ("train", ["0", "1"]), ("has_train", ["yes", "no"]), ("set", ["tea", "chess"]),
     ("phase", ["solid", "liquid"]), ("fold", ["yes", "no"]), ("part", ["flask", "test tube"]),
     ("split", ["hair", "lip"])],
)  # fmt: skip
def test_other_columns_are_attributes(name: str, words: list[str]) -> None:
    check_no_part_columns({name: words})


def test_a_last_folder_that_all_share_is_no_class(tmp_path: Path) -> None:
    """As Tiny ImageNet has it: of test pictures nobody knows the class, and it is not "images"."""
    for n, folder in enumerate(["train/n01/images", "train/n02/images", "val/images", "test/images"]):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"{n}.png").write_bytes(picture(n))
    source = FolderSource(tmp_path, None, ())
    assert source.columns == {"class": [None, "n01", "n02", None]}
