"""Grids, to the pixel: geometry, red frames, captions, hostile text."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.page import FRAME, GAP, Grid, convert_to_rgb, wrap_text
from mmgen.figures.drawing.style import WRONG, category_colours, data_uri, hex_to_rgb
from mmgen.figures.drawing.tables import Panel, image_grid, image_table

RED = np.array(hex_to_rgb(WRONG))


def _noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape).astype(np.float32)


def _framed(grid: Grid, box: tuple[int, int, int, int]) -> bool:
    """Whether every pixel of the frame around the box is red; asserts that it is red everywhere or nowhere."""
    pixels = np.asarray(grid.image)
    left, top, right, bottom = box
    around = np.ones((bottom - top + 2 * FRAME, right - left + 2 * FRAME), bool)
    around[FRAME:-FRAME, FRAME:-FRAME] = False
    frame = pixels[top - FRAME : bottom + FRAME, left - FRAME : right + FRAME][around]
    red = (frame == RED).all(-1)
    assert red.all() or not red.any()
    return bool(red.all())


def test_frames_are_red_exactly_where_the_judge_disagrees() -> None:
    wrong = np.array([True, False, False, True, False, False, False])
    grid = image_grid(_noise(7, 1, 28, 28), wrong=wrong, title="digit=3", note="7 images, seed 0")
    assert [_framed(grid, box) for box in grid.boxes] == wrong.tolist()
    # No red anywhere else: as many red pixels as two frames have.
    left, top, right, bottom = grid.boxes[0]
    per_frame = (bottom - top + 2 * FRAME) * (right - left + 2 * FRAME) - (bottom - top) * (right - left)
    assert (np.asarray(grid.image) == RED).all(-1).sum() == 2 * per_frame


def test_an_image_arrives_unchanged_in_its_box() -> None:
    images = _noise(5, 3, 32, 24)
    grid = image_grid(images, columns=2)
    pixels = np.asarray(grid.image)
    for image, (left, top, right, bottom) in zip(convert_to_rgb(images), grid.boxes, strict=True):
        factor = (right - left) // 24
        assert (bottom - top, right - left) == (32 * factor, 24 * factor)
        inside = pixels[top:bottom, left:right]
        assert np.array_equal(inside[::factor, ::factor], image)
        assert np.array_equal(inside, image.repeat(factor, 0).repeat(factor, 1))


@settings(max_examples=25)
@given(st.integers(1, 12), st.integers(1, 6), st.sampled_from([8, 28, 64, 200]))
def test_boxes_lie_in_rows_and_columns_and_never_touch(count: int, columns: int, size: int) -> None:
    grid = image_grid(np.zeros((count, 1, size, size), np.uint8), columns=columns)
    for index, (left, top, right, bottom) in enumerate(grid.boxes):
        row, column = divmod(index, min(columns, count))
        first = grid.boxes[0]
        assert left == first[0] + column * (right - left + 2 * FRAME + GAP)
        assert top == first[1] + row * (bottom - top + 2 * FRAME + GAP)
        assert FRAME <= left < right <= grid.image.width - FRAME
        assert FRAME <= top < bottom <= grid.image.height - FRAME


def test_captions_leave_room_and_remarks_are_red() -> None:
    images = np.zeros((2, 1, 28, 28), np.uint8)
    grid = image_grid(images, captions=["4", "3"], remarks=["judge: 5", ""], wrong=np.array([True, False]))
    plain = image_grid(images)
    assert grid.image.height > plain.image.height
    below = np.asarray(grid.image)[grid.boxes[0][3] + FRAME :]
    middle = (grid.boxes[0][2] + grid.boxes[1][0]) // 2
    assert (below[:, :middle] == RED).all(-1).any()
    assert not (below[:, middle:] == RED).all(-1).any()


def test_a_table_frames_each_panels_own_mistakes() -> None:
    wrong = [np.array([[True, False], [False, False], [False, True]]), np.zeros((3, 2), bool), None]
    panels = [Panel(f"panel {i}", _noise(3, 2, 1, 28, 28), w, "50.0 % right") for i, w in enumerate(wrong)]
    grid = image_table(panels, ["3, big", "*, small", "anything"], title="words", note="seed 0")
    assert len(grid.boxes) == 3 * 3 * 2
    assert [i for i, box in enumerate(grid.boxes) if _framed(grid, box)] == [0, 5]
    # Rows line up across panels.
    tops = np.array([box[1] for box in grid.boxes]).reshape(3, 3, 2)
    assert (tops == tops[0, :, :1]).all()


def test_rows_are_full_where_that_looks_right() -> None:
    for count, expected in {1: 1, 2: 2, 12: 4, 16: 4, 24: 6, 32: 8, 7: 4}.items():
        grid = image_grid(np.zeros((count, 1, 8, 8), np.uint8))
        assert len({box[0] for box in grid.boxes}) == expected


def test_pixels() -> None:
    assert convert_to_rgb(np.array([[[0.0, 0.5, 1.0, 2.0, -1.0, np.nan]]])).tolist() == [
        [[v] * 3 for v in (0, 128, 255, 255, 0, 0)]
    ]
    assert convert_to_rgb(np.full((3, 1, 1), 7, np.uint8)).tolist() == [[[7, 7, 7]]]
    with pytest.raises(UsageError, match="1 or 3 channels"):
        convert_to_rgb(np.zeros((2, 4, 4)))


def test_mistakes_are_named() -> None:
    images = np.zeros((2, 1, 8, 8))
    with pytest.raises(UsageError, match="no images"):
        image_grid(images[:0])
    with pytest.raises(UsageError, match="3 captions, expected 2"):
        image_grid(images, captions=["a", "b", "c"])
    with pytest.raises(UsageError, match="1 remarks, expected 2"):
        image_grid(images, remarks=["a"])
    with pytest.raises(UsageError, match="wrong got an array"):
        image_grid(images, wrong=np.array([True]))
    with pytest.raises(UsageError, match="at least one panel"):
        image_table([], [])
    with pytest.raises(UsageError, match=r"expected \[3, n, C, H, W\]"):
        image_table([Panel("a", images[:, None])], ["a", "b", "c"])


@pytest.mark.parametrize("text", ["x" * 500, "<script>alert(1)</script>", "a\nb\tc", "日本語 🙂", " "])
def test_any_text_fits(text: str) -> None:
    grid = image_grid(np.zeros((2, 1, 28, 28)), title=text, note=text, captions=[text, text])
    assert grid.image.width < 1000
    image_table([Panel(text, np.zeros((1, 1, 1, 28, 28)), subtitle=text)], [text], title=text, note=text)


def test_wrapping() -> None:
    assert wrap_text("", 16, 100) == []
    assert wrap_text("one two", 16, 1000) == ["one two"]
    assert len(wrap_text("one two three", 16, 60)) == 3
    lines = wrap_text("word " * 50, 16, 100, max_lines=2)
    assert len(lines) == 2 and lines[-1].endswith("…")
    assert wrap_text("a counterclockwise b", 16, 60) == ["a", "counterclockwise", "b"], "no word is broken"
    assert all(len(line) < 50 for line in wrap_text("y" * 1000, 16, 100))


def test_colours_are_distinct() -> None:
    for count in (1, 4, 6, 10, 24):
        assert len(set(category_colours(count))) == count


def test_data_addresses_hold_the_png() -> None:
    assert data_uri(image_grid(np.zeros((1, 1, 8, 8))).image).startswith("data:image/png;base64,iVBOR")
