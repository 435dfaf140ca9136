"""``--log-to``: numbers, settings and seed arrive, a run that goes on is the same run there, what is missing is said.

Weights & Biases and MLflow are recorded by modules that stand for them; where the libraries are installed, the
last tests ask them themselves, offline.
"""

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from mmgen.artifacts import read_checkpoint
from mmgen.cli._main import main
from mmgen.core.errors import UsageError
from mmgen.training.log import LOGGERS
from mmgen.training.settings import TrainingSettings
from tests.training.test_training_runs import run


class Wandb(ModuleType):
    """What is called of wandb, recorded."""

    def __init__(self) -> None:
        super().__init__("wandb")
        self.inits: list[dict[str, Any]] = []
        self.logged: list[dict[str, float]] = []
        self.ended: list[int] = []
        self.errors = SimpleNamespace(Error=ConnectionError)
        self.Settings = dict
        self.set_up_in: list[str] = []

    def setup(self, settings: Any) -> None:
        self.set_up_in.append(os.getcwd())

    def init(self, **said: Any) -> Any:
        self.inits.append(said)
        return SimpleNamespace(
            define_metric=lambda *_, **__: None,
            log=self.logged.append,
            finish=lambda exit_code: self.ended.append(exit_code),
        )


class Mlflow(ModuleType):
    """What is called of MLflow, recorded."""

    def __init__(self) -> None:
        super().__init__("mlflow")
        self.runs: dict[str, list[Any]] = {}
        self.status: list[str] = []
        self.exceptions = SimpleNamespace(MlflowException=ConnectionError)
        self.entities = ModuleType("mlflow.entities")
        self.entities.Metric = lambda name, value, now, step: (name, value, step)  # type: ignore[attr-defined]  # of a module made here
        self.entities.Param = lambda name, value: (name, value)  # type: ignore[attr-defined]  # of a module made here

    def MlflowClient(self) -> Any:
        def create_run(number: str, run_name: str) -> Any:
            identity = f"{number}-{run_name}-{len(self.runs)}"
            self.runs[identity] = []
            return SimpleNamespace(info=SimpleNamespace(run_id=identity))

        return SimpleNamespace(
            get_experiment_by_name=lambda name: None,
            create_experiment=lambda name: name,
            create_run=create_run,
            update_run=lambda identity, status: self.status.append(f"{identity} {status}"),
            log_batch=lambda identity, params=(), metrics=(): self.runs[identity].extend([*params, *metrics]),
            set_terminated=lambda identity, status: self.status.append(f"{identity} {status}"),
        )


def stand_in(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module.__name__, module)
    if hasattr(module, "entities"):
        monkeypatch.setitem(sys.modules, f"{module.__name__}.entities", module.entities)


def test_wandb_gets_numbers_and_settings_and_goes_on_with_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = Wandb()
    stand_in(wandb, monkeypatch)
    out = tmp_path / "m.safetensors"
    run(out, begin=6, log_to=["wandb"], seed=3)
    run(out, log_to=["wandb"], seed=3)
    first, second = wandb.inits
    assert first["id"] == second["id"] and second["resume"] == "allow"
    assert (first["name"], first["config"]["seed"], first["dir"]) == ("m", 3, str(tmp_path / "m.log"))
    assert wandb.ended == [1, 0], "interrupted, then finished"
    assert wandb.set_up_in == ["/", "/"], "wandb/settings of this folder may be a stranger's, and name a server"
    steps = [int(line["step"]) for line in wandb.logged if "bound" in line]
    assert sorted(set(steps)) == [2, 4, 6, 8, 10, 12]
    run(out, log_to=["wandb"], resume="never")
    assert wandb.inits[2]["id"] != first["id"], "another run"


def test_mlflow_gets_numbers_and_settings_and_goes_on_with_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = Mlflow()
    stand_in(mlflow, monkeypatch)
    out = tmp_path / "m.safetensors"
    run(out, begin=6, log_to=["mlflow"], seed=3)
    run(out, log_to=["mlflow"], seed=3)
    ((identity, told),) = mlflow.runs.items()
    assert mlflow.status == [f"{identity} KILLED", f"{identity} RUNNING", f"{identity} FINISHED"]
    assert ("seed", "3") in told and "step" not in {one[0] for one in told}, "which is no figure"
    assert {step for name, _, step in (one for one in told if len(one) == 3) if name == "bound"} == {2, 4, 6, 8, 10, 12}
    assert all(set(one[0]) <= set("abcdefghijklmnopqrstuvwxyz_-./ ") for one in told if len(one) == 3)


