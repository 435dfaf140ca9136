"""Planetoid: papers that cite one another, described by their words and their field.

References:
    Revisiting Semi-Supervised Learning with Graph Embeddings (Yang, Cohen, Salakhutdinov, 2016), arXiv:1603.08861
    Variational Graph Auto-Encoders (Kipf, Welling, 2016), arXiv:1611.07308, Section 2: which citations are held back
"""

from collections.abc import Generator
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mmgen.core.errors import DataError
from mmgen.core.progress import Progress, Work
from mmgen.core.seeding import numpy_generator
from mmgen.data_recipes._base import Recipe, Workers
from mmgen.data_recipes._planetoid import NETWORKS, Citations, compare_with_published, fetch_citations, read_citations
from mmgen.data_recipes._streams import random_order
from mmgen.modalities.graph import GraphDescription
from mmgen.modalities.vector import VectorDescription

__all__ = ["Planetoid"]

Share = Annotated[float, Field(gt=0, lt=0.5)]


class Planetoid(Recipe):
    """A citation network from the user's own copy; some citations are held back to be predicted.

    Its rows are papers, and all of them are in every part of its split: what a part holds is citations. The seed
    decides which are held back, so that ten seeds are ten splits.
    """

    network: Literal["cora", "citeseer", "pubmed"] = "cora"
    """Which network: 2,708 papers on machine learning, 3,327 on computer science, or 19,717 on diabetes."""

    planetoid: Annotated[Path | None, Field(exclude=True)] = None
    """Your copy: a folder with the publisher's files ind.cora.x and so on, or an archive of arrays cora.npz."""

    validation_share: Share = 0.05
    """Share of the citations that is held back for validation, with as many pairs that do not cite one another."""

    test_share: Share = 0.1
    """Share of the citations that is held back for the test, with as many such pairs."""

    name: ClassVar[str] = "planetoid"

    def setup_work(self) -> Work[Path] | None:
        return fetch_citations(self.network, self.planetoid)

    def make(
        self, path: Path, *, seed: int = 0, workers: Workers = None, chunk: int = 2048, command: str = ""
    ) -> Work[Path]:
        citations = read_citations(self.network, self.planetoid)
        content = compare_with_published(self.network, citations, self.planetoid)
        recorded = content.settings
        shares = self.validation_share, self.test_share
        part, absent, absent_part = hold_out_citations(citations, *shares, seed)

        def write_dataset() -> Generator[Progress, None, Path]:
            from mmgen.artifacts import DatasetWriter

            settings = {"recipe": self.name, **self.model_dump(), "source_sha256": citations.sha256, **recorded}
            with DatasetWriter(path, size=citations.nodes, settings=settings, seed=seed, command=command) as writer:
                if citations.features is not None:
                    writer.add(VectorDescription(name="features", size=citations.features.shape[1]))
                if citations.classes is not None:
                    fields = [str(code) for code in range(NETWORKS[self.network].classes)]
                    writer.add_attributes("attributes", {"field": fields})
                description_modality = "" if citations.features is None else "features"
                graph = GraphDescription(
                    nodes=citations.nodes, edges=len(citations.edges), absent=len(absent), features=description_modality
                )
                writer.add(graph)
                pairs = {"edges": citations.edges.astype(np.int32), "absent": absent.astype(np.int32)}
                writer.write_whole("graph", {**pairs, "part": part, "absent_part": absent_part})
                for start in range(0, citations.nodes, chunk):
                    rows = slice(start, min(start + chunk, citations.nodes))
                    columns: dict[str, NDArray[np.float32] | NDArray[np.uint8]] = {}
                    if citations.features is not None:
                        columns["features"] = citations.features[rows]
                    if citations.classes is not None:
                        columns["attributes"] = citations.classes[rows, None].astype(np.uint8)  # -1 is 255, unknown
                    if columns:
                        writer.write(start, columns)
                    yield Progress(rows.stop)
                meaning = f"all papers in every part; {shares[0]:.0%} of the citations are val, {shares[1]:.0%} test"
                writer.add_split_of_edges("links", meaning)
            return path

        return Work(f"making {self.name}", citations.nodes, "node", write_dataset, content.notes)


def hold_out_citations(
    citations: Citations, validation: float, test: float, seed: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8]]:
    """Choose citations to hold back for validation and test, and as many pairs of papers without a citation.

    No pair is in two parts, and no pair that stands for "not joined" is a citation of any part; in the authors' code a
    validation pair may be one of the test's.

    Args:
        citations: The network.
        validation: Share of the edges.
        test: Share of the edges.
        seed: Seed of the split.

    Returns:
        The part of each edge [E] (0 training, 1 validation, 2 test), pairs that no edge joins [M, 2], the smaller
        number first, and the part of each [M].

    Raises:
        DataError: There are too few edges to hold any back, or too few other pairs.
    """
    number = len(citations.edges)
    counts = int(validation * number), int(test * number)
    pairs = citations.nodes * (citations.nodes - 1) // 2
    if min(counts) == 0 or pairs - number < sum(counts):
        raise DataError(
            f"{number:,} edges of {citations.nodes:,} nodes are too few to hold back {counts[0]} for validation and "
            f"{counts[1]} for the test; use larger shares"
        )
    part = np.zeros(number, np.uint8)
    order = random_order(seed, "held back edges", number)
    part[order[: counts[0]]] = 1
    part[order[counts[0] : sum(counts)]] = 2
    codes = citations.edges[:, 0] * citations.nodes + citations.edges[:, 1]
    generator, absent = numpy_generator(seed, "held back pairs"), np.empty(0, np.int64)
    while len(absent) < sum(counts):
        one, other = np.sort(generator.integers(0, citations.nodes, (2, 4 * sum(counts))), axis=0)
        drawn = (one * citations.nodes + other)[one != other]
        fresh = drawn[~np.isin(drawn, codes)]
        together = np.concatenate([absent, fresh])
        absent = together[np.sort(np.unique(together, return_index=True)[1])]  # each once, in the order of drawing
    absent = absent[: sum(counts)]
    absent_part = np.repeat(np.array([1, 2], np.uint8), counts)
    return part, np.stack([absent // citations.nodes, absent % citations.nodes], 1), absent_part
