from ._base import Recipe as Recipe, Rows as Rows, Workers as Workers, in_order as in_order
from ._cluster import (
    PATIENCE as PATIENCE,
    cluster_client as cluster_client,
    cluster_failures as cluster_failures,
    lost as lost,
    no_workers_error as no_workers_error,
)
from ._members import describe as describe, get as get, importable as importable, names as names
from ._own._survey import Survey as Survey
from ._splits import by_group as by_group
from ._streams import bits as bits, choice as choice, stream_keys as stream_keys
