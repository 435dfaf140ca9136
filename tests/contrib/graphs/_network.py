"""Small citation networks in the publisher's files."""

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from mmgen.contrib.graphs.data_recipes import planetoid
from mmgen.contrib.graphs.data_recipes.planetoid import Network


def publish(
    folder: Path, features: Any, one_hot: Any, graph: dict[int, list[int]], tested: list[int], protocol: int = 2
) -> None:
    """The files ``ind.cora.*``: papers up to the first of ``tested`` are known, these are in another file."""
    first = min(tested)
    parts = {
        "x": csr_matrix(features[:2]), "allx": csr_matrix(features[:first]), "tx": csr_matrix(features[tested]),
        "y": one_hot[:2], "ally": one_hot[:first], "ty": one_hot[tested], "graph": defaultdict(list, graph),
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    for part, value in parts.items():
        (folder / f"ind.cora.{part}").write_bytes(pickle.dumps(value, protocol))
    (folder / "ind.cora.test.index").write_text("".join(f"{row}\n" for row in tested))


def expect(monkeypatch: pytest.MonkeyPatch, nodes: int, edges: Any, features: int, classes: int) -> None:
    """Make Cora a network of this size and these sorted edges."""
    sha256 = planetoid._edges_hash(nodes, np.asarray(edges))
    monkeypatch.setitem(planetoid.NETWORKS, "cora", Network(nodes, len(edges), features, classes, sha256))


def build_network(folder: Path, monkeypatch: pytest.MonkeyPatch, nodes: int = 60) -> Path:
    """Papers of two fields, each citing others of its field and saying its words; the folder that they are in."""
    generator = np.random.default_rng(0)
    field = np.arange(nodes) % 2
    pairs = [
        (i, j) for i in range(nodes) for j in range(i) if generator.random() < (0.3 if field[i] == field[j] else 0.02)
    ]
    edges = np.unique(np.sort(np.array(pairs), axis=1), axis=0)
    graph: dict[int, list[int]] = {node: [] for node in range(nodes)}
    for one, other in edges.tolist():
        graph[one].append(other)
        graph[other].append(one)
    features = (generator.random((nodes, 6)) < np.where(np.arange(6) < 3, 0.2, 0.6)).astype(np.float32)
    features[field == 1] = features[field == 1][:, ::-1]
    publish(folder, features, np.eye(2, dtype=np.int32)[field], graph, list(range(nodes - 1, nodes - 11, -1)))
    expect(monkeypatch, nodes, edges, 6, 2)
    return folder
