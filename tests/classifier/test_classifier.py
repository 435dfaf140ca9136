"""The judge: its networks, its training by the one loop, its file and what it tells about itself."""

from pathlib import Path

import numpy as np
import pytest
import torch

from mmgen import classifier
from mmgen.artifacts import read_header
from mmgen.classifier import load_classifier
from mmgen.classifier._classifier import ClassifierTask, log_probability
from mmgen.classifier._files import build_classifier
from mmgen.classifier._training import ClassifierSettings, default_training, resolve_network, train_classifier
from mmgen.commands.train_classifier import TrainClassifier
from mmgen.core.batch import Batch
from mmgen.core.errors import ArtifactError, DataError, SettingsError, UsageError
from mmgen.modalities.image import ImageDescription
from mmgen.settings.config import validate
from mmgen.testing.models import check_classifier_features, check_classifier_network_shape
from mmgen.training.state import state_path
from tests.small_data import write_small

NAMES = ("side", "height")
VALUES = (("left", "right"), ("top", "middle", "bottom"))


def write_dataset(path: Path, number: int = 600, attributes: bool = True) -> Path:
    """A white 3x3 dot on 16x16 pixels, left or right, at one of three heights; some attributes unknown."""
    random = np.random.default_rng(0)
    codes = np.stack([random.integers(0, 2, number), random.integers(0, 3, number)], 1).astype(np.uint8)
    images = np.zeros((number, 1, 16, 16), np.uint8)
    for image, (side, height) in zip(images, codes, strict=True):
        x, y = 1 + 8 * side + random.integers(0, 4), 1 + 5 * height + random.integers(0, 2)
        image[0, y : y + 3, x : x + 3] = 1
    known = np.where(random.random(codes.shape) < 0.1, 255, codes).astype(np.uint8)
    values = {"image": images, **({"attributes": known} if attributes else {})}
    return write_small(path, values, dict(zip(NAMES, VALUES, strict=True)), None, (400, 100), "bits", recipe="dots")


def settings(**training: object) -> ClassifierSettings:
    values = {"steps": 150, "batch": 32, "learning_rate": 3e-3, "device": "cpu", "precision": "32-true", **training}
    return validate(ClassifierSettings, {"network": "small", "training": values})


@pytest.mark.parametrize("name", classifier.names())
@pytest.mark.parametrize("shape", [(1, 16, 16), (1, 28, 28), (3, 32, 32), (1, 50, 50), (1, 64, 64)])
def test_every_network_takes_every_canvas(name: str, shape: tuple[int, int, int]) -> None:
    check_classifier_network_shape(name, shape)
    assert classifier.describe(name)


@pytest.mark.parametrize("name", classifier.names())
def test_every_network_has_features_that_its_heads_read(name: str) -> None:
    check_classifier_features(name)


@pytest.mark.parametrize("told", [(), ("side",)])
def test_features_of_a_judge(told: tuple[str, ...]) -> None:
    judge = build_classifier("small", ImageDescription(shape=(1, 16, 16), layout="bytes"), NAMES, VALUES, told)
    images = torch.rand(6, 1, 16, 16)
    codes = torch.tensor([[0, 1]] * 3 + [[1, 1]] * 3, dtype=torch.uint8)
    features = judge.features(images.double(), codes)
    assert features.dtype == torch.float32
    assert judge.training  # as it was before
    torch.testing.assert_close(features, judge.features(images, codes))  # no dropout
    assert torch.equal(features, judge.features(images)) == (not told)  # what is not told is unknown
    sure, judge = judge.confidence(images, codes, "32-true"), judge.eval()
    likeliest = torch.stack([part.softmax(1).amax(1) for part in judge(images, codes)], 1).detach()
    torch.testing.assert_close(sure[:, judge.predicted], likeliest)
    assert all((sure[:, NAMES.index(name)] == 1).all() for name in told), "of what it is told it is sure"
    with pytest.raises(UsageError, match="got images of 1x8x8, expected 1x16x16"):
        judge.features(torch.zeros(1, 1, 8, 8))


def test_network_of_vedantam_has_the_published_layers() -> None:
    """Convolutions 5x5 of 32 and 64 channels, then 1,024 units over 16x16x64 features for each of four attributes."""
    with torch.device("meta"):
        network = classifier.get("vedantam")((1, 64, 64), (10, 2, 3, 4))
    convolutions = 32 * 25 + 32 + 64 * 32 * 25 + 64
    hidden = 4 * (16 * 16 * 64 * 1024 + 1024)
    heads = 1024 * 19 + 19
    assert sum(p.numel() for p in network.parameters()) == convolutions + hidden + heads


def test_heads_of_vedantam_are_independent() -> None:
    """Side by side in one matrix, but the gradient of one attribute reaches only its own units."""
    network = classifier.get("vedantam")((1, 16, 16), (2, 3)).eval()
    network(torch.rand(4, 1, 16, 16))[0].sum().backward()
    gradient = network.hidden.weight.grad
    assert gradient[:1024].abs().sum() > 0
    assert gradient[1024:].abs().sum() == 0


def test_unknown_attributes_do_not_count() -> None:
    logits = [torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])]
    values = torch.tensor([[0, 1], [1, 0]])
    present = torch.tensor([[True, False], [True, True]])
    found = log_probability(logits, values, present)
    expected = torch.tensor([[-np.log1p(np.exp(-2)), 0.0], [-np.log(2), 1 - np.log(np.e + 2)]])
    torch.testing.assert_close(found.double(), expected.double(), rtol=0, atol=1e-6)


