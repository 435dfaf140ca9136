"""The training task of a sharpener: an adversarial game with a discriminator, on pictures of a frozen model.

References:
    Spectral Normalization for Generative Adversarial Networks (Miyato et al., 2018), arXiv:1802.05957, Eq. 16 and 17:
    the hinge loss
    Which Training Methods for GANs do actually Converge? (Mescheder et al., 2018), arXiv:1801.04406, Eq. 9: R1
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from mmgen.contrib.sharpening.generation.sharpener import Discriminator, Sharpener, SharpenerSettings
from mmgen.core.batch import Batch
from mmgen.objectives import Bound
from mmgen.training.task import ALONE, Task


class SharpeningTask(Task):
    r"""Game of a sharpener G against a discriminator D: x is a real picture of the words y, b the model's picture.

    .. math:: G: \; D(G(b, y), y) - \lambda \, |L(G(b, y)) - L(b)|_1, \quad
              D: \; \min(0, D(x, y) - 1) + \min(0, -D(G(b, y), y) - 1) - \tfrac\gamma2 |\nabla_x D(x, y)|^2

    L averages over cells, so that what is seen from afar stays as it was. D has a value for each patch of a picture,
    over which values and hinges are averaged.

    Args:
        sharpener: G.
        discriminator: D.
        settings: Weights of the losses.
        hide_words: Returns the words of a batch that the posterior sees, such as a part of the attributes.
        draw: Returns pictures [B, C, H, W] of the frozen model for a batch and its words.
    """

    players = ("sharpener", "discriminator")
    selects = None
    quantity = "value"

    def __init__(
        self,
        sharpener: Sharpener,
        discriminator: Discriminator,
        settings: SharpenerSettings,
        hide_words: Callable[[Batch], Batch],
        draw: Callable[[Batch, Batch], Tensor],
    ) -> None:
        super().__init__()
        self.sharpener, self.discriminator, self.settings = sharpener, discriminator, settings
        self._hide_words, self._draw = hide_words, draw
        self._drawn: tuple[int, Batch, Tensor] | None = None

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        words, pictures = self._inputs(batch, step)
        noise = torch.randn_like(pictures[:, :1]) if step is not None else None
        if player == "sharpener":
            return self._value_of_sharpener(pictures, words, noise)
        with torch.no_grad():
            sharpened = self.sharpener(pictures, words, noise)
        return self._value_of_discriminator(batch.values[self.sharpener.image], sharpened, words, step)

    def _inputs(self, batch: Batch, step: int | None) -> tuple[Batch, Tensor]:
        """Return words and the model's pictures of a batch; both players of a step get the same."""
        if step is not None and self._drawn is not None and self._drawn[0] == step:
            return self._drawn[1:]
        with torch.no_grad():
            words = self._hide_words(batch)
            pictures = self._draw(batch, words).clamp(0, 1)
            words = self._drop_words(words)
        if step is not None:
            self._drawn = step, words, pictures
        return words, pictures

    def _drop_words(self, words: Batch) -> Batch:
        """Hide the whole description of a random share of the examples."""
        dropped = torch.rand(words.size, device=words.device) >= self.settings.keep_words
        hidden = {
            name: known & ~(dropped if known.dim() == 1 else dropped[:, None]) for name, known in words.present.items()
        }
        return Batch(words.values, hidden)

    def _value_of_sharpener(self, pictures: Tensor, words: Batch, noise: Tensor | None) -> Bound:
        sharpened = self.sharpener(pictures, words, noise)
        realism = self.discriminator(sharpened, words).mean(1)
        moved = (self._low_pass(sharpened) - self._low_pass(pictures)).abs().flatten(1).mean(1)
        value = realism - self.settings.low_pass_weight * moved
        return Bound(value, {"D(sharpened)": realism, "low-pass difference": moved})

    def _value_of_discriminator(self, real: Tensor, sharpened: Tensor, words: Batch, step: int | None) -> Bound:
        penalised = step is not None and self.settings.r1_weight > 0 and step % self.settings.r1_every == 0
        real = real.to(sharpened.dtype).detach().requires_grad_(penalised)
        of_real, of_sharpened = self.discriminator(real, words), self.discriminator(sharpened, words)
        value = (-F.relu(1 - of_real) - F.relu(1 + of_sharpened)).mean(1)
        terms = {"D(real)": of_real.detach().mean(1), "D(sharpened)": of_sharpened.detach().mean(1)}
        if penalised:
            (slope,) = torch.autograd.grad(of_real.mean(1).sum(), real, create_graph=True)
            value = value - self.settings.r1_every * self.settings.r1_weight / 2 * slope.square().flatten(1).sum(1)
        return Bound(value, terms)

    def _low_pass(self, pictures: Tensor) -> Tensor:
        side = self.settings.low_pass_side
        return F.adaptive_avg_pool2d(pictures, (min(side, pictures.shape[2]), min(side, pictures.shape[3])))

    def saved_tensors(self) -> dict[str, Tensor]:
        return dict(self.sharpener.state_dict())
