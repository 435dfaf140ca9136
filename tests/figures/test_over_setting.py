"""Scores over a setting of the objective, from scores made by hand."""

import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from mmgen.core.errors import UsageError
from mmgen.figures.plots._base import draw_plot
from mmgen.figures.plots.over_setting import group_by_setting
from mmgen.results.score import read_scores


def score(
    value: float, quantity: str = "log p(x)", seed: int = 0, dataset: str = "d", **objective: Any
) -> dict[str, Any]:
    return {
        "metric": "log-likelihood", "quantity": quantity, "value": value, "stderr": 0.5, "n": 100, "unit": "nats",
        "better": "higher", "posterior": "prior", "protocol": "importance", "seed": 0,
        "ids": {"model": f"{objective}-{seed}", "dataset": dataset}, "conditions": {"split": "iid", "part": "test"},
        "run": {"name": "r", "settings": str(objective), "seed": str(seed)},
        "details": {"objective": {"name": "mvae", **objective}, "log_weight_variance": -value / 10},
    }  # fmt: skip


def write(path: Path, *scores: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in scores))
    return path


EXAMPLE = (
    score(-90.0, subsets=5),
    score(-100.0, subsets=0),
    score(-94.0, subsets=5, seed=1),
    score(-70.0, "log p(x,y)", subsets=0),
)


def test_scores_are_grouped_by_what_they_measure_and_by_the_setting_that_differs(tmp_path: Path) -> None:
    setting, lines = group_by_setting(read_scores(write(tmp_path / "s.jsonl", *EXAMPLE)), "log-likelihood", "")
    assert setting == "subsets"
    values = {name: {at: [one.value for one in of] for at, of in line.items()} for name, line in lines.items()}
    assert values == {
        "log p(x), importance, prior": {5.0: [-90.0, -94.0], 0.0: [-100.0]},
        "log p(x,y), importance, prior": {0.0: [-70.0]},
    }


def test_likelihoods_and_variances_are_drawn_side_by_side(tmp_path: Path) -> None:
    picture, _ = draw_plot("over-setting", [write(tmp_path / "s.jsonl", *EXAMPLE)])
    assert isinstance(picture.drawn, Figure)
    axes = picture.drawn.axes
    assert [one.get_ylabel() for one in axes] == [
        "log-likelihood less that at 0, nats",
        "variance of log importance weights",
    ]
    assert [tick.get_text() for tick in axes[0].get_xticklabels()] == ["0", "5"]
    drawn = [list(line.lines[0].get_ydata()) for one in axes for line in one.containers]
    assert drawn == [[0.0, 8.0], [0.0], [10.0, 9.2], [7.0]]
    assert "standard errors of the differences, over models" in picture.caption


@pytest.mark.parametrize(
    ("scores", "options", "said"),
    [
        (EXAMPLE[:1], {}, "over-setting shows log-likelihood over one setting of the objective, got 1 such scores"),
        ((*EXAMPLE, score(-1.0, subsets=1, beta=2.0)), {}, "which differ in beta and subsets"),
        (EXAMPLE, {"by": "subset"}, "did you mean 'subsets'?"),
        (EXAMPLE, {"metrics": ("fid",)}, "over-setting shows fid over one setting of the objective, got 0 such scores"),
        (EXAMPLE, {"metrics": ("fid", "kid")}, "over-setting got --metric fid --metric kid, expected one"),
        ((*EXAMPLE, score(-1.0, subsets=1, dataset="e")), {}, "with the same dataset, got several"),
    ],
    ids=["one value", "two settings", "no such setting", "no such score", "two metrics", "two datasets"],
)
def test_what_is_no_line_is_said(tmp_path: Path, scores: Any, options: Any, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        draw_plot("over-setting", [write(tmp_path / "s.jsonl", *scores)], **options)
    assert said in str(refused.value)
