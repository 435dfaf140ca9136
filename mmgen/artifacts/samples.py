"""Samples: values drawn from a model, such as images; other values and texts of the same z, the descriptions, and z."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mmgen.artifacts.bundle import Bundle
from mmgen.artifacts.elements import NAME
from mmgen.artifacts.header import Header
from mmgen.settings.arguments import check_arguments

if TYPE_CHECKING:
    from mmgen.modalities.attributes import AttributesDescription
    from mmgen.modalities.text import TextDescription


@dataclass(frozen=True)
class Samples:
    """n images drawn from a model, or values of another kind, with their attribute or word codes and latents.

    Attributes:
        header: Header of the file.
        images: float32 [n, C, H, W] in [0, 1], the mean of p(image | z); of another kind float32 [n, ...].
        images_sampled: uint8 [n, C, H, W], 0 to 255, a draw from p(image | z); of another kind float32 [n, ...]; None
            if there was none.
        attributes: uint8 [n, A], the given attributes; 255 for those that were not given.
        attributes_judged: uint8 [n, A], the classifier's reading; None without a classifier.
        attributes_completed: uint8 [n, A], the whole descriptions that z was drawn from; None if none had open words.
        z: float32 [n, D].
        info: Names of the attributes and their values; None if they were not recorded.
        image: Modality of ``images``; "" if it was not recorded.
        further: Images of other modalities decoded from the same z, by name: the mean as ``images``, a draw as
            ``images_sampled``.
        text: uint16 [n, T], texts drawn from the same z; None if there are none.
        text_asked: uint16 [n, T], the given texts; None if none were given.
        text_info: Vocabulary of both.
    """

    header: Header
    images: np.ndarray
    images_sampled: np.ndarray | None
    attributes: np.ndarray
    attributes_judged: np.ndarray | None
    z: np.ndarray
    info: "AttributesDescription | None"
    attributes_completed: np.ndarray | None = None
    image: str = ""
    further: Mapping[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    text: np.ndarray | None = None
    text_asked: np.ndarray | None = None
    text_info: "TextDescription | None" = None


@dataclass(frozen=True)
class _Texts:
    """Texts and shape of a modality in a file of samples, see :class:`mmgen.modalities._base.Element`."""

    location: str
    texts: Mapping[str, str]
    rows: tuple[int, ...]

    def text(self, name: str) -> str:
        return self.texts[name]

    def shape(self, array: str = "") -> tuple[int, ...]:
        return self.rows


_PIXELS = ("float32", "uint8")
_CODES, _WORDS = (("uint8",), 2), (("uint16",), 2)
_FORM = Bundle(
    "samples",
    {
        "images": (("float32",), None), "images_sampled": (_PIXELS, None), "attributes": _CODES,
        "attributes_judged": _CODES, "attributes_completed": _CODES, "z": (("float32",), 2), "text": _WORDS,
        "text_asked": _WORDS, "images.*": (("float32",), None), "images_sampled.*": (_PIXELS, None),
    },
    ("name", "names", "values", "image", "text_name", "vocabulary", "slots"),
    frozenset([
        "images_sampled", "attributes_judged", "attributes_completed", "text", "text_asked", "image", "text_name",
        "vocabulary", "slots",
    ]),
)  # fmt: skip


def write_samples(
    path: Path,
    *,
    images: np.ndarray,
    attributes: np.ndarray,
    z: np.ndarray,
    images_sampled: np.ndarray | None = None,
    attributes_judged: np.ndarray | None = None,
    attributes_completed: np.ndarray | None = None,
    info: "AttributesDescription | None" = None,
    image: str = "",
    further: Mapping[str, tuple[np.ndarray, np.ndarray]] | None = None,
    text: np.ndarray | None = None,
    text_asked: np.ndarray | None = None,
    text_info: "TextDescription | None" = None,
    **recorded: Any,
) -> Header:
    """Write samples of a model to a file; a failed write leaves no file. Arguments are as in :class:`Samples`.

    ``recorded`` are ``settings``, ``seed``, ``parents``, ``facts`` and ``command`` of the header.

    Returns:
        The header as it was written.

    Raises:
        ArtifactError: The file system refuses.
    """
    arrays: dict[str, np.ndarray | None] = {
        "images": images, "images_sampled": images_sampled, "attributes": attributes,
        "attributes_judged": attributes_judged, "attributes_completed": attributes_completed, "z": z, "text": text,
        "text_asked": text_asked,
    }  # fmt: skip
    for name, (means, sampled) in (further or {}).items():
        if not NAME.match(name):
            raise ValueError(f"'{name}' is no valid name of a modality, expected letters, digits, _, . and -")
        arrays |= {f"images.{name}": means, f"images_sampled.{name}": sampled}
    texts = {"name": "", "names": "", "values": ""}
    if info is not None:
        texts = {"name": info.name, **info.text_attributes()}
    if image:
        texts["image"] = image
    if text_info is not None and (text is not None or text_asked is not None):
        texts |= {"text_name": text_info.name, **text_info.text_attributes()}
    return _FORM.write(path, arrays, texts, **recorded)


@check_arguments
def read_samples(path: str | Path) -> Samples:
    """Read a file of samples, verified against its content id.

    Raises:
        ArtifactError: It is no readable samples file.
    """
    from mmgen.modalities.attributes import AttributesDescription
    from mmgen.modalities.text import TextDescription

    path = Path(path)
    header, arrays, texts = _FORM.read(path)
    info = None
    if texts["names"]:
        info = AttributesDescription.read(texts["name"], _Texts(str(path), texts, arrays["attributes"].shape))
    text, asked = arrays.get("text"), arrays.get("text_asked")
    words = next((array for array in (text, asked) if array is not None), None)
    text_info = None
    if words is not None and {"text_name", "vocabulary", "slots"} <= texts.keys():
        text_info = TextDescription.read(texts["text_name"], _Texts(f"{path}: text", texts, words.shape))
    samples = Samples(
        header,
        arrays["images"],
        arrays.get("images_sampled"),
        arrays["attributes"],
        arrays.get("attributes_judged"),
        arrays["z"],
        info,
        arrays.get("attributes_completed"),
        texts.get("image", ""),
        _read_further_images(arrays),
        text,
        asked,
        text_info,
    )
    _FORM.require(path, _is_consistent(samples, arrays))
    return samples


def _read_further_images(arrays: Mapping[str, np.ndarray]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the (mean, draw) arrays of each further image modality that has both."""
    names = [name.removeprefix("images.") for name in arrays if name.startswith("images.")]
    return {
        name: (arrays[f"images.{name}"], arrays[f"images_sampled.{name}"])
        for name in names
        if f"images_sampled.{name}" in arrays
    }


def _is_consistent(samples: Samples, arrays: Mapping[str, np.ndarray]) -> bool:
    """Return True if the shapes of all arrays fit together and all codes are valid."""
    info, words, sampled = samples.info, samples.text_info, samples.images_sampled
    codes = [samples.attributes, samples.attributes_judged, samples.attributes_completed]
    known = [each for each in codes if each is not None]
    texts = [each for each in (samples.text, samples.text_asked) if each is not None]
    return (
        (sampled is None or sampled.shape == samples.images.shape)
        and 2 * len(samples.further) == sum("." in name for name in arrays)
        and all(NAME.match(name) for name in samples.further)
        and all(means.shape == draws.shape for means, draws in samples.further.values())
        and len({each.shape for each in known}) == 1
        and (info is None or samples.attributes.shape[1] == len(info.names))
        and (info is None or not any(info.find_fault(each) for each in known))
        and len({each.shape for each in texts}) <= 1
        and (words is None or not any(words.find_fault(each) for each in texts))
    )
