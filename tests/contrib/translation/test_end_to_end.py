"""Translation learned from few pairs: a language that is another one in disguise, and four languages in one model."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mmgen.artifacts import Dataset, DatasetWriter
from mmgen.contrib.translation.languages import complete_points, source_languages
from mmgen.evaluation import Evaluation, EvaluationSettings
from mmgen.generation import TrainedModel, load
from mmgen.metrics import evaluate
from mmgen.training.model_run import complete_settings, train_model

WORDS, LENGTH = 6, 3


def write_copies(path: Path, languages: tuple[str, ...], number: int) -> Path:
    """Sentences of three words; every language has its own words for the same things, in the same order."""
    codes = np.random.default_rng(0).integers(1, WORDS + 1, (number, LENGTH)).astype(np.uint16)
    with DatasetWriter(path, number, {"recipe": "none"}, seed=0, command="test") as writer:
        for name in languages:
            writer.add_text(name, ("<unk>", *(f"{name}{word}" for word in range(WORDS))), LENGTH)
        writer.write(0, dict.fromkeys(languages, codes))
        rows, held = np.arange(number), number // 10
        writer.add_splits("iid", train=rows[2 * held :], val=rows[:held], test=rows[held : 2 * held])
    return path


def train(data: Path, languages: tuple[str, ...], steps: int, **objective: Any) -> TrainedModel:
    model = data.with_suffix(".safetensors")
    values = {
        "objective": {"name": "mvae", "modalities": languages, "free_nats": 5.0, **objective},
        "model": {
            "latent_size": 12,
            "head_layers": 0,
            "text_network": {
                "embedding": 24, "hidden": 64, "head": 48, "dropout": 0.0, "word_dropout": 0.5, "batch_norm": False,
            },
        },
        "training": {"steps": steps, "batch": 64, "learning_rate": 5e-3, "schedule": "cosine", "device": "cpu"},
        "data": {"paired": 0.05, "least_paired_share": 0.3},
    }  # fmt: skip
    with Dataset.open(data) as dataset:
        settings = complete_settings(values, dataset)
    train_model(data, settings, model).run()
    return load(model)


def gains(loaded: TrainedModel, data: Path) -> dict[str, float]:
    asked = Evaluation(loaded, Dataset.open(data), None, ("own",), EvaluationSettings(samples=50, number=100))
    scores = evaluate(asked, ["translation", "sentences"]).run()
    return {score.quantity: score.value for score in scores if score.protocol != "bound"}


@pytest.mark.slow
def test_a_language_in_disguise_is_learned_from_one_pair_in_twenty(tmp_path: Path) -> None:
    """A sentence has an entropy of 3 ln 6 = 5.4 nats, and so has a pair; a translation through z has nearly none."""
    data, languages = write_copies(tmp_path / "copies.h5", ("one", "other"), 2000), ("one", "other")
    loaded = train(data, languages, 1500)
    found = gains(loaded, data)
    for source, target in itertools.permutations(languages):
        assert found[f"beside another sentence, {source} to {target}"] > 10
        assert 3.5 < found[f"gain, {source} to {target}"] < 6.2, "no sentence says more than there is to say"
        assert found[f"log p({target}|{source})"] > -1.8
        assert -6.2 < found[f"log p({source})"] < -LENGTH * math.log(WORDS) + 0.1, "no model beats the entropy"
    assert found["log p(one,other)"] < found["log p(one)"], "a pair is a density of more"
    assert found["log p(one,other)"] > found["log p(one)"] + found["log p(other)"] + 2, "and its parts belong together"
    assert found["KL(q(z|one,other))"] > found["KL(q(z|one))"] > 4, "two experts are sharper than one"
    with Dataset.open(data) as dataset:
        codes = dataset.read_values("one", dataset.split("iid", "test"))
    drawn = loaded.translate({"one": codes}, target="other").numpy()
    assert (drawn == codes).mean() > 0.9, "chance is a sixth"


@pytest.mark.slow
def test_four_languages_in_one_model(tmp_path: Path) -> None:
    """Any language, and any set of them, is read; each is translated into every other one."""
    languages = ("cs", "de", "en", "fr")
    data = write_copies(tmp_path / "four.h5", languages, 300)
    loaded = train(data, languages, 12, subsets=1)
    assert source_languages(loaded, "own") == list(languages)
    found = gains(loaded, data)
    for source, target in itertools.permutations(languages, 2):
        assert np.isfinite(found[f"gain, {source} to {target}"])
    assert {f"KL(q(z|{name}))" for name in (*languages, ",".join(languages))} <= found.keys()
    terms = [f"log p({name})" for name in (*languages, ",".join(languages))]
    assert found[" + ".join(terms)] == pytest.approx(sum(found[term] for term in terms))
    asked = Evaluation(loaded, Dataset.open(data), None, ("own",), EvaluationSettings(number=10))
    points = complete_points(asked)
    for size in (1, 2, 3, 4):
        for names in itertools.combinations(languages, size):
            q = loaded.model.posterior(points, names)
            assert torch.isfinite(q.mean).all()
