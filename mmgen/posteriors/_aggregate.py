"""Densities over z that are fitted after training, conditioned on descriptions."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.densities import ConditionalGaussian, Family, SteeredDensity, Steering
from mmgen.descriptions import Expression, batch_of_queries
from mmgen.latent import DiagonalGaussian, LatentSpace
from mmgen.likelihoods import full_precision
from mmgen.modalities import Description, Modality
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.text import Text
from mmgen.models import Model
from mmgen.networks import TextNetwork, text_encoder

Given = str
"""Condition of a fit: "attributes", "text", "nothing", the name of a modality of another kind, or several of these with
commas, of which any subset may be known: "attributes,image"."""
Layers = Literal["top", "all"]
Condition = Modality | None


class FlowGuidance(NamedTuple):
    """Guidance of a flow in terms of descriptions and latents z.

    Attributes:
        terms: Weights of velocities with their descriptions; None stands for no description.
        reader: (z [..., B, D], rows of descriptions) -> log weight [..., B], whose gradient pulls draws; None for none.
        start, end: Part of the path, within 0 and 1, on which guidance acts.
    """

    terms: Sequence[tuple[float, Batch | None]]
    reader: Callable[[Tensor, slice], Tensor] | None = None
    start: float = 0.0
    end: float = 1.0


class Networks(nn.Module):
    """Base of networks that a target trains besides the density, such as SCAN's p(y|z) and its operators."""

    operators: tuple[str, ...] = ()
    """Operators of :mod:`mmgen.descriptions` that it has networks for, see :meth:`infer_recombined`."""

    def infer_recombined(self, recombination: Expression, leaves: list[DiagonalGaussian]) -> DiagonalGaussian:
        """Return q(u | r) [1, D] of a description r with operators, from its plain parts' posteriors ``leaves``."""
        raise NotImplementedError


