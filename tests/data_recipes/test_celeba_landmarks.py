"""Landmarks: faces whose points are known, the mask drawn from them, and the predictor's file."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from mmgen.core.errors import DataError, UsageError
from mmgen.data_recipes._celeba import _landmarks
from mmgen.data_recipes._celeba._landmarks import (
    FAR,
    REGIONS,
    FaceFinder,
    draw_mask,
    fetch_predictor,
    find_predictor_file,
    fit_face_box,
    load_predictor,
    reduce_to_five_points,
    require_faces_extra,
)
from tests.data_recipes._faces import ALIGNED, drawn_face, portrait

for module in ("cv2", "dlib", "skimage", "face_recognition_models"):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"needs {module}", allow_module_level=True)


@pytest.fixture(scope="module")
def sha256() -> str:
    return load_predictor(None)[1]


def grey(face) -> np.ndarray:
    return np.asarray(face.image.convert("L"))


@pytest.mark.parametrize("detector", ["aligned", "dlib"])
def test_landmarks_of_known_faces(detector, sha256):
    finder = FaceFinder(detector, None, sha256)
    for one in (*map(drawn_face, range(5)), portrait(1)):
        found = finder.find(grey(one), one.points)
        assert found.points.shape == (68, 2)
        distances = np.linalg.norm(reduce_to_five_points(found.points) - one.points, axis=1)
        assert distances.max() < 6
        assert distances.mean() < 3
        assert found.error == pytest.approx(distances.mean())


def test_turned_and_moved_faces_are_followed(sha256):
    """By twelve degrees and some pixels: far more than aligned pictures are."""
    finder = FaceFinder("aligned", None, sha256)
    one = drawn_face(2)
    turned = one.image.rotate(12, center=(89, 128), translate=(9, -6))
    angle = np.radians(-12)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    points = (one.points - [89, 128]) @ turn.T + [89, 128] + [9, -6]
    found = finder.find(np.asarray(turned.convert("L")), points)
    assert np.linalg.norm(reduce_to_five_points(found.points) - points, axis=1).mean() < 4


def test_the_box_puts_the_mean_face_on_the_points():
    left, top, right, bottom = fit_face_box(ALIGNED)
    assert right - left == bottom - top
    mean = np.array([left, top]) + (right - left) * _landmarks._MEAN_FIVE
    assert np.abs(mean - ALIGNED).max() < 4
    # Exactly where the points are the mean face itself, made larger and moved.
    assert fit_face_box(_landmarks._MEAN_FIVE * 80 + [30, 50]) == (30, 50, 110, 130)
    assert fit_face_box(np.full((5, 2), 90.0)) is None
    assert fit_face_box(ALIGNED[::-1]) is None  # the mouth above the eyes


def test_the_mean_face_is_that_of_the_predictors_file():
    """The file's format: integers as a byte of length (and sign) and that many bytes, floats as two of them."""
    with find_predictor_file(None).open("rb") as file:

        def integer() -> int:
            control = file.read(1)[0]
            value = int.from_bytes(file.read(control & 15), "little")
            return -value if control & 128 else value

        assert integer() == 1  # version
        assert (abs(integer()), abs(integer())) == (136, 1)
        mean = np.array([integer() * 2.0 ** integer() for _ in range(136)]).reshape(68, 2)
    assert np.abs(reduce_to_five_points(mean) - _landmarks._MEAN_FIVE).max() < 1e-4


def test_no_face_no_points(sha256):
    empty = np.full((218, 178), 128, np.uint8)
    found = FaceFinder("dlib", None, sha256).find(empty, ALIGNED)
    assert found.points is None and np.isnan(found.error)
    assert FaceFinder("aligned", None, sha256).find(empty, np.full((5, 2), 50.0)).points is None


def test_points_far_from_celebas_own_are_no_face(sha256):
    one = drawn_face(0)
    wrong = one.points.copy()
    wrong[2:] += [0, 40]  # a nose in the mouth, a mouth on the chest
    found = FaceFinder("aligned", None, sha256).find(grey(one), wrong)
    assert found.error > FAR
    assert found.points is None


