"""Precision, recall and FID of models whose pictures are known, against real pictures of the same descriptions."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mmgen.artifacts import Dataset
from mmgen.core.batch import Batch
from mmgen.evaluation.distances import kernel_distance
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.evaluation.real import LEAST, assign_halves
from mmgen.evaluation.training_pictures import read_sources
from mmgen.metrics._base import evaluate
from mmgen.modalities.image import ImageDescription
from mmgen.results.score import Score
from tests.metrics.toy import INFO, Judge, Painter, loaded_painter
from tests.posteriors.stand_in import stand_ins
from tests.small_data import write_small

NUMBER, PER_SOURCE = 6000, 2
EACH = 300
"""Pictures of each description in each half."""
MEASURES = ("precision", "recall", "fid", "kid")


def write_dataset(path: Path, number: int = NUMBER) -> Path:
    """Pictures [1, 1, 4]: 60 times the codes, then two uniform grey levels; two pictures of each source."""
    codes = np.stack([np.arange(number) % 3, np.arange(number) // 3 % 2], 1).astype(np.uint8)
    free = np.random.default_rng(0).integers(0, 256, (number, 2))
    images = np.concatenate([60 * codes, free], 1).astype(np.uint8)[:, None, None]
    # Of one description, so that both pictures of a source could meet in one.
    source = np.arange(number) % 6 + 6 * (np.arange(number) // 6 // PER_SOURCE)
    parts = (number // 36 * 12, 24)  # a whole number of sources
    values, factors = {"image": images, "attributes": codes}, {"source": source.astype(np.uint32)}
    return write_small(path, values, INFO, parts=parts, factors=factors)


class Free(Painter):
    """z is the picture itself: codes, then two grey levels."""

    latent_size = 4

    def mean(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        picture = torch.cat([z[..., :2].round() * 60 / 255, (255 * z[..., 2:]).round() / 255], -1)
        return super().mean(name, z[..., :2]) if name == "attributes" else picture[..., None, None, :]

    def sample(self, name: str, z: Tensor, generator: Any = None, condition: Batch | None = None) -> Tensor:
        return z[..., :2].round().long() if name == "attributes" else self.mean(name, z)


def _free(draw: Any) -> Any:
    def sampler(condition: Batch, n: int, generator: Any) -> Tensor:
        codes = condition.values["attributes"].float().expand(n, condition.size, 2)
        opened = torch.stack([torch.randint(0, v, codes.shape[:2], generator=generator) for v in INFO.sizes], -1)
        known = condition.present["attributes"].expand(n, condition.size, 2)
        grey = draw(torch.rand(n, condition.size, 2, generator=generator))
        return torch.cat([torch.where(known, codes, opened.float()), grey], -1)

    return sampler


SAMPLERS = {
    "perfect": _free(lambda grey: grey),
    "repeated": _free(lambda grey: torch.full_like(grey, 0.5)),
    "narrow": _free(lambda grey: grey * torch.tensor([0.5, 1.0])),
    "noisy": _free(lambda grey: grey * 3 - 1),
}


def wrong(condition: Batch, n: int, generator: Any) -> Tensor:
    """Perfect pictures of the next digit."""
    z = SAMPLERS["perfect"](condition, n, generator)
    return torch.cat([(z[..., :1] + 1) % 3, z[..., 1:]], -1)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.open(write_dataset(tmp_path_factory.mktemp("real") / "toy.h5"))


def asked(dataset: Dataset, *posteriors: str, **settings: Any) -> Evaluation:
    loaded = loaded_painter(Path("m.safetensors"))
    loaded.model, loaded.observation = Free(), ImageDescription(shape=(1, 1, 4), layout="bytes")
    loaded.posteriors = stand_ins([*SAMPLERS, "wrong"], {**SAMPLERS, "wrong": wrong}.__getitem__)
    chosen = EvaluationSettings(**{"draws": EACH, "dropped": (0,), **settings})
    return Evaluation(loaded, dataset, Judge(), posteriors, chosen)


@pytest.fixture(scope="module")
def scores(dataset: Dataset) -> dict[tuple[str, str, str], Score]:
    """By metric, posterior, protocol."""
    everything = asked(dataset, *SAMPLERS, "wrong")
    return {(s.metric, s.posterior, s.protocol): s for s in evaluate(everything, MEASURES).run()}


def test_a_perfect_model_gets_what_real_halves_get(scores: dict[tuple[str, str, str], Score]) -> None:
    for protocol in ("description", "pooled"):
        for metric in ("precision", "recall"):
            score = scores[metric, "perfect", protocol]
            error = np.hypot(score.stderr or 0, score.details["ceiling_stderr"])
            assert abs(score.value - score.details["ceiling"]) < 3 * error
            assert score.details["below_ceiling"] == pytest.approx(score.details["ceiling"] - score.value)
            assert 70 < score.details["ceiling"] <= 100
        fid = scores["fid", "perfect", protocol]
        assert 0 < fid.value < 0.02 * fid.details["real_spread"]
        error = np.hypot(fid.stderr or 0, fid.details["ceiling_stderr"])
        assert abs(fid.value - fid.details["ceiling"]) < 4 * error
        assert abs(fid.details["extrapolated"]) < 4 * fid.details["extrapolated_stderr"]
        kid = scores["kid", "perfect", protocol]
        assert abs(kid.value) < 4 * np.hypot(kid.stderr or 0, 0.01) and abs(kid.details["ceiling"]) < 0.1
        assert scores["kid", "wrong", protocol].value > 20 * abs(kid.value) or protocol == "pooled"
        assert scores["kid", "repeated", protocol].value > 4 * (scores["kid", "repeated", protocol].stderr or 0)


def test_real_pictures_are_what_they_are_said_to_be(scores: dict[tuple[str, str, str], Score]) -> None:
    """Six descriptions, 300 test pictures of each in each half; uniform grey levels have variance 1/12 each."""
    score = scores["fid", "perfect", "description"]
    assert score.n == 6 * EACH
    assert score.details["real"] == 2 * 6 * EACH
    assert (score.details["queries"], score.details["queries_left_out"]) == (6, 0)
    assert (score.details["images_per_query"], score.details["features"]) == (EACH, 4)
    assert score.details["real_spread"] == pytest.approx(2 / 12, rel=0.05)
    assert score.given == 2
    assert set(score.ids) == {"model", "dataset", "judge"}
    assert score.conditions["part"] == "test"


def test_one_perfect_picture_again_and_again(scores: dict[tuple[str, str, str], Score]) -> None:
    """Right, hence correctness 100 %; precise; but it recalls nothing, and its FID is the whole spread of real ones."""
    assert scores["precision", "repeated", "description"].value > 90
    assert scores["recall", "repeated", "description"].value == 0
    fid = scores["fid", "repeated", "description"]
    assert fid.details["extrapolated"] == pytest.approx(2 / 12, rel=0.1)
    assert fid.value > 20 * fid.details["ceiling"]


def test_half_of_the_variety(scores: dict[tuple[str, str, str], Score]) -> None:
    """One grey level in [0, 1/2]: all precise, half recalled, and FID (1/4)^2 + (1 - 1/2)^2 / 12.

    Balls that hold 3 of 300 points on half of the square reach Gamma(3.5) / Gamma(3) / sqrt(600 pi) = 0.038 further.
    """
    for protocol in ("description", "pooled"):
        precision, recall = (scores[metric, "narrow", protocol] for metric in ("precision", "recall"))
        assert precision.value > precision.details["ceiling"] - 5
        assert recall.value == pytest.approx(recall.details["ceiling"] * (0.5 + 0.038), abs=5)
        fid = scores["fid", "narrow", protocol]
        assert fid.details["extrapolated"] == pytest.approx(1 / 16 + 1 / 48, rel=0.15)


def test_too_much_variety_is_not_precise(scores: dict[tuple[str, str, str], Score]) -> None:
    """Uniform over nine times the area."""
    assert scores["precision", "noisy", "description"].value < 35
    assert scores["recall", "noisy", "description"].value > 60


def test_pictures_of_other_descriptions(scores: dict[tuple[str, str, str], Score]) -> None:
    """Together they are perfect, so that FID as usual sees nothing; of their descriptions none is right."""
    assert scores["precision", "wrong", "description"].value < 60
    pooled = scores["precision", "wrong", "pooled"]
    assert pooled.value > pooled.details["ceiling"] - 6
    assert scores["fid", "wrong", "pooled"].value < 0.02
    # (60 / 255)^2 twice and (120 / 255)^2 once, on average over digits
    expected = (2 * (60 / 255) ** 2 + (120 / 255) ** 2) / 3
    assert scores["fid", "wrong", "description"].details["extrapolated"] == pytest.approx(expected, rel=0.05)


def test_open_attributes_vary_as_in_the_data(dataset: Dataset) -> None:
    found = {(s.metric, s.given): s for s in evaluate(asked(dataset, "perfect", dropped=(1, 2)), MEASURES).run()}
    for given in (0, 1):
        precision = found["precision", given]
        assert precision.protocol == "description"  # pictures have several descriptions: none are pooled
        assert precision.value == pytest.approx(precision.details["ceiling"], abs=12)
    assert found["fid", 0].stderr is None  # a single description
    assert found["fid", 1].stderr is not None


def test_descriptions_with_few_real_pictures_are_left_out_and_said_to_be(dataset: Dataset) -> None:
    """24 validation pictures, four of each description: none by itself, all together."""
    found = evaluate(asked(dataset, "perfect", part="val", dropped=(0, 1)), ["precision"]).run()
    # "Of a digit" has 8 of which 4 are in each half, "of a size" 12; only fewer than LEAST in a half are too few.
    assert LEAST > 6
    assert [(score.protocol, score.given, score.conditions["part"]) for score in found] == [("pooled", 2, "val")]
    assert found[0].details["real"] == 24


def test_sources_stay_in_one_half(dataset: Dataset) -> None:
    rows = np.random.default_rng(1).permutation(dataset.split("iid", "test"))
    source = read_sources(dataset, rows)
    half = assign_halves(source)
    assert len(np.unique(source)) == len(rows) // PER_SOURCE
    for number in np.unique(source):
        assert len(set(half[source == number])) == 1
    assert abs(half.mean() - 0.5) < 0.01
    alone = read_sources(SimpleNamespace(read_sources=lambda rows: None), rows)  # type: ignore[arg-type]  # a dataset without sources
    assert len(np.unique(alone)) == len(rows)


def test_real_halves_are_as_far_apart_as_new_draws_are_where_words_are_open(dataset: Dataset) -> None:
    """The kernel distance of two halves is 0 on average over seeds; halves that divide open words evenly are nearer."""
    values = []
    for seed in range(60):
        evaluation = asked(dataset, "perfect", draws=9, dropped=(1,), seed=seed)
        real = evaluation.real_pictures.pictures_of(evaluation.questions.make_queries(1))
        codes = real.features[:, :2] / real.features[:, :2].std(0)  # of what is open, and not of what varies besides
        values.append(
            np.mean([kernel_distance(codes[one], codes[other]) for one, other in zip(*real.places, strict=True)])
        )
    assert abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(len(values))


def test_the_same_seed_gives_the_same_scores(dataset: Dataset) -> None:
    """Whatever was asked before; another seed chooses other pictures."""
    first = evaluate(asked(dataset, "perfect", draws=20), ["precision"]).run()
    again = evaluate(asked(dataset, "perfect", draws=20), ["fid", "recall", "precision"]).run()
    assert [s.value for s in first] == [s.value for s in again if s.metric == "precision"]
    other = evaluate(asked(dataset, "perfect", draws=20, seed=1), ["precision"]).run()
    assert [s.details["ceiling"] for s in first] != [s.details["ceiling"] for s in other]


def test_many_features_are_measured_along_the_main_directions_of_training_pictures(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mmgen.metrics.fid as module

    (whole,) = (s for s in evaluate(asked(dataset, "narrow"), ["fid"]).run() if s.protocol == "description")
    assert (whole.details["components"], whole.details["variance_kept"]) == (4, 1.0)
    monkeypatch.setattr(module, "_MOST", 3)
    (fewer,) = (s for s in evaluate(asked(dataset, "narrow"), ["fid"]).run() if s.protocol == "description")
    assert fewer.details["components"] == 3
    # Variances: digits (60 / 255)^2 2/3, sizes (60 / 255)^2 / 4, grey levels 1/12 twice: the sizes go.
    lost = (60 / 255) ** 2 / 4
    assert fewer.details["variance_kept"] == pytest.approx(
        1 - lost / (lost + (60 / 255) ** 2 * 2 / 3 + 1 / 6), abs=0.01
    )
    assert fewer.value == pytest.approx(whole.value, rel=0.02)  # sizes are always right
