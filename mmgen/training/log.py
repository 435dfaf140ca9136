"""The log of a run: JSON lines beside the checkpoint, and loggers that send it to other programs, each an extra."""

import importlib
import os
import time
import uuid
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from mmgen.artifacts.content_id import one_line_json
from mmgen.artifacts.files import (
    make_internal_folder,
    make_write_error,
    open_internal_file,
    try_lock,
    write_text_atomic,
)
from mmgen.core.errors import ArtifactError, UsageError, clip
from mmgen.core.extras import how_to_install, outside_current_folder
from mmgen.core.parsing import LOG_ENDING, MAX_LOG_BYTES, MalformedError, flatten, parse_json, printable, read_text


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


def log_path(out: Path) -> Path:
    """Return the path of a run's log: ``model.log.jsonl`` for ``model.safetensors``."""
    return out.with_name(f"{out.name.removesuffix('.safetensors')}{LOG_ENDING}")


class RunLog:
    """Log of a run: a file with a JSON object on each line, and loggers of other programs if the user asks for them.

    If a logger fails during the run (no network, an expired account, a full disk), it is dropped with a warning and
    training goes on. If the log file itself cannot be written, training stops.

    Args:
        path: The log file.
        after_step: Lines beyond this step are removed first, since a resumed run writes them again; 0 begins anew.
        log_to: Names of further loggers (:mod:`mmgen.training.log`).
        settings: All settings of the run, for loggers.
        check: Called once no other training can write the log, before lines of an earlier run are removed.

    Raises:
        ArtifactError: Another training writes the log file, or it cannot be written (full disk, no such folder).
        UsageError: A logger is not installed, or cannot start.
    """

    def __init__(
        self,
        path: Path,
        after_step: int,
        log_to: Sequence[str] = (),
        settings: Mapping[str, Any] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.path, self.finished = path, False
        logger_types = [
            logger_class(name) for name in log_to
        ]  # what is not installed is said before anything is written
        earlier = _lock(path)
        try:
            check()
            lines = _read_lines(path, after_step) if after_step else []
            write_text_atomic(path, "".join(lines))
            self._lock = _lock(path)
        finally:
            if earlier is not None:
                os.close(earlier)
        folder = path.with_suffix("")
        run = RunFacts(path.name.removesuffix(LOG_ENDING), folder, settings or {}, after_step)
        try:
            if logger_types:
                make_internal_folder(folder)
            if not after_step and not folder.is_symlink():
                for old in folder.glob("events.out.tfevents.*"):
                    old.unlink()
            self._file = open(path, "a", encoding="utf-8", opener=open_internal_file)  # noqa: SIM115 - closed by close()
            self._loggers: list[Logger] = []
            try:
                for logger_type in logger_types:
                    self._loggers.append(logger_type(run))
            except BaseException:
                self.close()  # those that have begun
                raise
        except OSError as error:
            raise make_write_error(Path(error.filename or path), error) from error

    def write(self, record: dict[str, Any]) -> None:
        """Append one line, on disk at once, so that a killed run loses at most this line.

        Raises:
            ArtifactError: The file cannot be written.
        """
        try:
            self._file.write(one_line_json(record) + "\n")
            self._file.flush()
        except OSError as error:
            raise make_write_error(self.path, error) from error
        numbers = dict(_flatten_numbers(record))
        for one in list(self._loggers):
            self._call_logger(one, partial(one.write, record["step"], numbers))

    def close(self) -> None:
        """Close the log; delete it if it is empty."""
        with suppress(OSError):
            self._file.close()
            if not self.path.stat().st_size:  # the run failed before its first line
                self.path.unlink()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        for current in list(self._loggers):
            self._call_logger(current, partial(current.close, self.finished))

    def _call_logger(self, logger: Logger, call: Callable[[], None]) -> None:
        """Call a logger; drop it after any error."""
        try:
            call()
        except Exception as error:  # of libraries that talk to servers, each with errors of its own
            self._loggers.remove(logger)
            with suppress(Exception):
                logger.close(False)
            reason = printable(next(iter(str(error).splitlines()), "") or type(error).__name__, 200)
            warnings.warn(
                f"{logger.name} fails ({reason}) and gets no more of this run; {self.path} has all of it", stacklevel=2
            )


def _lock(path: Path) -> int | None:
    """Lock a log until the descriptor that is returned is closed; None where there are no locks.

    Raises:
        ArtifactError: Another training writes it.
    """
    try:
        lock = try_lock(path)
    except (ImportError, OSError):
        return None
    if lock is None:
        raise ArtifactError(
            f"cannot write {path}: another command writes it, which trains under the same name; use another --output, "
            "or wait for that one"
        )
    return lock


def _read_lines(path: Path, last_step: int) -> list[str]:
    """Return the complete lines of an earlier log up to step ``last_step``."""
    lines = []
    try:
        text = read_text(path, MAX_LOG_BYTES, errors="replace")
    except OSError:  # an earlier log that is gone is not missed
        return []
    except MalformedError as error:
        raise ArtifactError(
            f"{path} is no log that this run could continue ({error}); remove it or use another --output"
        ) from None
    for line in text.split("\n"):
        try:
            if parse_json(line)["step"] <= last_step:
                lines.append(line + "\n")
        except (MalformedError, KeyError, TypeError):
            continue  # a line that a killed run did not finish
    return lines


def _flatten_numbers(record: dict[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    """Return all numbers of a nested record as pairs of a name, such as "terms/kl", and the number."""
    scalars: list[tuple[str, float]] = []
    for key, value in record.items():
        if isinstance(value, dict):
            scalars += _flatten_numbers(value, f"{prefix}{key}/")
        elif isinstance(value, int | float) and key != "step":
            scalars.append((f"{prefix}{key}", float(value)))
    return scalars
