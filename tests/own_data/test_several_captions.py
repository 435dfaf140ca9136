"""Several rows or captions of one picture: all captions are kept, other differences are refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmgen.core.errors import DataError
from mmgen.data_recipes import Survey
from mmgen.data_recipes.folder import Folder
from mmgen.settings.config import validate
from tests.own_data._tables import COLOURS, NAMES, N, contents, table, values


def _captions(made: Survey) -> list[list[str]]:
    """Return the captions of each picture in the order in which they are stored."""
    assert made.captions is not None
    words, codes = [*made.captions.vocabulary, ""], made.captions.codes
    texts = [
        [" ".join(words[code] for code in row).strip() for row in each]
        for each in codes.reshape(N, -1, made.captions.length)
    ]
    return [[text for text in each if text] for each in texts]


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
def test_several_captions_are_kept_in_an_order_of_the_seed(case: str, tmp_path: Path) -> None:
    """The seed and the picture's name decide which is the first, whatever the form or the order of rows."""
    name, text, settings = SEVERAL[case]
    settings = settings | ({} if "metadata" in name else {"metadata": tmp_path / "p" / name})
    made = contents(tmp_path, {name: text}, **settings)
    said = _captions(made)
    assert all(sorted(each) == sorted(_several(n)) for n, each in enumerate(said))
    assert len({first.split()[0] for first, *_ in said}) == 3
    assert "  3 captions a picture, 72 in all: training draws one at each sight" in made.notes
    first = contents(tmp_path / "other", {"metadata.csv": SEVERAL["rows"][1]})
    assert said == _captions(first)
    if case in ("rows", "columns"):
        assert values(made) == COLOURS
    if "\n" in text and case == "rows":
        head, *rows = text.split("\n")
        assert said == _captions(contents(tmp_path / "turned", {name: "\n".join([head, *rows[::-1]])}))


def test_fewer_captions_are_kept_as_the_user_says(tmp_path: Path) -> None:
    text = SEVERAL["rows"][1]
    everything = _captions(contents(tmp_path, {"metadata.csv": text}))
    two = contents(tmp_path / "two", {"metadata.csv": text}, most_captions=2)
    assert [each[:2] for each in everything] == _captions(two)
    assert (
        "  3 captions a picture, 72 in all, of which 2 are kept (--most-captions): training draws one at each sight"
        in two.notes
    )
    one = contents(tmp_path / "one", {"metadata.csv": text}, most_captions=1)
    assert one.captions is not None
    assert one.captions.codes.ndim == 2
    assert [each[:1] for each in everything] == _captions(one)
    assert "  3 captions a picture, 72 in all: one of them is drawn for each, by the seed" in one.notes


def test_pictures_may_have_different_numbers_of_captions(tmp_path: Path) -> None:
    rows = [json.dumps({"file_name": name, "captions": _several(n)[: n % 4]}) for n, name in enumerate(NAMES)]
    made = contents(tmp_path, {"metadata.jsonl": "\n".join(rows)})
    assert [len(each) for each in _captions(made)] == [n % 4 for n in range(N)]


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    head, *rows = SEVERAL["rows"][1].split("\n")
    hashes = set()
    for number, some in enumerate((rows, rows[::-1])):
        contents(tmp_path / str(number), {"metadata.csv": "\n".join([head, *some])})
        source = validate(Folder, {"pictures": tmp_path / str(number) / "p"}).open_source()
        hashes.add(source.sha256(np.arange(N), np.zeros((N, 1, 32), np.uint8)))
        source.close()
    assert len(hashes) == 1


def test_what_rows_of_one_picture_say_differently_is_refused(tmp_path: Path) -> None:
    tail = "00.png,green\n"
    with pytest.raises(DataError, match="'colour' has several values for one picture, such as 'green' and 'red' for"):
        contents(tmp_path, {"metadata.csv": table(tail=tail)})
    made = contents(tmp_path, {"metadata.csv": table(tail="00.png,red\n")})
    assert values(made) == COLOURS and any("25 rows are of 24 pictures" in line for line in made.notes)
    rows = "\n".join(json.dumps({"file_name": name, "tags": ["a", "b"]}) for name in NAMES)
    (tmp_path / "p" / "metadata.csv").unlink()
    with pytest.raises(DataError, match="leave it out with --ignore tags"):
        contents(tmp_path, {"metadata.jsonl": rows})


@pytest.mark.parametrize("different", [3, N])
def test_sentences_without_a_name_are_named(different: int, tmp_path: Path) -> None:
    rows = [f"{name},A thing that is {n % different}." for n, name in enumerate(NAMES)]
    made = contents(tmp_path, {"metadata.csv": "\n".join(["file_name,comment", *rows])})
    assert any("--caption comment takes them as captions" in line for line in made.notes)
