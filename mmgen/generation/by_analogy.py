"""Pictures for descriptions from pictures that are there, whose words are changed (``mmgen sample --like``)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mmgen.artifacts import Dataset
from mmgen.artifacts.elements import FILLED
from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.progress import Watch
from mmgen.descriptions import format_query
from mmgen.generation.analogies import Analogies
from mmgen.generation.classifiers import classify_images
from mmgen.generation.descriptions import parse_descriptions
from mmgen.generation.draws import Draws, format_share_correct, load_judge
from mmgen.generation.fill_gaps import find_pictures, read_analogies
from mmgen.generation.image_analogy import Picture
from mmgen.generation.translations import TranslationStart, read_start_pictures

if TYPE_CHECKING:
    from mmgen.classifier import Classifier
    from mmgen.generation.trained_model import TrainedModel

ANALOGY = "analogy"
"""Name of the source of such pictures, where others have that of a posterior."""
NEAREST = "nearest"


def draw_by_analogy(
    loaded: "TrainedModel",
    texts: Sequence[str],
    number: int,
    like: str,
    watch: Watch,
    *,
    seed: int = 0,
    classifier_path: Path | None = None,
    neighbour: Path | None = None,
) -> "tuple[Draws, Classifier | None]":
    """Change the words of pictures to those of descriptions; words that these leave open stay as they are.

    Args:
        loaded: A model, which names the dataset and the attributes.
        texts: Descriptions of attributes, without operators.
        number: Pictures of each description.
        like: A picture file, or "nearest" for the training pictures with most of the words.
        watch: Receives what each picture began from.
        seed: Seed of the choice of training pictures.
        classifier_path: A classifier's file; by default one is searched near the model.
        neighbour: A further file whose folder is searched.

    Raises:
        UsageError: The dataset has no pictures with attributes, or none show how a word changes.
    """
    descriptions = parse_descriptions(loaded, texts)
    if loaded.attributes is None or any(descriptions.expression(row) is not None for row in range(len(descriptions))):
        raise UsageError(f"--like got {texts[0]!r}, expected attributes without NOT and OR; name the words to change")
    with Dataset.open(loaded.dataset_path()) as data:
        image, attributes = find_pictures(data)
        scheme = loaded.settings.data.split
        analogies, rows = read_analogies(data, image, attributes, scheme, seed)
        codes, pixels = data.read_attributes(attributes, rows), data.read_pixels(image, rows)
        drawn_before = _read_filled(data, image, attributes, rows)
    own = None if like == NEAREST else _read_picture(loaded, image, like, seed)
    if own is not None and number > 1:
        raise UsageError(f"--number got {number}, expected 1 with one picture to change; leave it out")
    drawn = []
    for text, code in zip(texts, descriptions.codes, strict=True):
        found = _change_own(analogies, codes, own, code) if own is not None else []
        if own is None and number == 1 and tuple(code.tolist()) in drawn_before:
            found = [drawn_before[tuple(code.tolist())]]
        elif own is None:
            found = _change_nearest(analogies, codes, pixels, code, number)
        if len(found) < number:
            raise UsageError(
                f"--given got {text!r}, for which {len(found)} of {number} pictures can be changed: no training "
                "pictures differ in its words alone; ask for other words or fewer pictures, or draw without --like"
            )
        for _, source, changed in found:
            words = format_query(codes[source], loaded.attributes)
            names = ", ".join(loaded.attributes.names[each] for each in changed) or "nothing"
            watch.say(f"{text or 'any'}: began from row {rows[source]} ({words}), changed {names}")
        drawn.append([picture for picture, _, _ in found])
    pictures = np.stack(drawn).astype(np.float32)
    file, classifier, notice = load_judge(loaded, classifier_path, neighbour)
    flat = pictures.reshape(-1, *pictures.shape[2:])
    hints = np.repeat(descriptions.codes, number, 0)
    predicted = None if classifier is None else classify_images(classifier, flat, hints).reshape(len(texts), number, -1)
    z = np.zeros((*pictures.shape[:2], 0), np.float32)
    draws = Draws(ANALOGY, seed, descriptions, {image: (pictures, pictures)}, z, predicted, name="by analogy")
    verdict = format_share_correct(draws)
    for remark in (notice, f"the judge {file} finds {verdict}" if file and verdict else ""):
        if remark:
            watch.say(remark)
    return draws, classifier


Changed = tuple[Picture, int, tuple[int, ...]]
"""A picture, the place of the training picture that it began from or is most like, and the attributes changed."""


def _read_filled(data: Dataset, image: str, attributes: str, rows: np.ndarray) -> dict[tuple[int, ...], Changed]:
    """Return the pictures that ``mmgen fill-gaps`` has added, the first of each combination."""
    if FILLED not in data.factors:
        return {}
    origins = data.read_factor(FILLED)
    added = np.flatnonzero(origins >= 0)[::-1]
    codes, pixels = data.read_attributes(attributes, added), data.read_pixels(image, added)
    places = {int(row): place for place, row in enumerate(rows)}
    changed = [np.flatnonzero(one) for one in codes != data.read_attributes(attributes, origins[added])]
    return {
        tuple(code): (picture, places[origin], tuple(names.tolist()))
        for code, picture, origin, names in zip(codes.tolist(), pixels, origins[added].tolist(), changed, strict=True)
        if origin in places
    }


def _read_picture(loaded: "TrainedModel", image: str, like: str, seed: int) -> Picture:
    start = TranslationStart((image,), Path(like))
    return np.asarray(read_start_pictures(loaded, start, 1, seed).pictures[image][0], np.float32)


def _change_own(analogies: Analogies, codes: np.ndarray, picture: Picture, code: np.ndarray) -> list[Changed]:
    source = analogies.nearest(picture)
    edited = analogies.edit(picture, codes[source].tolist(), code.tolist())
    return [] if edited is None else [(edited[0], source, edited[1])]


def _change_nearest(
    analogies: Analogies, codes: np.ndarray, pixels: np.ndarray, code: np.ndarray, number: int
) -> list[Changed]:
    """Change the training pictures that have most of the words; one alone is the median over several."""
    is_gap = (code != UNKNOWN).all() and not (codes == code).all(1).any()
    if number == 1 and is_gap and (filled := analogies.fill(code.tolist())):
        return [(one.picture, one.source, one.changed) for one in filled]
    given = code != UNKNOWN
    known = (codes != UNKNOWN).all(1)
    found: list[Changed] = []
    for source in np.argsort(-(codes[:, given] == code[given]).sum(1) + 1000 * ~known, kind="stable").tolist():
        if len(found) == number or not known[source]:
            break
        edited = analogies.edit(pixels[source], codes[source].tolist(), code.tolist())
        if edited is not None:
            found.append((edited[0], source, edited[1]))
    return found
