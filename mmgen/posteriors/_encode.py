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

from mmgen.artifacts import Dataset, Latents, read_header, read_latents, reference, write_latents
from mmgen.artifacts.content_id import canonical_json
from mmgen.artifacts.latents import COLUMNS
from mmgen.core.batch import Batch
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.progress import Progress, Work
from mmgen.core.seeding import numpy_generator, torch_generator
from mmgen.modalities import Description, whole
from mmgen.modalities.text import TextDescription
from mmgen.models import DataSettings, Model
from mmgen.posteriors._encoding import encode_points
from mmgen.posteriors._shown import DescribedExamples, needs_words
from mmgen.training.batches import DatasetRows, Rows, batch_of
from mmgen.training.masked import without
from mmgen.training.model_run import ExperimentSettings

__all__ = ["Encoding", "LatentRows", "encode", "posterior_to_aggregate", "rows_of"]

_BATCH = 512


def posterior_to_aggregate(settings: ExperimentSettings) -> tuple[str, ...]:
    """Return the inputs of the posterior to aggregate: the trained one with most modalities that includes the image.

    For data without pictures it sees the first modality that is no words. It is q(z|x) for CK's model and BiVCCA,
    q(z|x,y) for TELBO, JMVAE and MVAE (VE Appendix A.1): the posterior that decoders were trained on.

    Raises:
        UsageError: None of them sees an image.
    """
    data, queries = settings.data, sorted(settings.build_objective().demands.posteriors)
    others = [name for name, each in data.modalities.items() if not each.describes]
    for name in dict.fromkeys([*data.observed, *others]):
        seeing = [given for given in queries if name in given]
        if seeing:
            return max(seeing, key=len)
    read = " or ".join(dict.fromkeys(" and ".join(given) or "nothing" for given in queries))
    raise UsageError(
        f"this needs encodings of images, but the model infers z from {read}, which is no image; train one "
        "whose posterior is given the image"
    )


