"""Planetoid: papers that cite one another, described by their words and their field.

References:
    Revisiting Semi-Supervised Learning with Graph Embeddings (Yang, Cohen, Salakhutdinov, 2016), arXiv:1603.08861
    Variational Graph Auto-Encoders (Kipf, Welling, 2016), arXiv:1611.07308, Section 2: which citations are held back
"""

import hashlib
import io
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mmgen.contrib.graphs._opcodes import Call, build_array, build_matrix, read_opcodes
from mmgen.contrib.graphs.modalities.graph import GraphDescription
from mmgen.core.errors import DataError
from mmgen.core.foreign import CannotReadError, open_zip, read_file, read_member
from mmgen.core.plain_text import decode_text
from mmgen.core.progress import Progress, Work
from mmgen.core.seeding import numpy_generator
from mmgen.core.surroundings import cache_folder
from mmgen.data_recipes._base import Recipe, Workers
from mmgen.data_recipes._published import (
    SourceComparison,
    compare_sha256,
    download,
    is_complete,
    published_source,
    read_npy_header,
    unverified_source,
)
from mmgen.data_recipes._streams import random_order
from mmgen.modalities.vector import VectorDescription

__all__ = ["Planetoid"]

_PARTS = ("tx", "allx", "ty", "ally", "graph", "test.index")
"""Those of the publisher's files that are read, after "ind.NAME."; x and y are among allx and ally."""

_LARGEST = 200 * 2**20
"""Bytes of a file or of an array in one, far above what the networks have."""
_ARRAYS = {f"{name}.npy" for name in ("edges", "num_nodes", "num_features", "feature_rows", "feature_cols")}
_MIRRORS = ["https://raw.githubusercontent.com/kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data/"]


@dataclass(frozen=True)
class Network:
    """Files, sizes and hashes of a published citation network.

    Attributes:
        nodes: Papers.
        edges: Undirected edges without loops.
        features: Words that are looked for.
        classes: Fields.
        sha256: Hash of the number of nodes and the edges, whatever file they came in (:func:`_edges_hash`).
        content: Hash of edges and features, as :attr:`Citations.sha256`; "" where it is not known here.
    """

    nodes: int
    edges: int
    features: int
    classes: int
    sha256: str
    content: str = ""


NETWORKS = {
    "cora": Network(
        2_708, 5_278, 1_433, 7, "14dfe8f0ad121e3fd3399237366cde2257f6f51394afc0c3766c713ea3bf618c",
        "2345df04948b7b3b3902e58d57d0e433a01756ceedc7c400422493f01a27790c",
    ),
    "citeseer": Network(
        3_327, 4_552, 3_703, 6, "a1d39e74fc57703740603f39377a790342eae58a3a9593c1de4238a2cc5bd7e5",
        "22a0a9429fd2701d3ccc952b416ad5e8b2420793b20799a73147eed54c43afda",
    ),
    "pubmed": Network(19_717, 44_324, 500, 3, "815fc26636487dd3d52d1027879dd21b3b93bf087a2cd989fa327611c76d4b20"),
}  # fmt: skip


@dataclass(frozen=True)
class Citations:
    """Citations between papers, with the papers' words and fields.

    Attributes:
        edges: Pairs of papers int64 [E, 2], the smaller number first, sorted, each once, none with itself.
        features: Words of each paper, float32 [N, F]; None where the source holds none.
        classes: The field of each paper int64 [N], -1 where it is not known; None where the source holds none.
        nodes: N.
        sha256: Hash of edges and features, whatever file they came in.
    """

    edges: NDArray[np.int64]
    features: NDArray[np.float32] | None
    classes: NDArray[np.int64] | None
    nodes: int
    sha256: str


def read_citations(name: str, source: Path | None) -> Citations:
    """Read a citation network from the user's files or the cache.

    Args:
        name: "cora", "citeseer" or "pubmed".
        source: The user's folder or archive; None for the cache.

    Raises:
        DataError: The files are missing, malformed, or of another network.
    """
    source = source or cache_folder("planetoid")
    citations = (
        _read_publisher_files(name, source) if (source / f"ind.{name}.graph").exists() else _read_archive(name, source)
    )
    known = NETWORKS[name]
    counts = (
        citations.nodes,
        len(citations.edges),
        known.features if citations.features is None else citations.features.shape[1],
    )
    if counts != (known.nodes, known.edges, known.features):
        raise DataError(
            f"{source} holds {counts[0]:,} nodes, {counts[1]:,} edges and {counts[2]:,} features, expected "
            f"{known.nodes:,}, {known.edges:,} and {known.features:,} of {name}; give the publisher's files"
        )
    if (digest := _edges_hash(citations.nodes, citations.edges)) != known.sha256:
        raise DataError(
            f"{source} holds other edges than {name} as published (SHA-256 {digest[:12]}..., expected "
            f"{known.sha256[:12]}...); give the publisher's files"
        )
    return citations


def compare_with_published(name: str, citations: Citations, source: Path | None) -> SourceComparison:
    """Compare the features and classes of a network with the published ones; its edges are known to be equal."""
    where, published = source or cache_folder("planetoid"), NETWORKS[name].content
    if citations.features is None:
        return published_source(name, where)  # all that there is
    if not published:
        return unverified_source(name, where, "its edges are as published, its features are counted and not compared")
    return compare_sha256(name, where, citations.sha256, published)


