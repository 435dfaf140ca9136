"""What graphs add to tables of the core's tests."""

from mmgen.contrib.graphs._opcodes import read_opcodes
from mmgen.contrib.graphs.data_recipes.planetoid import read_citations
from tests.contrib.graphs._network import build_network
from tests.own_data._obeying import write_files

SMALL_SOURCES = {"planetoid": build_network}
READERS = {"citations": lambda path: read_citations("cora", path), "pickled": read_opcodes}
KINDS_WITHOUT_ROWS = {"graph"}  # see test_graph.py
CHOSEN_BY_PAPERS = {"planetoid": ("network",)}
USUAL_DATASETS = ["kipf-table2/cora"]
RECIPES_OF_SOURCES = {"planetoid"}
MODALITIES_OF_PRESETS = {
    "graph": {"kind": "graph", "nodes": 2708, "edges": 9, "absent": 2, "features": "features"},
    "features": {"kind": "vector", "size": 1433},
}
SMALL_PRESETS = ("kipf/",)

_CORA = ["x", "tx", "allx", "y", "ty", "ally", "graph", "test.index"]
DOORS = {
    "graph": (write_files(*(f"g/ind.cora.{name}" for name in _CORA)), ["make-data", "planetoid", "--planetoid", "g"]),
}  # fmt: skip
PATHS_OF_RECIPES = {"planetoid"}
