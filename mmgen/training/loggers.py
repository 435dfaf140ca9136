"""Loggers that show the log of a run in another program; the library of each is an extra of its name."""

import importlib
import os
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from mmgen.artifacts.files import make_internal_folder, write_text_atomic
from mmgen.core.elsewhere import outside_current_folder
from mmgen.core.errors import ArtifactError, UsageError, clip
from mmgen.core.extras import how_to_install
from mmgen.core.parsing import MalformedError, flatten, read_text

__all__ = ["LOGGERS", "Logger", "RunFacts", "logger_class"]


@dataclass(frozen=True)
class RunFacts:
    """Name, folder and settings of a run, from which a logger starts.

    Attributes:
        name: Name of the artifact without its ending: "telbo-seed1".
        folder: Folder of the run for files of loggers, beside the log.
        settings: All settings of the run, nested, including the seed.
        after_step: Number of steps already logged; above 0 if the run continues.
    """

    name: str
    folder: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    after_step: int = 0


class Logger(ABC):
    """Base of loggers, which send the numbers of one run to another program.

    Args:
        run: The run; with ``after_step`` above 0 the logger continues its own run.

    Raises:
        OSError: A file cannot be written.
        UsageError: The library cannot start a run: no account, no server.
    """

    name: ClassVar[str]
    """Name for ``--log-to``, and of the extra to install."""
    library: ClassVar[str]
    """Name of the library's module."""

    @abstractmethod
    def __init__(self, run: RunFacts) -> None: ...

    @classmethod
    def check_installed(cls) -> None:
        """Refuse a logger whose library is not installed."""
        try:
            with outside_current_folder():
                importlib.import_module(cls.library)
        except ImportError:
            raise UsageError(
                f"training.log_to (--log-to) got '{cls.name}', which is not installed: {how_to_install(cls.name)}; or "
                "leave it out"
            ) from None

    @abstractmethod
    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        """Record the numbers of one step."""

    @abstractmethod
    def close(self, finished: bool) -> None:
        """End the log; ``finished`` is False for a run that was interrupted or failed, and may continue."""


def _run_id(run: RunFacts, logger: str, new_id: str = "") -> str:
    """Return the id of a continued run at its logger's program, as stored before; store and return ``new_id`` else."""
    path = run.folder / f"{logger}-run"
    try:
        if run.after_step and path.exists() and (stored_id := read_text(path).strip()):
            return stored_id
    except MalformedError as error:
        raise ArtifactError(f"{path} is no id of a run: {error}; remove it") from None
    if new_id:
        write_text_atomic(path, new_id)
    return new_id


class _TensorBoard(Logger):
    """Logger for TensorBoard: a file of events in the run's folder; ``tensorboard --logdir .`` shows all below.

    A resumed run hides points after the step that it resumes from.
    """

    name = "tensorboard"
    library = "torch.utils.tensorboard"

    def __init__(self, run: RunFacts) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(run.folder), purge_step=run.after_step + 1 if run.after_step else None)
        if not run.after_step:
            lines = [f"| {key} | {value} |" for key, value in flatten(run.settings).items()]
            self._writer.add_text("settings", "\n".join(["| setting | value |", "|---|---|", *lines]))

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)

    def close(self, finished: bool) -> None:
        self._writer.close()


_STEP = "step"
_LONGEST = 500  # letters of a parameter that every store of MLflow takes
_AT_ONCE = 100  # parameters of a request


class _WeightsAndBiases(Logger):
    """Logger for Weights & Biases: a run of the project "mmgen", or that of ``WANDB_PROJECT``.

    ``WANDB_MODE=offline`` keeps it in the run's folder, to be sent later with ``wandb sync``. Metrics are over a column
    ``step``, since the program's own counter cannot repeat steps.
    """

    name = "wandb"
    library = "wandb"

    def __init__(self, run: RunFacts) -> None:
        import wandb

        identity = _run_id(run, "wandb", uuid.uuid4().hex[:12])
        make_internal_folder(run.folder / "wandb")  # where the library writes
        try:
            with outside_current_folder():
                wandb.setup(wandb.Settings(silent=True))  # which reads what settings there are
            self._run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", "mmgen"),
                name=run.name,
                id=identity,
                resume="allow",
                dir=str(run.folder),
                config=dict(run.settings),
                settings=wandb.Settings(silent=True, console="off", disable_git=True, disable_code=True),
            )
        except wandb.errors.Error as error:
            raise UsageError(
                f"Weights & Biases refuses the run ({str(error).splitlines()[0]}); run wandb login, or set "
                "WANDB_MODE=offline and send it later with wandb sync"
            ) from None
        self._run.define_metric(_STEP)
        self._run.define_metric("*", step_metric=_STEP)

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        self._run.log({_STEP: step, **numbers})

    def close(self, finished: bool) -> None:
        self._run.finish(exit_code=0 if finished else 1)


class _MLflow(Logger):
    """Logger for MLflow: a run of the experiment "mmgen" (``MLFLOW_EXPERIMENT_NAME``) at ``MLFLOW_TRACKING_URI``."""

    name = "mlflow"
    library = "mlflow"

    def __init__(self, run: RunFacts) -> None:
        import mlflow
        from mlflow.entities import Param

        self._client = mlflow.MlflowClient()
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "mmgen")
        try:
            self._id = _run_id(run, "mlflow")
            if self._id:
                self._client.update_run(self._id, status="RUNNING")
                return
            experiment = self._client.get_experiment_by_name(name)
            number = experiment.experiment_id if experiment else self._client.create_experiment(name)
            self._id = self._client.create_run(number, run_name=run.name).info.run_id
            _run_id(RunFacts(run.name, run.folder), "mlflow", self._id)
            parameters = [Param(key, clip(value, _LONGEST)) for key, value in flatten(run.settings).items()]
            for begin in range(0, len(parameters), _AT_ONCE):
                self._client.log_batch(self._id, params=parameters[begin : begin + _AT_ONCE])
        except mlflow.exceptions.MlflowException as error:
            raise UsageError(
                f"MLflow refuses the run ({str(error).splitlines()[0]}); set MLFLOW_TRACKING_URI, sqlite:///mlflow.db "
                "for example"
            ) from None

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(1000 * time.time())
        # Names may hold letters, digits and _-.:/ and blanks, and no brackets or bars.
        metrics = [Metric(_replace_letters(name), value, now, step) for name, value in numbers.items()]
        self._client.log_batch(self._id, metrics=metrics)

    def close(self, finished: bool) -> None:
        self._client.set_terminated(self._id, "FINISHED" if finished else "KILLED")


def _replace_letters(name: str) -> str:
    """Replace the characters that MLflow refuses in names of metrics.

    Example:
        >>> _replace_letters("terms/log p(x|z)")
        'terms/log p x z'
    """
    return " ".join("".join(letter if letter.isalnum() or letter in "_-./" else " " for letter in name).split())


LOGGERS = {one.name: one for one in (_TensorBoard, _WeightsAndBiases, _MLflow)}


def logger_class(name: str) -> type[Logger]:
    """Return the class of the logger called ``name``, one of :data:`LOGGERS`.

    Raises:
        UsageError: Its library is not installed.
    """
    LOGGERS[name].check_installed()
    return LOGGERS[name]
