"""The gaps of a grid: combinations that no picture has, told apart from values that nothing has and from no grid."""

import numpy as np

from mmgen.core.notation import UNKNOWN
from mmgen.generation import find_gaps


def grid(*sizes: int) -> np.ndarray:
    return np.stack([axis.ravel() for axis in np.meshgrid(*map(np.arange, sizes), indexing="ij")], 1).astype(np.uint8)


def test_missing_combinations_are_found_and_counted() -> None:
    codes = grid(4, 5)
    left_out = (codes == [1, 3]).all(1) | (codes == [2, 0]).all(1)
    gaps = find_gaps(np.repeat(codes[~left_out], 3, axis=0))
    assert gaps.codes.tolist() == [[1, 3], [2, 0]] and gaps.possible == 20
    assert gaps.sentence == "2 of 20 combinations have no picture"
    assert find_gaps(codes).sentence == "" and len(find_gaps(codes[:, :1])) == 0


def test_values_that_no_picture_has_and_unknown_ones_make_no_gap() -> None:
    codes = np.array([[0, 0], [0, 2], [3, 0], [3, 2], [3, UNKNOWN], [UNKNOWN, 5]], np.uint8)
    gaps = find_gaps(codes)  # values 0 and 3; 0, 2 and 5, which only a picture of unknown first attribute has
    assert (gaps.codes.tolist(), gaps.possible) == ([[0, 5], [3, 5]], 6)


def test_many_attributes_are_looked_at_in_pairs() -> None:
    codes = grid(9, 9, 9)  # 729 combinations
    some = codes[(codes[:, 0] != 4) | (codes[:, 2] != 7)]
    gaps = find_gaps(some)
    assert gaps.codes.tolist() == [[4, UNKNOWN, 7]] and gaps.possible == 3 * 81
    assert gaps.sentence == "1 of 243 combinations of two words have no picture"


def test_where_most_are_missing_there_is_no_grid() -> None:
    assert len(find_gaps(np.stack([np.arange(9), np.arange(9)], 1).astype(np.uint8))) == 0


def test_chosen_gaps_are_varied_and_the_same_for_a_seed() -> None:
    codes = grid(6, 6)
    gaps = find_gaps(codes[(codes[:, 0] + codes[:, 1]) % 3 > 0])  # 12 of 36 are missing, two of each value
    chosen = gaps.choose(6, seed=0)
    assert sorted(chosen[:, 0]) == sorted(chosen[:, 1]) == [0, 1, 2, 3, 4, 5]
    np.testing.assert_array_equal(chosen, gaps.choose(6, seed=0))
    assert len(gaps.choose(99, seed=0)) == 12
