"""Small graphs for the checks of members."""

from pathlib import Path

import numpy as np
import torch

from mmgen.artifacts import DatasetWriter
from mmgen.contrib.graphs.modalities.graph import GraphDescription
from mmgen.contrib.graphs.models.graph_vae import GraphSettings
from mmgen.core.batch import Batch
from mmgen.evaluation import Evaluation
from mmgen.modalities.vector import VectorDescription
from mmgen.models import DataSettings
from mmgen.testing.metrics import SMALL_TRAINING, train_small
from mmgen.testing.small import Case

SMALL_GRAPH = DataSettings.from_descriptions(
    GraphDescription(nodes=5, edges=4, absent=0, features="features"), VectorDescription(name="features", size=2)
)
"""Five nodes with two features each."""


def small_graph(size: int = 5) -> Batch:
    """Return a batch of the nodes of :data:`SMALL_GRAPH`: a triangle, and a pair beside it."""
    features = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.0], [0.0, 0.0]])
    values = {"graph": torch.arange(5), "features": features}
    shared = {"edges": torch.tensor([[0, 0, 1, 3], [1, 2, 2, 4]]), "unknown": torch.zeros(2, 0, dtype=torch.int64)}
    present = {name: torch.ones(5, dtype=torch.bool) for name in values}
    shared |= {"features": features}
    return Batch(values, present, {f"graph.{name}": each for name, each in shared.items()})[:size]


CASES = (Case(SMALL_GRAPH, small_graph, ("graph", "features"), ("graph",), GraphSettings(latent_size=3, hidden=4)),)


def small_graph_evaluation(folder: Path) -> Evaluation:
    """Train a graph auto-encoder of forty nodes in two groups, with data, in ``folder``; return its evaluation."""
    values = {
        "objective": {"name": "balanced-edges"},
        "model": {"name": "graph-vae", "latent_size": 2, "hidden": 4},
        "training": {**SMALL_TRAINING, "batch": 40},
        "data": {"split": "links"},
    }
    return train_small(folder, write_graph, values, ("prior",))


def write_graph(path: Path, nodes: int = 40) -> None:
    """Write a dataset of a graph with two groups of nodes, some of whose edges are held back."""
    generator = np.random.default_rng(0)
    group = np.arange(nodes) % 2
    pairs = np.array([(i, j) for i in range(nodes) for j in range(i + 1, nodes)], np.int32)
    same = group[pairs[:, 0]] == group[pairs[:, 1]]
    joined = generator.random(len(pairs)) < np.where(same, 0.4, 0.02)
    edges, others = pairs[joined], generator.permutation(pairs[~joined])
    part = np.where(np.arange(len(edges)) % 10 == 0, 2, np.where(np.arange(len(edges)) % 9 == 0, 1, 0)).astype(np.uint8)
    absent_part = part[part > 0]
    absent = others[: len(absent_part)]
    features = np.stack([group, 1 - group, np.ones(nodes)], 1).astype(np.float32)
    with DatasetWriter(path, nodes, {"recipe": "none"}, seed=0, command="mmgen.testing") as writer:
        writer.add(VectorDescription(name="features", size=3))
        writer.add_attributes("attributes", {"group": ["one", "other"]})
        writer.add(GraphDescription(nodes=nodes, edges=len(edges), absent=len(absent), features="features"))
        writer.write_whole("graph", {"edges": edges, "part": part, "absent": absent, "absent_part": absent_part})
        writer.write(0, {"features": features, "attributes": group[:, None].astype(np.uint8)})
        writer.add_split_of_edges("links")


EVALUATIONS = (small_graph_evaluation,)
