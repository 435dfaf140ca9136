"""Networks that a page computes itself: decoder, words' decoder, flows, encoder and judge, where there is room.

Weights are rounded to the fewest bits with which pictures stay within one grey level of those that the model draws.
"""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mmgen.contrib.explore.choices import DescriptionChoices
from mmgen.contrib.explore.density import find_flow, trace_flow
from mmgen.contrib.explore.networks import BITS, UnknownOperation, round_network, trace_network
from mmgen.contrib.explore.space import EncodingMap
from mmgen.core.errors import MmgenError
from mmgen.core.seeding import torch_generator
from mmgen.figures.session import Session, Source
from mmgen.posteriors import posterior_of
from mmgen.training.batches import make_batch

if TYPE_CHECKING:
    from mmgen.generation import TrainedModel


_CHECKED = 128
"""Number of draws of z of each width on which a rounded decoder is compared with the model."""
_JUDGED = 512
"""Number of pictures on which a rounded judge is compared with the judge."""
_CELLS = 15
"""Cells along each side of a map at whose middles a rounded decoder is compared as well."""
_WIDTHS = (1.0, 1.5, 2.0)
"""Standard deviations of these draws: sliders and guidance lead to z that are rare under p(z). At three, the
quickstart's decoder would need more bits than a page has room for, and the page would lose sliders and map."""
_LEVELS = 0.8
"""Largest difference of a pixel before it is rounded to one of 256 levels; 1 could be two levels afterwards."""
_ENCODING = 0.02
"""Largest difference of the mean of q(z|x) in a dimension."""
_WORDS = 0.01
"""Largest difference of a logit of the words' decoder."""
_BEFOREHAND = "Pictures on this page were drawn beforehand, so that it has neither sliders nor a map: {}."
_ALIKE = 0.995
"""Smallest share of pictures of which a rounded judge reads an attribute as the judge does."""


@dataclass
class LiveNetworks:
    """Networks that a page computes itself, as plain values; None for those that it cannot compute.

    Attributes:
        decoder: From z [1, D] to pixels [1, C, H, W], 0 to 1.
        words: From z to the logits of all attributes [1, sum of their numbers of values].
        encoder: From pixels to the mean of q(z|x) [1, D].
        judge: From pixels to the judge's logits of all attributes.
        flows: Rectified flows from noise to z, by :func:`source_key`.
        size: Width and height of a picture, pixels.
        reasons: Sentences on what is left out, for the page.
    """

    decoder: dict[str, Any] | None = None
    words: dict[str, Any] | None = None
    encoder: dict[str, Any] | None = None
    judge: dict[str, Any] | None = None
    flows: dict[tuple[Path, str], dict[str, Any]] = field(default_factory=dict)
    size: tuple[int, int] = (0, 0)
    reasons: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any] | None:
        """Convert the networks to plain values; None without a decoder."""
        if self.decoder is None:
            return None
        networks = {"decoder": self.decoder, "words": self.words, "encoder": self.encoder, "judge": self.judge}
        return {**networks, "flows": list(self.flows.values()), "size": list(self.size)}

    def flow_of(self, source: Source) -> int | None:
        """Return the number of the flow from which the page draws a posterior; None if it does not."""
        keys = list(self.flows)
        return keys.index(source_key(source)) if source_key(source) in keys and find_flow(source) is not None else None

    def __len__(self) -> int:
        """Return the size of all networks on the page, in letters."""
        networks = (
            self.decoder,
            self.words,
            self.encoder,
            self.judge,
            *(flow["network"] for flow in self.flows.values()),
        )
        return sum(_letters(network) for network in networks if network)


