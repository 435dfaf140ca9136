"""Graph: undirected edges between the rows of a dataset, which are its nodes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from mmgen.core.batch import Batch
from mmgen.core.errors import ArtifactError, DataError, SettingsError
from mmgen.core.memory import check_memory
from mmgen.likelihoods import full_precision
from mmgen.modalities._base import ROWS, Description, Element, Modality, StoredArray, all_present

__all__ = ["GraphDescription"]

_MANY = 4096  # nodes; below that pairs of nodes fit anywhere


@dataclass(frozen=True)
class Pairs:
    """Pairs of B nodes that are known to be joined or not; each is listed once, as positions of its nodes in the batch.

    Attributes:
        joined: Pairs that an edge joins, int64 [2, E].
        unknown: Pairs that may be joined or not, int64 [2, U]; all others are not joined.
        absent: If only listed pairs count: those that no edge joins, int64 [2, M]; else None.
        first_occurrence: True for positions to count, bool [B], if a node occurs twice; None counts all.
    """

    joined: Tensor
    unknown: Tensor
    absent: Tensor | None = None
    first_occurrence: Tensor | None = None


class Graph(Modality):
    r"""Graph whose edges are independent given the latents of its nodes.

    .. math:: p(A|Z) = \prod_{i<j} Bernoulli\big(A_{ij}; \sigma(z_i^\top z_j)\big)  \qquad \text{(Kipf and Welling,
              2016, Section 1)}

    Decoder outputs are vectors of the nodes [..., B, F], whose inner products are the log odds of edges.

    Args:
        name: Name in the dataset file.
        nodes: N, nodes of the whole graph.
    """

    kind: ClassVar[str] = "graph"
    is_independent: ClassVar[bool] = False

    def __init__(self, name: str, nodes: int) -> None:
        self.name = name
        self.nodes = nodes

    def pairs(self, batch: Batch) -> Pairs:
        """Return the known pairs among a batch's nodes: of training, or those held back for validation or test."""
        nodes, shared = batch.values[self.name], batch.shared
        if len(nodes) > _MANY:
            check_memory(16 * len(nodes) ** 2, f"all pairs of {len(nodes):,} nodes", "use a smaller --batch")
        position = torch.full((self.nodes,), -1, device=nodes.device)
        places = torch.arange(len(nodes), device=nodes.device)
        position[nodes] = places
        # A batch that begins in one epoch and ends in the next may hold a node twice.
        once = position[nodes] == places
        counted_once = None if once.all() else once

        def select_pairs(name: str) -> Tensor:
            """Return the pairs of a stored list whose two nodes are in the batch, as positions."""
            places = position[shared[f"{self.name}.{name}"]]
            return places[:, (places >= 0).all(0)]

        if f"{self.name}.held_edges" in shared:
            joined = select_pairs("held_edges")
            return Pairs(joined, joined[:, :0], select_pairs("held_absent"), counted_once)
        return Pairs(select_pairs("edges"), select_pairs("unknown"), first_occurrence=counted_once)

    def sampling_factors(self, pairs: Pairs, size: int) -> tuple[float, float]:
        """Return factors that scale sums over pairs within a batch of ``size`` nodes to sums over the whole graph.

        Returns:
            The factor of pairs with other nodes, of which there are N - 1 in all, and that of a node with itself. A
            node that occurs twice has one share.
        """
        nodes = size if pairs.first_occurrence is None else int(pairs.first_occurrence.sum())
        return (self.nodes - 1) / max(1, nodes - 1) * size / nodes, size / nodes

    def edge_share(self, batch: Batch) -> float:
        """Return the share of ordered pairs of nodes, self-pairs included, that edges of the training part join.

        Raises:
            DataError: The training part has no edge.
        """
        if not batch.shared[f"{self.name}.edges"].shape[1]:
            raise DataError(
                f"{self.name} has no edges in its training part, expected at least one; hold back fewer edges when "
                "making the dataset"
            )
        return 2 * batch.shared[f"{self.name}.edges"].shape[1] / self.nodes**2

    def log_odds(self, parameters: Tensor, pairs: Tensor) -> Tensor:
        """Return log odds of an edge between listed pairs [..., M]: node vectors [..., N, F], pairs int64 [2, M]."""
        vectors = full_precision(parameters)
        return (vectors[..., pairs[0], :] * vectors[..., pairs[1], :]).sum(-1)

    def log_prob(self, parameters: Tensor, value: Tensor, present: Tensor) -> Tensor:
        """Return half the log-probability of each node's pairs, nats [..., B], so that their sum is log p(A | Z).

        Args:
            parameters: Vectors of the nodes [..., B, F].
            value: Whether pairs are joined, bool [B, B], symmetric.
            present: Whether that is known, bool [B, B], symmetric; a node with itself is no pair.
        """
        odds = self._all_log_odds(parameters)
        known = present & ~torch.eye(len(present), dtype=torch.bool, device=present.device)
        return 0.5 * (value * odds - softplus(odds)).masked_fill(~known, 0.0).sum(-1)

    def log_prob_of_pairs(self, parameters: Tensor, pairs: Pairs) -> Tensor:
        """Return each node's half of the log-probability of known pairs, nats [..., B].

        Args:
            parameters: Vectors of the nodes [..., B, F].
            pairs: What is known of them.
        """
        if pairs.absent is not None:
            found = self._halve_by_node(parameters, pairs.joined, logsigmoid(self.log_odds(parameters, pairs.joined)))
            return found + self._halve_by_node(
                parameters, pairs.absent, logsigmoid(-self.log_odds(parameters, pairs.absent))
            )
        return (
            0.5
            * self._log_prob_without_edges(
                parameters, pairs.first_occurrence, -softplus(self._self_log_odds(parameters))
            )
            + self._halve_by_node(parameters, pairs.joined, self.log_odds(parameters, pairs.joined))
            + self._halve_by_node(parameters, pairs.unknown, softplus(self.log_odds(parameters, pairs.unknown)))
        )

    def balanced_log_prob(
        self, parameters: Tensor, pairs: Pairs, density: float, scales: tuple[float, float] = (1.0, 1.0)
    ) -> Tensor:
        r"""Return Kipf and Welling's training objective, in which edges weigh as much as all other pairs.

        .. math:: \frac{1}{2 (1 - \rho)} \sum_j \Big[\frac{1 - \rho}{\rho} A_{ij} \log \sigma(z_i^\top z_j)
                  + (1 - A_{ij}) \log \sigma(-z_i^\top z_j)\Big], \quad A_{ii} = 1

        Every node is joined to itself, and a pair that is unknown counts as not joined.

        Args:
            parameters: Vectors of the nodes [..., B, F].
            pairs: Which are joined.
            density: rho, the share of ordered pairs that edges join (see :meth:`edge_share`).
            scales: Factors of pairs of different nodes and of a node with itself (see :meth:`sampling_factors`).

        Returns:
            Each node's share [..., B].
        """
        weight = (1 - density) / density

        def term_of_edge(odds: Tensor) -> Tensor:
            """Return the term of a joined pair less the term of the same pair if it were not joined."""
            return weight * logsigmoid(odds) + softplus(odds)

        edges = 2 * self._halve_by_node(parameters, pairs.joined, term_of_edge(self.log_odds(parameters, pairs.joined)))
        own = self._self_log_odds(parameters)
        others = self._log_prob_without_edges(parameters, pairs.first_occurrence, -softplus(own)) + edges
        itself = weight * logsigmoid(own) * (1.0 if pairs.first_occurrence is None else pairs.first_occurrence)
        return (scales[0] * others + scales[1] * itself) / (2 * (1 - density))

    def mean(self, parameters: Tensor) -> Tensor:
        """Return the probabilities that pairs of nodes are joined [..., B, B]; 0 for a node with itself."""
        probability = self._all_log_odds(parameters).sigmoid()
        return probability * (1 - torch.eye(probability.shape[-1], device=probability.device))

    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw a graph: whether pairs of nodes are joined, bool [..., B, B], symmetric."""
        probability = self.mean(parameters)
        noise = torch.rand(probability.shape, generator=generator, device=probability.device)
        upper = (noise < probability).triu(1)
        return upper | upper.mT

    def _all_log_odds(self, parameters: Tensor) -> Tensor:
        """Return the log odds of all pairs of nodes [..., B, B]."""
        with torch.autocast(parameters.device.type, enabled=False):
            vectors = full_precision(parameters)
            return vectors @ vectors.mT

    def _self_log_odds(self, parameters: Tensor) -> Tensor:
        """Return the log odds of each node with itself [..., B]."""
        return full_precision(parameters).square().sum(-1)

    def _log_prob_without_edges(
        self, parameters: Tensor, first_occurrence: Tensor | None, self_terms: Tensor
    ) -> Tensor:
        """Return the sum over all nodes j of log p(i and j are not joined), less ``self_terms`` [..., B], in nats."""
        terms = softplus(self._all_log_odds(parameters))
        if first_occurrence is None:
            return -terms.sum(-1) - self_terms
        return (-(terms * first_occurrence).sum(-1) - self_terms) * first_occurrence

    def _halve_by_node(self, parameters: Tensor, pairs: Tensor, terms: Tensor) -> Tensor:
        """Sum half of each pair's term [..., M] into either of its nodes [..., B]."""
        empty = terms.new_zeros(*terms.shape[:-1], parameters.shape[-2])
        return empty.index_add(-1, pairs[0], 0.5 * terms).index_add(-1, pairs[1], 0.5 * terms)


