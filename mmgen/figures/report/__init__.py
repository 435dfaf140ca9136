"""Pages of pictures and tables: ``mmgen report``, and what ``mmgen show`` draws of a file."""

import mmgen.figures.drawing  # noqa: F401  # which imports matplotlib elsewhere
