"""What pictures are made of: pages, text, style, grids, blocks, tiles."""