Count = Annotated[int, Field(ge=0)]
_PARTS = ("train", "val", "test")


class GraphDescription(Description):
    """Specification of an undirected graph between the rows of a dataset; some pairs of rows are held back.

    It is stored as pairs of rows, the smaller first and each once: ``edges`` int32 [E, 2] with the part of the split
    that each belongs to, ``part`` uint8 [E] (0 training, 1 validation, 2 test), and ``absent`` int32 [M, 2], pairs
    without an edge that are held back with the edges of ``absent_part`` uint8 [M], 1 or 2.
    """

    streamed: ClassVar[bool] = False
    joins_rows: ClassVar[bool] = True

    kind: Literal["graph"] = "graph"
    name: str = "graph"
    nodes: Annotated[int, Field(ge=2)]
    """N, nodes; all rows of the dataset."""
    edges: Count
    """E, edges of all parts."""
    absent: Count
    """M, pairs without an edge that are held back."""
    features: str = ""
    """The vector modality that says what nodes are like; "" where nothing does."""

    def arrays(self) -> dict[str, StoredArray]:
        pairs, part = ("int32", (2,)), ("uint8", ())
        return {
            "edges": StoredArray(*pairs, rows=self.edges),
            "part": StoredArray(*part, rows=self.edges),
            "absent": StoredArray(*pairs, rows=self.absent),
            "absent_part": StoredArray(*part, rows=self.absent),
        }

    def text_attributes(self) -> dict[str, str]:
        return {"nodes": str(self.nodes), "features": self.features}

    @classmethod
    def read(cls, name: str, element: Element) -> "GraphDescription":
        nodes, features = element.text("nodes"), element.text("features")
        counts = [shape[0] if (shape := element.shape(array)) else 0 for array in ("edges", "absent")]
        if not (nodes.isascii() and nodes.isdecimal() and 2 <= int(nodes[:10]) < 2**31 and len(nodes) <= 10):
            raise ArtifactError(
                f"{element.location} does not say how many nodes it has, at least 2; make the file again"
            )
        return cls(name=name, nodes=int(nodes), edges=counts[0], absent=counts[1], features=features)

    def find_conflict(self, others: Mapping[str, Description]) -> str:
        beside = others.get(self.features)
        if not self.features or (beside is not None and beside.kind == "vector"):
            return ""
        return f"its features are '{self.features}', which is no vector of the file"

    @property
    def examples(self) -> int:
        return self.nodes

    def find_fault(self, stored: np.ndarray, array: str = ROWS) -> str:
        if array in ("part", "absent_part"):
            least = 0 if array == "part" else 1
            return "" if ((stored >= least) & (stored < len(_PARTS))).all() else f"a part is none of {_PARTS[least:]}"
        ordered = (stored[:, 0] >= 0) & (stored[:, 0] < stored[:, 1]) & (stored[:, 1] < self.nodes)
        return "" if ordered.all() else f"a pair is not two nodes of 0 to {self.nodes - 1}, the smaller first"

    def values_and_presence(self, values: "Tensor") -> tuple["Tensor", "Tensor"]:
        """Return node numbers [B] unchanged, all present."""
        return values.long(), all_present(values)

    def shared_arrays(self, read: Callable[[str, str], np.ndarray], part: str | None) -> Mapping[str, np.ndarray]:
        """Return edges of training and pairs that it does not know; for part "val" or "test" also held-back pairs.

        Returns:
            ``edges`` int64 [2, E'], ``unknown`` int64 [2, U]; ``features`` float32 [N, F] of all nodes where there are
            any; ``held_edges`` and ``held_absent`` int64 [2, *] for part "val" or "test".

        Raises:
            ArtifactError: A pair is listed twice.
        """
        edges, absent = (read(self.name, array).astype(np.int64) for array in ("edges", "absent"))
        codes = np.concatenate([edges, absent]) @ np.array([self.nodes, 1])
        if len(np.unique(codes)) < len(codes):
            raise ArtifactError(
                f"{self.name} lists a pair twice, so that training would see what is held back; make the file again"
            )
        of_edges, of_absent = read(self.name, "part"), read(self.name, "absent_part")
        found = {
            "edges": edges[of_edges == 0].T,
            "unknown": np.concatenate([edges[of_edges > 0], absent]).T,
        }
        if self.features:
            found["features"] = read(self.features, ROWS)
        if part is not None and (code := _PARTS.index(part)):
            found |= {"held_edges": edges[of_edges == code].T, "held_absent": absent[of_absent == code].T}
        return {name: np.ascontiguousarray(values) for name, values in found.items()}

    def modality(self, likelihood: str | None = None) -> "Graph":
        from mmgen.contrib.graphs.modalities.graph import Graph

        if likelihood is not None:
            raise SettingsError(f"{self.name} got likelihood '{likelihood}', but a graph has only one; leave it out")
        return Graph(self.name, self.nodes)

    def is_compatible(self, other: Description) -> bool:
        return isinstance(other, GraphDescription) and (self.nodes, self.features) == (other.nodes, other.features)

    def describe_size(self) -> str:
        return f"{self.name} of {self.nodes:,} nodes and {self.edges:,} edges"
