"""Images and texts drawn for descriptions, with the attributes that a classifier predicts of the images."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mmgen.classifier import load_classifier
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.progress import Watch
from mmgen.descriptions import IN_COMMON, Vocabulary
from mmgen.generation.classifiers import (
    check_classifier,
    classifier_reads_samples,
    classify_images,
    find_classifier,
    format_mismatches,
    has_mismatch,
)
from mmgen.generation.descriptions import (
    Descriptions,
    check_posterior_reads,
    complete_descriptions,
    parse_descriptions,
    select_posterior,
)
from mmgen.posteriors import CandidateStatistics
from mmgen.results.naming import PosteriorName

if TYPE_CHECKING:
    from pathlib import Path

    from mmgen.classifier import Classifier
    from mmgen.generation.trained_model import TrainedModel


@dataclass(frozen=True)
class Draws:
    """Images, and texts if the model generates them, drawn for Q descriptions: n draws for each.

    Attributes:
        posterior: Name of the posterior of z ("own", "aggregate", ...).
        seed: Seed of z and of the sampled pixels.
        descriptions: The Q descriptions.
        images: Images of each drawn modality, the main one first: E[image | z], float32 [Q, n, C, H, W], which people
            look at, and draws from p(image | z). The classifier reads the latter for binary data, and the means for
            other data, because grey levels are no draws of a Bernoulli variable.
        z: float32 [Q, n, D].
        predicted: Attribute codes that the classifier predicts, uint8 [Q, n, A]; None without a classifier.
        words: Texts drawn from the same z, word codes int64 [Q, n, T]; None if the model generates no text.
        hints: Positions of attributes that are inputs of the classifier, so that its predictions of them do not count.
        name: Name and meaning of the posterior; by default ``posterior``.
        guidance: Name of the guided posterior; None without guidance.
        notice: A warning about guided draws, such as too few candidates; "" for none.
    """

    posterior: str
    seed: int
    descriptions: Descriptions
    images: Mapping[str, tuple[np.ndarray, np.ndarray]]
    z: np.ndarray
    predicted: np.ndarray | None = None
    words: np.ndarray | None = None
    hints: tuple[int, ...] = ()
    name: str = ""
    guidance: PosteriorName | None = None
    notice: str = ""

    @property
    def image(self) -> str:
        """Name of the main modality, which alone is judged."""
        return next(iter(self.images))

    @property
    def means(self) -> np.ndarray:
        """E[image | z] of the main modality, float32 [Q, n, C, H, W]."""
        return self.images[self.image][0]

    @property
    def sampled(self) -> np.ndarray:
        """Draws from p(image | z) of the main modality, float32 [Q, n, C, H, W]."""
        return self.images[self.image][1]

    @property
    def further(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Means and draws of the other image modalities, from the same z."""
        return {name: both for name, both in self.images.items() if name != self.image}

    def pictures(self, sampled: bool = False) -> dict[str, np.ndarray]:
        """Return all image modalities by name, [Q, n, C, H, W] each: means, or draws from p(image|z)."""
        return {name: both[int(sampled)] for name, both in self.images.items()}

    @property
    def completed(self) -> np.ndarray | None:
        """The whole description that each image was drawn from, uint8 [Q, n, A]; None if none had open words."""
        return self.descriptions.completed

    @property
    def mismatches(self) -> np.ndarray | None:
        """Whether the classifier contradicts the description of each image, bool [Q, n]; None without a classifier."""
        if self.predicted is None:
            return None
        wrong = has_mismatch(self.descriptions.codes[:, None], self.predicted)
        for row, expression in enumerate(self.descriptions.expressions):
            if expression is not None:
                wrong[row] = ~expression.matches(self.predicted[row])
        return wrong

    @property
    def correct_counts(self) -> tuple[int, int]:
        """Numbers, over all images, of described attributes that the classifier confirms, and of all described ones.

        For a description with operators each image counts once.
        """
        if self.predicted is None or self.mismatches is None:
            return 0, 0
        expressions = [self.descriptions.expression(row) for row in range(len(self.descriptions))]
        codes = np.broadcast_to(self.descriptions.codes[:, None], self.predicted.shape)
        counted = codes != UNKNOWN
        counted[..., list(self.hints)] = False
        counted[[one is not None for one in expressions]] = False
        whole = np.array([one is not None and bool(one.restricted_attributes.any()) for one in expressions])
        right = int(((codes == self.predicted) & counted).sum()) + int((~self.mismatches[whole]).sum())
        return right, int(counted.sum()) + int(whole.sum()) * self.predicted.shape[1]

    def choose(self, places: np.ndarray) -> "Draws":
        """Return the images at ``places``, int64 [Q, m], of each description."""

        def choose(values: np.ndarray | None) -> Any:
            return None if values is None else values[np.arange(len(places))[:, None], places]

        return replace(
            self,
            descriptions=replace(self.descriptions, completed=choose(self.completed)),
            images={name: (choose(means), choose(sampled)) for name, (means, sampled) in self.images.items()},
            **{name: choose(getattr(self, name)) for name in ("z", "predicted", "words")},
        )

    def describe_mismatch(self, row: int, place: int, vocabulary: Vocabulary) -> str:
        """Format the predictions that contradict description ``row`` in image ``place``: "judge: 5, small", or ""."""
        if self.predicted is None or self.mismatches is None:
            return ""
        expression = self.descriptions.expression(row)
        read = self.predicted[row, place]
        if expression is None:
            return format_mismatches(self.descriptions.codes[row], read, vocabulary)
        mentioned = np.flatnonzero(expression.restricted_attributes)
        return (
            f"judge: {', '.join(vocabulary.values[a][read[a]] for a in mentioned)}"
            if self.mismatches[row, place]
            else ""
        )