def fetch_citations(name: str, source: Path | None) -> Work[Path] | None:
    """Return work that downloads a network for :func:`read_citations`; None if the user or the cache has it."""
    cache = cache_folder("planetoid")
    files = {f"ind.{name}.{part}": ("", 0) for part in _PARTS}
    if source is not None or is_complete(cache, files) or (cache / f"{name}.npz").exists():
        return None
    manual = f"get the files ind.{name}.* some other way and name their folder with --planetoid"
    return download(cache, files, _MIRRORS, manual)


def _edges_hash(nodes: int, edges: NDArray[np.int64]) -> str:
    """Return the SHA-256 of the number of nodes and the sorted edges, as 64-bit little-endian numbers."""
    return hashlib.sha256(np.array(nodes, "<i8").tobytes() + edges.astype("<i8").tobytes()).hexdigest()


def _build_citations(nodes: int, pairs: NDArray[Any], features: Any, classes: Any, origin: Path) -> Citations:
    """Sort edges and keep each once, check their nodes, and hash everything."""
    pairs = np.sort(np.asarray(pairs, np.int64).reshape(-1, 2), axis=1)
    if len(pairs) and (pairs[:, 0].min() < 0 or pairs[:, 1].max() >= nodes):
        raise DataError(f"{origin} has edges of nodes outside 0 to {nodes - 1}; give the publisher's files")
    edges = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    digest = hashlib.sha256(_edges_hash(nodes, edges).encode())
    if features is not None:
        if features.shape[0] != nodes or not np.isfinite(features).all():
            raise DataError(f"{origin} has features of {features.shape[0]} nodes, expected {nodes} rows of numbers")
        features = np.ascontiguousarray(features, dtype=np.float32)
        digest.update(features.astype("<f4").tobytes())
    return Citations(edges, features, classes, nodes, digest.hexdigest())


def _read_archive(name: str, source: Path) -> Citations:
    path, known = source / f"{name}.npz" if source.is_dir() else source, NETWORKS[name]
    if source.is_dir() and not path.exists():
        raise DataError(f"{source} holds neither ind.{name}.graph nor {path.name}; give a folder with either")
    try:
        with open_zip(path) as archive:
            arrays = {
                member.filename.removesuffix(".npy"): _parse_array(read_member(archive, member, _LARGEST))
                for member in archive.infolist()
                if member.filename in _ARRAYS
            }
        nodes, edges, features = int(arrays["num_nodes"]), arrays["edges"], None
        if "num_features" in arrays:
            shape = nodes, int(arrays["num_features"])
            if shape != (known.nodes, known.features):
                raise ValueError(f"{shape[0]:,} nodes of {shape[1]:,} features")
            features = np.zeros(shape, np.float32)
            features[arrays["feature_rows"], arrays["feature_cols"]] = 1
        return _build_citations(nodes, edges, features, None, path)
    except KeyError as error:
        raise DataError(
            f"{path} has no array {error}; give an archive of the arrays, or the publisher's files"
        ) from None
    except (CannotReadError, ValueError, IndexError, TypeError, OverflowError) as error:
        raise DataError(f"cannot read {path} as {name}: {error}; give the publisher's files") from None


def _parse_array(stored: bytes) -> NDArray[Any]:
    """Read an array from the bytes of an ``.npy`` file; memory is allocated only for bytes that are there."""
    source = io.BytesIO(stored)
    shape, fortran, dtype = read_npy_header(source)
    if dtype.kind not in "biuf":
        raise ValueError(f"an array of {dtype}")
    numbers = np.frombuffer(stored, dtype, offset=source.tell())
    return numbers.reshape(shape, order="F" if fortran else "C")


def _read_publisher_files(name: str, folder: Path) -> Citations:
    """Read the publisher's files: test papers come last and in another order, and Citeseer lacks some of them."""

    def publisher_file(part: str) -> Path:
        return folder / f"ind.{name}.{part}"

    network = NETWORKS[name]
    try:
        test_numbers = np.array(decode_text(read_file(publisher_file("test.index"), _LARGEST)).split(), dtype=np.int64)
    except (CannotReadError, ValueError, OverflowError) as error:
        raise DataError(f"cannot read {publisher_file('test.index')}: {error}; give the publisher's files") from None
    contents = {part: read_opcodes(publisher_file(part)) for part in ("tx", "allx", "ty", "ally", "graph")}
    try:
        known, tested = build_matrix(contents["allx"]), build_matrix(contents["tx"])
        of_known, of_tested = build_array(contents["ally"]), build_array(contents["ty"])
        graph = contents["graph"].items if isinstance(contents["graph"], Call) else dict(contents["graph"])
        if sum(len(others) for others in graph.values()) > 10 * network.edges:  # lists may be shared, and cost nothing
            raise ValueError("far more edges than the published network has")
        pairs = [(int(one), int(other)) for one, others in graph.items() for other in others]
        first, nodes = known.shape[0], max(graph) + 1
        if nodes != network.nodes or not known.shape[1] == tested.shape[1] == network.features:
            raise ValueError(f"{nodes:,} nodes of {known.shape[1]:,} features")
        if (
            not len(test_numbers) == tested.shape[0] == len(of_tested)
            or test_numbers.min() < first
            or test_numbers.max() >= nodes
        ):
            raise ValueError("the test papers do not fit the list of their numbers")
        features = np.zeros((nodes, known.shape[1]), np.float32)
        classes = np.full(nodes, -1, np.int64)
        for rows, rows_of_words, one_hot in ((np.arange(first), known, of_known), (test_numbers, tested, of_tested)):
            features[rows] = rows_of_words.toarray()
            classes[rows] = np.where(one_hot.any(1), one_hot.argmax(1), -1)
        return _build_citations(nodes, np.array(pairs), features, classes, folder)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
        raise DataError(f"{folder} does not hold {name} as published ({error}); download its files again") from None


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
