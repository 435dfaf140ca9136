"""``--log-to page``: a page beside the log that renews itself, which costs the training nothing and changes nothing."""

import errno
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mmgen.artifacts import read_checkpoint
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.models import build_model
from mmgen.objectives.elbo import Elbo
from mmgen.testing.small import SMALL_DATA, SMALL_MODEL, small_batch
from mmgen.training.batches import Rows
from mmgen.training.loggers import page as page_module
from mmgen.training.loggers._base import RunFacts
from mmgen.training.loggers._drawing import draw_curves, encode_picture
from mmgen.training.loggers.page import RunLogger
from mmgen.training.task import ModelTask
from tests.core import test_training_runs
from tests.core.test_training_runs import run

HOSTILE = "<script>alert(1)</script>"


class Examples(Rows):
    """Sixteen small pictures with attributes."""

    def __len__(self) -> int:
        return 16

    def batch(self, indices: torch.Tensor) -> Batch:
        return small_batch(16)[indices]


def small_task() -> ModelTask:
    torch.manual_seed(0)
    model = build_model(SMALL_MODEL, Elbo().demands, SMALL_DATA)
    return ModelTask(model, Elbo(), descriptions=SMALL_DATA.modalities)


@pytest.fixture
def pictured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are of a small model of pictures."""
    monkeypatch.setattr(test_training_runs, "Numbers", lambda size: Examples())


def page_of(folder: Path) -> str:
    return (folder / "m.log.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("pictured")
def test_a_finished_page_has_every_curve_and_pictures_of_the_last_step(tmp_path: Path) -> None:
    run(tmp_path / "m.safetensors", small_task(), log_to=["page"])  # type: ignore[arg-type]  # any task
    page = page_of(tmp_path)
    assert "<h1>m: done</h1>" in page and '<progress value="12" max="12"' in page and "step 12 of 12" in page
    titles = re.findall(r"<h3>([^<]+) <span>", page)
    assert titles[0] == "bound" and titles[-2:] == ["learning rate", "examples a second"]
    assert set(titles[1:-2]) == {"log p(image|z)", "log p(attributes|z)", "kl", "gradient norm"}
    assert len(re.findall("<svg", page)) == len(titles)
    rows = re.findall(r'<h3>([^<]+)</h3>\s*<div class="strip">(.*?)</div>', page)
    assert [(title, len(re.findall("<img", row))) for title, row in rows] == [
        ("Validation pictures", 10), ("Decoded from their z", 10), ("Drawn from the prior", 10)
    ]  # fmt: skip
    assert "training.steps" in page, "the settings"
    assert not list(tmp_path.glob("m.log/*")), "a page needs no folder"


@pytest.mark.usefixtures("pictured")
@pytest.mark.parametrize("average", [None, 0.9])
def test_a_page_changes_no_bit_of_the_run(
    average: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "_PAUSE", 0.0)
    monkeypatch.setattr(page_module, "_SHARE", 0)  # a version after every line
    drawn = []
    monkeypatch.setattr(page_module, "encode_picture", lambda picture: drawn.append(picture) or encode_picture(picture))
    for name, log_to in (("a", []), ("b", ["page"])):
        run(tmp_path / f"{name}.safetensors", small_task(), log_to=log_to, average=average)  # type: ignore[arg-type]  # any task
    (one, a), (other, b) = (read_checkpoint(tmp_path / f"{name}.safetensors", "model") for name in "ab")
    assert len(drawn) >= 6 * 30, "pictures at each of six lines"
    assert one.content_id == other.content_id and all(torch.equal(a[name], b[name]) for name in a)
    logs = [(tmp_path / f"{name}.log.jsonl").read_text() for name in "ab"]
    timeless = [re.sub(r'"(seconds|rate)": ?[\d.]+', "", log) for log in logs]
    assert timeless[0] == timeless[1]


def test_an_interrupted_run_says_so_and_goes_on_upon_its_page(tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    run(out, begin=6, log_to=["page"])
    page = page_of(tmp_path)
    assert "<h1>m: stopped</h1>" in page and "The same command again continues the training" in page
    run(out, log_to=["page"])
    page = page_of(tmp_path)
    assert "<h1>m: done</h1>" in page
    (points,) = re.findall(r'<polyline class="thin" points="([^"]+)"', page[: page.index("gradient norm")])[:1]
    assert len(points.split()) == 6, "steps 2 to 12, those before the interruption too"


def test_a_running_page_renews_itself_and_says_when_it_was_written(tmp_path: Path) -> None:
    settings = {"training": {"steps": 100, "minutes": None}, "note": HOSTILE}
    logger = RunLogger(RunFacts("m", tmp_path / "m.log", settings))
    assert "The first line of the log is not there yet" in page_of(tmp_path) and "step 0 of 100" in page_of(tmp_path)
    for step in (10, 20):
        logger.write(step, {"bound": float(-step), "seconds": step / 10, "rate": 640.0})
        logger.show(lambda: {"pictures of z": np.zeros((2, 1, 4, 4))})
    page = page_of(tmp_path)
    assert "<h1>m: running</h1>" in page and "step 10 of 100" in page, "the second line came too soon after the first"
    assert 'data-renewed="5"' in page and '<meta http-equiv="refresh" content="5">' in page, "with and without scripts"
    assert HOSTILE not in page and "&lt;script&gt;" in page and "http" not in re.sub("http-equiv", "", page)
    logger.close(True)
    page = page_of(tmp_path)
    assert "step 20 of 100 · 640 examples a second · 0:02 in all" in page and 'data-renewed="60"' in page


def test_what_is_maximised_has_the_name_of_its_task(tmp_path: Path) -> None:
    logger = RunLogger(RunFacts("m", tmp_path / "m.log", quantity="log p(labels|image)"))
    logger.write(1, {"bound": -1.0, "validation/bound": -2.0})
    logger.close(True)
    assert "<h3>log p(labels|image) <span>-2</span></h3>" in page_of(tmp_path) and "bound" not in page_of(tmp_path)


def test_remaining_time_is_that_of_the_last_lines_or_of_the_clock(tmp_path: Path) -> None:
    logger = RunLogger(RunFacts("m", tmp_path / "m.log", {"training": {"steps": 100, "minutes": None}}))
    assert logger._seconds_left() is None
    for step, seconds in ((10, 50.0), (20, 60.0), (30, 70.0)):  # a second a step, after a slow start
        logger.write(step, {"seconds": seconds})
    assert logger._seconds_left() == 70.0
    clocked = RunLogger(RunFacts("m", tmp_path / "m.log", {"training": {"steps": 10**9, "minutes": 2.0}}))
    clocked.write(10, {"seconds": 50.0})
    assert clocked._seconds_left() == 70.0


def test_a_page_that_cannot_be_written_is_dropped_and_the_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, versions = page_module.write_text_atomic, []

    def write(path: Path, text: str) -> None:
        versions.append(path)
        if len(versions) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(path, text)

    monkeypatch.setattr(page_module, "write_text_atomic", write)
    with pytest.warns(UserWarning, match="page fails .*No space left on device.* gets no more of this run"):
        assert run(tmp_path / "m.safetensors", log_to=["page"]).steps == 12


def test_a_file_of_somebody_else_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "m.log.html").write_text("my notes")
    with pytest.raises(UsageError, match=r"m.log.html is no page of a training, which it would replace; move it away"):
        run(tmp_path / "m.safetensors", log_to=["page"])
    assert page_of(tmp_path) == "my notes"


def ticks(svg: str) -> list[str]:
    return re.findall(r'text-anchor="end">([^<]+)<', svg)


def test_curves_leave_out_a_steep_start_and_thin_out_long_runs() -> None:
    steps = list(range(1, 2001))
    values = [-1e6, *(-100.0 / step for step in steps[1:])]
    svg = draw_curves([(steps, values, "thin"), ([2000], [-0.05], "thick")], 4000, "bound by step")
    (points,) = re.findall(r'points="([^"]+)"', svg)
    places = [tuple(map(float, point.split(","))) for point in points.split()]
    assert len(places) == 300 and places[-1][0] < 64 + (460 - 72) / 2 + 1, "half of the steps are done"
    assert all(abs(float(tick.replace("\N{MINUS SIGN}", "-"))) < 1 for tick in ticks(svg)[:-1]), "no axis to -1e6"
    assert svg.count("<circle") == 1 and 'aria-label="bound by step"' in svg


@pytest.mark.parametrize("values", [[float("nan")], [], [3.0, 3.0], [float("inf"), 1.0]])
def test_curves_of_any_numbers_are_drawn(values: list[float]) -> None:
    svg = draw_curves([(list(range(len(values))), values, "thin")], 0, "x")
    assert svg.startswith("<svg") and "nan" not in svg and "inf" not in svg


def test_pictures_are_grey_or_in_colour() -> None:
    import base64
    import io

    from PIL import Image

    def decode(picture: Any) -> Image.Image:
        return Image.open(io.BytesIO(base64.b64decode(encode_picture(picture).partition(",")[2])))

    assert (decode(np.full((1, 2, 3), 2.0)).mode, decode(np.full((1, 2, 3), 2.0)).getpixel((0, 0))) == ("L", 255)
    red = np.zeros((3, 2, 3))
    red[0] = 1.0
    assert (decode(red).size, decode(red).getpixel((2, 1))) == ((3, 2), (255, 0, 0))
