"""A page to explore of a kind of data that another package brings."""

from pathlib import Path

from tests.conftest import Call
from tests.test_sound import _installed as _installed, made as made, site as site


def test_sounds(made: Path, call: Call) -> None:
    code, _, err = call("explore", made / "t.safetensors", "-n", "2", "-o", made / "e.html")
    assert code == 0, err
    assert "data:image" in (made / "e.html").read_text()
