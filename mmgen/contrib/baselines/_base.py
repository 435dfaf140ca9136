"""The bases of baselines: predictors of labels, their data, logistic regression and networks."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from mmgen.artifacts import Dataset, read_checkpoint, write_checkpoint
from mmgen.core.batch import Batch
from mmgen.core.errors import DataError, Interrupted, UsageError, format_unknown_name
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import stream_key, torch_generator
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.models import Model, build_model
from mmgen.objectives import Bound
from mmgen.objectives.elbo import Elbo
from mmgen.posteriors import means_in_slices
from mmgen.training.batches import DatasetRows, MaskedRows, Rows
from mmgen.training.labelling import choose_labelled_examples, label_seed
from mmgen.training.loop import train
from mmgen.training.model_run import ExperimentSettings
from mmgen.training.pairing import choose_paired_examples, paired_count
from mmgen.training.precision import resolve_device
from mmgen.training.task import ALONE, Task, make_parameter_groups

_CHUNK = 1000


@dataclass(frozen=True, order=True)
class LabelSupply:
    """The number of training images whose label a baseline may use, as a share or a count.

    Attributes:
        share: Share of the images, those that ``mmgen train --paired`` keeps whole.
        count: Number of images, those that ``mmgen train --labelled`` keeps; None for a share.
    """

    share: float = 1.0
    count: int | None = None

    @property
    def option(self) -> str:
        """The option of the command line that sets this number: "--paired" or "--labelled"."""
        return "--paired" if self.count is None else "--labelled"


@dataclass(frozen=True)
class BaselineData:
    """The images and labels of a dataset from which baselines learn, with the settings of their networks and training.

    Args:
        dataset: An open dataset file.
        settings: Networks, training, split and seed of the joint model that the baselines stand beside.
        attribute: Name of the attribute that is the label; "" where there is only one.
    """

    dataset: Dataset
    settings: ExperimentSettings
    attribute: str = ""

    @cached_property
    def image(self) -> ImageDescription:
        """Return the specification of the image modality, the main one if there are several."""
        main = self.settings.data.image
        if main is None or main.name not in self.dataset.images:
            raise DataError(f"{self.dataset.path} has no images to predict labels of; choose a dataset with images")
        return self.dataset.images[main.name]

    @cached_property
    def attributes(self) -> AttributesDescription:
        """Return the specification of the attribute modality."""
        described = self.settings.data.attributes
        if described is None or described.name not in self.dataset.attributes:
            raise DataError(f"{self.dataset.path} has no attributes that could be labels; choose a dataset with some")
        return self.dataset.attributes[described.name]

    @cached_property
    def column(self) -> int:
        """Return the position, among the attributes, of the one that is the label."""
        names = self.attributes.names
        if not self.attribute and len(names) > 1:
            raise UsageError(f"got no --attribute, expected one of {', '.join(names)}; name the one to predict")
        if self.attribute and self.attribute not in names:
            raise UsageError(format_unknown_name("attribute", self.attribute, names))
        return names.index(self.attribute or names[0])

    @cached_property
    def device(self) -> torch.device:
        return resolve_device(self.settings.training.device)

    @property
    def seed(self) -> int:
        """Return the seed of the training, which also chooses the images that keep their label."""
        return self.settings.training.seed

    @cached_property
    def _rows(self) -> dict[str, DatasetRows]:
        split, images = self.settings.data.split, (self.image.name,)
        return {
            p: DatasetRows.open_split(self.dataset, split, p, self.device, images) for p in ("train", "val", "test")
        }

    def rows(self, part: str) -> DatasetRows:
        """Return the examples of the part "train", "val" or "test" of the split."""
        return self._rows[part]

    def labelled_rows(self, supply: LabelSupply) -> Rows:
        """Return the training examples with the labels of those beyond ``supply`` hidden."""
        return MaskedRows(self.rows("train"), self._choose_labelled(supply), {})

    def _choose_labelled(self, supply: LabelSupply) -> NDArray[np.int64]:
        rows = self.rows("train")
        if supply.count is None:
            return choose_paired_examples(len(rows), supply.share, self.seed)
        codes = rows.read_stored(self.attributes.name, torch.arange(len(rows))).cpu().numpy()
        return choose_labelled_examples(codes, supply.count, label_seed(self.settings.data, self.seed))

    def count_labelled(self, supply: LabelSupply) -> int:
        """Return the number of training examples that keep their label."""
        return paired_count(len(self.rows("train")), supply.share) if supply.count is None else supply.count

    def labelled_positions(self, supply: LabelSupply) -> NDArray[np.int64]:
        """Return the positions [N_p] of the training examples that keep their label and have one."""
        positions = self._choose_labelled(supply)
        return positions[self.labels("train")[positions] != UNKNOWN]

    def check_labels(self, supply: LabelSupply) -> None:
        """Raise an error if no training example or no test example has a label."""
        path, name, train = self.dataset.path, self.attributes.names[self.column], self.labels("train")
        count = self.count_labelled(supply)
        if not len(self.labelled_positions(supply)):
            known = int((train != UNKNOWN).sum())
            choose = f"a larger {supply.option}" if known else "a dataset or --split with some"
            raise DataError(
                f"{path} gives '{name}' for none of the {count:,} paired training images (for {known:,} of all "
                f"{len(train):,}), expected one at least; choose {choose}"
            )
        if not (self.labels("test") != UNKNOWN).any():
            raise DataError(
                f"{path} gives '{name}' for none of the test images, expected labels to compare with; choose a dataset "
                "or --split with some"
            )

    def labels(self, part: str) -> NDArray[np.int64]:
        """Return the label of each example of a part of the split, as a code [N]."""
        rows = self.rows(part)
        codes = rows.read_stored(self.attributes.name, torch.arange(len(rows)))[:, self.column]
        return codes.cpu().numpy().astype(np.int64)

    def pixels(self, part: str) -> NDArray[np.float32]:
        """Return all images of a part of the split as rows of pixels in [0, 1], [N, C H W]."""
        rows = self.rows(part)
        chunks = torch.arange(len(rows)).split(_CHUNK)
        return np.concatenate([rows.batch(chunk).values[self.image.name].flatten(1).cpu().numpy() for chunk in chunks])


class Baseline(ABC):
    """Base of simple methods to compare joint models with: predictors of labels, and densities of numbers."""

    answers: ClassVar[Literal["labels", "densities"]]
    """Its output for test examples: labels of images, or log densities of numbers."""
    networks: ClassVar[bool] = False
    """Whether it trains the joint model's networks, so that settings of these and of their training matter."""


