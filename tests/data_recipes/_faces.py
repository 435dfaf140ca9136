"""Stand-ins for CelebA: drawn faces and a portrait from scikit-image, in files of CelebA's names and formats.

    python -m tests.data_recipes._faces FOLDER [--number N] [--zipped images|all]

Every drawn face shows what its attributes say where that can be drawn (hair, glasses, hat, smile ...); the other
attributes are random. Nothing of CelebA is in here.
"""

import argparse
import io
import warnings
import zipfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from mmgen.data_recipes._celeba._source import ALL_ATTRIBUTES
from tests.data_recipes._drawn_face import HAIR, HEIGHT, WIDTH, draw_face

ALIGNED = np.array([[69.5, 111.5], [108.0, 111.5], [88.5, 135.0], [72.5, 152.0], [105.5, 152.0]])
"""Eyes, nose tip and mouth corners [5, 2] where CelebA's alignment puts them, roughly."""

_POINTS = [f"{point}_{axis}" for point in ("lefteye", "righteye", "nose", "leftmouth", "rightmouth") for axis in "xy"]
_FREQUENCY = {
    "Male": 0.42, "Eyeglasses": 0.15, "Smiling": 0.48, "Mouth_Slightly_Open": 0.4, "Wearing_Hat": 0.1, "Bangs": 0.2,
    "Bald": 0.06, "Bushy_Eyebrows": 0.2, "Pale_Skin": 0.12, "Heavy_Makeup": 0.35, "Mustache": 0.2, "Wavy_Hair": 0.3,
}  # fmt: skip
_SKINS = ((222, 182, 152), (196, 146, 112), (136, 92, 66))
_PORTRAIT = np.array([[203.3, 101.3], [246.7, 103.5], [224.5, 126.7], [203.3, 139.7], [245.3, 140.3]])
_PORTRAIT_EVERY = 20
_NO_FACE = 7  # which image the fault "no-face" makes empty

Fault = Literal[
    "truncated", "not-a-jpeg", "small", "no-face", "missing-image", "extra-image", "wrong-count", "wrong-list",
    "wrong-value", "missing-partition", "missing-part", "duplicate-name", "duplicate-image", "traversal", "damaged-zip",
    "other-names", "missing-landmarks", "far-point",
]  # fmt: skip


@dataclass(frozen=True)
class Face:
    """A picture of 178 x 218, all 40 attributes (0 or 1), and true points: eyes, nose tip, mouth corners [5, 2]."""

    image: Image.Image
    attributes: np.ndarray
    points: np.ndarray


def draw_attributes(random: np.random.Generator) -> dict[str, bool]:
    """Attributes of a face that could be."""
    has = {name: bool(random.random() < _FREQUENCY.get(name, 0.25)) for name in ALL_ATTRIBUTES}
    has["Bald"] &= has["Male"]
    colour = random.choice(list(HAIR))
    has |= {name: name == colour and not has["Bald"] for name in HAIR}
    has["Heavy_Makeup"] &= not has["Male"]
    has["Mustache"] &= has["Male"]
    has["Bangs"] &= not has["Bald"] and not has["Wearing_Hat"]
    has["Wavy_Hair"] &= not has["Bald"]
    has["Straight_Hair"] &= not has["Wavy_Hair"] and not has["Bald"]
    return has


def drawn_face(seed: int, jitter: float = 1.5) -> Face:
    """A face drawn from a seed; ``jitter`` is how far, in pixels, its points lie from where alignment puts them."""
    random = np.random.default_rng(seed)
    has = draw_attributes(random)
    angle, scale, middle = random.normal(0, 0.03), random.normal(1, 0.03), ALIGNED.mean(axis=0)
    turn = scale * np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    own = ALIGNED - middle + random.normal(0, jitter / 2, (5, 2)) * [1, 0.5]
    points = own @ turn + middle + random.normal(0, jitter / 2, 2)
    skin = np.array((238, 212, 196) if has["Pale_Skin"] else random.choice(_SKINS)) + random.normal(0, 4, 3)
    image = draw_face(points, has, skin, random)
    return Face(image, np.array([has[name] for name in ALL_ATTRIBUTES], np.uint8), points)


