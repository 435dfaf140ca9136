"""Images drawn for descriptions, and what the judge makes of them: the raw material of sample figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mmgen.artifacts import find_relatives, parent_of
from mmgen.errors import UsageError
from mmgen.notation import UNKNOWN
from mmgen.queries import Vocabulary, batch_of_queries

if TYPE_CHECKING:
    import torch

    from mmgen.classifier import Classifier
    from mmgen.loading import Loaded

__all__ = ["Draws", "check_judge", "differences", "draw", "find_judge", "judged_wrong"]

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
    """

    posterior: str
    seed: int
    asked: np.ndarray
    means: np.ndarray
    sampled: np.ndarray
    z: np.ndarray
    judged: np.ndarray | None = None

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


def _decode(
    loaded: "Loaded", z: "torch.Tensor", codes: np.ndarray, pixels: "torch.Generator"
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sampled images of z [n, D], all for the description ``codes`` [A]."""
    if loaded.image is None:
        raise UsageError(f"{loaded.path} is a model without images; there is nothing to draw")
    model, name = loaded.model, loaded.image.name
    means, sampled = [], []
    for start in range(0, len(z), _CHUNK):
        part = z[start : start + _CHUNK]
        condition = None
        if model.conditional_on:
            repeated = np.repeat(codes[None], len(part), axis=0)
            condition = batch_of_queries(repeated, model.conditional_on[0], str(z.device))
        means.append(model.mean(name, part, condition).float().cpu().numpy())
        sampled.append(model.sample(name, part, pixels, condition).float().cpu().numpy())
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
    codes: np.ndarray,
    count: int,
    *,
    posterior: str,
    seed: int = 0,
    judge: "Classifier | None" = None,
) -> Draws:
    """Draw images for descriptions.

    Each description has its own stream of randomness, so that its images do not depend on which others are drawn.

    Args:
        loaded: A model or an aggregate.
        codes: uint8 [Q, A].
        count: Images for each description, n.
        posterior: One of ``loaded.posteriors``.
        seed: Seed.
        judge: Looks at the images, as it does in metrics: sampled where the data are binary, else means.

    Raises:
        UsageError: The model has no such posterior, or the judge has other attributes.
    """
    import torch

    from mmgen.seeding import torch_generator

    if count < 1 or not len(codes):
        raise UsageError(f"got {count} images for {len(codes)} descriptions, expected at least one of each")
    if judge is not None:
        check_judge(loaded, judge)
    name = loaded.attributes.name if loaded.attributes is not None else "attributes"
    sampler = loaded.latent_sampler(posterior)
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    judged = []
    device = str(next(loaded.model.parameters()).device)
    with torch.no_grad():
        for row in codes:
            key = tuple(int(code) for code in row)
            latents = torch_generator(seed, "latents", *key, device=device)
            pixels = torch_generator(seed, "pixels", *key, device=device)
            z = sampler(batch_of_queries(row, name, device), count, latents)[:, 0]
            means, sampled = _decode(loaded, z, row, pixels)
            parts.append((means, sampled, z.float().cpu().numpy()))
            if judge is not None:
                seen = sampled if loaded.image is not None and loaded.image.layout == "bits" else means
                judged.append(judge.predict(torch.from_numpy(seen)).cpu().numpy())
    means, sampled, latent = (np.stack(arrays) for arrays in zip(*parts, strict=True))
    return Draws(posterior, seed, codes, means, sampled, latent, np.stack(judged) if judged else None)


def find_judge(model: Path, near: Sequence[Path] = ()) -> Path | None:
    """The newest judge that was trained on the same dataset as a model; None where there is none.

    Args:
        model: The model's checkpoint.
        near: Files in whose folders to look besides those of the model and the current one.

    Raises:
        ArtifactError: ``model`` is no model made from a dataset.
    """
    dataset = parent_of(model, "dataset")
    folders = [model.parent, *(path.parent for path in near), (model.parent / dataset.path).parent, Path.cwd()]
    found = find_relatives(dict.fromkeys(folder.resolve() for folder in folders), "classifier", dataset.content_id)
    return found[0] if found else None
