"""Images and texts drawn for descriptions, and what the judge makes of them: the raw material of sample figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions import IN_COMMON, Expression, Vocabulary
from mmgen.generation.descriptions import Descriptions, check_read, complete
from mmgen.generation.judge import check_judge, differences, judge_images, judged_wrong, sees_samples
from mmgen.results.naming import Guidance

if TYPE_CHECKING:
    from mmgen.classifier import Classifier
    from mmgen.generation.trained_model import TrainedModel

__all__ = [
    "Draws",
    "as_pictures",
    "draw",
    "share_right",
    "unjudged",
]


@dataclass(frozen=True)
class Draws:
    """n images for each of Q descriptions.

    Attributes:
        posterior: Where z came from ("own", "aggregate", ...).
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
        name: What people call the posterior and what it is; "" where z came from elsewhere.
        expressions: Negation, alternatives and recombinations that were asked for, [Q]; empty where there were none.
        guidance: By what the posterior was guided; None where it was not.
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
    name: str = ""
    expressions: tuple[Expression | None, ...] = ()
    guidance: Guidance | None = None

    def pictures(self, sampled: bool = False) -> dict[str, np.ndarray]:
        """Return all image modalities by name, [Q, n, C, H, W] each: means, or draws from p(image|z)."""
        every = {self.image: (self.means, self.sampled), **self.further}
        return {name: both[int(sampled)] for name, both in every.items()}

    @property
    def descriptions(self) -> Descriptions:
        """The descriptions."""
        return Descriptions(self.asked, self.asked_words, self.expressions)

    @property
    def wrong(self) -> np.ndarray | None:
        """Bool [Q, n]: the attribute classifier reads something else than was described; None without one."""
        if self.judged is None:
            return None
        wrong = judged_wrong(self.asked[:, None], self.judged)
        for row, expression in enumerate(self.expressions):
            if expression is not None:
                wrong[row] = ~expression.holds(self.judged[row])
        return wrong

    @property
    def right(self) -> tuple[int, int]:
        """Counts over all images: described attributes that the classifier agrees with, and all described ones.

        Of a description with negation, alternatives or operators each image counts once, as right or wrong.
        """
        if self.judged is None or self.wrong is None:
            return 0, 0
        asked = np.broadcast_to(self.asked[:, None], self.judged.shape)
        known = asked != UNKNOWN
        known[..., list(self.told)] = False
        whole = np.array([expression is not None for expression in self.expressions] or [False] * len(self.asked))
        known[whole] = False
        whole[_without_meaning(self)] = False  # whatever is drawn would be right
        right = int(((asked == self.judged) & known).sum()) + int((~self.wrong[whole]).sum())
        return right, int(known.sum()) + int(whole.sum()) * self.judged.shape[1]

    def remark(self, row: int, number: int, info: Vocabulary) -> str:
        """Return the values that the classifier reads in one image instead of the described ones: "judge: 5, small"; ""
        if it agrees.
        """
        if self.judged is None or self.wrong is None:
            return ""
        expression = self.expressions[row] if self.expressions else None
        seen = self.judged[row, number]
        if expression is None:
            return differences(self.asked[row], seen, info)
        mentioned = np.flatnonzero(expression.mentioned)
        return f"judge: {', '.join(info.values[a][seen[a]] for a in mentioned)}" if self.wrong[row, number] else ""


def draw(
    loaded: "TrainedModel",
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
    from mmgen.generation.decode import draw_words, pictures, wanted_images
    from mmgen.generation.given import check_drawn
    from mmgen.generation.latents import draw_latents

    if not isinstance(asked, Descriptions):
        asked = complete(loaded, asked)
    if count < 1 or not len(asked):
        raise UsageError(f"got {count} images for {len(asked)} descriptions, expected at least one of each")
    names = wanted_images(loaded, targets)
    shown = [loaded.observed[name] for name in names]
    check_drawn(shown, count, len(asked), "descriptions", copies=2)  # mean and draw of each pixel
    source = loaded.posteriors[posterior]
    posterior = source.name
    check_read(loaded, posterior, asked)
    if judge is not None:
        check_judge(loaded, judge)
    if loaded.observation is None or names[0] != loaded.observation.name:  # the judge has learned the main one
        judge = None
    z = draw_latents(loaded, posterior, asked, count, seed)
    judged = None if judge is None else np.empty((len(asked), count, asked.codes.shape[1]), np.uint8)
    drawn: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name in names:
        shape = (len(asked), count, *loaded.observed[name].event_shape)
        drawn[name] = means, sampled = np.empty(shape, np.float32), np.empty(shape, np.float32)
        for piece in pictures(loaded, name, z, asked, seed):
            means[piece.rows, piece.draws] = piece.means.cpu().numpy()
            assert piece.sampled is not None
            sampled[piece.rows, piece.draws] = piece.sampled.cpu().numpy()
            if judge is not None and judged is not None and name == names[0]:
                seen = (sampled if sees_samples(loaded) else means)[piece.rows, piece.draws]
                codes = np.repeat(asked.codes[piece.rows], seen.shape[1], axis=0)
                verdicts = judge_images(judge, seen.reshape(-1, *seen.shape[2:]), codes)
                judged[piece.rows, piece.draws] = verdicts.reshape(*seen.shape[:2], -1)
    text, words = loaded.text, None
    if text is not None and text.name in loaded.model.generates:
        words = draw_words(loaded, text.name, z, asked, seed).cpu().numpy()
    told = tuple(judge.names.index(name) for name in judge.told) if judge is not None else ()
    guidance = loaded.guided(loaded.tilt, seed).guided_posterior(posterior).report if loaded.tilt else None
    return Draws(
        posterior, seed, asked.codes, *drawn.pop(names[0]), z.float().cpu().numpy(), judged, asked.tokens, words,
        told, names[0], drawn, source.title, asked.expressions, guidance,
    )  # fmt: skip


def as_pictures(loaded: "TrainedModel", drawn: Draws) -> Draws:
    """Return draws whose values are pictures: images as they are, values of other kinds as their kind draws them.

    Raises:
        UsageError: The kind has no picture.
    """
    further = {
        name: (loaded.observed[name].pictures(means), loaded.observed[name].pictures(sampled))
        for name, (means, sampled) in drawn.further.items()
    }
    main = loaded.observed[drawn.image]
    return replace(drawn, means=main.pictures(drawn.means), sampled=main.pictures(drawn.sampled), further=further)


def _without_meaning(draws: Draws) -> list[int]:
    """Return rows of descriptions that restrict nothing: "digit=3 IN COMMON digit=4"."""
    return [row for row, one in enumerate(draws.expressions) if one is not None and not one.mentioned.any()]


def unjudged(draws: Draws) -> list[str]:
    """Return a sentence for each description that restricts nothing, so that no image of it can be judged."""
    found = []
    for row in _without_meaning(draws):
        one = draws.expressions[row]
        why = "has nothing in common" if one is not None and one.operator == IN_COMMON else "says nothing"
        found.append(f"'{one}' {why}, so there is nothing to judge.")
    return found


def share_right(draws: Draws) -> str:
    """Return the classifier's verdict over all images as a sentence; "" without one."""
    right, asked = draws.right
    what = "descriptions" if any(draws.expressions) else "attributes"
    return f"{100 * right / asked:.1f} % of {asked:,} {what} right" if asked else ""
