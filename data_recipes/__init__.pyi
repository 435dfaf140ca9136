from ._base import Recipe as Recipe
from ._cluster import (
    PATIENCE as PATIENCE,
    cluster_client as cluster_client,
    cluster_failures as cluster_failures,
    lost as lost,
    no_workers as no_workers,
)
from ._members import describe as describe, get as get, importable as importable, names as names
from ._own._found import Found as Found
