"""Contact sheets, as ``mmgen show`` draws them: a picture of many images of a file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mmgen.artifacts import Dataset, find_parent, read_header
from mmgen.artifacts.header import KINDS
from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator
from mmgen.descriptions import format_caption, format_values
from mmgen.figures.drawing.blocks import picture_page
from mmgen.figures.drawing.page import SENTENCE_TILE, TILE, Grid
from mmgen.figures.drawing.samples import explain_red_frames
from mmgen.figures.drawing.tables import image_grid, strip_blocks
from mmgen.generation.classifiers import classify_images, format_mismatches, has_mismatch
from mmgen.generation.concepts import choose_concepts
from mmgen.generation.descriptions import Descriptions, complete_descriptions, empty_description
from mmgen.generation.draws import convert_draws_to_pictures, draw
from mmgen.generation.examples import read_pictures

if TYPE_CHECKING:
    from mmgen.generation import TrainedModel


def _read_main_images(data: Dataset, rows: np.ndarray) -> np.ndarray:
    """Read the main modality of the examples ``rows``, such as images float32 [n, C, H, W] in [0, 1]."""
    return next(iter(read_pictures(data, rows, list(data.observed)[:1]).values()))


def _random_rows(data: Dataset, split: str | None, count: int, seed: int) -> np.ndarray:
    rows = data.split(data.default_scheme, split) if split and data.schemes else np.arange(data.size)
    chosen = numpy_generator(seed, "contact sheet").choice(len(rows), min(count, len(rows)), replace=False)
    return np.sort(rows[chosen])


def _draw_dataset(path: Path, count: int, seed: int) -> Grid:
    with Dataset.open(path) as data:
        shown = [name for name, each in data.observed.items() if each.picture_shape is not None]
        if not shown:
            raise UsageError(f"{path} has no images, which a contact sheet needs; choose a dataset of images")
        rows = _random_rows(data, None, count, seed)
        captions = None
        if data.texts:
            text = next(iter(data.texts.values()))
            captions = [format_caption(tokens, text) for tokens in data.read_text(text.name, rows)]
        elif data.attributes:
            info = next(iter(data.attributes.values()))
            captions = [format_values(codes, info) for codes in data.read_attributes(info.name, rows)]
        note = f"{len(rows)} of {data.size:,} examples, drawn at random with seed {seed}."
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
        rows = _random_rows(data, "test", count, seed)
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


def _draw_model(path: Path, count: int, seed: int) -> Grid:
    from mmgen.generation import load
    from mmgen.generation.decode import drawable_pictures

    loaded = load(path)
    posterior = loaded.posteriors.default
    with Dataset.open(loaded.dataset_path()) as data:
        described = _choose_descriptions(loaded, data, posterior, count, seed)
    targets = drawable_pictures(loaded)
    captions = None
    if described is None:  # nothing is given: each image comes with the text of the same z, if there is any
        drawn = draw(loaded, empty_description(loaded), count, posterior=posterior, seed=seed, targets=targets)
        drawn = convert_draws_to_pictures(loaded, drawn)
        if drawn.words is not None and loaded.text is not None:
            captions = [format_caption(tokens, loaded.text) for tokens in drawn.words[0]]
        pictures = {name: images[0] for name, images in drawn.pictures().items()}
        what = f"{count} images"
        what += ", under each the text drawn with it" if captions else ""
    else:
        drawn = draw(loaded, described, 1, posterior=posterior, seed=seed, targets=targets)
        drawn = convert_draws_to_pictures(loaded, drawn)
        captions = described.format_short_texts(loaded)
        pictures = {name: images[:, 0] for name, images in drawn.pictures().items()}
        what = f"One image for each of {len(described)} descriptions"
    if len(pictures) > 1:
        what = f"{len(next(iter(pictures.values())))} draws of z, each with all kinds of pictures"
        what += ", and the text drawn with them" if captions and described is None else ""
    title = f"{path.name}: {loaded.posteriors[posterior].named.title}"
    tile = SENTENCE_TILE if loaded.text is not None and captions else TILE
    return _draw_examples(
        pictures, captions, title=title, note=f"{what}, seed {seed}. {explain_red_frames(None)}", tile=tile
    )


def _choose_descriptions(
    loaded: "TrainedModel", data: Dataset, posterior: str, count: int, seed: int
) -> Descriptions | None:
    """Choose varied descriptions that a posterior reads; None if it reads none."""
    if not loaded.reads(posterior):
        return None
    if loaded.description_kind == "text" and loaded.text is not None:
        tokens = np.unique(data.read_text(loaded.text.name, np.arange(min(data.size, 4096))), axis=0)
        return complete_descriptions(loaded, tokens=numpy_generator(seed, "captions").permutation(tokens)[:count])
    if loaded.attributes is None:
        return None
    return complete_descriptions(loaded, choose_concepts(data.read_attributes(loaded.attributes.name), count, seed))


def draw_contact_sheet(path: Path, count: int = 32, seed: int = 0) -> Grid:
    """Draw a contact sheet: images that a file holds, or that its model draws.

    Args:
        path: A dataset (random examples), samples (the first ones), a model or fitted posterior (an image for each of
            various descriptions), or a classifier (test images, framed red if it misreads them).
        count: Largest number of images.
        seed: Seed of the choice.

    Raises:
        UsageError: This kind of file has no images.
    """
    kind = read_header(path).kind
    if kind == "dataset":
        return _draw_dataset(path, count, seed)
    if kind == "samples":
        return _draw_samples(path, count)
    if kind == "classifier":
        return _draw_classifier_mistakes(path, count, seed)
    if kind in ("model", "aggregate", "sharpener"):
        return _draw_model(path, count, seed)
    raise UsageError(
        f"{path} is of kind {kind}, which holds no images, expected a file of kind "
        f"{', '.join(k for k in KINDS if k not in ('latents', 'training-state'))}; choose another file"
    )
