"""A concept and its ancestors: attributes dropped one by one (VE Fig. 4b).

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Fig. 4b
"""

from collections.abc import Sequence

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions import format_query
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.samples import draw_comparison
from mmgen.figures.plots._base import PlotOptions, accepts, select_descriptions
from mmgen.figures.session import Session, draw_from_sources, images_per_row, name_blocks
from mmgen.generation.concepts import abstraction_levels
from mmgen.generation.descriptions import Descriptions

__all__ = ["hierarchy"]


def draw_abstraction(session: Session, concepts: Descriptions | None = None) -> list[Picture]:
    """Draw a description, the first of ``concepts``, while its attributes are dropped one by one (VE Fig. 4b)."""
    concepts = session.concepts if concepts is None else concepts
    info = session.model.attributes
    sources = [source for source in session.sources if source.given != "text"]  # a sentence is whole
    if info is None or not sources or not len(concepts):
        return []
    concept = concepts.codes[0]
    known = int((concept != UNKNOWN).sum())
    # Beyond six levels rows only repeat the lesson; the last attributes then stay given.
    levels = abstraction_levels(concept)[max(0, known - 6) :]
    count = images_per_row(sources)
    draws = draw_from_sources(session, Descriptions(levels), count, sources)
    grid = draw_comparison(draws, [format_query(row, info) for row in draws[0][1].descriptions.codes])
    caption = (
        f"From abstract (top) to {format_query(levels[-1], info)} (bottom): attributes are dropped one by one, and "
        f"unspecified ones should vary. {count} images a row from each of: {name_blocks(draws)}."
    )
    return [Picture("Abstraction hierarchy", caption, grid, session.note)]


@accepts("descriptions", "guidance", frames=True)
def hierarchy(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw pictures of a description while its attributes are dropped one by one.

    Raises:
        UsageError: No posterior reads partial descriptions, or there are several descriptions.
    """
    if (count := len(options.descriptions)) > 1:
        raise UsageError(
            f"hierarchy got {count} --given, expected one description, whose attributes it drops; give one"
        )
    session = sessions[0]
    found = draw_abstraction(session, select_descriptions(session, options, 1))
    if not found:
        raise UsageError(
            f"{session.group.model} has no posterior that reads partial descriptions; fit one with "
            "mmgen fit-aggregate --given attributes"
        )
    return found[0]
