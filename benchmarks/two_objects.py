"""How true, how fast and how reproducible: the pictures of ``mmgen make-data two-objects``.

    python benchmarks/two_objects.py --reference DIR [--scenes N] [--sheet sheet.png]

DIR holds ``scenes.json`` and ``scene-00.png`` ...: pictures that Blender's Cycles rendered of these scenes with CLEVR's
own assets; docs/two-objects.md, section "The renderer", describes such a folder. Printed are the PSNR to them, on
whole pictures and on the pixels that show an object; the mean level of the floor in the corners of N random scenes,
against CLEVR's published pictures; CPU time per picture on one core; and whether runs, shards and workers give the same
bytes. Sixteen random scenes are drawn on a sheet.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from mmgen.artifacts import read_header
from mmgen.data_recipes import _clevr, get
from mmgen.data_recipes._scene_file import read_scene_file
from mmgen.data_recipes._scenes import LOOKS, SceneArrays, draw_scenes, scene_arrays
from mmgen.data_recipes._streams import stream_keys

WHOLE_DB, OBJECT_DB, MILLISECONDS, LEVEL_STEPS = 40.0, 30.0, 25.0, 2.0
"""What the renderer is meant to keep."""

CORNERS = {"top left": 105, "top right": 103, "bottom left": 122, "bottom right": 145}
"""Mean level of the floor there in CLEVR's published pictures, of 255."""

PATCH = 8  # pixels of a corner's side
LETTERBOX = 14  # published pictures are 4:3: their corners lie so many of 112 rows inside ours


def psnr(square: float) -> float:
    return float(10.0 * np.log10(255.0**2 / square))


def random_scenes(number: int, seed: int = 0) -> SceneArrays:
    keys = stream_keys(seed, "benchmark", np.arange(number))
    return scene_arrays(draw_scenes(keys, 2, LOOKS, _clevr.visible_pixels), LOOKS, keys)


def rows_of(scenes: SceneArrays, rows: slice) -> SceneArrays:
    return {name: values[rows] for name, values in scenes.items()}


def fidelity(folder: Path, samples: int) -> None:
    file = read_scene_file(folder / "scenes.json", 2, LOOKS)
    n = len(file.scenes)
    scenes = scene_arrays(file.scenes, LOOKS, stream_keys(0, "benchmark reference", np.arange(n)))
    images = [np.asarray(Image.open(folder / f"scene-{i:02d}.png").convert("RGB"), np.float64) for i in range(n)]
    references = np.stack(images).transpose(0, 3, 1, 2)
    size = references.shape[-1]
    squares = ((_clevr.render(scenes, size, samples) - references) ** 2).mean(axis=1)
    shown = _clevr.object_masks(scenes, size) > 0
    whole = [psnr(square.mean()) for square in squares]
    objects = [psnr(square[mask].mean()) for square, mask in zip(squares, shown, strict=True)]
    print(f"fidelity at {samples} samples: PSNR in dB, whole picture / pixels that show an object")
    for i, (a, b) in enumerate(zip(whole, objects, strict=True)):
        print(f"  scene {i}    {a:.1f} / {b:.1f}")
    print(f"  mean       {np.mean(whole):.2f} / {np.mean(objects):.2f}   (meant: {WHOLE_DB:.0f} / {OBJECT_DB:.0f})")


def corner_levels(images: NDArray[np.uint8], masks: NDArray[np.uint8]) -> dict[str, float]:
    """Mean floor level in each corner of pictures [n, 3, S, S], where no object is."""
    edge, box = LETTERBOX * images.shape[-1] // 112, PATCH * images.shape[-1] // 112
    upper, lower = slice(edge, edge + box), slice(-edge - box, -edge)
    left, right = slice(0, box), slice(-box, None)
    grey = images.mean(axis=1)
    levels = {}
    for name, rows, columns in zip(CORNERS, (upper, upper, lower, lower), (left, right, left, right), strict=True):
        levels[name] = float(grey[:, rows, columns][masks[:, rows, columns] == 0].mean())
    return levels