def draw(
    loaded: "TrainedModel",
    descriptions: np.ndarray | Descriptions,
    count: int,
    *,
    posterior: str,
    seed: int = 0,
    classifier: "Classifier | None" = None,
    targets: Sequence[str] = (),
) -> Draws:
    """Draw ``count`` images for each description, and texts if the model generates them.

    Each description has its own random stream, so its images do not depend on the other descriptions.

    Args:
        loaded: A model, perhaps with a fitted posterior.
        descriptions: The descriptions, or attribute codes uint8 [Q, A].
        count: Images for each description, n.
        posterior: One of ``loaded.posteriors``.
        seed: Seed of z, pixels and words.
        classifier: Looks at the images, as it does in metrics: sampled where the data are binary, else means.
        targets: Image modalities to draw from each z; by default the main one, which alone is judged.

    Raises:
        UsageError: The model has no such posterior or modality, or the judge has other attributes.
    """
    from mmgen.generation.decode import decode_pictures, draw_words, resolve_targets
    from mmgen.generation.inputs import check_draw_memory
    from mmgen.generation.latents import draw_completions, draw_latents

    if not isinstance(descriptions, Descriptions):
        descriptions = complete_descriptions(loaded, descriptions)
    if count < 1 or not len(descriptions):
        raise UsageError(
            f"got {len(descriptions)} descriptions and {count} images for each, "
            f"expected at least one of both; give more"
        )
    names = resolve_targets(loaded, targets)
    kinds = [loaded.observed[name] for name in names]
    check_draw_memory(kinds, count, len(descriptions), "descriptions", copies=2)  # mean and draw of each pixel
    candidates: dict[str, CandidateStatistics] = {}
    loaded = loaded.recording(candidates) if loaded.guidance else loaded
    posterior = loaded.posteriors[posterior].name
    check_posterior_reads(loaded, posterior, descriptions)
    if classifier is not None:
        check_classifier(loaded.attributes, classifier, loaded.observation)
    if loaded.observation is None or names[0] != loaded.observation.name:  # the judge has learned the main one
        classifier = None
    descriptions = draw_completions(loaded, posterior, descriptions, count, seed)
    z = draw_latents(loaded, posterior, descriptions, count, seed)
    judged = None if classifier is None else np.empty((len(descriptions), count, descriptions.codes.shape[1]), np.uint8)
    drawn: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name in names:
        shape = (len(descriptions), count, *loaded.observed[name].event_shape)
        drawn[name] = means, sampled = np.empty(shape, np.float32), np.empty(shape, np.float32)
        for piece in decode_pictures(loaded, name, z, descriptions, seed):
            means[piece.rows, piece.draws] = piece.means.cpu().numpy()
            assert piece.sampled is not None
            sampled[piece.rows, piece.draws] = piece.sampled.cpu().numpy()
            if classifier is not None and judged is not None and name == names[0]:
                values = (sampled if classifier_reads_samples(loaded) else means)[piece.rows, piece.draws]
                codes = np.repeat(descriptions.codes[piece.rows], values.shape[1], axis=0)
                verdicts = classify_images(classifier, values.reshape(-1, *values.shape[2:]), codes)
                judged[piece.rows, piece.draws] = verdicts.reshape(*values.shape[:2], -1)
    text, words = loaded.text, None
    if text is not None and text.name in loaded.model.generates:
        words = draw_words(loaded, text.name, z, descriptions, seed).cpu().numpy()
    hints = tuple(classifier.names.index(name) for name in classifier.hints) if classifier is not None else ()
    guided = loaded.guided_posterior(posterior) if loaded.guidance else None
    return Draws(
        posterior, seed, descriptions, drawn, z.float().cpu().numpy(), judged, words, hints,
        title_of_draws(loaded, posterior), guided.named if guided is not None else None,
        guided.describe_draws(candidates[posterior]) if guided is not None else "",
    )  # fmt: skip


def draw_on(
    draw_number: Callable[[int], Draws], number: int, is_left_out: Callable[[Draws], np.ndarray]
) -> tuple[Draws, int]:
    """Draw on until ``number`` images of each description are not left out.

    Args:
        draw_number: Function that draws so many images of each description.
        number: Images for each description, n.
        is_left_out: Function that returns which images are left out, bool [Q, n].

    Returns:
        The draws, and how many images were left out before the last of these.

    Raises:
        UsageError: Nearly all images of a description are left out.
    """
    for factor in (1, 4, 16):  # times the wanted images, one after the other
        drawn = draw_number(factor * number)
        kept = [np.flatnonzero(~row)[:number] for row in is_left_out(drawn)]
        if all(len(places) == number for places in kept):
            return drawn.choose(np.stack(kept)), sum(int(places[-1]) + 1 - number for places in kept)
    row, fewest = min(enumerate(map(len, kept)), key=lambda each: each[1])
    raise UsageError(
        f"--no-copies got only {fewest} of {factor * number} pictures of description {row + 1} that are no near "
        f"copies, expected {number}; ask for words that no training picture has or for fewer pictures, or leave it out"
    )


