from .gaussian import DiagonalGaussian as DiagonalGaussian, Posterior as Posterior
from .labels import IMPOSSIBLE as IMPOSSIBLE, LabelledStyle as LabelledStyle, Labels as Labels
from .space import Axis as Axis, LatentSpace as LatentSpace
from .trace import Trace as Trace
