"""Citation networks: two containers of one network, what is held back, and files that only pretend to hold arrays."""

import os
import pickle
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from mmgen.contrib.graphs._opcodes import build_array, build_matrix, read_opcodes
from mmgen.contrib.graphs.data_recipes import planetoid
from mmgen.contrib.graphs.data_recipes.planetoid import (
    Citations,
    Network,
    fetch_citations,
    hold_out_citations,
    read_citations,
)
from mmgen.core.errors import DataError
from tests.contrib.graphs._network import expect, publish

REAL = Path(__file__).resolve().parents[4] / "shared" / "data" / "planetoid"
needs_real = pytest.mark.skipif(not REAL.is_dir(), reason="the citation networks are not here")


def small() -> Citations:
    """Thirty nodes in a ring with chords."""
    edges = np.array(sorted({tuple(sorted((i, (i + step) % 30))) for i in range(30) for step in (1, 4)}))
    return Citations(edges, None, None, 30, "")


def test_no_pair_is_in_two_parts() -> None:
    found = small()
    part, absent, absent_part = hold_out_citations(found, 0.1, 0.2, seed=0)
    assert np.bincount(part).tolist() == [42, 6, 12]
    assert np.bincount(absent_part).tolist() == [0, 6, 12]
    pairs = {tuple(pair) for pair in absent.tolist()}
    assert len(pairs) == 18
    assert not pairs & {tuple(edge) for edge in found.edges.tolist()}
    assert (absent[:, 0] < absent[:, 1]).all()


def test_seeds_are_splits() -> None:
    first, again, other = (hold_out_citations(small(), 0.1, 0.2, seed)[0] for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).any()


def test_too_few_edges_are_refused() -> None:
    with pytest.raises(DataError, match="too few to hold back"):
        hold_out_citations(small(), 0.001, 0.1, 0)


@needs_real
@pytest.mark.parametrize(("name", "test", "validation"), [("cora", 527, 263), ("citeseer", 455, 227)])
def test_real_networks_hold_back_as_published(name: str, test: int, validation: int) -> None:
    found = read_citations(name, REAL)
    part = hold_out_citations(found, 0.05, 0.1, 0)[0]
    assert (int((part == 2).sum()), int((part == 1).sum())) == (test, validation)
    assert found.features is not None
    assert int(found.features.sum()) == {"cora": 49_216, "citeseer": 105_165}[name]


def _publish(folder: Path, protocol: int) -> np.ndarray:
    """Seven papers, the test's last and in reverse, and one of which nothing is known but that it is there."""
    features = np.arange(21, dtype=np.float32).reshape(7, 3) % 4
    features[5] = 0
    one_hot = np.eye(2, dtype=np.int32)[[0, 1, 0, 1, 0, 0, 1]]
    graph = {0: [1, 1], 1: [0, 2], 2: [1, 2], 3: [6], 4: [], 5: [], 6: [3]}
    publish(folder, features, one_hot, graph, [6, 4], protocol)
    return features


