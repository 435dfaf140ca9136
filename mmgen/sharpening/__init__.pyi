from ._networks import (
    Discriminator as Discriminator,
    Sharpener as Sharpener,
    SharpenerSettings as SharpenerSettings,
    SharpeningSettings as SharpeningSettings,
    TrainedSharpener as TrainedSharpener,
    build_discriminator as build_discriminator,
    build_sharpener as build_sharpener,
    load_sharpener as load_sharpener,
)
from ._task import SharpeningTask as SharpeningTask
