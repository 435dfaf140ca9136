"""MVAE: bounds through the posteriors of all modalities, of each alone and of random subsets, from one set of experts.

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), Eq. 5, arXiv:1802.05335
"""

import math
from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.modalities.attributes import Attributes
from mmgen.models import USUAL_NEEDS, Demands, GaussianModel, Unit
from mmgen.objectives._base import Bound, Modalities, Objective, prior_kl, relative_weight, role, warmup_weight

__all__ = ["Mvae"]

Subset = tuple[bool, ...]
"""Whether a subset includes each of the U units."""


class Mvae(Objective, settings=True):
    r"""Objective of MVAE: the sum of the ELBOs of all modalities together, of each alone, and of random subsets.

    .. math:: ELBO(x_1, \ldots, x_N) + \sum_i ELBO(x_i) + \sum_{j=1}^k ELBO(X_j), \quad
              ELBO(X) = E_{q(z|X)}\Big[\sum_{x_i \in X} \lambda_i \log p(x_i|z)\Big] - \beta \, KL(q(z|X) \,\|\, p(z))

    (WG Eq. 2 and 5). The :math:`X_j` are drawn afresh at every step, from the subsets of 2 to N - 1 modalities. Each
    encoder runs once per step and each decoder once, on the draws of all posteriors that it answers
    for. What is missing in an example is left out of its subsets; a subset of which it has a single modality is the
    term of that modality, and counts once.
    """

    modalities: Modalities = ("image", "attributes")
    """The modalities, by their names in the dataset."""
    weights: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(default_factory=dict)
    """lambda of each modality's likelihood; where not named 50 for attributes (WG) and 1 for everything else."""
    subsets: Annotated[int, Field(ge=0)] = 0
    """k, random subsets per step (WG: 1 with more than two modalities)."""
    subset_law: Literal["subsets", "sizes"] = "subsets"
    """Whether every subset of 2 to N - 1 modalities is as likely as any other, or every size is, and then every subset
    of that size (WG's published code of MVAE19: more small and more large ones)."""
    weigh: Literal["all", "joint"] = "all"
    """Which terms the weights are for: all, as in the paper, or the joint one alone, every likelihood counting 1 in the
    others (WG's published code of MVAE19, with weights of 1 for images)."""
    split_attributes: bool = False
    """Whether every single attribute counts as a modality (WG's MVAE19)."""
    predicts: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Further modalities that the posterior of one modality alone has to explain, where the example has them: with
    {image = ["attributes"]} that of a labelled image bounds log p(image, label) instead of log p(image). Not in WG's
    Eq. 5, where only joint terms tie modalities together, but in their published code for transformed images, where
    every modality's posterior explains all six. It makes the little that is paired count for more."""
    mean_of_modalities: bool = False
    """Divide every sum of log-likelihoods by the number of modalities that it is of, all N in WG's published code for
    transformed images. A divergence then weighs N times more than in Eq. 2, in every term alike. Where ``predicts``
    does not name all others for each modality, sums have fewer terms and are divided by so many: that is neither WG's
    Eq. 5 nor their code, which explains all N in every term."""
    beta: Annotated[float, Field(ge=0)] = 1.0
    """Weight of the divergences."""
    kl_warmup_steps: Annotated[int, Field(ge=0)] = 0
    """Steps over which the divergences are switched on."""
    free_nats: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Nats of each divergence that cost nothing in training, so that decoders of words learn to use z (free bits,
    Kingma et al., 2016): a term counts max(KL, free_nats) on average over the batch. Validation counts the whole KL."""

    @model_validator(mode="after")
    def _check_settings(self) -> "Mvae":
        names = ", ".join(self.modalities)
        for setting, named in (
            ("weights", self.weights.keys()),
            ("predicts", {name for alone, others in self.predicts.items() for name in (alone, *others)}),
        ):
            strange = sorted(set(named) - set(self.modalities))
            if strange:
                raise ValueError(
                    f"{setting} got {strange[0]}, expected some of the modalities {names}; name one of them"
                )
        own = sorted(alone for alone, others in self.predicts.items() if alone in others)
        if own:
            raise ValueError(
                f"predicts got {own[0]} for {own[0]}, expected other modalities; leave {own[0]} out, since every "
                "modality predicts itself"
            )
        if self.subsets and len(self.modalities) < 3 and not self.split_attributes:
            raise ValueError(
                f"subsets got {self.subsets}, expected 0, since random subsets need at least three modalities and the "
                f"objective has {names}; leave subsets out"
            )
        if self.subset_law == "sizes" and not self.subsets:
            raise ValueError(
                "subset_law got sizes, but subsets got 0, no random subsets; set subsets too, or leave subset_law out"
            )
        return self

    @property
    def demands(self) -> Demands:
        return Demands(
            posteriors=frozenset([self.modalities, *((name,) for name in self.modalities)]),
            generates=self.modalities,
            inference="product-of-experts",
            needs=USUAL_NEEDS | {"subsets"} | ({"split attributes"} if self.split_attributes else set()),
        )

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        r"""Return \lambda_y / beta of ELBO(y), the bound through the posterior of the description alone.

        Where sums of log-likelihoods are divided by the number of modalities that they are of, it is that part of it;
        None where single attributes count as modalities there, so that no bound is of the description alone.
        """
        if self.mean_of_modalities and self.split_attributes:
            return None
        weight = self.weight(name, kind) if self.weigh == "all" or len(self.modalities) == 1 else 1.0
        explained = 1 + len(self.predicts.get(name, ())) if self.mean_of_modalities else 1
        return relative_weight(weight, self.beta) / explained

    def __call__(self, model: GaussianModel, batch: Batch, step: int | None = None) -> Bound:
        units = self.units(model)
        subsets = self._select_subsets(len(units))
        present = torch.stack([_is_unit_present(batch, unit) for unit in units])  # [U, B]
        counted = _find_valid_terms(subsets, present)  # [S, B]
        q = model.subset_posteriors(batch, units, subsets)
        z, kl = q.sample(), prior_kl(q)
        scale = self.beta * warmup_weight(step, self.kl_warmup_steps)
        cost = kl if step is None else self._charged_kl(kl, counted)
        likelihood = torch.zeros_like(kl)  # weighted, [S, B]
        explained = torch.zeros_like(kl)  # how many sums it has, [S, B]
        log_likelihoods: list[Tensor] = []
        for number, unit in enumerate(units):
            rows = [row for row, subset in enumerate(subsets) if self._must_explain(units, subset, number)]
            counts = counted[rows] & present[number]
            term = _masked_log_likelihood(model, unit, z[rows], batch, counts, counts.device.type != "cpu")
            weights = torch.tensor(
                [self._term_weight(row, role(model, unit[0]), unit) for row in rows], dtype=term.dtype, device=z.device
            )
            likelihood = likelihood.index_add(0, _row_indices(rows, z), weights.unsqueeze(-1) * term)
            log_likelihoods.append(torch.zeros_like(kl).index_copy(0, _row_indices(rows, z), term.detach()))
            explained = explained.index_add(0, _row_indices(rows, z), counts.to(kl.dtype))
        if self.mean_of_modalities:
            likelihood = likelihood / explained.clamp(min=1.0)
        value = ((likelihood - scale * cost) * counted).sum(0)
        return Bound(value, self._log_terms(units, log_likelihoods, (kl * counted).detach()), is_bound=False)

    def _charged_kl(self, kl: Tensor, counted: Tensor) -> Tensor:
        """Return the divergences [S, B] that training counts: constant where their mean is below ``free_nats``."""
        number = counted.sum(1, keepdim=True).clamp(min=1)
        mean = (kl * counted).sum(1, keepdim=True) / number
        return torch.where(mean > self.free_nats, kl, self.free_nats)

    def weight(self, name: str, kind: str | None = None) -> float:
        """Return lambda of the modality ``name``; ``kind`` is its :func:`role` if that differs from its name."""
        return self.weights.get(name, 50.0 if (kind or name) == "attributes" else 1.0)

    def _term_weight(self, row: int, kind: str, unit: Unit) -> float:
        """Return the weight of a unit's likelihood in term number ``row``; number 0 is the joint term."""
        return self.weight(unit[0], kind) if row == 0 or self.weigh == "all" else 1.0

    def _must_explain(self, units: Sequence[Unit], subset: Subset, number: int) -> bool:
        """Return whether unit ``number`` counts in a subset's term: it is in the subset, or ``predicts`` adds it."""
        if subset[number] or sum(subset) > 1:
            return subset[number]
        return units[number][0] in self.predicts.get(units[subset.index(True)][0], ())

    def _select_subsets(self, count: int) -> list[Subset]:
        """Return the subsets of units in one training step: all, each alone, and k random ones."""
        everything = (True,) * count
        alone = [tuple(number == own for number in range(count)) for own in range(count)]
        if count < 2:
            return [everything]
        random = [draw_subset(count, self.subset_law) for _ in range(self.subsets)] if count > 2 else []
        return [everything, *alone, *random]

    def units(self, model: GaussianModel) -> list[Unit]:
        """Return the units that subsets are made of: N whole modalities, or their single attributes."""
        units: list[Unit] = []
        for name in self.modalities:
            modality = model.modalities[name]
            if self.split_attributes and isinstance(modality, Attributes):
                units += [(name, attribute) for attribute in range(len(modality.names))]
            else:
                units.append((name, None))
        return units

    def _log_terms(self, units: Sequence[Unit], log_likelihoods: Sequence[Tensor], kl: Tensor) -> dict[str, Tensor]:
        """Return terms for the training log: joint bound, each modality alone, random subsets."""
        terms = {"kl": kl[0]}
        count = len(units)
        for name in self.modalities:
            own = [number for number, unit in enumerate(units) if unit[0] == name]
            terms[f"log p({name}|z)"] = torch.stack([log_likelihoods[number][0] for number in own]).sum(0)
            if count > 1:
                terms[f"log p({name}|z), {name} alone"] = torch.stack([log_likelihoods[n][1 + n] for n in own]).sum(0)
                terms[f"kl, {name} alone"] = torch.stack([kl[1 + n] for n in own]).sum(0)
        if len(kl) > 1 + count:
            rest = torch.stack(list(log_likelihoods)).sum(0)[1 + count :].sum(0)
            terms["log p(subset|z), random subsets"] = rest
            terms["kl, random subsets"] = kl[1 + count :].sum(0)
        return terms


