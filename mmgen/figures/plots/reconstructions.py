"""Training and validation images, their reconstructions and prior samples, with word histograms (CK Fig. 3, 5).

References:
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Fig. 3 and 5
"""

from collections.abc import Sequence

import numpy as np
import torch

from mmgen.core.errors import UsageError
from mmgen.core.seeding import torch_generator
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.tables import Panel, Tile, TileRow, image_table, tile_table
from mmgen.figures.drawing.words import explain_words, pair_with_distributions
from mmgen.figures.plots._base import (
    PlotOptions,
    accepts,
    dataset_path_of,
    encode_start_examples,
    explain_compared_words,
)
from mmgen.figures.session import Session
from mmgen.generation.classifiers import (
    DecodedTexts,
    Verdicts,
    compare_with_classifier,
    decode_with_text,
    generated_text,
    split_words,
)
from mmgen.generation.descriptions import empty_description
from mmgen.generation.encode import encode_examples
from mmgen.generation.examples import random_examples

__all__ = ["reconstructions"]

_ACROSS = 6
_PICTURES = 12
_PARTS = {"train": "training", "val": "validation"}


def _tile_row(label: str, decoded: DecodedTexts, verdicts: Verdicts) -> TileRow:
    right, words = verdicts.correct_counts
    counted = f"Judge: {100 * right / words:.0f} % of {words} words match" if words else ""
    tiles = [
        Tile(image, wrong=bool(wrong), remark=remark, text=text)
        for image, text, wrong, remark in zip(
            decoded.images, pair_with_distributions(decoded), verdicts.mismatches, verdicts.remarks, strict=True
        )
    ]
    return TileRow(f"{label}. {counted}" if counted else label, [tiles])


def _draw_test_reconstructions(session: Session, count: int) -> Picture:
    """Draw test pictures, each above its reconstruction."""
    start = encode_start_examples(session, (), count)
    with torch.inference_mode():
        decoded = np.stack([start.decode(number, z[None])[0] for number, z in enumerate(start.z)])
    through = f"q(z|{', '.join(start.conditions)})"
    labels = ["Test pictures", f"Decoded from the mean of {through}"]
    grid = image_table([Panel("", np.stack([start.pictures, decoded]))], labels)
    note = f"{len(decoded)} test pictures, drawn at random. Shown: means of p(image|z). Seed {session.seed}."
    return Picture("Reconstructions", note, grid)


@accepts("number", frames=True)
def reconstructions(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw training and validation examples, each above its reconstruction, then draws from each prior.

    For a model without text, draw test examples above their reconstructions from the mean of the posterior.

    Raises:
        UsageError: The model does not draw or encode images.
    """
    session = sessions[0]
    if session.model.text is None or session.model.text.name not in session.model.model.generates:
        return _draw_test_reconstructions(session, options.number or _PICTURES)
    model, seed = session.model, session.seed
    text, device = generated_text(model), str(model.device)
    through = "q(z|x,y)" if len(model.encoder_inputs) > 1 else "q(z|x)"
    number = options.number or _ACROSS
    parts = {part: random_examples(model, dataset_path_of(session), part, number, seed) for part in _PARTS}
    count = min(len(shown.images) for shown in parts.values())
    if not count:
        raise UsageError(
            f"the dataset of {session.group.model} has no training or no validation examples, but this figure shows "
            "both; use a dataset with both"
        )
    rows = []
    for part, name in _PARTS.items():
        shown = parts[part].first(count)
        z = encode_examples(model, shown).sample(torch_generator(seed, "reconstructions", part, device=device))
        spoken = decode_with_text(model, z, torch_generator(seed, "reconstructed words", part, device=device))
        assert shown.tokens is not None  # the model generates text
        pairs = zip(shown.images, shown.tokens, strict=True)
        originals = [Tile(image, split_words(tokens, text)) for image, tokens in pairs]
        rows.append(TileRow(f"{name.capitalize()} images and their texts", [originals]))
        rows.append(
            _tile_row(
                f"The same, decoded from {through}", spoken, compare_with_classifier(model, session.judge, spoken)
            )
        )
    for source in session.priors:
        generator = torch_generator(seed, "prior", source.name, device=device)
        condition = empty_description(model).batch(model, 0)
        z = source.loaded.posteriors[source.posterior].sample(condition, count, generator)[:, 0]
        spoken = decode_with_text(model, z, torch_generator(seed, "prior words", source.name, device=device))
        rows.append(
            _tile_row(f"Drawn from {source.name}", spoken, compare_with_classifier(model, session.judge, spoken))
        )
    grid = tile_table(rows, info=text, attributes=model.attributes)
    words = explain_words(text, model.attributes)
    note = f"{words} {explain_compared_words(session, text)} Shown: means of p(image|z). Seed {seed}."
    return Picture("Reconstructions and prior samples", note, grid)
