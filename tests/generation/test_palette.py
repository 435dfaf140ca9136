"""A palette recolours exactly where words change colours alone, and finds which word that is."""

import numpy as np

from mmgen.generation.palette import choose_attribute, recolour

COLOURS = np.array([[250, 200, 10], [120, 60, 20], [30, 220, 90]], np.uint8)


def grid() -> tuple[np.ndarray, np.ndarray]:
    """Five drawings in three colours with a frame of one colour: pictures [15, 3, 8, 8] and words [15, 2]."""
    codes = np.array([(drawing, colour) for drawing in range(5) for colour in range(3)], np.uint8)
    pictures = np.full((15, 3, 8, 8), 255, np.uint8)
    for picture, (drawing, colour) in zip(pictures, codes, strict=True):
        picture[:, drawing : drawing + 3, 1:6] = COLOURS[colour][:, None, None]
        picture[:, 7] = 40
    return pictures, codes


def test_a_hidden_picture_is_drawn_exactly_and_the_word_is_found() -> None:
    pictures, codes = grid()
    for hidden in range(15):
        kept = np.arange(15) != hidden
        drawn = recolour(pictures[kept], codes[kept], codes[hidden], 1)
        np.testing.assert_array_equal(drawn, pictures[hidden])
    assert choose_attribute(pictures, codes, 0) == 1


def test_without_a_source_there_is_no_picture() -> None:
    pictures, codes = grid()
    other = codes[:, 0] != 2
    assert recolour(pictures[other], codes[other], codes[7], 1) is None
    alone = codes[:, 1] == 0  # no pair of two colours
    assert recolour(pictures[alone], codes[alone], codes[7], 1) is None
