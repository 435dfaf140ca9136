"""What pages to explore are made of: sheets of pictures."""

import numpy as np

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
