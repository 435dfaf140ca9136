"""Blender's side of the fence, with a fake Blender: a script that does what is asked of an interpreter."""

import json
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mmgen.core.errors import DataError, UsageError
from mmgen.data_recipes._clevr import _blender
from mmgen.data_recipes._clevr._blender import blender_scenes, render_with_blender
from mmgen.data_recipes._scene_file import read_scene_file
from mmgen.data_recipes._scenes import LOOKS, SceneArrays, scene_arrays

SCENES = Path(__file__).with_name("reference_scenes.json")


@pytest.fixture(scope="module")
def scenes() -> SceneArrays:
    file = read_scene_file(SCENES, 2, LOOKS)
    return scene_arrays(file.scenes, LOOKS, np.full(len(file.scenes), 2**63 + 5, np.uint64))


def interpreter(folder: Path, body: str) -> Path:
    """An executable that gets what a Python would: worker, job and folder in ``sys.argv[1:]``."""
    path = folder / "fake-python"
    path.write_text(f"#!{sys.executable}\nimport json, sys\nfrom pathlib import Path\n{body}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


PAINTER = """
from PIL import Image
_, worker, job, folder = sys.argv
assert Path(worker).name == "_blender_worker.py" and Path(worker).is_file()
job = json.loads(Path(job).read_text())
print("Blender chats on stdout")
for number, scene in enumerate(job["scenes"]):
    level = (10 * number, len(scene["bodies"]), job["samples"])
    Image.new("RGB", (job["size"], job["size"] {more}), level).save(Path(folder) / f"{{number}}.png")
"""


def test_pictures_come_back_in_order(scenes, tmp_path, capfd):
    python = interpreter(tmp_path, PAINTER.format(more=""))
    images = render_with_blender(scenes, 24, 7, python)
    assert images.shape == (8, 3, 24, 24)
    assert images.dtype == np.uint8
    assert images[:, :, 5, 5].tolist() == [[10 * i, 2, 7] for i in range(8)]
    assert capfd.readouterr() == ("", "")


def test_the_job_describes_the_whole_scene_in_json(scenes):
    job = json.loads(json.dumps(blender_scenes(scenes, 112, 64)))
    given = json.loads(SCENES.read_text())
    assert (job["size"], job["samples"]) == (112, 64)
    for said, scene in zip(job["scenes"], given, strict=True):
        assert said["camera"] == pytest.approx(scene["camera"])
        assert [lamp["position"] for lamp in said["lamps"]] == [
            pytest.approx(scene["lights"][name]) for name in ("key", "fill", "back")
        ]
        for body, thing in zip(said["bodies"], scene["objects"], strict=True):
            assert body["shape"] == thing["shape"]
            assert body["metal"] == (thing["material"] == "metal")
            assert (body["x"], body["y"]) == pytest.approx((thing["x"], thing["y"]))
            assert body["rotation"] == pytest.approx(thing["rotation_rad"])
            assert body["size"] == {"large": 0.7, "small": 0.35}[thing["size"]]
            assert body["rim"] == {"sphere": 0.0, "cylinder": 0.08, "cube": 0.19}[thing["shape"]]
        assert 0 <= said["seed"] < 2**31  # a 64-bit key is too large for Blender
    assert job["scenes"][0]["bodies"][0]["colour"] == pytest.approx([41 / 255, 208 / 255, 208 / 255])
    lamp = job["scenes"][0]["lamps"][0]
    assert (lamp["side"], lamp["watts"], lamp["colour"]) == (0.5, 78.54, [1.0, 0.9323, 0.8167])


def test_without_bpy_the_error_says_how_to_get_it(scenes, monkeypatch):
    monkeypatch.setattr(_blender.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="--blender-python"):
        render_with_blender(scenes, 16)


def test_an_interpreter_without_bpy_is_a_usage_error(scenes):
    with pytest.raises(UsageError, match="cannot import bpy"):
        render_with_blender(scenes, 16, 1, Path(sys.executable))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit('some driver\\nis missing')", "is missing"),
        ("sys.exit(3)", "exit status 3"),
        ("pass", "no picture 0.png"),
        (PAINTER.format(more="+ 1"), "16 x 17 pixels, expected 16"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "exit status -9"),
    ],
    ids=["message", "silent", "nothing", "size", "killed"],
)
def test_what_goes_wrong_in_blender_is_one_sentence(scenes, tmp_path, body, message):
    with pytest.raises(DataError, match=message) as caught:
        render_with_blender(scenes, 16, 1, interpreter(tmp_path, body))
    assert "\n" not in str(caught.value)


def test_the_workers_meshes_lie_on_the_bodies():
    """Its vertices are on the surfaces that the tracer meets, and its faces look outwards."""
    from mmgen.data_recipes._clevr import _blender_worker as worker

    for rim, make in ((1.0, worker._cube_mesh), (0.19, worker._cube_mesh), (0.08, worker._cylinder_mesh)):
        vertices, faces = make(rim)
        points = np.array(vertices)
        if make is worker._cube_mesh:
            outside = np.maximum(np.abs(points) - (1 - rim), 0.0)
        else:
            outside = np.stack([np.hypot(points[:, 0], points[:, 1]), np.abs(points[:, 2])], axis=1) - (1 - rim)
            outside = np.maximum(outside, 0.0)
        assert np.allclose(np.linalg.norm(outside, axis=1), rim)
        edges = {}
        for face in faces:
            a, b, c = points[face[0]], points[face[1]], points[face[2]]
            assert np.dot(np.cross(b - a, c - a), points[list(face)].mean(axis=0)) > 0
            for one, next_one in zip(face, [*face[1:], face[0]], strict=True):
                edges[one, next_one] = edges.get((one, next_one), 0) + 1
        # A closed surface: every edge is walked once in each direction.
        assert all(count == 1 and (b, a) in edges for (a, b), count in edges.items())


@pytest.mark.slow
def test_a_real_blender_agrees_with_the_tracer(scenes):
    """Runs where bpy can be imported."""
    if subprocess.run([sys.executable, "-c", "import bpy"], capture_output=True).returncode:
        pytest.skip("bpy is not installed for this Python")
    from mmgen.data_recipes import _clevr

    two = {name: values[:2] for name, values in scenes.items()}
    difference = render_with_blender(two, 112, 64).astype(float) - _clevr.render(two, 112)
    assert 10 * np.log10(255**2 / (difference**2).mean()) > 36
