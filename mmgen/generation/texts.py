"""Images and texts decoded from the same z, and a comparison of both by an attribute classifier."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from mmgen.core.errors import UsageError
from mmgen.descriptions import TextVocabulary, caption_to_attributes
from mmgen.generation.classifiers import check_classifier, classify_images
from mmgen.generation.decode import decode_means

if TYPE_CHECKING:
    from mmgen.classifier import Classifier
    from mmgen.generation.trained_model import TrainedModel
    from mmgen.modalities.text import TextDescription

__all__ = [
    "DecodedTexts",
    "Verdicts",
    "split_words",
    "generated_text",
    "decode_with_text",
    "compare_with_classifier",
]

_CHUNK = 64


@dataclass(frozen=True)
class DecodedTexts:
    """Images and texts that a model decodes from n values of z, one of each per z.

    Attributes:
        images: Means of p(image|z), float32 [n, C, H, W].
        tokens: Draws from p(text|z), word codes int64 [n, T].
        probabilities: p(word_t | z, words before) for those draws, float32 [n, T, V + 1].
    """

    images: np.ndarray
    tokens: np.ndarray
    probabilities: np.ndarray


@dataclass(frozen=True)
class Verdicts:
    """Result of comparing the attributes that a classifier predicts for images with the texts drawn from the same z.

    Attributes:
        mismatches: Whether at least one predicted word differs, bool [n].
        remarks: The differing predictions in words, "" without any.
        correct_counts: Number of words that match, and number of words compared; the classifier's hints are not.
    """

    mismatches: np.ndarray
    remarks: list[str]
    correct_counts: tuple[int, int]


def generated_text(loaded: "TrainedModel") -> "TextDescription":
    """Return the specification of the text that a model generates together with images.

    Raises:
        UsageError: The model does not generate both.
    """
    text, main = loaded.text, loaded.observation
    if text is None or text.name not in loaded.model.generates or main is None or main.picture_shape is None:
        raise UsageError(
            f"{loaded.path} does not generate both images and text, which this figure needs; train a model of both, "
            "for example with mmgen train two-objects.h5 --preset cremer/two-objects-cpu"
        )
    return text


@torch.no_grad()
def decode_with_text(
    loaded: "TrainedModel", z: torch.Tensor, generator: torch.Generator, greedy: bool = False
) -> DecodedTexts:
    """Decode images, texts and their word distributions from z [n, D].

    Args:
        loaded: The model.
        z: Latents.
        generator: Randomness of the words.
        greedy: Whether to take the likeliest word at every step instead of a draw.
    """
    text, main = generated_text(loaded), loaded.observation
    assert main is not None
    model, tokens, tables = loaded.model, [], []
    for part in z.split(_CHUNK):
        words = model.sample(text.name, part, generator, greedy=greedy)
        tokens.append(words.cpu())
        tables.append(model.word_probabilities(text.name, part, words).float().cpu())
    images = decode_means(loaded, main.name, z).cpu().numpy()
    return DecodedTexts(images, torch.cat(tokens).numpy(), torch.cat(tables).numpy())


def compare_with_classifier(loaded: "TrainedModel", classifier: "Classifier | None", decoded: DecodedTexts) -> Verdicts:
    """Compare the attributes that a classifier predicts for images with the texts from the same z (CK Section 5.4).

    Generated words that do not follow from the picture, such as the relation, are hints for the classifier. A word in a
    position where it does not belong counts as wrong. Without a classifier, or for free text, no word is compared.
    """
    text, info = generated_text(loaded), loaded.attributes
    count = len(decoded.tokens)
    if classifier is None or info is None or not text.slots:
        return Verdicts(np.zeros(count, bool), [""] * count, (0, 0))
    check_classifier(info, classifier)
    codes = caption_to_attributes(decoded.tokens, text, info)
    seen = classify_images(classifier, decoded.images, codes)
    compared = [info.names.index(slot) for slot in text.slots if slot not in classifier.hints]
    differs = codes[:, compared] != seen[:, compared]
    remarks = []
    for row, different in zip(seen, differs, strict=True):
        words = [info.values[a][row[a]] for a, other in zip(compared, different, strict=True) if other]
        remarks.append(f"judge: {', '.join(words)}" if words else "")
    return Verdicts(differs.any(1), remarks, (int((~differs).sum()), differs.size))


def split_words(tokens: np.ndarray, text: TextVocabulary) -> list[str]:
    """Split a text [T] into its words."""
    return [text.vocabulary[int(code)] for code in tokens if code < len(text.vocabulary)]
