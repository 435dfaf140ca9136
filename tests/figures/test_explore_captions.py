"""Pages to explore of captions: a menu for each word of slots, one menu of free sentences."""

import base64
from pathlib import Path

from mmgen.figures.explore.make import Limits
from tests.figures._pages_to_explore import HOSTILE, NAMES, SMALL, page_of, scenes

__all__ = ["scenes"]  # fixtures


def test_captions_with_slots_have_a_menu_for_each_word(scenes: Path, tmp_path: Path) -> None:
    _, data = page_of([scenes / "spelled-fit.safetensors"], tmp_path / "e.html", limits=SMALL, guidance=2.0)
    assert data["map"]["colours"][1] == ["#ff0000", "#0000ff"], "of the attribute colour: red, blue"
    (part,) = data["parts"]
    assert [menu["name"] for menu in part["menus"]] == list(NAMES) and not any(menu["any"] for menu in part["menus"])
    assert len(part["keys"]) == 8 and data["judge"]["told"] == [2]
    row = part["keys"].index([1, 0, 1])
    assert part["words"][row] == "small red right"
    assert base64.b64decode(part["asked"])[3 * row : 3 * row + 3] == bytes([1, 0, 1])
    assert len(part["sources"]) == 2


def test_too_many_captions_are_those_near_some_of_the_data(scenes: Path, tmp_path: Path) -> None:
    limits = Limits(number=1, descriptions=6, weights=0)
    _, data = page_of([scenes / "spelled-fit.safetensors"], tmp_path / "e.html", limits=limits)
    (part,) = data["parts"]
    assert len(part["keys"]) == 6 and part["starts"] == [0, 1, 2, 3, 4]
    assert "in at most two words" in part["selection"]


def test_free_captions_are_one_menu_and_stay_text(scenes: Path, tmp_path: Path) -> None:
    source, data = page_of([scenes / "free-fit.safetensors"], tmp_path / "e.html", limits=SMALL)
    (part,) = data["parts"]
    assert [menu["name"] for menu in part["menus"]] == ["caption"] and data["attributes"] is None
    assert any(HOSTILE in words for words in part["words"]) and HOSTILE not in source and "<img" not in source
    assert len(set(part["words"])) == len(part["words"]) == len(part["keys"])


# ---------------------------------------------------------------- what they are made of
