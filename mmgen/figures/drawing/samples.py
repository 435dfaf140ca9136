"""Pictures of draws for descriptions: by one posterior, by several side by side, and from other pictures."""

from collections.abc import Sequence

import numpy as np

from mmgen.core.errors import UsageError
from mmgen.descriptions import TextVocabulary, Vocabulary, format_caption, format_query
from mmgen.figures.drawing.blocks import Block, Column, picture_page
from mmgen.figures.drawing.page import Grid
from mmgen.figures.drawing.tables import Panel, Tile, TileRow, image_grid, image_table, strip_blocks, tile_table
from mmgen.generation.by_analogy import ANALOGY
from mmgen.generation.classifiers import split_words
from mmgen.generation.draws import Draws, format_share_correct, list_unrestricted_warnings
from mmgen.generation.translations import PairedExamples

FRAMES = "Red frame: the judge reads at least one of the given attributes differently."
_ACROSS = 6
"""Largest number of images with texts in a row; fewer if all rows are then full."""


def describe_classifier_input(reads_samples: bool | None) -> str:
    """Describe for a caption the images that the attribute classifier reads; ``reads_samples`` is None if not known."""
    if reads_samples is None:
        return "sampled pixels if data are binary, else means"
    return "sampled pixels, since the data are binary" if reads_samples else "means, since the data are not binary"


def explain_red_frames(accuracy: dict[str, float] | None, reads_samples: bool | None = None) -> str:
    """Explain red frames for a caption: the images that the attribute classifier reads, and its accuracy on real ones.

    Args:
        accuracy: The classifier's held-out accuracy in percent, by attribute; None without a classifier.
        reads_samples: Whether it reads sampled pixels instead of means; None if unknown.
    """
    if accuracy is None:
        return "Shown: means of p(image|z). No judge looked at these images."
    mean = accuracy.get("mean")
    itself = f" (itself right on {mean:.1f} % of held-out attributes)" if mean is not None else ""
    return (
        f"{FRAMES} Shown: means of p(image|z). The judge{itself} looks at {describe_classifier_input(reads_samples)}."
    )


def draw_comparison(
    draws: Sequence[tuple[str, Draws]], labels: Sequence[str], *, title: str = "", note: str = ""
) -> Grid:
    """Draw the pictures of several posteriors: a row for each description, a block of columns for each posterior.

    Args:
        draws: Names and draws of posteriors, all for the same descriptions.
        labels: Text of each description.
        title: Title of the picture.
        note: Explanation below it.

    Raises:
        UsageError: The draws are of different descriptions.
    """
    codes = draws[0][1].descriptions.codes
    if any(not np.array_equal(drawn.descriptions.codes, codes) for _, drawn in draws):
        raise UsageError(
            "got draws of different descriptions, "
            "expected the same for each posterior; draw all for the same descriptions"
        )
    panels = [Panel(name, drawn.means, drawn.mismatches, format_share_correct(drawn)) for name, drawn in draws]
    return image_table(panels, labels, title=title, note=note)


def _content_name(draws: Draws, sampled: bool) -> str:
    """Name the images in a picture of draws for its note: "means of p(image|z)"."""
    if draws.posterior == ANALOGY:
        return "training pictures with words changed by analogy"
    return f"{'draws from' if sampled else 'means of'} p({'picture' if draws.further else draws.image or 'image'}|z)"


def _format_note(draws: Draws, content: str, accuracy: dict[str, float] | None, samples: bool | None) -> str:
    count = draws.means.shape[1]
    parts = [f"{count} images for each description" if len(draws.descriptions) > 1 else f"{count} images"]
    parts[0] += f", {content}, seed {draws.seed}."
    if draws.predicted is not None:
        mean = (accuracy or {}).get("mean")
        itself = f" (itself right on {mean:.1f} % of held-out attributes)" if mean is not None else ""
        verdict = format_share_correct(draws)
        if verdict:
            parts.append(
                f"{FRAMES} The judge{itself} finds {verdict}; it looks at {describe_classifier_input(samples)}."
            )
    parts += list_unrestricted_warnings(draws)
    return " ".join(parts)


def tiles_with_text(
    draws: Draws, row: int, text: TextVocabulary, vocabulary: Vocabulary | None, sampled: bool
) -> list[Tile]:
    """Make tiles for the description ``row``: each image with the text from the same z; differing words are bold.

    Args:
        draws: Draws of a model that generates texts.
        row: Position of the description.
        text: The text modality.
        vocabulary: Names and values of the attributes, for the classifier's predictions.
        sampled: Whether to show draws from p(image|z) instead of means.
    """
    assert draws.words is not None
    tokens = draws.descriptions.tokens
    given = split_words(tokens[row], text) if tokens is not None else []
    tiles = []
    for i, image in enumerate((draws.sampled if sampled else draws.means)[row]):
        words = split_words(draws.words[row, i], text)
        marked = [bool(given) and (place >= len(given) or given[place] != word) for place, word in enumerate(words)]
        wrong, remark = False, ""
        if draws.predicted is not None and draws.mismatches is not None and vocabulary is not None:
            wrong = bool(draws.mismatches[row, i])
            remark = draws.describe_mismatch(row, i, vocabulary)
        tiles.append(Tile(image, words or ["–"], marked, wrong, remark))
    return tiles


