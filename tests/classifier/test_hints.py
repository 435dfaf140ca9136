"""A classifier with the relation as a hint: its inputs and answers, its accuracy, and augmentation."""

from pathlib import Path

import numpy as np
import pytest
import torch

from mmgen.artifacts import Dataset, read_header
from mmgen.classifier import load_classifier
from mmgen.classifier._augment import choose_augmentation
from mmgen.classifier._files import build_classifier
from mmgen.classifier._training import Accuracy, ClassifierSettings, resolve_hints, resolve_network, train_classifier
from mmgen.core.errors import UsageError
from mmgen.modalities.image import ImageDescription
from mmgen.settings.config import validate
from tests.small_data import write_small

NAMES = ("colour_1", "relation", "colour_2")
VALUES = (("red", "green", "blue"), ("right", "left", "front", "behind"), ("red", "green", "blue"))
SIZE = 32


def describe(places: np.ndarray, colours: np.ndarray, relation: int) -> list[int]:
    """A true caption of two dots at ``places`` [2, (x, y)]: right, left; front is further down, behind further up."""
    axis, sign = (0, 1) if relation < 2 else (1, 1)
    wanted_larger = relation in (0, 2)
    larger = int(sign * places[1, axis] > sign * places[0, axis])
    first = larger if wanted_larger else 1 - larger
    return [int(colours[first]), relation, int(colours[1 - first])]


