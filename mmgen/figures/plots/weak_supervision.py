"""Accuracy of labels read off images over the number of paired examples, one line for each method (WG Fig. 3).

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335, Fig. 3
"""

from collections.abc import Sequence

from mmgen.figures._pictures import Picture, Session
from mmgen.figures.plots._base import Wanted, heeds
from mmgen.figures.supervision import curves_of, departures, draw_curves, finding, learnt_from

__all__ = ["weak_supervision"]


@heeds()
def weak_supervision(sessions: Sequence[Session], wanted: Wanted) -> Picture:
    """The accuracies in score files; models that are named beside them are not asked.

    Raises:
        UsageError: No score says how many pairs it is of.
    """
    curves = curves_of(wanted.scores)
    counts = sorted({point.n for curve in curves for point in curve.points})
    caption = (
        f"Each point is measured on {' or '.join(f'{count:,}' for count in counts)} test images; bars are one binomial "
        "standard error."
    )
    said = [caption, learnt_from(curves), departures(wanted.scores), finding(curves)]
    return Picture(
        "Labels read off images, by number of paired examples", " ".join(filter(None, said)), draw_curves(curves)
    )
