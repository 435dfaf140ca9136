"""``--code FILE.py``: the classes of a file are members of their rooms, for a first try."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mmgen import metrics, objectives, testing
from mmgen.artifacts import read_header
from mmgen.cli._main import command_names, load_command
from mmgen.core.errors import UsageError
from mmgen.settings import plugins, registry
from tests.conftest import Call
from tests.program import exit_code

PACKAGE = Path(__file__).parents[1] / "stranger" / "mmgen_stranger"
TINY = ["--set", "model.latent_size=2", "--set", "model.hidden=16", "--steps", "4", "--batch", "16"]


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No file is known, as in a new process; afterwards what was known before is."""
    monkeypatch.delenv(plugins.CODE_VARIABLE, raising=False)
    monkeypatch.setattr(plugins, "_files", {})
    yield
    os.environ.pop(plugins.CODE_VARIABLE, None)  # which a file that was added leaves for processes


@pytest.fixture
def call(call: Call, fresh: None, monkeypatch: pytest.MonkeyPatch) -> Call:
    def afresh(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(plugins, "_files", {})
        os.environ.pop(plugins.CODE_VARIABLE, None)
        code, out, err = call(*arguments)
        return code, out, " ".join(err.split())

    return afresh


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A file with an objective, a recipe and a metric, and things that are none."""
    parts = [(PACKAGE / f"{name}.py").read_text() for name in ("warm_elbo", "two_tone", "contrast")]
    path = tmp_path / "mine.py"
    text = "\n\n".join(parts).replace("__all__ = [", "_theirs = [")
    path.write_text(f"{text}\n\nclass Helper:\n    ...\n\nclass _Hidden(WarmElbo):\n    ...\n")
    return path


def test_every_command_takes_it() -> None:
    for command in command_names():
        options = [option for parameter in load_command(command).params for option in parameter.opts]
        assert options.count("--code") == 1, command


def test_from_data_to_scores(mine: Path, call: Call, tmp_path: Path) -> None:
    """The whole way, its members' origin in every file, and what is said where the file is not named."""
    data, model = tmp_path / "d.h5", tmp_path / "m.safetensors"
    code, out, err = call("list", "--json", "--code", mine)
    assert code == 0, err
    theirs = [json.loads(line) for line in out.splitlines() if "mine.py" in line]
    assert [(m["kind"], m["name"], m["origin"]) for m in theirs] == [
        ("recipe", "two-tone", "code mine.py"), ("objective", "warm-elbo", "code mine.py"),
        ("metric", "contrast", "code mine.py"),
    ]  # fmt: skip
    # Two workers, which have to find the class that the file defines.
    made = call("make-data", "two-tone", "--number", 60, "--set", "size=8", "--workers", 2, "-o", data, "--code", mine)
    assert made[0] == 0, made[2]
    assert "machines without the --code file of two-tone" in call(
        "make-data", "two-tone", "--scheduler", "tcp://nowhere:1", "-o", tmp_path / "e.h5", "--code", mine
    )[2]  # fmt: skip
    (member,) = read_header(data).members
    assert (member.file, len(member.sha256), member.distribution) == ("mine.py", 64, "")
    # By the environment variable instead, as in a pipe of several commands.
    call("list", "preset")
    os.environ[plugins.CODE_VARIABLE] = str(mine)
    networks = 'model.image_network={name="mlp", hidden=[8]}'
    assert exit_code("train", data, "--objective", "warm-elbo", "--set", networks, *TINY, "-o", model) == 0
    assert [str(m) for m in read_header(model).members] == ["objective warm-elbo of code mine.py"]
    code, out, err = call("eval", model, "--metric", "contrast", "--json", "--code", mine)
    assert code == 0 and json.loads(out)["metric"] == "contrast", err
    code, out, err = call("eval", model, "--metric", "active-units")
    assert (code, out) == (1, "")
    assert err.endswith(
        "m.safetensors was made with the objective 'warm-elbo' of the file mine.py, which was not named: "
        "give it with --code mine.py"
    )
    code, out, _ = call("show", model)
    assert code == 0 and "members.objective.warm-elbo\tcode mine.py" in out


@pytest.mark.usefixtures("fresh")
def test_contracts_run_over_a_file(mine: Path) -> None:
    assert registry.add_code(mine) == ["recipe two-tone", "objective warm-elbo", "metric contrast"]
    found = testing.members_of("mine.py")
    assert [str(member) for member in found] == ["recipe two-tone", "objective warm-elbo", "metric contrast"]
    testing.check(found[1])
    assert objectives.describe("warm-elbo") == "A bound below one temperature, and no bound above it"


@pytest.mark.usefixtures("fresh")
def test_processes_that_are_started_find_it(mine: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(mine.read_text().replace("TwoTone(", "ThreeTone(").replace("WarmElbo", "ColdElbo"))
    registry.add_code(mine)
    registry.add_code(mine)
    registry.add_code(other)
    assert os.environ[plugins.CODE_VARIABLE].split(os.pathsep) == [str(mine), str(other)]
    assert {"warm-elbo", "cold-elbo"} < set(objectives.names())
    with pytest.raises(UsageError, match=r"metric 'contrast' cannot be used: .* by code mine.py and by code other.py"):
        metrics.get("contrast")


NO_LIST = "expected a list of names; fix the file"
BAD = {
    "raises": ("x = 1\nraise ValueError('no good')\n", "cannot be run: ValueError: no good in line 2; fix the file"),
    "syntax": ("x = (\n", "cannot be run: SyntaxError: '(' was never closed"),
    "leaves": ("import sys\nsys.exit(3)\n", "cannot be run: SystemExit: 3 in line 2"),
    "no member": ("class Helper: ...\n", "defines no member, expected a public class that derives from one of "),
    "all": ("__all__ = ['Nothing']\n", "has 'Nothing' in __all__ but does not define it"),
    "no text": ("\udcff", "cannot be read: it is no text in UTF-8 (line 1 has the byte 0xFF"),
    **{f"names {names}": (f"__all__ = {names}\n", NO_LIST) for names in ("3", "[1]", "'Elbo'", "None.__class__")},
    "missing": (None, "cannot read the code"),
    "pipe": (0, "cannot be read: it is a device or a pipe"),
}


@pytest.mark.parametrize("name", BAD)
def test_files_that_cannot_be_used(name: str, call: Call, tmp_path: Path) -> None:
    path, (source, said) = tmp_path / "bad.py", BAD[name]
    if isinstance(source, str):
        path.write_bytes(source.encode("utf-8", "surrogateescape"))
    elif source is not None:
        os.mkfifo(path)
    code, out, err = call("list", "objective", "--code", path)
    assert (code, out) == (2, "")
    assert said in err and "Traceback" not in err
    assert not [name for name in sys.modules if name.startswith("mmgen_code_bad") and "cannot be run" in said]


def test_a_name_of_ours_is_refused(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text((PACKAGE / "warm_elbo.py").read_text().replace("WarmElbo", "Elbo"))
    code, _, err = call("list", "objective", "--code", path)
    assert code == 0 and "objective 'elbo' of code mine.py cannot be used: the name is offered by mmgen" in err
    assert "by code mine.py; uninstall or rename one of them" in err
    with pytest.raises(UsageError, match="cannot be used"):
        objectives.get("elbo")


@pytest.mark.slow
def test_other_code_of_the_same_name_is_said(mine: Path, call: Call, tmp_path: Path) -> None:
    """A model opened with a file that has changed since, or with another file, says so; with its own, nothing."""
    data, model = tmp_path / "d.h5", tmp_path / "m.safetensors"
    assert (
        call("make-data", "mnist-a", "--source", "digits", "--size", 16, "--number", 60, "--workers", 1, "-o", data)[0]
        == 0
    )
    assert call("train", data, "--objective", "warm-elbo", *TINY, "-o", model, "--code", mine)[0] == 0
    asked = ("eval", model, "--metric", "parameters", "--json", "--code")
    assert "but here it is" not in call(*asked, mine)[2]
    other = tmp_path / "other.py"
    other.write_text(mine.read_text())
    same_text = call(*asked, other)
    assert same_text[0] == 0 and "but here it is" not in same_text[2]
    other.write_text(mine.read_text() + "\n# changed\n")
    assert "objective 'warm-elbo' of code mine.py, but here it is of code other.py" in call(*asked, other)[2]
    mine.write_text(mine.read_text() + "\n# changed\n")
    assert "of code mine.py, but here it is of another text of that file" in call(*asked, mine)[2]
