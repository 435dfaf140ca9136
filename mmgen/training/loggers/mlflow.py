"""MLflow: a run of the experiment "mmgen" (``MLFLOW_EXPERIMENT_NAME``) where ``MLFLOW_TRACKING_URI`` says."""

import os
import time
from collections.abc import Mapping

from mmgen.core.errors import UsageError, clip
from mmgen.core.parsing import flatten
from mmgen.training.loggers._base import Logger, RunFacts, run_id

__all__ = ["RunLogger"]

_LONGEST = 500  # letters of a parameter that every store takes
_AT_ONCE = 100  # parameters of a request


class RunLogger(Logger):
    """Logger for MLflow: metrics by step, settings as parameters."""

    name = "mlflow"
    library = "mlflow"

    def __init__(self, run: RunFacts) -> None:
        import mlflow
        from mlflow.entities import Param

        self._client = mlflow.MlflowClient()
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "mmgen")
        try:
            self._id = run_id(run, "mlflow")
            if self._id:
                self._client.update_run(self._id, status="RUNNING")
                return
            experiment = self._client.get_experiment_by_name(name)
            number = experiment.experiment_id if experiment else self._client.create_experiment(name)
            self._id = self._client.create_run(number, run_name=run.name).info.run_id
            run_id(RunFacts(run.name, run.folder), "mlflow", self._id)
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
