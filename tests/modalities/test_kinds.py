"""What every kind of data promises, over all members of the room: on disk, in batches, in a model and in settings."""

import json
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import integrate

import mmgen
import mmgen.modalities
from mmgen import testing
from mmgen.artifacts import Dataset, DatasetWriter
from mmgen.core.errors import ArtifactError, SettingsError
from mmgen.likelihoods.normal import Normal
from mmgen.modalities._base import ROWS, Description, StoredArray
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.modalities.text import TextDescription
from mmgen.modalities.vector import VectorDescription
from mmgen.models._parts import make_decoders, networks_by_kind
from mmgen.models._settings import DataSettings
from mmgen.networks._attributes import AttributeNetwork
from mmgen.networks._text import TextNetwork
from mmgen.networks.mlp import Mlp
from mmgen.settings.config import to_json_values, validate
from mmgen.training.batches import DatasetRows, make_batch
from tests.program import exit_code
from tests.worlds import added, added_rows

CPU = torch.device("cpu")
NETWORKS = {"image": Mlp(hidden=(8,)), "attributes": AttributeNetwork(hidden=8), "text": TextNetwork(hidden=8, head=8)}


@dataclass
class Example:
    """A description, rows as stored, and rows that it refuses where it refuses any."""

    description: Description
    stored: np.ndarray
    wrong: np.ndarray | None
    says: str = ""


def some_images() -> Example:
    stored = np.packbits(np.random.default_rng(0).integers(0, 2, (6, 9), np.uint8), axis=1)
    wrong = np.full((6, 2), 255, np.uint8)
    return Example(ImageDescription(name="x", shape=(1, 3, 3), layout="bits"), stored, wrong, "unused last bits")


def some_attributes() -> Example:
    described = AttributesDescription(name="x", names=("a", "b"), values=(("0", "1", "2"), ("u", "v")))
    codes = np.array([[0, 1], [2, 0], [255, 1], [1, 255], [255, 255], [2, 1]], np.uint8)
    return Example(described, codes, codes + np.uint8(3), "no value of its attribute")


def some_text() -> Example:
    words = np.array([[0, 1], [1, 2], [2, 2], [0, 0], [1, 1], [0, 2]], np.uint16)
    return Example(TextDescription(name="x", vocabulary=("big", "red"), length=2), words, words[:, ::-1], "no word")


def some_vectors() -> Example:
    numbers = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    wrong = np.where(numbers > 1, np.nan, np.inf).astype(np.float32)
    described = VectorDescription(name="x", size=3, columns=("length", "width", "guidance"))
    return Example(described, numbers, wrong, "not finite")


def given_by_a_world(described: Description, stored: np.ndarray) -> Example:
    return Example(described, stored, None)


EXAMPLES = {
    "image": some_images, "attributes": some_attributes, "text": some_text, "vector": some_vectors,
} | {kind: partial(given_by_a_world, *parts) for kind, parts in added_rows("KINDS").items()}  # fmt: skip
every_kind = pytest.mark.parametrize("kind", EXAMPLES)


def write(path: Path, example: Example, stored: np.ndarray) -> Path:
    with DatasetWriter(path, len(stored), {"recipe": "kinds"}, seed=0) as writer:
        writer.add(example.description)
        writer.write(0, {"x": stored})
        writer.add_splits("iid", train=range(4), val=[4], test=[5])
    return path


def test_kinds_without_rows_are_tested_elsewhere() -> None:
    elsewhere = set().union(*added("KINDS_WITHOUT_ROWS"))
    assert set(mmgen.modalities.names()) - set(EXAMPLES) == elsewhere, "others need an example here"


@every_kind
def test_rows_and_descriptions_come_back_from_a_file(kind: str, tmp_path: Path) -> None:
    example = EXAMPLES[kind]()
    with Dataset.open(write(tmp_path / "x.h5", example, example.stored)) as dataset:
        assert dataset.modalities == {"x": example.description}
        assert dataset.modalities["x"].kind == kind
        np.testing.assert_array_equal(dataset.read_packed("x"), example.stored)
        np.testing.assert_array_equal(dataset.read("x"), example.description.unpack(example.stored))


