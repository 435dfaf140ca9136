"""Captions in text files beside pictures, as training sets for diffusion models have them."""

from pathlib import Path

import pytest
from PIL import Image

from mmgen.core.errors import DataError
from mmgen.data_recipes._own._captions import encode_captions
from mmgen.data_recipes._own._folder import FolderSource


def write(folder: Path, captions: dict[str, bytes]) -> Path:
    for number in range(4):
        (folder / "a").mkdir(exist_ok=True)
        Image.new("RGB", (8, 8), (60 * number, 0, 0)).save(folder / "a" / f"{number}.png")
    for name, text in captions.items():
        (folder / "a" / name).write_bytes(text)
    return folder


def test_a_caption_is_the_text_of_the_file_that_is_called_as_its_picture(tmp_path: Path) -> None:
    folder = write(tmp_path, {"0.txt": b"a dog,\n  lying \r\n", "2.txt": b"a cat", "notes.txt": b"mine", "3.txt": b""})
    source = FolderSource(folder, None, ())
    assert source.columns == {"text": ["a dog, lying", None, "a cat", None]}
    assert source.left_out == [
        "files that are no pictures of PNG, JPEG, WEBP, GIF, BMP, PPM: 1 .txt; --metadata takes a table of another name"
    ]


def test_a_table_comes_first(tmp_path: Path) -> None:
    folder = write(tmp_path, {"0.txt": b"a dog", "metadata.csv": b"file_name,size\n0.png,big\n1.png,big\n"})
    assert FolderSource(folder, None, ()).columns == {"size": ["big", "big"]}


@pytest.mark.parametrize("text", [b"\xff\xfe\x00", b"a\x00b", b"\x1b[31mred"])
def test_what_is_no_text_is_named(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(DataError, match=r"cannot read a/1\.txt in .*; save it as text \(UTF-8\), or remove it"):
        FolderSource(write(tmp_path, {"1.txt": text}), None, ())


@pytest.mark.parametrize(("text", "told"), [("桌上的红猫", True), ("dog", False), ("桌 上 的", False)])
def test_a_script_without_spaces_is_told_to_have_some(text: str, told: bool) -> None:
    notes = encode_captions("text", [[text]] * 3, max_words=32, min_count=1).notes
    assert any("put spaces between them" in note for note in notes) == told


@pytest.mark.parametrize(
    ("texts", "most", "least", "vocabulary", "said"),
    [
        (["a b c", "a b c d"], 3, 1, ["a", "b", "c"], "1 were cut after 3 words (the longest has 4)"),
        (["a b", "a"], 9, 2, ["a"], "1 words that occur less than 2 times were left out"),
        (["b", "a a"], 9, 2, ["a"], "1 pictures have none"),
    ],
)
def test_long_captions_are_cut_and_rare_words_left_out(
    texts: list[str], most: int, least: int, vocabulary: list[str], said: str
) -> None:
    made = encode_captions("text", [[text] for text in texts], max_words=most, min_count=least)
    assert made.vocabulary == vocabulary and any(said in note for note in made.notes), made.notes
