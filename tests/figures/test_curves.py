"""Learning curves: what is read from logs, whole, broken and foreign, and that every case draws."""

import json
from pathlib import Path

import numpy as np
import pytest

from mmgen.core.errors import ArtifactError
from mmgen.figures.drawing.style import render_figure
from mmgen.figures.report.curves import TrainingLog, draw_learning_curves, draw_term_curves, read_log


def _write(path: Path, records: list[object], tail: str = "") -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records) + tail)
    return path


def _line(step: int, bound: float | None = -10.0, **terms: float) -> dict[str, object]:
    return {"step": step, "seconds": 0.1, "bound": bound, "terms": terms, "rate": 1e-3, "gradient_norm": 2.0}


def test_training_and_validation_are_told_apart(tmp_path: Path) -> None:
    records = [
        _line(50, -12.0, kl=3.0),
        {"step": 50, "validation": {"bound": -13.0, "stderr": 0.5, "terms": {}}},
        _line(100, -11.0, kl=4.0, image=-7.0),
        {"step": 100, "validation": {"bound": -12.0}},
    ]
    log = read_log(_write(tmp_path / "run.log.jsonl", records))
    assert log.name == "run"
    assert log.steps.tolist() == [50, 100] and log.bound.tolist() == [-12, -11]
    assert log.terms["kl"].tolist() == [3, 4]
    assert np.isnan(log.terms["image"][0]) and log.terms["image"][1] == -7
    assert log.validation_steps.tolist() == [50, 100] and log.validation.tolist() == [-13, -12]
    assert log.validation_stderr[0] == 0.5 and np.isnan(log.validation_stderr[1])


def test_half_a_last_line_is_passed_over(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.log.jsonl", [_line(1), _line(2)], tail='{"step": 3, "bou')
    assert read_log(path, "killed").steps.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"step": 1, "bound": 2}\nhello\n{"step": 2}\n', "line 2 is not JSON"),
        (b'[1, 2]\n{"step": 1}\n', "line 1 has no step"),
        (b'{"metric": "correctness"}\n', "line 1 has no step"),
        (b"\xff\xfe\x00", "it is no text"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "foreign.jsonl"
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=message):
        read_log(path)
    with pytest.raises(ArtifactError, match="check the path"):
        read_log(tmp_path / "missing.jsonl")


def test_every_log_draws(tmp_path: Path) -> None:
    long = read_log(_write(tmp_path / "long.log.jsonl", [_line(s, -1e6 / (s + 1), kl=1.0 * s) for s in range(200)]))
    short = read_log(_write(tmp_path / "short.log.jsonl", [_line(1)]))
    broken = read_log(_write(tmp_path / "nan.log.jsonl", [_line(1, None), _line(2, None)]))
    empty = read_log(_write(tmp_path / "empty.log.jsonl", []))
    logs = {"long": (long, 200, ["kl", "gradient norm", "examples per second"]), "nan": (broken, 2, None)}
    logs |= {"short": (short, 1, None), "empty": (empty, 0, [])}
    together = draw_learning_curves([log for log, _, _ in logs.values()])
    curves = together.axes[0].lines[::2]  # each is followed by an empty one, which carries its name
    assert [len(curve.get_xdata()) for curve in curves] == [points for _, points, _ in logs.values()]
    legend = together.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [f"{name} (training only)" for name in logs]
    assert draw_learning_curves([]).axes[0].get_legend() is None
    for figure in (together, draw_learning_curves([])):
        assert render_figure(figure, 40).size == (216, 136)
    for log, points, titles in logs.values():
        figure = draw_term_curves(log)
        assert min(render_figure(figure, 40).size) > 0
        assert all(len(axes.lines[0].get_xdata()) == points for axes in figure.axes)
        if titles is not None:
            assert [axes.get_title(loc="left") for axes in figure.axes] == titles


def test_a_steep_start_does_not_flatten_the_rest() -> None:
    steps = np.arange(1000)
    bound = np.where(steps < 30, -1e6, -100.0 + steps / 100)
    figure = draw_learning_curves([TrainingLog("run", steps, steps * 0.1, bound)])
    low, high = figure.axes[0].get_ylim()
    assert -110 < low < -95 and high < -80
