"""A small copy of COCO, made for tests: pictures of one colour, each with several captions."""

import json
from pathlib import Path
from typing import Any

from tests.own_data._pictures import COLOURS, picture

CAPTIONS = 3


def captions_of(number: int) -> list[str]:
    """The captions of a picture: two of seven words and more, one too short."""
    colour = list(COLOURS)[number % 3]
    return [
        f"A {colour} square number {number} on a noisy ground.",
        f"There is something {colour} that fills picture {number}.",
        f"Something {colour}.",
    ]


def annotations(numbers: range, names: str) -> dict[str, Any]:
    """Annotations in COCO's form of pictures whose names ``names`` formats."""
    return {
        "info": {"year": 2014},
        "images": [{"id": 7 * n, "file_name": names.format(n), "height": 16, "width": 16} for n in numbers],
        "annotations": [
            {"id": 10 * n + k, "image_id": 7 * n, "caption": text}
            for n in numbers
            for k, text in enumerate(captions_of(n))
        ],
    }


def write_coco(folder: Path, number: int = 30) -> Path:
    """Two thirds for training and one for validation, in the folders and files of COCO 2014."""
    train = 2 * number // 3
    for part, numbers in (("train", range(train)), ("val", range(train, number))):
        names = f"COCO_{part}2014_{{:012d}}.jpg"
        (folder / f"{part}2014").mkdir(parents=True)
        (folder / "annotations").mkdir(exist_ok=True)
        for n in numbers:
            (folder / f"{part}2014" / names.format(n)).write_bytes(picture(n))
        text = json.dumps(annotations(numbers, names))
        (folder / "annotations" / f"captions_{part}2014.json").write_text(text, encoding="utf-8")
    return folder
