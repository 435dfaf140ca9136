"""The steps of DRAW: a picture is read, z of the step inferred, and a patch written on a canvas."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mmgen.contrib.draw._attention import PictureAttention, Window, WordAttention
from mmgen.core.batch import Batch
from mmgen.inference import GaussianHead
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.likelihoods import full_precision
from mmgen.modalities.image import Image
from mmgen.modalities.text import Text
from mmgen.networks import CaptionReader, LstmCell, LstmState


@dataclass(frozen=True)
class Step:
    """One step of R rows.

    Attributes:
        noise: e of the step [R, D]; z is the mean of its prior plus e times the prior's standard deviation.
        posterior: q of e given the picture and the steps before; None where no picture is read.
        prior: p of z given the steps before [R, D].
        canvas: Parameters of p(picture) after the step [R, H, C * W], channels side by side.
        read: The window through which the picture is read; None without attention.
        write: The window through which the patch is written; None without attention.
        words: Weights over the words of captions [R, L]; None without alignment.
    """

    noise: Tensor
    posterior: DiagonalGaussian | None
    prior: DiagonalGaussian
    canvas: Tensor
    read: Window | None
    write: Window | None
    words: Tensor | None


Choose = Callable[[int, DiagonalGaussian], Tensor]
"""Returns e of step t (from 0) of R rows, given its density."""


@dataclass(frozen=True)
class Caption:
    """Captions that were read.

    Attributes:
        states: State of each word [R, L, F].
        keys: Keys of the states [R, L, A]; None without alignment.
        last: Last states of the reader [R, F].
        is_word: Where words are [R, L].
    """

    states: Tensor
    keys: Tensor | None
    last: Tensor
    is_word: Tensor

    def expand(self, *leading: int) -> "Caption":
        """Return the captions for draws [*leading, R], flattened."""

        def spread(rows: Tensor) -> Tensor:
            return rows.expand(*leading, *rows.shape).flatten(0, len(leading))

        keys = None if self.keys is None else spread(self.keys)
        return Caption(spread(self.states), keys, spread(self.last), spread(self.is_word))


class CaptionNetwork(nn.Module):
    """Reader of captions, and their summary s for the generator at each step.

    Args:
        text: The captions.
        reader: Their reader.
        alignment: Weights over words at each step; None: the reader's last state at every step.
    """

    def __init__(self, text: Text, reader: CaptionReader, alignment: WordAttention | None) -> None:
        super().__init__()
        self.text, self.reader, self.alignment = text, reader, alignment

    def read(self, batch: Batch) -> Caption:
        """Read the captions of a batch."""
        name = self.text.name
        with torch.autocast(batch.device.type, enabled=False):
            states, last, is_word = self.reader(batch.values[name], batch.present[name])
            keys = None if self.alignment is None else self.alignment.key(states)
        return Caption(states, keys, last, is_word)

    def forward(self, state: Tensor, caption: Caption) -> tuple[Tensor, Tensor | None]:
        """Return s [R, F] given the generator's state before the step [R, S], and the weights [R, L] over words."""
        if self.alignment is None or caption.keys is None:
            return caption.last, None
        weights = self.alignment(state, caption.keys, caption.is_word)
        return (weights[:, None] @ caption.states).squeeze(1), weights


class DrawEncoder(nn.Module):
    """Network that reads a picture and its difference to the canvas, and infers z of a step.

    Args:
        image: The pictures.
        cell: Its memory, which reads patches and the generator's state.
        head: From its state to q(z of the step).
        attention: The window that it reads through; None: the whole picture.
    """

    def __init__(self, image: Image, cell: LstmCell, head: GaussianHead, attention: PictureAttention | None) -> None:
        super().__init__()
        self.image, self.cell, self.head, self.attention = image, cell, head, attention

    def forward(
        self, pictures: Tensor, canvas: Tensor, state: Tensor, memory: LstmState
    ) -> tuple[DiagonalGaussian, LstmState, Window | None]:
        """Return q(z of the step) [R, D], the next memory, and the window that was read through.

        Args:
            pictures: Pictures [R, H, C * W].
            canvas: Parameters of the canvas so far [R, H, C' * W].
            state: The generator's state [R, S].
            memory: The encoder's memory.
        """
        errors = pictures - self._mean(canvas)
        both = torch.cat([pictures, errors], -1)  # read by one product
        window = None if self.attention is None else self.attention(state)
        patches = both.flatten(1) if window is None else window.read(both)
        memory = self.cell([patches, state.to(patches.dtype)], memory)
        q: DiagonalGaussian = self.head(memory[0])
        return q, memory, window

    def _mean(self, canvas: Tensor) -> Tensor:
        """Return the mean picture [R, H, C * W] of a canvas."""
        width = self.image.shape[2]
        parameters = canvas.unflatten(-1, (-1, width)).transpose(1, 2)
        return self.image.mean(parameters).transpose(1, 2).flatten(2)


