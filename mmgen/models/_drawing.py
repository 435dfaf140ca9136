"""Pictures at each step of a model that draws in several steps."""

from dataclasses import dataclass

from torch import Tensor

__all__ = ["DrawingStep"]


@dataclass(frozen=True)
class DrawingStep:
    """State of R drawings after a step.

    Attributes:
        pictures: Mean pictures of the canvas [R, C, H, W].
        read: Box that the encoder looks at: left, top, right, bottom in pixels [R, 4]; None without attention, or where
            no picture is read.
        written: Box that the step writes to, likewise; None without attention.
        words: Weights over the words of captions [R, L]; None without such weights.
    """

    pictures: Tensor
    read: Tensor | None
    written: Tensor | None
    words: Tensor | None
