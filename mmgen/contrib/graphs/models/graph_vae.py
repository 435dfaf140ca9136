r"""Graph autoencoders: a latent vector for every node, whose inner products determine the edges.

References:
    Variational Graph Auto-Encoders (Kipf, Welling, 2016), arXiv:1611.07308, Section 1, and the authors' published code
"""

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from mmgen.contrib.graphs._networks import GraphConvolution, normalised_adjacency
from mmgen.contrib.graphs.modalities.graph import Graph, GraphDescription
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError, UsageError
from mmgen.inference import Inputs
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.modalities.vector import Vector
from mmgen.models._base import Demands
from mmgen.models._gaussian_model import GaussianModel
from mmgen.models._parts import available_modalities
from mmgen.models._settings import DataSettings, ModelSettings

__all__ = ["GraphVAE"]

Count = Annotated[int, Field(ge=1)]
_POINT = -87.0
"""log sd of a deterministic encoder: the least that a normal number of float32 can be."""


class GraphSettings(ModelSettings):
    """Settings of a graph auto-encoder: sizes of layers, and whether encodings are Gaussians or points."""

    name: Literal["graph-vae"] = "graph-vae"
    """The kind of model."""
    latent_size: Count = 16
    """Dimensions of a node's z."""
    hidden: Count = 32
    """Features between the two convolutions."""
    variational: bool = True
    """Whether a node's z is a Gaussian (VGAE), or the one point that its mean is (GAE), which has no bound."""


class GraphVAE(GaussianModel):
    r"""Graph auto-encoder: two graph convolutions encode each node as a Gaussian, inner products decode edges.

    .. math:: q(Z|X, A) = \prod_i N(\mu_i, \sigma_i^2), \quad \mu = \hat A \, ReLU(\hat A X W_0) W_1, \quad
              p(A|Z) = \prod_{i<j} Bernoulli(A_{ij}; \sigma(z_i^\top z_j))

    The rows of a dataset are nodes, and a batch holds some of them or all; whatever it holds, every node is encoded
    with the whole graph that is known. log p of the graph is of each unordered pair once; half of it counts for either
    node, so that the sum over all nodes is log p(A|Z). Of a batch of B of N nodes, only pairs among these are looked
    at, (N - 1) / (B - 1) times, which is right in expectation.

    Args:
        latent_size: D, dimensions of a node's z.
        graph: The graph, by whose number of nodes tables of weights are made where there are no features.
        features: Name and size of the nodes' features; None where q is given the graph alone (X = I).
        hidden: Features between the two convolutions.
        variational: Whether z is drawn.
    """

    settings = GraphSettings

    def __init__(
        self, latent_size: int, graph: Graph, features: tuple[str, int] | None, hidden: int, variational: bool
    ) -> None:
        super().__init__()
        self.latent = LatentSpace.flat(latent_size)
        self.modalities = {graph.name: graph}
        self.decoders = nn.ModuleDict()
        self.graph = graph
        self.features = features[0] if features else None
        self.first = GraphConvolution(features[1] if features else graph.nodes, hidden)
        self.mean_head = GraphConvolution(hidden, latent_size)
        self.log_sd_head = GraphConvolution(hidden, latent_size) if variational else None

    @classmethod
    def build(cls, settings: GraphSettings, demands: Demands, data: DataSettings) -> "GraphVAE":
        available = available_modalities(data, {}, demands.modalities)
        graphs = [graph for name in demands.generates if isinstance(graph := available[name], Graph)]
        inputs = sorted(demands.posteriors)
        seen = [available[name] for name in inputs[0]] if len(inputs) == 1 else []
        vectors = [vector for vector in seen if isinstance(vector, Vector)]
        rest = [each for each in seen if not isinstance(each, Vector)]
        alone = len(demands.generates) == 1 and rest == graphs and len(vectors) <= 1
        if not graphs or not alone or demands.conditions_on or "subsets" in demands.needs:
            wanted = " and ".join(f"q(z | {', '.join(one)})" for one in inputs)
            raise SettingsError(
                "model graph-vae reads a graph, with or without a vector of features of its nodes, and generates the "
                f"graph alone, but the objective asks for {wanted} and generates {', '.join(demands.generates)}; use "
                "an objective that reads and generates the graph, or another model"
            )
        described = data.modalities[graphs[0].name]
        named = described.features if isinstance(described, GraphDescription) else ""
        if vectors and vectors[0].name != named:
            raise SettingsError(
                f"the objective infers z from {vectors[0].name} as features of nodes, but the features of "
                f"{graphs[0].name} are {named or 'missing'}; infer z from {graphs[0].name}"
                f"{f' and {named}, or from {graphs[0].name} alone' if named else ' alone'}"
            )
        features = (vectors[0].name, vectors[0].size) if vectors else None
        return cls(settings.latent_size, graphs[0], features, settings.hidden, settings.variational)

    @property
    def capabilities(self) -> frozenset[str]:
        return super().capabilities - ({"density"} if self.log_sd_head is None else set())

    @property
    def _posterior_inputs(self) -> Inputs:
        """Names of the modalities that are encoded: the graph and, if it has them, features of its nodes."""
        return (self.graph.name,) if self.features is None else (self.graph.name, self.features)

    def has_posterior(self, inputs: Inputs) -> bool:
        return not inputs or set(inputs) == set(self._posterior_inputs)

    def posterior(self, batch: Batch, inputs: Inputs) -> DiagonalGaussian:
        if not inputs:
            return DiagonalGaussian.standard(batch.size, self.latent_size, like=next(self.parameters()))
        if not self.has_posterior(inputs):
            raise UsageError(
                f"this model has no inference network for q(z | {', '.join(inputs)}); "
                "fit one afterwards with mmgen fit-aggregate"
            )
        adjacency = normalised_adjacency(batch.shared[f"{self.graph.name}.edges"], self.graph.nodes)
        features = None if self.features is None else batch.shared[f"{self.graph.name}.features"]
        hidden = self.first(adjacency, features).relu()
        nodes = batch.values[self.graph.name]
        mean = self.mean_head(adjacency, hidden)[nodes]
        if self.log_sd_head is None:
            return DiagonalGaussian(mean, torch.full_like(mean, _POINT))
        return DiagonalGaussian(mean, self.log_sd_head(adjacency, hidden)[nodes])

    def decode(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        """Return z unchanged, since inner products of nodes' z are the log odds of edges."""
        if name != self.graph.name:
            raise UsageError(f"this model does not generate {name}; it generates {self.graph.name}")
        return z

    def log_likelihood(self, name: str, z: Tensor, batch: Batch) -> Tensor:
        pairs = self.graph.pairs(batch)
        return self.graph.sampling_factors(pairs, batch.size)[0] * self.graph.log_prob_of_pairs(
            self.decode(name, z), pairs
        )

    def inference_parameters(self) -> list[nn.Parameter]:
        return list(self.parameters())