def last_file(loaded: "TrainedModel") -> "Path":
    """Return the file that names all others: that of the sharpener, of the fitted posterior or of the model."""
    return loaded.path if loaded.sharpener is None else loaded.sharpener.path


def title_of_draws(loaded: "TrainedModel", posterior: str) -> str:
    """Return the name of a posterior with an explanation, for headings of its pictures."""
    title = loaded.posteriors[posterior].named.title
    return title if loaded.sharpener is None else f"{title}, sharpened"


def convert_draws_to_pictures(loaded: "TrainedModel", draws: Draws) -> Draws:
    """Convert draws of data such as sounds or graphs to pictures, for figures; images stay unchanged.

    Raises:
        UsageError: The kind of data has no picture.
    """
    observed = loaded.observed
    images = {
        name: (observed[name].pictures(means), observed[name].pictures(sampled))
        for name, (means, sampled) in draws.images.items()
    }
    return replace(draws, images=images)


def list_unrestricted_warnings(draws: Draws) -> list[str]:
    """Return a warning for each description that restricts no attribute, such as "digit=3 IN COMMON digit=4"."""
    reason = {IN_COMMON: "has nothing in common"}
    return [
        f"'{one}' {reason.get(one.operator, 'says nothing')}, so there is nothing to judge."
        for one in draws.descriptions.expressions
        if one is not None and not one.restricted_attributes.any()
    ]


def format_share_correct(draws: Draws) -> str:
    """Format the share of described attributes that the classifier confirms in the images; "" without a classifier."""
    right, counted = draws.correct_counts
    what = "descriptions" if any(draws.descriptions.expressions) else "attributes"
    return f"{100 * right / counted:.1f} % of {counted:,} {what} right" if counted else ""


def sample_and_classify(
    loaded: "TrainedModel",
    texts: Sequence[str],
    number: int,
    watch: Watch,
    *,
    posterior: str | None = None,
    classifier_path: Path | None = None,
    neighbour: Path | None = None,
    seed: int = 0,
    targets: Sequence[str] = (),
    is_copy: Callable[[Draws], np.ndarray] | None = None,
) -> "tuple[Draws, Path | None, Classifier | None]":
    """Draw pictures for descriptions, and predict their attributes if there is a classifier.

    Args:
        loaded: The model or aggregate.
        texts: Descriptions as a person types them.
        number: Number of pictures for each description.
        watch: Receives notices, and the share of attributes that the classifier confirms.
        posterior: Name of the posterior; by default the fitted one, else the encoder's.
        classifier_path: The classifier's file; by default one is searched in the folders of the files.
        neighbour: A further file whose folder is searched.
        seed: Seed of the draws.
        targets: Image modalities; by default the main one.
        is_copy: Function that returns which images are near copies, bool [Q, n], to be left out.

    Returns:
        The draws, the classifier's file and the classifier, None for both without one.

    Raises:
        UsageError: The model lacks a word of a description, or the posterior.
    """
    descriptions = parse_descriptions(loaded, texts)
    source = select_posterior(loaded, descriptions, posterior)
    file, classifier, notice = load_judge(loaded, classifier_path, neighbour)
    more = partial(draw, loaded, descriptions, posterior=source, seed=seed, classifier=classifier, targets=targets)
    if is_copy is None:
        drawn = more(number)
    else:
        drawn, copies = draw_on(more, number, is_copy)
        watch.say(f"left out {copies} near copies of training pictures, of {copies + drawn.z[..., 0].size} drawn")
    verdict = format_share_correct(drawn)
    for remark in (notice, drawn.notice, *list_unrestricted_warnings(drawn)):
        if remark:
            watch.say(remark)
    if file and verdict:
        watch.say(f"the judge {file} finds {verdict}")
    return drawn, file, classifier


def load_judge(
    loaded: "TrainedModel", classifier_path: Path | None, neighbour: Path | None
) -> "tuple[Path | None, Classifier | None, str]":
    """Load the classifier at ``classifier_path``, else search for one; without one, return None twice and a notice."""
    if classifier_path is not None:
        return classifier_path, load_classifier(classifier_path, loaded.device), ""
    places = [loaded.path, *([neighbour] if neighbour else [])]
    path = find_classifier(loaded.model_path, places) if loaded.attributes is not None else None
    if path is None:
        missing = "no judge found, so these images are not judged: train one with mmgen train-classifier"
        return None, None, missing if loaded.observation is not None else ""
    try:
        return path, load_classifier(path, loaded.device), ""
    except ArtifactError as error:
        return None, None, f"these images are not judged: {error}"
