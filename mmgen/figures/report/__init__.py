"""Reports: pages of pictures and tables (``mmgen report``), and contact sheets of files (``mmgen show``)."""

import mmgen.figures.drawing  # noqa: F401  # which imports matplotlib elsewhere
