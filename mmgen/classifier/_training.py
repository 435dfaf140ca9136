"""Training of an attribute classifier, and its accuracy on held-out examples."""

import math
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field, field_validator

from mmgen.artifacts import Dataset, check_output, read_checkpoint
from mmgen.classifier._augment import choose_augmentation
from mmgen.classifier._classifier import Classifier, ClassifierTask
from mmgen.classifier._files import build_classifier, describe_classifier, load_classifier
from mmgen.core.errors import DataError, UsageError, format_unknown_name
from mmgen.core.notation import UNKNOWN
from mmgen.core.progress import Progress, Work
from mmgen.core.seeding import numpy_generator
from mmgen.modalities import Description
from mmgen.results.number import Number
from mmgen.results.standard_errors import binomial_error
from mmgen.settings.config import Settings
from mmgen.training.batches import DatasetRows, Rows
from mmgen.training.devices import make_fabric
from mmgen.training.loop import Resume
from mmgen.training.precision import resolve_device
from mmgen.training.settings import TrainingSettings
from mmgen.training.stage import Stage, TaskParts, add_facts, run_stage
from mmgen.training.state import state_path

_CHUNK = 2048


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of an attribute classifier, as numbers of correct predictions and of images for each attribute.

    Attributes:
        correct: Correct predictions.
        images: Images whose attribute is known.
        hints: Number of further attributes that the classifier received as input.
        commonest: Images with the commonest value of each attribute: what a constant answer gets right.
        balanced: Mean over an attribute's values of the percentage of images with this value that are read correctly;
            a constant answer gets 100 % divided by the number of values, however common its value is.
    """

    correct: dict[str, int]
    images: dict[str, int]
    hints: int = 0
    commonest: dict[str, int] = field(default_factory=dict)
    balanced: dict[str, float] = field(default_factory=dict)

    @property
    def base_rates(self) -> dict[str, float]:
        """Percentage of images with the commonest value, by attribute, and the mean over them as "mean"."""
        each = {name: 100.0 * number / max(1, self.images[name]) for name, number in self.commonest.items()}
        return each | ({"mean": sum(each.values()) / len(each)} if each else {})

    @property
    def percent(self) -> dict[str, float]:
        """Accuracy in percent by attribute, and the mean over them as "mean".

        A classifier that reads known attributes has "words" too: the share of all words that match, the known ones
        among them, as correctness counts them (CK 5.4).
        """
        each = {name: 100.0 * self.correct[name] / max(1, self.images[name]) for name in self.correct}
        mean = sum(each.values()) / len(each)
        words = {"words": (sum(each.values()) + 100.0 * self.hints) / (len(each) + self.hints)} if self.hints else {}
        return each | {"mean": mean} | words

    @property
    def stderr(self) -> dict[str, float]:
        """Standard errors of :attr:`percent`, binomial and never 0, as if attributes were independent."""
        each = {name: binomial_error(self.percent[name], max(1, self.images[name])) for name in self.correct}
        whole = math.hypot(*each.values())
        words = {"words": whole / (len(each) + self.hints)} if self.hints else {}
        return each | {"mean": whole / len(each)} | words

    @property
    def numbers(self) -> dict[str, Number]:
        """The accuracies of :attr:`percent` with their standard errors, as tables print them."""
        errors = self.stderr
        return {name: Number(value, errors[name], "%") for name, value in self.percent.items()}


def measure_accuracy(
    classifier: Classifier, rows: Rows, image: str = "image", attributes: str = "attributes"
) -> Accuracy:
    """Measure the accuracy of a classifier on all examples of ``rows``."""
    tables = count_confusions(classifier, rows, image, attributes)
    of_values = {name: table.sum(1) for name, table in tables.items()}
    balanced = {}
    for name, table in tables.items():
        occurring = of_values[name] > 0
        shares = table.diag()[occurring].double() / of_values[name][occurring]
        balanced[name] = 100.0 * float(shares.mean()) if len(shares) else 0.0
    balanced["mean"] = sum(balanced.values()) / len(balanced)
    return Accuracy(
        {name: int(table.diag().sum()) for name, table in tables.items()},
        {name: int(table.sum()) for name, table in tables.items()},
        len(classifier.hints),
        {name: int(count.max()) for name, count in of_values.items()},
        balanced,
    )


def count_confusions(
    classifier: Classifier, rows: Rows, image: str = "image", attributes: str = "attributes"
) -> dict[str, torch.Tensor]:
    """Return a confusion matrix int64 [V, V] for each predicted attribute: true values as rows, predictions as columns.

    Examples whose attribute is unknown do not count.
    """
    counts = {
        index: torch.zeros(len(classifier.values[index]), len(classifier.values[index]), dtype=torch.int64)
        for index in classifier.predicted
    }
    for indices in torch.arange(len(rows)).split(_CHUNK):
        batch = rows.batch(indices)
        present = batch.present[attributes]
        codes = batch.values[attributes].masked_fill(~present, UNKNOWN)
        predictions = classifier.predict(batch.values[image], codes).long()
        for index, table in counts.items():
            known = present[:, index]
            cells = codes[known, index].long() * len(table) + predictions[known, index]
            table += torch.bincount(cells.cpu(), minlength=table.numel()).reshape(table.shape)
    return {classifier.names[index]: table for index, table in counts.items()}


class ClassifierSettings(Settings):
    """Settings of an attribute classifier and of its training."""

    network: str
    """Network of the classifier: vedantam (VE's), cremer (CK's), small, attentive or encoder."""
    modality: str = ""
    """Modality that it reads, such as one of several pictures; the main one if empty."""
    told: tuple[str, ...] | None = None
    """Hints: attributes that it reads instead of predicting (CK 5.4: the relation); None for what the data need."""
    augment: bool = True
    """Whether descriptions of two objects are reworded and mirrored, and their pictures shifted and brightened."""
    split: str = ""
    """Split scheme whose training part it learns from; the dataset's default if empty."""
    held_out: Annotated[int, Field(ge=1)] = 10_000
    """Test images that its accuracy is measured on, at most."""
    training: TrainingSettings

    @field_validator("training")
    @classmethod
    def _check_steps(cls, training: TrainingSettings) -> TrainingSettings:
        if training.steps < 1:
            raise ValueError(
                "steps got 0, expected at least 1, since an untrained classifier predicts at random; set more"
            )
        return training


