"""Drawing of pages of pictures: their layout, text, style, grids, blocks and tiles."""

import logging

from mmgen.core.extras import outside_current_folder

_log = logging.getLogger("matplotlib")
_level = _log.level
_log.setLevel(logging.ERROR)  # where it keeps fonts without a home is no business of whoever draws
with outside_current_folder():
    import matplotlib.font_manager  # noqa: F401  # before any file that draws does
_log.setLevel(_level)
