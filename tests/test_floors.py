"""The direction of dependency: who may import whom, read from the sources; every file, every import, wherever it is."""

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ("mmgen", "data_recipes", "cli")  # from the ground up: folders of the repository, the upper two inside mmgen

# Rooms of mmgen/ in order: each imports only from itself and from rooms before it.
GROUND = ("core", "settings", "descriptions", "results")
ROOMS = (
    *GROUND,
    "likelihoods",
    "networks",
    "latent",
    "modalities",
    "artifacts",
    "codecs",
    "inference",
    "models",
    "objectives",
    "training",
    "densities",
    "posteriors",
    "classifier",
    "generation",
    "evaluation",
    "metrics",
    "figures",
    "commands",
    "experiments",
    "testing",
    "contrib",  # worlds beside the core; their folders belong to the rooms whose names they have
    "mmgen",  # what `import mmgen` offers
)
FIGURES = ("drawing", "session", "plots", "report")  # in order, as the rooms are
RECIPES_KNOW = (*GROUND, "modalities", "artifacts")  # a recipe knows no model

# Arrows that run up, each with its reason.
UPWARD = {
    ("mmgen.__main__", "mmgen.cli"): "`python -m mmgen` is the program",
}


def name_of(path: Path) -> str:
    """Dotted name of a module: ``cli/_measure.py`` is ``mmgen.cli._measure``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "mmgen" else ("mmgen", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = [path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py"))]
MODULES = {name_of(path): path for path in SOURCES}


@cache
def imports(path: Path) -> set[str]:
    """Dotted names of everything that a file imports, anywhere, and of rooms that its strings name."""
    module = name_of(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            inner = {f"{origin}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else origin for name in inner}
    return found | named_rooms(tree)


def named_rooms(tree: ast.Module) -> set[str]:
    """Rooms and their modules that are named by strings, such as "mmgen.metrics": as good as an import of them."""
    docs = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in docs]
    names = {text for text in texts if isinstance(text, str) and re.fullmatch(r"mmgen(\.\w+)+(:\w+)?", text)}
    return {name.partition(":")[0] for name in names if name.split(".")[1].partition(":")[0] in (*ROOMS, *FLOORS)}


@cache
def ours(path: Path) -> set[str]:
    """The modules of the three floors that a file imports."""
    found = set()
    for name in imports(path):
        while name and name not in MODULES:
            name = name.rpartition(".")[0]
        found |= {name} if name else set()
    return found - {name_of(path)}


def place_of(module: str) -> str:
    """Where a module stands: in a world beside the core a folder with a room's name belongs to that room."""
    parts = module.split(".")
    if parts[1:2] == ["contrib"] and len(parts) > 4:
        room = {"plots": "figures.plots"}.get(parts[3], parts[3])
        if room.split(".")[0] in (*ROOMS, *FLOORS):
            return ".".join(["mmgen", room, *parts[4:]])
    return module


def floor_of(module: str) -> int:
    parts = place_of(module).split(".")
    return FLOORS.index(parts[1]) if len(parts) > 1 and parts[1] in FLOORS else 0


def room_of(module: str) -> str:
    """Room of a module of ``mmgen/``."""
    parts = place_of(module).split(".")
    return parts[1] if len(parts) > 1 else "mmgen"


def world_of(module: str) -> str:
    """World beside the core that a module belongs to; "" for the core."""
    parts = module.split(".")
    return parts[2] if parts[1:2] == ["contrib"] and len(parts) > 2 else ""


def listed(module: str, imported: str) -> bool:
    return any(module == low and f"{imported}.".startswith(f"{high}.") for low, high in UPWARD)


def tops(module: str) -> set[str]:
    """The packages that a file imports from."""
    return {name.split(".")[0] for name in imports(MODULES[module])}


def offenders(rule: Callable[[str], set[str]], modules: Iterable[str] = MODULES) -> dict[str, set[str]]:
    """What each file does against a rule, where it does."""
    return {module: found for module in modules if (found := rule(module))}


def test_every_room_is_in_the_order() -> None:
    here = {room for room in ROOMS if room != "contrib" or (ROOT / "mmgen" / room).is_dir()}
    assert {room_of(module) for module in MODULES if floor_of(module) == 0} - {"__main__"} == here


def test_a_file_imports_only_from_floors_below() -> None:
    def above(module: str) -> set[str]:
        found = {name for name in ours(MODULES[module]) if floor_of(name) > floor_of(module)}
        return {name for name in found if not listed(module, name)}

    assert not offenders(above)


def test_a_room_imports_only_from_rooms_before_it() -> None:
    def behind(module: str) -> set[str]:
        room = ROOMS.index(room_of(module))
        below = [name for name in ours(MODULES[module]) if floor_of(name) == 0 and world_of(name) != world_of(module)]
        found = {name for name in below if ROOMS.index(room_of(name)) > room}
        return {name for name in found if not listed(module, name)}

    assert not offenders(behind, [name for name in MODULES if floor_of(name) == 0 and name != "mmgen.__main__"])