@lru_cache(maxsize=1)
def _astronaut() -> Image.Image | None:
    """NASA's portrait of Eileen Collins, in the public domain; None without scikit-image."""
    try:
        from skimage.data import astronaut
    except ImportError:
        return None
    return Image.fromarray(astronaut())


def portrait(seed: int) -> Face | None:
    """A photograph moved to where CelebA's faces are, a little turned and brightened by the seed."""
    photograph = _astronaut()
    if photograph is None:
        return None
    random = np.random.default_rng(seed)
    angle, scale = random.normal(0, 0.05), random.normal(1, 0.03)
    turn = scale * np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    target = (ALIGNED - ALIGNED.mean(axis=0)) @ turn + ALIGNED.mean(axis=0)
    # The similarity, as a complex line w = a z + b, that takes points of the picture to the photograph.
    z, w = target @ [1, 1j], _PORTRAIT @ [1, 1j]
    a = np.vdot(z - z.mean(), w - w.mean()) / np.vdot(z - z.mean(), z - z.mean())
    b = w.mean() - a * z.mean()
    data = (a.real, -a.imag, b.real, a.imag, a.real, b.imag)
    size, transform = (WIDTH, HEIGHT), Image.Transform.AFFINE
    image = photograph.transform(size, transform, data, Image.Resampling.BICUBIC, fillcolor=(128, 128, 128))
    bright = np.clip(np.asarray(image, float) * random.uniform(0.8, 1.15), 0, 255).astype(np.uint8)
    has = {"Smiling", "Brown_Hair", "Wavy_Hair", "Mouth_Slightly_Open", "Young", "High_Cheekbones"}
    there = (w - b) / a
    points = np.stack([there.real, there.imag], axis=1)
    return Face(Image.fromarray(bright), np.array([name in has for name in ALL_ATTRIBUTES], np.uint8), points)


def face(i: int) -> Face:
    """Face i of the small CelebA: a drawn one, and now and then a portrait."""
    return (portrait(i) if i % _PORTRAIT_EVERY == _PORTRAIT_EVERY - 1 else None) or drawn_face(i)


