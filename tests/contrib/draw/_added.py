"""What DRAW adds to tables of the core's tests."""

from mmgen.testing.data import NUMBER
from tests.contrib.draw._coco import write_coco

SMALL_SOURCES = {"coco": lambda folder, _: write_coco(folder / "coco", 2 * NUMBER)}
LINES = {"attention"}
ANIMATED = {"draw-steps"}
