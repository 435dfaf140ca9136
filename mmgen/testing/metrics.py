"""Checks of metrics."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mmgen import metrics
from mmgen.artifacts import Dataset, DatasetWriter
from mmgen.core.errors import UsageError
from mmgen.core.worlds import import_added
from mmgen.evaluation import Evaluation, EvaluationSettings
from mmgen.metrics import Metric, Score, evaluate
from mmgen.settings.config import validate

_PROPERTIES = {"tone": ["dark", "light"], "size": ["small", "large"]}
SMALL_TRAINING = {"steps": 4, "batch": 16, "validate_every": 4, "device": "cpu"}
_SETTINGS = EvaluationSettings(draws=4, samples=5, text_samples=20, number=10, dropped=(0, 1, 2))


def check_metric(name: str, folder: Path) -> None:
    """Check the scores of a metric on a small model that it accepts, trained here; see :func:`check_scores`.

    Args:
        name: Name of the metric.
        folder: Folder for data, model and classifier.
    """
    evaluations = (make(folder / str(number)) for number, make in enumerate(evaluation_makers()))
    check_scores(name, next(each for each in evaluations if accepts_evaluation(name, each)))


def evaluation_makers() -> list[Callable[[Path], Evaluation]]:
    """Return the functions that train a small model in a folder and return its evaluation, those of worlds included."""
    further = [make for world in import_added("mmgen.testing", "cases") for make in world.EVALUATIONS]
    return [small_evaluation, small_objects_evaluation, *further]


def accepts_evaluation(name: str, evaluation: Evaluation) -> bool:
    """Return whether a metric can be computed for the model and data of an evaluation."""
    try:
        metrics.get(name)().check(evaluation)
    except UsageError:
        return False
    return True


def check_scores(name: str, evaluation: Evaluation) -> list[Score]:
    """Check that a metric finishes, and that its scores are finite, complete and convertible to JSON.

    Args:
        name: The metric.
        evaluation: What it is asked of, with the posteriors "prior" and "own".
    """
    member = metrics.get(name)
    assert issubclass(member, Metric)
    assert set(member.reads or ()) <= {*EvaluationSettings.model_fields, "posteriors", "text_proposal", "judge"}
    may_be_judged = member.judged or "judge" in (member.reads or ())
    work = evaluate(evaluation, [name])
    done = [progress.done for progress in work]
    assert done == sorted(done), f"reported progress goes back: {done}"
    assert done[-1] == len(work), f"progress ends at {done[-1]} of {len(work)}"
    scores = work.result
    assert scores, f"{name} gives no scores"
    for score in scores:
        assert isinstance(score, Score), f"{name} gives {score!r}, expected scores"
        assert score.metric == name, f"a score's metric is {score.metric}, expected {name}"
        units = {(member.unit, member.better), *member.further_units.items()}
        assert (score.unit, score.better) in units, f"a score is in {score.unit}, expected one of {sorted(units)}"
        assert math.isfinite(score.value), f"the score {score.quantity} is {score.value}, expected a finite number"
        assert score.stderr is None or score.stderr >= 0, f"the error of {score.quantity} is {score.stderr}"
        is_mean = score.points is None or score.points.is_mean(score.unclipped)
        assert is_mean, f"{score.quantity} is no mean of its points"
        assert score.n > 0, f"the score {score.quantity} counts {score.n} samples, expected some"
        judged = member.judged or (may_be_judged and "judge" in score.ids)
        ids = {"model", "dataset"} | ({"judge"} if judged else set())
        assert set(score.ids) == ids, f"a score has the ids {sorted(score.ids)}, expected {sorted(ids)}"
        assert (score.judge_accuracy is not None) == member.judged, "judged disagrees with the scores' judge_accuracy"
        if member.judged or member.points:
            assert {"split", "part"} <= score.conditions.keys() and score.seed is not None
        json.dumps(score.to_json(), allow_nan=False)
    if member.posteriors == "each":
        assert {score.posterior for score in scores} == set(evaluation.posteriors)
    return scores


def small_evaluation(folder: Path, device: str = "cpu") -> Evaluation:
    """Train a model of two attributes and small pictures, with a classifier and data, in ``folder``; return its
    evaluation.

    The model is barely trained, so its scores are finite and otherwise arbitrary.

    Args:
        folder: Folder of the files.
        device: Device of model and classifier.
    """
    return _train_and_judge(folder, _write_pictures, device)


def small_objects_evaluation(folder: Path) -> Evaluation:
    """Return an evaluation as :func:`small_evaluation` does, of pictures of two objects with two properties each."""
    return _train_and_judge(folder, _write_objects, "cpu")


def _train_and_judge(folder: Path, write: Callable[[Path], None], device: str) -> Evaluation:
    """Train a model and two classifiers on the pictures that ``write`` writes, and return their evaluation."""
    from mmgen.classifier import ClassifierSettings, load_classifier, train_classifier

    values = {
        "objective": {"name": "telbo"},
        "model": {"latent_size": 2, "hidden": 16, "image_network": {"name": "mlp", "hidden": (16,)}},
        "training": SMALL_TRAINING,
    }
    made = train_small(folder, write, values, device=device)
    judges = []
    for seed, name in enumerate(("judge", "second-judge")):
        path = folder / f"{name}.safetensors"
        chosen = validate(ClassifierSettings, {"network": "small", "training": {**SMALL_TRAINING, "seed": seed}})
        train_classifier(made.dataset.path, path, chosen).run()
        judges.append(load_classifier(path, device))
    evaluation = Evaluation(made.loaded, made.dataset, judges[0], made.posteriors, _SETTINGS)
    evaluation.replace_classifier(judges[1])  # for metrics that compare judges
    return evaluation


def train_small(
    folder: Path,
    write: Callable[[Path], None],
    values: dict[str, Any],
    posteriors: tuple[str, ...] = ("prior", "own"),
    device: str = "cpu",
) -> Evaluation:
    """Train a model with these settings on the data that ``write`` writes, and return its evaluation."""
    from mmgen.generation import load
    from mmgen.training.model_run import complete_settings, train_model

    folder.mkdir(exist_ok=True)
    data, model = folder / "data.h5", folder / "model.safetensors"
    write(data)
    with Dataset.open(data) as dataset:
        settings = complete_settings(values, dataset)
    train_model(data, settings, model).run()
    return Evaluation(load(model, device), Dataset.open(data), None, posteriors, _SETTINGS)


def write_rows(path: Path, values: dict[str, Any], add: Callable[[DatasetWriter], None]) -> None:
    """Write a dataset of ``values`` by modality, half of it for training; ``add`` declares the modalities."""
    rows = range(len(next(iter(values.values()))))
    with DatasetWriter(path, size=len(rows), settings={"recipe": "none"}, seed=0, command="mmgen.testing") as writer:
        add(writer)
        writer.write(0, values)
        writer.add_splits("iid", train=rows[:60], val=rows[60:90], test=rows[90:])


def _write_pictures(path: Path, number: int = 120) -> None:
    """Write a dataset of pictures [1, 16, 16] that are light at the left or the right, in one of three tones."""
    import numpy as np

    codes = np.stack([np.arange(number) % 3, np.arange(number) // 3 % 2], 1).astype(np.uint8)
    images = np.zeros((number, 1, 16, 16), np.uint8)
    for image, (tone, side) in zip(images, codes, strict=True):
        image[:, :, 8 * side : 8 * side + 8] = 80 * (tone + 1)
    _write_described(path, images, codes, {"tone": ["dark", "grey", "light"], "side": ["left", "right"]})


def _write_objects(path: Path, number: int = 120) -> None:
    """Write a dataset of pictures [1, 16, 16] of two objects side by side, each light or dark and large or small."""
    import numpy as np

    codes = (np.arange(number)[:, None] >> np.arange(4) & 1).astype(np.uint8)
    images = np.zeros((number, 1, 16, 16), np.uint8)
    for image, objects in zip(images, codes.reshape(-1, 2, 2), strict=True):
        for left, (tone, size) in zip((0, 8), objects, strict=True):
            image[:, : 4 + 4 * size, left : left + 4 + 4 * size] = 100 * (tone + 1)
    names = {f"{name}_{label}": values for label in (1, 2) for name, values in _PROPERTIES.items()}
    _write_described(path, images, codes, names)


def _write_described(path: Path, images: Any, codes: Any, attributes: dict[str, list[str]]) -> None:
    """Write pictures [N, 1, 16, 16] with codes [N, A] of their attributes."""

    def add(writer: DatasetWriter) -> None:
        writer.add_image("image", shape=(1, 16, 16), layout="bytes")
        writer.add_attributes("attributes", attributes)

    write_rows(path, {"image": images, "attributes": codes}, add)
