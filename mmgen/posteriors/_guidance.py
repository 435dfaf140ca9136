"""Settings of guidance: its weight and its method, by the model's own p(y|z) or by a flow itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import SkipValidation
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.models import DataSettings, Model
from mmgen.results.naming import format_weight
from mmgen.settings.arguments import format_value

MOST = 1e6
"""Largest weight, with which only the likeliest candidate is drawn."""
_MOST_CANDIDATES = 2**20
_CANDIDATES = ("effective", "candidates")
CFG, GRADIENT = "cfg", "gradient"
"""Methods of guidance beside the plain one."""
_STEERING = (CFG, GRADIENT)


@dataclass(frozen=True)
class Guidance:
    """Settings of guidance; an instance of weight 0 counts as False.

    Attributes:
        weight: w of p(y|z)^w, or s of classifier-free guidance; 0 for no guidance.
        method: "" for candidates weighted by p(y|z)^w; "cfg" for classifier-free guidance,
            "gradient" for that of w log p(y|z) on the path of a flow (:mod:`mmgen.posteriors._steered`).
        effective: Effective sample size of candidates to reach, on average over draws; None for the posterior's own.
        candidates: Largest number of candidates of each draw, smallest number of shared draws; None likewise.
        start, end: Part of the path of a flow, within 0 (noise) and 1, on which "cfg" and "gradient" act.

    Example:
        >>> Guidance.parse(3).method, bool(Guidance.parse(0)), str(Guidance.parse(0.5))
        ('', False, '0.5')
        >>> Guidance.parse("cfg:0.5").weight, str(Guidance.parse("cfg:1:start=0.2:end=0.8"))
        (0.5, 'cfg:1:start=0.2:end=0.8')
        >>> str(Guidance.parse("10:effective=100:candidates=65536"))
        '10:effective=100:candidates=65536'
    """

    weight: float = 0.0
    method: str = ""
    effective: float | None = None
    candidates: int | None = None
    start: float = 0.0
    end: float = 1.0

    def __bool__(self) -> bool:
        return self.weight > 0

    @property
    def steers(self) -> bool:
        """True if it steers the path of a fitted flow, False if it chooses among candidates."""
        return self.method in _STEERING

    def __str__(self) -> str:
        short = format_weight(self.weight)
        parts = [self.method] if self.steers else []
        parts += [short if float(short) == self.weight else repr(self.weight)]
        parts += [f"effective={self.effective:g}"] if self.effective is not None else []
        parts += [f"candidates={self.candidates}"] if self.candidates is not None else []
        parts += [f"start={self.start:g}"] if self.start else []
        parts += [f"end={self.end:g}"] if self.end != 1 else []
        return ":".join(parts)

    @classmethod
    def parse(cls, value: "AnyGuidance") -> "Guidance":
        """Parse guidance: a weight with options, such as "3", "3:effective=100:candidates=65536" or "cfg:0.5".

        Raises:
            UsageError: The weight is not from 0 to 1,000,000, or an option is unknown.
        """
        if isinstance(value, Guidance):
            return value
        text, *options = value.split(":") if isinstance(value, str) else (value,)
        steering = str(text) if options and text in _STEERING else ""
        if steering:
            text, *options = options
        is_valid_type = isinstance(value, str | Real) and not isinstance(value, bool)
        try:
            weight = float(text) if is_valid_type else -1.0
        except (ValueError, OverflowError):
            weight = -1.0
        settings = _parse_options(options, steering, value) if 0 <= weight <= MOST else None
        if settings is None:
            got = ("nothing" if value == "" else value) if is_valid_type else format_value(value)
            raise UsageError(
                f"guidance got {got}, expected a number from 0 to {MOST:,.0f}, such as 3, or with an "
                f"effective sample size from 1 and candidates from 1 to {_MOST_CANDIDATES:,}, such as "
                f"3:effective=100:candidates=65536; of a rectified flow {CFG}:0.5, {GRADIENT}:1, or "
                f"{CFG}:0.5:start=0.2:end=0.8"
            )
        if (options or steering) and not weight:
            example = f"{steering}:0.5" if steering else f"3:{':'.join(options)}"
            raise UsageError(f"guidance got {value}, expected a weight above 0, such as {example}")
        return cls(weight, **settings)


def _parse_options(options: Sequence[str], steering: str, value: object) -> dict[str, Any] | None:
    """Return settings from the options after a weight; None if one is unknown, repeated or out of range.

    Raises:
        UsageError: An option is one of another method, or the part of the path is none.
    """
    others = _CANDIDATES if steering else ("start", "end")
    if foreign := [name for name in (option.partition("=")[0] for option in options) if name in others]:
        method = "weights without a method, such as 3" if steering else f"{CFG} and {GRADIENT}"
        raise UsageError(f"guidance got {value}, but {foreign[0]} is an option of {method}; leave it out")
    settings: dict[str, Any] = {"method": steering} if steering else {}
    ranges = {"start": (0.0, 1.0), "end": (0.0, 1.0)} if steering else dict.fromkeys(_CANDIDATES, (1, _MOST_CANDIDATES))
    for option in options:
        name, _, text = option.partition("=")
        try:
            number = int(text) if name == "candidates" else float(text)
            low, high = ranges[name]
        except (KeyError, ValueError):
            return None
        if steering and not low <= number <= high:
            raise UsageError(f"guidance got {value}, expected 0 <= start < end <= 1, such as start=0.2:end=0.8")
        if name in settings or not low <= number <= high:
            return None
        settings[name] = number
    if settings.get("start", 0.0) >= settings.get("end", 1.0):
        raise UsageError(f"guidance got {value}, expected 0 <= start < end <= 1, such as start=0.2:end=0.8")
    return settings


NO_GUIDANCE = Guidance()

AnyGuidance = Annotated[Guidance | float | str, SkipValidation]
"""Guidance as users type it: 3, "3", "cfg:0.5" or "gradient:1"; see :meth:`Guidance.parse`."""


class WordLikelihood:
    """Likelihood p(words | z) of a model that generates attributes or text.

    Args:
        model: The model.
        data: The model's modalities.
        path: The model's checkpoint, for messages.
    """

    def __init__(self, model: Model, data: DataSettings, path: Path) -> None:
        self.model, self.data, self.path = model, data, path

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the modalities of words that the model generates, text first; () for conditional decoders."""
        parts = [part.name for part in (self.data.text, self.data.attributes) if part is not None]
        return () if self.model.conditional_on else tuple(name for name in parts if name in self.model.generates)

    def specified_modalities(self, words: Batch) -> tuple[str, ...]:
        """Return the modalities in which the descriptions specify something, generated or not, attributes first."""
        parts = [part.name for part in (self.data.attributes, self.data.text) if part is not None]
        return tuple(name for name in parts if name in words.values and bool(words.present[name].any()))

    def check_readable(self, posterior: str, reads: Sequence[str], words: Batch) -> None:
        """Refuse descriptions by attributes for a guided posterior that reads whole captions.

        Args:
            posterior: Name of the posterior, for the message.
            reads: Modalities that it reads.
            words: The descriptions.

        Raises:
            UsageError: It reads captions, and there are none.
        """
        text, specified = self.data.text, self.specified_modalities(words)
        if text is not None and tuple(reads) == (text.name,) and text.name not in specified:
            raise UsageError(
                f"posterior '{posterior}' reads whole captions, but got '{' and '.join(specified)}'; "
                "use --posterior prior, or a posterior fitted with --given attributes or nothing"
            )

    def select_modality(self, words: Batch, preferred: Sequence[str] = ()) -> str:
        """Return the modality y whose p(y | z) these descriptions use: a preferred one, else text before attributes.

        Args:
            words: Descriptions that are not empty.
            preferred: Modalities that the guided posterior reads.

        Raises:
            UsageError: The model generates no modality of these descriptions.
        """
        specified = self.specified_modalities(words)
        able = [name for name in self.names if name in specified]
        if not able:
            text = self.data.text
            raise UsageError(
                f"guidance needs p({' and '.join(specified) or 'words'} | z), but {self.path} generates "
                f"{' and '.join(self.names)} alone; describe by {' and '.join(self.names)}"
                f"{' in whole captions' if text and text.name in self.names else ''}"
            )
        return next((name for name in preferred if name in able), able[0])

    def is_attributes(self, name: str) -> bool:
        """Return True if the modality ``name`` is the attributes of the data."""
        return self.data.attributes is not None and name == self.data.attributes.name

    def codes(self, words: Batch) -> dict[str, Tensor]:
        """Return the codes of descriptions by modality, with -1 for what they leave unspecified."""
        parts = [part.name for part in (self.data.attributes, self.data.text) if part is not None]
        selected = words.select(parts)
        return {
            name: torch.where(selected.present[name].reshape(words.size, -1), selected.values[name], -1)
            for name in selected.values
        }

    def log_prob(
        self,
        z: Tensor,
        words: Batch,
        parameters: Tensor | None = None,
        preferred: Sequence[str] = (),
    ) -> Tensor:
        """Return log p(y | z) in nats, at least fp32: z [..., B, D] -> [..., B], or [K, D] of one description -> [K].

        Args:
            z: Latents.
            words: The B descriptions.
            parameters: Output of the decoder of attributes for z, if known; not used for a caption.
            preferred: Modalities that the guided posterior reads.

        Raises:
            UsageError: The model has no p(y | z) for these descriptions.
        """
        if not self.specified_modalities(words):
            return z.new_zeros(z.shape[:-1])
        name = self.select_modality(words, preferred)
        with torch.autocast(z.device.type, enabled=False):
            alone = z.dim() == 2
            if parameters is None or not self.is_attributes(name):
                parameters = self.model.decode(name, z)
            if alone:
                parameters = parameters[:, None]
            value = self.model.modalities[name].log_prob(parameters, words.values[name], words.present[name])
            return value[:, 0] if alone else value
