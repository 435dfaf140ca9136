"""Images and texts drawn for descriptions, and what the judge makes of them: the raw material of sample figures."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mmgen.artifacts import parent_of
from mmgen.classifier._find import find_judge as judge_of
from mmgen.errors import UsageError
from mmgen.figures.descriptions import Descriptions, complete
from mmgen.memory import check_memory
from mmgen.notation import UNKNOWN
from mmgen.queries import Vocabulary

if TYPE_CHECKING:
    import torch

    from mmgen.batch import Batch
    from mmgen.classifier import Classifier
    from mmgen.loading import Loaded

__all__ = [
    "Draws",
    "check_judge",
    "decode",
    "differences",
    "draw",
    "find_judge",
    "judge_images",
    "judged_wrong",
    "wanted_images",
]

_CHUNK = 256
"""Images decoded at a time."""


@dataclass(frozen=True)
class Draws:
    """n images for each of Q descriptions.

    Attributes:
        posterior: Where z came from ("text", "aggregate", ...).
        seed: Seed of z and of the sampled pixels.
        asked: uint8 [Q, A], 255 where the description says nothing.
        means: E[image | z], float32 [Q, n, C, H, W]: what people look at.
        sampled: Draws from p(image|z), float32 [Q, n, C, H, W]: what the judge looks at where the data are binary;
            elsewhere it looks at the means, since grey levels of the data are no draws of a Bernoulli variable.
        z: float32 [Q, n, D].
        judged: What the judge sees, uint8 [Q, n, A]; None without a judge.
        asked_words: Captions asked for, word codes [Q, T]; None where there were none.
        words: Texts drawn from the same z, word codes int64 [Q, n, T]; None from a model that generates none.
        told: Positions of attributes that the judge was told, and so cannot be right or wrong about.
        image: Modality of ``means`` and ``sampled``; "" for the only one.
        further: Other image modalities drawn from the same z, each as ``means`` and ``sampled``, by name.
    """

    posterior: str
    seed: int
    asked: np.ndarray
    means: np.ndarray
    sampled: np.ndarray
    z: np.ndarray
    judged: np.ndarray | None = None
    asked_words: np.ndarray | None = None
    words: np.ndarray | None = None
    told: tuple[int, ...] = ()
    image: str = ""
    further: Mapping[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def pictures(self, sampled: bool = False) -> dict[str, np.ndarray]:
        """All image modalities by name, [Q, n, C, H, W] each: means, or draws from p(image|z)."""
        every = {self.image: (self.means, self.sampled), **self.further}
        return {name: both[int(sampled)] for name, both in every.items()}

    @property
    def descriptions(self) -> Descriptions:
        """What was asked for."""
        return Descriptions(self.asked, self.asked_words)

    @property
    def wrong(self) -> np.ndarray | None:
        """Bool [Q, n]: the judge reads at least one attribute that was asked for differently; None without a judge."""
        return None if self.judged is None else judged_wrong(self.asked[:, None], self.judged)

    @property
    def right(self) -> tuple[int, int]:
        """How many of the attributes asked for the judge agrees with, and how many were asked for, over all images."""
        if self.judged is None:
            return 0, 0
        asked = np.broadcast_to(self.asked[:, None], self.judged.shape)
        known = asked != UNKNOWN
        known[..., list(self.told)] = False
        return int(((asked == self.judged) & known).sum()), int(known.sum())


def judged_wrong(asked: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """Whether any attribute asked for is judged differently: uint8 [..., A], uint8 [..., A] -> bool [...]."""
    return np.asarray(((asked != judged) & (asked != UNKNOWN)).any(-1))


def differences(asked: np.ndarray, judged: np.ndarray, info: Vocabulary) -> str:
    """What the judge sees instead, for a caption: "judge: 5, small"; "" where it agrees.

    Args:
        asked: uint8 [A].
        judged: uint8 [A].
        info: The attributes' words.
    """
    seen = [
        words[code]
        for words, wanted, code in zip(info.values, asked, judged, strict=True)
        if wanted not in (UNKNOWN, code) and code < len(words)
    ]
    return f"judge: {', '.join(seen)}" if seen else ""


def decode(
    loaded: "Loaded", name: str, z: "torch.Tensor", condition: "Batch | None", pixels: "torch.Generator"
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sampled images of one modality for z [n, D], all for one description, which conditional models need."""
    model = loaded.model
    means, sampled = [], []
    for part in z.split(_CHUNK):
        every = condition.repeat(len(part)) if condition is not None and model.conditional_on else None
        means.append(model.mean(name, part, every).float().cpu().numpy())
        sampled.append(model.sample(name, part, pixels, every).float().cpu().numpy())
    return np.concatenate(means), np.concatenate(sampled)


def check_judge(loaded: "Loaded", judge: "Classifier") -> None:
    """Refuse a judge that answers in other words than the model was asked in.

    Raises:
        UsageError: Its attributes or their values differ.
    """
    info = loaded.attributes
    if info is not None and (list(judge.names), list(judge.values)) != (list(info.names), list(info.values)):
        raise UsageError(
            f"the judge knows the attributes {', '.join(judge.names)}, expected {', '.join(info.names)} with the same "
            "values: train a judge on this model's dataset with mmgen train-classifier"
        )