def resolve_hints(hints: Sequence[str] | None, dataset: Dataset) -> tuple[str, ...]:
    """Return the attributes that a classifier receives as input, in the order of the dataset's attributes.

    Args:
        hints: Names of attributes; None for the relation, if the dataset's captions spell it (CK 5.4).
        dataset: The dataset.

    Raises:
        UsageError: There is no such attribute.
    """
    names = next(iter(dataset.attributes.values())).names if dataset.attributes else ()
    if hints is None:
        spelled = {slot for text in dataset.texts.values() for slot in text.slots}
        return tuple(name for name in names if name == "relation" and name in spelled)
    for name in hints:
        if name not in names:
            raise UsageError(format_unknown_name("attribute", name, names))
    return tuple(name for name in names if name in hints)


def _find_modality(name: str, dataset: Dataset) -> Description:
    """Return the description of the modality that a classifier reads; the main one if ``name`` is empty.

    Raises:
        UsageError: The dataset has no such modality besides words.
    """
    chosen = name or next(iter(dataset.observed))
    if chosen not in dataset.observed:
        raise UsageError(format_unknown_name("modality", name, [*dataset.observed]))
    return dataset.observed[chosen]


def resolve_network(name: str, device: str, hints: bool = False, described: Description | None = None) -> str:
    """Return the network that "auto" stands for: the papers' network on a GPU, a smaller one on a CPU.

    Args:
        name: Name of a network, or "auto".
        device: Name of a device, or "auto".
        hints: Whether the classifier reads known attributes, as that of pictures of two objects does.
        described: The data; other kinds than images are read by their own encoder.
    """
    if name != "auto":
        return name
    if described is not None and described.picture_shape != described.event_shape:
        return "encoder"
    on_gpu = resolve_device(device).type == "cuda"
    if hints:
        return "cremer" if on_gpu else "attentive"
    return "vedantam" if on_gpu else "small"