def test_task_is_a_likelihood() -> None:
    built = build_classifier("small", ImageDescription(shape=(1, 16, 16), layout="bytes"), NAMES, VALUES).eval()
    images = torch.rand(4, 1, 16, 16)
    everything = torch.ones(4, 2, dtype=torch.bool)
    batch = Batch(
        {"image": images, "attributes": torch.zeros(4, 2, dtype=torch.long)},
        {"image": everything[:, 0], "attributes": everything},
    )
    bound = ClassifierTask(built)(batch, None)
    assert bound.is_bound
    torch.testing.assert_close(sum(bound.terms.values()), bound.value)
    probabilities = [logits.softmax(1)[:, 0] for logits in built(images)]
    torch.testing.assert_close(bound.value, (probabilities[0] * probabilities[1]).log())


def test_training_writes_a_judge_that_knows_how_good_it_is(tmp_path: Path) -> None:
    data, out = write_dataset(tmp_path / "dots.h5"), tmp_path / "judge.safetensors"
    accuracy = train_classifier(data, out, settings(), command="mmgen train-classifier dots.h5").run()
    assert accuracy.percent["mean"] > 90
    header = read_header(out)
    assert (header.kind, header.command) == ("classifier", "mmgen train-classifier dots.h5")
    assert header.settings["learnt_from"] == {
        "dataset": read_header(data).content_id,
        "split": "iid",
        "part": "train",
        "rows": 400,
    }
    assert header.facts["held_out_data"] == {"split": "iid", "part": "test", "rows": 100}
    assert header.facts["held_out_correct"] == accuracy.correct
    for name in NAMES:  # unknown labels are not counted
        assert 80 < header.facts["held_out_images"][name] < 100
    assert header.parents[0].content_id == read_header(data).content_id
    assert not state_path(out).exists()
    judge = load_classifier(out)
    assert not judge.training
    assert (judge.names, judge.values, judge.content_id) == (NAMES, VALUES, header.content_id)
    assert list(judge.accuracy) == [*NAMES, "mean"]
    assert judge.accuracy == pytest.approx(accuracy.percent)
    image = torch.zeros(2, 1, 16, 16)
    image[0, 0, 2:5, 2:5] = 1
    image[1, 0, 12:15, 11:14] = 1
    codes = judge.predict(image)
    assert codes.dtype == torch.uint8
    assert codes.tolist() == [[0, 0], [1, 2]]
    with pytest.raises(UsageError, match="got images of 1x8x8, expected 1x16x16"):
        judge.predict(torch.zeros(1, 1, 8, 8))
    assert judge.predict(torch.zeros(0, 1, 16, 16)).shape == (0, 2)


def test_same_seed_same_judge(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "dots.h5")
    ids = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        out = tmp_path / f"{name}.safetensors"
        train_classifier(data, out, settings(steps=5, seed=seed)).run()
        ids.append(read_header(out).content_id)
    assert ids[0] == ids[1] != ids[2]


def test_data_without_attributes_cannot_teach(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "dots.h5", attributes=False)
    with pytest.raises(DataError, match="has no attributes, which a classifier needs"):
        train_classifier(data, tmp_path / "judge.safetensors", settings()).run()


def test_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "dots.h5")
    with pytest.raises(ArtifactError, match="expected a classifier"):
        load_classifier(data)


def test_networks_by_name() -> None:
    assert resolve_network("vedantam", "cpu") == "vedantam"
    assert resolve_network("auto", "cpu") == "small"
    for name in classifier.names():
        validate(ClassifierSettings, {"network": name, "training": default_training(name)})
    with pytest.raises(UsageError, match="unknown judge network 'smal': did you mean 'small'"):
        build_classifier("smal", ImageDescription(shape=(1, 16, 16), layout="bytes"), NAMES, VALUES)


def test_a_judge_goes_beside_its_dataset_as_models_do(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "dots.h5")
    assert TrainClassifier(dataset, network="small").plan.output == tmp_path / "dots-judge.safetensors"


def test_accuracy_stands_beside_base_rates_and_balanced_accuracy() -> None:
    """A classifier that always answers 0, of an attribute that is 0 in nine of ten and one that is 0, 1 or 2 alike."""
    from types import SimpleNamespace

    from mmgen.classifier._training import measure_accuracy
    from mmgen.core.batch import Batch

    first = torch.tensor([0] * 54 + [1] * 6)
    codes = torch.stack([first, torch.arange(60) % 3], 1)
    present = torch.ones(60, 2, dtype=torch.bool)
    present[:10, 1] = False

    class Rows:
        def __len__(self) -> int:
            return 60

        def batch(self, indices: torch.Tensor) -> Batch:
            return Batch({"image": first[indices], "attributes": codes[indices]}, {"attributes": present[indices]})

    constant = SimpleNamespace(
        names=("rare", "even"), values=(("no", "yes"), ("a", "b", "c")), predicted=(0, 1), hints=(),
        predict=lambda images, hints: torch.zeros(len(images), 2, dtype=torch.uint8),
    )  # fmt: skip
    accuracy = measure_accuracy(constant, Rows())  # type: ignore[arg-type]
    assert accuracy.percent["rare"] == pytest.approx(90)
    assert accuracy.base_rates["rare"] == pytest.approx(90)
    assert accuracy.balanced["rare"] == pytest.approx(50)
    assert accuracy.images == {"rare": 60, "even": 50}
    assert accuracy.base_rates["even"] == pytest.approx(100 * 17 / 50)
    assert accuracy.balanced == {"rare": 50.0, "even": pytest.approx(100 / 3), "mean": pytest.approx(50 / 2 + 100 / 6)}


def test_a_judge_of_no_steps_is_none() -> None:
    with pytest.raises(SettingsError, match="steps got 0, expected at least 1"):
        settings(steps=0)