def _shrink(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make Cora the small network."""
    expect(monkeypatch, 7, [[0, 1], [1, 2], [3, 6]], 3, 2)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_publishers_files_and_an_archive_are_one_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: int
) -> None:
    features = _publish(tmp_path, protocol)
    _shrink(monkeypatch)
    found = read_citations("cora", tmp_path)
    assert found.edges.tolist() == [[0, 1], [1, 2], [3, 6]]  # each once, none with itself
    assert found.features is not None
    assert (found.features == features).all()
    assert found.classes is not None
    assert found.classes.tolist() == [0, 1, 0, 1, 0, -1, 1]
    binary, archive = (features > 0).astype(np.float32), tmp_path / "other" / "cora.npz"
    rows, columns = np.nonzero(binary)
    archive.parent.mkdir()
    np.savez(archive, edges=found.edges, num_nodes=7, feature_rows=rows, feature_cols=columns, num_features=3)
    again = read_citations("cora", archive)
    assert again.features is not None
    assert (again.features == binary).all()
    assert read_citations("cora", archive.parent).sha256 == again.sha256


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
@pytest.mark.parametrize("dtype", ["<f8", ">i4", "u1"])
def test_arrays_are_read_without_running_anything(tmp_path: Path, protocol: int, dtype: str) -> None:
    array = np.arange(12).reshape(3, 4).astype(dtype)
    for value in (array, np.asfortranarray(array)):
        (tmp_path / "a").write_bytes(pickle.dumps(value, min(protocol, 4)))
        assert (build_array(read_opcodes(tmp_path / "a")) == array).all()
    sparse = csr_matrix(array.astype(np.float64))
    (tmp_path / "s").write_bytes(pickle.dumps(sparse, min(protocol, 4)))
    assert (build_matrix(read_opcodes(tmp_path / "s")).toarray() == sparse.toarray()).all()


def test_arrays_of_python_2_are_read(tmp_path: Path) -> None:
    """As its first protocol wrote them: numbers in a quoted text of escapes."""
    (tmp_path / "a").write_bytes(
        b"cnumpy.core.multiarray\n_reconstruct\np0\n(cnumpy\nndarray\np1\n(I0\ntp2\nS'b'\np3\ntp4\nRp5\n(I1\n(I2\ntp6\n"
        b"cnumpy\ndtype\np7\n(S'f4'\np8\nI0\nI1\ntp9\nRp10\n(I3\nS'<'\np11\nNNNI-1\nI-1\nI0\ntp12\nbI00\n"
        rb"S'\x00\x00\x80?\x00\x00\x00\xc0'" + b"\np13\ntp14\nb."
    )
    assert build_array(read_opcodes(tmp_path / "a")).tolist() == [1.0, -2.0]


@pytest.mark.slow_cases("many marks")
@pytest.mark.parametrize(
    "blob",
    [
        b"})" + b"\x85" * 100_000 + b"Ns.",  # a key so deep that hashing it would end the process
        b"(" * 50_000 + b"t" * 50_000 + b".",
        b"cnumpy\ndtype\n(S'f4,(2'\nI0\nI1\ntR.",
    ],
    ids=["deep key", "many marks", "odd type"],
)
def test_files_made_to_harm_are_refused_soon(tmp_path: Path, blob: bytes) -> None:
    (tmp_path / "a").write_bytes(blob)
    with pytest.raises((DataError, TypeError)):
        build_array(read_opcodes(tmp_path / "a"))


@pytest.mark.parametrize("others", [[10**30], [0] * 1000], ids=["a huge number", "far too many"])
def test_neighbours_that_cannot_be_are_refused(
    tmp_path: Path, others: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _publish(tmp_path, 2)
    _shrink(monkeypatch)
    graph = {node: [] for node in range(7)} | {0: others}
    (tmp_path / "ind.cora.graph").write_bytes(pickle.dumps(graph, 2))
    with pytest.raises(DataError, match="does not hold cora as published"):
        read_citations("cora", tmp_path)


class _Bomb:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.marker}",)


def test_calls_in_a_file_are_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _publish(tmp_path, 2)
    _shrink(monkeypatch)
    marker = tmp_path / "was-here"
    for part in ("allx", "ty", "graph"):
        before = (tmp_path / f"ind.cora.{part}").read_bytes()
        (tmp_path / f"ind.cora.{part}").write_bytes(pickle.dumps(_Bomb(marker), 2))
        with pytest.raises(DataError):
            read_citations("cora", tmp_path)
        (tmp_path / f"ind.cora.{part}").write_bytes(before)
    assert not marker.exists()


@pytest.mark.parametrize(
    "blob", [b"", b"garbage", b"\x80\x02.", b"\x80\x02(lp0\n", b"\x80\x02K\x01K\x02R.", b"(((((((."]
)
def test_files_that_hold_no_arrays_are_refused(tmp_path: Path, blob: bytes) -> None:
    (tmp_path / "a").write_bytes(blob)
    with pytest.raises((DataError, TypeError)):
        build_array(read_opcodes(tmp_path / "a"))


DEEP = b"\x80\x04" + b"]" * 50_000 + b"a" * 49_999  # a list in a list in a list ...
ARRAY = b"\x80\x04cnumpy.core.multiarray\n_reconstruct\n)R(N"


@pytest.mark.slow_cases("name")
@pytest.mark.parametrize(
    "blob",
    [
        DEEP + DEEP[2:] + b"\x93.",  # a function whose module and name are such lists
        ARRAY + b"K\x01\x85cnumpy\ndtype\n" + DEEP[2:] + b"\x85R\x89C\x00tb.",
        ARRAY + DEEP[2:] + b"cnumpy\ndtype\nX\x02\x00\x00\x00f4\x85R\x89C\x00tb.",
    ],
    ids=["name", "type", "shape"],
)  # fmt: skip
def test_what_is_nested_deep_is_refused_and_not_written_out(tmp_path: Path, blob: bytes) -> None:
    (tmp_path / "a").write_bytes(blob)
    with pytest.raises((DataError, TypeError, ValueError)):
        build_array(read_opcodes(tmp_path / "a"))


def test_missing_and_other_networks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="neither"):
        read_citations("cora", tmp_path)
    np.savez(tmp_path / "cora.npz", edges=np.array([[0, 1]]), num_nodes=2)
    with pytest.raises(DataError, match="expected 2,708, 5,278 and 1,433 of cora"):
        read_citations("cora", tmp_path)
    np.savez(tmp_path / "cora.npz", edges=np.array([[0, 9]]), num_nodes=2)
    with pytest.raises(DataError, match="outside 0 to 1"):
        read_citations("cora", tmp_path)
    wrong = Network(3, 1, 1_433, 7, "0" * 64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(planetoid.NETWORKS, "cora", wrong)
        np.savez(tmp_path / "cora.npz", edges=np.array([[0, 1]]), num_nodes=3)
        with pytest.raises(DataError, match=r"other edges than cora as published \(SHA-256 .*, expected 000000000000"):
            read_citations("cora", tmp_path)
    (tmp_path / "cora.npz").write_bytes(b"PK no archive")
    with pytest.raises(DataError, match="it is no zip"):
        read_citations("cora", tmp_path)


def test_download_is_checked_by_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published, cache = tmp_path / "published", tmp_path / "cache"
    published.mkdir()
    _publish(published, 2)
    _shrink(monkeypatch)
    monkeypatch.setattr(planetoid, "cache_folder", lambda name: cache)
    handler = partial(SimpleHTTPRequestHandler, directory=published)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setattr(planetoid, "_MIRRORS", [f"http://127.0.0.1:{server.server_port}/"])
        work = fetch_citations("cora", None)
        assert work is not None
        for _ in work:
            pass
        server.shutdown()
        thread.join()
    assert fetch_citations("cora", None) is None
    assert read_citations("cora", None).edges.tolist() == [[0, 1], [1, 2], [3, 6]]
    assert fetch_citations("cora", published) is None
    assert fetch_citations("citeseer", None) is not None
