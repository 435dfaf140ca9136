"""A figure says which files it shows nothing of; and refuses what it cannot be, before anything is drawn."""

from pathlib import Path

import pytest

from mmgen.core.errors import ArtifactError, UsageError
from mmgen.figures import plots
from mmgen.figures.drawing.page import Grid
from mmgen.figures.plots._base import draw_plot
from tests.cli.conftest import Run, run
from tests.figures.test_trade_off import example
from tests.worlds import added

__all__ = ["run"]  # the fixture

SCORES = {"trade-off", "disentanglement", "over-setting", "weak-supervision"}
LINES = SCORES | {"contours", "latent-map", "embedding"}.union(*added("LINES"))
"""As docs/figures.md has them."""
ANIMATED: set[str] = set().union(*added("ANIMATED"))


def test_what_figures_say_of_themselves() -> None:
    assert {name for name in plots.names() if plots.get(name).reads_scores} == SCORES
    assert {name for name in plots.names() if plots.get(name).lines} == LINES
    assert {name for name in plots.names() if plots.get(name).animated} == ANIMATED


@pytest.mark.parametrize("name", plots.names())
def test_every_figure_refuses_files_of_another_kind_by_name(name: str, world: Path, tmp_path: Path) -> None:
    wrong = world / "judge.safetensors"
    expected = r"files of scores \(\.jsonl\)" if name in SCORES else "a model, or a posterior fitted to one"
    for path, what in ((wrong, "a classifier"), (world / "data.h5", "a dataset")):
        with pytest.raises(UsageError, match=rf"^{name} got {path} \({what}\), expected {expected}"):
            draw_plot(name, [path])
    log = tmp_path / "model.log.jsonl"
    log.write_text('{"step": 1}\n')
    with pytest.raises(UsageError, match=rf"^{name} got {log} \(a log of training\), expected {expected}"):
        draw_plot(name, [log])
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    with pytest.raises(ArtifactError, match=f"{empty} holds no scores, expected some"):
        draw_plot(name, [empty])


def test_files_that_scores_do_not_need_are_told(world: Path, tmp_path: Path) -> None:
    scores, log = example(tmp_path), tmp_path / "a.log.jsonl"
    log.write_text('{"step": 1}\n')
    model = world / "flat.safetensors"
    alone, _ = draw_plot("trade-off", [scores])
    picture, notices = draw_plot("trade-off", [scores, world / "judge.safetensors", model, log])
    assert picture.caption == alone.caption
    assert notices[-1] == (
        f"trade-off does not use {world / 'judge.safetensors'} (a classifier) and {log} (a log of training)."
    )
    assert draw_plot("trade-off", [scores, model])[1] == []  # whose dataset is asked what it is


def test_files_that_pictures_do_not_need_are_told(world: Path, tmp_path: Path) -> None:
    model, scores = world / "flat.safetensors", example(tmp_path)
    _, notices = draw_plot("traversal", [model, scores], number=1)
    assert notices[-1] == f"traversal does not use {scores} (scores)."
    assert draw_plot("traversal", [model, world / "data.h5"], number=1)[1] == []


@pytest.mark.parametrize("name", plots.names())
def test_endings_are_checked_before_anything_is_computed(name: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_text("nobody reads this")
    lines = name in LINES
    others = ", .pdf or .svg" if lines else " or .gif" if name in ANIMATED else ""
    for ending in (".txt", "", *(() if lines else (".pdf", ".svg"))):
        done = run("plot", name, "model.safetensors", "-o", f"out{ending}")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"mmgen: --output got out{ending}, expected a name ending in .png{others}\n"


def test_what_is_drawn_is_what_the_figure_says(world: Path, tmp_path: Path) -> None:
    for name in ("traversal", "embedding", "latent-map", "reconstructions"):
        picture, _ = draw_plot(name, [world / "flat.safetensors"])
        assert isinstance(picture.drawn, Grid) is not plots.get(name).lines
    picture, _ = draw_plot("trade-off", [example(tmp_path)])
    assert not isinstance(picture.drawn, Grid) and plots.get("trade-off").lines


def test_a_metric_that_there_is_not_is_told_first(tmp_path: Path) -> None:
    for metrics in (["precision", "nosuch"], ["nosuch"], ["nosuch", "recall"]):
        with pytest.raises(UsageError, match="unknown metric 'nosuch'"):
            draw_plot("trade-off", [example(tmp_path)], metrics=metrics)
    with pytest.raises(UsageError, match="unknown metric 'factor-scroe': did you mean 'factor-score'"):
        draw_plot("disentanglement", [example(tmp_path)], metrics=["factor-scroe"])
