"""What other programs leave in the environment of a process changes no result and ends no command."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
import torch

import mmgen
from mmgen.core.errors import UsageError
from mmgen.core.surroundings import cache_folder, keep_from_libraries
from mmgen.settings.arguments import plain_settings
from tests.program import MMGEN, TINY, environment, within

NOWHERE = "/nowhere/at all"
SETTINGS_FILE = "font.size: 77\ntext.usetex: True\nfigure.dpi: 7\n"
LAUNCHER = {"RANK": "3", "LOCAL_RANK": "3", "GROUP_RANK": "1", "NODE_RANK": "1", "WORLD_SIZE": "4", "MASTER_PORT": "x"}
HOSTILE: dict[str, dict[str, str]] = {
    "notebook": {
        "MPLBACKEND": "module://matplotlib_inline.backend_inline", "MATPLOTLIBRC": "{folder}/matplotlibrc",
        "MPLCONFIGDIR": "{folder}", "JPY_PARENT_PID": "1", "PYDEVD_USE_FRAME_EVAL": "NO",
    },
    "scheduler": {
        "SLURM_NTASKS": "2", "SLURM_JOB_ID": "1", "SLURM_JOB_NAME": "train", "SLURM_PROCID": "0", "SLURM_LOCALID": "0",
        "SLURM_NODEID": "0", "LSB_JOBID": "1", "JSM_NAMESPACE_SIZE": "2",
    },
    "launcher": {**LAUNCHER, "MASTER_ADDR": "nowhere", "TORCHELASTIC_RUN_ID": "x", "LOCAL_WORLD_SIZE": "4"},
    "libraries": {
        "TORCH_LOGS": "nonsense", "TORCH_HOME": NOWHERE, "LT_CLI_USED": "1", "LT_ACCELERATOR": "x", "LT_DEVICES": "7",
        "JOBLIB_START_METHOD": "x", "JOBLIB_MULTIPROCESSING": "x", "JOBLIB_TEMP_FOLDER": NOWHERE, "LOKY_PICKLER": "x",
        "LOKY_MAX_CPU_COUNT": "x", "NUMBA_NUM_THREADS": "x", "NUMBA_DISABLE_JIT": "x", "DASK_CONFIG": NOWHERE,
        "HF_HOME": NOWHERE, "HDF5_PLUGIN_PATH": NOWHERE, "PL_GLOBAL_SEED": "x", "CUDA_VISIBLE_DEVICES": "",
        "HDF5_DRIVER": "bogus", "HDF5_VOL_CONNECTOR": "bogus", "GOMP_CPU_AFFINITY": "zz", "OMP_PLACES": "x",
        "PYTORCH_JIT": "x", "TQDM_MININTERVAL": "x", "TORCHINDUCTOR_CACHE_DIR": "/dev/null/x", "NPY_NUMPY_1": "x",
    },
    "python": {
        "PYTHONWARNINGS": "error", "PYTHONOPTIMIZE": "2", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii",
        "PYTHONSTARTUP": NOWHERE, "PYTHONHASHSEED": "7", "PYTHONSAFEPATH": "",
    },
    "system": {
        "LC_ALL": "tr_TR.UTF-8", "TZ": "Nowhere/Town", "TERM": "nothing", "COLUMNS": "x", "LINES": "0",
        "TERMINAL_WIDTH": "x", "FORCE_COLOR": "x", "MMGEN_WIDTH": "x", "TMPDIR": NOWHERE, "HOME": "",
        "XDG_CACHE_HOME": NOWHERE, "MMGEN_CACHE": "/proc/none", "OMP_NUM_THREADS": "0", "MKL_NUM_THREADS": "x",
    },
}  # fmt: skip


def run_hostile(folder: Path, group: str, *arguments: str) -> str:
    """Run the program under a group of variables; return what it prints to stdout."""
    (folder / "matplotlibrc").write_text(SETTINGS_FILE)
    variables = {name: value.format(folder=folder) for name, value in HOSTILE[group].items()}
    done = subprocess.run(
        [*MMGEN, *arguments], cwd=folder, env={**environment(), **variables}, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    return done.stdout


def test_help_under_strange_variables(tmp_path: Path) -> None:
    assert "quickstart" in run_hostile(tmp_path, "system", "--help")


@pytest.mark.slow
@pytest.mark.parametrize("group", HOSTILE)
def test_a_model_is_made_and_drawn_under_strange_variables(group: str, tmp_path: Path) -> None:
    """Some seventy variables; the same model and the same picture under each of them."""
    made = run_hostile(tmp_path, group, "make-data", "shapes", "--number", "60", "--size", "16", "--workers", "2")
    assert made == "shapes.h5\n"
    train = ["train", "shapes.h5", "--objective", "telbo", "--steps", "2", "-o", "m.safetensors", *TINY]
    assert run_hostile(tmp_path, group, *train) == "m.safetensors\n"
    sample = ["sample", "m.safetensors", "--given", "shape=heart", "-n", "2", "-o", "s.png"]
    assert run_hostile(tmp_path, group, *sample) == "s.png\n"
    picture = hashlib.sha256((tmp_path / "s.png").read_bytes()).hexdigest()
    assert _pictures.setdefault("of all", picture) == picture


_pictures: dict[str, str] = {}


@pytest.mark.slow
def test_a_launchers_text_is_one_sentence_and_its_advice_holds(tmp_path: Path) -> None:
    within(tmp_path, "make-data", "shapes", "--number", "60", "--size", "16", "--workers", "1")
    train = [*MMGEN, "train", "shapes.h5", "--objective", "telbo", "--steps", "2", "-o", "m.safetensors", *TINY]
    slurm = HOSTILE["scheduler"]
    for wrong, devices in (({"LOCAL_RANK": "x"}, "1"), (slurm, "2")):
        command, clean = [*train, "--devices", devices, "--overwrite"], environment(1)
        done = subprocess.run(
            command, cwd=tmp_path, env={**clean, **wrong}, text=True, capture_output=True, check=False
        )
        assert done.returncode == 2 and "unset them" in done.stderr.splitlines()[-1], done.stderr
        assert subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, check=False).returncode == 0


def test_a_library_is_set_up_by_us_alone() -> None:
    variables = {name: value for group in HOSTILE.values() for name, value in group.items()}
    keep_from_libraries(variables)
    ours = {*HOSTILE["libraries"]} - {"DASK_CONFIG", "HF_HOME", "PL_GLOBAL_SEED", "CUDA_VISIBLE_DEVICES"}
    assert not ours & {*variables} and variables["MPLCONFIGDIR"] == "{folder}" and variables["OMP_NUM_THREADS"] == "0"
    assert {*LAUNCHER, *HOSTILE["scheduler"]} <= {*variables}
    assert variables["MATPLOTLIBRC"] == os.devnull
    counts = {"LOKY_MAX_CPU_COUNT": "2", "NUMBA_NUM_THREADS": "3"}
    keep_from_libraries(counts)
    assert counts == {"LOKY_MAX_CPU_COUNT": "2", "NUMBA_NUM_THREADS": "3", "MATPLOTLIBRC": os.devnull}


def test_figures_look_the_same_in_a_session_that_has_its_own_style() -> None:
    from mmgen.figures.drawing.page import Grid, Text
    from mmgen.figures.plots import Plot, PlotOptions

    def draw() -> bytes:
        canvas = np.full((40, 80, 3), 255, np.uint8)
        return Grid(canvas, [Text("a heart", 2, 2, 8)]).image.tobytes()

    def look_at_style(*_: object) -> Any:
        return matplotlib.rcParams["text.usetex"], matplotlib.rcParams["font.family"]

    plot = Plot(look_at_style, frozenset())
    plain, plain_style = draw(), plot([], PlotOptions())
    with matplotlib.rc_context({"font.family": "serif", "text.usetex": True, "figure.facecolor": "red"}):
        assert draw() == plain
        assert plot([], PlotOptions()) == plain_style
        assert matplotlib.rcParams["text.usetex"], "the session keeps its own"


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HOME", "USERPROFILE", "XDG_CACHE_HOME", "MMGEN_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # no name in passwd either
    with pytest.raises(UsageError, match=r"no home folder, .* with the variable MMGEN_CACHE"):
        cache_folder("mnist")
    done = within(tmp_path, "make-data", "mnist", "--dry-run")
    assert "MMGEN_CACHE" in done.stderr and done.returncode == 2, done.stderr
    monkeypatch.setenv("MMGEN_CACHE", str(tmp_path))
    assert cache_folder("mnist") == tmp_path / "mnist"
    assert "no home" not in within(tmp_path, "make-data", "mnist", "--dry-run").stderr


def test_settings_take_the_numbers_of_numpy_and_torch(tmp_path: Path) -> None:
    number, steps = np.float32(0.25), np.array(3)
    given = {"a.b": number, "c": {"d": [steps, torch.tensor(2.5)]}, "e": np.array([1, 2]), "f": Path("x"), "g": None}
    assert plain_settings(given) == {"a.b": 0.25, "c": {"d": [3, 2.5]}, "e": [1, 2], "f": Path("x"), "g": None}
    for wrong in (object(), {1}, b"a", 1j, np.datetime64("2020-01-01"), [[np.array([None]), set()]]):
        with pytest.raises(UsageError, match=r"^lamps got .*, expected text, a number"):
            plain_settings({"lamps": wrong})
    made = mmgen.make_data("shapes", tmp_path / "d.h5", number=np.int64(20), size=np.int32(16), spread=np.float32(0.5))
    assert len(made) == 20
    made.close()
    with pytest.raises(UsageError, match="number got"):
        mmgen.make_data("shapes", tmp_path / "e.h5", number={1, 2})


def test_settings_that_contain_themselves_are_refused() -> None:
    around: dict[str, Any] = {}
    around["a"] = [around]
    with pytest.raises(UsageError, match="expected values that do not contain themselves"):
        plain_settings(around)
    with pytest.raises(UsageError, match="do not contain themselves"):
        mmgen.make_data("shapes", number=20, settings=around)


def test_no_settings_of_python_itself_are_touched() -> None:
    variables = {"PYTHONPATH": "/x", "OMP_NUM_THREADS": "2", "WANDB_MODE": "offline", "HF_HOME": "/y", "PATH": "/bin"}
    before = dict(variables)
    keep_from_libraries(variables)
    assert {name: value for name, value in variables.items() if name != "MATPLOTLIBRC"} == before


def test_drawing_without_a_home_says_nothing_of_fonts(tmp_path: Path) -> None:
    variables = {**environment(), "HOME": "/dev/null", "MPLCONFIGDIR": "", "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": ""}
    words = [sys.executable, "-c", "import mmgen.figures.drawing.style"]
    done = subprocess.run(words, env=variables, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
