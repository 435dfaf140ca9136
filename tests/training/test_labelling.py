"""Few labels: which examples keep theirs is fixed, balanced and reproducible, and nothing ever sees the others'."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import mmgen
from mmgen.artifacts import Dataset, read_checkpoint
from mmgen.core.errors import DataError, SettingsError, UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.figures.plots._base import draw_plot
from mmgen.training.batches import DatasetRows
from mmgen.training.labelling import LabelledRows, choose_labelled_examples
from mmgen.training.model_run import ExperimentSettings, complete_settings, train_model
from mmgen.training.pairing import PairedRows, describe_rows, make_training_rows
from tests.program import exit_code
from tests.small_data import write_small

SIZE, TRAIN = 160, 120
TINY: dict[str, Any] = {
    "model": {"name": "semi-supervised-vae", "latent_size": 3, "image_network": {"name": "mlp", "hidden": [8]}},
    "objective": {"name": "semi-supervised"},
    "data": {"labelled": 12, "labelled_seed": 4, "labelled_share": 0.5},
    "training": {"steps": 12, "batch": 16, "validate_every": 4, "validation_examples": 8, "device": "cpu"},
}


def write(path: Path, codes: np.ndarray) -> Path:
    """Pictures of 6x6 in which one of three bars is bright, and labels as they are given."""
    generator = np.random.default_rng(0)
    place = np.arange(SIZE) % 3
    images = generator.integers(0, 40, (SIZE, 1, 6, 6))
    for bar in range(3):
        images[place == bar, 0, :, 2 * bar : 2 * bar + 2] += 200
    values = {"image": images.astype(np.uint8), "attributes": codes[:, None].astype(np.uint8)}
    return write_small(path, values, {"place": ["left", "middle", "right"]}, parts=(TRAIN, 20), recipe="bars")


@pytest.fixture(scope="module")
def bars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("data") / "bars.h5", np.arange(SIZE) % 3)


def settings_of(path: Path, **rooms: Any) -> ExperimentSettings:
    values = {room: {**TINY[room], **rooms.get(room, {})} for room in TINY}
    with Dataset.open(path) as dataset:
        return complete_settings(values, dataset)


def rows_of(path: Path, settings: ExperimentSettings) -> Any:
    with Dataset.open(path) as dataset:
        source = DatasetRows(dataset, dataset.split("iid", "train"), torch.device("cpu"))
        return make_training_rows(source, settings.build_objective(), settings.data, settings.training.seed)


# Which ones.


@pytest.mark.parametrize("count", [1, 7, 12, 60])
def test_labels_are_balanced_over_combinations_of_values(count: int) -> None:
    generator = np.random.default_rng(1)
    codes = np.stack([generator.integers(0, 3, 400), generator.integers(0, 2, 400)], 1).astype(np.uint8)
    codes[generator.random(400) < 0.2, 1] = UNKNOWN
    chosen = choose_labelled_examples(codes, count, seed=3)
    assert len(set(chosen.tolist())) == count
    assert (codes[chosen] != UNKNOWN).all()
    often = Counter(map(tuple, codes[chosen].tolist()))
    assert max(often.values()) - min(often.values() if len(often) == 6 else [0]) <= 1
    assert chosen.tolist() == choose_labelled_examples(codes, 80, seed=3)[:count].tolist()
    assert chosen.tolist() != choose_labelled_examples(codes, count, seed=4).tolist()


def test_a_rare_value_gives_all_that_it_has() -> None:
    codes = np.array([[0]] * 20 + [[1]] * 2, np.uint8)
    assert Counter(codes[choose_labelled_examples(codes, 10, 0), 0].tolist()) == {0: 8, 1: 2}
    with pytest.raises(DataError, match=r"got 30, but 22 of 22 training examples have a complete label; choose fewer"):
        choose_labelled_examples(codes, 30, 0)


def test_which_ones_they_are_follows_a_seed_of_its_own(bars: Path) -> None:
    """The training's seed says it where no other does; the order of the data and the share drawn never do."""

    def chosen(**rooms: Any) -> list[int]:
        rows = rows_of(bars, settings_of(bars, **rooms))
        return sorted(set(rows._example[: rows.labelled_rows].tolist()))

    usual = chosen()
    assert len(usual) == 12
    assert usual == chosen(training={"seed": 7}) == chosen(data={"labelled_share": 0.9})
    assert usual != chosen(data={"labelled_seed": 5})
    assert usual == chosen(data={"labelled_seed": None}, training={"seed": 4})


