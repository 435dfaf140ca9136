"""Stages of a list: each is run by one at a time, here or on a Dask cluster, whoever is killed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mmgen.cli import _runs, _stages as _locks
from mmgen.core.errors import ArtifactError, Interrupted, MmgenError, UsageError
from mmgen.experiments import Stage
from mmgen.experiments._states import record_command
from tests.experiments.files import stage as stage_of
from tests.program import within

LIST = Path(__file__).parents[1] / "lists" / "two-objectives.toml"
STAGE = stage_of("report", "a.html")


def until(wanted: Callable[[], Any], seconds: float = 120) -> Any:
    end = time.monotonic() + seconds
    while not (found := wanted()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)
    return found


def test_of_two_that_want_a_stage_one_runs_it_and_the_other_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []

    def run_command(*_: Any, **__: Any) -> str:
        ran.append(1)
        time.sleep(0.3)
        (tmp_path / "a.html").write_text("made")
        return ""

    monkeypatch.setattr(_runs, "run_command", run_command)
    monkeypatch.setattr(_locks, "_RETRY_SECONDS", 0.02)
    found: list[float | None] = []
    both = [
        threading.Thread(target=lambda: found.append(_runs.run_stage(STAGE, tmp_path, []).seconds)) for _ in range(2)
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert len(ran) == 1
    assert sorted(seconds is None for seconds in found) == [False, True]
    assert {path.name for path in tmp_path.iterdir()} == {"a.html", ".stages"}, "no lock is left"


@pytest.mark.parametrize("noted", [True, False])
def test_only_what_a_list_has_made_is_replaced(noted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's own page under the same name is for the command to judge."""
    stage = stage_of("report", "a.html", files="m.safetensors")
    page = tmp_path / "a.html"
    page.write_text("made")
    if noted:
        record_command(stage, tmp_path)
    page.write_text("edited")
    os.utime(page, (0, 0))
    ran: list[list[str]] = []
    monkeypatch.setattr(_runs, "run_command", lambda arguments, *_, **__: ran.append(list(arguments)))
    (tmp_path / "m.safetensors").write_text("newer")
    _runs.run_stage(stage, tmp_path, ["m.safetensors"])
    assert ["--overwrite" in arguments for arguments in ran] == [noted]


def test_a_file_that_somebody_is_at_work_on_is_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [ArtifactError("no state beside it")] * 3 + ["done"]

    def find_state(*_: Any) -> Any:
        answer = answers.pop()
        if isinstance(answer, ArtifactError):
            raise answer
        return answer

    monkeypatch.setattr("mmgen.experiments.find_state", find_state)
    assert _runs.stage_state(STAGE, tmp_path, []) == "done"
    answers.insert(0, "done")
    with pytest.raises(ArtifactError, match="no state"):
        _runs.stage_state(STAGE, tmp_path, [])
    assert _runs.stage_state(STAGE, tmp_path, []) == "done"
    assert not answers


def test_what_outlives_whoever_ran_it_is_waited_for(tmp_path: Path) -> None:
    """The process has the lock too: it holds on although nobody else has it open any more."""
    lock = tmp_path / ".a.html.lock"
    with lock.open("w") as handle:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX)
        left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], pass_fds=[handle.fileno()])
    try:
        with pytest.raises(Interrupted), _locks.hold_lock(tmp_path / "a.html", lambda: False):
            pytest.fail("it is not ours yet")
    finally:
        left.kill()
        left.wait()
    with _locks.hold_lock(tmp_path / "a.html", lambda: False):
        assert lock.exists()
    assert not lock.exists()


def test_a_file_system_without_locks_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with (
        pytest.raises(MmgenError, match=r"cannot lock .*: no locks available; use a folder on a file system that"),
        _locks.hold_lock(tmp_path / "a.html", lambda: True),
    ):
        pytest.fail("nothing is locked")


