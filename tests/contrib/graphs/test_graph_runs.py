"""A graph from a file to a score: stored, trained, fitted to and measured by the commands that do so with pictures."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

import mmgen
from mmgen.artifacts import Dataset, DatasetWriter
from mmgen.contrib.graphs.metrics.link_prediction import area_under_roc, average_precision
from mmgen.contrib.graphs.modalities.graph import GraphDescription
from mmgen.contrib.graphs.testing.cases import write_graph
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.modalities.vector import VectorDescription
from mmgen.training.batches import DatasetRows
from mmgen.training.model_run import complete_settings, describe_unused_modalities
from tests.program import exit_code

PAIRS = np.array([[0, 1], [1, 2]], np.int32)


def write_small(path: Path, by_rows: bool = False, features: str = "", edges: np.ndarray = PAIRS) -> None:
    """Three nodes and two edges; with a split of rows, which no graph can have, if wanted."""
    arrays = {"edges": edges, "part": np.zeros(len(edges), np.uint8)}
    arrays |= {"absent": edges[:0], "absent_part": np.zeros(0, np.uint8)}
    with DatasetWriter(path, 3, {"recipe": "none"}, seed=0) as writer:
        writer.add(GraphDescription(nodes=3, edges=len(edges), absent=0, features=features))
        writer.write_whole("graph", arrays)
        if by_rows:
            writer.add(VectorDescription(name="features", size=1))
            writer.write(0, {"features": np.ones((3, 1), np.float32)})
            writer.add_splits("iid", train=[0], val=[1], test=[2])
        writer.add_split_of_edges("links")


def test_features_that_are_not_there_are_refused(tmp_path: Path) -> None:
    write_small(tmp_path / "g.h5", features="graph")
    with pytest.raises(ArtifactError, match="its features are 'graph', which is no vector of the file"):
        Dataset.open(tmp_path / "g.h5")


def test_a_pair_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    write_small(tmp_path / "g.h5", edges=np.array([[0, 1], [0, 1]], np.int32))
    with Dataset.open(tmp_path / "g.h5") as dataset, pytest.raises(ArtifactError, match="lists a pair twice"):
        DatasetRows.open_split(dataset, "links", "train", torch.device("cpu"))


def test_rows_of_a_graph_are_none(tmp_path: Path) -> None:
    write_small(tmp_path / "g.h5")
    with (
        Dataset.open(tmp_path / "g.h5") as dataset,
        pytest.raises(UsageError, match=r"has no array .*, expected edges, part"),
    ):
        dataset.read("graph")


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty nodes in two groups, and two models of them."""
    folder = tmp_path_factory.mktemp("graphs")
    write_graph(folder / "nodes.h5")
    write_graph(folder / "others.h5", 30)
    write_small(folder / "rows.h5", by_rows=True, features="features")
    for name, preset in (("vgae", "vgae"), ("star", "gae-featureless")):
        few = ["--batch", "40", "--steps", "30", "--set", "training.device=cpu", "-o", folder / f"{name}.safetensors"]
        assert exit_code("train", folder / "nodes.h5", "--preset", f"kipf/{preset}", *few) == 0
    return folder


def test_a_graph_comes_back_from_its_file(graphs: Path) -> None:
    with Dataset.open(graphs / "nodes.h5") as dataset:
        described = dataset.modalities["graph"]
        assert isinstance(described, GraphDescription)
        assert (described.nodes, described.features, dataset.size) == (40, "features", 40)
        assert dataset.splits_edges("links")
        cpu = torch.device("cpu")
        parts = {part: DatasetRows.open_split(dataset, "links", part, cpu) for part in ("train", "val", "test")}
        batches = {part: rows.batch(torch.arange(len(rows))) for part, rows in parts.items()}
        assert batches["train"].shared.keys() == {"graph.edges", "graph.unknown", "graph.features"}
        known = {tuple(pair) for pair in batches["train"].shared["graph.edges"].T.tolist()}
        hidden = {tuple(pair) for pair in batches["train"].shared["graph.unknown"].T.tolist()}
        assert known and hidden and not known & hidden
        for part in ("val", "test"):
            shared = batches[part].shared
            assert shared["graph.edges"].equal(
                batches["train"].shared["graph.edges"]
            )  # no more is seen than in training
            joined, absent = (
                {tuple(p) for p in shared[f"graph.held_{name}"].T.tolist()} for name in ("edges", "absent")
            )
            assert len(joined) == len(absent) > 0
            assert joined | absent <= hidden
        assert parts["val"].validation_batch == 40
        assert batches["train"][torch.tensor([3, 1])].values["graph"].tolist() == [3, 1]