def speed(scenes: SceneArrays, size: int, samples: int) -> NDArray[np.float64]:
    """CPU milliseconds of each picture on one core, the lesser of two tries."""
    milliseconds = np.empty((2, len(scenes["seed"])))
    for attempt in milliseconds:
        for i in range(len(attempt)):
            start = time.thread_time()
            _clevr.render(rows_of(scenes, slice(i, i + 1)), size, samples)
            attempt[i] = 1e3 * (time.thread_time() - start)
    return milliseconds.min(axis=0)


def digest(images: NDArray[np.uint8]) -> str:
    return hashlib.sha256(np.ascontiguousarray(images).tobytes()).hexdigest()[:16]


def digest_of_random(number: int, shard: int) -> str:
    """Digest of random scenes that were drawn whole and rendered ``shard`` at a time."""
    scenes = random_scenes(number)
    parts = [_clevr.render(rows_of(scenes, slice(i, i + shard)), 112) for i in range(0, number, shard)]
    return digest(np.concatenate(parts))


def identity(number: int) -> dict[str, bool]:
    here = digest_of_random(number, number)
    program = f"import two_objects; print(two_objects.digest_of_random({number}, {number}))"
    command = [sys.executable, "-c", program]
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    there = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | {"PYTHONPATH": path}
    )
    ids = []
    with tempfile.TemporaryDirectory() as folder:
        for workers, chunk in ((1, 256), (1, 7), (2, 5)):
            file = Path(folder) / f"{workers}-{chunk}.h5"
            get("two-objects")(number=number, masks=True).make(file, workers=workers, chunk=chunk).run()
            ids.append(read_header(file).content_id)
    return {
        "two runs": there.stdout.strip() == here,
        f"pictures in shards of 1, 5 and {number}": all(digest_of_random(number, shard) == here for shard in (1, 5)),
        "datasets in chunks of 7 and 256": ids[1] == ids[0],
        "datasets by 1 and 2 workers": ids[2] == ids[0],
    }


def contact_sheet(scenes: SceneArrays, path: Path, samples: int) -> None:
    images = _clevr.render(rows_of(scenes, slice(0, 16)), 224, samples)
    sheet = images.reshape(4, 4, 3, 224, 224).transpose(0, 3, 1, 4, 2).reshape(4 * 224, 4 * 224, 3)
    Image.fromarray(sheet).save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", type=Path, help="folder of reference pictures; without it, no fidelity")
    parser.add_argument("--scenes", type=int, default=256, help="random scenes to measure")
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--sheet", type=Path, default=Path("two-objects.png"), help="picture of sixteen scenes")
    options = parser.parse_args()
    work = _clevr.compile_kernels()
    start = time.process_time()
    if work is not None:
        work.run()
    print("kernels    " + ("cached" if work is None else f"compiled in {time.process_time() - start:.1f} s of CPU"))
    if options.reference is not None:
        fidelity(options.reference, options.samples)

    scenes = random_scenes(options.scenes)
    levels = corner_levels(_clevr.render(scenes, 112, options.samples), _clevr.object_masks(scenes, 112))
    print(f"floor in the corners of {options.scenes} random scenes, of 255, against CLEVR's published pictures")
    for name, level in levels.items():
        print(f"  {name:12s} {level:.1f} - {CORNERS[name]} = {level - CORNERS[name]:+.1f}   (meant: {LEVEL_STEPS:.0f})")

    some = rows_of(scenes, slice(0, 96))
    print(f"CPU milliseconds per picture on one core, {options.samples} samples; load {os.getloadavg()[0]:.1f}")
    for size in (112, 64):
        took = speed(some, size, options.samples)
        meant = f"   (meant: {MILLISECONDS:.0f})" if size == 112 else ""
        print(f"  {size} x {size}: mean {took.mean():.1f}, most {took.max():.1f}{meant}")

    print("identity")
    for name, same in identity(24).items():
        print(f"  {name}: {'the same bytes' if same else 'DIFFERENT'}")
    contact_sheet(scenes, options.sheet, options.samples)
    print(f"sheet      {options.sheet}")


if __name__ == "__main__":
    main()
