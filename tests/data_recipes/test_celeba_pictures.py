"""CelebA's pictures and words, each against a case made by hand."""

import io
from itertools import permutations

import numpy as np
import pytest
from PIL import Image

from mmgen.core.foreign import CannotReadError
from mmgen.core.pictures import image_array
from mmgen.data_recipes._celeba._landmarks import (
    HEIGHT,
    WIDTH,
    add_watermark,
    blacken_right_half,
    crop_and_resize,
    decode_face,
    detect_edges,
)
from mmgen.data_recipes._celeba._source import ALL_ATTRIBUTES
from mmgen.data_recipes._streams import stream_keys
from mmgen.data_recipes.celeba_words import WORDS, shuffle_words, true_words
from tests.data_recipes._faces import drawn_face, jpeg


def bands(*parts: tuple[int, int]) -> Image.Image:
    """Grey rows: (how many, which value)."""
    rows = np.repeat([value for _, value in parts], [number for number, _ in parts])
    return Image.fromarray(np.broadcast_to(rows.astype(np.uint8)[:, None], (len(rows), WIDTH)).copy())


def test_the_crop_is_the_central_square():
    image = bands((20, 255), (178, 100), (20, 255))
    small = image_array(crop_and_resize(image, 178, 64))[0]
    assert (small[1:-1] == 100).all()
    assert (small[[0, -1]] < 120).all()  # the filter reaches a little beyond
    columns = np.full((HEIGHT, WIDTH), 255, np.uint8)
    columns[59:159, 39:139] = 7
    assert (image_array(crop_and_resize(Image.fromarray(columns), 100, 32))[0, 1:-1, 1:-1] == 7).all()


def test_edges_of_a_step_are_one_line():
    grey = np.zeros((HEIGHT, WIDTH), np.uint8)
    grey[:, 89:] = 255
    found = np.asarray(detect_edges(Image.fromarray(grey), 3.0))
    assert set(np.unique(found)) == {0, 255}
    assert found[2:-2].any(axis=1).all()
    assert not np.delete(found, [88, 89], axis=1).any()  # the step is between these two
    small = image_array(crop_and_resize(Image.fromarray(found), 178, 64))[0]
    assert small[4:-4].sum() == pytest.approx(found[32:-32].sum() * (64 / 178) ** 2, rel=0.03)  # no light is lost
    assert set(small[4:-4].argmax(axis=1)) <= {31, 32}


def test_edges_are_those_of_scikit_image_at_full_size():
    from skimage.feature import canny

    grey = drawn_face(0).image.convert("L")
    expected = canny(np.asarray(grey, np.float64) / 255, sigma=3)
    assert np.array_equal(np.asarray(detect_edges(grey, 3.0)) > 0, expected)
    assert 200 < expected.sum() < 4000
    assert not np.asarray(detect_edges(Image.new("L", (WIDTH, HEIGHT), 90), 3.0)).any()


def test_completion_blackens_the_right_half():
    picture = np.full((3, 64, 64), 9, np.uint8)
    result = blacken_right_half(picture)
    assert (result[:, :, :32] == 9).all()
    assert not result[:, :, 32:].any()
    assert (picture == 9).all()


@pytest.mark.parametrize("size", [64, 96])
def test_the_watermark_is_the_same_writing_on_every_picture(size):
    black, white = np.zeros((3, size, size), np.uint8), np.full((3, size, size), 255, np.uint8)
    assert (add_watermark(white) == 255).all()
    written = add_watermark(black)
    assert set(np.unique(written)) == {0, 153}  # 0.6 of white
    assert (written == written[0]).all()
    on_grey = add_watermark(np.full((3, size, size), 100, np.uint8))
    assert np.array_equal(on_grey == 193, written == 153)  # 100 + 0.6 * 155
    assert np.array_equal(on_grey == 100, written == 0)
    lines = written[0].any(axis=1).astype(int)
    assert (np.diff(lines) == 1).sum() == 3
    assert 0.05 < (written[0] > 0).mean() < 0.2


def test_a_picture_comes_back_from_its_file():
    face = drawn_face(1).image
    back = decode_face(jpeg(face))
    assert back.mode == "RGB" and back.size == (WIDTH, HEIGHT)
    assert np.abs(np.asarray(back, float) - np.asarray(face, float)).mean() < 3
    assert decode_face(jpeg(face.convert("L"))).mode == "RGB"


def _png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "it is no JPEG picture"),
        (b"\xff\xd8\xff\xe0 and then nothing", "truncated"),
        (_png(), "no JPEG"),
        (jpeg(Image.new("RGB", (64, 64))), "it has 64 x 64 pixels, expected 178 x 218"),
        (jpeg(drawn_face(1).image)[:3000], "truncated"),
        (jpeg(drawn_face(1).image)[:-2], "truncated"),
    ],
)
def test_what_is_no_picture_of_celeba(data, says):
    with pytest.raises(CannotReadError, match=says):
        decode_face(data)


def attributes(*present: str) -> np.ndarray:
    return np.array([[name in present for name in ALL_ATTRIBUTES]], np.uint8)


def words(codes: np.ndarray) -> list[str]:
    return [WORDS[code] for code in codes if code < len(WORDS)]


def test_words_are_the_attributes_that_are_present():
    assert len(WORDS) == 19 and "Female" in WORDS
    true = true_words(attributes("Smiling", "Black_Hair", "Young", "Male"))  # Young is none of the words
    text = shuffle_words(true, stream_keys(0, "x", np.arange(1)))
    assert text.shape == (1, 9) and text.dtype == np.uint16
    assert sorted(words(text[0])) == ["Black_Hair", "Male", "Smiling"]
    assert (text[0, 3:] == 19).all()
    alone = shuffle_words(true_words(attributes()), stream_keys(0, "x", np.arange(1)))
    assert words(alone[0]) == ["Female"]


def test_of_more_than_nine_words_a_random_nine_are_kept():
    many = [*[word for word in WORDS if word != "Female"][:11], "Male"]
    true = np.repeat(true_words(attributes(*many)), 4000, axis=0)
    text = shuffle_words(true, stream_keys(0, "x", np.arange(4000)))
    assert (text < 19).all()
    assert all(len(set(row)) == 9 for row in text.tolist())
    kept = np.bincount(text.ravel(), minlength=19)[true[0]] / 4000
    number = true[0].sum()
    assert np.abs(kept - 9 / number).max() < 4 * np.sqrt(9 / number * (1 - 9 / number) / 4000)


def test_every_order_of_words_is_equally_likely():
    n = 12_000
    true = np.repeat(true_words(attributes("Smiling", "Bald", "Male")), n, axis=0)
    text = shuffle_words(true, stream_keys(3, "x", np.arange(n)))[:, :3]
    orders = list(permutations(sorted(set(text[0].tolist()))))
    counts = np.array([(text == order).all(axis=1).sum() for order in orders])
    assert counts.sum() == n
    assert ((counts - n / 6) ** 2 / (n / 6)).sum() < 20.5  # chi-squared with 5 degrees: once in a thousand