@pytest.mark.parametrize("kind", [kind for kind, example in EXAMPLES.items() if example().wrong is not None])
def test_rows_that_cannot_be_are_refused_written_and_read(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = EXAMPLES[kind]()
    assert example.wrong is not None
    with pytest.raises(ValueError, match=example.says):
        write(tmp_path / "x.h5", example, example.wrong)
    assert not list(tmp_path.iterdir())
    with monkeypatch.context() as unguarded:
        unguarded.setattr(type(example.description), "find_fault", lambda *_: "")
        write(tmp_path / "x.h5", example, example.wrong)
    with Dataset.open(tmp_path / "x.h5") as dataset, pytest.raises(ArtifactError, match=example.says):
        dataset.read("x")


@every_kind
@pytest.mark.parametrize("resident", [True, False])
def test_batches_hold_what_people_would_give(kind: str, resident: bool, tmp_path: Path) -> None:
    """Rows of a file, and the same given by hand."""
    example = EXAMPLES[kind]()
    with Dataset.open(write(tmp_path / "x.h5", example, example.stored)) as dataset:
        rows = DatasetRows(dataset, np.arange(6), CPU, resident=resident)
        batch = rows.batch(torch.tensor([5, 0, 5]))
    unpacked = torch.from_numpy(example.description.torch_rows(example.description.unpack(example.stored)))
    given = make_batch({"x": example.description}, {"x": unpacked.float() if kind == "image" else unpacked})[[5, 0, 5]]
    # Patches are given at the middle of each level, and seen with noise over the whole of it.
    noise = 1 / 256 if kind == "patch" else 0.0
    torch.testing.assert_close(batch.values["x"], given.values["x"], rtol=0, atol=noise)
    assert batch.present["x"].equal(given.present["x"])
    assert batch.present["x"].dtype == torch.bool


@every_kind
def test_a_model_reads_and_says_it(kind: str) -> None:
    """Networks of the default sizes: features, log-probabilities with gradients, nothing of what is unknown."""
    example, torch_rows = EXAMPLES[kind](), 6
    data = DataSettings.from_descriptions(example.description)
    assert kind in NETWORKS or example.description.network_settings_class() is not None
    networks = networks_by_kind(data, NETWORKS, {})
    unpacked = torch.from_numpy(example.description.torch_rows(example.description.unpack(example.stored)))
    batch = make_batch(data.modalities, {"x": unpacked.float() if kind == "image" else unpacked})
    value, present = batch.values["x"], batch.present["x"]
    modality = example.description.modality()
    encoder, features = modality.encoder(networks[kind])
    assert modality.features(encoder, value, present).shape == (torch_rows, features)
    decoded, decoders = make_decoders({"x": 4}, {"x": modality}, networks)
    parameters = decoders["x"](torch.randn(torch_rows, 4))
    log_prob = decoded["x"].log_prob(parameters, value, present)
    assert log_prob.shape == (torch_rows,) and log_prob.isfinite().all()
    log_prob.sum().backward()
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in decoders["x"].parameters())
    assert (decoded["x"].log_prob(parameters, value, torch.zeros_like(present)) == 0).all()


@every_kind
def test_descriptions_come_back_from_the_settings_of_a_model(kind: str) -> None:
    described = EXAMPLES[kind]().description
    data = DataSettings.from_descriptions(described)
    again = validate(DataSettings, json.loads(json.dumps(to_json_values(data))))
    assert again == data and again.modalities["x"] == described and again.modalities["x"].is_compatible(described)
    assert again.main == ("x" if kind == "image" else "")


