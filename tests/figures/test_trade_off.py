"""The trade-off figure from scores made by hand: which become points of which curve, what is refused, what is said."""

import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.style import category_colours
from mmgen.figures.plots._base import draw_plot
from mmgen.figures.plots.trade_off import (
    TradeOff,
    _name_classifiers,
    choose_axes,
    compute_trade_off,
    draw_trade,
    published_points,
)
from mmgen.results.score import read_scores

BOTH = ("correctness", "coverage")


def line(metric: str, value: float, posterior: str = "aggregate", **more: Any) -> dict[str, Any]:
    """A score as ``mmgen eval`` writes it."""
    given = {"correctness": 4, "coverage": 3}.get(metric, 4)
    protocol = "exact" if metric in BOTH else "description"
    ids = {"model": "m1", "aggregate": f"{posterior}-1", "dataset": "d", "judge": "j"} | more.pop("ids", {})
    conditions = {"split": "iid", "part": "test"} | more.pop("conditions", {})
    score = {
        "metric": metric, "quantity": metric, "value": value, "stderr": 0.5, "unit": "%", "better": "higher", "n": 100,
        "posterior": posterior, "given": given, "protocol": protocol, "judge_accuracy": {"digit": 90.0, "mean": 92.0},
        "ids": ids, "conditions": conditions, "seed": 0,
    }  # fmt: skip
    return score | more


def pair(y: float, x: float, posterior: str = "aggregate", **more: Any) -> list[dict[str, Any]]:
    """Correctness and coverage of one posterior."""
    return [line(metric, value, posterior, **dict(more)) for metric, value in (("correctness", y), ("coverage", x))]


def write(path: Path, *groups: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(score) + "\n" for group in groups for score in group))
    return path


def example(folder: Path) -> Path:
    """q_agg at w = 0, 3, 10; q_true at weights 1 and 300."""
    return write(
        folder / "scores.jsonl",
        pair(86.0, 98.9),
        pair(93.0, 98.8, guidance=3.0),
        pair(95.0, 98.4, guidance=10.0),
        pair(65.0, 97.2, "true", text_weight=1.0, ids={"aggregate": "t1"}),
        pair(89.0, 92.6, "true", text_weight=300.0, ids={"aggregate": "t300"}),
    )


def places(trade: TradeOff) -> dict[str, list[tuple[str, float, float]]]:
    """Each curve's points by its name: their labels and places."""
    return {curve.name: [(p.label, p.x.value, p.y.value) for p in curve.points] for curve in trade.curves}


def test_a_curve_for_each_posterior_over_its_weights(tmp_path: Path) -> None:
    trade = compute_trade_off(read_scores(example(tmp_path)), BOTH)
    assert places(trade) == {
        "q_agg, guided": [("q_agg", 98.9, 86), ("", 98.8, 93), ("w = 10", 98.4, 95)],
        "q_true": [("w = 1", 97.2, 65), ("w = 300", 92.6, 89)],
    }
    assert {(p.x.error, p.y.error) for curve in trade.curves for p in curve.points} == {(0.5, 0.5)}
    assert trade.corner == (100.0, 92.0)
    assert (trade.y.given, trade.x.given) == (4, 3)


def test_another_method_of_guidance_is_a_curve_of_its_own_that_begins_where_nothing_guides(tmp_path: Path) -> None:
    lines = [
        pair(86.0, 98.9),
        pair(93.0, 98.0, guidance=3.0),
        pair(92.9, 98.7, guidance=3.0, guidance_method="cfg"),
    ]
    trade = compute_trade_off(read_scores(write(tmp_path / "b.jsonl", *lines)), BOTH)
    assert places(trade) == {
        "q_agg, guided": [("q_agg", 98.9, 86.0), ("w = 3", 98.0, 93.0)],
        "q_agg, guided, cfg": [("q_agg", 98.9, 86.0), ("cfg 3", 98.7, 92.9)],
    }
    words = [text.get_text() for text in draw_trade(trade, []).axes[0].texts]
    assert set(words) == {"q_agg", "w = 3", "cfg 3"}


