"""From a JPEG file to the pictures of a dataset: crop, grey, edges, completion, watermark.

All are made from the whole picture of 178 x 218 pixels; cropping and resizing come last.

Landmarks, 68 points of a face by dlib, and a mask drawn from them with OpenCV.

The predictor's file is dlib's own binary format of numbers, not a pickle. It was fitted to the 300-W pictures, whose
licence allows research only.

References:
    One Millisecond Face Alignment with an Ensemble of Regression Trees (Kazemi, Sullivan, CVPR 2014)
    300 Faces In-The-Wild Challenge (Sagonas, Antonakos, Tzimiropoulos, Zafeiriou, Pantic, IVC 2016)
"""

import hashlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from mmgen.core.errors import DataError, UsageError
from mmgen.core.extras import how_to_install
from mmgen.core.foreign import CannotReadError, read_file
from mmgen.core.pictures import decode_picture
from mmgen.core.progress import Work
from mmgen.core.surroundings import cache_folder
from mmgen.data_recipes._published import download, is_complete

WIDTH, HEIGHT = 178, 218
"""Size of CelebA's aligned pictures in pixels."""

_OVERLAY = (
    "#...#..###..#####.#####.####..#...#..###..####..#...#",
    "#...#.#...#...#...#.....#...#.##.##.#...#.#...#.#..#.",
    "#.#.#.#####...#...####..####..#.#.#.#####.####..###..",
    "##.##.#...#...#...#.....#..#..#...#.#...#.#..#..#..#.",
    "#...#.#...#...#...#####.#...#.#...#.#...#.#...#.#...#",
)
_STRENGTH = 0.6  # of the overlay's white
_ROWS = (0.18, 0.5, 0.82)  # middles of the overlay's three lines, as shares of the height


def decode_face(data: bytes) -> Image.Image:
    """Decode a JPEG file of 178 x 218 pixels to an RGB picture."""
    return decode_picture(data, "RGB", size=(WIDTH, HEIGHT), formats=("JPEG",))


def crop_and_resize(image: Image.Image, crop: int, size: int) -> Image.Image:
    """Crop the central square of ``crop`` pixels and resize it to ``size``, bilinear with antialiasing."""
    # WG make the shorter side 64 and cut the middle 64 out of the longer one: the same to half a pixel. As there, the
    # outermost pixels weigh in a little of what lies just outside.
    left, top = (WIDTH - crop) / 2, (HEIGHT - crop) / 2
    return image.resize((size, size), Image.Resampling.BILINEAR, box=(left, top, left + crop, top + crop))


def detect_edges(grey: Image.Image, sigma: float) -> Image.Image:
    """Detect Canny's edges in a grey picture, 255 on 0, by scikit-image with its default thresholds of 0.1 and 0.2.

    References:
        A Computational Approach to Edge Detection (Canny, PAMI 1986), https://doi.org/10.1109/TPAMI.1986.4767851
    """
    from skimage.feature import canny

    return Image.fromarray(canny(np.asarray(grey), sigma=sigma).astype(np.uint8) * np.uint8(255))


