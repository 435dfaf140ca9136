from ._base import Picture as Picture, Plot as Plot, PlotOptions as PlotOptions, Session as Session, accepts as accepts
from ._draw import draw_plot as draw_plot
from ._members import describe as describe, get as get, import_all as import_all, names as names