@pytest.mark.parametrize(
    ("array", "row", "says"),
    [
        ("edges", [1, 40], "two nodes of 0 to 39"),
        ("edges", [2, 2], "the smaller first"),
        ("absent", [5, 1], "the smaller first"),
        ("part", 3, "a part is none of"),
        ("absent_part", 0, "a part is none of"),
    ],
)
def test_pairs_that_cannot_be_are_refused(tmp_path: Path, array: str, row: object, says: str) -> None:
    write_graph(tmp_path / "nodes.h5")
    with h5py.File(tmp_path / "nodes.h5", "r+") as file:
        file["modalities/graph"][array][0] = row
    with Dataset.open(tmp_path / "nodes.h5", verify=False) as dataset, pytest.raises(ArtifactError, match=says):
        DatasetRows.open_split(dataset, "links", "train", torch.device("cpu"))
    with pytest.raises(ArtifactError, match="is damaged"):
        Dataset.open(tmp_path / "nodes.h5")


def test_a_graph_alone_is_a_dataset(tmp_path: Path) -> None:
    arrays = {"edges": PAIRS, "part": np.zeros(2, np.uint8), "absent": PAIRS[:0], "absent_part": np.zeros(0, np.uint8)}
    with DatasetWriter(tmp_path / "g.h5", 3, {"recipe": "none"}, seed=0) as writer:
        writer.add(GraphDescription(nodes=3, edges=2, absent=0))
        writer.write_whole("graph", arrays)
        writer.add_split_of_edges("links")
    with Dataset.open(tmp_path / "g.h5") as dataset:
        assert dataset.size == 3
    with DatasetWriter(tmp_path / "h.h5", 3, {"recipe": "none"}, seed=0) as writer:
        writer.add(GraphDescription(nodes=3, edges=2, absent=0))
        with pytest.raises(ValueError, match="not two nodes"):
            writer.write_whole("graph", {**arrays, "edges": PAIRS[:, ::-1].copy()})
        writer.write_whole("graph", arrays)


