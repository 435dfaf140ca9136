"""Draws as a picture: what ``mmgen sample`` shows."""

from collections.abc import Sequence

from mmgen.descriptions import TextVocabulary, Vocabulary, format_caption, format_query
from mmgen.figures.drawing.comparison import FRAMES, looks_at
from mmgen.figures.drawing.page import Grid
from mmgen.figures.drawing.tables import Panel, Tile, TileRow, image_grid, image_table, tile_table
from mmgen.figures.drawing.views import translation_page, views_page
from mmgen.generation.draws import Draws, share_right, unjudged
from mmgen.generation.texts import words_of
from mmgen.generation.translations import Paired

__all__ = ["sample_grid", "spoken_tiles", "translated_grid"]

_ACROSS = 6
"""Images with texts in a row at most; fewer where all rows are full then."""


def _what(drawn: Draws, sampled: bool) -> str:
    """What is shown, in words."""
    return f"{'draws from' if sampled else 'means of'} p({'picture' if drawn.further else drawn.image or 'image'}|z)"


def _note(drawn: Draws, what: str, accuracy: dict[str, float] | None, samples: bool | None) -> str:
    count = drawn.means.shape[1]
    parts = [f"{count} images for each description" if len(drawn.descriptions) > 1 else f"{count} images"]
    parts[0] += f", {what}, seed {drawn.seed}."
    if drawn.predicted is not None:
        mean = (accuracy or {}).get("mean")
        itself = f" (itself right on {mean:.1f} % of held-out attributes)" if mean is not None else ""
        verdict = share_right(drawn)
        if verdict:
            parts.append(f"{FRAMES} The judge{itself} finds {verdict}; it looks at {looks_at(samples)}.")
    parts += unjudged(drawn)
    return " ".join(parts)


def spoken_tiles(drawn: Draws, row: int, text: TextVocabulary, info: Vocabulary | None, sampled: bool) -> list[Tile]:
    """Make tiles of the images for one description and the texts drawn with them; other words than the given stand out.

    Args:
        drawn: From a model that generates texts.
        row: Which description.
        text: The text that it generates.
        info: The attributes' words, for what the judge sees instead.
        sampled: Show draws from p(image|z) instead of its means.
    """
    assert drawn.words is not None
    tokens = drawn.descriptions.tokens
    given = words_of(tokens[row], text) if tokens is not None else []
    tiles = []
    for i, image in enumerate((drawn.sampled if sampled else drawn.means)[row]):
        words = words_of(drawn.words[row, i], text)
        marked = [bool(given) and (place >= len(given) or given[place] != word) for place, word in enumerate(words)]
        wrong, remark = False, ""
        if drawn.predicted is not None and drawn.wrong is not None and info is not None:
            wrong = bool(drawn.wrong[row, i])
            remark = drawn.remark(row, i, info)
        tiles.append(Tile(image, words or ["–"], marked, wrong, remark))
    return tiles


def _spoken_grid(
    drawn: Draws,
    words: Sequence[str],
    text: TextVocabulary,
    info: Vocabulary | None,
    sampled: bool,
    note: str,
) -> Grid:
    """Images with the texts drawn from the same z under them: a block of rows for each description."""
    rows = []
    title = words[0] if len(words) == 1 else ""
    count = drawn.means.shape[1]
    across = next((n for n in range(_ACROSS, 3, -1) if count % n == 0), _ACROSS)
    for row, label in enumerate(words):
        tiles = spoken_tiles(drawn, row, text, info, sampled)
        lines = [tiles[start : start + across] for start in range(0, len(tiles), across)]
        rows += [TileRow("" if i or title else label, [line]) for i, line in enumerate(lines)]
    said = "Under each image the text drawn from the same z; words other than the given ones are bold."
    return tile_table(rows, title=title, note=f"{note} {said}")


def sample_grid(
    drawn: Draws,
    info: Vocabulary | None,
    *,
    text: TextVocabulary | None = None,
    sampled: bool = False,
    accuracy: dict[str, float] | None = None,
    judged_samples: bool | None = None,
) -> Grid:
    """One description as a grid of images, several as a table with a row for each.

    Args:
        drawn: The images.
        info: The attributes' words; None for a model without attributes.
        text: Vocabulary of captions; None for a model without text.
        sampled: Show draws from p(image|z) instead of its means.
        accuracy: The judge's own, in percent.
        judged_samples: Whether the judge looked at sampled pixels; see :func:`mmgen.generation.judge.sees_samples`.
    """
    images = drawn.sampled if sampled else drawn.means
    what = _what(drawn, sampled)
    if text is not None and drawn.descriptions.tokens is not None:
        words = [format_caption(row, text) for row in drawn.descriptions.tokens]
    else:
        words = [format_query(row, info) if info is not None else "nothing given" for row in drawn.descriptions.codes]
    for row, expression in enumerate(drawn.descriptions.expressions):
        words[row] = words[row] if expression is None else str(expression)
    name = str(drawn.guidance) if drawn.guidance else drawn.name or drawn.posterior
    note = _note(drawn, what, accuracy, judged_samples)
    if drawn.further:
        note = f"From {name}. {note} Pictures beside each other are of the same z."
        title = words[0] if len(words) == 1 else ""
        return views_page(drawn, words, _texts(drawn, text), sampled=sampled, title=title, note=note)
    if text is not None and drawn.words is not None:
        return _spoken_grid(drawn, words, text, info, sampled, f"From {name}. {note}")
    if len(words) > 1:
        return image_table([Panel(name, images, drawn.wrong, share_right(drawn))], words, note=note)
    remarks = None
    if drawn.predicted is not None and info is not None:
        remarks = [drawn.remark(0, number, info) for number in range(drawn.means.shape[1])]
    wrong = None if drawn.wrong is None else drawn.wrong[0]
    return image_grid(images[0], wrong=wrong, remarks=remarks, title=words[0], note=f"From {name}. {note}")


def _texts(drawn: Draws, text: TextVocabulary | None) -> list[list[str]]:
    """The texts drawn for each description, as sentences; [] without any."""
    if drawn.words is None or text is None:
        return []
    return [[format_caption(tokens, text) for tokens in each] for each in drawn.words]


def translated_grid(
    shown: Paired,
    sources: Sequence[str],
    drawn: Draws,
    *,
    description: str = "",
    sampled: bool = False,
) -> Grid:
    """What was drawn from other pictures, beside what was given and what is true.

    Args:
        shown: The examples.
        sources: Modalities that were given.
        drawn: The draws.
        description: What was given with them.
        sampled: Show draws from p(picture | z) instead of its means.
    """
    count = drawn.means.shape[1]
    draws = "one draw" if count == 1 else f"{count} draws"
    truth = " Truth: the example's own picture." if set(drawn.pictures()) & set(shown.pictures) else ""
    together = f", together with {description}" if description else ""
    note = (
        f"On grey: what is given{together}. Drawn: {_what(drawn, sampled)} at {draws} of z from {drawn.posterior}."
        f"{truth} Seed {drawn.seed}."
    )
    title = f"From {' + '.join(sources)} to {', '.join(drawn.pictures())}"
    return translation_page(shown, sources, drawn, sampled=sampled, title=title, note=note)
