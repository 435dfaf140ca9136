"""What pages to explore are made of: sheets of pictures."""

from pathlib import Path

import numpy as np
import pytest

from mmgen.contrib.explore.make import Limits, make_explorer
from mmgen.contrib.explore.sprites import STEP, pack_sheets
from tests.contrib.explore._pages_to_explore import picture


def test_sheets_hold_every_picture_in_sixteen_greys() -> None:
    generator = np.random.default_rng(0)
    pictures = generator.integers(0, 256, (800, 60, 90, 1)).astype(np.uint8)
    sheets = pack_sheets(pictures)
    assert len(sheets.images) > 1
    for number in (0, 1, sheets.per_sheet - 1, sheets.per_sheet, 799):
        shown = picture(sheets.to_json(), number)
        assert (shown[..., 0] == np.rint(pictures[number, ..., 0] / STEP) * STEP).all()
        assert (shown == shown[..., :1]).all()


@pytest.mark.slow
def test_a_page_to_explore_says_so_too(world: Path, tmp_path: Path) -> None:
    log, limits = tmp_path / "a.log.jsonl", Limits(1, 2)
    log.write_text('{"step": 1}\n')
    files = [world / "flat.safetensors", world / "judge.safetensors"]
    assert "does not use" not in make_explorer(files, tmp_path / "e.html", limits=limits).run().read_text()
    page = make_explorer([*files, log], tmp_path / "e.html", limits=limits).run().read_text()
    assert "The page does not use" in page and f"{log.name} (a log of training)." in page
