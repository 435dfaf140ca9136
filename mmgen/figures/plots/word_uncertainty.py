"""Uncertainty of models about each word of a text: inference of q(z|x,y) against q(z|x) (CK Fig. 7).

References:
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Section 6 and Fig. 7
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from mmgen.core.errors import UsageError
from mmgen.core.parsing import printable
from mmgen.core.seeding import torch_generator
from mmgen.descriptions import TextVocabulary
from mmgen.figures.drawing.page import MARGIN, stack_below
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.style import DOTS, category_colours, new_figure, render_figure, style_axes
from mmgen.figures.drawing.tables import Tile, TileRow, tile_table
from mmgen.figures.drawing.words import explain_words, mean_entropies, pair_with_distributions
from mmgen.figures.plots._base import PlotOptions, accepts, dataset_path_of
from mmgen.figures.session import Session
from mmgen.generation.classifiers import DecodedTexts, decode_with_text, generated_text, split_words
from mmgen.generation.encode import encode_examples
from mmgen.generation.examples import Examples, random_examples

__all__ = ["word_uncertainty"]

_ACROSS = 6
_MEASURED = 256
"""Number of validation images over which entropies are averaged."""


def _inference_name(session: Session) -> str:
    """Return the posterior by which a model's decoders were trained, for a heading: q(z|x) or q(z|x,y)."""
    return "joint inference q(z|x,y)" if len(session.model.encoder_inputs) > 1 else "marginal inference q(z|x)"


def _name_models(sessions: Sequence[Session]) -> list[str]:
    """Name each model by its posterior, q(z|x) or q(z|x,y), and by its file if several are equal."""
    kinds = [_inference_name(session) for session in sessions]
    return [
        kind if kinds.count(kind) == 1 else f"{kind}, {session.group.model.stem}"
        for kind, session in zip(kinds, sessions, strict=True)
    ]


def _decode_examples(session: Session, examples: Examples) -> DecodedTexts:
    model, seed, device = session.model, session.seed, str(session.model.device)
    z = encode_examples(model, examples).sample(torch_generator(seed, "reconstructions", "val", device=device))
    return decode_with_text(model, z, torch_generator(seed, "reconstructed words", "val", device=device))


def draw_entropy_chart(names: Sequence[str], bits: Sequence[np.ndarray], info: TextVocabulary, width: int) -> Figure:
    """Draw the mean entropy of the word distribution at each position of a text, with a bar for each model.

    Args:
        names: Names of the models.
        bits: Mean entropies [T] of each model.
        info: The text modality.
        width: Width in pixels.
    """
    figure = new_figure(width / DOTS, 2.7)
    axes = style_axes(figure.add_subplot(), "Mean uncertainty of each word, given the words before it", "", "bits")
    places = np.arange(info.length)
    thick = 0.8 / len(names)
    for i, (name, each, colour) in enumerate(zip(names, bits, category_colours(len(names)), strict=True)):
        at = places + (i - (len(names) - 1) / 2) * thick
        axes.bar(at, each, 0.92 * thick, color=colour, label=f"{name}: {each.sum():.2f} bits a text")
    labels = [printable(slot.replace("_", " "), 40) for slot in info.slots] or [f"word {place + 1}" for place in places]
    axes.set_xticks(places, labels)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=9)
    return figure


@accepts("number", shows="models")
def word_uncertainty(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw reconstructions of the same validation images by each model, and the mean uncertainty about each word.

    Raises:
        UsageError: There are no models, vocabularies differ, or a model does not generate images and text.
    """
    if not sessions:
        raise UsageError(
            "word-uncertainty got no models, expected one or more; give some, such as one of q(z|x) and one of q(z|x,y)"
        )
    text = generated_text(sessions[0].model)
    for session in sessions[1:]:
        if generated_text(session.model).vocabulary != text.vocabulary:
            raise UsageError(
                f"{session.group.model} has another vocabulary than {sessions[0].group.model}; "
                "compare models of the same vocabulary"
            )
    first = sessions[0]
    shown = random_examples(first.model, dataset_path_of(first), "val", _MEASURED, first.seed)
    if not len(shown.images):
        raise UsageError(
            f"the dataset of {first.group.model} has no validation examples, which this figure needs; "
            f"use a dataset that has some"
        )
    count = min(options.number or _ACROSS, len(shown.images))
    names = _name_models(sessions)
    decoded = [_decode_examples(session, shown) for session in sessions]
    bits = [mean_entropies(pair_with_distributions(spoken)) for spoken in decoded]
    assert shown.tokens is not None  # the model generates text
    pairs = list(zip(shown.images, shown.tokens, strict=True))[:count]
    rows = [TileRow("Validation images and their texts", [[Tile(x, split_words(y, text)) for x, y in pairs]])]
    for name, spoken in zip(names, decoded, strict=True):
        tiles = [
            Tile(image, text=words) for image, words in zip(spoken.images, pair_with_distributions(spoken), strict=True)
        ]
        rows.append(TileRow(f"Decoded from {name}", [tiles[:count]]))
    grid = tile_table(rows, info=text, attributes=first.model.attributes)
    chart = render_figure(draw_entropy_chart(names, bits, text, max(960, grid.canvas.shape[1] - 2 * MARGIN)))
    note = (
        f"Entropies are means over {len(shown.images):,} validation images, one z and one text each; one bit is the "
        f"doubt between two equally likely words. {explain_words(text, first.model.attributes)} "
        f"Shown: means of p(image|z). Seed {first.seed}."
    )
    return Picture("How sure the models are of each word", note, stack_below(chart, grid))
