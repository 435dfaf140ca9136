"""Stages that run at once: none before what it reads, none left behind, and whose talk it is can be seen."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import pytest

from mmgen.artifacts.containers import write_checkpoint
from mmgen.cli import _own_pictures, _runs, quickstart
from mmgen.core.errors import Interrupted, MmgenError
from mmgen.data_recipes.folder import Folder
from mmgen.experiments._stages import Stage
from tests.cli.test_runs import LIST, until
from tests.experiments.files import stage as stage_of
from tests.program import environment, within


def stage(makes: str, *reads: str) -> Stage:
    return stage_of("report", makes, files=list(reads))


DIAMOND = [stage("a.html"), stage("b.html", "a.html"), stage("c.html", "a.html"), stage("d.html", "b.html", "c.html")]


class Commands:
    """Stands in for ``run_command``: notes what ran beside what, and makes the file."""

    def __init__(self, folder: Path, seconds: float = 0.1) -> None:
        self.folder, self.seconds = folder, seconds
        self.began: list[str] = []
        self.at_once = self.most = 0
        self.environments: list[dict[str, str]] = []
        self._lock = threading.Lock()

    def __call__(self, arguments: list[str], *_: Any, log: Any, environment: dict[str, str], **__: Any) -> str:
        *_before, makes = arguments
        with self._lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            assert all((self.folder / word).exists() for word in arguments[1:-2]), "it began too early"
            self.began.append(makes)
            self.environments.append(dict(environment))
        log.write(f"working on {makes}\n".encode())
        log.flush()
        time.sleep(self.seconds)
        (self.folder / makes).write_text("made")
        with self._lock:
            self.at_once -= 1
        return ""


def test_a_stage_alone_has_all_cores_and_nothing_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those before it end first, those after it begin later, though all could run at once."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    commands = Commands(tmp_path)
    monkeypatch.setattr(_runs, "run_command", commands)
    names = ["a.html", "b.html", "c.html", "d.html"]
    stages = [stage(name).model_copy(update={"alone": name == "b.html"}) for name in names]
    assert _runs.run_stages(stages, tmp_path, 2)
    assert commands.began[:2] == names[:2] and commands.most == 2
    threads = dict(zip(commands.began, [one.get("OMP_NUM_THREADS") for one in commands.environments], strict=True))
    assert threads["b.html"] is None and {threads[name] for name in names if name != "b.html"} == {
        str(max(1, joblib.cpu_count() // 2))
    }


def test_without_verbose_a_line_follows_each_command_and_its_talk_only_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_runs, "run_command", Commands(tmp_path))
    named = [one.model_copy(update={"why": f"The purpose of {one.makes}: all of it"}) for one in DIAMOND]
    for jobs, part in ((1, named[:2]), (2, named)):
        _runs.run_stages(part, tmp_path, jobs, verbose=False)
        said = capsys.readouterr().err.splitlines()
        assert len(said) == len(part) and not any("working on" in line or "$" in line for line in said)
        assert said[0].startswith(f"[1/{len(part)}] The purpose of a.html: a.html ")

    def failing(arguments: list[str], *_: Any, log: Any, **__: Any) -> str:
        log.write(b"what went wrong\n")
        raise MmgenError("it failed")

    monkeypatch.setattr(_runs, "run_command", failing)
    with pytest.raises(MmgenError, match="it failed"):
        _runs.run_stages([stage("f.html")], tmp_path, 1, verbose=False)
    assert capsys.readouterr().err == "[1] what went wrong\n"


def test_a_long_command_says_once_how_long_it_takes_and_a_training_its_steps_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it says of its first steps, that is; a line without an estimate is none."""

    def training(arguments: list[str], *_: Any, log: Any, **__: Any) -> str:
        for line in ("training: 9 of 90", "training: 18 of 90 · 3 step/s · 0:24 left", "training: 80 of 90, 0:03 left"):
            log.write(f"{line}\n".encode())
        log.flush()
        write_checkpoint(tmp_path / arguments[-1], kind="model", tensors={}, settings={}, seed=0, facts={"step": 90})
        return ""

    monkeypatch.setattr(_runs, "run_command", training)
    stages = [stage_of("train", f"{name}.safetensors", dataset="own.h5") for name in ("model", "other")]
    _runs.run_stages(stages, tmp_path, 1, verbose=False, usual={"model.safetensors": 1750})
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "[1] training: 18 of 90 · 3 step/s · 0:24 left"
    assert re.fullmatch(r"\[1/2\] .*model.safetensors took 0 s: 90 steps, usually 1,750", said[1])
    assert len(said) == 4 and said[3].endswith("other.safetensors took 0 s")


