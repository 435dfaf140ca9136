"""TensorBoard: a file of events in the run's folder; ``tensorboard --logdir .`` shows all below."""

from collections.abc import Mapping

from mmgen.core.parsing import flatten
from mmgen.training.loggers._base import Logger, RunFacts

__all__ = ["RunLogger"]


class RunLogger(Logger):
    """Logger for TensorBoard: scalars by step; a resumed run hides points after the step that it resumes from."""

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