def default_training(network: Literal["vedantam", "small"] | str) -> dict[str, Any]:
    """Return the default training settings of a network."""
    if network == "vedantam":
        return {"steps": 20_000, "batch": 256, "learning_rate": 3e-4, "schedule": "cosine", "warmup_steps": 100}
    if network == "cremer":  # CK: Adam as for the model; the authors' published runs take 150,000 steps of 20
        return {"steps": 40_000, "batch": 64, "learning_rate": 4e-4, "schedule": "cosine", "warmup_steps": 100}
    if network == "attentive":
        return {"steps": 5_000, "batch": 64, "learning_rate": 2e-3, "schedule": "cosine", "warmup_steps": 200}
    return {"steps": 6_000, "batch": 256, "learning_rate": 2e-3, "schedule": "cosine", "warmup_steps": 100}


def train_classifier(
    data: Path, out: Path, settings: ClassifierSettings, command: str = "", resume: Resume = "auto"
) -> Work[Accuracy]:
    """Train an attribute classifier on the training part of a dataset, and measure its accuracy on the test part.

    The file at ``out`` says which dataset, split, part and how many rows it has learnt from, and how many test images
    its accuracy was measured on. An attribute classifier that the same run has finished stays as it is.

    Args:
        data: Dataset file.
        out: The classifier artifact to make.
        settings: What to train.
        command: The command that makes the file again.
        resume: As for :func:`mmgen.training.loop.train`.

    Raises:
        DataError: The dataset has no attributes, or nothing but words.
        UsageError: ``out`` holds something else, or an attribute classifier that another run has finished.
        TrainingError, Interrupted: As for the training loop.
    """
    check_output(out, "classifier", data)

    def run() -> Generator[Progress, None, Accuracy]:
        began = time.monotonic()
        with Dataset.open(data) as dataset:
            if not dataset.observed or not dataset.attributes:
                raise DataError(
                    f"dataset {data} has no attributes, which a classifier needs to learn; use a dataset with "
                    "attributes"
                )
            identity = _identify_run(dataset, settings)
            if resume != "never" and not state_path(out).exists():
                known = _read_finished_accuracy(out, identity, next(iter(dataset.attributes.values())).names)
                if known is not None:
                    return known
            fabric = make_fabric(settings.training)
            yield from run_stage(_training_stage(data, dataset, settings, identity, command), out, resume, fabric)
            accuracy, facts = _measure_held_out(dataset, out, identity["split"], settings, str(fabric.device))
            if fabric.is_global_zero:
                add_facts(out, "classifier", {**facts, "total_seconds": round(time.monotonic() - began, 1)})
                # A finished classifier is rarely trained on: the record of its run is removed unless keep_state.
                if not settings.training.keep_state:
                    state_path(out).unlink(missing_ok=True)
            return accuracy

    return Work(work_description(settings), settings.training.steps, "step", run)


