"""Pictures of Pillow with more than 8 bits are refused: it would cut their levels off at 0 and 255."""

from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from mmgen.core.errors import UsageError
from mmgen.generation.inputs import _tensor_of_pillow

INFO: Any = SimpleNamespace(shape=(1, 4, 4))


@pytest.mark.parametrize(("mode", "level"), [("I", 70000), ("I", -5), ("I;16", 60000), ("F", 0.5)])
def test_deep_pictures_are_refused(mode: str, level: float) -> None:
    with pytest.raises(UsageError, match=f"image got a picture of mode {mode}, expected 8 bits a channel"):
        _tensor_of_pillow("image", [Image.new("L", (4, 4)), Image.new(mode, (4, 4), level)], INFO)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "HSV"])
def test_others_are_read(mode: str) -> None:
    assert _tensor_of_pillow("image", Image.new(mode, (4, 4)), INFO).shape == (1, 1, 4, 4)
