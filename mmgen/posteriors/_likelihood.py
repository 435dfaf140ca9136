"""p(words | z) of the model's own decoders of words."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.models import DataSettings, Model


class WordLikelihood:
    """Likelihood p(words | z) of a model that generates attributes or text.

    Args:
        model: The model.
        data: The model's modalities.
        path: The model's checkpoint, for messages.
    """

    def __init__(self, model: Model, data: DataSettings, path: Path) -> None:
        self.model, self.data, self.path = model, data, path

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the modalities of words that the model generates, text first; () for conditional decoders."""
        parts = [part.name for part in (self.data.text, self.data.attributes) if part is not None]
        return () if self.model.conditional_on else tuple(name for name in parts if name in self.model.generates)

    def specified_modalities(self, words: Batch) -> tuple[str, ...]:
        """Return the modalities in which the descriptions specify something, generated or not, attributes first."""
        parts = [part.name for part in (self.data.attributes, self.data.text) if part is not None]
        return tuple(name for name in parts if name in words.values and bool(words.present[name].any()))

    def check_readable(self, posterior: str, reads: Sequence[str], words: Batch) -> None:
        """Refuse descriptions by attributes for a guided posterior that reads whole captions.

        Args:
            posterior: Name of the posterior, for the message.
            reads: Modalities that it reads.
            words: The descriptions.

        Raises:
            UsageError: It reads captions, and there are none.
        """
        text, specified = self.data.text, self.specified_modalities(words)
        if text is not None and tuple(reads) == (text.name,) and text.name not in specified:
            raise UsageError(
                f"posterior '{posterior}' reads whole captions, but got '{' and '.join(specified)}'; "
                "use --posterior prior, or a posterior fitted with --given attributes or nothing"
            )

    def select_modality(self, words: Batch, preferred: Sequence[str] = ()) -> str:
        """Return the modality y whose p(y | z) these descriptions use: a preferred one, else text before attributes.

        Args:
            words: Descriptions that are not empty.
            preferred: Modalities that the guided posterior reads.

        Raises:
            UsageError: The model generates no modality of these descriptions.
        """
        specified = self.specified_modalities(words)
        able = [name for name in self.names if name in specified]
        if not able:
            text = self.data.text
            raise UsageError(
                f"guidance needs p({' and '.join(specified) or 'words'} | z), but {self.path} generates "
                f"{' and '.join(self.names)} alone; describe by {' and '.join(self.names)}"
                f"{' in whole captions' if text and text.name in self.names else ''}"
            )
        return next((name for name in preferred if name in able), able[0])

    def is_attributes(self, name: str) -> bool:
        """Return True if the modality ``name`` is the attributes of the data."""
        return self.data.attributes is not None and name == self.data.attributes.name

    def codes(self, words: Batch) -> dict[str, Tensor]:
        """Return the codes of descriptions by modality, with -1 for what they leave unspecified."""
        parts = [part.name for part in (self.data.attributes, self.data.text) if part is not None]
        selected = words.select(parts)
        return {
            name: torch.where(selected.present[name].reshape(words.size, -1), selected.values[name], -1)
            for name in selected.values
        }

    def log_prob(
        self,
        z: Tensor,
        words: Batch,
        parameters: Tensor | None = None,
        preferred: Sequence[str] = (),
    ) -> Tensor:
        """Return log p(y | z) in nats, at least fp32: z [..., B, D] -> [..., B], or [K, D] of one description -> [K].

        Args:
            z: Latents.
            words: The B descriptions.
            parameters: Output of the decoder of attributes for z, if known; not used for a caption.
            preferred: Modalities that the guided posterior reads.

        Raises:
            UsageError: The model has no p(y | z) for these descriptions.
        """
        if not self.specified_modalities(words):
            return z.new_zeros(z.shape[:-1])
        name = self.select_modality(words, preferred)
        with torch.autocast(z.device.type, enabled=False):
            alone = z.dim() == 2
            if parameters is None or not self.is_attributes(name):
                parameters = self.model.decode(name, z)
            if alone:
                parameters = parameters[:, None]
            value = self.model.modalities[name].log_prob(parameters, words.values[name], words.present[name])
            return value[:, 0] if alone else value