def test_refusals_of_a_service_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = Wandb()
    monkeypatch.setattr(wandb, "init", lambda **_: (_ for _ in ()).throw(ConnectionError("no API key\nmore")))
    stand_in(wandb, monkeypatch)
    with pytest.raises(UsageError, match=r"refuses the run \(no API key\); run wandb login, or set WANDB_MODE=offline"):
        run(tmp_path / "m.safetensors", log_to=["wandb"])


def test_a_logger_that_fails_is_left_out_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb, mlflow = Wandb(), Mlflow()
    lines = 0

    def fail(line: dict[str, float]) -> None:
        nonlocal lines
        lines += 1
        raise ConnectionError("no route\nto host")

    begin = wandb.init
    monkeypatch.setattr(wandb, "init", lambda **said: SimpleNamespace(**{**vars(begin(**said)), "log": fail}))
    stand_in(wandb, monkeypatch)
    stand_in(mlflow, monkeypatch)
    with pytest.warns(UserWarning, match=r"^wandb fails \(no route\) and gets no more of this run") as warned:
        assert run(tmp_path / "m.safetensors", log_to=["wandb", "mlflow"]).steps == 12
    assert (lines, len(warned), wandb.ended) == (1, 1, [1])
    assert [status.split()[-1] for status in mlflow.status] == ["FINISHED"]


def test_a_logger_that_cannot_be_closed_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb, mlflow = Wandb(), Mlflow()
    monkeypatch.setattr(wandb, "ended", None)  # what its finish() adds to
    stand_in(wandb, monkeypatch)
    stand_in(mlflow, monkeypatch)
    with pytest.warns(UserWarning, match="wandb fails"):
        run(tmp_path / "m.safetensors", log_to=["wandb", "mlflow"])
    assert len(mlflow.status) == 1


def test_a_logger_that_refuses_ends_those_that_have_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb, mlflow = Wandb(), Mlflow()
    monkeypatch.setattr(wandb, "init", lambda **_: (_ for _ in ()).throw(ConnectionError("no API key")))
    stand_in(wandb, monkeypatch)
    stand_in(mlflow, monkeypatch)
    with pytest.raises(UsageError, match="no API key"):
        run(tmp_path / "m.safetensors", log_to=["mlflow", "wandb"])
    assert [status.split()[-1] for status in mlflow.status] == ["KILLED"]
    assert not (tmp_path / "m.log.jsonl").exists()


@pytest.mark.parametrize("name", LOGGERS)
def test_what_is_not_installed_is_said_before_any_work(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, logger_library(name), None)
    with pytest.raises(
        UsageError, match=rf"'{name}', which is not installed: pip install .*in a clone .*'\.\[{name}\]'"
    ):
        run(tmp_path / "m.safetensors", log_to=[name])
    assert list(tmp_path.iterdir()) == []


def logger_library(name: str) -> str:
    return {"tensorboard": "torch.utils.tensorboard"}.get(name, name)


def test_logging_changes_nothing_else_and_may_begin_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(Wandb(), monkeypatch)
    run(tmp_path / "a.safetensors", begin=6)
    run(tmp_path / "a.safetensors", log_to=["wandb"])  # the same run, seen from here on
    run(tmp_path / "b.safetensors")
    (one, a), (other, b) = (read_checkpoint(tmp_path / f"{name}.safetensors", "model") for name in "ab")
    assert one.settings == other.settings and one.content_id == other.content_id
    assert a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_a_single_logger_needs_no_list() -> None:
    assert TrainingSettings.model_validate({"log_to": "mlflow"}).log_to == ("mlflow",)


@pytest.mark.parametrize("command", ["train", "train-classifier"])
def test_an_unknown_logger_is_refused(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    golden = Path(__file__).parents[1] / "golden" / "dataset-v3.h5"
    with pytest.raises(SystemExit) as left:
        main([command, str(golden), "--log-to", "wandbb"])
    assert left.value.code == 2
    assert "unknown logger 'wandbb': did you mean 'wandb'?" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.filterwarnings("ignore")
def test_wandb_itself_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    out = tmp_path / "m.safetensors"
    run(out, begin=6, log_to=["wandb"])
    run(out, log_to=["wandb"])
    kept = list((tmp_path / "m.log" / "wandb").glob("offline-run-*"))
    identity = (tmp_path / "m.log" / "wandb-run").read_text()
    assert len(kept) == 2 and all(folder.name.endswith(identity) for folder in kept)


@pytest.mark.filterwarnings("ignore")
def test_mlflow_itself_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    out = tmp_path / "m.safetensors"
    run(out, begin=6, log_to=["mlflow"])
    run(out, log_to=["mlflow"])
    client = mlflow.MlflowClient()
    (one,) = client.search_runs([client.get_experiment_by_name("mmgen").experiment_id])
    assert one.info.status == "FINISHED"
    assert {metric.step for metric in client.get_metric_history(one.info.run_id, "bound")} == {2, 4, 6, 8, 10, 12}
