"""Sound: a mono waveform of 16-bit samples."""

import json
import wave
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.core.errors import ArtifactError
from mmgen.modalities import ROWS, Description, Element, Modality, StoredArray, View, all_present, element_json

__all__ = ["SoundDescription"]

_FULL = 2.0**15
_NOISE = 0.2
"""Standard deviation of a sample given z."""
_HEIGHT = 32


@dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class SoundNetwork:
    """Sizes of the networks over waveforms."""

    channels: Annotated[int, Field(ge=1)] = 8
    """Channels of the convolutions."""
    kernel: Annotated[int, Field(ge=1, multiple_of=2)] = 8
    """Samples that a convolution sees."""


class SoundDescription(Description):
    """Waveforms of one length; rows are int16 [n, L]."""

    files: ClassVar[tuple[str, ...]] = (".wav",)

    kind: Literal["sound"] = "sound"
    name: str = "sound"
    length: Annotated[int, Field(ge=16, multiple_of=8)]
    """L, samples of each sound."""
    rate: Annotated[int, Field(ge=1)] = 8000
    """Samples a second."""

    def arrays(self) -> dict[str, StoredArray]:
        """Return the one array of its rows."""
        return {ROWS: StoredArray("int16", (self.length,))}

    def text_attributes(self) -> dict[str, str]:
        """Return the sampling rate as text."""
        return {"rate": json.dumps(self.rate)}

    @classmethod
    def read(cls, name: str, element: Element) -> Self:
        """Read the description of the modality ``name`` from a file."""
        rate, shape = element_json(element, "rate"), element.shape()
        if type(rate) is not int or rate < 1 or len(shape) != 2:
            raise ArtifactError(f"{element.location} holds no waveforms with a sampling rate; make the file again")
        return cls(name=name, length=shape[1], rate=rate)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """(L,)."""
        return (self.length,)

    def tensors(self, rows: Tensor, view: View) -> tuple[Tensor, Tensor]:
        """Convert rows int16 [B, L] to float32 from -1 to 1."""
        return self.values_and_presence(rows.float() / _FULL)

    def values_and_presence(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return waveforms [B, L] from -1 to 1, all of them present."""
        return values.float(), all_present(values)

    def modality(self, likelihood: str | None = None) -> "Sound":
        """Return p(sound | z)."""
        return Sound(self.name, self.length)

    @classmethod
    def network_settings_class(cls) -> type[SoundNetwork]:
        """Return the settings of its networks."""
        return SoundNetwork

    @property
    def picture_shape(self) -> tuple[int, int, int]:
        """A grey picture as wide as the sound is long."""
        return (1, _HEIGHT, self.length)

    def picture(self, values: np.ndarray) -> np.ndarray:
        """Draw waveforms [n, L]: black lines on white, float32 [n, 1, 32, L]."""
        level = np.rint((1 - np.clip(values, -1, 1)) / 2 * (_HEIGHT - 1)).astype(int)
        return (level[:, None, None, :] != np.arange(_HEIGHT)[:, None]).astype(np.float32)

    def write(self, path: Path, values: np.ndarray) -> None:
        """Write waveforms [n, L] one after another."""
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(self.rate)
            file.writeframes(np.rint(np.clip(values, -1, 1) * (_FULL - 1)).astype("<i2").tobytes())

    @classmethod
    def example(cls, count: int = 5) -> tuple[Self, np.ndarray]:
        """Return tones of 64 samples, as they are stored."""
        phase = np.arange(64) / 64 * 2 * np.pi
        waves = np.sin(phase * (1 + np.arange(count))[:, None] % 7)
        return cls(length=64), (waves * (_FULL - 1) / 2).astype(np.int16)


class Sound(Modality):
    """Waveform with independent normal samples of one standard deviation.

    Args:
        name: Name in the dataset file.
        length: L.
    """

    kind: ClassVar[str] = "sound"

    def __init__(self, name: str, length: int) -> None:
        self.name = name
        self.length = length

    def encoder(self, network: SoundNetwork) -> tuple[nn.Module, int]:
        """Build a convolutional network from waveforms [B, L] to features [B, F]."""
        stride = network.kernel // 2
        return nn.Sequential(
            nn.Unflatten(1, (1, self.length)),
            nn.Conv1d(1, network.channels, network.kernel, stride, network.kernel // 4),
            nn.SiLU(),
            nn.Flatten(),
            nn.LazyLinear(32),
            nn.SiLU(),
        ), 32

    def decoder(self, inputs: int, network: SoundNetwork) -> tuple["Sound", nn.Module]:
        """Build a network from [B, inputs] to mean waveforms [B, L]."""
        return self, nn.Sequential(nn.Linear(inputs, 32), nn.SiLU(), nn.Linear(32, self.length), nn.Tanh())

    def log_prob(self, parameters: Tensor, value: Tensor, present: Tensor) -> Tensor:
        """Return log p(sound | z) in nats."""
        normal = torch.distributions.Normal(parameters, _NOISE)
        return normal.log_prob(value).sum(-1).masked_fill(~present, 0.0)

    def mean(self, parameters: Tensor) -> Tensor:
        """Return the mean waveform [..., L]."""
        return parameters

    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw a waveform [..., L]."""
        noise = torch.randn(parameters.shape, generator=generator, device=parameters.device, dtype=parameters.dtype)
        return parameters + _NOISE * noise