def test_the_main_picture_comes_first_then_other_pictures_then_other_kinds() -> None:
    modalities = {
        "words": {"kind": "text", "vocabulary": ["a"], "length": 1},
        "attributes": {"kind": "attributes", "names": ["a"], "values": [["0", "1"]]},
        "edges": {"kind": "image", "shape": [1, 2, 2], "layout": "bits"},
        "photo": {"kind": "image", "shape": [1, 2, 2], "layout": "bytes"},
    }
    data = validate(DataSettings, {"split": "other", "main": "photo", "modalities": modalities})
    assert list(data.modalities) == ["photo", "edges", "attributes", "words"]
    assert (data.split, data.main) == ("other", "photo")
    assert data.image is not None and data.image.layout == "bytes" and list(data.images) == ["photo", "edges"]
    assert data.attributes is not None and data.text is not None and data.text.name == "words"
    assert validate(DataSettings, json.loads(json.dumps(to_json_values(data), sort_keys=True))) == data


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"x": {"kind": "smell"}}, "unknown modality 'smell'"),
        ({"x": {"shape": [1, 2, 2]}}, "expected a table whose kind is one of attributes, "),
        ({"x": {"kind": "vector", "sise": 2}}, "sise"),
        ({"x": {"kind": "vector", "name": "y", "size": 2}}, "described under the name 'y'"),
    ],
)
def test_wrong_descriptions_are_refused(values: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        validate(DataSettings, {"modalities": values}, "data")
    with pytest.raises(SettingsError, match="main got 'y', expected x"):
        validate(DataSettings, {"modalities": {"x": {"kind": "vector", "size": 2}}, "main": "y"})


class Cloud(Description):
    """Several arrays: points of every example, and a frame of another number of rows that all examples share."""

    kind: str = "cloud"
    frame: int = 2

    def arrays(self) -> dict[str, StoredArray]:
        return {"points": StoredArray("float32", (2,)), "frame": StoredArray("int64", (2,), rows=self.frame)}

    def text_attributes(self) -> dict[str, str]:
        return {"frame": json.dumps(self.frame)}

    @classmethod
    def read(cls, name: str, element: Any) -> "Cloud":
        assert element.shape("points")[1:] == (2,)
        return cls(name=name, frame=json.loads(element.text("frame")))

    def values_and_presence(self, values: Any) -> Any:
        raise NotImplementedError

    def modality(self, likelihood: str | None = None) -> Any:
        raise NotImplementedError


def test_a_kind_may_store_several_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand in a group of the modality's name; what describes them is under the content id."""
    monkeypatch.setattr(mmgen.modalities, "names", lambda: ["cloud"])
    monkeypatch.setattr(mmgen.modalities, "get", lambda kind: Cloud)
    points, ids = np.arange(10, dtype=np.float32).reshape(5, 2), []
    for frame in (2, 3):
        with DatasetWriter(tmp_path / f"{frame}.h5", 5, {}, seed=0) as writer:
            writer.add(Cloud(name="c", frame=frame))
            writer.write(0, {"c/points": points[:3]})
            writer.write_whole("c", {"frame": np.eye(frame, 2, dtype=np.int64)})
            writer.write(3, {"c/points": points[3:]})
        assert writer.header is not None
        ids.append(writer.header.content_id)
        with Dataset.open(tmp_path / f"{frame}.h5") as dataset:
            assert len(dataset) == 5 and dataset.modalities == {"c": Cloud(name="c", frame=frame)}
            np.testing.assert_array_equal(dataset.read_packed("c", np.array([4, 0]), "points"), points[[4, 0]])
            np.testing.assert_array_equal(dataset.read_packed("c", array="frame"), np.eye(frame, 2))
    assert ids[0] != ids[1] and ROWS not in Cloud(name="c").arrays()


@pytest.mark.parametrize(("rows", "says"), [(None, "are not written"), (3, "3 rows, expected 2")])
def test_arrays_that_all_examples_share_are_written_whole(rows: int | None, says: str, tmp_path: Path) -> None:
    def partly() -> None:
        with DatasetWriter(tmp_path / "x.h5", 5, {}, 0) as writer:
            writer.add(Cloud(name="c"))
            writer.write(0, {"c/points": np.zeros((5, 2), np.float32)})
            if rows is not None:
                writer.write_whole("c", {"frame": np.zeros((rows, 2), np.int64)})

    with pytest.raises(ValueError, match=says):
        partly()
    assert not list(tmp_path.iterdir())


def test_normal_against_torch_and_integration() -> None:
    generator = torch.Generator().manual_seed(0)
    parameters = torch.randn(5, 6, 2, 2, generator=generator, dtype=torch.float64)
    x = torch.randn(5, 3, 2, 2, generator=generator, dtype=torch.float64)
    mean, log_sd = parameters.chunk(2, 1)
    expected = torch.distributions.Normal(mean, log_sd.exp()).log_prob(x).sum((1, 2, 3))
    torch.testing.assert_close(Normal().log_prob(parameters, x), expected)
    grid = torch.linspace(-12, 12, 20_001, dtype=torch.float64)
    density = Normal().log_prob(torch.tensor([0.3, 0.2]).double()[:, None, None], grid.reshape(-1, 1, 1, 1)).exp()
    assert integrate.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-9)
    # log s stays in [-7, 7], so that no density has no bound.
    sharp = Normal().log_prob(torch.tensor([0.0, -100.0]).double()[:, None, None], torch.zeros(1, 1, 1).double())
    assert float(sharp) == pytest.approx(7 - 0.5 * math.log(2 * math.pi))


