"""Networks of a model that a page computes itself: decoder, words' decoder and encoder, where these are small enough.

Weights are rounded to the fewest bits with which pictures stay within one grey level of those that the model draws.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mmgen.core.errors import MmgenError
from mmgen.core.seeding import torch_generator
from mmgen.figures.explore.networks import BITS, Network, UnknownOperation, trace_network
from mmgen.figures.session import Session
from mmgen.posteriors import posterior_of
from mmgen.training.batches import make_batch

if TYPE_CHECKING:
    from mmgen.generation import TrainedModel

__all__ = ["Latents", "LiveNetworks", "trace_networks"]

_CHECKED = 128
"""Number of draws of z of each width on which a rounded decoder is compared with the model."""
_WIDTHS = (1.0, 2.0, 3.0)
"""Standard deviations of these draws: sliders and guidance lead to z that are rare under p(z)."""
_UNTRACED = (RuntimeError, ValueError, TypeError, AttributeError, LookupError, AssertionError, MmgenError)
"""Errors of models that draw at random, or that decide by their values, while they are traced."""
_LARGE = 0.05
"""Share of all weights above which a tensor has its own number of bits."""
_LEVELS = 0.8
"""Largest difference of a pixel before it is rounded to one of 256 levels; 1 could be two levels afterwards."""
_ENCODING = 0.02
"""Largest difference of the mean of q(z|x) in a dimension."""
_WORDS = 0.01
"""Largest difference of a logit of the words' decoder."""


@dataclass(frozen=True)
class LiveNetworks:
    """Networks that a page computes itself, as plain values; None for those that it cannot compute.

    Attributes:
        decoder: From z [1, D] to pixels [1, C, H, W], 0 to 1.
        words: From z to the logits of all attributes [1, sum of their numbers of values].
        encoder: From pixels to the mean of q(z|x) [1, D].
        size: Width and height of a picture, pixels.
        reasons: Sentences on what is left out, for the page.
    """

    decoder: dict[str, Any] | None = None
    words: dict[str, Any] | None = None
    encoder: dict[str, Any] | None = None
    size: tuple[int, int] = (0, 0)
    reasons: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any] | None:
        """Convert the networks to plain values; None without a decoder."""
        if self.decoder is None:
            return None
        return {"decoder": self.decoder, "words": self.words, "encoder": self.encoder, "size": list(self.size)}

    def __len__(self) -> int:
        """Return the size of all networks on the page, in letters."""
        return sum(_letters(network) for network in (self.decoder, self.words, self.encoder) if network)


def _letters(network: dict[str, Any]) -> int:
    return len(network["weights"]) + len(network["numbers"]) + len(str(network["steps"]))


@dataclass(frozen=True)
class Latents:
    """Values of z from which a page decodes pictures; it takes the place of sheets of pictures.

    Attributes:
        z: The latents, [n, D].
        size: Width and height of a picture, pixels.
    """

    z: np.ndarray
    size: tuple[int, int]

    def __len__(self) -> int:
        """Return the size on the page, in letters."""
        return self.z.size * 8 // 3

    def to_json(self) -> dict[str, Any]:
        """Convert z to plain values: 16 bits for each number, with one scale."""
        scale = max(float(np.abs(self.z).max(initial=0.0)) / 32767, 1e-12)
        encoded = base64.b64encode(np.rint(self.z / scale).astype("<i2").tobytes()).decode("ascii")
        return {"size": list(self.size), "z": encoded, "scale": scale, "width": self.z.shape[-1]}


def _round_network(
    network: Network, examples: Tensor, expected: Tensor, tolerance: float, most: int
) -> tuple[dict[str, Any] | None, str]:
    """Return a network in few bits that keep its outputs within ``tolerance``, or None and the reason.

    Bits are first equal for all weights; large tensors then lose as many as they can.
    """
    sizes = network.weights
    total = sum(sizes.values())

    def keeps_outputs(bits: dict[str, int]) -> bool:
        return bool((network.with_bits(bits)(examples) - expected).abs().max() <= tolerance)

    for uniform in BITS:
        if total * uniform / 8 > most:
            return None, f"its {total:,} weights would take {total * uniform / 8e6:.1f} MB"
        chosen = dict.fromkeys(sizes, uniform)
        if keeps_outputs(chosen):
            break
    else:
        return None, "rounded to 16 bits it would draw other pictures"
    for name in [name for name, size in sizes.items() if size > _LARGE * total]:
        for fewer in reversed([bits for bits in BITS if bits < chosen[name]]):
            if not keeps_outputs(chosen | {name: fewer}):
                break
            chosen[name] = fewer
    return network.with_bits(chosen).to_json(), ""