def jpeg(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


@dataclass(frozen=True)
class _Entry:
    file: bytes
    attributes: tuple[int, ...]
    points: tuple[int, ...]


@lru_cache(maxsize=256)  # tests build many small ones
def _entry(i: int) -> _Entry:
    one = face(i)
    return _Entry(
        jpeg(one.image), tuple(one.attributes.tolist()), tuple(np.rint(one.points).astype(int).ravel().tolist())
    )


def build_celeba(
    folder: Path,
    number: int,
    *,
    zipped: Literal["no", "images", "all"] = "no",
    lists: Literal["txt", "csv"] = "txt",
    faults: Collection[Fault] = (),
) -> Path:
    """A small CelebA in a new or empty folder.

    Args:
        folder: Where to build it.
        number: Images; 80 % are train, 10 % val, 10 % test, in this order as in CelebA.
        zipped: "no" has the images in a folder, "images" in img_align_celeba.zip, "all" has all in one zip.
        lists: "txt" as published, in folders Anno and Eval; "csv" as Kaggle has them.
        faults: What is wrong with it. Faults of single images hit image 3 (and "no-face" image 8).

    Returns:
        What ``--celeba`` takes.
    """
    people = [_entry(i) for i in range(number)]
    images = [(f"Img/img_align_celeba/{i + 1:06d}.jpg", person.file) for i, person in enumerate(people)]
    name, data = images[2]
    if "no-face" in faults:
        ramp = np.linspace(0, 255, HEIGHT, dtype=np.uint8)[:, None, None]
        empty = np.broadcast_to(ramp, (HEIGHT, WIDTH, 3)).copy()
        images[_NO_FACE] = images[_NO_FACE][0], jpeg(Image.fromarray(empty))
    if "truncated" in faults:
        images[2] = name, data[: len(data) // 2]
    if "not-a-jpeg" in faults:
        images[2] = name, b"This is not a picture."
    if "small" in faults:
        images[2] = name, jpeg(Image.new("RGB", (64, 64)))
    if "missing-image" in faults:
        del images[2]
    if "extra-image" in faults:
        images.append((f"Img/img_align_celeba/{number + 1:06d}.jpg", data))
    if "duplicate-image" in faults:
        images.append((name if zipped != "no" else name.replace("Img", "More"), data))
    if "traversal" in faults:
        images.append(("../../outside.txt", b"out"))
        images.append((f"../../Img/img_align_celeba/{number + 1:06d}.jpg", data))
    files = [(path, text.encode()) for path, text in _lists(people, lists, faults)]
    folder.mkdir(parents=True, exist_ok=True)
    if zipped == "all":
        return _zip(folder / "celeba.zip", files + images, faults)
    if zipped == "images":
        (folder / "Img").mkdir()
        _zip(folder / "Img" / "img_align_celeba.zip", [(path[4:], data) for path, data in images], faults)
        images = []
    for path, data in files + images:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def _lists(people: list[_Entry], kind: str, faults: Collection[Fault]) -> Iterator[tuple[str, str]]:
    number = len(people)
    names = [f"{i + 1:06d}.jpg" for i in range(number)]
    parts = [0 if i < 0.8 * number else 1 if i < 0.9 * number else 2 for i in range(number)]
    attributes = [[2 * value - 1 for value in person.attributes] for person in people]
    points = [list(person.points) for person in people]
    if "wrong-value" in faults:
        attributes[2][5] = 7
    if "far-point" in faults:
        points[2][4] = 99_999_999
    if "missing-part" in faults:
        parts = [0 if part == 2 else part for part in parts]
    if "duplicate-name" in faults:
        names[3] = names[2]
    # Where the list of parts differs from the others on purpose, it names images that they do not.
    others = ["9" + name[1:] for name in names] if "other-names" in faults else names
    columns = list(ALL_ATTRIBUTES) if "wrong-list" not in faults else list(reversed(ALL_ATTRIBUTES))
    tables = [
        ("Anno", "list_attr_celeba", names, columns, attributes),
        ("Anno", "list_landmarks_align_celeba", names, _POINTS, points),
        ("Eval", "list_eval_partition", others, ["partition"], [[part] for part in parts]),
    ]
    for folder, name, images, head, rows in tables:
        lacking = {"missing-partition": "list_eval_partition", "missing-landmarks": "list_landmarks_align_celeba"}
        if any(fault in faults and lacking[fault] == name for fault in lacking):
            continue
        if kind == "csv":
            lines = [",".join(["image_id", *head])]
            lines += [",".join(map(str, [image, *row])) for image, row in zip(images, rows, strict=True)]
            yield f"{name}.csv", "\n".join(lines) + "\n"
            continue
        count = number + 1 if "wrong-count" in faults else number
        lines = [] if name == "list_eval_partition" else [str(count), " ".join(head)]
        lines += [" ".join(f"{cell!s:>2}" for cell in [image, *row]) for image, row in zip(images, rows, strict=True)]
        yield f"{folder}/{name}.txt", "\r\n".join(lines) + "\r\n"


def _zip(path: Path, files: list[tuple[str, bytes]], faults: Collection[Fault]) -> Path:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # of a name that is there twice, which is meant
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    if "damaged-zip" in faults:
        whole = path.read_bytes()
        at = whole.index(b"000003.jpg") + 40  # within the data of that image
        path.write_bytes(whole[:at] + bytes(64) + whole[at + 64 :])
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--number", type=int, default=2000)
    parser.add_argument("--zipped", choices=["no", "images", "all"], default="no")
    options = parser.parse_args()
    print(build_celeba(options.folder, options.number, zipped=options.zipped))


if __name__ == "__main__":
    main()