def test_what_is_drawn_otherwise_has_a_line_and_a_name_of_its_own(tmp_path: Path) -> None:
    """With and without completion, and sharpened: no line joins what differs in more than a weight."""
    lines = [
        pair(86.0, 98.0), pair(70.0, 90.0, as_given=True), pair(80.0, 95.0, sharpened=True),
        pair(75.0, 85.0, as_given=True, guidance=3.0),
    ]  # fmt: skip
    path = write(tmp_path / "m.jsonl", *lines[:2])
    figure = draw_trade(compute_trade_off(read_scores(path), BOTH), [])
    assert {"q_agg", "q_agg, not completed"} <= {*_legend(figure)}
    assert [len(container[0].get_xdata()) for container in figure.axes[0].containers] == [1, 1]
    assert places(compute_trade_off(read_scores(write(path, *lines)), BOTH)) == {
        "q_agg": [("", 98.0, 86.0)],
        "q_agg, sharpened": [("", 95.0, 80.0)],
        "q_agg, not completed, guided": [("q_agg, not completed", 90.0, 70.0), ("w = 3", 85.0, 75.0)],
    }


def _legend(figure: Figure) -> list[str]:
    legend = figure.axes[0].get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def test_several_models_are_one_point_with_their_spread(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.jsonl",
        *[pair(y, 98.0, ids={"model": model, "aggregate": f"a-{model}"}) for model, y in (("1", 90.0), ("2", 94.0))],
    )
    (curve,) = compute_trade_off(read_scores(path), BOTH).curves
    (point,) = curve.points
    assert (point.models, point.y.value, point.y.error, point.x.error) == (2, 92.0, pytest.approx(8**0.5), 0.0)
    picture, _ = draw_plot("trade-off", [path])
    assert "Means over 2 models, crosses their standard deviations" in picture.caption


def test_the_most_given_by_the_exact_protocol(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.jsonl",
        pair(86.0, 98.9),
        [line("correctness", 10.0, given=2), line("coverage", 20.0, given=1), line("coverage", 30.0, protocol="paper")],
    )
    (curve,) = compute_trade_off(read_scores(path), BOTH).curves
    assert [(point.x.value, point.y.value) for point in curve.points] == [(98.9, 86.0)]