class DrawGenerator(nn.Module):
    """Network that turns z of the steps into patches on a canvas.

    Args:
        canvas: Shape (C', H, W) of the parameters of p(picture).
        cell: Its memory, which reads z and the caption.
        patch: From its state to the patch of a step.
        attention: The window that it writes through; None: the whole canvas.
        prior: From its state to mean and log sd of z of the next step, through tanh; None: a standard Gaussian.
        first_canvas: What every pixel starts at.
        learned_canvas: Whether the first canvas is a parameter.
    """

    def __init__(
        self,
        canvas: tuple[int, int, int],
        cell: LstmCell,
        patch: nn.Linear,
        attention: PictureAttention | None,
        prior: nn.Linear | None,
        first_canvas: float = 0.0,
        learned_canvas: bool = False,
    ) -> None:
        super().__init__()
        self.canvas, self.cell, self.patch, self.attention, self.prior_layer = canvas, cell, patch, attention, prior
        first = torch.full(canvas, first_canvas)
        self.first_canvas: Tensor
        if learned_canvas:
            self.first_canvas = nn.Parameter(first)
        else:
            self.register_buffer("first_canvas", first, persistent=False)

    def start(self, rows: int) -> Tensor:
        """Return the first canvas of R rows, [R, H, C' * W]."""
        return side_by_side(self.first_canvas).expand(rows, -1, -1)

    def prior(self, step: int, state: Tensor, size: int) -> DiagonalGaussian:
        """Return p of z of a step (from 0) [R, D] given the generator's state before it; standard in the first."""
        if self.prior_layer is None or step == 0:
            return DiagonalGaussian.standard(len(state), size, like=full_precision(state))
        mean, log_sd = full_precision(self.prior_layer(state)).tanh().chunk(2, -1)
        return DiagonalGaussian(mean, log_sd)

    def paint(self, canvas: Tensor, state: Tensor) -> tuple[Tensor, Window | None]:
        """Return the canvas with the patch of this state [R, S] added, and the window that it is written through."""
        patch = full_precision(self.patch(state))
        if self.attention is None:
            return canvas + patch.reshape(canvas.shape), None
        window: Window = self.attention(state)
        return canvas + window.write(patch), window

    def pictures(self, canvas: Tensor) -> Tensor:
        """Return a canvas [..., H, C' * W] as parameters [..., C', H, W]."""
        return canvas.unflatten(-1, (self.canvas[0], -1)).transpose(-3, -2)


class DrawNetwork(nn.Module):
    """All networks of DRAW.

    Args:
        steps: T.
        size: D, dimensions of z of a step.
        encoder: The encoder.
        generator: The generator.
        captions: The network over captions; None: there are none.
    """

    def __init__(
        self,
        steps: int,
        size: int,
        encoder: DrawEncoder,
        generator: DrawGenerator,
        captions: CaptionNetwork | None = None,
    ) -> None:
        super().__init__()
        self.steps, self.size = steps, size
        self.encoder, self.generator, self.captions = encoder, generator, captions

    def forward(
        self, choose: Choose, rows: int, pictures: Tensor | None = None, caption: Caption | None = None
    ) -> Iterator[Step]:
        """Yield the steps of R rows.

        Args:
            choose: Choice of e at each step.
            rows: R.
            pictures: Pictures [R, C, H, W] to infer from; None: nothing is inferred, and ``choose`` is given p(e).
            caption: The captions of the rows; None for a model without captions.
        """
        state, memory = self.generator.cell.start(rows), self.encoder.cell.start(rows)
        canvas = self.generator.start(rows)
        lines = None if pictures is None else side_by_side(pictures)
        for step in range(self.steps):
            prior, posterior, read = self.generator.prior(step, state[0], self.size), None, None
            if lines is not None:
                q, memory, read = self.encoder(lines, canvas, state[0], memory)
                posterior = DiagonalGaussian((q.mean - prior.mean) * (-prior.log_sd).exp(), q.log_sd - prior.log_sd)
            noise = choose(
                step, DiagonalGaussian.standard(rows, self.size, like=prior.mean) if posterior is None else posterior
            )
            inputs, words = [prior.mean + prior.sd * noise], None
            if self.captions is not None and caption is not None:
                summary, words = self.captions(state[0], caption)
                inputs.append(summary)
            state = self.generator.cell([part.to(canvas.dtype) for part in inputs], state)
            canvas, write = self.generator.paint(canvas, state[0])
            yield Step(noise, posterior, prior, canvas, read, write, words)


def side_by_side(pictures: Tensor) -> Tensor:
    """Return pictures [..., C, H, W] with their channels side by side, [..., H, C * W]."""
    return pictures.transpose(-3, -2).flatten(-2)


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
