"""Encoding a dataset once: posteriors of its examples, cached as a latents artifact."""

import hashlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

import mmgen.inference
from mmgen.artifacts import (
    Dataset,
    Header,
    Latents,
    check_unchanged,
    parent_record,
    read_header,
    read_latents,
    write_latents,
)
from mmgen.artifacts.content_id import canonical_json
from mmgen.artifacts.latents import COLUMNS
from mmgen.core.batch import Batch
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.progress import Progress, Work
from mmgen.core.seeding import numpy_generator, torch_generator
from mmgen.modalities import Description, View, all_present
from mmgen.modalities.text import TextDescription
from mmgen.models import DataSettings, Model
from mmgen.posteriors._described_examples import DescribedExamples, needs_descriptions
from mmgen.posteriors._encoding import encode_points
from mmgen.training.batches import DatasetRows, Rows, hide_modalities
from mmgen.training.model_run import ExperimentSettings

_BATCH = 512


def posterior_to_aggregate(settings: ExperimentSettings) -> tuple[str, ...]:
    """Return the names of the modalities that the encoder reads for a fit: with the image, as many as it can read.

    For data without pictures, the first modality that is no description takes the place of the image. The posterior
    is q(z|x) for CK's model and BiVCCA, and q(z|x,y) for TELBO, JMVAE and MVAE (VE Appendix A.1): the one that decoders
    were trained on. Where that mixes words apart from pictures, it is given pictures alone: encodings of words say
    nothing of pictures.

    Raises:
        UsageError: No posterior of the model includes the image.
    """
    data, demands = settings.data, settings.build_objective().demands
    queries, words = sorted(demands.posteriors), [name for name, each in data.modalities.items() if each.describes]
    if "mixture" in demands.needs:
        mixed = mmgen.inference.get(getattr(settings.model, "inference", None) or demands.inference).mixed_subsets
        queries = [given for given in queries if given in mixed(given) or not {*given} & {*words}] or queries
    others = [name for name, each in data.modalities.items() if not each.describes]
    for name in dict.fromkeys([*data.observed, *others]):
        candidates = [given for given in queries if name in given]
        if candidates:
            return max(candidates, key=len)
    inputs_in_words = " or ".join(dict.fromkeys(" and ".join(given) or "nothing" for given in queries))
    raise UsageError(
        f"fit-aggregate needs encodings of images, but the model infers z from {inputs_in_words}, which is no image; "
        "train one whose posterior is given the image"
    )