def blacken_right_half(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a copy of the picture [C, H, W] with its right half black."""
    result = picture.copy()
    result[:, :, picture.shape[2] // 2 :] = 0
    return result


def add_watermark(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a copy of the picture [C, H, W] under three lines of white writing, the same on every picture."""
    white = _watermark_mask(picture.shape[1])
    return np.rint(picture + (255.0 - picture) * _STRENGTH * white).astype(np.uint8)


def _watermark_mask(size: int) -> NDArray[np.uint8]:
    """Return the mask [size, size] of the writing, 0 and 1, drawn at 64 pixels and resized by nearest neighbours."""
    canvas = np.zeros((64, 64), np.uint8)
    word = np.array([[dot == "#" for dot in line] for line in _OVERLAY], np.uint8)
    height, width = word.shape
    for middle in _ROWS:
        top, left = round(middle * 64 - height / 2), (64 - width) // 2
        canvas[top : top + height, left : left + width] = word
    nearest = np.arange(size) * 64 // size
    return canvas[np.ix_(nearest, nearest)]


Detector = Literal["aligned", "dlib"]
"""Search for faces: at CelebA's five points, or by dlib's detector."""

_NAME = "shape_predictor_68_face_landmarks.dat"
_FILES = {_NAME: ("fbdc2cb80eb9aa7a758672cbfdda32ba6300efe9b6e6c7a299ff7e736b11b92f", 99_693_937)}
_MIRRORS = (
    "https://github.com/ageitgey/face_recognition_models/raw/master/face_recognition_models/models/",
    "https://raw.githubusercontent.com/ageitgey/face_recognition_models/master/face_recognition_models/models/",
)
_MANUAL = f"get it with {how_to_install('faces')}, or get {_NAME} some other way and name it with --landmarks"
_NEEDED = {"dlib": "dlib", "cv2": "OpenCV", "skimage": "scikit-image"}

REGIONS: Mapping[str, slice] = {
    "mouth": slice(48, 68),
    "right_eyebrow": slice(17, 22),
    "left_eyebrow": slice(22, 27),
    "right_eye": slice(36, 42),
    "left_eye": slice(42, 48),
    "nose": slice(27, 35),
    "jaw": slice(0, 17),
}
"""Points of each region; sides are the person's own. Point 35, the nose's last, is left out as WG did."""

_MOST_BYTES = 2**28  # dlib's own has 100 MB

_JAW_WIDTH = 2  # pixels of the jaw's line

# Where the mean face that the predictor starts from has its eyes, nose tip and mouth corners, in parts of its box.
_MEAN_FIVE = np.array([[0.2945, 0.3152], [0.7055, 0.3152], [0.5, 0.5470], [0.3171, 0.7511], [0.6829, 0.7511]])

FAR = 8.0
"""Largest mean distance in pixels from CelebA's own points at which points are on the face (eyes are 38 apart)."""


@dataclass(frozen=True)
class Face:
    """Landmarks of the face in a picture, and their distance from CelebA's own.

    Attributes:
        points: int [68, 2], x and y in pixels of the whole picture; None where no face was found.
        error: Mean distance in pixels of eyes, nose tip and mouth corners from CelebA's own five points; NaN where
            there are none to compare.
    """

    points: NDArray[np.int64] | None
    error: float


def require_faces_extra() -> None:
    """Refuse to continue without the libraries for landmarks and edges."""
    missing = [library for module, library in _NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise UsageError(
            f"celeba-transforms needs {', '.join(_NEEDED.values())}, but {', '.join(missing)} cannot be found: "
            f"{how_to_install('faces')}"
        )


def find_predictor_file(own_file: Path | None) -> Path | None:
    """Find the landmark predictor's file: the user's, that of face_recognition_models, or the cached one; else None."""
    if own_file is not None:
        return own_file
    spec = importlib.util.find_spec("face_recognition_models")  # not imported: it needs a module that is gone
    if spec is not None and spec.origin is not None:
        path = Path(spec.origin).parent / "models" / _NAME
        if path.is_file():
            return path
    folder = cache_folder("landmarks")
    return folder / _NAME if is_complete(folder, _FILES) else None


def fetch_predictor(own_file: Path | None) -> Work[Path] | None:
    """Return work that downloads the landmark predictor's file; None if a file is there."""
    if find_predictor_file(own_file) is not None:
        return None
    return download(cache_folder("landmarks"), _FILES, _MIRRORS, _MANUAL)


@lru_cache(maxsize=1)
def load_predictor(own_file: Path | None) -> tuple[Any, str]:
    """Load dlib's landmark predictor once per process; return the predictor and the SHA-256 of its file."""
    import dlib

    path = find_predictor_file(own_file)
    if path is None:
        raise DataError(f"the file of the landmark predictor, {_NAME}, is missing: {_MANUAL}")
    try:
        sha256 = hashlib.sha256(read_file(path, _MOST_BYTES)).hexdigest()
        predictor = dlib.shape_predictor(str(path))
        shape = predictor(np.zeros((HEIGHT, WIDTH), np.uint8), dlib.rectangle(40, 80, 130, 170))
    except (CannotReadError, OSError) as error:
        raise DataError(
            f"cannot read the landmark predictor {path} ({CannotReadError.from_error(error)}): {_MANUAL}"
        ) from None
    except RuntimeError:
        shape = None
    if shape is None or shape.num_parts != 68:
        content = "something else" if shape is None else f"one of {shape.num_parts} points"
        raise DataError(f"{path} is no predictor of 68 landmarks but {content}: {_MANUAL}")
    return predictor, sha256


@lru_cache(maxsize=1)
def _load_detector() -> Any:
    """Load dlib's detector of frontal faces, which takes half a second."""
    import dlib

    return dlib.get_frontal_face_detector()


def fit_face_box(landmarks: NDArray[Any]) -> tuple[int, int, int, int] | None:
    """Fit the predictor's mean face to five landmarks [5, 2]; return its box (left, top, right, bottom) or None."""
    centred, mean = landmarks - landmarks.mean(axis=0), _MEAN_FIVE - _MEAN_FIVE.mean(axis=0)
    side = float((centred * mean).sum() / (mean * mean).sum())
    left, top = landmarks.mean(axis=0) - side * _MEAN_FIVE.mean(axis=0)
    if not 20 <= side <= 2 * HEIGHT:
        return None
    return round(left), round(top), round(left) + round(side), round(top) + round(side)


def reduce_to_five_points(points: NDArray[Any]) -> NDArray[np.float64]:
    """Return eyes, nose tip and mouth corners [5, 2] of a face's 68 points, in CelebA's order."""
    eyes = points[36:42].mean(axis=0), points[42:48].mean(axis=0)
    return np.array([*eyes, points[30], points[48], points[54]], np.float64)


class FaceFinder:
    """Detector of the face in a picture and of its 68 landmarks.

    Args:
        detector: Search by CelebA's five points or by dlib's detector.
        predictor: The predictor's file; None for that of the package or the cache.
        sha256: Required hash of the file, so that all workers use the same.

    Raises:
        DataError: The predictor is missing, or its hash differs.
    """

    def __init__(self, detector: Detector, predictor: Path | None, sha256: str) -> None:
        import dlib

        self._predictor, digest = load_predictor(predictor)
        if digest != sha256:
            raise DataError(
                "this worker's landmark predictor differs from that of the machine that started the work: "
                f"install the same face_recognition_models on both, or give both the same {_NAME}"
            )
        self._rectangle = dlib.rectangle
        self._detect = _load_detector() if detector == "dlib" else None

    def find(self, grey: NDArray[np.uint8], landmarks: NDArray[Any] | None) -> Face:
        """Find the face in a grey picture [H, W]; detector ``aligned`` needs CelebA's own ``landmarks`` [5, 2]."""
        box: Any = None
        if self._detect is not None:
            boxes = self._detect(grey, 1)  # enlarged once, as WG did
            box = boxes[0] if len(boxes) else None  # the first is the surest
        elif landmarks is not None:
            corners = fit_face_box(landmarks)
            box = None if corners is None else self._rectangle(*corners)
        if box is None:
            return Face(None, float("nan"))
        points = np.array([(part.x, part.y) for part in self._predictor(grey, box).parts()], np.int64)
        error = (
            float("nan")
            if landmarks is None
            else float(np.linalg.norm(reduce_to_five_points(points) - landmarks, axis=1).mean())
        )
        return Face(None if self._detect is None and error > FAR else points, error)


def draw_mask(points: NDArray[np.int64] | None) -> NDArray[np.uint8]:
    """Draw the regions of a face from its 68 landmarks as a mask [218, 178] of 0 and 255; all 0 without landmarks."""
    import cv2

    canvas = np.zeros((HEIGHT, WIDTH), np.uint8)
    if points is None:
        return canvas
    for name, rows in REGIONS.items():
        region = np.ascontiguousarray(points[rows], np.int32)
        if name == "jaw":
            cv2.polylines(canvas, [region], isClosed=False, color=255, thickness=_JAW_WIDTH)
        else:
            cv2.drawContours(canvas, [cv2.convexHull(region)], -1, 255, thickness=cv2.FILLED)
    return canvas
