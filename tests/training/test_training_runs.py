"""What surrounds the loop: clocks of several processes, the log, what is on disk when a run fails, empty parts."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from mmgen.artifacts import DatasetWriter, read_checkpoint, write_checkpoint
from mmgen.cli import _console
from mmgen.cli._main import main
from mmgen.core.batch import Batch
from mmgen.core.errors import ArtifactError, DataError, TrainingError, UsageError
from mmgen.core.progress import Progress
from mmgen.objectives._base import Bound
from mmgen.training.batches import Rows
from mmgen.training.log import RunLog, log_path
from mmgen.training.loop import TrainingResult, train
from mmgen.training.pairing import paired_count
from mmgen.training.settings import TrainingSettings
from mmgen.training.state import state_path
from mmgen.training.task import ALONE, Task


class Numbers(Rows):
    """Examples 0, 1, 2 ... of one number each."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def batch(self, indices: Tensor) -> Batch:
        return Batch({"x": indices.float()[:, None] / self.size}, {"x": torch.ones(len(indices), dtype=torch.bool)})


class Line(Task):
    """A task of two parameters; at ``poisoned`` its value is no number."""

    def __init__(self, poisoned: int | None = None) -> None:
        super().__init__()
        self.line = nn.Linear(1, 1)
        self.poisoned = poisoned

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        value = -(self.line(batch.values["x"]) - 1).square().squeeze(1)
        return Bound(value * (torch.nan if step is not None and step == self.poisoned else 1), {"fit": value})


def run(
    out: Path, task: Line | None = None, resume: str = "auto", validation: int = 4, begin: int = 0, **settings: Any
) -> TrainingResult:
    """Train a line; ``begin`` stops after that many steps, as a killed process would."""
    values = {"steps": 12, "batch": 4, "validate_every": 4, "log_every": 2, "device": "cpu", **settings}
    chosen = TrainingSettings(**{"precision": "32-true", **values})
    torch.manual_seed(0)
    task = task or Line()

    def save(path: Path, facts: dict[str, Any]) -> None:
        write_checkpoint(
            path, kind="model", tensors=task.saved_tensors(), settings={}, seed=0, parents=(), facts=facts, command=""
        )

    described = {"training": chosen.model_dump(mode="json")}
    work = train(task, Numbers(16), Numbers(validation), chosen, out, save, described, resume=resume)
    for progress in work:
        if begin and progress.done >= begin:
            return TrainingResult(out, progress.done, None, 0.0)
    return work.result


def facts_of(out: Path) -> dict[str, Any]:
    return read_checkpoint(state_path(out), "training-state")[0].facts


PROCESSES = """
import os, sys, time
from pathlib import Path

rank = int(os.environ.get("LOCAL_RANK", "0"))
real, start = time.monotonic, time.monotonic()
if rank:
    time.monotonic = lambda: start + (real() - start) / 4  # a clock that is behind that of the first process

import torch
from test_training_runs import Line, run

task = Line()
done = run(Path(sys.argv[1]), task, steps=10**6, minutes=0.02, devices=2, schedule="cosine", validate_every=10**6)
Path(sys.argv[1]).with_name(f"{rank}.txt").write_text(f"{done.steps} {task.line.weight.item()!r}")
"""


@pytest.mark.slow
def test_processes_of_one_run_stop_at_the_same_step_with_the_same_weights(tmp_path: Path) -> None:
    script = tmp_path / "train_on_two.py"
    script.write_text(PROCESSES)
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(Path(__file__).parent), str(root)])
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "m.safetensors")],
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    first, second = ((tmp_path / f"{rank}.txt").read_text() for rank in (0, 1))
    assert first == second
    assert int(first.split()[0]) > 10


@pytest.mark.parametrize("place", ["missing/m.safetensors", "file/m.safetensors"])
def test_a_log_that_cannot_be_written_is_one_sentence_before_any_step(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match=r"cannot write .*m\.safetensors: "):
        run(tmp_path / place, Line(poisoned=0))


