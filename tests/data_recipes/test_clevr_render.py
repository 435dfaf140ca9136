"""The tracer as a whole: like Blender's Cycles, the same in every shard, and honest about what it shows."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mmgen.data_recipes import _clevr
from mmgen.data_recipes._clevr import _api
from mmgen.data_recipes._scene_file import read_scene_file
from mmgen.data_recipes._scenes import LAMPS, LOOKS, SceneArrays, scene_arrays

SCENES = Path(__file__).with_name("reference_scenes.json")


def psnr(square: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / square.mean()))


@pytest.fixture(scope="module")
def scenes() -> SceneArrays:
    file = read_scene_file(SCENES, 2, LOOKS)
    return scene_arrays(file.scenes, LOOKS, np.arange(len(file.scenes), dtype=np.uint64))


@pytest.fixture(scope="module")
def images(scenes):
    return _clevr.render(scenes, 112, 64)


def rows_of(scenes: SceneArrays, rows: slice) -> SceneArrays:
    return {name: values[rows] for name, values in scenes.items()}


def one_scene(**changes) -> SceneArrays:
    """A large red rubber sphere in the middle, alone."""
    values = {
        "size": [[0.7]],
        "colour": [[[0.7, 0.1, 0.1]]],
        "metal": [[False]],
        "shape": [[0]],
        "x": [[0.0]],
        "y": [[0.0]],
        "rotation": [[0.0]],
        "camera": [(7.48113, -6.50764, 5.34367)],
        "seed": np.zeros(1, np.uint64),
        **{name: [place] for name, place in LAMPS.items()},
    } | changes
    return {name: np.array(value) for name, value in values.items()}


@pytest.mark.slow
def test_pictures_are_like_those_of_cycles(scenes, images, two_objects_reference):
    paths = [two_objects_reference / f"scene-{i:02d}.png" for i in range(len(images))]
    references = np.stack([np.asarray(Image.open(path).convert("RGB"), np.float64) for path in paths])
    squares = ((images - references.transpose(0, 3, 1, 2)) ** 2).mean(axis=1)
    shown = _clevr.object_masks(scenes, 112) > 0
    assert np.mean([psnr(square) for square in squares]) > 43.5
    assert np.mean([psnr(square[mask]) for square, mask in zip(squares, shown, strict=True)]) > 32.5


def test_few_samples_are_enough_to_recognise_a_picture(scenes, images):
    few = _clevr.render(scenes, 112, 1).astype(float)
    assert 25 < psnr((few - images) ** 2) < 40


def test_pictures_are_the_same_in_every_shard_process_and_order(scenes, images):
    again = [_clevr.render(rows_of(scenes, slice(i, i + 1)), 112, 64)[0] for i in (5, 2)]
    assert np.array_equal(again[0], images[5])
    assert np.array_equal(again[1], images[2])
    backwards = _clevr.render(rows_of(scenes, slice(None, None, -1)), 32, 8)[::-1]
    assert np.array_equal(backwards, _clevr.render(scenes, 32, 8))


def test_noise_is_keyed_by_the_scenes_seed(scenes):
    small = _clevr.render(scenes, 32, 4)
    other = _clevr.render(scenes | {"seed": scenes["seed"] + np.uint64(1)}, 32, 4)
    assert not np.array_equal(small, other)
    assert psnr((small.astype(float) - other) ** 2) > 28


def test_visible_pixels_are_the_masks_pixels(scenes):
    for size in (112, 40):
        masks = _clevr.object_masks(scenes, size)
        assert masks.shape == (8, size, size)
        assert masks.dtype == np.uint8
        counted = np.stack([(masks == i + 1).sum(axis=(1, 2)) for i in range(2)], axis=1)
        assert np.array_equal(_clevr.visible_pixels(scenes, size), counted)


def test_a_spheres_mask_has_the_area_of_its_projection():
    scene = one_scene()
    camera = scene["camera"][0]
    gap = np.linalg.norm(camera - [0, 0, 0.7])
    # On the axis, a sphere of radius r at distance d has an image of radius tan(asin(r / d)); it is nearly on the axis.
    radius = np.tan(np.arcsin(0.7 / gap)) / np.tan(np.radians(49.134 / 2)) * 200
    assert _clevr.visible_pixels(scene, 400)[0, 0] == pytest.approx(np.pi * radius**2, rel=0.01)
    rows, columns = np.nonzero(_clevr.object_masks(scene, 400)[0])
    assert columns.mean() == pytest.approx(199.5, abs=0.5)
    assert rows.mean() < 199.5  # the sphere's middle is above the origin


def test_an_object_behind_another_shows_fewer_pixels():
    behind = np.array([-1.0, 6.50764 / 7.48113])
    scene = one_scene(
        size=[[0.7, 0.35]],
        colour=np.ones((1, 2, 3)),
        metal=[[False, False]],
        shape=[[2, 2]],
        x=[[0.0, 1.6 * behind[0]]],
        y=[[0.0, 1.6 * behind[1]]],
        rotation=[[0.3, 0.1]],
    )
    alone = rows_of(scene, slice(None)) | {
        name: scene[name][:, 1:] for name in ("size", "colour", "metal", "shape", "x", "y", "rotation")
    }
    hidden, free = _clevr.visible_pixels(scene)[0, 1], _clevr.visible_pixels(alone)[0, 0]
    assert hidden < 0.7 * free
    far = alone | {"x": np.array([[500.0]])}
    assert _clevr.visible_pixels(far)[0, 0] == 0


def test_what_is_shown_has_its_objects_colours(images, scenes):
    masks = _clevr.object_masks(scenes, 112)
    for i in range(8):
        for k in range(2):
            if not scenes["metal"][i, k]:
                mean = images[i][:, masks[i] == k + 1].mean(axis=1)
                order = np.argsort(scenes["colour"][i, k], kind="stable")
                assert (np.diff(mean[order]) > -4).all()


def test_objects_throw_shadows_and_take_from_the_floor_only_near_them():
    empty = _clevr.render(one_scene(x=[[500.0]]), 112, 16)[0].astype(float).mean(axis=0)
    scene = one_scene()
    picture = _clevr.render(scene, 112, 16)[0].astype(float).mean(axis=0)
    floor = _clevr.object_masks(scene, 112)[0] == 0
    change = np.where(floor, picture - empty, 0.0)
    assert change.min() < -15
    # The key lamp stands to the right of the camera: the darkest shadow falls to the left of the sphere.
    columns = np.nonzero(change < -10)[1]
    assert columns.mean() < 56
    assert np.abs(change[:, 100:]).mean() < 1.0


def test_metal_mirrors_lamps():
    rubber = _clevr.render(one_scene(), 112, 32)[0]
    metal = _clevr.render(one_scene(metal=[[True]]), 112, 32)[0]
    inside = _clevr.object_masks(one_scene(), 112)[0] == 1
    assert metal[0][inside].max() == 255
    assert rubber[0][inside].max() < 240


def test_one_object_or_three_and_any_size_will_do(scenes):
    three = one_scene(
        size=[[0.7, 0.35, 0.35]],
        colour=np.ones((1, 3, 3)),
        metal=[[False, True, True]],
        shape=[[0, 1, 2]],
        x=[[0.0, 2.0, -2.0]],
        y=[[0.0, 2.0, 2.0]],
        rotation=[[0.0, 0.0, 1.0]],
    )
    assert _clevr.render(three, 17, 2).shape == (1, 3, 17, 17)
    assert set(np.unique(_clevr.object_masks(three, 64))) == {0, 1, 2, 3}
    none = rows_of(scenes, slice(0, 0))
    assert _clevr.render(none, 16).shape == (0, 3, 16, 16)
    assert _clevr.visible_pixels(none).shape == (0, 2)


# --- compilation ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_importing_recipes_does_not_import_numba():
    program = "import data_recipes._clevr, sys; data_recipes.get('two-objects'); print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_kernels_that_are_cached_need_no_compilation(images):
    assert _clevr.compile_kernels() is None


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """Caches that know nothing yet, and a user's cache that is empty."""
    functions = (_api.kernel_folder, _api.load_kernels)
    for function in functions:
        function.cache_clear()
        monkeypatch.setattr(_api, function.__name__, function)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    yield tmp_path
    for function in functions:
        function.cache_clear()


def test_compilation_is_work_with_progress_when_the_cache_is_empty(fresh, monkeypatch):
    calls = []
    monkeypatch.setattr(
        _api, "load_kernels", lambda: (lambda *_: calls.append("render"), lambda *_: calls.append("mark"))
    )
    work = _clevr.compile_kernels()
    assert work is not None
    assert [progress.done for progress in work] == [1, 2]
    assert len(work) == 2
    assert sorted(calls) == ["mark", "render"]


def test_machine_code_is_kept_in_a_folder_named_after_all_sources(fresh):
    folder = _api.kernel_folder()
    assert folder is not None
    assert folder.parent == fresh / "mmgen"
    assert not _api.is_cached()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/sys").is_dir(), reason="no /sys, a folder that nobody may write to")
def test_a_read_only_home_is_no_hindrance():
    # Even root cannot make a folder there, so the test does not depend on who runs it.
    environment = os.environ | {"XDG_CACHE_HOME": "/sys/cache", "HOME": "/sys"}
    environment.pop("NUMBA_CACHE_DIR", None)
    program = (
        "from mmgen.data_recipes._clevr import _api; print(_api.visible_pixels(_api._example_scene(), 32)[0, 0] > 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "True"