@pytest.mark.slow
def test_links_are_predicted(graphs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, given in (("vgae", "graph+features"), ("star", "graph")):
        capsys.readouterr()
        assert exit_code("eval", graphs / f"{name}.safetensors", "--metric", "link-prediction", "--json") == 0
        scores = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [score["quantity"] for score in scores] == ["AUC of graph", "average precision of graph"]
        assert all(score["posterior"] == given and 0 <= score["value"] <= 100 for score in scores)
        assert {(score["conditions"]["part"], score.get("details", {}).get("trained_share")) for score in scores} == {
            ("test", None)
        }
    assert exit_code("eval", graphs / "vgae.safetensors", "--metric", "link-prediction", "--part", "train") == 2
    assert "part train has none" in " ".join(capsys.readouterr().err.split())


def test_groups_of_nodes_are_fitted(graphs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--set", "aggregate.family.name=gaussian", "--set", "training.steps=3", "-o", graphs / "a.safetensors"]
    assert exit_code("fit-aggregate", graphs / "vgae.safetensors", "--given", "attributes", *few) == 0
    fitted = mmgen.load(graphs / "a.safetensors")
    assert fitted.description_kind == "attributes" and fitted.encoder_inputs == ("graph", "features")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["eval", "vgae.safetensors", "--metric", "log-likelihood"], "depends on the z of several"),
        (["sample", "vgae.safetensors", "-o", "s.h5"], "has no decoder of features"),
        (["train", "nodes.h5", "--preset", "kipf/gae", "--set", "objective.beta=1"], "without a divergence"),
        (["train", "nodes.h5", "--objective", "elbo", "--split", "links"], "holds no image"),
        (
            ["train", "nodes.h5", "--preset", "kipf/vgae", "--objective", "iwae",
             "--set", 'objective.modalities=["graph"]', "--set", 'objective.given=["graph","features"]'],
            "draws of z cannot be weighed example by example",
        ),
        (["train", "nodes.h5", "--preset", "kipf/vgae", "--set", 'objective.given=["features"]'], "the graph alone"),
        (["train", "nodes.h5", "--objective", "balanced-edges"], "graph is a graph, which has no networks"),
        (["train", "nodes.h5", "--preset", "kipf/vgae", "--set", "data.paired=0.5"], "cannot be split"),
        (["fit-aggregate", "star.safetensors", "--given", "attributes"], "points without a density"),
        (["eval", "vgae.safetensors", "--metric", "link-prediction", "--dataset", "others.h5"], "training on another"),
        (["train", "others.h5", "--preset", "kipf/vgae", "--from", "vgae.safetensors"], "a model of this very dataset"),
        (["train", "rows.h5", "--preset", "kipf/vgae", "--split", "iid"], "but graph needs all of them"),
        (["train", "nodes.h5", "--preset", "kipf/vgae", "--set", 'objective.given=["graph","x"]'], "the modality x"),
    ],
)  # fmt: skip
def test_what_graphs_cannot_be_asked_is_said(
    graphs: Path, arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(graphs)
    capsys.readouterr()
    assert exit_code(*arguments) in (1, 2)
    said = capsys.readouterr()
    assert says in " ".join(said.err.split())
    assert said.out == ""


def test_area_by_counting() -> None:
    generator = np.random.default_rng(0)
    joined, absent = generator.integers(0, 9, 30).astype(float), generator.integers(0, 7, 40).astype(float)
    wins = sum((one > other) + 0.5 * (one == other) for one in joined for other in absent)
    assert area_under_roc(joined, absent)[0] == pytest.approx(wins / (30 * 40))
    assert area_under_roc(np.array([2.0, 3.0]), np.array([0.0, 1.0])) == (1.0, 0.0)


def test_errors_of_an_area_are_those_of_repetition() -> None:
    """Normal scores one apart: the area is Phi(1 / sqrt 2), and its spread over repetitions what is printed."""
    generator = np.random.default_rng(1)
    found = [area_under_roc(generator.normal(1, 1, 100), generator.normal(0, 1, 100)) for _ in range(400)]
    values, errors = np.array(found).T
    assert values.mean() == pytest.approx(0.76025, abs=4 * values.std() / 20)
    assert errors.mean() == pytest.approx(values.std(), rel=0.15)


def test_average_precision_by_hand() -> None:
    """Ranked joined, absent, joined: precision 1 at the first, 2 of 3 at the second."""
    value, error = average_precision(np.array([3.0, 1.0]), np.array([2.0]), seed=0)
    assert value == pytest.approx((1 + 2 / 3) / 2)
    assert error > 0


def test_a_dataset_without_an_iid_split_has_its_own_default(graphs: Path) -> None:
    with Dataset.open(graphs / "nodes.h5") as dataset:
        values = {"model": {"name": "graph-vae"}, "objective": {"name": "balanced-edges"}}
        assert complete_settings(values, dataset).data.split == "links"
        assert complete_settings({**values, "data": {"split": "iid"}}, dataset).data.split == "iid"  # refused when read


@pytest.mark.parametrize("objective", [{"name": "balanced-edges"}, {"name": "elbo", "modalities": ["graph"]}])
def test_no_way_is_told_that_a_graph_cannot_go(graphs: Path, objective: dict[str, object]) -> None:
    with Dataset.open(graphs / "nodes.h5") as dataset:
        values = {"model": {"name": "graph-vae"}, "objective": {**objective, "given": ["graph", "features"]}}
        said = describe_unused_modalities(complete_settings(values, dataset))
    assert said.endswith("and leaves out attributes of this dataset.")