def test_a_disk_that_fills_up_under_the_log_is_one_sentence(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "m.log.jsonl", 0)
    log._file.close()
    log._file = open("/dev/full", "a", encoding="utf-8")  # noqa: SIM115  # RunLog closes it
    with pytest.raises(ArtifactError, match=r"m\.log\.jsonl: no space left on device; free some space"):
        log.write({"step": 1})
    log.close()


def test_a_log_that_is_continued_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.log.jsonl"
    text = '{"step": 2}\n{"step": 4}\n{"step": 6}\n{"st'
    path.write_text(text)
    with monkeypatch.context() as patch:
        patch.setattr("mmgen.artifacts.files.os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
        with pytest.raises(ArtifactError):
            RunLog(path, 4)
    assert path.read_text() == text
    RunLog(path, 4).close()
    assert path.read_text() == '{"step": 2}\n{"step": 4}\n'


def test_a_nan_before_the_first_validation_leaves_the_weights_before_it(tmp_path: Path) -> None:
    out, task = tmp_path / "m.safetensors", Line(poisoned=3)
    with pytest.raises(TrainingError, match=r"at step 4, .* \(\S+m\.last\.safetensors has the run at step 3"):
        run(out, task, validate_every=100)
    assert not out.exists()
    header, tensors = read_checkpoint(state_path(out), "training-state")
    assert header.facts["step"] == 3
    assert torch.equal(tensors["task.line.weight"], task.line.weight)


def test_a_nan_is_told_with_what_there_is(tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    with pytest.raises(TrainingError, match=r"has the run at step 6, \S+m\.safetensors has the best weights before it"):
        run(out, Line(poisoned=6))
    spoilt = Line(poisoned=2)  # running statistics that the NaN has reached already
    spoilt.register_buffer("mean", torch.tensor(torch.nan))
    with pytest.raises(TrainingError, match=r"\(nothing of this run has been saved yet\)"):
        run(tmp_path / "n.safetensors", spoilt)
    assert not state_path(tmp_path / "n.safetensors").exists()


@pytest.mark.parametrize("part", ["train", "val"])
def test_an_empty_part_is_refused_before_training(
    tmp_path: Path, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, rows = tmp_path / "d.h5", np.arange(8)
    with DatasetWriter(path, size=8, settings={"recipe": "tiny"}, seed=0, command="mmgen make-data tiny") as writer:
        writer.add_image("image", shape=(1, 16, 16), layout="bits")
        writer.add_attributes("attributes", {"digit": ["0", "1"]})
        images, codes = np.zeros((8, 32), np.uint8), np.zeros((8, 1), np.uint8)
        writer.write(0, {"image": images, "attributes": codes})
        parts = {"train": rows[:4], "val": rows[4:6], "test": rows[6:], part: rows[:0]}
        writer.add_splits("iid", **parts)
    with pytest.raises(SystemExit) as left:
        main(["train", str(path), "--objective", "elbo", "--paired", "0.5", "--device", "cpu"])
    told = capsys.readouterr().err.splitlines()[-1]
    assert left.value.code == 1
    assert told.startswith(f"mmgen: part '{part}' of split 'iid' in {path} holds no examples, expected at least one")
    assert not log_path(tmp_path / "d-elbo.safetensors").exists()


def test_examples_of_no_known_origin_are_refused_too(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the validation part of the split holds no examples"):
        run(tmp_path / "m.safetensors", validation=0)
    assert paired_count(0, 0.5) == 0


def test_a_run_whose_best_weights_were_removed_makes_them_again(tmp_path: Path) -> None:
    """The learning rate undoes what was learnt, so no later weights are as good as those that were removed."""
    out = tmp_path / "m.safetensors"
    run(out, begin=10, learning_rate=0.5, schedule="constant")
    best = facts_of(out)["best"]
    out.unlink()
    run(out, learning_rate=0.5, schedule="constant", resume="require")
    assert read_checkpoint(out, "model")[0].facts["step"] == 12
    assert facts_of(out)["best"] == read_checkpoint(out, "model")[0].facts["validation_bound"] < best


def test_a_save_that_makes_no_file_is_told(tmp_path: Path) -> None:
    """Whether later weights are better is told by the file of the best: without one each would count as the best."""
    chosen = TrainingSettings(steps=4, batch=4, log_every=2, validate_every=2, device="cpu")
    with pytest.raises(RuntimeError, match="save did not write"):
        train(Line(), Numbers(8), Numbers(4), chosen, tmp_path / "m.safetensors", lambda *_: None, {}).run()


def test_progress_knows_when_the_minutes_are_over(tmp_path: Path) -> None:
    chosen = TrainingSettings(steps=4, batch=4, log_every=2, minutes=2, device="cpu")

    def save(path: Path, facts: dict[str, Any]) -> None:
        write_checkpoint(path, kind="model", tensors={"a": torch.zeros(1)}, settings={}, seed=0, facts=facts)

    work = train(Line(), Numbers(8), Numbers(4), chosen, tmp_path / "m.safetensors", save, {})
    left = [progress.seconds_left for progress in work]
    assert all(one is not None and 100 < one < 120 for one in left) and len(left) == 2
    pace = _console._Pace()
    pace.record_progress(0, 0.0)
    pace.record_progress(1, 20.0)
    told = [_console._format_progress(Progress(1, {}, seconds), work, pace) for seconds in (None, 90.0, 30.0)]
    assert [one.split(" · ")[1] for one in told] == ["1:00 left", "1:00 left", "0:30 left"]


def test_a_run_is_not_continued_in_another_arithmetic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """auto is bf16 on one machine and fp32 on the next; there bf16 must be asked for by name."""
    flags: set[str] = {"amx_bf16"}
    monkeypatch.setattr("mmgen.training.precision._cpu_flags", lambda: flags)
    out = tmp_path / "m.safetensors"
    run(out, begin=6, precision="auto")
    flags.clear()
    with pytest.raises(UsageError, match=r"training\.precision \('bf16-mixed' there, '32-true' now\)"):
        run(out, precision="auto")
    run(out, precision="bf16-mixed", resume="require")
    flags.add("amx_bf16")
    run(out, precision="bf16-mixed")  # an ended run is at home everywhere
    flags.clear()
    assert run(out, precision="bf16-mixed").steps == 12


def test_settings_where_the_objective_is_no_table_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.toml").write_text('objective = "telbo"')
    golden = Path(__file__).parents[1] / "golden" / "dataset-v3.h5"
    with pytest.raises(SystemExit) as left:
        main(["train", str(golden), "--config", str(tmp_path / "s.toml"), "--objective", "telbo"])
    assert left.value.code == 2
    assert "setting 'objective'" in capsys.readouterr().err


def _shown(folder: Path) -> list[int]:
    """Steps of the bound as TensorBoard shows them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return [event.step for event in events.Scalars("bound")]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_shows_each_step_of_the_present_run_once(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    out = tmp_path / "m.safetensors"
    run(out, begin=6, log_to=["tensorboard"])
    run(out, log_to=["tensorboard"])
    assert _shown(tmp_path / "m.log") == [2, 4, 6, 8, 10, 12]
    run(out, log_to=["tensorboard"], resume="never", log_every=6)
    assert _shown(tmp_path / "m.log") == [6, 12]
    run(out, resume="never")
    assert not list((tmp_path / "m.log").iterdir())
    lines = [json.loads(line) for line in log_path(out).read_text().splitlines()]
    assert [line["step"] for line in lines if "bound" in line] == [2, 4, 6, 8, 10, 12]


class Failing(Line):
    """A task that fails at its first step, as an objective of somebody's own may."""

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        raise ArithmeticError("a fault of the task")


def test_a_run_that_fails_before_its_first_line_leaves_no_log(tmp_path: Path) -> None:
    chosen = TrainingSettings(steps=4, batch=4, device="cpu")
    work = train(Failing(), Numbers(8), Numbers(4), chosen, tmp_path / "m.safetensors", lambda *_: None, {})
    with pytest.raises(ArithmeticError, match="a fault of the task"):
        list(work)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_has_ended_leaves_a_record_by_which_it_is_known_again(tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    first = run(out)
    header, tensors = read_checkpoint(state_path(out), "training-state")
    assert not tensors and header.facts["finished"] and state_path(out).stat().st_size < 10_000
    written = out.stat().st_mtime_ns
    again = run(out)
    assert (again.steps, again.best) == (first.steps, first.best) == (12, first.best)
    assert out.stat().st_mtime_ns == written
    with pytest.raises(UsageError, match=r"has finished its 12 steps without --keep-state"):
        run(out, steps=24)
    with pytest.raises(UsageError, match=r"other settings: training\.batch \(4 there, 8 now\), training\.steps"):
        run(out, steps=24, batch=8)


def test_a_run_whose_state_was_kept_takes_more_steps_as_if_it_had_never_ended(tmp_path: Path) -> None:
    whole, long = tmp_path / "whole.safetensors", tmp_path / "long.safetensors"
    run(whole, steps=24, keep_state=True)
    run(long, keep_state=True)
    assert run(long, steps=24, keep_state=True).steps == 24
    for of in (lambda path: path, state_path):
        one, two = (read_checkpoint(of(path))[1] for path in (whole, long))
        assert one.keys() == two.keys() and all(one[name].equal(two[name]) for name in one)


def test_a_continued_run_says_from_which_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    real = run.__globals__["train"]

    def told(*given: Any, **named: Any) -> Any:
        work = real(*given, **named)
        said.append(work.description)
        return work

    monkeypatch.setitem(run.__globals__, "train", told)
    out = tmp_path / "m.safetensors"
    run(out, begin=6)
    run(out)
    run(out)  # it has ended
    assert said == ["training", "training, continuing from step 4", "training"]


def test_a_run_whose_learning_rate_follows_its_length_takes_no_more_steps(tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    run(out, schedule="cosine", keep_state=True)
    with pytest.raises(UsageError, match=r"other settings: training\.steps \(12 there, 24 now\)"):
        run(out, schedule="cosine", steps=24, keep_state=True)


def test_a_finished_run_whose_file_is_gone_is_run_again(tmp_path: Path) -> None:
    """Its state holds nothing that could be lost, and the same command makes the same file; one with weights stays."""
    out = tmp_path / "m.safetensors"
    run(out)
    before = read_checkpoint(out, "model")[0].content_id
    out.unlink()
    with pytest.raises(UsageError, match=r"m.last.safetensors belongs to a finished run, but .* remove .* too"):
        run(out, resume="require")
    assert run(out).steps == 12
    assert read_checkpoint(out, "model")[0].content_id == before


def test_weights_that_were_kept_outlive_the_file(tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    run(out, keep_state=True)
    kept = state_path(out).read_bytes()
    out.unlink()
    with pytest.raises(UsageError, match=r"remove .* too to run it again"):
        run(out)
    assert state_path(out).read_bytes() == kept


@pytest.mark.parametrize("resume", ["auto", "never"])
def test_a_validation_that_is_not_finite_makes_no_model(resume: str, tmp_path: Path) -> None:
    out, task = tmp_path / "m.safetensors", Line()
    shown = task.forward

    def blind(batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        bound = shown(batch, step, player)
        return bound if step is not None else Bound(bound.value * torch.nan, bound.terms)

    task.forward = blind  # type: ignore[method-assign]
    for _ in range(2):  # the same command again says it again
        with pytest.raises(TrainingError, match="validation bound is not finite at step 12, so none are the best"):
            run(out, task, resume, validate_every=100)
        assert not out.exists()
