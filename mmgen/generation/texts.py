"""Images and texts decoded from encodings or draws, and their comparison by the attribute classifier."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from mmgen.core.errors import UsageError
from mmgen.descriptions import TextVocabulary, codes_of_caption
from mmgen.generation.decode import means
from mmgen.generation.judge import check_judge, judge_images

if TYPE_CHECKING:
    from mmgen.classifier import Classifier
    from mmgen.generation.trained_model import TrainedModel
    from mmgen.modalities.text import TextDescription

__all__ = [
    "DecodedTexts",
    "Verdicts",
    "words_of",
    "generated_text",
    "decode_with_text",
    "verdicts",
]

_CHUNK = 64


@dataclass(frozen=True)
class DecodedTexts:
    """Images and texts decoded from n latents.

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
    """The classifier's predictions for images, compared with the texts that came with them.

    Attributes:
        wrong: Bool [n]: at least one word that the judge says is another.
        remarks: What it sees instead, "" where it agrees.
        right: Words that match, and words compared; those that the judge is told are not.
    """

    wrong: np.ndarray
    remarks: list[str]
    right: tuple[int, int]


def generated_text(loaded: "TrainedModel") -> "TextDescription":
    """Return the text modality that a model generates.

    Raises:
        UsageError: It generates none, or no images.
    """
    text = loaded.text
    if text is None or text.name not in loaded.model.generates or loaded.observation is None:
        raise UsageError(
            f"{loaded.path} does not generate images and text, which this figure shows; train a model of both, "
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
        greedy: The likeliest word at every step instead of a draw.
    """
    text, main = generated_text(loaded), loaded.observation
    assert main is not None
    model, tokens, tables = loaded.model, [], []
    for part in z.split(_CHUNK):
        words = model.sample(text.name, part, generator, greedy=greedy)
        tokens.append(words.cpu())
        tables.append(model.word_probabilities(text.name, part, words).float().cpu())
    images = means(loaded, main.name, z).cpu().numpy()
    return DecodedTexts(images, torch.cat(tokens).numpy(), torch.cat(tables).numpy())


def verdicts(loaded: "TrainedModel", judge: "Classifier | None", spoken: DecodedTexts) -> Verdicts:
    """Compare predicted attributes of images with the texts generated from the same z (CK Section 5.4).

    The judge is told the words that do not follow from the picture, the relation, as they were generated. A word that
    is none of its position's is wrong. Without a judge, or for free text, nothing is wrong.
    """
    text, info = generated_text(loaded), loaded.attributes
    count = len(spoken.tokens)
    if judge is None or info is None or not text.slots:
        return Verdicts(np.zeros(count, bool), [""] * count, (0, 0))
    check_judge(info, judge)
    codes = codes_of_caption(spoken.tokens, text, info)
    seen = judge_images(judge, spoken.images, codes)
    compared = [info.names.index(slot) for slot in text.slots if slot not in judge.hints]
    differs = codes[:, compared] != seen[:, compared]
    remarks = []
    for row, different in zip(seen, differs, strict=True):
        words = [info.values[a][row[a]] for a, other in zip(compared, different, strict=True) if other]
        remarks.append(f"judge: {', '.join(words)}" if words else "")
    return Verdicts(differs.any(1), remarks, (int((~differs).sum()), differs.size))


def words_of(tokens: np.ndarray, text: TextVocabulary) -> list[str]:
    """Split a text [T] into its words."""
    return [text.vocabulary[int(code)] for code in tokens if code < len(text.vocabulary)]
