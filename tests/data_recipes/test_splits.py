"""Splits: sizes, disjointness, and what is never separated."""

import numpy as np
import pytest

from mmgen.data_recipes._streams import official_scheme, split_by_group


@pytest.mark.parametrize("n", [20, 100, 240, 1797])
def test_sizes_are_85_5_10_percent_of_the_groups(n):
    parts = split_by_group(np.arange(n), n, 0, "x")
    assert len(parts["train"]) == round(0.85 * n)
    assert len(parts["train"]) + len(parts["val"]) == round(0.9 * n)
    assert np.array_equal(np.sort(np.concatenate(list(parts.values()))), np.arange(n))


def test_groups_stay_together():
    groups = np.arange(1000) % 60
    parts = split_by_group(groups, 60, 3, "x")
    found = [set(groups[rows]) for rows in parts.values()]
    assert not (found[0] & found[1] or found[0] & found[2] or found[1] & found[2])
    assert [len(some) for some in found] == [51, 3, 6]


def test_another_seed_or_name_divides_differently():
    groups = np.arange(200)
    first = split_by_group(groups, 200, 0, "x")["test"]
    assert not np.array_equal(first, split_by_group(groups, 200, 1, "x")["test"])
    assert not np.array_equal(first, split_by_group(groups, 200, 0, "y")["test"])


def test_official_keeps_the_publishers_test_digits_apart():
    source = np.arange(300) % 130
    part = (source >= 120).astype(np.uint8)  # 120 training and 10 test digits
    meaning, parts = official_scheme(source, part, 0)["official"]
    assert "test" in meaning
    assert set(source[parts["test"]]) == set(range(120, 130))
    assert len(set(source[parts["val"]])) == 10
    assert not set(source[parts["val"]]) & set(source[parts["train"]])
    assert sum(map(len, parts.values())) == 300


def test_there_is_no_official_split_of_only_one_part():
    assert official_scheme(np.arange(50), np.zeros(50, np.uint8), 0) == {}
