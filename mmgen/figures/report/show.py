"""Contact sheets, as ``mmgen show`` draws them: a picture of many images of a file."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mmgen.artifacts import Dataset, find_parent, read_header
from mmgen.core.errors import UsageError, format_unknown_name
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator
from mmgen.descriptions import format_caption, format_values, is_caption, parse
from mmgen.figures.drawing.blocks import picture_page
from mmgen.figures.drawing.page import SENTENCE_TILE, TILE, Grid
from mmgen.figures.drawing.samples import explain_red_frames
from mmgen.figures.drawing.tables import image_grid, strip_blocks
from mmgen.generation.classifiers import classify_images, format_mismatches, has_mismatch
from mmgen.generation.examples import read_pictures


def _read_main_images(data: Dataset, rows: np.ndarray) -> np.ndarray:
    """Read the main modality of the examples ``rows``, such as images float32 [n, C, H, W] in [0, 1]."""
    return next(iter(read_pictures(data, rows, list(data.observed)[:1]).values()))


def _random_rows(rows: np.ndarray, count: int, seed: int) -> np.ndarray:
    chosen = numpy_generator(seed, "contact sheet").choice(len(rows), min(count, len(rows)), replace=False)
    return np.sort(rows[chosen])


def _rows_of(data: Dataset, words: str) -> np.ndarray:
    """Return the examples whose attributes a description allows, or whose captions have all of its words."""
    every = np.arange(data.size)
    if data.attributes and not (data.texts and is_caption(words)):
        info = next(iter(data.attributes.values()))
        fits = parse(words, info).matches(data.read_attributes(info.name, every))
    elif data.texts:
        text = next(iter(data.texts.values()))
        asked = words.split()
        if unknown := [word for word in asked if word not in text.vocabulary]:
            raise UsageError(format_unknown_name("word", unknown[0], list(text.vocabulary)))
        tokens = data.read_text(text.name, every)
        fits = np.ones(data.size, np.bool_)
        for word in asked:
            fits &= (tokens == text.vocabulary.index(word)).any(1)
    else:
        raise UsageError(f"{data.path} has neither attributes nor text, so --given chooses nothing; leave it out")
    if not fits.any():
        raise UsageError(f"no example of {data.path} is '{words}'; give another description")
    return every[fits]


def _draw_dataset(path: Path, count: int, seed: int, given: str | None) -> Grid:
    with Dataset.open(path) as data:
        shown = [name for name, each in data.observed.items() if each.picture_shape is not None]
        if not shown:
            raise UsageError(f"{path} has no images, which a contact sheet needs; choose a dataset of images")
        fitting = np.arange(data.size) if given is None else _rows_of(data, given)
        rows = _random_rows(fitting, count, seed)
        captions = None
        if data.texts:
            text = next(iter(data.texts.values()))
            captions = [format_caption(tokens, text) for tokens in data.read_text(text.name, rows)]
        elif data.attributes:
            info = next(iter(data.attributes.values()))
            captions = [format_values(codes, info) for codes in data.read_attributes(info.name, rows)]
        of = f"examples that are '{given}', of {data.size:,} in all" if given is not None else "examples"
        note = f"{len(rows)} of {len(fitting):,} {of}, drawn at random with seed {seed}."
        tile = SENTENCE_TILE if data.texts else TILE
        pictures = read_pictures(data, rows, shown if not data.images else ())
        pictures = {name: data.observed[name].picture(values) for name, values in pictures.items()}
        return _draw_examples(pictures, captions, title=path.name, note=note, tile=tile)


def _draw_examples(
    pictures: Mapping[str, np.ndarray],
    captions: Sequence[str] | None,
    *,
    wrong: np.ndarray | None = None,
    title: str,
    note: str,
    tile: int = TILE,
) -> Grid:
    """Draw examples with captions: below the picture, or on the left if examples have several kinds of pictures."""
    if len(pictures) > 1:
        return picture_page(strip_blocks(pictures, captions or (), wrong=wrong), title=title, note=note)
    images = next(iter(pictures.values()))
    return image_grid(images, captions=captions, wrong=wrong, title=title, note=note, tile=tile)


def _draw_samples(path: Path, count: int) -> Grid:
    from mmgen.artifacts.samples import read_samples

    samples = read_samples(path)
    shown = slice(0, count)
    asked, judged = samples.attributes[shown], samples.attributes_judged
    wrong = None if judged is None else has_mismatch(asked, judged[shown])
    captions, said, tile = None, "", TILE
    texts, words = samples.text if samples.text is not None else samples.text_asked, samples.text_info
    if texts is not None and words is not None:
        captions, tile = [format_caption(tokens, words) for tokens in texts[shown]], SENTENCE_TILE
        said = "Words: drawn with the picture. " if samples.text is not None else "Words: the description. "
    elif samples.info is not None and (asked != UNKNOWN).any():
        captions = [format_values(codes, samples.info) for codes in asked]
    pictures = {samples.image: samples.images[shown]}
    pictures |= {name: means[shown] for name, (means, _) in samples.further.items()}
    note = f"{len(asked)} of {len(samples.images):,} samples, seed {samples.header.seed}. {said}"
    note += explain_red_frames(None if judged is None else {})
    return _draw_examples(pictures, captions, wrong=wrong, title=path.name, note=note, tile=tile)


def _draw_classifier_mistakes(path: Path, count: int, seed: int) -> Grid:
    """Draw test images, with red frames around those that the classifier misreads."""
    from mmgen.classifier import load_classifier

    judge = load_classifier(path)
    with Dataset.open(find_parent(path, "dataset")) as data:
        rows = data.split(data.default_scheme, "test") if data.schemes else np.arange(data.size)
        rows = _random_rows(rows, count, seed)
        images = _read_main_images(data, rows)
        info, described = next(iter(data.attributes.values())), next(iter(data.observed.values()))
        codes = data.read_attributes(info.name, rows)
    seen = classify_images(judge, images, codes)
    wrong = has_mismatch(codes, seen)
    remarks = [format_mismatches(a, b, info) for a, b in zip(codes, seen, strict=True)]
    accuracy = ", ".join(f"{name} {value:.1f} %" for name, value in judge.accuracy.items())
    return image_grid(
        described.picture(images),
        captions=[format_values(row, info) for row in codes],
        remarks=remarks,
        wrong=wrong,
        title=path.name,
        note=f"{len(rows)} test images, seed {seed}. Red frame: the judge misreads at least one attribute. "
        f"Held-out accuracy: {accuracy or 'not measured'}.",
    )


def draw_contact_sheet(path: Path, count: int = 32, seed: int = 0, given: str | None = None) -> Grid:
    """Draw a contact sheet of the images that a file holds, or that a classifier reads.

    Args:
        path: A dataset (random examples), samples (the first ones), or a classifier (test images, framed red if it
            misreads them).
        count: Largest number of images.
        seed: Seed of the choice.
        given: Description of the examples of a dataset to choose from; all by default.

    Raises:
        UsageError: This kind of file has no images, or no example fits the description.
    """
    kind = read_header(path).kind
    if kind == "dataset":
        return _draw_dataset(path, count, seed, given)
    if given is not None:
        raise UsageError(f"--given chooses examples of a dataset, got {path}, of kind {kind}; leave it out")
    if kind == "samples":
        return _draw_samples(path, count)
    if kind == "classifier":
        return _draw_classifier_mistakes(path, count, seed)
    way = (
        f"draw some with mmgen sample {path}" if kind in ("model", "aggregate", "sharpener") else "choose another file"
    )
    raise UsageError(
        f"{path} is of kind {kind}, which holds no images, expected a dataset, samples or a classifier; {way}"
    )
