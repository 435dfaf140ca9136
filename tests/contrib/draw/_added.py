"""What DRAW adds to tables of the core's tests."""

from mmgen.testing.data import NUMBER
from tests.contrib.draw._coco import write_coco
from tests.own_data._obeying import REFUSED, unpack, write_files

SMALL_SOURCES = {"coco": lambda folder, _: write_coco(folder / "coco", 2 * NUMBER)}
LINES = {"attention"}
ANIMATED = {"draw-steps"}
CASES = [
    ("coco-packed", "coco-captions {} --dry-run", REFUSED, "no file for captions_train*.json, only 3 .zip; unpack"),
]  # fmt: skip
OBEYED = {
    ("coco-packed", "coco-captions"): unpack("coco-packed", "coco-captions {} --dry-run"),
}  # fmt: skip
DOORS = {
    "annotations": (
        write_files("c/captions_train2017.json", "c/captions_val2017.json"),
        ["make-data", "coco-captions", "c", "--dry-run"],
    ),
}  # fmt: skip
PATHS_OF_RECIPES = {"coco", "train_annotations", "val_annotations"}
