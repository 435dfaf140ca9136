"""The user's copy of CelebA: folders and zips as they come, and everything that can be wrong with them."""

import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from mmgen.core.errors import DataError
from mmgen.data_recipes._celeba._source import Source
from tests.data_recipes._faces import build_celeba

NUMBER = 10


def refusal(path: Path, points: str = "needed") -> str:
    with pytest.raises(DataError) as caught, Source(path, points):
        pass
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize("zipped", ["no", "images", "all"])
@pytest.mark.parametrize("lists", ["txt", "csv"])
def test_folders_and_zips_hold_the_same(zipped, lists, tmp_path):
    plain = build_celeba(tmp_path / "plain", NUMBER)
    other = build_celeba(tmp_path / "other", NUMBER, zipped=zipped, lists=lists)
    before = sorted(tmp_path.rglob("*"))
    with Source(plain, "needed") as one, Source(other, "needed") as two:
        assert one.lists.sha256 == two.lists.sha256
        assert one.lists.names == two.lists.names == tuple(f"{i:06d}.jpg" for i in range(1, NUMBER + 1))
        assert [one.read(name) for name in one.lists.names] == [two.read(name) for name in two.lists.names]
        assert one.read("000001.jpg")[:2] == b"\xff\xd8"
        assert np.array_equal(one.lists.part, [0] * 8 + [1, 2])
        assert one.lists.points.shape == (NUMBER, 5, 2)
        assert (one.lists.points[:, 0, 0] < one.lists.points[:, 1, 0]).all()
        assert set(np.unique(one.lists.attributes)) == {0, 1}
    assert sorted(tmp_path.rglob("*")) == before  # nothing is unpacked


def test_other_places_that_people_unpack_to(tmp_path):
    kaggle = build_celeba(tmp_path / "kaggle", NUMBER, lists="csv")
    (kaggle / "img_align_celeba").mkdir()
    shutil.move(kaggle / "Img" / "img_align_celeba", kaggle / "img_align_celeba" / "img_align_celeba")
    flat = build_celeba(tmp_path / "flat", NUMBER, zipped="images")
    for file in [*flat.rglob("*.txt"), *flat.rglob("*.zip")]:
        shutil.move(file, flat / file.name)
    for folder in (kaggle, flat):
        with Source(folder, "needed") as source:
            assert len(source.lists) == NUMBER


def test_the_unpacked_folder_is_preferred_to_the_zip_beside_it(tmp_path):
    folder = build_celeba(tmp_path / "c", NUMBER)
    (folder / "img_align_celeba.zip").write_bytes(b"half a downlo")
    with Source(folder, "needed") as source:
        assert source.read("000001.jpg")[:2] == b"\xff\xd8"


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("wrong-count", "says '11' in its first line but holds 10 rows"),
        ("wrong-list", "has other columns than expected ('Young' for '5_o_Clock_Shadow')"),
        ("wrong-value", "line 5: expected the name of an image and 40 whole numbers among -1, 1, got '000003.jpg"),
        ("far-point", "line 5: expected the name of an image and 10 whole numbers from -218 to 436, got '000003.jpg"),
        ("missing-partition", "there is no list_eval_partition.txt (nor list_eval_partition.csv)"),
        ("missing-landmarks", "there is no list_landmarks_align_celeba.txt"),
        ("missing-part", "puts 0 of 10 images into part 2 (test)"),
        ("duplicate-name", "names 000003.jpg twice"),
        ("other-names", "do not name the same images: 10 only in the latter, 10 only in the former"),
        ("missing-image", "1 that it names are missing, such as 000003.jpg"),
        ("extra-image", "1 are there that it does not name, such as 000011.jpg"),
        ("duplicate-image", "000003.jpg"),
    ],
)
@pytest.mark.parametrize("zipped", ["no", "all"])
def test_faults_are_one_sentence(fault, says, zipped, tmp_path):
    path = build_celeba(tmp_path / "c", NUMBER, zipped=zipped, faults=[fault])
    assert says in refusal(path)


