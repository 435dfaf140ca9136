"""A concept and its ancestors: attributes dropped one by one (VE Fig. 4b).

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Fig. 4b
"""

from collections.abc import Sequence

from mmgen.errors import UsageError
from mmgen.figures._pictures import Picture, Session, abstraction
from mmgen.figures.plots._base import Wanted, asked, heeds

__all__ = ["hierarchy"]


@heeds("given", "guidance", one=True)
def hierarchy(sessions: Sequence[Session], wanted: Wanted) -> Picture:
    """The abstraction hierarchy of a concept.

    Raises:
        UsageError: Nothing that was named draws from partial descriptions, or several concepts are wanted.
    """
    if len(wanted.given) > 1:
        raise UsageError(f"hierarchy drops the attributes of one concept, got {len(wanted.given)} --given; give one")
    session = sessions[0]
    found = abstraction(session, asked(session, wanted, 1))
    if not found:
        raise UsageError(
            f"{session.group.model} has no posterior given attributes of which some are unknown; fit one with "
            "mmgen fit-aggregate --given attributes"
        )
    return found[0]
