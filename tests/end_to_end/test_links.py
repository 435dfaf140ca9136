"""Whatever writes into a folder replaces what has its names there: no link in it leads our writing elsewhere."""

import os
import shutil
from pathlib import Path

import pytest

from tests.program import TINY, mmgen

pytestmark = pytest.mark.slow

LIST = Path(__file__).parents[1] / "lists" / "two-objectives.toml"
COMMANDS = [  # each with the files that it writes besides the one after -o
    (["make-data", "mnist-a", "--source", "digits", "--size", "32", "--number", "200", "--workers", "1"], "x.h5", []),
    (
        ["train", "d.h5", "--steps", "20", "--log-to", "tensorboard", *TINY],
        "x.safetensors",
        ["x.last.safetensors", "x.log.jsonl", "x.log/"],
    ),
    (["train-classifier", "d.h5", "--network", "small", "--steps", "3"], "x.safetensors", ["x.log.jsonl"]),
    (["fit-aggregate", "m.safetensors", "--steps", "20"], "x.safetensors", ["x.last.safetensors", "x.log.jsonl"]),
    (["eval", "m.safetensors", "--metric", "correctness", "--given-count", "1"], "x.jsonl", []),
    (["sample", "m.safetensors", "--number", "2"], "x.png", []),
    (["sample", "m.safetensors", "--number", "2"], "x.h5", []),
    (["plot", "traversal", "m.safetensors"], "x.png", []),
    (["report", "m.safetensors"], "x.html", []),
    (["explore", "m.safetensors"], "x.html", []),
    (["export", "m.safetensors"], "x.zip", []),
    (["export", "m.safetensors"], "x", ["x/README.md", "x/model.safetensors", "x/SHA256SUMS", "x/commands.sh"]),
    (
        ["reproduce", "l.toml"],
        "x",
        ["x/.stages/", "x/.digits.h5.lock", "x/l-cpu.md", "x/l-cpu.html"],
    ),
]


@pytest.fixture(scope="module")
def world(folder: Path) -> Path:
    mmgen(folder, "train", "d.h5", "--steps", "20", "-o", "m.safetensors", *TINY)
    shutil.copyfile(LIST, folder / "l.toml")
    return folder


@pytest.mark.parametrize("dangling", [False, True])
@pytest.mark.parametrize(("words", "out", "beside"), COMMANDS, ids=[f"{c[0][0]} {c[1]}" for c in COMMANDS])
def test_no_link_in_a_folder_is_followed(
    words: list[str], out: str, beside: list[str], dangling: bool, world: Path, tmp_path: Path
) -> None:
    here, precious = tmp_path / "here", tmp_path / "precious"
    here.mkdir()
    precious.mkdir()
    for path in world.iterdir():
        if path.is_file():
            os.link(path, here / path.name)  # a hard link: what we read may not be written either
    named = [*([] if beside and "/" in beside[0] and not beside[0].startswith("x.") else [out]), *beside]
    for number, name in enumerate(named):
        target, link = precious / str(number), here / name.rstrip("/")
        link.parent.mkdir(exist_ok=True)
        if not dangling and ".last." not in name:  # an empty state is one that is damaged
            target.mkdir() if name.endswith("/") else target.write_text("")
        link.symlink_to(target)
    before = {path: path.stat().st_mtime_ns for path in [*precious.rglob("*"), *world.iterdir()]}
    placed = [str(here / out)] if words[0] == "export" else ["-o", out]
    overwrite = ["--overwrite"] if words[0] in ("export", "report", "explore") else []
    mmgen(here, words[0], *words[1:], *placed, *overwrite)
    assert before == {path: path.stat().st_mtime_ns for path in [*precious.rglob("*"), *world.iterdir()]}
    assert not any(path.is_symlink() for path in here.rglob("*"))
    shutil.rmtree(here)