class LabelReader(Baseline):
    """Base of methods that learn features from all training images and then a classifier from few labels.

    Args:
        data: Images and labels.
    """

    answers = "labels"

    def __init__(self, data: BaselineData) -> None:
        self.data = data

    def learn_features(self) -> Generator[float, None, None]:
        """Learn features from all training images, without labels; yield the fraction done. The default has none."""
        yield 1.0

    @abstractmethod
    def predict_test_labels(
        self, labels: LabelSupply
    ) -> Generator[float, None, tuple[NDArray[np.int64], dict[str, Any]]]:
        """Learn from the labelled images and predict codes [N] of all test images; yield the fraction done."""


INVERSE_PENALTIES = (0.01, 0.1, 1.0, 10.0)
"""C of scikit-learn; the one that is best on the validation part is used, the smallest of equals."""

_MOST_ITERATIONS = 200


def fit_regression(features: NDArray[np.float32], codes: NDArray[np.int64], inverse_penalty: float) -> Any:
    """Fit logistic regression from features [N, F] to codes [N]. If all codes are equal, it predicts that code."""
    from sklearn.dummy import DummyClassifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if (codes == codes[0]).all():
        return DummyClassifier().fit(features, codes)
    with warnings.catch_warnings():
        # Weak penalties on separable pairs converge slowly; stopping early is a penalty of its own.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression(C=inverse_penalty, max_iter=_MOST_ITERATIONS).fit(features, codes)