def draw(
    loaded: "Loaded",
    asked: np.ndarray | Descriptions,
    count: int,
    *,
    posterior: str,
    seed: int = 0,
    judge: "Classifier | None" = None,
    targets: Sequence[str] = (),
) -> Draws:
    """Draw images for descriptions, and texts where the model generates them.

    Each description has its own stream of randomness, so that its images do not depend on which others are drawn.

    Args:
        loaded: A model or an aggregate.
        asked: The descriptions; attribute codes uint8 [Q, A] stand for the captions that spell them as well.
        count: Images for each description, n.
        posterior: One of ``loaded.posteriors``.
        seed: Seed.
        judge: Looks at the images, as it does in metrics: sampled where the data are binary, else means.
        targets: Image modalities to draw from each z; by default the main one, which alone is judged.

    Raises:
        UsageError: The model has no such posterior or modality, or the judge has other attributes.
    """
    import torch

    from mmgen.seeding import torch_generator

    if not isinstance(asked, Descriptions):
        asked = complete(loaded, asked)
    if count < 1 or not len(asked):
        raise UsageError(f"got {count} images for {len(asked)} descriptions, expected at least one of each")
    names = wanted_images(loaded, targets)
    numbers = sum(math.prod(loaded.images[name].shape) for name in names)
    size = 8 * numbers * count * len(asked)  # mean and draw of each pixel, four bytes each
    check_memory(size, f"{count:,} images of {len(asked):,} descriptions", "use a smaller --number")
    if judge is not None:
        check_judge(loaded, judge)
    if loaded.image is None or names[0] != loaded.image.name:  # the judge has learned the main picture
        judge = None
    sampler = loaded.latent_sampler(posterior)
    text = loaded.text
    speaks = text is not None and text.name in loaded.model.decoders
    pictures: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in names}
    latent, judged, words = [], [], []
    device = str(loaded.device)
    with torch.no_grad():
        for row, codes in enumerate(asked.codes):
            key = tuple(int(code) for code in (codes if asked.tokens is None else asked.tokens[row]))
            latents = torch_generator(seed, "latents", *key, device=device)
            condition = asked.batch(loaded, row)
            z = sampler(condition, count, latents)[:, 0]
            latent.append(z.float().cpu().numpy())
            for name in names:
                # The main picture is the same whatever else is drawn from its z.
                of_it = () if loaded.image is not None and name == loaded.image.name else (name,)
                pixels = torch_generator(seed, "pixels", *of_it, *key, device=device)
                pictures[name].append(decode(loaded, name, z, condition, pixels))
            if speaks and text is not None:
                speech = torch_generator(seed, "words", *key, device=device)
                words.append(loaded.model.sample(text.name, z, speech).cpu().numpy())
            if judge is not None:
                means, sampled = pictures[names[0]][-1]
                seen = sampled if loaded.image is not None and loaded.image.layout == "bits" else means
                judged.append(judge_images(judge, seen, np.repeat(codes[None], count, axis=0)))
    drawn = {
        name: (np.stack([m for m, _ in found]), np.stack([s for _, s in found])) for name, found in pictures.items()
    }
    told = tuple(judge.names.index(name) for name in judge.told) if judge is not None else ()
    return Draws(
        posterior, seed, asked.codes, *drawn.pop(names[0]), np.stack(latent), np.stack(judged) if judged else None,
        asked.tokens, np.stack(words) if words else None, told, names[0], drawn,
    )  # fmt: skip


def wanted_images(loaded: "Loaded", targets: Sequence[str] = ()) -> list[str]:
    """The image modalities to draw: those named, by default the main one.

    Raises:
        UsageError: The model draws no images, or not these.
    """
    if loaded.image is None:
        raise UsageError(f"{loaded.path} is a model without images; there is nothing to draw")
    if targets:
        from mmgen.translation import check_target

        for name in targets:
            check_target(loaded, name)
    return list(dict.fromkeys(targets)) or [loaded.image.name]


def judge_images(judge: "Classifier", images: np.ndarray, told: np.ndarray) -> np.ndarray:
    """What the judge sees: images [n, C, H, W], codes uint8 [n, A] of which it is told what it wants -> [n, A]."""
    import torch

    pixels = torch.from_numpy(images).to(judge.device)
    return np.asarray(judge.predict(pixels, torch.from_numpy(told)).cpu().numpy())


def find_judge(model: Path, near: Sequence[Path] = (), preferred: Collection[str] = ()) -> Path | None:
    """The judge of the dataset that a model was trained on, the one that ``mmgen eval`` takes; None without one.

    Args:
        model: The model's checkpoint.
        near: Files in whose folders to look besides those of the model and the current one.
        preferred: Content ids of judges that come before all others: those that gave the scores shown.

    Raises:
        ArtifactError: ``model`` is no model made from a dataset.
    """
    dataset = parent_of(model, "dataset")
    folders = [model.parent, *(path.parent for path in near), (model.parent / dataset.path).parent, Path.cwd()]
    return judge_of(dataset.content_id, folders, preferred)
