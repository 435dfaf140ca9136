"""Settings of a sharpener and of its training."""

from typing import Annotated, Any

from pydantic import Field

from mmgen.models import DataSettings
from mmgen.networks import TextNetwork
from mmgen.settings.config import Settings
from mmgen.training.settings import TrainingSettings

__all__ = ["SharpenerSettings", "SharpeningSettings"]

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SharpenerSettings(Settings):
    """Settings of the generator and the discriminator, and of their losses."""

    width: Count = 32
    """Feature maps of the generator."""
    blocks: Count = 3
    """Residual blocks of the generator."""
    discriminator_width: Count = 24
    """Feature maps of the discriminator's first layer; the next layers have two and four times as many."""
    words: Count = 64
    """Width of the features of a description."""
    text_network: TextNetwork = Field(default_factory=lambda: TextNetwork(embedding=32, hidden=64, dropout=0.0))
    """Widths of the network that reads sentences."""
    reconstructed: Share = 0.5
    """Share of the training pictures that are reconstructions; the others are drawn from the posterior."""
    keep_words: Share = 0.9
    """Share of the descriptions that the networks see; without the others a sharpener learns to work without words."""
    low_pass_weight: Weight = 10.0
    """Weight of the mean absolute difference of the low-passed pictures before and after, which keeps objects in
    place."""
    low_pass_side: Count = 8
    """Side of the low-passed pictures in pixels."""
    r1_weight: Weight = 0.05
    """Weight gamma of the penalty gamma / 2 |grad D|^2 at real pictures (Mescheder et al., 2018)."""
    r1_every: Count = 16
    """Steps between penalties, each of which counts as many times."""


def _default_training() -> TrainingSettings:
    values: dict[str, Any] = {
        "steps": 3_000,
        "batch": 16,
        "learning_rate": 2e-4,
        "adam_betas": (0.0, 0.9),
        "average": 0.999,
        "keep": "last",
        "validate_every": 500,
        "validation_examples": 512,
    }
    return TrainingSettings(**values)


class SharpeningSettings(Settings):
    """Settings that determine the sharpener of a given model."""

    sharpener: SharpenerSettings = Field(default_factory=SharpenerSettings)
    training: TrainingSettings = Field(default_factory=_default_training)
    data: DataSettings = Field(default_factory=DataSettings)
    """Data of the model; filled in."""
    posterior: str = ""
    """Name of the posterior that pictures are drawn from; filled in."""
