"""The members of this room by name."""

from typing import TYPE_CHECKING

from mmgen.settings.registry import Registry

if TYPE_CHECKING:
    from mmgen.objectives._base import Objective

__all__ = ["describe", "get", "import_all", "names"]

_ELBO = ("vae", "beta-vae", "vlvae", "vl-vae", "joint-vae", "multimodal-vae", "negative-elbo", "bound", "loss")
_registry: Registry["type[Objective]"] = Registry(
    __package__,
    "objective",
    synonyms={**dict.fromkeys(_ELBO, "elbo"), "conditional-vae": "cvae", "poe": "mvae"},
    place=6,
)
names = _registry.names
get = _registry.get
describe = _registry.describe
import_all = _registry.import_all