def _training_stage(
    data: Path, dataset: Dataset, settings: ClassifierSettings, identity: dict[str, Any], command: str
) -> Stage:
    """Return the training of a classifier on an open dataset; ``identity`` are the settings that its file records."""
    described, info = _find_modality(settings.modality, dataset), next(iter(dataset.attributes.values()))

    def build(device: torch.device) -> TaskParts:
        classifier = build_classifier(settings.network, described, info.names, info.values, tuple(identity["told"]))
        moves = settings.augment and described.picture_shape == described.event_shape
        augmentation = choose_augmentation(info.names, info.values) if moves else None
        read = (described.name, info.name)
        rows, validation = (
            DatasetRows.open_split(dataset, identity["split"], part, device, read, real=True)
            for part in ("train", "val")
        )
        task = ClassifierTask(classifier, described.name, info.name, augmentation)
        return TaskParts(task, rows, validation, extra_settings={"classifier": describe_classifier(classifier)})

    return Stage(
        kind="classifier",
        settings=identity,
        training=settings.training,
        parents={"dataset": data},
        opened={"dataset": dataset.header.content_id},
        build=build,
        description=work_description(settings),
        command=command,
        stream="classifier weights",
    )


def _identify_run(dataset: Dataset, settings: ClassifierSettings) -> dict[str, Any]:
    """Return the settings and the dataset that distinguish one training of a classifier from another."""
    scheme = settings.split or dataset.default_scheme
    learnt_from = {
        "dataset": dataset.header.content_id,
        "split": scheme,
        "part": "train",
        "rows": len(dataset.split(scheme, "train", real=True)),
    }
    hints = list(resolve_hints(settings.told, dataset))
    identity = {**settings.model_dump(mode="json"), "split": scheme, "told": hints, "learnt_from": learnt_from}
    if _find_modality(settings.modality, dataset) is next(iter(dataset.observed.values())):
        del identity["modality"]  # the main one, by whatever name
    return identity


def _read_finished_accuracy(out: Path, identity: dict[str, Any], names: Sequence[str]) -> Accuracy | None:
    """Return the recorded accuracy if the same run has finished at ``out``; None if there is no finished file."""
    if not out.exists() or not out.stat().st_size:
        return None
    header, _ = read_checkpoint(out, "classifier")
    facts = [header.facts.get(f"held_out_{what}") for what in ("correct", "images", "commonest", "balanced")]
    correct, images, commonest, balanced = (fact if isinstance(fact, dict) else {} for fact in facts)
    if not correct or not images:
        return None
    saved, requested = ({"modality": "", **made, **made.get("training", {})} for made in (header.settings, identity))
    different = [key for key in requested if key != "training" and requested[key] != saved.get(key)]
    if different:
        raise UsageError(
            f"{out} is a finished judge with another {', '.join(different)}; use the same settings and dataset to keep "
            "it, another --output, or --overwrite to replace it"
        )
    predicted = [name for name in names if name in correct]
    correct, images = ({name: counts[name] for name in predicted} for counts in (correct, images))
    return Accuracy(correct, images, len(identity["told"]), commonest, balanced)


def work_description(settings: ClassifierSettings) -> str:
    """Return the text that progress bars show for the training of a classifier."""
    return f"training judge ({settings.network})"


def _measure_held_out(
    dataset: Dataset, out: Path, scheme: str, settings: ClassifierSettings, device: str
) -> tuple[Accuracy, dict[str, Any]]:
    """Measure the saved classifier on test images; return its accuracy, and facts for its header."""
    test = dataset.split(scheme, "test")
    chosen = numpy_generator(settings.training.seed, "held out").permutation(len(test))[: settings.held_out]
    classifier = load_classifier(out, device, require_accuracy=False)
    read = (classifier.described.name, next(iter(dataset.attributes)))
    held_out = DatasetRows(dataset, test[np.sort(chosen)], classifier.device, modalities=read)
    accuracy = measure_accuracy(classifier, held_out, *read)
    return accuracy, {
        "held_out_accuracy": accuracy.percent,
        "held_out_correct": accuracy.correct,
        "held_out_commonest": accuracy.commonest,
        "held_out_balanced": accuracy.balanced,
        "held_out_images": accuracy.images,
        "held_out_data": {"split": scheme, "part": "test", "rows": len(held_out)},
    }