def rows_of(dataset: Dataset, split: str, part: str) -> np.ndarray:
    """Return the rows of a split that a fit learns from ("train") or is validated on ("val"), int64."""
    if not dataset.splits_edges(split):
        return dataset.split(split, part)
    order = numpy_generator(0, "nodes that a fit is validated on").permutation(dataset.size)
    held = max(1, dataset.size // 10)
    return np.sort(order[:held] if part == "val" else order[held:])


def _describing(modalities: Mapping[str, Description]) -> list[Description]:
    """Return the first modality of each kind of description that a fit can condition on."""
    first = {each.kind: each for each in reversed(list(modalities.values())) if each.kind in COLUMNS}
    return list(first.values())


def _described_column(description: Description, stored: np.ndarray, shows: np.ndarray) -> np.ndarray:
    """Return the stored descriptions of rows, blank where training did not show them."""
    blank = description.padding if isinstance(description, TextDescription) else UNKNOWN
    return np.where(shows[:, None], stored, stored.dtype.type(blank))


class LatentRows(Rows):
    """Cached encodings as training examples: ``mean``, ``log_sd`` [B, D], and their descriptions.

    Args:
        latents: The encodings.
        chosen: Positions to use.
        data: The modalities.
        device: Device of batches.
        layers: Selects layers of encodings, from [N, D] to [N, D'].
        others: Values of other modalities of all encoded rows, by name, as models see them.
    """

    def __init__(
        self,
        latents: Latents,
        chosen: np.ndarray,
        data: DataSettings,
        device: torch.device,
        layers: Callable[[Tensor], Tensor] = torch.Tensor.contiguous,
        others: Mapping[str, np.ndarray] = MappingProxyType({}),
    ) -> None:
        self.mean = layers(torch.from_numpy(latents.mean[chosen])).to(device)
        self.log_sd = layers(torch.from_numpy(latents.log_sd[chosen])).to(device)
        self.described = {each.name: each for each in _describing(data.modalities) if each.kind in latents.columns}
        self.columns = {
            name: torch.from_numpy(each.torch_rows(latents.columns[each.kind][chosen])).to(device)
            for name, each in self.described.items()
        }
        self.described |= {name: data.modalities[name] for name in others}
        self.columns |= {name: torch.from_numpy(values[chosen]).to(device) for name, values in others.items()}

    def __len__(self) -> int:
        return len(self.mean)

    def batch(self, indices: Tensor) -> Batch:
        indices = indices.to(self.mean.device)
        encoded = {"mean": self.mean[indices], "log_sd": self.log_sd[indices]}
        labels = batch_of(self.described, {name: column[indices] for name, column in self.columns.items()})
        return Batch(encoded, {name: whole(value) for name, value in encoded.items()}) | labels


@dataclass(frozen=True)
class Encoding:
    """Settings that determine the encodings of a dataset.

    Attributes:
        model_path: The model's checkpoint.
        dataset_path: Dataset to encode.
        through: Modalities that the posterior reads, ("image",) or ("image", "attributes").
        split: Split scheme.
        number: Training examples at most (a random choice), and a tenth as many validation examples.
        seed: Seed of the choice of examples.
        precision: Arithmetic of the encoder; posteriors come out in fp32.
        data: The model's data.
        shown: The training examples that training showed with their description. Others are encoded without it, or
            left out if the posterior needs it.
    """

    model_path: Path
    dataset_path: Path
    through: tuple[str, ...]
    split: str
    number: int
    seed: int
    precision: Literal["32-true", "bf16-mixed"]
    data: DataSettings
    shown: DescribedExamples

    @property
    def settings(self) -> dict[str, Any]:
        """Settings for the header of the file."""
        return {
            "through": list(self.through),
            "split": self.split,
            "number": self.number,
            "precision": self.precision,
            **({} if self.shown.rows is None else {"described": self.shown.described}),
        }

    @property
    def parents(self) -> dict[str, str]:
        """Content ids of model and dataset, by role."""
        return {
            "model": read_header(self.model_path).content_id,
            "dataset": read_header(self.dataset_path).content_id,
        }

    def path(self) -> Path:
        """Return a path beside the model that differs between settings."""
        key = canonical_json([self.settings, self.seed, self.parents])
        short = hashlib.sha256(key.encode("ascii")).hexdigest()[:8]
        return self.model_path.with_name(f"{self.model_path.stem}-latents-{short}.h5")

    def rows(self, dataset: Dataset) -> np.ndarray:
        """Return the rows to encode, training examples before those of validation, int64."""
        generator = numpy_generator(self.seed, "encoded examples")
        train, validation = (generator.permutation(rows_of(dataset, self.split, part)) for part in ("train", "val"))
        known = self.shown.of(train)
        # Few descriptions are not to be lost by chance.
        others = [] if needs_words(self.data, self.through, self.shown) else [train[~known]]
        chosen = np.concatenate([train[known], *others])[: self.number]
        return np.concatenate([np.sort(chosen), np.sort(validation[: max(1, self.number // 10)])])

    def shows(self, dataset: Dataset, rows: np.ndarray) -> np.ndarray:
        """Return True for rows with their description: those that training showed, and validation rows."""
        return self.shown.of(rows) | np.isin(rows, rows_of(dataset, self.split, "val"))

    def cached(self, out: Path) -> Latents | None:
        """Return the encodings at ``out`` if they have the same settings and parents; else None."""
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
    """Encode training and validation examples as posterior means and log sds in ``out``; a finished file is reused."""
    with Dataset.open(encoding.dataset_path) as dataset:
        rows = encoding.rows(dataset)

    def work() -> Generator[Progress, None, Latents]:
        cached = encoding.cached(out)
        if cached is not None:
            yield Progress(len(rows))
            return cached
        with Dataset.open(encoding.dataset_path) as dataset:
            source = DatasetRows(dataset, rows, device, modalities=encoding.through)
            described = _describing(dataset.modalities)
            shows = encoding.shows(dataset, source.rows)
            hidden = [name for name, each in dataset.modalities.items() if each.describes]
            means, log_sds = [], []
            layers = torch_generator(0, "layers of encodings", device=device)
            with torch.inference_mode():
                for indices in torch.arange(len(source)).split(_BATCH):
                    batch = without(source.batch(indices), hidden, torch.from_numpy(shows)[indices])
                    posterior = encode_points(model, batch, encoding.through, encoding.precision, layers)
                    means.append(posterior.mean.cpu())
                    log_sds.append(posterior.log_sd.cpu())
                    yield Progress(int(indices[-1]) + 1)
            write_latents(
                out,
                mean=torch.cat(means).numpy(),
                log_sd=torch.cat(log_sds).numpy(),
                rows=source.rows,
                columns={
                    each.kind: _described_column(each, dataset.read_packed(each.name, source.rows), shows)
                    for each in described
                },
                layers=model.latent.layers,
                split=encoding.split,
                settings=encoding.settings,
                seed=encoding.seed,
                parents=(
                    reference(encoding.model_path, "model", out),
                    reference(encoding.dataset_path, "dataset", out),
                ),
                command=command,
            )
        return read_latents(out)

    return Work("encoding examples", len(rows), "example", work)