@pytest.fixture(scope="module")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three clouds of points in the plane, and which of them a point is of; a model of both."""
    folder = tmp_path_factory.mktemp("blobs")
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 3, (300, 1))
    points = np.array([[-2, 0], [0, 2], [2, 0]])[codes[:, 0]] + 0.3 * generator.normal(size=(300, 2))
    with DatasetWriter(folder / "blobs.h5", 300, {"recipe": "blobs"}, seed=0, command="make blobs") as writer:
        writer.add(VectorDescription(size=2, columns=("east", "north")))
        writer.add_attributes("attributes", {"cloud": ["a", "b", "c"]})
        writer.write(0, {"vector": points.astype(np.float32), "attributes": codes.astype(np.uint8)})
        writer.add_splits("iid", train=range(200), val=range(200, 250), test=range(250, 300))
    settings = {
        "objective.modalities": ["vector", "attributes"], "objective.given": ["vector"], "training.steps": 4,
        "training.batch": 32, "model.latent_size": 2, "model.networks.vector.hidden": [16],
    }  # fmt: skip
    assignments = [part for key, value in settings.items() for part in ("--set", f"{key}={json.dumps(value)}")]
    assert exit_code("train", folder / "blobs.h5", "-o", folder / "m.safetensors", *assignments) == 0
    return folder


def test_vectors_from_a_file_to_a_score(blobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shown, fitted afterwards and measured, by the commands that do so with pictures."""
    assert exit_code("show", blobs / "blobs.h5", "--json") == 0
    described = json.loads(capsys.readouterr().out)["contents"]["others"]["vector"]
    assert described == {"kind": "vector", "name": "vector", "size": 2, "columns": ["east", "north"]}
    model = blobs / "m.safetensors"
    assert repr(mmgen.load(model)).count("vector of 2 numbers (east, north)") == 1
    family = ["--set", "aggregate.family.name=gaussian", "--set", "training.steps=2"]
    assert exit_code("fit-aggregate", model, "--given", "attributes", "-o", blobs / "a.safetensors", *family) == 0
    capsys.readouterr()
    few = ["--number", "10", "--samples", "20", "--json"]
    known = {"a": {"log p(x|y)"}, "m": {"log p(x)", "log p(y)", "log p(x,y)", "log p(x|y)", "log p(y|x)"}}
    for name, quantities in known.items():
        assert exit_code("eval", blobs / f"{name}.safetensors", "--metric", "log-likelihood", *few) == 0
        scores = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert {score["quantity"] for score in scores} == quantities
        assert all(math.isfinite(score["value"]) for score in scores)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("sample", "m.safetensors", "-o", "s.png"), "expected a file of samples (.h5), since a vector has no picture"),
        (("show", "blobs.h5", "-o", "s.png"), "has no images, which a contact sheet needs"),
    ],
)
def test_what_needs_pictures_says_so(
    blobs: Path,
    command: tuple[str, ...],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(blobs)
    assert exit_code(*command) in (1, 2)
    assert says in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_a_report_of_a_model_without_pictures_says_so(blobs: Path) -> None:
    assert exit_code("report", blobs / "m.safetensors", "-o", blobs / "r.html") == 0
    assert "generates no pictures" in (blobs / "r.html").read_text("utf-8")


def test_networks_of_a_kind_that_is_not_there_are_refused() -> None:
    data = DataSettings.from_descriptions(some_vectors().description)
    with pytest.raises(SettingsError, match="got 'graphs', expected vector"):
        networks_by_kind(data, {}, {"graphs": {}})
    with pytest.raises(SettingsError, match=r"model\.networks\.vector\.hiden"):
        networks_by_kind(data, {}, {"vector": {"hiden": [3]}})


@pytest.mark.parametrize("kind", mmgen.modalities.names())
def test_contract(kind: str) -> None:
    testing.check(testing.Subject("modality", kind))
