"""Scenes and captions of Two Objects: true of one another, and distributed as the generator's rules say."""

import math

import numpy as np
import pytest
from scipy import stats

from mmgen.data_recipes import _clevr
from mmgen.data_recipes._scenes import (
    LOOKS,
    RELATIONS,
    SIZES,
    attribute_words,
    caption_vocabulary,
    draw_captions,
    draw_scenes,
    footprint_radius,
    scene_arrays,
)
from mmgen.data_recipes._streams import stream_keys

N = 10_000


def everything_shows(arrays, size):
    return np.full(arrays["x"].shape, 100)


def keys_of(n: int, seed: int = 0) -> np.ndarray:
    return stream_keys(seed, "two-objects", np.arange(n))


@pytest.fixture(scope="module")
def scenes():
    return draw_scenes(keys_of(N), 2, LOOKS, _clevr.visible_pixels)


@pytest.fixture(scope="module")
def captions(scenes):
    return draw_captions(scenes, keys_of(N))


@pytest.fixture(scope="module")
def sentences(captions) -> list[list[str]]:
    words = caption_vocabulary(LOOKS, 2)
    return [[words[code] for code in row] for row in captions.vocabulary_codes(LOOKS, 2).tolist()]


def holds(relation: str, a: np.ndarray, b: np.ndarray, camera: np.ndarray) -> bool:
    """Whether a lies so to b, by where both are in the camera's picture plane and depth, seen from straight ahead."""
    # The camera turned to look level at the origin: its picture's horizontal and its depth are the floor's directions.
    angle = math.atan2(-camera[1], -camera[0])  # of the direction that it looks in
    right_of = math.sin(angle) * (a[0] - b[0]) - math.cos(angle) * (a[1] - b[1])
    deeper = math.cos(angle) * (a[0] - b[0]) + math.sin(angle) * (a[1] - b[1])
    return {"right": right_of, "left": -right_of, "behind": deeper, "front": -deeper}[relation] > 0.2


def test_captions_are_true_of_their_scenes(scenes, sentences):
    names = list(LOOKS)
    for i, words in enumerate(sentences):
        places = np.stack([scenes.x[i], scenes.y[i]], axis=1).astype(float)
        looks = [[LOOKS[name][code] for name, code in zip(names, one, strict=True)] for one in scenes.looks[i]]
        orders = [(a, b) for a, b in ((0, 1), (1, 0)) if words[:4] == looks[a] and words[5:] == looks[b]]
        assert any(holds(words[4], places[a], places[b], scenes.camera[i]) for a, b in orders)


def test_exactly_two_relations_hold_and_both_are_stored(scenes, captions):
    for i in range(N):
        a, b = np.stack([scenes.x[i], scenes.y[i]], axis=1).astype(float)
        true = {relation for relation in RELATIONS if holds(relation, a, b, scenes.camera[i])}
        assert true == {RELATIONS[captions.horizontal[i]], RELATIONS[captions.depth[i]]}


def test_right_in_words_is_right_in_the_picture(scenes, captions):
    # A pinhole camera of its own: forward, then right = forward x up.
    camera = scenes.camera.astype(float)
    forward = -camera / np.linalg.norm(camera, axis=1, keepdims=True)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    columns = []
    for i in range(2):
        point = np.stack([scenes.x[:, i], scenes.y[:, i], np.zeros(N)], axis=1) - camera
        columns.append((point * right).sum(1) / (point * forward).sum(1))
    # Perspective bends columns a little, so two objects at very different depths may swap: not when clearly apart.
    clear = np.abs(columns[0] - columns[1]) > 0.15
    assert clear.mean() > 0.5
    assert np.mean((columns[0] > columns[1])[clear] == (captions.horizontal == 0)[clear]) > 0.99


@pytest.mark.parametrize("place", range(9))
def test_words_are_uniform(captions, place):
    values = list(attribute_words(LOOKS, 2).values())[place]
    share = 1 / len(values)
    counts = np.bincount(captions.codes[:, place], minlength=len(values))
    assert np.abs(counts - N * share).max() < 4 * math.sqrt(N * share * (1 - share))


def test_looks_do_not_depend_on_one_another(scenes):
    one = np.ravel_multi_index(tuple(scenes.looks[:, 0].T.astype(int)), (2, 8, 2, 3))
    assert stats.chisquare(np.bincount(one, minlength=96)).pvalue > 1e-4
    sizes = scenes.looks[:, 0, 0] * 2 + scenes.looks[:, 1, 0]
    assert stats.chisquare(np.bincount(sizes, minlength=4)).pvalue > 1e-4  # rejecting positions shifts no size


def test_first_object_and_relation_are_fair_coins(scenes, captions):
    says_depth = captions.codes[:, 4] >= 2
    for coin in (captions.first, says_depth, captions.first ^ says_depth):
        assert abs(np.mean(coin) - 0.5) < 4 * 0.5 / math.sqrt(N)