class LinearBaseline(LabelReader):
    """Base of methods that predict labels by logistic regression from features of images."""

    @abstractmethod
    def features(self, part: str) -> NDArray[np.float32]:
        """Compute features [N, F] of all images of a part of the split."""

    def train_features(self) -> Generator[float, None, None]:
        """Learn the parameters of :meth:`features` from all training images; yield the fraction done."""
        yield 0.0

    def learn_features(self) -> Generator[float, None, None]:
        yield from self.train_features()
        self._features = {part: self.features(part) for part in ("train", "val", "test")}
        yield 1.0

    def predict_test_labels(
        self, labels: LabelSupply
    ) -> Generator[float, None, tuple[NDArray[np.int64], dict[str, Any]]]:
        pairs, features, codes = self.data.labelled_positions(labels), self._features, self.data.labels
        known = codes("val") != UNKNOWN
        best, found, chosen = -1.0, None, 0.0
        for number, inverse_penalty in enumerate(INVERSE_PENALTIES):
            yield number / len(INVERSE_PENALTIES)
            model = fit_regression(features["train"][pairs], codes("train")[pairs], inverse_penalty)
            right = float((model.predict(features["val"][known]) == codes("val")[known]).mean()) if known.any() else 0.0
            if right > best:
                best, found, chosen = right, model, inverse_penalty
        assert found is not None
        predicted = np.asarray(found.predict(features["test"]), np.int64)
        return predicted, {"inverse_penalty": chosen, "features": features["test"].shape[1]}


class NoiselessTask(Task):
    """Training task that predicts ``generated`` from an image by way of z, the mean of q(z|image), without noise.

    Args:
        model: The model of q(z|x) and p(generated|z); only these are trained.
        image: Name of the image modality.
        generated: Name of the modality to predict: attributes, or the image itself.
        l2_attributes_decoder: As in :class:`mmgen.training.task.ModelTask`, if attributes are predicted.
    """

    def __init__(self, model: Model, image: str, generated: str, l2_attributes_decoder: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.image = image
        self.generated = generated
        self.l2_attributes_decoder = l2_attributes_decoder

    def parameter_groups(self, player: str = ALONE, weight_decay: float = 0.0) -> list[dict[str, Any]]:
        parameters = self.player_parameters(player)
        return make_parameter_groups(parameters, weight_decay, self.model.label_weights(), self.l2_attributes_decoder)

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        """Return log p(generated | z) in nats [B], z being the mean of q(z|image)."""
        z = self.model.means(batch, (self.image,))
        value = self.model.log_likelihood(self.generated, z, batch)
        return Bound(value, {f"log p({self.generated}|image)": value})


def build_image_model(data: BaselineData, generated: str) -> Model:
    """Build an untrained model of q(z|image) and p(generated|z) with the networks of the joint model's settings."""
    settings = data.settings
    torch.manual_seed(stream_key(data.seed, "initial weights"))
    if generated in (own := settings.build_objective().demands).marginalises:
        return build_model(settings.model, own, settings.data).to(data.device)
    objective = Elbo(modalities=(generated,), given=(data.image.name,))
    model = settings.model.model_copy(update={"inference": objective.demands.inference})
    return build_model(model, objective.demands, settings.data).to(data.device)


def train_task(task: Task, rows: Rows, data: BaselineData) -> Generator[float, None, dict[str, Any]]:
    """Train the networks of ``task`` with early stopping; yield the fraction done, and return facts about the run."""

    def save(path: Path, facts: dict[str, Any]) -> None:  # a file, by which the loop knows that there is a best one
        write_checkpoint(path, kind="model", tensors=task.state_dict(), settings={}, seed=data.seed, facts=facts)

    settings = data.settings.training
    with TemporaryDirectory(prefix="mmgen-baseline-") as folder:
        out = Path(folder) / "baseline.safetensors"
        work = train(task, rows, data.rows("val"), settings, out, save, {}, resume="never")
        try:
            for progress in work:
                yield progress.done / max(1, settings.steps)
        except Interrupted as stop:
            raise Interrupted(
                "interrupted; an unfinished baseline saves nothing: give the same command again", stop.exit_code - 128
            ) from None
        header, tensors = read_checkpoint(out, "model")
    task.load_state_dict(tensors)
    task.eval()
    return dict(header.facts)


def encode_images(model: Model, data: BaselineData, part: str) -> NDArray[np.float32]:
    """Compute the mean [N, D] of q(z|image) for every image of a part of the split."""
    rows, image = data.rows(part), data.image.name
    means = []
    precision = data.settings.training.precision
    generator = torch_generator(data.seed, "layers of baselines", part, device=data.device)
    with torch.inference_mode():
        for chunk in torch.arange(len(rows)).split(_CHUNK):
            points = rows.batch(chunk).select([image])
            parts = means_in_slices(model, points, (image,), precision, generator)
            means += [mean.cpu().numpy() for _, mean in parts]
    return np.concatenate(means)