class Aggregate(nn.Module):
    """Density over z, fitted after training, of one condition: q(z | attributes), q(z | text), q(z | other data) or
    q(z).

    The density reads attributes as one-hot codes with a mask, so any part of them may be unknown. A recurrent network,
    trained with the density, reads sentences; its last state is fed to every step of a flow. With ``further``
    conditions any subset of all may be known, and none of them: the posteriors of MLD and MUNITE, in a second stage.

    For a model with several layers of z it may be fitted to the top one alone, q(z_L | y). The model draws the layers
    below, z ~ q(z_L | y) p(z_{L-1} | z_L) ..., so sampling needs the model (:meth:`attach_model`).

    Args:
        latent: Space of the fitted layers, of D dimensions.
        condition: The modality to condition on; None for the marginal q(z).
        family: The family of densities.
        text_network: Widths of the network that reads sentences.
        layers: "all", or "top" alone.
        networks: Builds further networks; it may return None.
        described: Description of a condition that is neither attributes nor text, which an encoder of its kind reads.
        further: Further conditions with their descriptions.

    References:
        Multi-modal Latent Diffusion (Bounoua, Franzese, Michiardi, 2024), arXiv:2306.04445, MLD
        MUNITE (Yeo, Sung, 2026)
    """

    shift: Tensor
    scale: Tensor
    reader: nn.Module

    def __init__(
        self,
        latent: LatentSpace,
        condition: Condition,
        family: Family,
        text_network: TextNetwork | None = None,
        layers: Layers = "all",
        networks: Callable[[], Networks | None] = lambda: None,
        described: Description | None = None,
        further: Sequence[tuple[Modality, Description]] = (),
    ) -> None:
        super().__init__()
        self.latent = latent
        self.layers = layers
        # In a list, so that the frozen model's weights are neither trained nor saved with the aggregate.
        self._model: list[Model] = []
        self.condition = condition
        reader, width = (None, 0) if condition is None else _make_reader(condition, described, text_network)
        if reader is not None:
            self.reader = reader
        self.further = {modality.name: modality for modality, _ in further}
        self.readers = nn.ModuleDict()
        self._widths = {} if condition is None else {condition.name: width}
        for modality, each in further:
            reader, self._widths[modality.name] = _make_reader(modality, each, text_network)
            if reader is not None:
                self.readers[modality.name] = reader
        if further:  # and whether each is known
            width = sum(self._widths.values()) + len(self._widths)
        self.density = family.build_density(latent, width)
        self.by_likelihood, self.few_candidates = family.by_likelihood, family.few_candidates
        self.networks = networks()
        # z = shift + scale * u: densities are over latents u of zero mean and unit variance.
        self.register_buffer("shift", torch.zeros(latent.size))
        self.register_buffer("scale", torch.ones(latent.size))

    def keep_descriptions(self, rows: NDArray[np.uint8], counts: NDArray[np.int64]) -> Self:
        """Keep distinct training descriptions [N, A] and their counts [N] with the weights; return self."""
        self.register_buffer("described_rows", torch.from_numpy(rows))
        self.register_buffer("described_counts", torch.from_numpy(counts))
        return self

    @property
    def descriptions(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]] | None:
        """Distinct training descriptions uint8 [N, A] and their counts int64 [N]; None if they were not kept."""
        if not hasattr(self, "described_rows"):
            return None
        rows, counts = (getattr(self, f"described_{part}").cpu().numpy() for part in ("rows", "counts"))
        return rows, counts

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of the operators between descriptions that the fit has networks for; () without any."""
        return () if self.networks is None else self.networks.operators

    @property
    def given(self) -> Given:
        """Kind of condition: "attributes", "text", "nothing", or the name of another modality; several with commas."""
        if self.condition is None:
            return "nothing"
        every = (self.condition, *self.further.values())
        return ",".join(each.kind if isinstance(each, Attributes | Text) else each.name for each in every)

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the modalities that the density is conditioned on, attributes first; () for q(z)."""
        every = [] if self.condition is None else [self.condition, *self.further.values()]
        return tuple(each.name for each in sorted(every, key=lambda each: not isinstance(each, Attributes)))

    def attach_model(self, model: Model) -> Self:
        """Set the model that draws the layers of z below the fitted one; return self."""
        self._model = [model]
        return self

    def select_layers(self, z: Tensor) -> Tensor:
        """Return the fitted layers of z, or of other vectors [..., D of all layers]."""
        if self.layers == "all":
            return z
        latent = self._attached_model.latent
        return latent.split(z)[latent.top]

    @property
    def _attached_model(self) -> Model:
        assert self._model, "an aggregate of the top layer needs its model to draw z: see attach_model"
        return self._model[0]

    def _complete_layers(self, fitted: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return z of all layers: the model draws those below the fitted ones."""
        return fitted if self.layers == "all" else self._attached_model.sample_lower_layers(fitted, generator)

    def _log_prob_lower_layers(self, z: Tensor) -> Tensor | float:
        """Return the model's log density of the layers below the fitted ones, in nats; 0 if all are fitted."""
        return 0.0 if self.layers == "all" else self._attached_model.log_prob_lower_layers(z)

    def standardise(self, mean: Tensor, log_sd: Tensor) -> None:
        """Set shift and scale so that encodings [N, D] get mean 0 and standard deviation 1.

        In a grid it is the places of a channel together that get them. By place, noise of the encoder where nothing
        ever differs would be blown up to the size of what matters, and neighbours would have scales of their own.

        Args:
            mean: Means [N, D] of the fitted layers, see :meth:`select_layers`.
            log_sd: Their log standard deviations.
        """
        self.shift.copy_(self.latent.average_places(mean.mean(0)))
        spread = mean.var(0) + (mean.mean(0) - self.shift).square() + (2 * log_sd).exp().mean(0)
        self.scale.copy_(self.latent.average_places(spread).sqrt().clamp_min(1e-6))

    def context(self, condition: Batch | None) -> Tensor | None:
        """Return the vectors [B, X] by which the density depends on B descriptions; None for q(z).

        Raises:
            UsageError: The batch has no description of the modality to condition on.
        """
        if self.condition is None:
            return None
        if not self.training and condition is not None:
            self.check_known(condition)
        if self.further:
            every = [(self.condition, getattr(self, "reader", None))]
            every += [(each, dict(self.readers).get(name)) for name, each in self.further.items()]
            return torch.cat([self._optional_context(*one, condition) for one in every], -1)
        name = self.condition.name
        if condition is None or name not in condition.values:
            if not isinstance(self.condition, Attributes | Text):
                raise UsageError(
                    f"this posterior is conditioned on {name}, expected one that reads descriptions; use "
                    "--posterior prior"
                )
            hint = "by attributes, some of which may be left out" if self.given == "attributes" else "in words"
            raise UsageError(f"this aggregate is conditioned on {name}; give a description {hint}")
        value, present = condition.values[name], condition.present[name]
        if isinstance(self.condition, Attributes):
            return self.condition.describe(value, present).to(self.shift.dtype)
        if isinstance(self.condition, Text):
            states: Tensor = self.reader(value)
            return states
        return self.condition.features(self.reader, value, present).to(self.shift.dtype)

    def check_known(self, condition: Batch) -> None:
        """Refuse descriptions that do not say what this density is conditioned on; on a GPU this waits for it."""
        if self.further:
            said = [name for name, known in condition.present.items() if known.any()]
            if said and not {*self.reads} & {*said}:
                reads, got = ", ".join(self.reads), ", ".join(said)
                raise UsageError(
                    f"this posterior is conditioned on {reads}, expected one of these, got {got}; use --posterior prior"
                )
        elif self.condition is not None and not isinstance(self.condition, Attributes):
            name = self.condition.name
            if name in condition.present and not condition.present[name].all():
                raise UsageError(
                    f"this aggregate is conditioned on {name}, but an example has none; give whole sentences"
                )

    def _optional_context(self, modality: Modality, reader: nn.Module | None, condition: Batch | None) -> Tensor:
        """Return the vectors [B, X + 1] of one of several modalities: zeros where unknown, and whether it is known."""
        batch, name = 1 if condition is None or not condition.values else condition.size, modality.name
        if condition is None or name not in condition.values:
            return torch.zeros(batch, self._widths[name] + 1, dtype=self.shift.dtype, device=self.shift.device)
        value, present = condition.values[name], condition.present[name]
        known = condition.known(name)
        if isinstance(modality, Attributes):
            features = modality.describe(value, present)
        elif isinstance(modality, Text):
            assert reader is not None
            features = reader(value)
        else:
            assert reader is not None
            features = modality.features(reader, value, present)
        flag = known.unsqueeze(-1).to(self.shift.dtype)
        return torch.cat([features.to(self.shift.dtype) * flag, flag], -1)

    def log_prob(self, z: Tensor, condition: Batch | None) -> Tensor:
        """Return log q(z | condition) [..., B] in nats for z [..., B, D] of all layers."""
        return self.log_prob_with_error(z, condition)[0]

    def log_prob_with_error(self, z: Tensor, condition: Batch | None) -> tuple[Tensor, Tensor | None]:
        """Return log q(z | condition) [..., B] in nats, and its standard errors [..., B]; None where it is exact."""
        with torch.autocast(z.device.type, enabled=False):
            u = (self.select_layers(z) - self.shift) / self.scale
            value, error = self.density.log_prob_with_error(u, self.context(condition))
            return value - self.scale.log().sum() + self._log_prob_lower_layers(z), error

    def training_value(self, z: Tensor, condition: Batch | None) -> Tensor:
        """Return the value [..., B] that a fit to draws z [..., B, D] of the fitted layers maximises.

        It is log q(z | condition) in nats for families fitted by likelihood, else minus a loss of their own.
        """
        context = self.context(condition)  # what reads pictures may compute in bf16
        with torch.autocast(z.device.type, enabled=False):
            u, context = (z - self.shift) / self.scale, None if context is None else full_precision(context)
            if self.by_likelihood:
                return self.density.training_value(u, context) - self.scale.log().sum()
        return self.density.training_value(u, context)  # a loss of its own may be computed in bf16

    def sample(self, condition: Batch | None, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw z [n, B, D]: n draws for each of B descriptions; B is 1 without a condition."""
        with torch.autocast(self.shift.device.type, enabled=False):
            batch = condition.size if condition is not None else 1
            u = self.density.sample(self.context(condition), n, batch, generator)
            return self._complete_layers(self.shift + self.scale * u, generator)

    def steered_sample(
        self, guidance: FlowGuidance, n: int, batch: int, generator: torch.Generator | None = None
    ) -> Tensor:
        """Draw z [n, B, D] under the guidance of a flow."""
        with torch.autocast(self.shift.device.type, enabled=False):
            assert isinstance(self.density, SteeredDensity)
            u = self.density.steered_sample(self._steering(guidance), n, batch, generator)
            return self._complete_layers(self.shift + self.scale * u, generator)

    def steered_log_prob(self, z: Tensor, guidance: FlowGuidance) -> tuple[Tensor, Tensor | None]:
        """Return the log density [..., B] in nats of draws of :meth:`steered_sample` at z [..., B, D], and its
        standard errors as :meth:`log_prob_with_error` does.
        """
        with torch.autocast(z.device.type, enabled=False):
            u = (self.select_layers(z) - self.shift) / self.scale
            assert isinstance(self.density, SteeredDensity)
            value, error = self.density.steered_log_prob(u, self._steering(guidance))
            return value - self.scale.log().sum() + self._log_prob_lower_layers(z), error

    def _steering(self, guidance: FlowGuidance) -> Steering:
        """Return guidance in terms of the density: contexts of descriptions, zero for None, and a reader of u."""
        read = guidance.reader
        reader = None if read is None else lambda u, rows: read(self.shift + self.scale * u, rows)
        contexts = [(weight, None if words is None else self.context(words)) for weight, words in guidance.terms]
        if len(contexts) > 1:
            blank = torch.zeros_like(next(context for _, context in contexts if context is not None)[:1])
            contexts = [(weight, blank if context is None else context) for weight, context in contexts]
        return Steering(contexts, reader, guidance.start, guidance.end)

    def sample_reparameterised(self, condition: Batch | None, batch: int) -> tuple[Tensor, Tensor]:
        """Return draws z [M, B, D] with gradients, and their weights [M, B]; see
        :meth:`Density.sample_reparameterised`.
        """
        with torch.autocast(self.shift.device.type, enabled=False):
            u, weights = self.density.sample_reparameterised(self.context(condition), batch)
            return self._complete_layers(self.shift + self.scale * u), weights

    def sample_with_log_prob(self, condition: Batch | None, batch: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return draws z [M, B, D] with gradients, their weights [M, B] and log q(z | condition) [M, B] in nats."""
        with torch.autocast(self.shift.device.type, enabled=False):
            u, weights, log_q = self.density.sample_with_log_prob(self.context(condition), batch)
            z = self._complete_layers(self.shift + self.scale * u)
            return z, weights, log_q - self.scale.log().sum() + self._log_prob_lower_layers(z)

    def sample_recombined(self, recombination: Expression, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw z [n, 1, D] of a description with operators."""
        with torch.autocast(self.shift.device.type, enabled=False):
            q = self.recombined_posterior(recombination)
            return self._complete_layers(q.sample(generator, (n,)), generator)

    def log_prob_recombined(self, z: Tensor, recombination: Expression) -> Tensor:
        """Return log q(z | r) [..., 1] in nats of a description r with operators, for z [..., 1, D]."""
        with torch.autocast(z.device.type, enabled=False):
            return self.recombined_posterior(recombination).log_prob(
                self.select_layers(z)
            ) + self._log_prob_lower_layers(z)

    def recombined_posterior(self, recombination: Expression) -> DiagonalGaussian:
        """Return q(z | r) [1, D] over the fitted layers for a description r with operators.

        Raises:
            UsageError: The aggregate has no networks for operators.
        """
        if self.networks is None or not self.operators:
            raise UsageError(
                f"'{recombination}' needs operators, and this aggregate has none; give {recombination.meaning}"
            )
        assert self.condition is not None and isinstance(self.density, ConditionalGaussian)
        name, device = self.condition.name, str(self.shift.device)
        contexts = [self.context(batch_of_queries(codes, name, device)) for codes in recombination.leaf_codes]
        q = self.networks.infer_recombined(recombination, [self.density.distribution(each, 1) for each in contexts])
        return DiagonalGaussian(self.shift + self.scale * q.mean, q.log_sd + self.scale.log())


def _make_reader(
    condition: Modality, described: Description | None, text_network: TextNetwork | None
) -> tuple[nn.Module | None, int]:
    """Return the network that reads a condition, None for attributes, and the number of its features."""
    if isinstance(condition, Attributes):
        return None, condition.description_size
    if isinstance(condition, Text):
        # Without dropout: a draw and its density are two calls, and both must see the same context.
        network = replace(text_network or TextNetwork(), dropout=0.0)
        reader = text_encoder(len(condition.vocabulary), network)
        return reader, reader.features
    assert described is not None
    network = described.read_network_settings({}, "aggregate.networks")
    if hasattr(network, "activation"):  # ReLUs die of the large steps that suit densities
        network = replace(network, activation="silu")
    encoder, width = condition.encoder(network)
    with torch.no_grad():  # layers that learn their input size from data get their weights
        blank, present = described.values_and_presence(torch.zeros(2, *described.event_shape))
        condition.features(encoder.eval(), blank, present)
    return encoder, width