def test_objects_keep_their_distance_and_margin(scenes):
    arrays = scene_arrays(scenes, LOOKS, keys_of(N))
    free = np.hypot(*(arrays[axis][:, 0] - arrays[axis][:, 1] for axis in "xy"))
    reach = footprint_radius(arrays["size"], arrays["shape"] == 2).sum(axis=1)
    assert (free - reach).min() >= 0.25 - 1e-6
    assert np.abs(scenes.x).max() <= 3
    assert np.abs(scenes.y).max() <= 3
    angle = np.arctan2(-scenes.camera[:, 1].astype(float), -scenes.camera[:, 0])
    dx, dy = ((arrays[axis][:, 0] - arrays[axis][:, 1]) for axis in "xy")
    assert np.abs(np.cos(angle) * dx + np.sin(angle) * dy).min() >= 0.4 - 1e-6
    assert np.abs(np.sin(angle) * dx - np.cos(angle) * dy).min() >= 0.4 - 1e-6


@pytest.mark.parametrize(("is_cube", "radius"), [(False, 0.7), (True, 0.7 * (math.sqrt(2) * 0.81 + 0.19))])
def test_footprint_reaches_the_rounded_corner(is_cube, radius):
    assert footprint_radius(np.array([0.7]), np.array([is_cube]))[0] == pytest.approx(radius)


def test_camera_and_lamps_jitter_uniformly(scenes):
    for name, centre, jitter in (
        ("camera", (7.48113, -6.50764, 5.34367), 0.5),
        ("key", (6.44671, -2.90517, 4.25840), 1.0),
        ("fill", (-4.67112, -4.01360, 3.01122), 1.0),
        ("back", (-1.16850, 2.64602, 5.81574), 1.0),
    ):
        for column, middle in enumerate(centre):
            drawn = getattr(scenes, name)[:, column]
            assert stats.kstest(drawn, stats.uniform(middle - jitter, 2 * jitter).cdf).pvalue > 1e-4
    assert stats.kstest(scenes.rotation[:, 1], stats.uniform(0, 2 * math.pi).cdf).pvalue > 1e-4


def test_numbers_for_the_renderer_are_those_of_the_words(scenes):
    arrays = scene_arrays(scenes[:50], LOOKS, keys_of(50))
    for i in range(50):
        size, colour, material, shape = scenes.looks[i, 0]
        assert arrays["size"][i, 0] == list(SIZES.values())[size]
        assert arrays["metal"][i, 0] == (LOOKS["material"][material] == "metal")
        assert ("sphere", "cylinder", "cube")[arrays["shape"][i, 0]] == LOOKS["shape"][shape]
        if LOOKS["colour"][colour] == "yellow":
            assert arrays["colour"][i, 0].tolist() == [1.0, 238 / 255, 51 / 255]


def test_a_scene_depends_on_its_own_stream_only(scenes):
    some = np.array([4711, 3, 9999])
    few = draw_scenes(keys_of(N)[some], 2, LOOKS, _clevr.visible_pixels)
    for name in ("looks", "x", "y", "rotation", "camera", "key", "fill", "back", "visible"):
        assert np.array_equal(getattr(few, name), getattr(scenes, name)[some])


def test_every_object_shows_at_least_25_pixels(scenes):
    assert scenes.visible.min() >= 25
    assert np.array_equal(scenes.visible, _clevr.visible_pixels(scene_arrays(scenes, LOOKS, keys_of(N)), 112))
    # Rejection does something: without it, some objects are hidden.
    blind = draw_scenes(keys_of(N), 2, LOOKS, everything_shows)
    assert 0.001 < np.mean(np.any(blind.x != scenes.x, axis=1)) < 0.1


def test_only_positions_are_redrawn_until_all_show(scenes):
    def hides_the_far_side(arrays, size):
        return np.where(arrays["y"] > 0, 24, 25)

    near = draw_scenes(keys_of(500), 2, LOOKS, hides_the_far_side)
    assert near.y.max() <= 0
    assert near.visible.min() == 25
    for name in ("looks", "rotation", "camera", "key"):
        assert np.array_equal(getattr(near, name), getattr(scenes, name)[:500])


def test_one_object_lies_anywhere_and_has_four_words():
    words = {**LOOKS, "colour": ("red", "blue"), "shape": ("cube",)}
    scenes = draw_scenes(keys_of(4000), 1, words, everything_shows)
    captions = draw_captions(scenes, keys_of(4000))
    assert stats.kstest(scenes.x[:, 0], stats.uniform(-3, 6).cdf).pvalue > 1e-4
    assert attribute_words(words, 1) == {name: list(values) for name, values in words.items()}
    names = np.array(caption_vocabulary(words, 1))
    sentences = names[captions.vocabulary_codes(words, 1)]
    assert sentences.shape == (4000, 4)
    assert set(sentences[:, 1]) == {"red", "blue"}
    assert set(sentences[:, 3]) == {"cube"}
    assert "left" not in names
    together = (sentences[:, 0] == "large") * 2 + (sentences[:, 1] == "red")
    assert stats.chisquare(np.bincount(together, minlength=4)).pvalue > 1e-4
