"""CelebA-transforms: faces of celebrities, in grey, as edges, as a mask of landmarks, half black, and under writing.

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, NeurIPS 2018), Section 6 ("WG")
"""

from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from mmgen.core.progress import Work
from mmgen.data_recipes._base import Rows
from mmgen.data_recipes._celeba._landmarks import (
    Detector,
    FaceFinder,
    add_watermark,
    blacken_right_half,
    detect_edges,
    draw_mask,
    fetch_predictor,
    load_predictor,
    require_faces_extra,
)
from mmgen.data_recipes._celeba._recipe import CelebaRecipe, Faces
from mmgen.data_recipes._celeba._source import LandmarkUse, Source

__all__ = ["CelebaTransforms"]

_CHANNELS = {"image": 3, "grayscale": 1, "edges": 1, "mask": 1, "completion": 3, "watermark": 3}


class CelebaTransforms(CelebaRecipe):
    """CelebA's aligned images and five pictures made from each: six modalities, and the 18 attributes."""

    detector: Detector = "dlib"
    """Search for faces: by dlib's detector, or aligned, at CelebA's list of landmarks."""

    landmarks: Annotated[Path | None, Field(exclude=True)] = None
    """dlib's predictor of 68 landmarks; by default that of the extra faces."""

    sigma: Annotated[float, Field(gt=0, le=20, allow_inf_nan=False)] = 3.0
    """Smoothing before edges are found, in pixels of the whole picture."""

    drop_faceless: bool = False
    """Leave out images without a face, instead of giving them a black mask."""

    name: ClassVar[str] = "celeba-transforms"
    finds_faces: ClassVar[bool] = True

    @property
    def landmark_use(self) -> LandmarkUse:
        return "needed" if self.detector == "aligned" else "optional"

    def setup_work(self) -> Work[Path] | None:
        folder = self.require_celeba()
        require_faces_extra()
        fetching = fetch_predictor(self.landmarks)
        if fetching is not None:
            Source(folder, self.landmark_use).close()  # what is wrong there is refused before anything long
        return fetching

    def face_model_hashes(self) -> dict[str, str]:
        require_faces_extra()
        return {"landmarks_sha256": load_predictor(self.landmarks)[1]}

    def add_columns(self, writer: Any) -> None:
        for name, channels in _CHANNELS.items():
            writer.add_image(name, (channels, self.size, self.size), "bytes")
        meaning = "whether a face was found: 0 no (and the mask is black), 1 yes"
        writer.add_factor("face_found", np.uint8, "", meaning)
        meaning = "x and y of the 68 landmarks in the whole picture of 178 x 218; NaN without a face"
        writer.add_factor("landmarks", np.float32, "pixel", meaning, (68, 2))
        meaning = "mean distance of eyes, nose tip and mouth corners from CelebA's own landmarks; NaN where not known"
        writer.add_factor("landmark_error", np.float32, "pixel", meaning)

    def make_columns(self, faces: Faces) -> Rows:
        finder = FaceFinder(self.detector, self.landmarks, faces.model_hashes["landmarks_sha256"])
        greys = [image.convert("L") for image in faces.images]
        five = [None] * len(greys) if faces.lists.points is None else list(faces.lists.points)
        found = [finder.find(np.asarray(grey), points) for grey, points in zip(greys, five, strict=True)]
        picture = self.fit_pictures(faces.images)
        pictures: dict[str, NDArray[Any]] = {
            "image": picture,
            "grayscale": self.fit_pictures(greys),
            "edges": self.fit_pictures([detect_edges(grey, self.sigma) for grey in greys]),
            "mask": self.fit_pictures([Image.fromarray(draw_mask(face.points)) for face in found]),
            "completion": np.stack([blacken_right_half(one) for one in picture]),
            "watermark": np.stack([add_watermark(one) for one in picture]),
        }
        missing = np.full((68, 2), np.nan)
        factors: dict[str, NDArray[Any]] = {
            "face_found": np.array([face.points is not None for face in found], np.uint8),
            "landmarks": np.array([missing if face.points is None else face.points for face in found], np.float32),
            "landmark_error": np.array([face.error for face in found], np.float32),
        }
        return Rows(pictures, factors)

    @property
    def faceless_advice(self) -> str:
        other = "aligned" if self.detector == "dlib" else "dlib"
        return f"try --detector {other}"

    def storage_mask(self, rows: Rows) -> NDArray[np.bool_]:
        return rows.factors["face_found"] > 0 if self.drop_faceless else super().storage_mask(rows)