def test_precision_and_recall_end_in_the_corner_of_real_halves(tmp_path: Path) -> None:
    scores = [
        line("precision", 60.0, details={"ceiling": 80.0}),
        line("recall", 50.0, details={"ceiling": 78.0}),
        line("precision", 1.0, protocol="pooled", details={"ceiling": 2.0}),
    ]
    trade = compute_trade_off(read_scores(write(tmp_path / "s.jsonl", scores)), choose_axes(["precision"]))
    assert trade.corner == (78.0, 80.0)
    assert [(point.x.value, point.y.value) for point in trade.curves[0].points] == [(50.0, 60.0)]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"ids": {"judge": "other"}}, "the same judge, got several \\(j, other\\)"),
        ({"ids": {"dataset": "other"}}, "the same dataset"),
        ({"conditions": {"split": "other"}}, "the same split"),
        ({"conditions": {"part": "val"}}, "the same part"),
    ],
)
def test_what_was_measured_otherwise_is_no_rival(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    path = write(tmp_path / "s.jsonl", pair(86.0, 98.9), pair(65.0, 97.0, "prior", **change))
    with pytest.raises(UsageError, match=what):
        compute_trade_off(read_scores(path), BOTH)


def test_seeds_with_judges_of_their_own_are_alike_where_all_posteriors_have_them(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.jsonl",
        *[
            pair(80.0, 90.0, posterior, ids={"model": seed, "judge": f"j{seed}", "dataset": f"d{seed}"})
            for seed in "12"
            for posterior in ("prior", "own")
        ],
    )
    assert {point.models for curve in compute_trade_off(read_scores(path), BOTH).curves for point in curve.points} == {
        2
    }


def test_two_fits_to_one_model_are_no_two_seeds(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", pair(86.0, 98.9), pair(85.0, 98.0, ids={"aggregate": "again"}))
    with pytest.raises(UsageError, match="several fits of q_agg with the same weight to one model"):
        compute_trade_off(read_scores(path), BOTH)
    # The model's own posterior is the same whichever file it was asked of.
    own = write(tmp_path / "o.jsonl", pair(86.0, 98.9, "prior"), pair(86.0, 98.9, "prior", ids={"aggregate": "again"}))
    assert len(compute_trade_off(read_scores(own), BOTH).curves[0].points) == 1


def test_refusals(tmp_path: Path) -> None:
    half = write(tmp_path / "half.jsonl", [line("correctness", 86.0)])
    with pytest.raises(UsageError, match=r"shows coverage, got scores of correctness; measure it with mmgen eval"):
        draw_plot("trade-off", [half])
    apart = write(tmp_path / "apart.jsonl", [line("correctness", 86.0), line("coverage", 90.0, "prior")])
    with pytest.raises(UsageError, match="needs correctness and coverage of the same posterior, got none with both"):
        draw_plot("trade-off", [apart])
    fid = write(tmp_path / "f.jsonl", [line("fid", 3.0, unit="squared distance", better="lower")])
    with pytest.raises(UsageError, match=r"metrics in % whose higher values are better, got fid in squared distance"):
        draw_plot("trade-off", [fid], metrics=["fid", "recall"])
    with pytest.raises(UsageError, match="got one --metric recall, expected correctness, precision, or two"):
        choose_axes(["recall"])
    with pytest.raises(UsageError, match="expected two different ones"):
        choose_axes(["recall", "recall"])
    assert choose_axes(["precision", "coverage"]) == ("precision", "coverage")


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", pair(86.0, 98.9), [line("correctness", 50.0, "prior")])
    picture, _ = draw_plot("trade-off", [path])
    assert "Left out, for only one of both was measured: p(z)." in picture.caption


def test_published_points_only_beside_what_was_measured_alike(tmp_path: Path) -> None:
    exact = compute_trade_off(read_scores(write(tmp_path / "e.jsonl", pair(86.0, 98.9))), BOTH)
    assert published_points(exact, "mnist-a") == []  # VE's coverage is another number
    scores = [line("correctness", 86.0), line("coverage", 90.0, protocol="paper")]
    paper = compute_trade_off(read_scores(write(tmp_path / "p.jsonl", scores)), BOTH)
    found = published_points(paper, "mnist-a")
    assert ("VE Fig. 4a", "JMVAE", 88.52, 85.15) in found
    assert published_points(paper, "") == []
    assert "TELBO (VE Fig. 4a)" in _legend(draw_trade(paper, found))


def test_the_figure_says_everything_beside_its_curves(tmp_path: Path) -> None:
    picture, _ = draw_plot("trade-off", [example(tmp_path)])
    assert isinstance(picture.drawn, Figure)
    (axes,) = picture.drawn.axes
    assert {text.get_text() for text in axes.texts} == {"q_agg", "w = 10", "w = 1", "w = 300"}
    assert {"real pictures", "q_agg, guided", "q_true"} <= {*_legend(picture.drawn)}
    sizes = {text.get_fontsize() for text in (*axes.texts, axes.xaxis.label, axes.yaxis.label, *axes.get_xticklabels())}
    assert min(sizes) >= 9
    # Each curve differs from the others by marker and line too, not by its colour alone.
    curves = [container[0] for container in axes.containers]
    assert len({curve.get_marker() for curve in curves}) == len({str(curve.get_linestyle()) for curve in curves}) == 2
    assert {curve.get_color() for curve in curves} == set(category_colours(2))
    crosses = [len(bars) for container in axes.containers for bars in [container[2]]]
    assert crosses == [2, 2]  # of both measures
    for ending in ("png", "svg", "pdf"):
        picture.save(tmp_path / f"t.{ending}")
        assert (tmp_path / f"t.{ending}").stat().st_size > 1000


def test_of_several_judges_of_the_same_pictures_the_first_is_shown(tmp_path: Path) -> None:
    """Not the last, and not a mixture; a posterior that the second alone judged is refused beside others."""
    first, second = ({"ids": {"judge": name}, "judge": name} for name in ("small", "attentive"))
    both = [*pair(86.0, 98.9, **first), *pair(80.0, 90.0, **second)]
    path = write(tmp_path / "both.jsonl", both)
    (curve,) = compute_trade_off(read_scores(path), BOTH).curves
    assert [(point.x.value, point.y.value) for point in curve.points] == [(98.9, 86.0)]
    assert _name_classifiers(read_scores(path)) == " Of several judges of the same pictures the first is shown: small."
    assert _name_classifiers(read_scores(write(tmp_path / "one.jsonl", pair(86.0, 98.9, **first)))) == ""
    alone = pair(70.0, 80.0, "true", text_weight=1.0, ids={"judge": "attentive", "aggregate": "t1"})
    with pytest.raises(UsageError, match="with the same judge, got several"):
        compute_trade_off(read_scores(write(tmp_path / "mixed.jsonl", both, alone)), BOTH)


def test_each_family_has_a_curve_for_each_method_of_guidance(tmp_path: Path) -> None:
    """Two fits to one model by different families; what no other point exceeds is ringed."""
    flow = {"family": "rectified-flow", "ids": {"aggregate": "rf"}}
    lines = [
        pair(86.7, 79.4, family="realnvp"),
        pair(94.1, 61.9, family="realnvp", guidance=3.0, guidance_method="cfg"),
        pair(88.5, 75.7, **flow),
        pair(92.8, 64.0, guidance=0.25, guidance_method="cfg", **flow),
        pair(94.9, 52.2, guidance=0.5, guidance_method="cfg", **flow),
        pair(93.8, 66.0, guidance=3.0, **flow),
    ]
    path = write(tmp_path / "f.jsonl", *lines)
    trade = compute_trade_off(read_scores(path), BOTH)
    assert {name: [label for label, *_ in points] for name, points in places(trade).items()} == {
        "q_agg, realnvp, guided, cfg": ["q_agg, realnvp", "cfg 3"],
        "q_agg, rectified-flow, guided": ["q_agg, rectified-flow", "w = 3"],
        "q_agg, rectified-flow, guided, cfg": ["q_agg, rectified-flow", "", "cfg 0.5"],
    }
    assert sorted(point.y.value for point in trade.best) == [86.7, 88.5, 93.8, 94.1, 94.9]
    picture, _ = draw_plot("trade-off", [path])
    assert isinstance(picture.drawn, Figure)
    (axes,) = picture.drawn.axes
    assert {"q_agg, realnvp", "q_agg, rectified-flow", "cfg 0.5"} <= {text.get_text() for text in axes.texts}
    assert "none is higher on both axes" in _legend(picture.drawn)
    rings = [line for line in axes.lines if line.get_fillstyle() == "none" and line.get_markersize() == 13]
    assert [len(line.get_xdata()) for line in rings] == [5]


def test_one_family_alone_is_not_named(tmp_path: Path) -> None:
    (curve,) = compute_trade_off(
        read_scores(write(tmp_path / "o.jsonl", pair(86.7, 79.4, family="realnvp"))), BOTH
    ).curves
    assert curve.name == "q_agg"


def test_what_another_exceeds_on_one_axis_and_equals_on_the_other_is_not_best(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", pair(86.0, 79.4), pair(80.0, 79.4, "prior"), pair(86.0, 70.0, "own"))
    assert [(point.x.value, point.y.value) for point in compute_trade_off(read_scores(path), BOTH).best] == [
        (79.4, 86.0)
    ]
