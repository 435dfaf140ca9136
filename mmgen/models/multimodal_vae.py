"""The multimodal variational autoencoder p(z) prod_m p(x_m | z) with its inference networks.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from mmgen.batch import Batch
from mmgen.errors import UsageError
from mmgen.gaussian import DiagonalGaussian
from mmgen.inference._base import Given, Inference, Unit
from mmgen.modalities._base import Modality
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.text import Text
from mmgen.networks._attributes import AttributeDecoder

__all__ = ["MultimodalVAE"]


class MultimodalVAE(nn.Module):
    """A joint model of any set of modalities.

    Args:
        latent_size: D.
        modalities: What is decoded, by name.
        decoders: A network [B, D] -> parameters of p(x_m | z) for each modality; one that is conditional takes
            [B, D + description] (see ``condition``).
        inference: q(z | any answered set of modalities).
        condition: For a conditional model p(x | z, y): the attributes y that its decoders also see. y is then no
            observation, so p(z | y) = p(z).
        shared: A network that z passes before every decoder; None where decoders see z itself.
    """

    def __init__(
        self,
        latent_size: int,
        modalities: dict[str, Modality],
        decoders: dict[str, nn.Module],
        inference: Inference,
        condition: Attributes | None = None,
        shared: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.latent_size = latent_size
        self.modalities = modalities
        self.decoders = nn.ModuleDict(decoders)
        self.inference = inference
        self.condition = condition
        self.shared = shared

    @property
    def conditional_on(self) -> tuple[str, ...]:
        """Names of the modalities that decoders see besides z: empty but for a CVAE."""
        return (self.condition.name,) if self.condition else ()

    def answers(self, given: Given) -> bool:
        """Whether :meth:`posterior` can be asked for q(z | given)."""
        return not given or given == self.conditional_on or self.inference.answers(given)

    def posterior(self, batch: Batch, given: Given) -> DiagonalGaussian:
        """q(z | given) [B, D]; nothing given is p(z), and so is the condition alone of a conditional model.

        Raises:
            UsageError: The model has no such inference network.
        """
        if not given or given == self.conditional_on:
            return DiagonalGaussian.standard(batch.size, self.latent_size, like=next(self.parameters()))
        return self.inference.posterior(batch, given)

    def posteriors(self, batch: Batch, queries: Sequence[Given]) -> list[DiagonalGaussian]:
        """Several posteriors of the same batch; networks that they share run once.

        Raises:
            UsageError: The model lacks an inference network.
        """
        return self.inference.posteriors(batch, queries)

    def subset_posteriors(
        self, batch: Batch, units: Sequence[Unit], chosen: Sequence[Sequence[bool]]
    ) -> DiagonalGaussian:
        """q(z | subset) [S, B, D] for S subsets of U units (modalities, or single attributes); see :class:`Inference`.

        Args:
            batch: B examples; what is missing in one is left out of its subsets.
            units: The U units.
            chosen: [S][U], which units each subset holds.
        """
        return self.inference.infer_subsets(batch, units, chosen)

    def log_prior(self, z: Tensor) -> Tensor:
        """log p(z), z [..., D] -> [...], nats; p(z) = N(0, I)."""
        return DiagonalGaussian.standard(self.latent_size, like=z).log_prob(z)

    def decode(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        """Parameters of p(x_name | z): z [..., D] -> [..., *event]; for text a context [..., F] that words follow from.

        Args:
            name: The modality.
            z: Latents; leading axes are free, the last of them being B where ``condition`` is used.
            condition: For a conditional model, the descriptions [B] that it is conditioned on.
        """
        if name not in self.decoders:
            raise UsageError(f"this model does not generate {name}; it generates {', '.join(self.decoders)}")
        flat = z.reshape(-1, z.shape[-1])
        if self.shared is not None:
            flat = self.shared(flat)
        if self.condition:
            if condition is None or self.condition.name not in condition.values:
                raise UsageError(
                    f"this conditional model needs {self.condition.name} to generate {name}; give a description"
                )
            description = self.condition.describe(
                condition.values[self.condition.name], condition.present[self.condition.name]
            )
            spread = description.to(flat.dtype).expand(*z.shape[:-1], description.shape[-1])
            flat = torch.cat([flat, spread.reshape(-1, description.shape[-1])], -1)
        parameters: Tensor = self.decoders[name](flat)
        return parameters.reshape(*z.shape[:-1], *parameters.shape[1:])

    def log_likelihood(self, name: str, z: Tensor, batch: Batch) -> Tensor:
        """log p(x_name | z) in nats: z [K, B, D] or [B, D] -> [K, B] or [B]; what is unknown is left out."""
        parameters = self.decode(name, z, batch if self.condition else None)
        return self.modalities[name].log_prob(parameters, batch.values[name], batch.present[name])

    def log_likelihood_of_attribute(self, name: str, attribute: int, z: Tensor, batch: Batch) -> Tensor:
        """log p(y_k | z) of one attribute by number, in nats: z [K, B, D] or [B, D] -> [K, B] or [B]; 0 if unknown.

        Only that attribute's network runs; so every attribute must have one of its own.
        """
        decoder, modality = self.decoders[name], self.modalities[name]
        assert isinstance(decoder, AttributeDecoder) and isinstance(modality, Attributes)
        assert self.condition is None and self.shared is None
        logits = decoder.one(z.reshape(-1, z.shape[-1]), attribute).reshape(*z.shape[:-1], -1)
        return modality.log_prob_of_one(logits, attribute, batch.values[name], batch.present[name])

    def label_parameters(self) -> list[nn.Parameter]:
        """The parameters of p(y | z) of every attribute modality, whatever it is called."""
        of_labels = [name for name, modality in self.modalities.items() if isinstance(modality, Attributes)]
        return [p for name in of_labels for p in self.decoders[name].parameters()]

    def label_weights(self) -> list[nn.Parameter]:
        """The weight matrices among them: no biases, no norms."""
        return [p for p in self.label_parameters() if p.dim() > 1]

    def mean(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        """E[x_name | z]: an image [..., C, H, W], attribute probabilities [..., A, V], or of words [..., T, V+1]."""
        return self.modalities[name].mean(self.decode(name, z, condition))

    def sample(
        self,
        name: str,
        z: Tensor,
        generator: torch.Generator | None = None,
        condition: Batch | None = None,
        greedy: bool = False,
    ) -> Tensor:
        """A draw of x_name given z: an image [..., C, H, W] float, attribute codes or word codes int64 [..., A or T].

        Args:
            name: The modality.
            z: Latents [..., D].
            generator: Of the draw.
            condition: See :meth:`decode`.
            greedy: Of text, the likeliest word at every step instead of a draw.
        """
        parameters = self.decode(name, z, condition)
        if greedy:
            return self._text(name).sample(parameters, greedy=True)
        return self.modalities[name].sample(parameters, generator)

    def word_probabilities(self, name: str, z: Tensor, tokens: Tensor) -> Tensor:
        """p(word_t | z, words before t): z [..., D], tokens int64 [..., T] -> [..., T, V+1].

        The last column is padding, "no word", which is certain once a sentence has ended.
        """
        return self._text(name).probabilities(self.decode(name, z), tokens)

    def _text(self, name: str) -> Text:
        modality = self.modalities.get(name)
        if not isinstance(modality, Text):
            raise UsageError(f"words were asked of {name}, but this model generates no text of that name")
        return modality

    @contextmanager
    def frozen_decoders(self) -> Iterator[None]:
        """Inside, decoders pass gradients to z but receive none, and batch norm uses its running statistics.

        TELBO needs this in its unimodal terms (VE Section 2): q(z|x) and q(z|y) are fitted to the decoders as they will
        be used, and must not change them.
        """
        frozen = nn.ModuleList([self.decoders] + ([self.shared] if self.shared is not None else []))
        trainable = [p for p in frozen.parameters() if p.requires_grad]
        training = [m for m in frozen.modules() if m.training]
        for parameter in trainable:
            parameter.requires_grad_(False)
        frozen.eval()
        try:
            yield
        finally:
            for parameter in trainable:
                parameter.requires_grad_(True)
            for module in training:
                module.training = True