def test_without_celebas_points_the_detector_still_works(sha256):
    found = FaceFinder("dlib", None, sha256).find(grey(drawn_face(0)), None)
    assert found.points is not None and np.isnan(found.error)


def _square(points: np.ndarray, region: str, left: int, top: int, side: int) -> None:
    """The region's points on the outline of a square."""
    n = len(points[REGIONS[region]])
    around = np.arange(n) * 4 * side // n
    x = np.clip(np.minimum(around, 3 * side - around), 0, side)
    y = np.clip(np.minimum(around - side, 4 * side - around), 0, side)
    points[REGIONS[region]] = np.stack([left + x, top + y], axis=1)


def test_the_mask_fills_hulls_and_draws_the_jaw_as_a_line():
    points = np.zeros((68, 2), np.int64)
    points[REGIONS["jaw"]] = np.stack([np.linspace(20, 160, 17).astype(int), np.full(17, 200)], axis=1)
    squares = {"mouth": (60, 150), "nose": (60, 100), "right_eye": (20, 60), "left_eye": (100, 60)}
    squares |= {"right_eyebrow": (20, 20), "left_eyebrow": (100, 20)}
    for region, (left, top) in squares.items():
        _square(points, region, left, top, 24)
    points[35] = (5, 5)  # belongs to no region, as in WG
    mask = draw_mask(points)
    assert mask.shape == (218, 178) and set(np.unique(mask)) == {0, 255}
    for left, top in squares.values():
        assert (mask[top + 6 : top + 18, left + 6 : left + 18] == 255).all()
    assert mask[5, 5] == 0
    assert (mask[200, 20:160] == 255).all()
    assert 2 <= (mask[190:212, 90] > 0).sum() <= 3
    far = mask.copy()
    for left, top in squares.values():
        far[top : top + 25, left : left + 25] = 0
    far[197:204] = 0
    assert not far.any()
    assert not draw_mask(None).any()


def test_regions_of_a_real_mask(sha256):
    one = drawn_face(4)
    mask = draw_mask(FaceFinder("aligned", None, sha256).find(grey(one), one.points).points) > 0
    for x, y in (one.points[0], one.points[1], (one.points[3] + one.points[4]) / 2):
        assert mask[round(y), round(x)]
    assert 0.02 < mask.mean() < 0.15


def test_what_is_missing_is_said(monkeypatch):
    require_faces_extra()
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "dlib" else real(name))
    with pytest.raises(UsageError, match=r"but dlib cannot be found: pip install 'dlib-bin"):
        require_faces_extra()


def test_where_the_predictor_comes_from(tmp_path, monkeypatch):
    given = tmp_path / "own.dat"
    assert find_predictor_file(given) == given
    assert find_predictor_file(None).stat().st_size == _landmarks._FILES[_landmarks._NAME][1]
    assert fetch_predictor(None) is None
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(_landmarks, "cache_folder", lambda name: tmp_path / name)
    assert find_predictor_file(None) is None
    work = fetch_predictor(None)
    assert (len(work), work.unit) == (99_693_937, "byte")
    load_predictor.cache_clear()
    with pytest.raises(DataError, match="is missing: get it with pip install 'dlib"):
        load_predictor(None)


def test_the_packages_predictor_is_the_one_that_would_be_downloaded(sha256):
    assert sha256 == _landmarks._FILES[_landmarks._NAME][0]
    with pytest.raises(DataError, match="differs from that of the machine"):
        FaceFinder("aligned", None, "0" * 64)


def test_files_that_are_no_predictor(tmp_path):
    path = tmp_path / "predictor.dat"
    for lacking in (path, tmp_path):
        with pytest.raises(DataError, match=r"cannot read the landmark predictor .* \(.*\): get it with pip"):
            load_predictor(lacking)
    for data in (b"", b"cos\nsystem\n(S'touch owned'\ntR.", bytes(1000)):
        path.write_bytes(data)
        with pytest.raises(DataError, match="is no predictor of 68 landmarks"):
            load_predictor(path)
    five = Path(find_predictor_file(None)).with_name("shape_predictor_5_face_landmarks.dat")
    with pytest.raises(DataError, match="one of 5 points"):
        load_predictor(five)
