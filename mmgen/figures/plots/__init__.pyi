from ._base import Plot as Plot
from ._draw import draw_plot as draw_plot
from ._members import describe as describe, get as get, importable as importable, names as names
