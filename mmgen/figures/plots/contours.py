"""True posteriors, aggregates of image posteriors and what was fitted, in a 2-D latent space (CK Fig. 1).

References:
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Fig. 1 and Section 5.5
"""

from collections.abc import Sequence

from mmgen.errors import UsageError
from mmgen.figures import _contours
from mmgen.figures._pictures import Picture, Session
from mmgen.figures.plots._base import Wanted, asked, dataset_of, heeds

__all__ = ["contours"]


@heeds("given", "number", one=True, plane=True)
def contours(sessions: Sequence[Session], wanted: Wanted) -> Picture:
    """Contours for a few descriptions of one model.

    Raises:
        UsageError: It has no images.
    """
    session = sessions[0]
    dataset_of(session)
    found = _contours.contours(session, asked(session, wanted, 4))
    if not found:
        raise UsageError(f"{session.group.model} encodes no images, whose posteriors this figure shows")
    return found[0]
