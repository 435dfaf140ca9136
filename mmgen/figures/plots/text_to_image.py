"""Texts, the images drawn for them and the texts drawn with those, for each posterior (CK Fig. 4, 6).

References:
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Fig. 4 and 6
"""

from collections.abc import Sequence

from mmgen.errors import UsageError
from mmgen.figures._pictures import Picture, Session
from mmgen.figures.comparison import judge_note
from mmgen.figures.draws import Draws, differences, draw
from mmgen.figures.hierarchy import share_right
from mmgen.figures.plots._base import Wanted, asked, only
from mmgen.figures.texts import caption, generated_text
from mmgen.figures.tiles import Tile, TileRow, tile_table

__all__ = ["text_to_image"]

_ROWS = 6
_IMAGES = 3


def _tiles(session: Session, drawn: Draws, row: int) -> list[Tile]:
    """Images of one description with the texts that came with them; words that were not asked for stand out."""
    model = session.model
    assert drawn.words is not None
    wanted = caption(model, drawn.asked_words[row]) if drawn.asked_words is not None else []
    tiles = []
    for i, image in enumerate(drawn.means[row]):
        said = caption(model, drawn.words[row, i])
        marked = [bool(wanted) and (place >= len(wanted) or wanted[place] != word) for place, word in enumerate(said)]
        wrong, remark = False, ""
        if drawn.judged is not None and drawn.wrong is not None and model.attributes is not None:
            wrong = bool(drawn.wrong[row, i])
            remark = differences(drawn.asked[row], drawn.judged[row, i], model.attributes)
        tiles.append(Tile(image, said, marked, wrong, remark))
    return tiles


def text_to_image(sessions: Sequence[Session], wanted: Wanted) -> Picture:
    """A row for each text, a block for each posterior: three images, under each the text decoded from the same z.

    Raises:
        UsageError: The model does not generate images and text, or nothing draws z for a text.
    """
    session = only(sessions, "text-to-image")
    model = session.model
    generated_text(model)
    sources = session.sources
    if not sources:
        raise UsageError(
            f"nothing draws z for a text of {session.group.model}; fit something with mmgen fit-aggregate "
            f"{session.group.model} --given text, and name its file"
        )
    descriptions = asked(session, wanted, _ROWS)
    draws = [
        draw(s.loaded, descriptions, _IMAGES, posterior=s.posterior, seed=session.seed, judge=session.judge)
        for s in sources
    ]
    rows = [
        TileRow(label, [_tiles(session, drawn, row) for drawn in draws])
        for row, label in enumerate(descriptions.words(model))
    ]
    heads = [(source.name, share_right(drawn)) for source, drawn in zip(sources, draws, strict=True)]
    note = (
        f"Left: the text given. Each image is decoded from one draw of z, and the text under it from the same z; its "
        f"words that differ from the given ones are bold. {_judged(session)} Seed {session.seed}."
    )
    return Picture("From text to images and texts", note, tile_table(rows, heads=heads))


def _judged(session: Session) -> str:
    note = judge_note(session.judge.accuracy if session.judge else None)
    told = session.judge.told if session.judge else ()
    return f"{note} It is told the {', '.join(told)}." if told else note
