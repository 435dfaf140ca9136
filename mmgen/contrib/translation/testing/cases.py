"""Small sentences with translations for the checks of members."""

from pathlib import Path

import numpy as np

from mmgen.artifacts import DatasetWriter
from mmgen.evaluation import Evaluation
from mmgen.testing.metrics import SMALL_TRAINING, train_small, write_rows

CASES = ()


def small_translation_evaluation(folder: Path) -> Evaluation:
    """Train a model of sentences in two languages, with data, in ``folder``; return its evaluation."""
    values = {
        "objective": {"name": "mvae", "modalities": ("one", "other")},
        "model": {"latent_size": 2, "text_network": {"embedding": 4, "hidden": 8, "head": 8}},
        "training": SMALL_TRAINING,
    }
    return train_small(folder, _write_sentences, values)


def _write_sentences(path: Path, number: int = 120) -> None:
    """Write a dataset of sentences of one to three words with translations, word by word."""
    vocabularies = {name: ("<unk>", *(f"{name}{word}" for word in range(5))) for name in ("one", "other")}
    codes = 1 + np.random.default_rng(0).integers(0, 5, (number, 3))
    codes = np.where(np.arange(3) < 1 + np.arange(number)[:, None] % 3, codes, 6).astype(np.uint16)

    def add(writer: DatasetWriter) -> None:
        for name, vocabulary in vocabularies.items():
            writer.add_text(name, vocabulary, 3)

    write_rows(path, dict.fromkeys(vocabularies, codes), add)


EVALUATIONS = (small_translation_evaluation,)
