"""Sentences and their translations through z, from each language to the others (WG Table 5).

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Table 5
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from mmgen.artifacts import Dataset
from mmgen.contrib.translation.languages import draws_given, languages, source_languages
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError, format_unknown_name
from mmgen.core.seeding import torch_generator
from mmgen.figures.drawing.page import MARGIN, Grid, Text, wrap_text
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.style import MUTED
from mmgen.figures.plots._base import PlotOptions, accepts, dataset_path_of
from mmgen.figures.session import Session, Source
from mmgen.generation.examples import random_test_rows
from mmgen.modalities.text import TextDescription
from mmgen.training.batches import DatasetRows

__all__ = ["translations"]

_SENTENCES = 5
_DRAWS = 50
"""Draws of z whose mean is decoded."""
_WIDTH, _LABEL, _SIZE, _PITCH = 1500, 300, 22, 30  # pixels

Line = tuple[str, str, bool]
"""Label, sentence and whether it is the data's own."""


def _has_languages(session: Session) -> bool:
    return len(languages(session.model)) > 1


@accepts("number", "rows", "sources", "targets", reported=_has_languages)
def translations(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw test sentences with their true translations and those of each posterior, from each language to the others.

    Raises:
        UsageError: The model has no two languages, or not those of the options.
    """
    session = sessions[0]
    model, known = session.model, languages(session.model)
    if len(known) < 2:
        raise UsageError(
            f"{model.path} has no sentences in two languages, which this figure needs; make data with mmgen make-data "
            "parallel-text"
        )
    for name in (*options.sources, *options.targets):
        if name not in known:
            raise UsageError(format_unknown_name("language", name, known))
    rows, points = _read_examples(session, known, options)
    blocks = []
    for source in options.sources or known:
        for target in options.targets or known:
            if source == target:
                continue
            readers = _name_readers(session, source)
            found = {name: _translate(each, source, target, points, session.seed) for name, each in readers.items()}
            blocks.append((f"From {source} to {target}", [*_lines(session, points, source, target, found)]))
    if not blocks:
        raise UsageError(f"got only {', '.join(options.targets)} to translate, expected two languages; name others")
    note = (
        f"{len(rows)} test sentences (rows {', '.join(map(str, rows))}). Translations are the likeliest words one "
        f"after the other at the mean of z given the sentence; a draw is of z and of words. Seed {session.seed}."
    )
    return Picture("Sentences and their translations", note, _draw_blocks(blocks))


def _read_examples(session: Session, names: list[str], options: PlotOptions) -> tuple[list[int], Batch]:
    """Return rows of the dataset, by default random ones of the test part, and their sentences."""
    model = session.model
    with Dataset.open(dataset_path_of(session)) as data:
        count = options.number or _SENTENCES
        rows = list(options.rows) or random_test_rows(data, model.settings.data.split, count, session.seed).tolist()
        if not rows or max(rows) >= data.size:
            got = f"row {max(rows):,}" if rows else "no test sentences"
            raise UsageError(f"{data.path} has {data.size:,} sentences, got {got}; choose rows with --dataset-row")
        source = DatasetRows(data, torch.tensor(rows).numpy(), model.device, modalities=names)
        return rows, source.batch(torch.arange(len(rows)))


def _name_readers(session: Session, language: str) -> dict[str, Source]:
    """Return the posteriors that read sentences in a language by their names: fitted ones, and the model's own."""
    readers = [each for each in session.sources if language in source_languages(each.loaded, each.posterior)]
    names = [each.loaded.posteriors[each.posterior].formula.replace("(z|y)", f"(z|{language})") for each in readers]
    return {
        name if names.count(name) == 1 else f"{name} of {each.path.stem}": each
        for name, each in zip(names, readers, strict=True)
    }


def _translate(reader: Source, source: str, target: str, points: Batch, seed: int) -> dict[str, list[str]]:
    """Return translations by a posterior: the likeliest ones, and a draw of each."""
    loaded = reader.loaded
    with torch.inference_mode():
        z = draws_given(loaded, reader.posterior, source, points, _DRAWS, seed, "32-true")
        generator = torch_generator(seed, "drawn translations", device=str(loaded.device))
        likeliest = loaded.model.sample(target, z.mean(0), greedy=True)
        drawn = loaded.model.sample(target, z[0], generator)
    return {"": _words(loaded.observed[target], likeliest), ", a draw": _words(loaded.observed[target], drawn)}


def _lines(
    session: Session, points: Batch, source: str, target: str, guesses: dict[str, dict[str, list[str]]]
) -> Iterator[list[Line]]:
    """Yield the lines of each example: sentence, true translation, and translations by each posterior."""
    observed = session.model.observed
    given, right = (_words(observed[name], points.values[name]) for name in (source, target))
    for row, (sentence, translation) in enumerate(zip(given, right, strict=True)):
        lines: list[Line] = [(source, sentence, True), (f"{target}, true", translation, True)]
        for name, found in guesses.items():
            lines += [(f"{target}, {name}{kind}", sentences[row], False) for kind, sentences in found.items()]
        yield lines


def _words(described: object, codes: torch.Tensor) -> list[str]:
    assert isinstance(described, TextDescription)
    return [described.words(row) for row in codes.cpu().numpy()]


def _draw_blocks(blocks: list[tuple[str, list[list[Line]]]]) -> Grid:
    """Draw headings with examples below, each a table of labels and sentences."""
    texts: list[Text] = []
    top = MARGIN
    for heading, examples in blocks:
        texts.append(Text(heading, MARGIN, top, _SIZE + 2, bold=True))
        top += 2 * _PITCH
        for lines in examples:
            for label, sentence, is_true in lines:
                names = wrap_text(label, _SIZE, _LABEL - 20)
                words = wrap_text(sentence or "(no words)", _SIZE, _WIDTH - _LABEL)
                texts += [Text(one, MARGIN, top + _PITCH * row, _SIZE, MUTED) for row, one in enumerate(names)]
                texts += [
                    Text(one, MARGIN + _LABEL, top + _PITCH * row, _SIZE, bold=is_true) for row, one in enumerate(words)
                ]
                top += _PITCH * max(len(names), len(words))
            top += _PITCH
    return Grid(np.full((top, _WIDTH + 2 * MARGIN, 3), 255, np.uint8), texts)
