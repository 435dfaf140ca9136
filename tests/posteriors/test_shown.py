"""What training kept back no fit beside the model learns from: few labels, few pairs, captions too."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import mmgen.posteriors._fit as fit
from mmgen.artifacts import Dataset, Latents, find_parent, read_checkpoint, read_latents
from mmgen.core.errors import DataError
from mmgen.core.notation import UNKNOWN
from mmgen.posteriors import complete_fit_settings, is_finished_fit
from mmgen.posteriors._encode import LatentRows
from mmgen.settings.config import merge
from mmgen.training.batches import DatasetRows
from mmgen.training.labelling import choose_labelled_examples
from mmgen.training.model_run import complete_settings, load_model, train_model
from mmgen.training.pairing import choose_paired_examples
from tests.models.test_vlvae import SMALL, folder
from tests.program import exit_code
from tests.training.test_labelling import SIZE, TRAIN, write
from tests.worlds import added

__all__ = ["folder"]  # a fixture: captions of squares and a model of them

TINY: dict[str, Any] = {
    "model": {"latent_size": 2, "hidden": 8, "image_network": {"name": "mlp", "hidden": [8]}},
    "training": {"steps": 1, "batch": 8, "validate_every": 1, "device": "cpu"},
}
LABELLED = {"labelled": 12, "labelled_seed": 4}
HELD_OUT = 20


@pytest.fixture(scope="module")
def bars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("data") / "bars.h5", np.arange(SIZE) % 3)


def trained(path: Path, out: Path, data: dict[str, Any], model: dict[str, Any] | None = None, **objective: Any) -> Path:
    values = merge({**TINY, "data": data, "objective": {"name": "elbo", **objective}}, {"model": model or {}})
    with Dataset.open(path) as dataset:
        settings = complete_settings(values, dataset)
    train_model(path, settings, out).run()
    return out


def fitted(model: Path, path: Path, base: Path | None = None, name: str = "a", **aggregate: Any) -> Path:
    """A fit of two steps beside the model."""
    values = {
        "aggregate": {"family": {"name": "gaussian"}, **aggregate},
        "training": {"steps": 2, "batch": 16, "validate_every": 1, "device": "cpu"},
    }
    out = model.with_name(f"{name}.safetensors")
    settings = complete_fit_settings(values, load_model(model)[1])
    for work in fit.fit_aggregate(model, path, settings, out, base_path=base):
        work.run()
    return out


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[LatentRows]:
    """The rows that fits have learned from and validated on, in turn."""
    found: list[LatentRows] = []

    class Recorded(LatentRows):
        def __init__(self, latents: Latents, chosen: np.ndarray, *others: Any) -> None:
            super().__init__(latents, chosen, *others)
            self.rows = latents.rows[chosen]
            found.append(self)

    monkeypatch.setattr(fit, "LatentRows", Recorded)
    return found


MVAE = {"name": "mvae"}
NOTHING, TRUE = {"given": "nothing"}, {"target": {"name": "true"}}
FEW = {"paired": 0.1}


@pytest.mark.parametrize(
    ("objective", "data", "aggregate", "described", "others"),
    [
        ({}, LABELLED, {}, 12, 0),
        *(({}, LABELLED, {"target": {"name": name}}, 12, 0) for name in added("TARGETS_OF_DESCRIPTIONS")),
        ({}, LABELLED, TRUE, 12, 0),
        ({}, LABELLED, {"examples": 5}, 5, 0),
        ({"name": "telbo"}, LABELLED, {}, 12, 0),
        (MVAE, LABELLED, {}, 12, 108),
        (MVAE, {**LABELLED, "labelled_share": 0.5}, {}, 108, 108),
        (MVAE, LABELLED, TRUE, 12, 0),
        ({}, FEW, {}, 12, 0),
        (MVAE, FEW, {}, 12, 108),
        # Of a model of pictures alone no label was kept back, as its training says; nor where none is to be.
        ({"modalities": ["image"]}, LABELLED, {}, TRAIN, 0),
        ({}, {}, {}, TRAIN, 0),
    ],
)
def test_a_fit_is_given_the_descriptions_that_training_showed(
    objective: dict[str, Any],
    data: dict[str, Any],
    aggregate: dict[str, Any],
    described: int,
    others: int,
    bars: Path,
    tmp_path: Path,
    seen: list[LatentRows],
) -> None:
    model = trained(bars, tmp_path / "m.safetensors", data, **objective)
    latents = read_latents(find_parent(fitted(model, bars, **aggregate), "latents"))
    learned, validation = seen
    known = (learned.columns["attributes"] != UNKNOWN).all(1).numpy()
    assert (int(known.sum()), int((~known).sum())) == (described, others)
    with Dataset.open(bars) as dataset:
        source = DatasetRows(dataset, dataset.split("iid", "train"), torch.device("cpu"))
        codes = source.read_stored("attributes", torch.arange(TRAIN)).numpy()
        shown = set(range(TRAIN))
        if described < TRAIN:
            chosen = (
                choose_labelled_examples(codes, 12, 4) if "labelled" in data else choose_paired_examples(TRAIN, 0.1, 0)
            )
            shown = set(chosen.tolist())
    assert set(learned.rows[known].tolist()) <= shown and len(set(learned.rows[known])) == min(described, len(shown))
    if len(validation) > 1:  # one alone with --examples 5
        assert len(validation) == HELD_OUT and (validation.columns["attributes"] != UNKNOWN).all()
    told = latents.columns["attributes"][~np.isin(latents.rows, [*shown, *range(TRAIN, SIZE)])]
    assert (told == UNKNOWN).all(), "the file of encodings tells nothing more"
    assert latents.header.settings.get("described") == (None if described == TRAIN else 12)


@pytest.mark.parametrize(("name", "count"), [("elbo", TRAIN), ("mvae", TRAIN), ("telbo", 12)])
def test_a_learned_prior_has_all_that_can_be_encoded(
    name: str, count: int, bars: Path, tmp_path: Path, seen: list[LatentRows]
) -> None:
    """A picture alone is enough but where q(z | image, attributes) is a network that has seen no unknown attributes."""
    fitted(trained(bars, tmp_path / "m.safetensors", LABELLED, name=name), bars, **NOTHING)
    assert [len(rows) for rows in seen] == [count, HELD_OUT]


@pytest.mark.slow_cases("q_agg-telbo")
@pytest.mark.parametrize("name", ["elbo", "mvae", "telbo"])
@pytest.mark.parametrize("aggregate", [{}, TRUE, NOTHING], ids=["q_agg", "q_true", "q(z)"])
def test_labels_that_were_kept_back_change_nothing(
    name: str, aggregate: dict[str, Any], bars: Path, tmp_path: Path
) -> None:
    """The same weights bit for bit where they are taken away: from descriptions, encodings and first weights."""
    codes = np.arange(SIZE) % 3
    kept = choose_labelled_examples(codes[:TRAIN, None].astype(np.uint8), 12, 4)
    codes[np.setdiff1d(np.arange(TRAIN), kept)] = UNKNOWN
    bare = write(tmp_path / "bare.h5", codes)
    model = trained(bars, tmp_path / "m.safetensors", LABELLED, name=name)
    one, other = (
        read_checkpoint(fitted(model, path, name=path.stem, **aggregate), "aggregate")[1] for path in (bars, bare)
    )
    assert one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


def test_captions_are_kept_back_too(folder: Path, tmp_path: Path, seen: list[LatentRows]) -> None:
    path = folder / "d.h5"
    model = trained(path, tmp_path / "m.safetensors", FEW, SMALL, modalities=["image", "text"])
    latents = read_latents(find_parent(fitted(model, path), "latents"))
    shown = choose_paired_examples(320, 0.1, 0)
    assert sorted(seen[0].rows.tolist()) == sorted(shown.tolist()) and len(seen[1]) == 40
    hidden = ~np.isin(latents.rows, [*shown, *range(320, 400)])
    assert (latents.columns["text"][hidden] == 5).all() and (latents.columns["text"][~hidden] < 5).all()
    assert (latents.columns["attributes"][hidden] == UNKNOWN).all(), "they say what the captions do"


@pytest.mark.slow
def test_too_few_descriptions_are_refused(bars: Path, tmp_path: Path) -> None:
    for objective, data, count, way in (
        (MVAE, {"paired": 0.0}, 0, "use --given nothing"),
        (MVAE, {"labelled": 1}, 1, "use --given nothing"),
        ({"name": "telbo"}, {"labelled": 1}, 1, "fit to a model that was trained with more"),
    ):
        model = trained(bars, tmp_path / "m.safetensors", data, **objective)
        with pytest.raises(
            DataError, match=f"descriptions of only {count} of 120 training examples, .* at least 2; {way}"
        ):
            fitted(model, bars)
        (tmp_path / "m.safetensors").unlink()
        (tmp_path / "m.last.safetensors").unlink()
    assert not list(tmp_path.glob("*latents*")), "before anything slow"


@pytest.mark.slow
def test_the_command_says_how_many_there_are(bars: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = {}
    for name, objective, options in (
        ("elbo", {}, []),
        ("mvae", MVAE, []),
        ("prior", MVAE, ["--given", "nothing"]),
        ("needy", {"name": "telbo"}, ["--given", "nothing"]),
        ("all", {"modalities": ["image"]}, []),
    ):
        model = trained(bars, tmp_path / f"{name}.safetensors", LABELLED, **objective)
        assert exit_code("fit-aggregate", str(model), "--steps", "1", "--device", "cpu", *options) == 0
        said[name] = " ".join(capsys.readouterr().err.split())
    given = (
        "This fit is given the descriptions of 12 of 120 training examples, those that the model was trained with, and"
    )
    assert f"{given} leaves the others out." in said["elbo"]
    assert f"{given} learns from the others without theirs." in said["mvae"]
    assert "This fit has 12 of 120 training examples: encodings of this model need" in said["needy"]
    assert all("This fit" not in said[name] for name in ("prior", "all"))


def test_a_guided_fit_has_the_descriptions_of_its_base(bars: Path, tmp_path: Path, seen: list[LatentRows]) -> None:
    model = trained(bars, tmp_path / "m.safetensors", LABELLED)
    base = fitted(model, bars)
    fitted(model, bars, base, "guided", target={"name": "guided", "guidance": 2.0})
    assert [len(rows) for rows in seen] == [12, HELD_OUT] * 2
    base.with_name("a.last.safetensors").unlink()
    assert is_finished_fit(base, fit.load_aggregate(base)[1], model, bars)
