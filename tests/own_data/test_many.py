"""Many pictures: time grows as their number, not as its square."""

import time
import zipfile
from pathlib import Path

import pytest

from mmgen.data_recipes._own._folder import FolderSource
from tests.own_data._pictures import picture


def seconds(path: Path, number: int) -> float:
    """Processor seconds, the fewest of three, to look through a zip of so many pictures in five folders."""
    one = picture(0)
    with zipfile.ZipFile(path, "w") as archive:
        for n in range(number):
            archive.writestr(f"c{n % 5}/{n}.png", one)
    took = []
    for _ in range(3):
        began = time.process_time()
        source = FolderSource(path, None, ())
        took.append(time.process_time() - began)
        assert len(source.names) == number
        source.close()
    return min(took)


@pytest.mark.slow
def test_four_times_the_pictures_take_about_four_times_as_long(tmp_path: Path) -> None:
    assert seconds(tmp_path / "many.zip", 20_000) < 5 * seconds(tmp_path / "few.zip", 5_000) + 0.1
