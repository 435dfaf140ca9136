"""Randomness: the generator is SplitMix64, transforms have their distributions, splits their sizes and their groups."""

import numpy as np
import pytest
from scipy import stats

from mmgen.data_recipes._streams import (
    official_scheme,
    random_bits,
    random_choices,
    random_order,
    random_uniforms,
    split_by_group,
    stream_keys,
    truncated_normal,
)


def test_a_stream_is_the_published_splitmix64_sequence():
    # First outputs for the state 1234567, as the reference implementation prints them.
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert random_bits(np.array([1234567], np.uint64), np.arange(5)).tolist() == expected


def test_draws_depend_on_nothing_but_key_index_and_slot():
    keys = stream_keys(3, "name", np.arange(100))
    some = np.array([41, 7, 99])
    assert np.array_equal(stream_keys(3, "name", some), keys[some])
    assert np.array_equal(random_bits(keys[some], 5), random_bits(keys, 5)[some])


def test_streams_of_other_seeds_names_and_images_differ():
    indices = np.arange(50_000)
    families = [stream_keys(seed, name, indices) for seed in (0, 1) for name in ("a", "b")]
    assert len(np.unique(np.concatenate(families))) == 4 * len(indices)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_uniform_over_images_and_over_slots(seed):
    keys = stream_keys(seed, "uniformity", np.arange(100_000))
    over_images = random_uniforms(random_bits(keys, 3))
    over_slots = random_uniforms(random_bits(keys[:1], np.arange(100_000)))
    for draws in (over_images, over_slots):
        assert stats.kstest(draws, "uniform").pvalue > 1e-4
        lag = np.corrcoef(draws[1:], draws[:-1])[0, 1]
        assert abs(lag) < 4 / np.sqrt(len(draws))
    assert abs(np.corrcoef(over_images, random_uniforms(random_bits(keys, 4)))[0, 1]) < 4 / np.sqrt(len(keys))


def test_uniform_never_reaches_its_ends():
    ends = random_uniforms(np.array([0, 2**64 - 1], np.uint64))
    assert ends[0] > 0
    assert ends[1] < 1


@pytest.mark.parametrize("n", [2, 3, 4, 10, 240, 256])
def test_choice_is_uniform(n):
    drawn = random_choices(random_bits(stream_keys(0, "choice", np.arange(200_000)), 0), n)
    assert stats.chisquare(np.bincount(drawn, minlength=n)).pvalue > 1e-4
    assert drawn.max() == n - 1


def test_shuffled_is_a_permutation_that_depends_on_the_seed():
    first = random_order(0, "x", 1000)
    assert np.array_equal(np.sort(first), np.arange(1000))
    assert not np.array_equal(first, random_order(1, "x", 1000))
    assert not np.array_equal(first, np.arange(1000))


@pytest.mark.parametrize(
    ("mean", "sd", "low", "high"),
    [
        (0.9, 0.1, 0.4, 1.0),  # big
        (0.6, 0.1, 0.4, 1.0),  # small
        (45.0, 10.0, -90.0, 90.0),  # clockwise
        (12.0, 4.0, 20.0, 44.0),  # a large digit in the near half: only the right tail is left
        (52.0, 4.0, 20.0, 44.0),  # ... and in the far half
        (0.0, 1.0, 7.0, 9.0),  # where 1 - Phi has no digits left unless mirrored
    ],
)
def test_truncated_normal_matches_the_exact_distribution(mean, sd, low, high):
    n = 200_000
    draws = truncated_normal(random_uniforms(random_bits(stream_keys(5, "tn", np.arange(n)), 0)), mean, sd, low, high)
    exact = stats.truncnorm((low - mean) / sd, (high - mean) / sd, loc=mean, scale=sd)
    assert draws.dtype == np.float32
    assert low <= draws.min()
    assert draws.max() <= high
    assert abs(draws.mean() - exact.mean()) < 5 * exact.std() / np.sqrt(n)
    assert draws.std() == pytest.approx(exact.std(), rel=0.015)
    assert stats.kstest(draws[:20_000], exact.cdf).pvalue > 1e-4


def test_truncated_normal_is_what_redrawing_gives():
    generator = np.random.default_rng(0)
    redrawn = generator.normal(0.9, 0.1, 100_000)
    redrawn = redrawn[(redrawn >= 0.4) & (redrawn <= 1.0)]
    drawn = truncated_normal(
        random_uniforms(random_bits(stream_keys(0, "r", np.arange(80_000)), 0)), 0.9, 0.1, 0.4, 1.0
    )
    assert stats.ks_2samp(redrawn, drawn).pvalue > 1e-4


@pytest.mark.parametrize("n", [7, 20, 100, 240, 1797])
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
