"""Drawing of pages of pictures: their layout, text, style, grids, blocks and tiles."""

from mmgen.core.extras import outside_current_folder

with outside_current_folder():
    import matplotlib  # noqa: F401  # before any file that draws does