def test_landmarks_may_be_missing_where_nothing_needs_them(tmp_path):
    path = build_celeba(tmp_path / "c", NUMBER, faults=["missing-landmarks"])
    whole = build_celeba(tmp_path / "whole", NUMBER)
    with Source(path, "optional") as source:
        assert source.lists.points is None
    with Source(path, "ignored") as one, Source(whole, "ignored") as other:
        assert one.lists.sha256 == other.lists.sha256


def test_no_such_place_says_where_to_get_it(tmp_path):
    assert "mmlab.ie.cuhk.edu.hk" in refusal(tmp_path / "nowhere")
    assert "there are no images in" in refusal(tmp_path)


@pytest.mark.parametrize("data", [b"", b"not a zip", b"PK\x03\x04 broken off"])
def test_what_is_no_zip(data, tmp_path):
    path = tmp_path / "celeba.zip"
    path.write_bytes(data)
    assert "is no zip, or a truncated one" in refusal(path)


def test_a_zip_in_a_zip_is_to_be_unpacked(tmp_path):
    folder = build_celeba(tmp_path / "c", NUMBER, zipped="images")
    path = tmp_path / "outer.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in folder.rglob("*"):
            archive.write(file, file.relative_to(folder))
    assert "and no zip in a zip" in refusal(path)


def test_a_list_that_is_no_text(tmp_path):
    folder = build_celeba(tmp_path / "c", NUMBER)
    (folder / "Anno" / "list_attr_celeba.txt").write_bytes(b"PK\3\4\0")
    assert "it is no text (line 1 has a zero character" in refusal(folder)
    (folder / "Anno" / "list_attr_celeba.txt").write_bytes(b"")
    assert "says '' in its first line" in refusal(folder)


def test_paths_out_of_the_zip_lead_nowhere(tmp_path):
    path = build_celeba(tmp_path / "inner" / "c", NUMBER, zipped="all", faults=["traversal"])
    before = sorted(tmp_path.rglob("*"))
    assert "holds the name '../../outside.txt', which leads out of it" in refusal(path)
    assert sorted(tmp_path.rglob("*")) == before


def test_damage_in_a_zip_is_said_of_the_one_image(tmp_path):
    path = build_celeba(tmp_path / "c", NUMBER, zipped="all", faults=["damaged-zip"])
    with Source(path, "needed") as source:
        files = {name: source.read(name) for name in source.lists.names}
    assert [name for name, file in files.items() if isinstance(file, str)] == ["000003.jpg"]
    assert "the zip archive is damaged there" in files["000003.jpg"]


def _patched(path: Path, name: bytes, offset: int, value: bytes) -> Path:
    """The zip with a field of a member's entry in its directory replaced."""
    data = bytearray(path.read_bytes())
    entry = data.rindex(name) - 46  # where a directory's entry begins
    while data[entry : entry + 4] != b"PK\x01\x02":
        entry -= 1
    data[entry + offset : entry + offset + len(value)] = value
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("offset", "value", "says"),
    [
        (24, struct.pack("<I", 2**30), "it has 1,073,741,824 bytes, expected at most"),  # a bomb
        (10, struct.pack("<H", 97), "packed by wavpack, expected deflate"),
        (16, struct.pack("<I", 7), "bad crc-32"),
    ],
)
def test_hostile_members_are_not_read(offset, value, says, tmp_path):
    path = _patched(build_celeba(tmp_path / "c", NUMBER, zipped="all"), b"/000003.jpg", offset, value)
    with Source(path, "needed") as source:
        assert says in source.read("000003.jpg")
        assert isinstance(source.read("000004.jpg"), bytes)


def test_a_pipe_is_not_waited_for(tmp_path):
    import os

    folder = build_celeba(tmp_path / "c", NUMBER)
    image = folder / "Img" / "img_align_celeba" / "000003.jpg"
    image.unlink()
    os.mkfifo(image)
    with Source(folder, "needed") as source:
        assert source.read("000003.jpg") == "it is a device or a pipe, expected a file"


def test_a_zip_with_a_password_is_refused(tmp_path):
    path = _patched(build_celeba(tmp_path / "c", NUMBER, zipped="all"), b"/000003.jpg", 8, struct.pack("<H", 1))
    assert "is a zip with a password" in refusal(path)
