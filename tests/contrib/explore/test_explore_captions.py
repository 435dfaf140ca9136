"""Pages to explore of captions: a menu for each word of slots, one menu of free sentences."""

import base64
from pathlib import Path

import numpy as np

from mmgen.contrib.explore.make import Limits
from tests.contrib.explore._pages_to_explore import HOSTILE, NAMES, SMALL, page_of, scenes

__all__ = ["scenes"]  # fixtures


def test_captions_with_slots_have_a_menu_for_each_word(scenes: Path, tmp_path: Path) -> None:
    _, data = page_of([scenes / "spelled-fit.safetensors"], tmp_path / "e.html", limits=Limits(2), guidance=2.0)
    assert data["map"]["colours"][1] == ["#ff0000", "#0000ff"], "of the attribute colour: red, blue"
    (part,) = data["parts"]
    assert [menu["name"] for menu in part["menus"]] == list(NAMES) and data["judge"]["told"] == [2]
    rows = np.frombuffer(base64.b64decode(part["rows"]), "<i2").reshape(-1, 3).tolist()
    assert len(rows) == part["held"] == 8 and part["captions"][rows.index([1, 0, 1])] == "small red right"
    assert part["counts"] == sorted(part["counts"], reverse=True) and sum(part["counts"]) == 40, "of training captions"
    assert len(part["sources"]) == 2


def test_free_captions_are_one_menu_and_stay_text(scenes: Path, tmp_path: Path) -> None:
    source, data = page_of([scenes / "free-fit.safetensors"], tmp_path / "e.html", limits=SMALL)
    (part,) = data["parts"]
    assert [menu["name"] for menu in part["menus"]] == ["caption"] and data["attributes"] is None
    assert any(HOSTILE in words for words in part["captions"]) and HOSTILE not in source and "<img" not in source
    assert len(set(part["captions"])) == len(part["captions"]) == len(part["counts"])
