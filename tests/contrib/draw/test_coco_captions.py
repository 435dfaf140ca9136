"""COCO captions: all captions of a permitted length, parts by annotation file, hostile files refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmgen.artifacts import PARTS, Dataset
from mmgen.contrib.draw.data_recipes.coco_captions import CocoCaptions
from mmgen.core.errors import DataError, MmgenError
from mmgen.descriptions import split_into_words
from mmgen.settings.config import validate
from tests.contrib.draw._coco import annotations, captions_of, write_coco
from tests.own_data._pictures import zipped

NUMBER = 30


def make(path: Path, coco: Path, seed: int = 0, **settings: Any) -> Dataset:
    recipe = validate(CocoCaptions, {"coco": coco, **settings})
    recipe.make(path, seed=seed, workers=1, survey=recipe.survey(seed, 1).run()).run()
    return Dataset.open(path)


def sentences(dataset: Dataset, row: int) -> set[str]:
    info = dataset.texts["text"]
    return {info.words(codes) for codes in dataset.read_captions("text", slice(row, row + 1))[0]} - {""}


def test_pictures_have_their_captions_of_seven_words_and_more(tmp_path: Path) -> None:
    with make(tmp_path / "d.h5", write_coco(tmp_path / "coco", NUMBER)) as dataset:
        assert dataset.images["image"].shape == (3, 32, 32)
        assert dataset.texts["text"].captions == 2
        for row in range(NUMBER):
            expected = {" ".join(split_into_words(text)) for text in captions_of(row)[:2]}
            assert sentences(dataset, row) == expected


def test_parts_are_those_of_the_annotation_files(tmp_path: Path) -> None:
    coco = write_coco(tmp_path / "coco", NUMBER)
    tests = []
    for seed in (0, 1):
        with make(tmp_path / f"{seed}.h5", coco, seed, held_out=3) as dataset:
            train, val, test = (dataset.split("given", part) for part in PARTS)
            assert train.tolist() == list(range(20))
            assert sorted([*val, *test]) == list(range(20, 30))
            assert len(test) == 3
            tests.append(test.tolist())
    assert tests[0] == tests[1], "the same pictures are tested on whatever the seed"
    with make(tmp_path / "half.h5", coco) as dataset:
        assert len(dataset.split("given", "test")) == 5, "at most half of validation"


def test_annotation_files_may_be_as_large_as_cocos(tmp_path: Path) -> None:
    """The captions of COCO 2014 are a file of 67 MB; lines and headers may have 16 MiB."""
    coco = write_coco(tmp_path / "coco", NUMBER)
    file = coco / "annotations" / "captions_train2014.json"
    known = json.loads(file.read_text())
    file.write_text(json.dumps(known | {"info": ["all of COCO's terms of use "] * 700_000}))
    assert file.stat().st_size > 20_000_000
    with make(tmp_path / "d.h5", coco) as dataset:
        assert dataset.size == NUMBER


def test_a_zip_and_named_files_make_the_same(tmp_path: Path) -> None:
    coco = write_coco(tmp_path / "coco", NUMBER)
    archive = zipped(coco, tmp_path / "coco.zip")
    with make(tmp_path / "a.h5", coco) as one, make(tmp_path / "b.h5", archive) as other:
        assert one.header.content_id == other.header.content_id
    files = {f"{part}_annotations": tmp_path / f"{part}.json" for part in ("train", "val")}
    for part, path in zip(("train", "val"), files.values(), strict=True):
        (coco / "annotations" / f"captions_{part}2014.json").rename(path)
    with make(tmp_path / "c.h5", coco, **files) as named:
        assert named.header.content_id == one.header.content_id


def test_another_length_of_captions(tmp_path: Path) -> None:
    with make(tmp_path / "d.h5", write_coco(tmp_path / "coco", NUMBER), fewest_words=1) as dataset:
        assert dataset.texts["text"].captions == 3
    with pytest.raises(MmgenError, match="expected at least --fewest-words 7"):
        validate(CocoCaptions, {"coco": tmp_path / "coco", "max_words": 5})


NAMES = "COCO_train2014_{:012d}.jpg"
GOOD = annotations(range(20), NAMES)
BAD: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", "is not in COCO's form of captions"),
    "a list": ([1, 2], "is not in COCO's form of captions"),
    "nothing": ({"images": [], "annotations": []}, "has no rows"),
    "no images": ({"annotations": GOOD["annotations"]}, "is not in COCO's form of captions"),
    "images of numbers": ({**GOOD, "images": [3]}, "is not in COCO's form of captions"),
    "an id that is a list": (
        {**GOOD, "images": [{"id": [], "file_name": "a.jpg"}]},
        "is not in COCO's form of captions",
    ),
    "an annotation of no image": (
        {**GOOD, "annotations": [{"image_id": 5, "caption": "a b c"}]},
        "an annotation of the image 5",
    ),
    "one id twice": ({**GOOD, "images": [*GOOD["images"], GOOD["images"][0]]}, "two images of one id"),
    "a picture elsewhere": (
        {**GOOD, "images": [{**image, "file_name": "../" + image["file_name"]} for image in GOOD["images"]]},
        r"without '\.\.' and no place on a machine",
    ),
    "a picture that is missing": (
        {**GOOD, "images": [{**image, "file_name": f"{image['id']}.jpg"} for image in GOOD["images"]]},
        "20 pictures that .* names are not in",
    ),
    "a name that is a table": (
        {**GOOD, "images": [{**image, "file_name": {}} for image in GOOD["images"]]},
        "a table, expected a text",
    ),
    "a caption that is a table": (
        {**GOOD, "annotations": [{"image_id": 0, "caption": {"a": 1}}]},
        "a table, expected a text",
    ),
    "a control character": (
        {**GOOD, "annotations": [{"image_id": 0, "caption": "\x1b[2J a b c d e f g h"}]},
        "a control character",
    ),
    "lists in lists": ("[" * 100_000 + "]" * 100_000, "is not in COCO's form of captions"),
}


@pytest.mark.parametrize("case", BAD)
def test_hostile_annotations_are_refused_in_a_sentence(case: str, tmp_path: Path) -> None:
    value, message = BAD[case]
    coco = write_coco(tmp_path / "coco", NUMBER)
    text = value if isinstance(value, str) else json.dumps(value)
    (coco / "annotations" / "captions_train2014.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        validate(CocoCaptions, {"coco": coco}).open_source()


def test_files_that_are_missing_or_in_both_parts_are_refused(tmp_path: Path) -> None:
    coco = write_coco(tmp_path / "coco", NUMBER)
    train = coco / "annotations" / "captions_train2014.json"
    (coco / "annotations" / "captions_val2014.json").write_text(train.read_text())
    with pytest.raises(DataError, match="has captions for training and for validation"):
        validate(CocoCaptions, {"coco": coco}).open_source()
    train.unlink()
    with pytest.raises(
        DataError, match=r"holds no file for captions_train\*\.json, expected one; name it with --train-"
    ):
        validate(CocoCaptions, {"coco": coco}).open_source()
    with pytest.raises(DataError, match="cannot read the annotations of train"):
        validate(CocoCaptions, {"coco": coco, "train_annotations": tmp_path / "none.json"}).open_source()


def test_names_of_one_part_are_found_among_equal_names(tmp_path: Path) -> None:
    """Copies whose pictures have the same names in both folders."""
    coco = tmp_path / "coco"
    write_coco(coco, NUMBER)
    for part, numbers in (("train", range(20)), ("val", range(20, 30))):
        for n in numbers:
            old = coco / f"{part}2014" / f"COCO_{part}2014_{n:012d}.jpg"
            old.rename(old.with_name(f"{n % 20}.jpg"))
        images = [{"id": 7 * n, "file_name": f"{n % 20}.jpg"} for n in numbers]
        value = {**annotations(numbers, NAMES), "images": images}
        (coco / "annotations" / f"captions_{part}2014.json").write_text(json.dumps(value))
    source = validate(CocoCaptions, {"coco": coco, "held_out": 2}).open_source()
    assert np.unique(source.parts, return_counts=True)[1].tolist() == [2, 20, 8]
    source.close()
