"""Attention: a grid of Gaussian filters over a picture, and weights over the words of a caption.

References:
    DRAW: A Recurrent Neural Network for Image Generation (Gregor et al., 2015), arXiv:1502.04623, Section 3.2
    Generating Images from Captions with Attention (Mansimov et al., 2016), arXiv:1511.02793, Section 3
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mmgen.likelihoods import full_precision

_LEAST_SUM = 1e-4
"""Added to the sum of a filter, by which it is divided."""
_MAX_LOG_INTENSITY = 4.0
"""Bound of log gamma in both directions: pictures are written by 1 / gamma, which explodes early in training."""


@dataclass(frozen=True)
class Window:
    """N x N Gaussian filters over pictures of H x W pixels.

    Attributes:
        rows: Filters over rows of pixels [R, N, H].
        columns: Filters over columns of pixels [R, N, W].
        intensity: gamma [R, 1, 1].
        numbers: Centre x and y and stride, in pixels counted from 0, and standard deviation: [R, 4].
    """

    rows: Tensor
    columns: Tensor
    intensity: Tensor
    numbers: Tensor

    @property
    def box(self) -> Tensor:
        """Outermost centres of filters, left, top, right and bottom [R, 4] in pixels counted from 0."""
        x, y, stride, _ = self.numbers.unbind(-1)
        reach_x, reach_y = ((filters.shape[1] - 1) / 2 * stride for filters in (self.columns, self.rows))
        return torch.stack([x - reach_x, y - reach_y, x + reach_x, y + reach_y], -1)

    def read(self, pictures: Tensor) -> Tensor:
        """Return gamma F_y x F_x^T [R, N * C * N] of pictures [R, H, C * W], whose channels lie side by side."""
        with torch.autocast(pictures.device.type, enabled=False):  # filters need more than bf16
            lines = self.rows @ pictures  # [R, N, C * W]
            width = self.columns.shape[-1]
            patches = lines.reshape(len(lines), -1, width) @ self.columns.transpose(1, 2)  # [R, N * C, N]
            return (self.intensity * patches).flatten(1)

    def write(self, patches: Tensor) -> Tensor:
        """Return F_y^T w F_x / gamma as pictures [R, H, C * W] of patches [R, N * C * N]."""
        size = self.columns.shape[1]
        with torch.autocast(patches.device.type, enabled=False):
            lines = full_precision(patches).reshape(len(patches), -1, size) @ self.columns  # [R, N * C, W]
            return self.rows.transpose(1, 2) @ (lines.reshape(len(lines), size, -1) / self.intensity)


def grid_filters(centre: Tensor, stride: Tensor, sd: Tensor, size: int, pixels: int) -> Tensor:
    """Return ``size`` Gaussian filters over ``pixels`` pixels [R, N, A]; each adds up to nearly 1, or less outside.

    Args:
        centre: Middle of the grid [R], in pixels counted from 0.
        stride: Distance of neighbours [R], in pixels.
        sd: Standard deviation of each filter [R], in pixels.
        size: N.
        pixels: A.
    """
    steps = torch.arange(size, dtype=centre.dtype, device=centre.device) - (size - 1) / 2
    places = torch.arange(pixels, dtype=centre.dtype, device=centre.device)
    means = torch.addcmul(centre[:, None], stride[:, None], steps)  # [R, N]
    scaled = (places - means[..., None]) / (sd * 2**0.5)[:, None, None]
    weights = (-scaled.square()).exp()
    return weights / (weights.sum(-1, keepdim=True) + _LEAST_SUM)


class PictureAttention(nn.Module):
    """Linear layer from a state [R, S] to the :class:`Window` of N x N filters that it looks or writes through.

    Args:
        state: S.
        size: N, at least 2.
        sides: Height and width of the pictures.
    """

    def __init__(self, state: int, size: int, sides: tuple[int, int]) -> None:
        super().__init__()
        self.size, self.sides = size, sides
        self.layer = nn.Linear(state, 5)

    def forward(self, state: Tensor) -> Window:
        with torch.autocast(state.device.type, enabled=False):
            x, y, log_stride, log_variance, log_intensity = self.layer(full_precision(state)).unbind(-1)
            height, width = self.sides
            # Gregor et al. count pixels from 1, so that 0 is the middle of the picture.
            centre_x, centre_y = (width + 1) / 2 * (x + 1) - 1, (height + 1) / 2 * (y + 1) - 1
            stride = (max(self.sides) - 1) / (self.size - 1) * log_stride.exp()
            sd = (log_variance / 2).exp()
            intensity = log_intensity.clamp(-_MAX_LOG_INTENSITY, _MAX_LOG_INTENSITY).exp()
            return Window(
                grid_filters(centre_y, stride, sd, self.size, height),
                grid_filters(centre_x, stride, sd, self.size, width),
                intensity[:, None, None],
                torch.stack([centre_x, centre_y, stride, sd], -1),
            )


class WordAttention(nn.Module):
    r"""Weights over the words of a caption: :math:`softmax_k(v \cdot tanh(U h_k + W h + b))` (Bahdanau et al., 2015).

    Args:
        words: Width of the state h_k of each word.
        state: Width of the state h that asks.
        hidden: Width of v.
    """

    def __init__(self, words: int, state: int, hidden: int) -> None:
        super().__init__()
        self.key = nn.Linear(words, hidden, bias=False)
        self.query = nn.Linear(state, hidden)
        self.score = nn.Linear(hidden, 1, bias=False)

    def forward(self, state: Tensor, keys: Tensor, is_word: Tensor) -> Tensor:
        """Return weights [R, L] given a state [R, S], keys U h_k [R, L, A] and whether each place holds a word [R, L].

        Padding gets exactly 0; a caption without words gets no weight at all.
        """
        scores = full_precision(self.score((keys + self.query(state)[:, None]).tanh()).squeeze(-1))
        return scores.masked_fill(~is_word, torch.finfo(scores.dtype).min).softmax(-1) * is_word