def start(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-P", "-m", "mmgen", "reproduce", str(LIST), "--seeds", "3", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, cwd=folder, env=os.environ | {"OMP_NUM_THREADS": "1"}, **pipes)  # type: ignore[call-overload, no-any-return]  # one dictionary of several kinds


@pytest.mark.slow
def test_a_cluster_that_does_not_answer(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    said, _ = start(tmp_path, "--scheduler", "tcp://127.0.0.1:9").communicate()
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in said and "Traceback" not in said


@pytest.mark.slow
def test_three_seeds_of_two_objectives_on_a_cluster_that_is_killed(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    from tests.data_recipes.test_cluster import Cluster

    cluster, folder = Cluster(tmp_path, workers=2), tmp_path / "two-cpu"
    try:
        # The client is killed while both workers train: they stop, and nothing is left running.
        first = start(tmp_path, "--scheduler", cluster.address)
        until(lambda: len(list(folder.glob("*.last.safetensors"))) >= 2)
        first.kill()
        first.communicate()
        until(lambda: not list(folder.glob(".*.lock")), 30)
        before = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.h5")}

        # A worker is killed while it trains; another takes its place.
        second = start(tmp_path, "--scheduler", cluster.address)
        until(lambda: len(list(folder.glob(".*-seed?.safetensors.lock"))) >= 1)
        cluster.processes[1].send_signal(signal.SIGKILL)
        said, _ = second.communicate(timeout=600)
    finally:
        cluster.stop()
    assert second.returncode == 0, said
    assert "digits.h5 is there" in said and "continued" in said
    assert {path.name: path.stat().st_mtime_ns for path in folder.glob("*.h5")} == before
    scores = [f"{model}{seed}.jsonl" for model in ("telbo", "jmvae") for seed in ("", "-seed1", "-seed2")]
    assert sorted(path.name for path in folder.glob("*.jsonl") if ".log." not in path.name) == sorted(scores)
    for log in folder.glob("*-seed?.log.jsonl"):  # no two wrote into one
        steps = [json.loads(line)["step"] for line in log.read_text().splitlines()]
        assert steps == sorted(steps) and steps[-1] == 150
    assert "seeds" in (folder / "two-objectives-cpu.md").read_text()
    command = [sys.executable, "-P", "-m", "mmgen", "compare", *scores, "--against", "jmvae"]
    printed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in printed.splitlines()]
    models = [(metric, model, "3") for metric in ("correctness", "recall") for model in ("telbo", "jmvae")]
    assert [(row[0], row[11], row[13]) for row in rows] == models
    assert rows[0][-2:] == ["3", "seeds"]


@pytest.mark.parametrize(
    ("command", "makes", "settings"),
    [
        ("report", "sub/a.html", {}),
        ("fit-aggregate", "a.safetensors", {"model": "m.safetensors", "latents": "sub/evil.h5"}),
        ("fit-aggregate", "a.safetensors", {"model": "sub/m.safetensors"}),  # latents and the base lie beside the model
        ("fit-aggregate", "a.safetensors", {"model": "m.safetensors", "from": "sub/../sub/base.safetensors"}),
        ("plot", "a.png", {"figure": "curves", "files": ["b.safetensors", "sub/m.safetensors"]}),
        ("sample", "a.png", {"model": "m.safetensors", "from": "image=sub/secret.png"}),
    ],
)
def test_no_stage_writes_behind_a_link_that_leads_out(
    command: str, makes: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    """It may write beside each file that it names."""
    (tmp_path / "else").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "sub").symlink_to(tmp_path / "else")
    stage = Stage(why="w", command=command, makes=makes, settings=settings)
    with pytest.raises(UsageError, match=r"sub/.* is behind a link that leads out of .*here; remove the link"):
        _runs.run_stage(stage, tmp_path / "here", [])
    assert not list((tmp_path / "else").iterdir())


def test_data_may_be_read_behind_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As some tables say: the folder of the data, or a link to it, lies in that of the results."""
    (tmp_path / "else").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "digits").symlink_to(tmp_path / "else")
    monkeypatch.setattr(_runs, "run_command", lambda *_, **__: (tmp_path / "here" / "d.h5").write_text("made"))
    monkeypatch.setattr("mmgen.experiments.record_command", lambda *_: None)
    settings = {"recipe": "mnist", "mnist": "digits/files"}
    stage = Stage(why="w", command="make-data", makes="d.h5", settings=settings)
    assert _runs.run_stage(stage, tmp_path / "here", []).seconds is not None


def test_locks_and_notes_in_place_of_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have names that can be foreseen, in a folder that somebody else may have made."""
    (tmp_path / "else").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / ".stages").symlink_to(tmp_path / "else")
    (tmp_path / "here" / ".a.html.lock").symlink_to(tmp_path / "else" / "lock")

    def run_command(*_: Any, **__: Any) -> str:
        (tmp_path / "here" / "a.html").write_text("made")
        return ""

    monkeypatch.setattr(_runs, "run_command", run_command)
    assert _runs.run_stage(STAGE, tmp_path / "here", []).seconds is not None
    assert not list((tmp_path / "else").iterdir())
    assert [path.name for path in (tmp_path / "here" / ".stages").iterdir()] == ["a.html.txt"]


def test_a_folder_that_is_a_link_out_has_to_be_said(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "two-cpu").symlink_to(tmp_path)
    done = within(tmp_path / "here", "reproduce", str(LIST), "--dry-run")
    assert (done.returncode, "a link that leads out of the current folder; type --output two-cpu" in done.stderr) == (
        2,
        True,
    )
    assert within(tmp_path / "here", "reproduce", str(LIST), "--dry-run", "-o", "two-cpu").returncode == 0


def test_a_lock_that_is_a_folder_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / ".a.html.lock").mkdir()
    with pytest.raises(MmgenError, match=r"cannot lock .*\.a\.html\.lock: is a directory"):
        _runs.run_stage(STAGE, tmp_path, [])
