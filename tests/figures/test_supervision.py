"""The curves of weak supervision: what is read off score files, what is said of them, what is drawn."""

import json
import math
from pathlib import Path

import pytest

from mmgen.core.errors import UsageError
from mmgen.figures.plots._base import draw_plot
from mmgen.figures.plots.weak_supervision import (
    count_repeated,
    draw_curves,
    make_curves,
)
from mmgen.figures.report.make import make_report
from mmgen.results.score import Score


def score(
    method: str,
    paired: int,
    value: float,
    protocol: str = "baseline",
    quantity: str = "whole description",
    seed: str = "",
    settings: str = "same",
) -> Score:
    error = math.sqrt(value * (100 - value) / 1000)
    return Score(
        "label-accuracy", quantity, value, error, "%", "higher", 1000, method, protocol=protocol,
        details={"paired": paired, "method": method, "share": paired / 1000},
        run={"name": method, "settings": settings, "seed": seed} if seed else {},
    )  # fmt: skip


SCORES = [
    *(score("supervised", pairs, value) for pairs, value in ((100, 70.0), (10, 40.0), (1000, 95.0))),
    *(score("mvae", pairs, value, "mean") for pairs, value in ((10, 38.0), (100, 80.0), (1000, 94.0))),
    *(score("mvae", pairs, 5.0, "samples") for pairs in (10, 100, 1000)),
    *(score("logistic", pairs, value) for pairs, value in ((10, 50.0), (100, 75.0), (1000, 90.0))),
    score("mvae", 100, 99.0, "mean", "each attribute"),
]


def test_curves_are_sorted_and_of_one_protocol() -> None:
    curves = make_curves([*SCORES, score("own", 10, 1.0)])
    assert [curve.name for curve in curves] == ["MVAE", "supervised network", "logistic regression on pixels", "own"]
    assert [(point.x.value, point.y.value) for point in curves[1].points] == [(10, 40.0), (100, 70.0), (1000, 95.0)]
    assert [point.y.value for point in curves[0].points] == [38.0, 80.0, 94.0]


def test_the_last_of_equals_counts_and_the_unfinite_does_not() -> None:
    (curve,) = make_curves([score("vae", 5, 10.0), score("vae", 5, 20.0), score("vae", 6, float("nan"))])
    assert [(point.x.value, point.y.value) for point in curve.points] == [(5, 20.0)]


def test_a_point_of_several_seeds_is_their_mean_with_both_errors() -> None:
    """80 and 84: sd / sqrt(2) = 2; binomial errors of 1,000 images, which the seeds share: 1.2649 and 1.1593."""
    files = [score("vae", 5, 60.0, seed="0"), score("vae", 5, 80.0, seed="0"), score("vae", 5, 84.0, seed="1")]
    (curve,) = make_curves(files)
    (point,) = curve.points
    assert (point.y.value, point.models, point.by_seed) == (82.0, 2, (80.0, 84.0))
    assert point.y.error == pytest.approx(math.sqrt(2**2 + (1.6 + 1.344) / 2))
    assert count_repeated(files) == 1 and count_repeated(files[1:]) == 0
    assert make_curves([*files, score("rbm", 5, 1.0, seed="3")])[1].points[0].by_seed == ()
    with pytest.raises(UsageError, match=r"VAE . logistic regression with 5 pairs got 2 runs whose settings differ"):
        make_curves([files[1], score("vae", 5, 84.0, seed="1", settings="longer")])


def test_what_is_drawn_can_be_told_apart() -> None:
    figure = draw_curves(make_curves(SCORES))
    (axes,) = figure.axes
    lines = [container.lines[0] for container in axes.containers]
    assert len({line.get_color() for line in lines}) == len({line.get_marker() for line in lines}) == 3
    assert lines[0].get_linewidth() > lines[1].get_linewidth()
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["10", "100", "1,000"]


@pytest.mark.slow
def test_the_figure_from_files(tmp_path: Path) -> None:
    files = []
    for name in ("mvae", "supervised", "logistic"):
        path = tmp_path / f"{name}.jsonl"
        lines = [json.dumps(one.to_json()) for one in SCORES if one.details["method"] == name]
        path.write_text("\n".join(lines))
        files.append(path)
    picture, notices = draw_plot("weak-supervision", files)
    assert not notices and "1,000 test images" in picture.caption
    for ending in (".png", ".pdf", ".svg"):
        picture.save(tmp_path / f"out{ending}")
        assert (tmp_path / f"out{ending}").stat().st_size > 5000
    further = [score("mvae", 10, value, "mean", seed=seed) for value, seed in ((1.0, "0"), (30.0, "0"), (50.0, "1"))]
    files[0].write_text("\n".join(json.dumps(one.to_json()) for one in further))
    picture, _ = draw_plot("weak-supervision", files)
    assert "the mean of 1 or 2 seeds, whose own values are the dots, on 1,000 test images" in picture.caption
    assert "1 earlier scores of the same method, number of pairs and seed are not shown" in picture.caption
    files[0].write_text(json.dumps(score("mvae", 10, 1.0, "samples").to_json()))
    with pytest.raises(UsageError, match=r"got no such scores; measure some with mmgen train --paired"):
        draw_plot("weak-supervision", files[:1])


@pytest.mark.parametrize("name", ["contours", "word-uncertainty", "reconstructions"])
def test_figures_of_models_refuse_scores_alone(name: str, tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_text(json.dumps(SCORES[0].to_json()))
    with pytest.raises(UsageError, match="model"):
        draw_plot(name, [path])


def test_a_report_shows_curves_of_several_numbers_of_pairs(tmp_path: Path) -> None:
    path, out = tmp_path / "scores.jsonl", tmp_path / "report.html"
    path.write_text("\n".join(json.dumps(one.to_json()) for one in SCORES))
    make_report([path], out).run()
    page = out.read_text()
    assert 'id="weak-supervision"' in page
    path.write_text(json.dumps(SCORES[0].to_json()))
    make_report([path], out).run()
    assert 'id="weak-supervision"' not in out.read_text()
