"""BLEU of translations through z, beside copying the source and the commonest sentence.

References:
    BLEU: a Method for Automatic Evaluation of Machine Translation (Papineni, Roukos, Ward, Zhu, 2002),
    https://aclanthology.org/P02-1040
    A Call for Clarity in Reporting BLEU Scores (Post, 2018), arXiv:1804.08771: sacrebleu
"""

from collections import Counter
from collections.abc import Generator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from mmgen.contrib.translation.languages import (
    complete_points,
    draws_given,
    explain_missing_languages,
    languages,
    source_languages,
)
from mmgen.core.extras import how_to_install
from mmgen.core.seeding import numpy_generator
from mmgen.evaluation import needs
from mmgen.evaluation.settings import POINTS
from mmgen.metrics._base import Metric, Score
from mmgen.modalities.text import TextDescription
from mmgen.training.precision import autocast

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation
    from mmgen.generation import TrainedModel

__all__ = ["Bleu"]


_RESAMPLES = 100
_UNMATCHED = "<?>"
"""What a word outside the vocabulary becomes in all that is compared with translations, so that it never counts as
right."""


def _missing_library(evaluation: "Evaluation") -> str:
    """Return a reason if sacrebleu is not installed; else ""."""
    return "" if find_spec("sacrebleu") else f"needs sacrebleu; {how_to_install('translation')}"


def _unread_sentences(evaluation: "Evaluation") -> str:
    """Return a reason if no posterior reads a language; else ""."""
    if any(source_languages(evaluation.loaded, name) for name in evaluation.posteriors):
        return ""
    return f"needs a posterior of sentences, got {', '.join(evaluation.posteriors)}; use --posterior own"


class Bleu(Metric):
    """BLEU of the likeliest sentence at the mean of the draws of z given its translation, with two references.

    Words of the data are compared as they are (sacrebleu's ``tokenize=none``), rare ones as ``<unk>``, which never
    counts as right. The same of the source copied, and of the commonest training sentence for every source, are
    what a translation has to beat. Errors are by bootstrap over sentences.
    """

    unit = "BLEU"
    better = "higher"
    posteriors = "together"
    points = "seen"
    reads = ("samples", "posteriors", *POINTS)
    protocols: ClassVar = {
        "translated": "The likeliest sentence, word by word, at the mean of z.",
        "copied": "The source itself.",
        "commonest": "The commonest training sentence, for every source.",
    }
    columns: ClassVar = {"sentences": "sentences"}
    needs = (explain_missing_languages, _missing_library, _unread_sentences, needs.explain_ignored_guidance)

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        loaded, settings, points = evaluation.loaded, evaluation.settings, complete_points(evaluation)
        pairs = [
            (each, source, target)
            for each in evaluation.posteriors
            for source in source_languages(loaded, each)
            for target in languages(loaded)
            if target != source
        ]
        scores = []
        for place, (each, source, target) in enumerate(pairs):
            z = draws_given(loaded, each, source, points, settings.samples, settings.seed, settings.precision).mean(0)
            right = _words(loaded, target, points.values[target].cpu().numpy())
            guesses = {
                "translated": _translate(evaluation, target, z),
                "copied": _words(loaded, source, points.values[source].cpu().numpy(), _UNMATCHED),
                "commonest": [_commonest(evaluation, target)] * points.size,
            }
            for protocol, guessed in guesses.items():
                value, error = _bleu(guessed, right, settings.seed)
                scores.append(
                    self.score(
                        evaluation, value, error, len(right), quantity=f"BLEU, {source} to {target}",
                        posterior=each, protocol=protocol, details={"sentences": len(right)},
                    )
                )  # fmt: skip
            yield (place + 1) / len(pairs)
        return scores


def _translate(evaluation: "Evaluation", target: str, z: torch.Tensor) -> list[str]:
    """Return the likeliest sentences at z [B, D]."""
    loaded = evaluation.loaded
    sentences = []
    for part in z.split(1024):
        with autocast(loaded.device, evaluation.settings.precision):
            sentences.append(loaded.model.sample(target, part, greedy=True))
    return _words(loaded, target, torch.cat(sentences).cpu().numpy(), _UNMATCHED)


def _words(loaded: "TrainedModel", name: str, codes: np.ndarray, unknown: str = TextDescription.unknown) -> list[str]:
    described = loaded.observed[name]
    assert isinstance(described, TextDescription)
    sentences = (described.words(row).split() for row in codes)
    return [" ".join(unknown if word == described.unknown else word for word in each) for each in sentences]


def _commonest(evaluation: "Evaluation", name: str) -> str:
    """Return the commonest training sentence in a language; of several the first in the alphabet."""
    codes = evaluation.dataset.read(name, evaluation.rows("train"))
    counts = Counter(_words(evaluation.loaded, name, codes, _UNMATCHED))
    return min(counts, key=lambda sentence: (-counts[sentence], sentence))


def _bleu(guessed: Sequence[str], right: Sequence[str], seed: int) -> tuple[float, float]:
    """Return corpus BLEU from 0 to 100, and its standard error by bootstrap."""
    from sacrebleu.metrics.bleu import BLEU

    bleu = BLEU(tokenize="none", force=True)
    value = bleu.corpus_score(list(guessed), [list(right)]).score
    generator, resampled = numpy_generator(seed, "resampled sentences"), []
    for _ in range(_RESAMPLES if len(right) > 1 else 0):
        rows = generator.integers(0, len(right), len(right))
        resampled.append(bleu.corpus_score([guessed[row] for row in rows], [[right[row] for row in rows]]).score)
    return float(value), float(np.std(resampled)) if resampled else 0.0
