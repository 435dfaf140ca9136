r"""Semi-supervised bound: labelled pictures, and pictures whose label is summed out.

References:
    Semi-Supervised Learning with Deep Generative Models (Kingma, Rezende, Mohamed, Welling, 2014), arXiv:1406.5298,
    Eqs. 6 to 9: model M2
    Learning Disentangled Representations with Semi-Supervised Deep Generative Models (Narayanaswamy et al., 2017),
    arXiv:1706.00400, Section 3
    The Concrete Distribution (Maddison, Mnih, Teh, 2017), arXiv:1611.00712; Categorical Reparameterization with
    Gumbel-Softmax (Jang, Gu, Poole, 2017), arXiv:1611.01144
    Variational Inference for Monte Carlo Objectives (Mnih, Rezende, 2016), arXiv:1602.06725: the mean over other draws
    as control variate
"""

import itertools
import math
from typing import Annotated, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.labels import Labels
from mmgen.models import Demands
from mmgen.models.semi_supervised_vae import PictureEncoding, SemiSupervisedVAE
from mmgen.objectives._base import Bound, Objective

__all__ = ["SemiSupervised"]

_TEMPERATURE = 0.66


class SemiSupervised(Objective, settings=True):
    r"""Semi-supervised objective: L(x, y) of examples with a label y, and U(x), summed over y, of the others.

    .. math:: U(x) = E_{q(y|x)}[L(x, y) - \log q(y|x)], \quad
              S(x, y) = \gamma \, [L(x, y) + \alpha \log q(y|x)], \quad
              L(x, y) = E_{q(z|x,y)}[\log p(x|y,z)] - KL(q(z|x,y) \,\|\, p(z)) + \log p(y)

    U bounds log p(x), and L bounds log p(x, y). The value of a batch is one mean over all of its rows, of U where they
    are unlabelled and of S where they are labelled. So gamma weighs a labelled example as often as it is drawn: where
    training repeats labelled examples until they are a share s of what it draws (``data.labelled_share``), its gamma
    times s / (1 - s) N_u / N_l is the gamma of the papers' sum over N_u unlabelled and N_l labelled examples.

    An example that has some of its attributes has the others summed out, alpha log q of those that it has, and gamma as
    one that has all. Validation measures U of all examples, with no relaxed label, so that its labels choose no
    weights; log q(y|x) of its labels stands beside it as a term.
    """

    modalities: tuple[str, str] = ("image", "attributes")
    """Names of the picture x and of its label y."""
    estimator: Literal["enumerate", "importance", "relaxed"] = "enumerate"
    """Expectation over an unknown y. enumerate: a sum over its values weighted by q(y|x) (Kingma et al., 2014).
    importance: ``samples`` draws from q(y|x), with gradients by importance weights q / q of fixed denominator.
    relaxed: a draw of a relaxed y, through which gradients pass; no bound."""
    gamma: Annotated[float, Field(ge=0)] = 1.0
    """Weight of a labelled example as it is drawn, beside an unlabelled one (Narayanaswamy et al., 2017, Eq. 4)."""
    alpha: Annotated[float, Field(ge=0)] = 1.0
    """Weight of log q(y|x) of labelled examples (Kingma et al., 2014: 0.1 times the number of all examples over that of
    labelled ones)."""
    samples: Annotated[int, Field(ge=1)] = 1
    """Draws of y of an unlabelled example, for estimators importance and relaxed; from two on those of importance
    sampling are compared with the mean of the others, which quietens gradients."""
    temperature: Annotated[float, Field(gt=0)] = _TEMPERATURE
    """Temperature of the relaxed y (Narayanaswamy et al., 2017, published code: 0.66)."""
    most_labels: Annotated[int, Field(ge=2)] = 256
    """Most values of y, combinations of all attributes, that estimator enumerate sums over; more are refused."""

    @model_validator(mode="after")
    def _check_estimator_settings(self) -> "SemiSupervised":
        if self.samples > 1 and self.estimator == "enumerate":
            raise ValueError(f"samples got {self.samples} with estimator enumerate, which draws no label; leave it out")
        if self.temperature != _TEMPERATURE and self.estimator != "relaxed":
            raise ValueError(
                f"temperature got {self.temperature:g} with estimator {self.estimator}, which has none; leave it out"
            )
        return self

    @property
    def demands(self) -> Demands:
        image, labels = self.modalities
        needs = frozenset({"density", "labels in z"})
        given = frozenset([(image,), self.modalities])
        return Demands(given, generates=self.modalities, marginalises=(labels,), needs=needs)

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """Return 1: the label is part of z, and p(y) counts once beside p(z)."""
        return 1.0

    def __call__(self, model: SemiSupervisedVAE, batch: Batch, step: int | None = None) -> Bound:
        _, name = self.modalities
        encoding = model.infer(batch)
        present = batch.present[name]
        if step is None:
            return self._validation_value(model, batch, encoding)
        whole = present.all(-1)
        rows = [whole.nonzero().flatten(), (~whole).nonzero().flatten()]
        parts: list[dict[str, Tensor]] = []
        if len(rows[0]):
            parts.append(self._labelled_terms(model, batch[rows[0]], _select_rows(encoding, rows[0])))
        if len(rows[1]):
            parts.append(self._unlabelled_terms(model, batch[rows[1]], _select_rows(encoding, rows[1]), self.estimator))
        order = torch.cat(rows).argsort()
        terms = {key: torch.cat([part[key] for part in parts])[order] for key in parts[0]}
        bound = terms.pop("bound")
        of_label = self._label_log_prob(batch, encoding)
        weight = torch.where(present.any(-1), self.gamma, 1.0)
        terms[f"log q({name}|{self.modalities[0]})"] = of_label
        exact = self.gamma == 1 and self.alpha == 0 and self.estimator != "relaxed"
        return Bound(weight * (bound + self.alpha * of_label), terms, exact)

    def _validation_value(self, model: SemiSupervisedVAE, batch: Batch, encoding: PictureEncoding) -> Bound:
        """Return the value for validation: U(x) of all examples, as if none had a label."""
        image, name = self.modalities
        hidden = Batch(
            batch.values | {name: torch.zeros_like(batch.values[name])},
            batch.present | {name: torch.zeros_like(batch.present[name])},
            batch.shared,
        )
        estimator = self.estimator
        if estimator == "relaxed":  # which is no bound
            estimator = "enumerate" if math.prod(encoding.labels.sizes) <= self.most_labels else "importance"
        terms = self._unlabelled_terms(model, hidden, encoding, estimator)
        bound = terms.pop("bound")
        exact = self.gamma == 1 and self.alpha == 0 and self.estimator != "relaxed"
        return Bound(bound, {**terms, f"log q({name}|{image})": self._label_log_prob(batch, encoding)}, exact)

    def _label_log_prob(self, batch: Batch, encoding: PictureEncoding) -> Tensor:
        """Return log q(y|x) [B] of the known attributes."""
        name = self.modalities[1]
        present = batch.present[name]
        known = encoding.labels.condition_on(batch.values[name], present)
        return (known.probs * _log_probs_of_known(encoding.labels, present)).sum(-1)

    def _labelled_terms(self, model: SemiSupervisedVAE, batch: Batch, encoding: PictureEncoding) -> dict[str, Tensor]:
        """Return L(x, y) and its terms [B] for examples with a label."""
        name = self.modalities[1]
        one_hot = encoding.labels.condition_on(batch.values[name], batch.present[name]).likeliest()
        terms = self._terms(model, batch, encoding, one_hot)
        return {"bound": _sum_terms(terms), **terms, "entropy of q(y|x)": torch.zeros_like(terms["kl"])}

    def _unlabelled_terms(
        self, model: SemiSupervisedVAE, batch: Batch, encoding: PictureEncoding, estimator: str
    ) -> dict[str, Tensor]:
        """Return U(x) and its terms [B] for examples without a label, by the chosen estimator."""
        name = self.modalities[1]
        q = encoding.labels.condition_on(batch.values[name], batch.present[name])
        entropy = -(q.probs * q.log_probs).sum(-1)
        if estimator == "relaxed":
            terms: dict[str, Tensor] = {}
            for _ in range(self.samples):
                drawn = self._terms(model, batch, encoding, q.sample_relaxed(self.temperature))
                terms = {key: terms.get(key, 0.0) + term / self.samples for key, term in drawn.items()}
            prior = model.label_prior(batch.size)
            terms["log p(y)"] = (q.probs * prior.log_probs).sum(-1)
            return {"bound": _sum_terms(terms) + entropy, **terms, "entropy of q(y|x)": entropy}
        if estimator == "enumerate":
            one_hot = self._all_labels(model, q)
            log_q = q.log_prob(one_hot)
            weight = log_q.exp()
        else:
            one_hot = q.sample(shape=(self.samples,))
            log_q = q.log_prob(one_hot)
            # Importance weights of draws from q as it is: 1, and their gradient is that of log q.
            weight = (log_q - log_q.detach()).exp() / self.samples
        terms = self._terms(model, batch, encoding, one_hot)
        each = _sum_terms(terms) - log_q
        if estimator == "importance" and self.samples > 1:
            others = (each.detach().sum(0) - each.detach()) / (self.samples - 1)
            # The weights of the others' mean add up to nothing: the value stays, the gradient's variance falls.
            bound = (weight * (each - others) + weight.detach() * others).sum(0)
        else:
            bound = (weight * each).sum(0)
        means = {key: (weight * term).sum(0) for key, term in terms.items()}
        return {"bound": bound, **means, "entropy of q(y|x)": entropy}

    def _terms(
        self, model: SemiSupervisedVAE, batch: Batch, encoding: PictureEncoding, one_hot: Tensor
    ) -> dict[str, Tensor]:
        """Return the terms of L(x, y) in nats [..., B], with one draw of z, for labels [..., B, S]."""
        # All labels of an example share its noise: each expectation stays what it is, and differences between labels,
        # which q(y|x) learns from, are quieter.
        image, _ = self.modalities
        q = model.infer_style(encoding, one_hot)
        noise = DiagonalGaussian.standard(batch.size, q.mean.shape[-1], like=q.mean).sample()
        z = torch.cat([one_hot, q.mean + q.sd * noise], -1)
        prior = DiagonalGaussian.standard(*q.mean.shape, like=q.mean)
        return {
            f"log p({image}|y,z)": model.log_likelihood(image, z, batch),
            "kl": q.kl(prior),
            "log p(y)": model.label_prior(batch.size).log_prob(one_hot),
        }

    def _all_labels(self, model: SemiSupervisedVAE, q: Labels) -> Tensor:
        """Return all combinations of attribute values, one-hot [Y, B, S]."""
        count = math.prod(q.sizes)
        if count > self.most_labels:
            raise SettingsError(
                f"objective.estimator got enumerate, but {self.modalities[1]} have {count:,} combinations of values, "
                f"more than objective.most_labels ({self.most_labels}); use objective.estimator=importance"
            )
        codes = torch.tensor(list(itertools.product(*map(range, q.sizes))), device=q.log_probs.device)
        parts = [torch.nn.functional.one_hot(codes[:, k], size) for k, size in enumerate(q.sizes)]
        one_hot = torch.cat(parts, -1).to(q.log_probs.dtype)
        return one_hot.unsqueeze(1).expand(-1, len(q.log_probs), -1)


def _select_rows(encoding: PictureEncoding, rows: Tensor) -> PictureEncoding:
    labels = encoding.labels
    return PictureEncoding(Labels(labels.log_probs[rows], labels.sizes), encoding.features[rows])


def _sum_terms(terms: dict[str, Tensor]) -> Tensor:
    """Return L(x, y): the sum of all terms, with the divergence subtracted."""
    return sum((-term if key == "kl" else term for key, term in terms.items()), torch.zeros_like(terms["kl"]))


def _log_probs_of_known(labels: Labels, present: Tensor) -> Tensor:
    """Return log-probabilities [B, S] of the values of known attributes, and 0 for unknown attributes."""
    parts = labels.log_probs.split(labels.sizes, -1)
    return torch.cat([part * present[:, k : k + 1] for k, part in enumerate(parts)], -1)