def _try(
    function: Callable[[Tensor], Tensor], examples: Tensor, tolerance: float, most: int
) -> tuple[dict[str, Any] | None, str]:
    """Return a function of tensors as a network of rounded weights, or None and the reason."""
    try:
        expected = function(examples).float()
        return _round_network(trace_network(function, examples[:1]), examples, expected, tolerance, most)
    except UnknownOperation as error:
        return None, str(error)
    except _UNTRACED as error:
        return None, f"it cannot be traced ({(str(error).strip().splitlines() or ['unknown'])[0]})"


@torch.no_grad()
def trace_networks(session: Session, places: Tensor | None, images: np.ndarray | None, most: int) -> LiveNetworks:
    """Trace the networks of a model that a page can compute itself.

    Args:
        session: The model.
        places: Further z on which the decoder is compared [n, D], such as encodings and places of a map.
        images: Pictures on which the encoder is compared, [n, C, H, W]; None without data, and then without encoder.
        most: Largest size of a network's weights in bytes; 0 for no networks.
    """
    loaded = session.model
    main = loaded.observation
    if most <= 0 or main is None:
        return LiveNetworks()
    if reason := _why_not(loaded):
        return LiveNetworks(reasons=[f"Pictures on this page were drawn beforehand: {reason}."])
    size = loaded.model.latent_size
    generator = torch_generator(session.seed, "live", device="cpu")
    z = torch.cat([width * torch.randn(_CHECKED, size, generator=generator) for width in _WIDTHS])
    if places is not None:
        z = torch.cat([z, places.float()])
    name = main.name
    decoder, reason = _try(lambda x: _decode_mean(loaded, name, x), z, _LEVELS / 255, most)
    if decoder is None:
        return LiveNetworks(reasons=[f"Pictures on this page were drawn beforehand: of the decoder, {reason}."])
    reasons = []
    words = None
    if loaded.attributes is not None and loaded.attributes.name in loaded.model.generates:
        words, _ = _try(lambda x: _decode_logits(loaded, x), z, _WORDS, most)
    encoder = None
    if images is not None and loaded.model.has_posterior((name,)):
        x = torch.from_numpy(images).float()
        encoder, reason = _try(lambda one: _encode_mean(loaded, name, one), x, _ENCODING, most)
        if encoder is None:
            reasons.append(f"There is no drawing with the finger: of the encoder, {reason}.")
    elif images is not None:
        reasons.append("There is no drawing with the finger: the encoder reads words as well as pictures.")
    _, height, width = main.event_shape
    return LiveNetworks(decoder, words, encoder, (width, height), reasons)


def _why_not(loaded: "TrainedModel") -> str:
    """Return why no page can decode a model's pictures itself, as the end of a sentence; "" if it can."""
    main = loaded.observation
    assert main is not None
    if loaded.model.conditional_on:
        return "the decoder reads words besides z"
    if loaded.sharpener is not None:
        return "they are completed by a sharpener"
    if tuple(main.event_shape) != main.picture_shape or str(loaded.device) != "cpu":
        return "they are made of other data" if str(loaded.device) == "cpu" else "the model is not on the CPU"
    return ""


def _decode_mean(loaded: "TrainedModel", name: str, z: Tensor) -> Tensor:
    mean: Tensor = loaded.model.modalities[name].typical(loaded.model.decode(name, z))
    return mean


def _decode_logits(loaded: "TrainedModel", z: Tensor) -> Tensor:
    assert loaded.attributes is not None
    logits: Tensor = loaded.model.decode(loaded.attributes.name, z)
    if logits.shape[1:] != (sum(map(len, loaded.attributes.values)),):
        raise UnknownOperation("its decoder of words gives no logits side by side")
    return logits


def _encode_mean(loaded: "TrainedModel", name: str, image: Tensor) -> Tensor:
    batch = make_batch(loaded.settings.data.modalities, {name: image})
    return posterior_of(loaded.model, batch, (name,), "32-true").mean
