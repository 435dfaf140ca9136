"""Free nats of mvae: divergences below them cost nothing in training, and count in validation."""

import torch

from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.objectives.mvae import Mvae
from tests.objectives.test_mvae import FOUR, four_modalities, four_observations


def test_free_nats_cost_nothing_in_training_and_count_in_validation() -> None:
    model, batch = four_modalities("product-of-experts"), four_observations(6)
    plain, free = Mvae(modalities=FOUR), Mvae(modalities=FOUR, free_nats=1000.0)
    torch.manual_seed(0)
    bound = plain(model, batch, 7)
    torch.manual_seed(0)
    relaxed = free(model, batch, 7)
    q = model.posteriors(batch, [FOUR, *((name,) for name in FOUR)])
    divergences = sum(one.kl(DiagonalGaussian.standard(6, 2, like=one.mean)) for one in q)
    torch.testing.assert_close(relaxed.value, bound.value + divergences - 5 * 1000.0)
    torch.manual_seed(0)
    validated = free(model, batch)
    torch.manual_seed(0)
    torch.testing.assert_close(validated.value, plain(model, batch).value)
    mean = torch.stack([one.kl(DiagonalGaussian.standard(6, 2, like=one.mean)).mean() for one in q])
    some = Mvae(modalities=FOUR, free_nats=float(mean.sort().values[2]) + 1e-6)
    torch.manual_seed(0)
    charged = sum(
        one.kl(DiagonalGaussian.standard(6, 2, like=one.mean)) if each > some.free_nats else some.free_nats
        for one, each in zip(q, mean.tolist(), strict=True)
    )
    torch.testing.assert_close(some(model, batch, 7).value, bound.value + divergences - charged)
