"""What is decoded at each point of a 2-D latent space, coloured by p(y|z) (VE Fig. 7).

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Fig. 7
"""

from collections.abc import Sequence

import torch

from mmgen.errors import UsageError
from mmgen.figures._maps import latent_maps
from mmgen.figures._pictures import Picture, Session
from mmgen.figures.plots._base import Wanted, heeds

__all__ = ["latent_map"]


@heeds(one=True, plane=True)
def latent_map(sessions: Sequence[Session], wanted: Wanted) -> Picture:
    """The map of one model; coloured by its attributes, the first where they do not fit together.

    Raises:
        UsageError: It does not draw images from z alone.
    """
    session = sessions[0]
    with torch.inference_mode():
        found = latent_maps(session)
    if not found:
        raise UsageError(f"{session.group.model} does not decode images from z alone, which this figure shows")
    return found[0]