def scene(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A picture uint8 [3, SIZE, SIZE] of two coloured dots 4 pixels wide, far apart both ways; places, colours."""
    while True:
        places = random.integers(3, SIZE - 7, (2, 2))
        if (np.abs(places[0] - places[1]) >= 6).all():
            break
    colours = random.integers(0, 3, 2)
    image = np.full((3, SIZE, SIZE), 90, np.uint8)
    for (x, y), colour in zip(places, colours, strict=True):
        image[:, y : y + 4, x : x + 4] = 20
        image[colour, y : y + 4, x : x + 4] = 230
    return image, places, colours


def write_scenes(path: Path, number: int = 700, texts: bool = True) -> Path:
    random = np.random.default_rng(0)
    images, codes = [], []
    for _ in range(number):
        image, places, colours = scene(random)
        images.append(image)
        codes.append(describe(places, colours, int(random.integers(0, 4))))
    attributes = np.array(codes, np.uint8)
    values = {"image": np.stack(images), "attributes": attributes}
    values |= {"text": (attributes + np.array([0, 3, 0])).astype(np.uint16)} if texts else {}
    words, labels = ((*VALUES[0], *VALUES[1]), NAMES), dict(zip(NAMES, VALUES, strict=True))
    return write_small(path, values, labels, words, (number - 200, 100), recipe="dots")


def test_relation_is_a_hint_where_captions_spell_it(tmp_path: Path) -> None:
    with Dataset.open(write_scenes(tmp_path / "a.h5", 300)) as with_text:
        assert resolve_hints(None, with_text) == ("relation",)
        assert resolve_hints([], with_text) == ()
        assert resolve_hints(["colour_2", "relation"], with_text) == ("relation", "colour_2")
        with pytest.raises(UsageError, match="did you mean 'relation'"):
            resolve_hints(["relatoin"], with_text)
    with Dataset.open(write_scenes(tmp_path / "b.h5", 300, texts=False)) as without:
        assert resolve_hints(None, without) == ()
    assert resolve_network("auto", "cpu", hints=True) == "attentive"
    with pytest.raises(UsageError, match="left to predict"):
        build_classifier(
            "small", ImageDescription(shape=(3, 8, 8), layout="bytes"), ("a",), (("x", "y"),), hints=("a",)
        )


@pytest.mark.parametrize("network", ["attentive", "cremer", "small", "vedantam"])
def test_hints_are_copied_and_matter(network: str) -> None:
    torch.manual_seed(0)
    judge = build_classifier(
        network, ImageDescription(shape=(3, 16, 16), layout="bytes"), NAMES, VALUES, ("relation",)
    ).eval()
    hints = torch.tensor([[255, 0, 255], [255, 3, 255], [1, 255, 1]], dtype=torch.uint8)
    images = torch.rand(1, 3, 16, 16).expand(3, -1, -1, -1)
    answers = judge.predict(images, hints)
    assert answers[:, 1].tolist() == [0, 3, 255]
    assert (answers[:, [0, 2]] < 3).all()
    assert judge.predict(images)[:, 1].tolist() == [255] * 3
    assert judge.one_hot(hints).tolist() == [[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    logits = judge(images, hints)
    assert [tuple(part.shape) for part in logits] == [(3, 3), (3, 3)]
    assert not torch.equal(logits[0][0], logits[0][1])
    # Codes of attributes that are no hints change nothing: it must not see the answers.
    other = judge(images, torch.tensor([[0, 0, 1], [2, 3, 0], [0, 255, 0]]))
    torch.testing.assert_close(other, logits)


def test_accuracy_with_hints_by_hand() -> None:
    accuracy = Accuracy({"a": 8, "b": 5}, {"a": 10, "b": 10}, hints=1)
    assert accuracy.percent == pytest.approx({"a": 80, "b": 50, "mean": 65, "words": (80 + 50 + 100) / 3})
    assert "words" not in Accuracy({"a": 8}, {"a": 10}).percent


def test_augmented_descriptions_are_true() -> None:
    """Every rewording and mirror image of a scene is described as one would describe it from the places."""
    changes = choose_augmentation(NAMES, VALUES)
    assert changes is not None
    random = np.random.default_rng(1)
    for _ in range(50):
        _, places, colours = scene(random)
        for relation in range(4):
            codes = torch.tensor([describe(places, colours, relation)])
            (reworded,) = changes.swap_objects(codes).tolist()
            assert reworded == describe(places, colours, reworded[1])
            assert reworded[1] != relation
            (mirrored,) = changes.mirror_codes(codes).tolist()
            assert mirrored == describe(places * [-1, 1], colours, mirrored[1])
            assert torch.equal(changes.swap_objects(changes.swap_objects(codes)), codes)
    unknown = torch.tensor([[0, 255, 1]])
    assert changes.swap_objects(unknown).tolist() == [[1, 255, 0]]
    assert changes.mirror_codes(unknown).tolist() == [[0, 255, 1]]
    images = torch.rand(8, 3, 16, 16)
    moved, codes = changes(images, torch.tensor([[0, 0, 1]]).expand(8, -1))
    assert moved.shape == images.shape
    assert ((moved >= 0) & (moved <= 1)).all()
    assert {tuple(row) for row in codes.tolist()} <= {(0, 0, 1), (1, 1, 0), (0, 1, 1), (1, 0, 0)}


def test_other_attributes_are_not_augmented() -> None:
    assert choose_augmentation(("digit", "scale"), (("0", "1"), ("big", "small"))) is None
    assert choose_augmentation(NAMES, (VALUES[0], ("on", "under"), VALUES[2])) is None
    assert choose_augmentation(NAMES, (VALUES[0], VALUES[1], ("red",))) is None


def train(data: Path, out: Path, steps: int) -> Accuracy:
    training = {"steps": steps, "batch": 32, "learning_rate": 4e-3, "schedule": "cosine", "device": "cpu"}
    settings = validate(ClassifierSettings, {"network": "attentive", "training": {**training, "precision": "32-true"}})
    return train_classifier(data, out, settings).run()


def test_file_holds_hints_and_accuracy(tmp_path: Path) -> None:
    data, out = write_scenes(tmp_path / "dots.h5", 300), tmp_path / "judge.safetensors"
    accuracy = train(data, out, 3)
    header = read_header(out)
    assert header.settings["told"] == ["relation"]
    assert set(header.facts["held_out_accuracy"]) == {"colour_1", "colour_2", "mean", "words"}
    judge = load_classifier(out)
    assert judge.hints == ("relation",)
    assert judge.accuracy == pytest.approx(accuracy.percent)
    assert judge.accuracy["words"] == pytest.approx((2 * judge.accuracy["mean"] + 100) / 3)
