"""The published objective of graph autoencoders: edges weigh as much as all other pairs.

References:
    Variational Graph Auto-Encoders (Kipf, Welling, 2016), arXiv:1611.07308, and the authors' published code
"""

from typing import Annotated

from pydantic import Field

from mmgen.contrib.graphs.modalities.graph import Graph
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.models import USUAL_NEEDS, Demands, GaussianModel
from mmgen.objectives._base import Bound, Objective, prior_kl

__all__ = ["BalancedEdges"]


class BalancedEdges(Objective, settings=True):
    r"""Log-likelihood of a graph in which edges weigh as much as all other pairs, minus the divergence to p(Z).

    .. math:: \frac{1}{2 (1 - \rho)} \sum_{ij} \Big[\frac{1 - \rho}{\rho} A_{ij} \log p_{ij} + (1 - A_{ij})
              \log (1 - p_{ij})\Big] - \beta \sum_i KL(q(z_i|X, A) \,\|\, p(z_i))

    It is the authors' loss times minus N squared, where N are the nodes and rho is the share of pairs that are joined:
    they divide the first by N squared as a mean over pairs, and the second by N twice, which is the same weight. Pairs
    that are held back count as not joined, and every node as joined to itself. It is no bound on log p(A); ``elbo`` is.
    """

    graph: str = "graph"
    """The graph that is generated."""
    given: tuple[str, ...] = ("graph", "features")
    """What the posterior sees: the graph with features of its nodes, or ("graph",) alone."""
    beta: Annotated[float, Field(ge=0)] = 1.0
    """Weight of the divergence; 0 for a deterministic encoder, which has none (GAE)."""

    @property
    def demands(self) -> Demands:
        needs = USUAL_NEEDS if self.beta > 0 else USUAL_NEEDS - {"density"}
        return Demands(frozenset([self.given]), generates=(self.graph,), needs=needs)

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """Return None: the likelihood of a graph has no single weight here."""
        return None

    def __call__(self, model: GaussianModel, batch: Batch, step: int | None = None) -> Bound:
        graph = model.modalities[self.graph]
        if not isinstance(graph, Graph):
            raise SettingsError(f"objective.graph got '{self.graph}', which is no graph; name a modality of kind graph")
        q, pairs = model.posterior(batch, self.given), graph.pairs(batch)
        parameters = model.decode(self.graph, q.sample())
        scales = graph.sampling_factors(pairs, batch.size)
        if pairs.absent is not None:  # as many edges as other pairs are held back, so that they are balanced already
            likely = scales[0] * graph.log_prob_of_pairs(parameters, pairs)
        else:
            likely = graph.balanced_log_prob(parameters, pairs, graph.edge_share(batch), scales)
        terms = {f"balanced log p({self.graph}|z)": likely}
        if not self.beta:
            return Bound(likely, terms)
        kl = prior_kl(q)
        return Bound(likely - self.beta * kl, {**terms, "kl": kl})
