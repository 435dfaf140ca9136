"""Attribute classifiers of drawn pictures (``--judge``): search, checks and predictions."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from mmgen.artifacts import Dataset, find_record, read_header
from mmgen.classifier import find_best_classifier
from mmgen.core.errors import MissingParentError, UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions import TextVocabulary, Vocabulary, caption_to_attributes
from mmgen.generation.decode import decode_means

if TYPE_CHECKING:
    import torch

    from mmgen.classifier import Classifier
    from mmgen.generation.trained_model import TrainedModel
    from mmgen.modalities import Description
    from mmgen.modalities.text import TextDescription


def classifier_reads_samples(loaded: "TrainedModel") -> bool:
    """Return whether attribute classifiers read pixels sampled from p(image | z), as for binary data, not its means."""
    return loaded.observation is not None and loaded.observation.classifier_reads_samples


def has_mismatch(description_codes: np.ndarray, predicted_codes: np.ndarray) -> np.ndarray:
    """Return whether predicted attribute codes uint8 [..., A] contradict those of a description, bool [...]."""
    return np.asarray(((description_codes != predicted_codes) & (description_codes != UNKNOWN)).any(-1))


def format_mismatches(description_codes: np.ndarray, predicted_codes: np.ndarray, vocabulary: Vocabulary) -> str:
    """Format the classifier's predictions [A] that contradict a description [A]: "judge: 5, small", or "" if none does.

    Args:
        description_codes: Codes uint8 [A].
        predicted_codes: Codes uint8 [A].
        vocabulary: Names and values of the attributes.
    """
    differing = [
        words[prediction]
        for words, code, prediction in zip(vocabulary.values, description_codes, predicted_codes, strict=True)
        if code not in (UNKNOWN, prediction) and prediction < len(words)
    ]
    return f"judge: {', '.join(differing)}" if differing else ""


def check_classifier(vocabulary: Vocabulary | None, classifier: "Classifier", described: "Description | None") -> None:
    """Raise an error if a classifier's attributes or their values differ from those of the model's vocabulary.

    Args:
        vocabulary: The model's attributes.
        classifier: The classifier.
        described: The modality that it is to read; None for any.

    Raises:
        UsageError: Its attributes or their values differ, or it was trained on another modality.
    """
    if described is not None and classifier.described.name != described.name:
        raise UsageError(
            f"the judge reads {classifier.described.name}, expected one that reads {described.name}; train one with "
            f"mmgen train-classifier --modality {described.name} on this model's dataset"
        )
    if vocabulary is not None and (list(classifier.names), list(classifier.values)) != (
        list(vocabulary.names),
        list(vocabulary.values),
    ):
        raise UsageError(
            f"the judge was trained on the attributes {', '.join(classifier.names)}, expected "
            f"{', '.join(vocabulary.names)} with the same values; train a judge on this model's dataset with "
            "mmgen train-classifier"
        )


def classify_images(classifier: "Classifier", images: np.ndarray, hints: np.ndarray) -> np.ndarray:
    """Predict attribute codes [n, A] of images [n, C, H, W]; ``hints`` are codes [n, A] that the classifier reads."""
    import torch

    pixels = torch.from_numpy(images).to(classifier.device)
    return np.asarray(classifier.predict(pixels, torch.from_numpy(hints)).cpu().numpy())


def load_classifiers(paths: Sequence[Path], device: "str | torch.device") -> "list[Classifier]":
    """Load attribute classifiers from their files; refuse those that read different attributes as hints.

    Raises:
        UsageError: Two paths name the same classifier, or two classifiers have different hints.
    """
    from mmgen.classifier import load_classifier

    classifiers: list[Classifier] = []
    for path in paths:
        classifier = load_classifier(path, device)
        if classifier.content_id in [earlier.content_id for earlier in classifiers]:
            raise UsageError(f"--judge got {path} twice, expected each judge once; leave one out")
        if classifiers and classifier.hints != classifiers[0].hints:
            hints, first_hints = (", ".join(each.hints) or "none" for each in (classifier, classifiers[0]))
            raise UsageError(
                f"--judge got {path} with the hints {hints} and {paths[0]} with the hints {first_hints}, expected "
                "judges with the same hints; measure with each judge separately"
            )
        classifiers.append(classifier)
    return classifiers


def format_accuracy(classifier: "Classifier") -> str:
    """Format the share of held-out images of which a classifier predicts each attribute correctly, in percent."""
    return (
        ", ".join(f"{name} {value:.1f} %" for name, value in classifier.accuracy.items()) or "accuracy never measured"
    )


def find_classifier(model: Path, neighbours: Sequence[Path] = (), preferred_ids: Collection[str] = ()) -> Path | None:
    """Find the file of a classifier of a model's main modality, trained on its dataset; return None if there is none.

    Args:
        model: The model's checkpoint.
        neighbours: Files whose folders are searched too, after the model's own and before the current one.
        preferred_ids: Content ids of classifiers that are preferred, such as those behind the scores of a report.

    Raises:
        ArtifactError: ``model`` is not the file of a model with a dataset.
    """
    dataset = find_record(model, "dataset")
    folders = [model.parent, *(path.parent for path in neighbours), (model.parent / dataset.path).parent, Path.cwd()]
    data = read_header(model).settings.get("data")
    main = str(data.get("main") or "") if isinstance(data, dict) else ""
    return find_best_classifier(dataset.content_id, folders, preferred_ids, main)


def find_dataset_classifier(dataset: Dataset, folders: Sequence[Path], modality: str = "") -> Path:
    """Find in ``folders`` the file of the most accurate attribute classifier that was trained on a dataset.

    Args:
        dataset: The dataset.
        folders: Where to look.
        modality: Name of the modality that it reads; any if empty.

    Raises:
        MissingParentError: There is none; the message names the command that trains one.
    """
    path = find_best_classifier(dataset.header.content_id, folders, modality=modality)
    if path is None:
        option = "" if modality in ("", *[*dataset.observed][:1]) else f" --modality {modality}"
        raise MissingParentError(
            f"no judge of {dataset.path} found in {', '.join(dict.fromkeys(map(str, folders)))}; "
            f"train one with: mmgen train-classifier {dataset.path}{option}, or name one with --judge"
        )
    return path


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
    check_classifier(info, classifier, loaded.observation)
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
