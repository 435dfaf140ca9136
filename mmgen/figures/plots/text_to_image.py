"""Images drawn for texts, with the texts drawn from the same z, for each posterior (CK Fig. 4, 6).

References:
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Fig. 4 and 6
"""

from collections.abc import Sequence

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.samples import explain_red_frames, tiles_with_text
from mmgen.figures.drawing.tables import TileRow, tile_table
from mmgen.figures.plots._base import PlotOptions, accepts, select_descriptions
from mmgen.figures.session import Session, draw_pictures
from mmgen.generation.classifiers import classifier_reads_samples, generated_text
from mmgen.generation.draws import format_share_correct

__all__ = ["text_to_image"]

_ROWS = 6


@accepts("descriptions", "number", "guidance", frames=True)
def text_to_image(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw images for texts, each above the text from the same z: a row for each text, a block for each posterior.

    Raises:
        UsageError: The model does not generate images and text, or no posterior reads texts.
    """
    session = sessions[0]
    model = session.model
    text = generated_text(model)
    sources = session.sources
    if not sources:
        raise UsageError(
            f"no posterior of {session.group.model} reads texts; fit one with mmgen fit-aggregate "
            f"{session.group.model} --given text, and name its file"
        )
    descriptions = select_descriptions(session, options, _ROWS)
    images = {1: 6, 2: 3, 3: 3}.get(len(sources), 2)  # CK has three
    draws = [draw_pictures(session, source, descriptions, images) for source in sources]
    rows = [
        TileRow(label, [tiles_with_text(drawn, row, text, model.attributes, False) for drawn in draws])
        for row, label in enumerate(descriptions.format_texts(model))
    ]
    heads = [(source.name, format_share_correct(drawn)) for source, drawn in zip(sources, draws, strict=True)]
    note = (
        f"Left: the text given. Each image is decoded from one draw of z, and the text under it from the same z; its "
        f"words that differ from the given ones are bold. {_explain_classifier(session)} Seed {session.seed}."
    )
    return Picture("From text to images and texts", note, tile_table(rows, heads=heads))


def _explain_classifier(session: Session) -> str:
    note = explain_red_frames(
        session.judge.accuracy if session.judge else None, classifier_reads_samples(session.model)
    )
    told = session.judge.hints if session.judge else ()
    return f"{note} It is told the {', '.join(told)}." if told else note