def draw_subset(count: int, law: str = "subsets") -> Subset:
    """Draw a random subset of 2 to ``count`` - 1 units by ``Mvae.subset_law``, from torch's global generator."""
    sizes = range(2, count)
    ways = torch.tensor([math.comb(count, size) if law == "subsets" else 1 for size in sizes], dtype=torch.float64)
    size = sizes[int(torch.multinomial(ways, 1))]
    held = set(torch.randperm(count)[:size].tolist())
    return tuple(number in held for number in range(count))


def _is_unit_present(batch: Batch, unit: Unit) -> Tensor:
    """Return for each example whether it has the unit, or any part of it, bool [B]."""
    name, attribute = unit
    present = batch.present[name]
    return batch.known(name) if attribute is None or present.dim() == 1 else present[:, attribute]


def _find_valid_terms(subsets: Sequence[Subset], present: Tensor) -> Tensor:
    """Return the terms that count for each example, bool [S, B]: it has two of the subset's units, or its only one."""
    held = torch.tensor(subsets, device=present.device)  # [S, U]
    count = (held.unsqueeze(-1) & present).sum(1)
    least = torch.where(held.sum(1) == 1, 1, 2).unsqueeze(-1)
    return count >= least


def _masked_log_likelihood(
    model: GaussianModel, unit: Unit, z: Tensor, batch: Batch, mask: Tensor, whole: bool
) -> Tensor:
    """Return log p(unit | z) [S, B] in nats where ``mask`` [S, B] is True, else 0; z is [S, B, D]."""
    if whole:  # to look at the mask would wait for a GPU
        return _unit_log_likelihood(model, unit, z, batch).where(mask, 0.0)
    if bool(mask.all()):
        return _unit_log_likelihood(model, unit, z, batch)
    # Decoders run on what counts alone: in weakly supervised training that is a fraction.
    rows, examples = (index if len(index) != 1 else index.repeat(2) for index in mask.nonzero(as_tuple=True))
    # A single row is decoded twice: batch norm has no statistics of one.
    term = _unit_log_likelihood(model, unit, z[rows, examples], batch.select([unit[0]])[examples])
    if int(mask.sum()) == 1:
        rows, examples, term = rows[:1], examples[:1], term[:1]
    return torch.zeros_like(z[..., 0]).index_put((rows, examples), term)


def _unit_log_likelihood(model: GaussianModel, unit: Unit, z: Tensor, batch: Batch) -> Tensor:
    """Return log p(unit | z) in nats of a whole modality, or of one attribute."""
    name, attribute = unit
    if attribute is None:
        return model.log_likelihood(name, z, batch)
    return model.log_likelihood_of_attribute(name, attribute, z, batch)


def _row_indices(numbers: Sequence[int], like: Tensor) -> Tensor:
    return torch.tensor(numbers, device=like.device)
