from ._base import ROWS as ROWS, Description as Description, Modality as Modality, Sight as Sight, whole as whole
from ._described import Described as Described
from ._graph import Graph as Graph
from ._members import describe as describe, get as get, importable as importable, names as names
