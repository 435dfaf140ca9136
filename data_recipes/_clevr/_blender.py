"""Rendering of the same scenes by Blender's Cycles, which made CLEVR, some fifty times slower.

Blender runs in a process of its own, with a Python of its own if need be: ``bpy`` is large, under the GPL, and wants
exact versions of Python and numpy. The two talk through files: JSON there, PNG back.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import DataError, UsageError, reason_of
from mmgen.core.foreign import CannotReadError
from mmgen.core.pictures import WrongSizeError, read_picture
from mmgen.core.processes import child_environment

if TYPE_CHECKING:
    from mmgen.data_recipes._clevr import SceneArrays


_WORKER = Path(__file__).with_name("_blender_worker.py")
_SHAPES = ("sphere", "cylinder", "cube")


def blender_scenes(scenes: "SceneArrays", size: int, samples: int) -> dict[str, Any]:
    """Return scenes as JSON values for the script that Blender runs."""
    from mmgen.data_recipes._clevr import _bodies, _lamps

    def to_floats(values: Any) -> list[float]:
        return [float(value) for value in values]

    described = []
    for row in range(len(scenes["x"])):
        bodies = [
            {
                "shape": _SHAPES[int(scenes["shape"][row, i])],
                "size": float(scenes["size"][row, i]),
                "rim": _bodies.RIM[int(scenes["shape"][row, i])],
                "x": float(scenes["x"][row, i]),
                "y": float(scenes["y"][row, i]),
                "rotation": float(scenes["rotation"][row, i]),
                "metal": bool(scenes["metal"][row, i]),
                "colour": to_floats(scenes["colour"][row, i]),
            }
            for i in range(scenes["x"].shape[1])
        ]
        lamps = [
            {"position": to_floats(scenes[name][row]), "side": side, "watts": watts, "colour": list(colour)}
            for name, side, watts, colour in _lamps.LAMPS
        ]
        camera = to_floats(scenes["camera"][row])
        described.append({"camera": camera, "lamps": lamps, "bodies": bodies, "seed": int(scenes["seed"][row]) % 2**31})
    return {
        "size": size,
        "samples": samples,
        "field_of_view": _bodies.FIELD_OF_VIEW,
        "filter_width": _bodies.FILTER_WIDTH,
        "sun": {"direction": list(_lamps.SUN_DIRECTION), "strength": _lamps.SUN_STRENGTH, "angle": _lamps.SUN_ANGLE},
        "backdrop": {
            "albedo": _bodies.ALBEDO,
            "back": list(_bodies.BACK),
            "start": _bodies.START,
            "radius": _bodies.RADIUS,
            "half_width": _bodies.HALF_WIDTH,
        },
        "rubber": {
            "outer_index": _lamps.OUTER_INDEX,
            "inner_index": _lamps.INNER_INDEX,
            "velvet": _lamps.VELVET_SIGMA,
            "coat": _lamps.COAT,
            "coat_alpha": _lamps.COAT_ROUGHNESS,
        },
        "metal": {
            "glossy_share": _lamps.GLOSSY_SHARE,
            "glossy_alpha": _lamps.GLOSSY,
            "mirror_alpha": _lamps.MIRROR,
        },
        "scenes": described,
    }


def _find_interpreter(python: Path | None) -> str:
    """Find a Python that can import bpy, without starting it."""
    if python is not None:
        return str(python)
    if importlib.util.find_spec("bpy") is None:
        raise UsageError(
            "renderer blender needs bpy, which this Python cannot import: install it (pip install bpy), here or for "
            "another Python that you name with --blender-python"
        )
    return sys.executable


def _run_blender(command: list[str]) -> None:
    own = {**os.environ, **child_environment()}
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", env=own
        )
    except OSError as error:
        raise UsageError(
            f"cannot start {command[0]}: {reason_of(error)}; name a Python with bpy by --blender-python"
        ) from None
    if done.returncode:
        messages = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        last = messages[-1].strip() if messages else f"exit status {done.returncode}, and no message"
        if "No module named 'bpy'" in last:
            raise UsageError(f"{command[0]} cannot import bpy: install it there, or name another Python")
        raise DataError(f"Blender failed in {command[0]}: {last}; --renderer numba needs no Blender")


def _read_picture(path: Path, size: int) -> NDArray[np.uint8]:
    """Read one picture [3, size, size]."""
    try:
        pixels = np.asarray(read_picture(path, "RGB", size=(size, size)))
    except WrongSizeError as error:
        raise DataError(f"Blender made {path.name} of another size: {error}; use --renderer numba") from None
    except CannotReadError as error:
        raise DataError(
            f"Blender reported no error but wrote no picture {path.name} ({error}); name another Python by "
            "--blender-python"
        ) from None
    return pixels.transpose(2, 0, 1)


def render_with_blender(
    scenes: "SceneArrays", size: int, samples: int = 64, python: Path | None = None
) -> NDArray[np.uint8]:
    """Render pictures of n scenes with Cycles, on one thread."""
    interpreter = _find_interpreter(python)
    with tempfile.TemporaryDirectory(prefix="mmgen-blender-") as folder:
        job = Path(folder) / "scenes.json"
        job.write_text(json.dumps(blender_scenes(scenes, size, samples)), encoding="utf-8")
        _run_blender([interpreter, str(_WORKER), str(job), folder])
        images = [_read_picture(Path(folder) / f"{row}.png", size) for row in range(len(scenes["x"]))]
    return np.stack(images)
