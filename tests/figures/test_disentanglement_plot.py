"""Disentanglement over reconstruction, from scores made by hand; and traversals labelled by the factors they follow."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from mmgen.core.errors import UsageError
from mmgen.figures.plots._base import draw_plot
from mmgen.figures.plots.disentanglement import group_into_families
from mmgen.results.score import read_scores

X = ("negative-elbo", "reconstruction error")


def model(run: str, seed: int, error: float, score: float, **objective: Any) -> list[dict[str, Any]]:
    """The two scores of a model, as ``mmgen eval`` writes them."""
    common = {
        "stderr": 0.5, "n": 1000, "posterior": "image", "ids": {"model": f"{run}-{seed}", "dataset": "d"},
        "run": {"name": f"{run}-seed{seed}", "settings": run, "seed": str(seed)},
    }  # fmt: skip
    common |= {"conditions": {"split": "iid", "part": "test"}, "seed": seed, "details": {"objective": objective}}
    return [
        {"metric": X[0], "quantity": X[1], "value": error, "unit": "nats", "better": "lower", **common},
        {"metric": X[0], "quantity": "KL", "value": 9.0, "unit": "nats", "better": "lower", **common},
        {"metric": "factor-score", "quantity": "accuracy", "value": score, "unit": "%", **common},
    ]


def write(path: Path, *models: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(score) + "\n" for one in models for score in one))
    return path


def example(folder: Path) -> Path:
    """beta-VAE at 1 and 4, of two seeds each, and FactorVAE at 35, of one."""
    return write(
        folder / "scores.jsonl",
        model("b4", 0, 40.0, 70.0, name="elbo", beta=4.0, samples=1),
        model("b4", 1, 44.0, 74.0, name="elbo", beta=4.0, samples=1),
        model("b1", 0, 20.0, 50.0, name="elbo", beta=1.0, samples=1),
        model("b1", 1, 22.0, 58.0, name="elbo", beta=1.0, samples=1),
        model("f35", 0, 30.0, 82.0, name="factor-vae", gamma=35.0, discriminator_width=1000),
    )


def test_a_line_for_each_objective_with_means_over_seeds(tmp_path: Path) -> None:
    found = group_into_families(read_scores(example(tmp_path)), X, "factor-score")
    assert [family.name for family in found.families] == ["beta-VAE", "FactorVAE"]
    beta, factor = found.families
    assert [(p.label, p.x.value, p.y.value, p.models) for p in beta.points] == [
        ("beta = 1", 21.0, 54.0, 2),
        ("beta = 4", 42.0, 72.0, 2),
    ]
    assert beta.points[0].y.error == pytest.approx(32**0.5)
    assert [(p.label, p.x.value, p.y.value, p.y.error) for p in factor.points] == [("gamma = 35", 30.0, 82.0, 0.5)]
    assert (found.x_label, found.unpaired) == ("reconstruction error, nats (lower is better)", 0)


def test_the_figure_and_what_it_says(tmp_path: Path) -> None:
    picture, _ = draw_plot("disentanglement", [example(tmp_path)])
    assert isinstance(picture.drawn, Figure)
    (axes,) = picture.drawn.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["beta-VAE", "FactorVAE"]
    assert {"beta = 1", "beta = 4", "gamma = 35"} <= {text.get_text() for text in axes.texts}
    assert axes.get_ylabel() == "factor-score: accuracy, % (higher is better)"
    assert "means over 1 or 2 seeds" in picture.caption


def test_runs_of_other_settings_are_other_points(tmp_path: Path) -> None:
    """Two models of one beta that were trained otherwise are not two seeds of one."""
    path = write(
        tmp_path / "s.jsonl", model("a", 0, 1, 2, name="elbo", beta=4.0), model("b", 0, 3, 4, name="elbo", beta=4.0)
    )
    (family,) = group_into_families(read_scores(path), X, "factor-score").families
    assert [(point.label, point.models) for point in family.points] == [("beta = 4", 1), ("beta = 4", 1)]


def test_labels_tell_every_setting_that_differs_and_titles_what_is_generated(tmp_path: Path) -> None:
    """Groups are no number; a model of pictures and words is no beta-VAE."""
    path = write(
        tmp_path / "s.jsonl",
        model("a", 0, 1, 2, name="hfvae", modalities=["image"], beta=4.0, groups=[5, 5], examples=None),
        model("b", 0, 3, 4, name="hfvae", modalities=["image"], beta=4.0, groups=[], examples=None),
        model("c", 0, 3, 4, name="elbo", modalities=["image", "attributes"], beta=4.0),
        model("d", 0, 3, 4, name="elbo", modalities=["image"], beta=4.0),
    )
    found = group_into_families(read_scores(path), X, "factor-score").families
    assert [family.name for family in found] == ["HFVAE", "elbo of image and attributes", "beta-VAE"]
    assert [point.label for point in found[0].points] == ["groups = 5, 5", "groups = none"]


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    one, other = model("a", 0, 1, 2, name="elbo"), model("b", 0, 3, 4, name="elbo")
    for score in other:
        score["ids"] = {"model": "b", "dataset": "e"}
    with pytest.raises(UsageError, match=r"negative-elbo with the same dataset, got several \(d, e\); name scores"):
        draw_plot("disentanglement", [write(tmp_path / "s.jsonl", one, other)])
    with pytest.raises(
        UsageError,
        match=r"shows factor-score over reconstruction error .* --metric negative-elbo --metric factor-score",
    ):
        draw_plot("disentanglement", [write(tmp_path / "t.jsonl", one[:2])])
    with pytest.raises(UsageError, match="got --metric mig --metric sap, expected one"):
        draw_plot("disentanglement", [write(tmp_path / "u.jsonl", one)], metrics=["mig", "sap"])
    fewer = model("c", 0, 1, 2, name="elbo")
    fewer[2] |= {"n": 100}
    with pytest.raises(UsageError, match=r"factor-score with the same number of examples, got several \(100, 1000\)"):
        draw_plot("disentanglement", [write(tmp_path / "w.jsonl", one, fewer)])
    alone = draw_plot("disentanglement", [write(tmp_path / "v.jsonl", one, model("c", 0, 1, 2, name="elbo")[2:])])[0]
    assert "only one of both was measured: 1 model" in alone.caption


def test_dimensions_are_labelled_by_the_factor_that_they_follow(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Encodings in which the second dimension is the first attribute and the third hardly differs from p(z)."""
    import torch

    from mmgen.artifacts import Dataset
    from mmgen.figures.plots import traversal
    from mmgen.generation.encodings import Encodings

    def encoded(model: Any, path: Path, split: str, count: int, seed: int) -> Encodings:
        with Dataset.open(path) as data:
            rows = data.split("iid", split)[:count]
            (name,) = data.attributes
            first = torch.from_numpy(data.read_attributes(name, rows)[:, 0].astype(np.float32))
        generator = torch.Generator().manual_seed(0)
        noise = torch.randn(len(rows), 2, generator=generator)
        mean = torch.stack([noise[:, 0], 2 * first - 1, 0.01 * noise[:, 1]], 1)
        return Encodings(rows, mean, torch.tensor([-1.0, -2.0, 0.0]).expand(len(rows), 3), ("image",))

    monkeypatch.setattr(traversal, "encode_split", encoded)
    session_labels = _labels(world)
    assert session_labels[0].startswith("z 2: ") and session_labels[0].endswith("nats, parity (1.00)")
    assert session_labels[1].startswith("z 1: ") and session_labels[1].endswith("nats, -")
    assert session_labels[2] == "z 3: 0.000 nats, inactive"


def _labels(world: Path) -> list[str]:
    from mmgen.figures.plots.traversal import _rank_dimensions
    from mmgen.figures.session import gather_files, open_session

    (group,) = gather_files([world / "telbo.safetensors"]).groups
    followed = _rank_dimensions(open_session(group, 0))
    assert "20 bins" in followed.explanation and "Inactive: below 0.01 nats" in followed.explanation
    pairs = zip(followed.ranked.dimensions, followed.ranked.values, strict=True)
    return [followed.label(dimension, f"z {dimension + 1}", value) for dimension, value in pairs]


def test_a_setting_that_is_nothing_is_the_default(tmp_path: Path) -> None:
    models = [model(name, 0, 1, 2, name="elbo", examples=examples) for name, examples in (("a", None), ("b", 10))]
    (family,) = group_into_families(read_scores(write(tmp_path / "s.jsonl", *models)), X, "factor-score").families
    assert [point.label for point in family.points] == ["examples = 10", "examples = default"]
