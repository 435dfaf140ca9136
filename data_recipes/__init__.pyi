from ._base import (
    FIRST_WORKER_SECONDS as FIRST_WORKER_SECONDS,
    Recipe as Recipe,
    Rows as Rows,
    Workers as Workers,
    cluster_client as cluster_client,
    cluster_error_types as cluster_error_types,
    failed_cluster_error as failed_cluster_error,
    map_in_order as map_in_order,
    no_workers_error as no_workers_error,
)
from ._own._recipe import Survey as Survey
from ._own._source import usual_size as usual_size
from ._streams import (
    random_bits as random_bits,
    random_choices as random_choices,
    split_by_group as split_by_group,
    stream_keys as stream_keys,
)

def describe(name: str) -> str: ...
def get(name: str) -> type[Recipe]: ...
def import_all() -> dict[str, type[Recipe]]: ...
def names() -> list[str]: ...
