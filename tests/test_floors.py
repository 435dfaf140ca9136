"""The direction of dependency: who may import whom, read from the sources."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ("mmgen", "data_recipes", "cli")  # from the ground up: folders of the repository, the upper two inside mmgen

# Rooms of mmgen/ that must know nothing of the rooms behind them.
ROOMS = (
    "artifacts",
    "likelihoods",
    "networks",
    "modalities",
    "inference",
    "models",
    "objectives",
    "training",
    "aggregates",
    "classifier",
    "generation",
    "metrics",
    "figures",
)
ENTRANCE = ROOT / "mmgen" / "__main__.py"
SOURCES = [path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py")) if path != ENTRANCE]


def floor_of(name: str) -> int:
    """Number of the floor that a dotted name belongs to; -1 for what is not ours."""
    parts = name.split(".")
    if parts[0] != "mmgen":
        return -1
    return FLOORS.index(parts[1]) if len(parts) > 1 and parts[1] in FLOORS else 0


def imports(path: Path, top_only: bool = False) -> set[str]:
    """Dotted names of everything that a file imports, but for type checkers only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    nodes = tree.body if top_only else ast.walk(tree)
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_file_imports_only_from_floors_below(path: Path) -> None:
    floor = FLOORS.index(path.relative_to(ROOT).parts[0])
    assert not {name for name in imports(path) if floor_of(name) > floor}


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_the_upper_floors_are_known_as_parts_of_mmgen(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & {"cli", "data_recipes"}


@pytest.mark.parametrize("path", [p for p in SOURCES if "cli" not in p.relative_to(ROOT).parts], ids=name_of)
def test_the_library_never_talks(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & {"typer", "rich", "click"}


@pytest.mark.parametrize("path", [p for p in SOURCES if p.parent.name in ROOMS], ids=name_of)
def test_a_room_imports_at_its_top_only_from_rooms_before_it(path: Path) -> None:
    room = ROOMS.index(path.parent.name)
    behind = {
        name
        for name in imports(path, top_only=True)
        if name.startswith("mmgen.") and name.split(".")[1] in ROOMS[room + 1 :]
    }
    assert not behind


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_file_is_over_400_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_nothing_unlisted_is_imported(path: Path) -> None:
    listed = {
        "h5py", "jinja2", "joblib", "lightning_fabric", "matplotlib", "numpy", "PIL", "platformdirs", "pooch",
        "pydantic", "pydantic_core", "rich", "safetensors", "scipy", "sklearn", "tensorboard", "torch", "typer",
        "zuko", "dask", "distributed", "numba", "llvmlite",
        "cv2", "dlib", "skimage",  # the extra faces
        "bpy", "mathutils",  # by what runs inside Blender's Python
    }  # fmt: skip
    outside = {name.split(".")[0] for name in imports(path)} - set(FLOORS) - set(sys.stdlib_module_names)
    assert outside <= listed
