"""Weights & Biases: a run of the project "mmgen", or that of ``WANDB_PROJECT``; ``WANDB_MODE=offline`` sends nothing.

Offline runs are kept in the run's folder, to be sent later with ``wandb sync``.
"""

import os
import uuid
from collections.abc import Mapping

from mmgen.artifacts.files import make_internal_folder
from mmgen.core.elsewhere import outside_current_folder
from mmgen.core.errors import UsageError
from mmgen.training.loggers._base import Logger, RunFacts, run_id

__all__ = ["RunLogger"]

_STEP = "step"


class RunLogger(Logger):
    """Logger for Weights & Biases: metrics over a column ``step``, since W&B's own counter cannot repeat steps."""

    name = "wandb"
    library = "wandb"

    def __init__(self, run: RunFacts) -> None:
        import wandb

        identity = run_id(run, "wandb", uuid.uuid4().hex[:12])
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
