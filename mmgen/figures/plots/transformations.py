"""Translations between kinds of pictures beside the true ones: colouring, completing, segmenting (WG Fig. 4).

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), Fig. 4, arXiv:1802.05335
"""

from collections.abc import Sequence

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.blocks import Block, Column, picture_page
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.plots._base import PlotOptions, accepts, dataset_path_of
from mmgen.figures.session import Session
from mmgen.generation.translations import PairedExamples, Translation, read_paired_examples, select_routes, translate

__all__ = ["transformations"]

_ROWS = 6


@accepts("number", "sources", "targets")
def transformations(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw translations of test examples (rows) from each source modality (blocks), beside the true pictures.

    Raises:
        UsageError: The model has one kind of picture, cannot infer z from one kind alone, or lacks a chosen one.
    """
    from mmgen.generation.decode import drawable_pictures

    session = sessions[0]
    model = session.model
    if len(drawable_pictures(model)) < 2:
        raise UsageError(
            f"{session.group.model} draws {', '.join(drawable_pictures(model)) or 'no images'}, expected several kinds "
            "of pictures: train one on a dataset that has them, such as celeba-transforms, with --objective mvae"
        )
    translations = select_routes(model, options.sources, options.targets)
    if not translations:
        raise UsageError(
            f"{session.group.model} cannot infer z from a single kind of picture; name several with --from edges+mask, "
            "or train a model with --objective mvae"
        )
    shown = read_paired_examples(model, dataset_path_of(session), options.number or _ROWS, session.seed)
    found = [translate(model, shown, sources, targets) for sources, targets in translations]
    grid = picture_page([_build_block(shown, translation) for translation in found])
    note = (
        f"Rows: {len(shown)} test examples, drawn at random. On grey: the sources. Drawn: the mean of "
        "p(drawn picture | z), z being the mean of q(z | given picture) and nothing else known; beside it the true "
        f"one. Seed {session.seed}."
    )
    return Picture("Transformations: each kind of picture from others", note, grid)


def _build_block(examples: PairedExamples, translation: Translation) -> Block:
    """Make the block of a translation: source pictures, then drawn and true pictures of each target."""
    given = [Column(examples.pictures[name], f"{name}\ngiven", is_source=True) for name in translation.sources]
    drawn = []
    for name, images in translation.drawn.items():
        drawn += [Column(images, f"{name}\ndrawn"), Column(examples.pictures[name], "truth")]
    to = next(iter(translation.drawn)) if len(translation.drawn) == 1 else "each"
    return Block(f"From {translation.name} to {to}", [*given, *drawn])
