"""Label-preserving augmentation of pictures of two objects and their descriptions.

"A left B" and "B right A" describe the same scene, and left becomes right in a mirror image. With this augmentation a
classifier learns the order of the objects from several times fewer scenes.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from mmgen.core.notation import UNKNOWN

_OPPOSITES = {"left": "right", "right": "left", "front": "behind", "behind": "front"}
_SIDEWAYS = ("left", "right")


@dataclass(frozen=True)
class Augmentation:
    """Random changes of training pictures (mirror, shift, brightness) with the matching changes of their attributes.

    Attributes:
        order: Positions of the attributes [A] when the two objects change places.
        relation: Position of the relation.
        opposite: Code of the opposite of every relation [V].
        mirrored: Code of every relation in the mirror [V].
        shift: Largest shift in pixels, each way.
        brightness: Largest relative change of brightness.
    """

    order: tuple[int, ...]
    relation: int
    opposite: tuple[int, ...]
    mirrored: tuple[int, ...]
    shift: int = 2
    brightness: float = 0.1

    def __call__(self, images: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Change images [B, C, H, W] in [0, 1] and codes int64 [B, A], each example at random by torch's generator."""
        turned, flipped = torch.rand(2, len(images), device=images.device) < 0.5
        codes = torch.where(turned[:, None], self.swap_objects(codes), codes)
        codes = torch.where(flipped[:, None], self.mirror_codes(codes), codes)
        images = torch.where(flipped[:, None, None, None], images.flip(3), images)
        return self._brighten(self._shift(images)), codes

    def swap_objects(self, codes: Tensor) -> Tensor:
        """Exchange the two objects in the codes, so that "A left of B" becomes "B right of A"."""
        return self._translate_relation(codes[:, list(self.order)], self.opposite)

    def mirror_codes(self, codes: Tensor) -> Tensor:
        """Return the codes of the mirrored pictures: left and right are exchanged."""
        return self._translate_relation(codes, self.mirrored)

    def _translate_relation(self, codes: Tensor, new_codes: tuple[int, ...]) -> Tensor:
        codes = codes.clone()
        relation = codes[:, self.relation]
        table = torch.tensor(new_codes, device=codes.device)
        codes[:, self.relation] = torch.where(relation == UNKNOWN, relation, table[relation % len(new_codes)])
        return codes

    def _shift(self, images: Tensor) -> Tensor:
        """Shift all images of a batch by one random offset; edge pixels fill the gap."""
        margin = self.shift
        down, right = torch.randint(0, 2 * margin + 1, (2,)).tolist()
        height, width = images.shape[2:]
        return F.pad(images, [margin] * 4, mode="replicate")[..., down : down + height, right : right + width]

    def _brighten(self, images: Tensor) -> Tensor:
        factors = 1 + self.brightness * (2 * torch.rand(len(images), 1, 1, 1, device=images.device) - 1)
        return (images * factors).clamp(0, 1)


def choose_augmentation(names: tuple[str, ...], values: tuple[tuple[str, ...], ...]) -> Augmentation | None:
    """Return the augmentation for attributes of two objects and their spatial relation; None for other attributes."""
    if "relation" not in names:
        return None
    relation = names.index("relation")
    words = values[relation]
    partners = {"_1": "_2", "_2": "_1"}
    others = [name if name == "relation" else name[:-2] + partners.get(name[-2:], "?") for name in names]
    if set(words) != set(_OPPOSITES) or set(others) != set(names):
        return None
    if any(values[names.index(other)] != words for other, words in zip(others, values, strict=True)):
        return None
    return Augmentation(
        order=tuple(names.index(other) for other in others),
        relation=relation,
        opposite=tuple(words.index(_OPPOSITES[word]) for word in words),
        mirrored=tuple(words.index(_OPPOSITES[word] if word in _SIDEWAYS else word) for word in words),
    )
