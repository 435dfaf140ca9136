"""Graph convolutions: the features of a node are averaged with those of its neighbours.

References:
    Semi-Supervised Classification with Graph Convolutional Networks (Kipf, Welling, 2017), arXiv:1609.02907, Eq. 2
"""

import torch
from torch import Tensor, nn

from mmgen.likelihoods import full_precision


def normalised_adjacency(edges: Tensor, nodes: int) -> Tensor:
    r"""Return the normalised adjacency :math:`\tilde D^{-1/2} (A + I) \tilde D^{-1/2}` of a graph, sparse float32 [N,
    N].

    Args:
        edges: int64 [2, E], each undirected edge once, none from a node to itself.
        nodes: N.
    """
    own = torch.arange(nodes, device=edges.device).expand(2, -1)
    both = torch.cat([edges, edges.flip(0), own], 1)
    degree = torch.bincount(both[0], minlength=nodes).float()
    weight = (degree[both[0]] * degree[both[1]]).rsqrt()
    return torch.sparse_coo_tensor(both, weight, (nodes, nodes), check_invariants=True).coalesce()


class GraphConvolution(nn.Module):
    """Graph convolution [N, inputs] -> [N, outputs]; for nodes without features each node has weights of its own.

    Args:
        inputs: Features of a node; the number of nodes N where they have none (X = I).
        outputs: Features of a node afterwards.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)

    def forward(self, adjacency: Tensor, features: Tensor | None) -> Tensor:
        """Return node features [N, outputs]: a linear map of the mean over each node's neighbours.

        Args:
            adjacency: Normalised, sparse [N, N].
            features: [N, inputs]; None for X = I, of which nothing N by N is made.
        """
        mixed = self.linear.weight.T if features is None else self.linear(features)
        with torch.autocast(mixed.device.type, enabled=False):  # sparse products know no half precision
            mixed = full_precision(mixed)
            return torch.sparse.mm(adjacency.to(mixed.dtype), mixed)