@dataclass(frozen=True)
class Room:
    """Room for networks on a page.

    Attributes:
        each: Largest size of the weights of one network, bytes.
        whole: Largest size of all, letters.
    """

    each: int
    whole: int

    def left(self, live: LiveNetworks) -> int:
        """Return the largest size in bytes of the weights of the next network."""
        return min(self.each, (self.whole - len(live)) * 4 // 5)


def source_key(source: Source) -> tuple[Path, str]:
    """Return what a posterior and its guided copies have in common."""
    return source.path, source.posterior


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


def _try(
    function: Callable[[Tensor], Tensor], examples: Tensor, is_close: Callable[[Tensor, Tensor], bool], most: int,
    bits: Sequence[int] = BITS[3:],
) -> tuple[dict[str, Any] | None, str]:  # fmt: skip
    """Return a function of tensors as a network of rounded weights, or None and the reason.

    Args:
        function: The function.
        examples: Inputs [n, ...] on which it is compared with its rounded copy.
        is_close: Whether an output of the copy is close to one of the function.
        most: Largest size of the weights in bytes.
        bits: Numbers of bits of a weight to try, the fewest first.
    """
    try:
        expected = function(examples).float()
        network = trace_network(function, examples[:1])
        rounded, reason = round_network(network, lambda copy: is_close(copy(examples), expected), most, bits)
        return None if rounded is None else rounded.to_json(), reason
    except UnknownOperation as error:
        return None, str(error)
    except (RuntimeError, MmgenError) as error:  # torch's, of what it cannot do for many examples together
        return None, f"it cannot be traced ({(str(error).strip().splitlines() or ['unknown'])[0]})"


def _within(tolerance: float) -> Callable[[Tensor, Tensor], bool]:
    return lambda found, expected: bool((found - expected).abs().max() <= tolerance)


@torch.no_grad()
def trace_networks(
    session: Session,
    land: EncodingMap | None,
    images: np.ndarray | None,
    choices: DescriptionChoices | None,
    room: Room,
) -> LiveNetworks:
    """Trace the networks of a model that a page can compute itself, the most important first.

    Args:
        session: The model.
        land: Encodings on which decoder and judge are compared, and their map; None without data.
        images: Pictures on which the encoder is compared, [n, C, H, W]; None without data, and then without encoder.
        choices: Descriptions by attributes on which flows are compared; None without any, and then without flows.
        room: Largest sizes.
    """
    loaded = session.model
    main = loaded.observation
    if room.each <= 0 or main is None:
        return LiveNetworks()
    if reason := _why_not(loaded):
        return LiveNetworks(reasons=[_BEFOREHAND.format(reason)])
    size = loaded.model.latent_size
    generator = torch_generator(session.seed, "live", device="cpu")
    z = torch.cat([width * torch.randn(_CHECKED, size, generator=generator) for width in _WIDTHS])
    if land is not None:
        z = torch.cat([z, land.encodings.mean[:_CHECKED].float(), land.chart.cell_centres(_CELLS)])
    name = main.name
    decoder, reason = _try(lambda x: _decode_mean(loaded, name, x), z, _within(_LEVELS / 255), room.each)
    if decoder is None:
        return LiveNetworks(reasons=[_BEFOREHAND.format(f"of the decoder, {reason}")])
    _, height, width = main.event_shape
    live = LiveNetworks(decoder, size=(width, height))
    if loaded.attributes is not None and loaded.attributes.name in loaded.model.generates:
        live.words, _ = _try(lambda x: _decode_logits(loaded, x), z, _within(_WORDS), room.left(live))
    if choices is not None:
        _add_flows(live, session, choices, lambda x: _decode_mean(loaded, name, x), room)
    if images is not None and loaded.model.has_posterior((name,)):
        x = torch.from_numpy(images).float()
        found = _try(lambda one: _encode_mean(loaded, name, one), x, _within(_ENCODING), room.left(live))
        live.encoder, reason = found
        if live.encoder is None:
            live.reasons.append(f"There is no drawing with the finger: of the encoder, {reason}.")
    elif images is not None:
        live.reasons.append("There is no drawing with the finger: the encoder reads words as well as pictures.")
    if live.flows and land is not None:
        _add_judge(live, session, _decode_mean(loaded, name, land.encodings.mean[:_JUDGED].float()), room)
    return live


def _add_flows(
    live: LiveNetworks, session: Session, choices: DescriptionChoices, decode: Callable[[Tensor], Tensor], room: Room
) -> None:
    """Add the rectified flows of a session's posteriors, each once, as far as there is room."""
    flows: dict[tuple[Path, str], list[Source]] = {}
    for source in session.sources:
        if source.given == choices.kind and find_flow(source) is not None:
            flows.setdefault(source_key(source), []).append(source)
    codes = torch.from_numpy(choices.descriptions.codes)
    for key, sources in flows.items():
        fit = find_flow(sources[0])
        assert fit is not None
        guidances = [source.loaded.guidance for source in sources]
        try:
            traced = trace_flow(fit, guidances, codes, decode, room.left(live), session.seed)
        except UnknownOperation:
            continue
        if traced is not None:
            live.flows[key] = traced


def _add_judge(live: LiveNetworks, session: Session, images: Tensor, room: Room) -> None:
    """Add the judge if it reads pictures alone, in the fewest bits with which it reads nearly all ``images`` alike."""
    judge = session.judge
    if judge is None or judge.hints or session.model.observation is None:
        return
    judge.eval()

    def reads_alike(found: Tensor, expected: Tensor) -> bool:
        pairs = zip(found.split(judge.sizes, 1), expected.split(judge.sizes, 1), strict=True)
        return min(float((one.argmax(1) == other.argmax(1)).float().mean()) for one, other in pairs) >= _ALIKE

    seen = images.clamp(0, 1)
    live.judge, reason = _try(lambda x: torch.cat(judge(x), 1), seen, reads_alike, room.left(live), BITS)
    if live.judge is None:
        live.reasons.append(f"No frame of a picture that the page draws is red: of the judge, {reason}.")


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
    if "gaussian" in loaded.model.capabilities:  # without a check of values, which no trace can hold
        mean: Tensor = loaded.model.encode(batch, (name,), None).mean
        return mean
    return posterior_of(loaded.model, batch, (name,), "32-true").mean
