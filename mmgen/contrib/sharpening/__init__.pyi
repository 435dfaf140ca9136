from ._task import SharpeningTask as SharpeningTask
from .generation.sharpener import (
    Discriminator as Discriminator,
    Sharpener as Sharpener,
    SharpenerSettings as SharpenerSettings,
    SharpeningSettings as SharpeningSettings,
    build_discriminator as build_discriminator,
    build_sharpener as build_sharpener,
    load_sharpener as load_sharpener,
)
