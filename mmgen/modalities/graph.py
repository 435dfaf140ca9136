"""Graph: undirected edges between the rows of a dataset, which are its nodes."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from mmgen.core.errors import ArtifactError, SettingsError
from mmgen.modalities._base import ROWS, Description, Element, StoredArray, all_present

if TYPE_CHECKING:
    from torch import Tensor

    from mmgen.modalities._graph import Graph

__all__ = ["GraphDescription"]

Count = Annotated[int, Field(ge=0)]
_PARTS = ("train", "val", "test")


class GraphDescription(Description):
    """Specification of an undirected graph between the rows of a dataset; some pairs of rows are held back.

    It is stored as pairs of rows, the smaller first and each once: ``edges`` int32 [E, 2] with the part of the split
    that each belongs to, ``part`` uint8 [E] (0 training, 1 validation, 2 test), and ``absent`` int32 [M, 2], pairs
    without an edge that are held back with the edges of ``absent_part`` uint8 [M], 1 or 2.
    """

    streamed: ClassVar[bool] = False

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
        from mmgen.modalities._graph import Graph

        if likelihood is not None:
            raise SettingsError(f"{self.name} got likelihood '{likelihood}', but a graph has only one; leave it out")
        return Graph(self.name, self.nodes)

    def is_compatible(self, other: Description) -> bool:
        return isinstance(other, GraphDescription) and (self.nodes, self.features) == (other.nodes, other.features)

    def describe_size(self) -> str:
        return f"{self.name} of {self.nodes:,} nodes and {self.edges:,} edges"