def _grid_with_text(
    draws: Draws,
    words: Sequence[str],
    text: TextVocabulary,
    vocabulary: Vocabulary | None,
    sampled: bool,
    note: str,
) -> Grid:
    """Draw images above the texts from the same z, with a block of rows for each description."""
    rows = []
    title = words[0] if len(words) == 1 else ""
    count = draws.means.shape[1]
    across = next((n for n in range(_ACROSS, 3, -1) if count % n == 0), _ACROSS)
    for row, label in enumerate(words):
        tiles = tiles_with_text(draws, row, text, vocabulary, sampled)
        lines = [tiles[start : start + across] for start in range(0, len(tiles), across)]
        rows += [TileRow("" if i or title else label, [line]) for i, line in enumerate(lines)]
    said = "Under each image the text drawn from the same z; words other than the given ones are bold."
    return tile_table(rows, title=title, note=f"{note} {said}")


def label_descriptions(draws: Draws, vocabulary: Vocabulary | None, text: TextVocabulary | None) -> list[str]:
    """Return the words of each description; see :func:`sample_grid`."""
    if text is not None and draws.descriptions.tokens is not None:
        words = [format_caption(row, text) for row in draws.descriptions.tokens]
    else:
        words = [
            format_query(row, vocabulary) if vocabulary is not None else "nothing given"
            for row in draws.descriptions.codes
        ]
    for row, expression in enumerate(draws.descriptions.expressions):
        words[row] = words[row] if expression is None else str(expression)
    return words


def sample_grid(
    draws: Draws,
    vocabulary: Vocabulary | None,
    *,
    text: TextVocabulary | None = None,
    sampled: bool = False,
    accuracy: dict[str, float] | None = None,
    judged_samples: bool | None = None,
) -> Grid:
    """Draw the images of draws: a grid for one description, a table with a row for each of several descriptions.

    Args:
        draws: The images.
        vocabulary: Names and values of the attributes; None for a model without attributes.
        text: Vocabulary of captions; None for a model without text.
        sampled: Whether to show draws from p(image|z) instead of means.
        accuracy: The classifier's held-out accuracy in percent, by attribute.
        judged_samples: Whether the attribute classifier read sampled pixels instead of means.
    """
    images = draws.sampled if sampled else draws.means
    what, words = _content_name(draws, sampled), label_descriptions(draws, vocabulary, text)
    name = str(draws.guidance) if draws.guidance else draws.name or draws.posterior
    note = _format_note(draws, what, accuracy, judged_samples)
    if draws.further:
        note = f"From {name}. {note} Pictures beside each other are of the same z."
        return _draw_views(draws, words, _format_texts(draws, text), sampled, note)
    if text is not None and draws.words is not None:
        return _grid_with_text(draws, words, text, vocabulary, sampled, f"From {name}. {note}")
    if len(words) > 1:
        return image_table([Panel(name, images, draws.mismatches, format_share_correct(draws))], words, note=note)
    remarks = None
    if draws.predicted is not None and vocabulary is not None:
        remarks = [draws.describe_mismatch(0, number, vocabulary) for number in range(draws.means.shape[1])]
    wrong = None if draws.mismatches is None else draws.mismatches[0]
    return image_grid(images[0], wrong=wrong, remarks=remarks, title=words[0], note=f"From {name}. {note}")


def _draw_views(draws: Draws, words: Sequence[str], texts: Sequence[Sequence[str]], sampled: bool, note: str) -> Grid:
    """Draw pictures of all modalities from each z: a block for each description, a row for each z."""
    blocks: list[Block] = []
    for row, label in enumerate(words if len(words) > 1 else [""]):
        pictures = {name: images[row] for name, images in draws.pictures(sampled).items()}
        wrong = None if draws.mismatches is None else draws.mismatches[row]
        count = len(draws.z[row]) if len(words) > 1 else 12
        blocks += strip_blocks(pictures, texts[row] if texts else (), wrong=wrong, title=label, tallest=count)
    return picture_page(blocks, title=words[0] if len(words) == 1 else "", note=note)


def _format_texts(draws: Draws, text: TextVocabulary | None) -> list[list[str]]:
    """Format the texts drawn for each description as sentences; [] if the model draws no texts."""
    if draws.words is None or text is None:
        return []
    return [[format_caption(tokens, text) for tokens in each] for each in draws.words]


def translation_grid(
    examples: PairedExamples,
    sources: Sequence[str],
    draws: Draws,
    *,
    description: str = "",
    sampled: bool = False,
) -> Grid:
    """Draw translations: the pictures of the sources, the drawn pictures of the targets, and the true ones if known.

    Args:
        examples: The examples.
        sources: Source modalities.
        draws: The draws.
        description: Description given with the sources.
        sampled: Whether to show draws from p(picture | z) instead of means.
    """
    count = draws.means.shape[1]
    number = "one draw" if count == 1 else f"{count} draws"
    truth = " Truth: the example's own picture." if set(draws.pictures()) & set(examples.pictures) else ""
    together = f", together with {description}" if description else ""
    note = (
        f"On grey: the sources{together}. Drawn: {_content_name(draws, sampled)} at {number} of z from "
        f"{draws.posterior}.{truth} Seed {draws.seed}."
    )
    given = [Column(examples.pictures[name], f"{name}\ngiven", is_source=True) for name in sources]
    blocks: list[Block] = []
    for name, images in draws.pictures(sampled).items():
        columns = [Column(examples.pictures[name], f"{name}\ntruth")] if name in examples.pictures else []
        columns += [Column(images[:, i], "" if i else f"{name}\ndrawn") for i in range(count)]
        head = f"To {name}" if draws.further else ""
        blocks.append(Block(head, [*given, *columns], () if blocks else examples.names))
    title = f"From {' + '.join(sources)} to {', '.join(draws.pictures())}"
    return picture_page(blocks, title=title, note=note)
