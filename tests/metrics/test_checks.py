"""What a metric cannot be asked of is refused in one sentence, before any work."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mmgen.artifacts import Dataset
from mmgen.core.errors import UsageError
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.metrics import log_likelihood
from mmgen.metrics._base import evaluate
from mmgen.modalities.image import ImageDescription
from tests.metrics.toy import Judge, loaded_painter, write_dataset
from tests.posteriors.stand_in import StandIn

EDGES = ImageDescription(name="edges", shape=(1, 1, 2), layout="bytes")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.open(write_dataset(tmp_path_factory.mktemp("toy") / "toy.h5"))


def asked(dataset: Dataset, loaded: Any, text_proposal: Any = None) -> Evaluation:
    settings = EvaluationSettings(samples=3, text_samples=4, number=4)
    return Evaluation(loaded, dataset, Judge(), ("prior",), settings, text_proposal)


@pytest.mark.parametrize("metric", ["log-likelihood", "active-units"])
@pytest.mark.parametrize("shape", [None, (1, 4, 2)], ids=["missing", "other shape"])
def test_images_that_the_dataset_lacks(
    dataset: Dataset, metric: str, shape: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """log p of all modalities would be that of those which the dataset happens to have, under the name of all."""
    loaded = loaded_painter(Path("m.safetensors"))
    name = "edges" if shape is None else "image"
    other = ImageDescription(name=name, shape=shape or (1, 1, 2), layout="bytes")
    loaded.images = loaded.observed = {"image": loaded.observation, name: other}
    monkeypatch.setattr(
        type(loaded.model),
        "modalities",
        dict.fromkeys(("image", "edges", "attributes"), SimpleNamespace(is_independent=True)),
    )
    monkeypatch.setattr(type(loaded.model), "has_posterior", lambda model, given: given != ("image",))
    loaded.encoder_inputs = ("image", "edges", "attributes")
    with pytest.raises(UsageError, match=rf"does not have the {name} that m.safetensors was trained with; give"):
        evaluate(asked(dataset, loaded), [metric])


def fitted(**changes: Any) -> Any:
    loaded = loaded_painter(Path("q.safetensors"))
    loaded.fitted = StandIn("aggregate", fitted=True)
    for name, value in changes.items():
        setattr(loaded, name, value)
    return loaded


def test_text_proposals_that_are_none(dataset: Dataset) -> None:
    model = loaded_painter(Path("m.safetensors"))
    evaluate(asked(dataset, model, fitted()), ["log-likelihood"])
    for other in (fitted(fitted=StandIn("aggregate", fitted=True, reads=())), fitted(fitted=None)):
        with pytest.raises(UsageError, match=r"--text-proposal got q.safetensors, expected a fitted q\(z \| y\); make"):
            evaluate(asked(dataset, model, other), ["log-likelihood"])
    other = fitted(model_header=SimpleNamespace(content_id="another"))
    with pytest.raises(UsageError, match=r"which was fitted to q.safetensors, expected one .* fitted to m.safetensors"):
        evaluate(asked(dataset, model, other), ["log-likelihood"])


def test_scores_name_the_file_that_log_p_of_the_description_was_drawn_from(dataset: Dataset) -> None:
    """As they name all other files that decide them: lists tell by it whether scores are of what is there."""
    evaluation = asked(dataset, loaded_painter(Path("m.safetensors")), fitted(header=SimpleNamespace(content_id="q")))
    named = {"text-proposal": "q"}
    assert log_likelihood._proposal_ids(evaluation, "log p(y)") == log_likelihood._proposal_ids(
        evaluation, "log p(x|y)"
    )
    assert log_likelihood._proposal_ids(evaluation, "log p(y)") == named
    assert log_likelihood._proposal_ids(evaluation, "log p(x)") == {}
    evaluation.text_proposal = None
    assert log_likelihood._proposal_ids(evaluation, "log p(y)") == {}
