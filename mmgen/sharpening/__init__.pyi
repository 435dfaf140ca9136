from ._files import (
    TrainedSharpener as TrainedSharpener,
    build_discriminator as build_discriminator,
    build_sharpener as build_sharpener,
    load_sharpener as load_sharpener,
)
from ._networks import Discriminator as Discriminator, Sharpener as Sharpener
from ._settings import SharpenerSettings as SharpenerSettings, SharpeningSettings as SharpeningSettings
from ._task import SharpeningTask as SharpeningTask