# What is shown.


def test_rows_show_the_labels_of_those_examples_alone(bars: Path) -> None:
    rows = rows_of(bars, settings_of(bars))
    assert isinstance(rows, LabelledRows) and (rows.labelled, rows.unlabelled, len(rows)) == (12, 108, 216)
    for batch in (rows.batch(torch.arange(216)), rows.view(torch.arange(216), 3, "step", 1)):
        shows = batch.present["attributes"][:, 0]
        assert shows.tolist() == [True] * 108 + [False] * 108
        assert (batch.values["attributes"][~shows] == 0).all()
        brightest = batch.values["image"].reshape(216, 6, 3, 2).mean((1, 3)).argmax(-1)
        assert (batch.values["attributes"][shows, 0] == brightest[shows]).all()
        assert batch.present["image"].all()
    assert Counter(rows._example[:108].tolist()) == dict.fromkeys(set(rows._example[:108].tolist()), 9)


@pytest.mark.parametrize("hidden", [pytest.param("unknown", marks=pytest.mark.slow), "wrong"])
def test_hidden_labels_change_nothing_where_the_same_are_chosen(bars: Path, tmp_path: Path, hidden: str) -> None:
    """Weights agree bit for bit where hidden labels are taken away, or changed so that the same examples are chosen.

    The choice balances classes and so reads all labels: wrong ones are put only where it stays what it is.
    """
    settings = settings_of(bars)
    rows = rows_of(bars, settings)
    keep = set(rows._example[: rows.labelled_rows].tolist()) | set(range(TRAIN, SIZE))
    codes = np.arange(SIZE) % 3
    others = [row for row in range(SIZE) if row not in keep]
    codes[others] = UNKNOWN
    if hidden == "wrong":
        for row in others:  # as long as the same ones are chosen
            for code in range(3):
                codes[row] = code
                if (
                    code != row % 3
                    and set(choose_labelled_examples(codes[:TRAIN, None].astype(np.uint8), 12, 4)) <= keep
                ):
                    break
                codes[row] = UNKNOWN
        assert (codes[others] != UNKNOWN).sum() > 10
    other = write(tmp_path / "other.h5", codes)
    found = []
    for number, path in enumerate((bars, other)):
        out = tmp_path / f"{number}.safetensors"
        for _ in train_model(path, settings_of(path), out, "mmgen train"):
            pass
        found.append(read_checkpoint(out, "model")[1])
    assert all(torch.equal(found[0][key], found[1][key]) for key in found[0])


def test_what_other_objectives_make_of_it(bars: Path) -> None:
    mvae = settings_of(bars, objective={"name": "mvae"}, model={"name": "multimodal-vae"})
    assert len(rows_of(bars, mvae)) == 216
    jmvae = settings_of(bars, objective={"name": "jmvae"}, model={"name": "multimodal-vae"})
    assert len(rows_of(bars, jmvae)) == 12
    said = describe_rows(TRAIN, jmvae.build_objective(), jmvae.data)
    assert "over place (draw 4); this objective needs labels and leaves the other 108 out" in said
    assert said.endswith("so data.labelled_share changes nothing.")
    plain = settings_of(bars, objective={"name": "elbo", "modalities": ["image"]}, model={"name": "multimodal-vae"})
    assert len(rows_of(bars, plain)) == TRAIN
    assert "image alone, so labels and data.labelled_share change nothing" in describe_rows(
        TRAIN, plain.build_objective(), plain.data
    )