def test_no_room_imports_a_private_module_of_another() -> None:
    def home(module: str) -> list[str]:
        return place_of(module).split(".")[:2]

    def private(module: str) -> set[str]:
        found = {name for name in ours(MODULES[module]) if any(part.startswith("_") for part in name.split(".")[1:])}
        found = {name for name in found if not world_of(name) or world_of(name) != world_of(module)}
        return {name for name in found if home(name) != home(module) and name != "mmgen.__main__"}

    assert not offenders(private, [name for name in MODULES if name != "mmgen.__main__"])


def test_a_recipe_knows_no_model() -> None:
    def known(module: str) -> set[str]:
        return {
            room_of(name)
            for name in ours(MODULES[module])
            if floor_of(name) == 0 and not (world_of(name) and world_of(name) == world_of(module))
        } - set(RECIPES_KNOW)

    assert not offenders(known, [name for name in MODULES if FLOORS[floor_of(name)] == "data_recipes"])


def test_figures_import_only_from_folders_before_theirs() -> None:
    def behind(module: str) -> set[str]:
        own = FIGURES.index(module.split(".")[2])
        drawing = [name for name in ours(MODULES[module]) if name.startswith("mmgen.figures.")]
        return {name for name in drawing if FIGURES.index(name.split(".")[2]) > own}

    assert not offenders(behind, [name for name in MODULES if name.startswith("mmgen.figures.")])


def test_the_core_imports_nothing_of_contrib() -> None:
    def beside(module: str) -> set[str]:
        return {name for name in ours(MODULES[module]) if name.startswith("mmgen.contrib.")}

    core = [name for name in MODULES if not name.startswith("mmgen.contrib.")]
    assert len(core) < len(MODULES) or not (ROOT / "mmgen" / "contrib").is_dir()
    assert not offenders(beside, core)


def test_a_world_imports_no_other_world() -> None:
    def others(module: str) -> set[str]:
        return {world_of(name) for name in ours(MODULES[module])} - {"", world_of(module)}

    assert not offenders(others, [name for name in MODULES if world_of(name)])


def test_every_exception_is_needed() -> None:
    assert all(any(f"{name}.".startswith(f"{high}.") for name in ours(MODULES[low])) for low, high in UPWARD)


def circles(arrows: dict[str, set[str]]) -> Iterator[list[str]]:
    """Circles among modules: a depth-first search that names the way back to a module it is still inside of."""
    done: set[str] = set()
    for start in arrows:
        way, ahead = [start], [sorted(arrows[start])]
        while way and start not in done:
            if not ahead[-1]:
                done.add(way.pop())
                ahead.pop()
                continue
            name = ahead[-1].pop()
            if name in way:
                yield [*way[way.index(name) :], name]
            elif name not in done:
                way.append(name)
                ahead.append(sorted(arrows[name]))


def test_a_circle_is_found() -> None:
    assert list(circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}})) == [["b", "c", "b"]]


def test_no_modules_import_each_other_in_a_circle() -> None:
    arrows = {module: {name for name in ours(path) if name != "mmgen"} for module, path in MODULES.items()}
    assert not list(circles(arrows))


def test_the_upper_floors_are_known_as_parts_of_mmgen() -> None:
    assert not offenders(lambda module: tops(module) & {"cli", "data_recipes"})


def test_the_library_never_talks() -> None:
    library = [name for name in MODULES if FLOORS[floor_of(name)] != "cli"]
    assert not offenders(lambda module: tops(module) & {"typer", "rich", "click"}, library)


def test_nothing_unlisted_is_imported() -> None:
    known = {
        "h5py", "jinja2", "joblib", "lazy_loader", "lightning_fabric", "matplotlib", "numpy", "PIL", "platformdirs",
        "pydantic", "pydantic_core", "rich", "safetensors", "scipy", "sklearn", "tensorboard", "torch", "typer",
        "zuko", "dask", "distributed", "numba", "llvmlite",
        "wandb", "mlflow",  # the extras of these names
        "cv2", "dlib", "skimage",  # the extra faces
        "datasets", "pyarrow", "yaml",  # the extra hub, and what it reads descriptions by
        "onnxruntime", "onnxscript",  # the extra onnx
        "sacrebleu",  # the extra translation
    }  # fmt: skip
    known |= {*FLOORS, *sys.stdlib_module_names}
    assert not offenders(lambda module: tops(module) - known)


def test_a_file_that_breaks_a_rule_is_found() -> None:
    assert offenders(lambda module: tops(module) & {"torch"}).keys() > {"mmgen.latent.gaussian"}
    assert "mmgen.cli._make" in offenders(lambda module: tops(module) & {"typer"})


def test_a_room_named_by_a_string_counts_as_imported() -> None:
    source = '"""Of "mmgen.metrics"."""\nx = "mmgen.metrics"\ny = "mmgen.judge_networks", "mmgen.classifier:Settings"'
    assert named_rooms(ast.parse(source)) == {"mmgen.metrics", "mmgen.classifier"}