@pytest.mark.parametrize(("jobs", "most"), [(2, 2), (7, 2)])
def test_a_stage_begins_when_all_that_it_reads_is_there(
    jobs: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = Commands(tmp_path)
    monkeypatch.setattr(_runs, "run_command", commands)
    assert _runs.run_stages(DIAMOND, tmp_path, jobs)
    assert commands.began[0] == "a.html" and set(commands.began[1:3]) == {"b.html", "c.html"}
    assert commands.began[3:] == ["d.html"]
    assert commands.most == most
    said = capsys.readouterr().err.splitlines()
    for number, name in enumerate("abcd", 1):
        assert f"[{number}] working on {name}.html" in said
        assert any(line.startswith(f"[{number}/4] {name}.html took ") for line in said)
    assert not _runs.run_stages(DIAMOND, tmp_path, jobs), "all is there"
    assert len(commands.began) == 4


def test_no_more_run_at_once_than_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(tmp_path, 0.05)
    monkeypatch.setattr(_runs, "run_command", commands)
    many = [stage(f"{number}.html") for number in range(8)]
    assert _runs.run_stages(many, tmp_path, 3)
    assert commands.most == 3 and sorted(commands.began) == [each.makes for each in many]


@pytest.mark.parametrize(("ours", "theirs"), [(None, str(max(1, joblib.cpu_count() // 2))), ("5", "5")])
def test_each_has_its_share_of_the_cores(
    ours: str | None, theirs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if ours:
        monkeypatch.setenv("OMP_NUM_THREADS", ours)
    commands = Commands(tmp_path, 0)
    monkeypatch.setattr(_runs, "run_command", commands)
    _runs.run_stages(DIAMOND, tmp_path, 2)
    assert [given["OMP_NUM_THREADS"] for given in commands.environments] == [theirs] * 4


def test_where_one_fails_those_beside_it_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def run_command(arguments: list[str], *_: Any, is_needed: Callable[[], bool], **__: Any) -> str:
        if arguments[-1] == "b.html":
            raise MmgenError("no more space")
        until(lambda: not is_needed(), 20)
        ended.set()
        raise Interrupted("not wanted any more", signal.SIGTERM)

    monkeypatch.setattr(_runs, "run_command", run_command)
    before = threading.active_count()
    with pytest.raises(MmgenError, match="no more space"):
        _runs.run_stages([stage("a.html"), stage("b.html"), stage("c.html")], tmp_path, 2)
    assert ended.is_set() and threading.active_count() == before
    assert not list(tmp_path.glob(".*.lock"))


def test_a_process_that_is_left_behind_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has the file for talk too, which ends for the reader with the last one who has it."""
    monkeypatch.setattr(_runs, "_RELAY_SECONDS", 0.2)
    began = time.monotonic()
    with _runs._relay_lines(lambda line: print(f"[1] {line}", file=sys.stderr)) as talk:
        left = os.dup(talk.fileno())
        talk.write(b"saved\n")
    assert time.monotonic() - began < 5
    assert capsys.readouterr().err == "[1] saved\n"
    os.close(left)


def test_talk_through_a_pipe_has_no_colours_and_the_width_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(_runs, "terminal_width", lambda: 90)
    commands = Commands(tmp_path, 0)
    monkeypatch.setattr(_runs, "run_command", commands)
    _runs.run_stages(DIAMOND, tmp_path, 2)
    (told,) = {tuple(sorted(given.items())) for given in commands.environments}
    code = (
        "from mmgen.cli._console import print_table; print_table('t', ['a', 'b'], [['word ' * 30, 'end'], ['x', 'y']])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], env=environment() | dict(told), capture_output=True, text=True, check=True
    ).stderr
    assert "\x1b" not in shown and 80 < max(map(len, shown.splitlines())) <= 86


STAND_IN = """#!{python}
import signal, sys, time
from pathlib import Path

name = Path(sys.argv[-1]).stem

def save(number, frame):
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)  # the same request
    time.sleep(0.5)
    Path(name + ".saved").touch()
    sys.exit(130)

signal.signal(signal.SIGINT, save)
signal.signal(signal.SIGTERM, save)
Path(name + ".begun").touch()
time.sleep(60)
"""
RUN = """
import signal, sys
from pathlib import Path
from mmgen.cli import _main, _runs
from mmgen.experiments._stages import Stage

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background begins with it ignored
_main._install_signal_handlers()
sys.executable = sys.argv[1]
stages = [Stage(why="w", command="report", makes=f"{name}.html") for name in "abc"]
_runs.run_stages(stages, Path.cwd(), 2)
"""


@pytest.mark.slow_cases("15-False", "2-True")
@pytest.mark.parametrize(("number", "whole_group"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_whoever_interrupts_it_ends_all_and_each_saves(number: int, whole_group: bool, tmp_path: Path) -> None:
    program = tmp_path / "stand-in"
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, program], cwd=tmp_path, env=environment(), text=True, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    try:
        until(lambda: len(list(tmp_path.glob("*.begun"))) == 2)
        (os.killpg if whole_group else os.kill)(process.pid, number)
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode not in (0, -signal.SIGKILL)
    assert {path.name for path in tmp_path.glob("*.saved")} == {"a.saved", "b.saved"}
    assert not (tmp_path / "c.begun").exists() and not list(tmp_path.glob(".*.lock"))
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)  # nobody is left


def test_what_sees_a_judge_names_it(tmp_path: Path) -> None:
    """A command that finds the judge beside a model would run without it, if the judge is not there yet."""
    import numpy as np
    from PIL import Image

    for number in range(24):
        path = tmp_path / "pictures" / ("round" if number % 2 else "square") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((32, 32), 10 * number, np.uint8)).save(path)
    recipe = Folder(pictures=tmp_path / "pictures")
    found = recipe.survey(0, None).run()
    own = _own_pictures.plan_stages(tmp_path / "pictures", found, _own_pictures.choose_sizes(24, 32, True), 0)
    for plan in (quickstart.plan_stages(True, 0), own):
        seeing = [each for each in plan if "correctness" in each.settings.get("metric", ())]
        assert len(seeing) >= 3
        assert all("judge.safetensors" in each.arguments for each in seeing)
        scores = {each.makes for each in plan if each.arguments[0] == "eval"}
        assert scores <= set(plan[-1].arguments), "the report waits for all scores, and so for the judge"


@pytest.mark.slow
def test_two_seeds_at_once_measure_what_one_after_the_other_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    values = []
    for jobs in ("1", "2"):
        done = within(tmp_path, "reproduce", str(LIST), "--seeds", "2", "--jobs", jobs, "-o", f"jobs-{jobs}")
        assert done.returncode == 0, done.stderr
        files = sorted((tmp_path / f"jobs-{jobs}").glob("*.jsonl"))
        lines = [line for path in files if ".log" not in path.name for line in path.read_text().splitlines()]
        values.append([json.loads(line)["value"] for line in lines])
    assert values[0] and values[0] == values[1]
