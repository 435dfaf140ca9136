"""A folder that somebody sends may hold Python files of any name: none of them is run, by no command and no worker."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.program import MMGEN, ROOT, TINY, environment

IMPORTED_AS = {
    "lightning-fabric": "lightning_fabric", "pillow": "PIL", "scikit-learn": "sklearn", "dlib-bin": "dlib",
    "opencv-python-headless": "cv2", "scikit-image": "skimage", "mlflow-skinny": "mlflow", "pytest-xdist": "xdist",
}  # fmt: skip
BESIDES = (
    "bpy", "mathutils", "yaml", "requests", "urllib3", "certifi", "packaging", "typing_extensions", "pydantic_core",
    "annotated_types", "psutil", "cloudpickle", "threadpoolctl", "llvmlite", "markupsafe", "contourpy", "cycler",
    "fontTools", "kiwisolver", "pyparsing", "dateutil", "shellingham", "pygments", "markdown_it", "tqdm", "distributed",
    "tornado", "msgpack", "pandas", "sympy", "networkx", "functorch", "torchgen", "triton", "torchvision", "torchaudio",
    "hydra", "omegaconf", "lightning", "pytorch_lightning", "IPython", "ipywidgets", "lightning_utilities", "coverage",
    "sitecustomize", "usercustomize", "simplejson", "colorama", "cffi", "intel_openmp", "icc_rt", "tbb", "google",
)  # fmt: skip
"""What libraries import, or try to import."""


def names() -> list[str]:
    """Import names of the standard library, of what the project needs and of what it can use."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *(one for each in project["optional-dependencies"].values() for one in each)]
    plain = [one.split(">")[0].split("[")[0].split("=")[0] for one in needed]
    required = {IMPORTED_AS.get(one, one.replace("-", "_")) for one in plain} - {"mmgen_toolkit"}
    return sorted({*sys.stdlib_module_names, *required, *BESIDES} - {"__main__"})


def plant(folder: Path, mark: Path) -> int:
    """Modules of all those names, a plug-in and programs that leave a mark when they are run; how many."""
    folder.mkdir(parents=True, exist_ok=True)
    planted = names()
    for name in planted:
        (folder / f"{name}.py").write_text(
            f"import posix\nposix.write(posix.open({str(mark)!r}, posix.O_CREAT | posix.O_WRONLY | posix.O_APPEND), "
            f"b'{name}\\n')\n"
        )
    information = folder / "planted-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
    rooms = ("objectives", "data_recipes", "metrics", "figures", "models")
    (information / "entry_points.txt").write_text(
        "".join(f"[mmgen.{room}]\nplanted = planted:Planted\n" for room in rooms)
    )
    (folder / "planted.py").write_text(f"open({str(mark)!r}, 'a').write('planted')")
    for program in ("git", "latex", "python", "python3"):
        (folder / program).write_text(f"#!/bin/sh\necho {program} >> {mark}\n")
        (folder / program).chmod(0o755)
    return len(planted)


LIST = """
title = "Of somebody's"
source = "Somebody"
dataset = "Small digits"
[[table]]
title = "Right"
against = "TELBO"
[[table.column]]
name = "correctness, %"
metric = "correctness"
posterior = "own"
[[table.row]]
name = "TELBO"
scores = "t.jsonl"
[scale.cpu]
about = "Seconds."
folder = "out"
"""
STAGES = """
[[stage]]
why = "w"
command = "make-data"
recipe = "mnist-a"
source = "digits"
size = 16
number = 300
workers = 2
makes = "digits.h5"
[[stage]]
why = "w"
command = "train-classifier"
dataset = "digits.h5"
network = "small"
steps = 5
makes = "j.safetensors"
[[stage]]
why = "w"
command = "train"
dataset = "digits.h5"
objective = "telbo"
set.model = { image_network.name = "mlp", latent_size = 4 }
batch = 16
steps = 10
device = "cpu"
devices = 2
makes = "t.safetensors"
[[stage]]
why = "w"
command = "eval"
model = "t.safetensors"
judge = "j.safetensors"
metric = "correctness"
posterior = "own"
given_count = 4
queries = 8
draws = 2
makes = "t.jsonl"
"""
WALK = [
    ["list"],
    ["list", "objective"],
    ["env"],
    ["make-data", "folder", "cats", "--size", "16", "--workers", "2", "-o", "d.h5"],
    ["make-data", "mnist-a", "--source", "digits", "--size", "32", "--number", "5000", "--workers", "2", "-o", "a.h5"],
    ["train", "a.h5", "--objective", "telbo", "--steps", "20", *TINY, "-o", "m.safetensors"],
    ["train", "a.h5", "--objective", "telbo", "--steps", "20", *TINY, "--devices", "2", "-o", "m2.safetensors"],
    ["train-classifier", "a.h5", "--network", "small", "--steps", "5", "-o", "j.safetensors"],
    ["fit-aggregate", "m.safetensors", "--steps", "5", "-o", "q.safetensors"],
    ["eval", "q.safetensors", "--judge", "j.safetensors", "--metric", "correctness", "--draws", "2", "-o", "s.jsonl"],
    ["baseline", "a.h5", "--preset", "vedantam/telbo-mnist-a-cpu", "--attribute", "digit", "-o", "b.jsonl"],
    ["compare", "s.jsonl"],
    ["sample", "q.safetensors", "--given", "digit=3", "-n", "2", "-o", "p.png"],
    ["show", "m.safetensors"],
    ["plot", "weak-supervision", "b.jsonl", "-o", "w.png"],
    ["report", "q.safetensors", "s.jsonl", "-o", "r.html"],
    ["explore", "q.safetensors", "-o", "e.html"],
    ["export", "q.safetensors", "x"],
    ["reproduce", "l.toml", "--jobs", "2"],
    ["reproduce", "../lists/l.toml", "--jobs", "2", "-o", "further"],
    ["quickstart", "--quick", "-o", "quick"],
]


@pytest.mark.slow
@pytest.mark.long
def test_nothing_that_is_planted_is_run(tmp_path: Path) -> None:
    folder, mark = tmp_path / "sent", tmp_path / "mark"
    number = plant(folder, mark)
    assert number >= 200
    for place in (folder / "cats", folder / "out", folder / "further", folder / "quick", tmp_path / "lists"):
        plant(place, mark)
    pixels = np.random.default_rng(0)
    for picture in range(600):  # more than a worker takes at a time
        Image.fromarray(pixels.integers(0, 255, (8, 8, 3), np.uint8)).save(folder / "cats" / f"{picture}.png")
    for place in (folder, tmp_path / "lists"):
        (place / "l.toml").write_text(LIST + STAGES)
    done: list[str] = []
    for arguments in WALK:
        own = environment(1) | {"PATH": f".:{Path(sys.executable).parent}:/usr/bin:/bin"}
        run = subprocess.run(
            [*MMGEN, *arguments], cwd=folder, env=own, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert not mark.exists(), f"{arguments} ran {mark.read_text()}"
        assert run.returncode == 0, f"{arguments}: {run.stderr}"
        done.append(arguments[0])
    print(f"{number} names planted beside, {len(done)} commands: none is run")
    shutil.rmtree(folder)