def split_rows(dataset: Dataset, split: str, part: str) -> np.ndarray:
    """Return rows int64 of a split: those a fit learns from ("train"), or is validated on ("val")."""
    if not dataset.splits_edges(split):
        return dataset.split(split, part)
    order = numpy_generator(0, "nodes that a fit is validated on").permutation(dataset.size)
    validation_count = max(1, dataset.size // 10)
    return np.sort(order[:validation_count] if part == "val" else order[validation_count:])


def _descriptions(data: DataSettings) -> list[Description]:
    """Return the attributes and the text that descriptions are made of, as far as there are any."""
    return [each for each in (data.attributes, data.text) if each is not None and each.kind in COLUMNS]


def _description_column(description: Description, stored: np.ndarray, has_description: np.ndarray) -> np.ndarray:
    """Return stored descriptions [n, ...] flattened, with those of other rows than ``has_description`` blanked."""
    stored = stored.reshape(len(stored), -1)
    blank = description.padding if isinstance(description, TextDescription) else UNKNOWN
    return np.where(has_description[:, None], stored, stored.dtype.type(blank))


def _unflatten(column: np.ndarray, description: Description) -> np.ndarray:
    """Return the rows of a column in stored form, [n, K, T] for several captions."""
    if isinstance(description, TextDescription) and column.shape[1] > description.length:
        return column.reshape(len(column), -1, description.length)
    return column


class LatentRows(Rows):
    """Cached encodings as training examples: ``mean`` and ``log_sd`` [B, D] with their descriptions.

    Args:
        latents: The encodings.
        positions: Positions of the encodings to use.
        data: The modalities.
        device: Device of batches.
        select_layers: Selects layers of encodings, from [N, D] to [N, D'].
        further_values: Values of other modalities of all encoded rows, by name, in the form of batches.
    """

    def __init__(
        self,
        latents: Latents,
        positions: np.ndarray,
        data: DataSettings,
        device: torch.device,
        select_layers: Callable[[Tensor], Tensor] = torch.Tensor.contiguous,
        further_values: Mapping[str, np.ndarray] = MappingProxyType({}),
    ) -> None:
        self.mean = select_layers(torch.from_numpy(latents.mean[positions])).to(device)
        self.log_sd = select_layers(torch.from_numpy(latents.log_sd[positions])).to(device)
        self._rows = latents.rows[positions]
        self.described = {each.name: each for each in _descriptions(data) if each.kind in latents.columns}
        self.columns = {
            name: torch.from_numpy(each.torch_rows(_unflatten(latents.columns[each.kind][positions], each))).to(device)
            for name, each in self.described.items()
        }
        self._stored = {*self.described}
        self.described |= {name: data.modalities[name] for name in further_values}
        self.columns |= {
            name: torch.from_numpy(values[positions]).to(device) for name, values in further_values.items()
        }

    def __len__(self) -> int:
        return len(self.mean)

    def batch(self, indices: Tensor) -> Batch:
        return self.view(indices, 0)

    def view(self, indices: Tensor, seed: int, *view: str | int) -> Batch:
        chosen = View(lambda: torch.from_numpy(self._rows[indices.cpu().numpy()]), (seed, *view))
        indices = indices.to(self.mean.device)
        encoded = {"mean": self.mean[indices], "log_sd": self.log_sd[indices]}
        described = {
            name: self.described[name].tensors(column[indices], chosen)
            if name in self._stored
            else self.described[name].values_and_presence(column[indices])
            for name, column in self.columns.items()
        }
        labels = Batch(*({name: pair[part] for name, pair in described.items()} for part in (0, 1)))
        return Batch(encoded, {name: all_present(value) for name, value in encoded.items()}) | labels


@dataclass(frozen=True)
class Encoding:
    """Settings that determine how a model encodes a dataset for a fit.

    Attributes:
        model_path: The model's checkpoint.
        dataset_path: Dataset to encode.
        inputs: Modalities that the posterior reads, such as ("image",) or ("image", "attributes").
        split: Split scheme.
        number: Largest number of training examples, chosen at random; validation has a tenth as many.
        seed: Seed of the choice of examples.
        precision: Arithmetic of the encoder; results are in fp32.
        data: The model's data.
        described_examples: The examples that training used with their description. Others are encoded without it, or
            left out if the posterior needs it.
        opened: Headers of model and dataset as they were opened, by role.
    """

    model_path: Path
    dataset_path: Path
    inputs: tuple[str, ...]
    split: str
    number: int
    seed: int
    precision: Literal["32-true", "bf16-mixed"]
    data: DataSettings
    described_examples: DescribedExamples
    opened: Mapping[str, Header]

    @property
    def settings(self) -> dict[str, Any]:
        """Settings for the header of the file of encodings."""
        return {
            "through": list(self.inputs),
            "split": self.split,
            "number": self.number,
            "precision": self.precision,
            **({} if self.described_examples.rows is None else {"described": self.described_examples.described_count}),
        }

    @property
    def parents(self) -> dict[str, str]:
        """Content ids of model and dataset, by role."""
        return {role: header.content_id for role, header in self.opened.items()}

    def path(self) -> Path:
        """Default path of the file of encodings, beside the model; other settings have another path."""
        key = canonical_json([self.settings, self.seed, self.parents])
        short = hashlib.sha256(key.encode("ascii")).hexdigest()[:8]
        return self.model_path.with_name(f"{self.model_path.stem}-latents-{short}.h5")

    def choose_rows(self, dataset: Dataset) -> np.ndarray:
        """Return the rows to encode, int64: training examples, then those of validation."""
        generator = numpy_generator(self.seed, "encoded examples")
        train, validation = (generator.permutation(split_rows(dataset, self.split, part)) for part in ("train", "val"))
        known = self.described_examples.contains(train)
        # Few descriptions are not to be lost by chance.
        others = [] if needs_descriptions(self.data, self.inputs, self.described_examples) else [train[~known]]
        chosen = np.concatenate([train[known], *others])[: self.number]
        return np.concatenate([np.sort(chosen), np.sort(validation[: max(1, self.number // 10)])])

    def has_description(self, dataset: Dataset, rows: np.ndarray) -> np.ndarray:
        """Return True for each row to encode with its description: rows that training used so, and validation rows."""
        return self.described_examples.contains(rows) | np.isin(rows, split_rows(dataset, self.split, "val"))

    def read_finished(self, out: Path) -> Latents | None:
        """Read the encodings at ``out`` if they have the same settings and parents; else return None."""
        if not out.exists():
            return None
        try:
            header = read_header(out)
        except ArtifactError:
            return None
        parents = {parent.role: parent.content_id for parent in header.parents}
        same = (parents, header.settings, header.seed) == (self.parents, self.settings, self.seed)
        return read_latents(out) if same else None


def encode(encoding: Encoding, model: Model, out: Path, device: torch.device, command: str = "") -> Work[Latents]:
    """Return the work that writes encodings of training and validation examples to ``out``, or reads finished ones."""
    with Dataset.open(encoding.dataset_path) as dataset:
        rows = encoding.choose_rows(dataset)

    def encode_rows() -> Generator[Progress, None, Latents]:
        finished = encoding.read_finished(out)
        if finished is not None:
            yield Progress(len(rows))
            return finished
        with Dataset.open(encoding.dataset_path) as dataset:
            check_unchanged(dataset.path, encoding.opened["dataset"].content_id)
            source = DatasetRows(dataset, rows, device, modalities=encoding.inputs)
            described = _descriptions(encoding.data)
            has_description = encoding.has_description(dataset, source.rows)
            hidden = [name for name, each in dataset.modalities.items() if each.describes]
            means, log_sds = [], []
            layers = torch_generator(0, "layers of encodings", device=device)
            with torch.inference_mode():
                for indices in torch.arange(len(source)).split(_BATCH):
                    batch = hide_modalities(source.batch(indices), hidden, torch.from_numpy(has_description)[indices])
                    posterior = encode_points(model, batch, encoding.inputs, encoding.precision, layers)
                    means.append(posterior.mean.cpu())
                    log_sds.append(posterior.log_sd.cpu())
                    yield Progress(int(indices[-1]) + 1)
            write_latents(
                out,
                mean=torch.cat(means).numpy(),
                log_sd=torch.cat(log_sds).numpy(),
                rows=source.rows,
                columns={
                    each.kind: _description_column(each, dataset.read_packed(each.name, source.rows), has_description)
                    for each in described
                },
                layers=model.latent.layers,
                split=encoding.split,
                settings=encoding.settings,
                seed=encoding.seed,
                parents=(
                    parent_record(encoding.model_path, "model", out, encoding.opened["model"]),
                    parent_record(encoding.dataset_path, "dataset", out, dataset.header),
                ),
                command=command,
            )
        return read_latents(out)

    return Work("encoding examples", len(rows), "example", encode_rows)
