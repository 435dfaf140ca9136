"""Each kind of picture drawn from the others, beside the true ones: colouring, completing, segmenting (WG Fig. 4).

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), Fig. 4, arXiv:1802.05335
"""

from collections.abc import Sequence

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.layout import Block, Column, Group, block_table
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.plots._base import PlotOptions, accepts, dataset_of
from mmgen.figures.session import Session
from mmgen.generation.translations import Paired, Translation, paired, select_routes, translate

__all__ = ["transformations"]

_ROWS = 6


@accepts("number", "sources", "targets")
def transformations(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """A block for each kind of picture that is given, a row for each test example: drawn pictures beside true ones.

    Raises:
        UsageError: The model has one kind of picture draws none of what is asked for or infers nothing from it.
    """
    from mmgen.generation.decode import drawable_pictures

    session = sessions[0]
    model = session.model
    if len(drawable_pictures(model)) < 2:
        raise UsageError(
            f"{session.group.model} draws {', '.join(drawable_pictures(model)) or 'no images'}, expected several kinds "
            "of pictures: train one on a dataset that has them, such as celeba-transforms, with --objective mvae"
        )
    asked = select_routes(model, options.sources, options.targets)
    if not asked:
        raise UsageError(
            f"{session.group.model} infers z from no kind of picture alone; name several with --from edges+mask, or "
            "train one with --objective mvae"
        )
    shown = paired(model, dataset_of(session), options.number or _ROWS, session.seed)
    found = [translate(model, shown, sources, targets) for sources, targets in asked]
    grid = block_table([_block(shown, translation) for translation in found])
    note = (
        f"Rows: {len(shown)} test examples, drawn at random. On grey: what is given. Drawn: the mean of "
        "p(drawn picture | z), z being the mean of q(z | given picture) and nothing else known; beside it the true "
        f"one. Seed {session.seed}."
    )
    return Picture("Transformations: each kind of picture from others", note, grid)


def _block(shown: Paired, translation: Translation) -> Block:
    """The given columns, then for each target a column of drawn pictures beside the true ones."""
    given = [Group(name, [Column(shown.pictures[name], "given", given=True)]) for name in translation.sources]
    drawn = [
        Group(name, [Column(images, "drawn"), Column(shown.pictures[name], "truth")])
        for name, images in translation.drawn.items()
    ]
    to = next(iter(translation.drawn)) if len(translation.drawn) == 1 else "each"
    return Block(f"From {translation.name} to {to}", [*given, *drawn])
