"""Training examples of models with a fixed encoder: each picture is encoded once, at its first use."""

import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.seeding import torch_generator
from mmgen.modalities.image import ImageDescription
from mmgen.models import DataSettings, Examples, Model
from mmgen.training.batches import MaskedRows, Rows, fits_in_memory

_BYTES = 2
"""Bytes of a number of an encoding in memory; the noise of q(z|x) is far above the rounding error of fp16."""


class EncodedRows(Rows):
    """Rows whose picture is replaced by the mean of q(z | picture), a vector [B, D], which is kept in memory as fp16.

    Pictures are encoded one by one, so that their encodings do not depend on the batches in which they come.

    Args:
        rows: Examples with pictures.
        model: A model whose encoder no training changes.
    """

    def __init__(self, rows: Rows, model: Model) -> None:
        self.rows, self.origin, self.validation_batch = rows, rows.origin, rows.validation_batch
        self._model, self._name = model, model.encodes_once
        self._codes = torch.empty(0, model.latent_size, dtype=torch.float16)
        self._is_encoded = torch.zeros(len(rows), dtype=torch.bool)

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, indices: Tensor) -> Batch:
        return self._encode(self.rows.batch(indices), indices.cpu())

    def view(self, indices: Tensor, seed: int, *view: str | int) -> Batch:
        return self._encode(self.rows.view(indices, seed, *view), indices.cpu())

    @torch.no_grad()
    def _encode(self, batch: Batch, indices: Tensor) -> Batch:
        """Return the batch with encodings in place of pictures; new ones are computed."""
        pictures = batch.values[self._name]
        if not len(self._codes):
            self._codes = torch.zeros(len(self), self._model.latent_size, dtype=torch.float16, device=pictures.device)
        with torch.autocast(pictures.device.type, enabled=False):
            for place, row in enumerate(indices.tolist()):
                if not self._is_encoded[row]:
                    mean = self._model.means(batch[place : place + 1], (self._name,))
                    self._codes[row] = mean[0].to(torch.float16)
                    self._is_encoded[row] = True
        encodings = self._codes[indices.to(self._codes.device)].to(pictures.dtype)
        return Batch({**batch.values, self._name: encodings}, batch.present, batch.shared)


def encode_once(rows: Rows, model: Model, data: DataSettings) -> Rows:
    """Return rows that encode each picture once if the model's encoder is fixed; else the rows unchanged.

    Pictures whose pixels are drawn anew in every view, and more encodings than memory holds, are encoded at each step.
    """
    if not model.encodes_once:
        return rows
    if isinstance(rows, MaskedRows):  # whose examples may come several times
        rows.rows = encode_once(rows.rows, model, data)
        return rows
    described = data.modalities[model.encodes_once]
    changes = isinstance(described, ImageDescription) and described.layout == "probabilities"
    device = next(model.parameters()).device
    if changes or not fits_in_memory(_BYTES * len(rows) * model.latent_size, device):
        return rows
    return EncodedRows(rows, model)


def choose_examples(rows: Rows) -> Examples:
    """Return a function that returns a batch of randomly chosen examples, the same ones every time."""

    def choose(count: int) -> Batch:
        order = torch.randperm(len(rows), generator=torch_generator(0, "examples to prepare with", device="cpu"))
        return rows.batch(order[:count].sort().values)

    return choose