def test_what_is_said_and_refused(bars: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = settings_of(bars)
    said = describe_rows(TRAIN, settings.build_objective(), settings.data)
    assert said.startswith(
        "12 of 120 training examples are labelled, balanced over place (draw 4); they are repeated 9"
    )
    few = settings_of(bars, data={"labelled_share": 0.05})
    said = describe_rows(TRAIN, few.build_objective(), few.data)
    assert said.endswith("(draw 4); data.labelled_share changes nothing, as they are at least that part of these rows.")
    much = settings_of(bars, data={"labelled": 1, "labelled_share": 0.99999})
    assert "repeated 11,899,881 times" in describe_rows(TRAIN, much.build_objective(), much.data)
    with pytest.raises(SettingsError, match=r"data.labelled got 12, but .* are PairedRows; leave it out"):
        make_training_rows(
            PairedRows(rows_of(bars, settings), (), 1.0, 0), settings.build_objective(), settings.data, 0
        )
    two = settings_of(bars, data={"labelled": 2})
    said = describe_rows(TRAIN, two.build_objective(), two.data)
    assert said.endswith("At least 1 of the 3 values of place have no label.")
    three = settings_of(bars, data={"labelled": 3})
    assert "no label" not in describe_rows(TRAIN, three.build_objective(), three.data)
    cases = [
        ({"labelled": None}, "the number of labelled examples, is not set; set both"),
        ({"paired": 0.5}, "since each hides descriptions; leave one out"),
    ]
    for data, words in cases:
        wrong = settings_of(bars, data=data)
        with pytest.raises(SettingsError, match=words):
            describe_rows(TRAIN, wrong.build_objective(), wrong.data)
    assert exit_code("train", str(bars), "--objective", "semi-supervised", "--labelled", "500", "--dry-run")
    assert "got 500, expected at most the 120" in capsys.readouterr().err


def test_planes_say_why_they_cannot_show_it(bars: Path, tmp_path: Path) -> None:
    """Its labels are the reason, and not the dimensions of its style."""
    out = tmp_path / "few.safetensors"
    for _ in train_model(bars, settings_of(bars, training={"steps": 1}), out, "mmgen train"):
        pass
    for figure in ("latent-map", "contours"):
        with pytest.raises(UsageError, match=r"holds attributes beside a style, so .* cannot show it in a plane"):
            draw_plot(figure, [out])


# The model as a person uses it.


@pytest.mark.slow
def test_from_a_dataset_to_scores_and_pictures(
    bars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = settings_of(bars, training={"steps": 80, "learning_rate": 1e-2, "keep": "last"})
    out = tmp_path / "model.safetensors"
    for _ in train_model(bars, settings, out, "mmgen train"):
        pass
    exit_code("eval", str(out), "--metric", "label-accuracy", "--json", "--dataset", str(bars))
    line = capsys.readouterr().out
    assert '"protocol": "posterior"' in line and '"value": 100.0' in line and '"labelled": 12' in line
    model = mmgen.load(out)
    assert list(model.posteriors) == ["prior", "own"]
    images = model.sample("place=right", n=16)
    assert images.shape == (16, 1, 6, 6)
    assert images.reshape(16, 6, 3, 2).mean((0, 1, 3)).argmax() == 2
    assert mmgen.log_likelihood(model, images[:3], samples=5).value < 0
    for figure in ("analogies", "reconstructions", "embedding"):
        exit_code("plot", figure, str(out), "-o", f"{figure}.png")
        assert Path(f"{figure}.png").stat().st_size > 1000
    for wrong, words in (
        (["plot", "latent-map", str(out), "-o", "map.png"], "cannot show it in a plane"),
        (["plot", "analogies", str(out), "--by", "colour", "-o", "by.png"], "colour"),
        (["fit-aggregate", str(out)], "a fitted density is continuous"),
    ):
        assert exit_code(*wrong)
        assert words in " ".join(capsys.readouterr().err.split())
