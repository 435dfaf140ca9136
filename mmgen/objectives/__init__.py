"""Objectives: what training maximises, one file each."""

from mmgen.settings.registry import attach_members

_ELBO = ("vae", "beta-vae", "vlvae", "vl-vae", "joint-vae", "multimodal-vae", "negative-elbo", "bound", "loss")
_SYNONYMS = {**dict.fromkeys(_ELBO, "elbo"), "conditional-vae": "cvae", "poe": "mvae"}

__getattr__, __dir__, __all__ = attach_members(__name__, __file__, "objective", place=6, synonyms=_SYNONYMS)
