from .gaussian import DiagonalGaussian as DiagonalGaussian
from .labels import IMPOSSIBLE as IMPOSSIBLE, LabelledStyle as LabelledStyle, Labels as Labels
from .posterior import Posterior as Posterior
from .space import Axis as Axis, LatentSpace as LatentSpace
from .trace import Trace as Trace
