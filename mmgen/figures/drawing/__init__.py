"""What pictures are made of: pages, text, style, grids, blocks, tiles."""

from mmgen.core.elsewhere import elsewhere

with elsewhere():
    import matplotlib  # noqa: F401  # before any file that draws does
