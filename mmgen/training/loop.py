"""One training loop for models, aggregates and classifiers.

Randomness is keyed by the step (noise, dropout) and by the epoch (order), so that a run continued from a saved
state draws what an uninterrupted run would have drawn: on one device the results are identical, bit for bit.
"""

import logging
import math
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from mmgen.artifacts import check_nothing_lost, check_place
from mmgen.batch import Batch
from mmgen.errors import DataError, Interrupted, TrainingError, UsageError
from mmgen.memory import check_memory
from mmgen.objectives._base import Bound
from mmgen.progress import Progress, Work
from mmgen.seeding import stream_key
from mmgen.training.batches import Order, Rows
from mmgen.training.guard import Guard
from mmgen.training.log import RunLog, log_path
from mmgen.training.precision import resolve_device, resolve_precision
from mmgen.training.schedule import factor
from mmgen.training.settings import TrainingSettings
from mmgen.training.signals import StopRequest, stop_on_signals
from mmgen.training.state import RunState, load_state, save_state, state_path
from mmgen.training.task import Task

__all__ = ["Resume", "TrainingResult", "make_fabric", "train", "validate"]

Resume = str
"""auto: continue where a state of the same run is found; never: begin anew; require: it must be there."""


@dataclass(frozen=True)
class TrainingResult:
    """What a run came to: the artifact, steps done, best validation bound (nats per example), training seconds."""

    path: Path
    steps: int
    best: float | None
    seconds: float


class _Step(nn.Module):
    """The task behind plain dictionaries: Fabric's wrappers cannot look into frozen dataclasses."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task = task

    def forward(
        self, values: dict[str, Tensor], present: dict[str, Tensor], step: int | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        bound: Bound = self.task(Batch(values, present), step)
        return bound.value, bound.terms


def make_fabric(settings: TrainingSettings) -> Fabric:
    """Devices and precision for a run; with several devices, starts the other processes."""
    device = resolve_device(settings.device)
    precision = resolve_precision(settings.precision, device)
    if device.type == "cuda" and settings.devices > torch.cuda.device_count():
        raise UsageError(
            f"--devices got {settings.devices}, but {torch.cuda.device_count()} GPUs are here; ask for at most that"
        )
    chosen: list[int] | int = settings.devices
    if device.type == "cuda" and settings.devices == 1:
        chosen = [device.index or 0]
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # it announces the precision on every start
    fabric = Fabric(
        accelerator=device.type,
        devices=chosen,
        strategy="ddp" if settings.devices > 1 else "auto",
        precision=precision,
    )
    fabric.launch()
    return fabric


def validate(module: nn.Module, rows: Rows, settings: TrainingSettings) -> dict[str, tuple[float, float]]:
    """Mean and standard error of the bound and of each term over fixed validation examples with fixed noise.

    Args:
        module: Called as ``module(values, present, None)``, in evaluation mode.
        rows: Validation examples; the same ``settings.validation_examples`` of them every time.
        settings: Of the run.
    """
    count = min(settings.validation_examples, len(rows))
    generator = torch.Generator().manual_seed(stream_key(settings.seed, "validation rows"))
    chosen = torch.randperm(len(rows), generator=generator)[:count]
    was_training = module.training
    module.eval()
    collected: dict[str, list[Tensor]] = {}
    with torch.no_grad():
        for number, indices in enumerate(chosen.split(512)):
            torch.manual_seed(stream_key(settings.seed, "validation", number))
            batch = rows.sight(indices, settings.seed, "validation")
            value, terms = module(batch.values, batch.present, None)
            for name, figure in {"bound": value, **terms}.items():
                collected.setdefault(name, []).append(figure.double().cpu())
    module.train(was_training)
    result = {}
    for name, parts in collected.items():
        figures = torch.cat(parts)
        result[name] = (
            float(figures.mean()),
            float(figures.std() / math.sqrt(len(figures))) if len(figures) > 1 else 0.0,
        )
    return result


def train(
    task: Task,
    rows: Rows,
    validation: Rows,
    settings: TrainingSettings,
    out: Path,
    save: Callable[[Path, dict[str, Any]], None],
    described: dict[str, Any],
    description: str = "training",
    resume: Resume = "auto",
    fabric: Fabric | None = None,
) -> Work[TrainingResult]:
    """Maximise a task's value and keep the best weights by validation bound (or the last, see the settings).

    Args:
        task: What is trained; left holding its last weights.
        rows: Training examples, batches of which are on the run's device.
        validation: Validation examples.
        settings: Of the run.
        out: The artifact to make; the run's state and log are kept beside it.
        save: Writes the artifact from the task's present weights, given the path and facts about the run.
        described: Everything that determines the run, JSON; a saved state is continued only if it is the same.
        description: What is being trained, for progress bars.
        resume: "auto", "never" or "require".
        fabric: Devices to run on, if the caller has made them already.

    Raises:
        TrainingError: A value is not finite; names term and step.
        Interrupted: A signal came; the state was saved.
        UsageError: The saved state belongs to another run, or is missing where it is required.
        DataError: There are no examples to train on or to validate on.
    """
    for part, examples in (("training", rows), ("validation", validation)):
        if not len(examples):
            origin = examples.origin or f"the {part} part of the split"
            raise DataError(
                f"{origin} holds no examples, expected at least one; choose another split or make the dataset again"
            )
    run = _Run(task, rows, validation, settings, out, save, described, resume, fabric)
    return Work(description, settings.steps, "step", run.steps)


class _Run:
    """The parts of one run, so that the loop itself reads as a loop."""

    def __init__(
        self,
        task: Task,
        rows: Rows,
        validation: Rows,
        settings: TrainingSettings,
        out: Path,
        save: Callable[[Path, dict[str, Any]], None],
        described: dict[str, Any],
        resume: Resume,
        fabric: Fabric | None,
    ) -> None:
        self.task, self.rows, self.validation, self.settings = task, rows, validation, settings
        self.out, self.save, self.described = out, save, described
        self.fabric = fabric or make_fabric(settings)
        self.precision = resolve_precision(settings.precision, self.fabric.device)
        self.state = RunState()
        self.saved_step: int | None = None
        self._open(resume)

    def _open(self, resume: Resume) -> None:
        settings = self.settings
        self.task.to(self.fabric.device)
        groups = self.task.parameter_groups(settings.weight_decay, settings.l2_attributes_decoder)
        rate, betas = settings.learning_rate, settings.adam_betas
        optimizer = torch.optim.Adam(groups, lr=rate, betas=betas, eps=settings.adam_epsilon, fused=True)
        path = state_path(self.out)
        for file in (self.out, path, log_path(self.out)):
            check_place(file)  # before any work, not when the first of them is saved
        if resume == "auto" and not path.exists():
            check_nothing_lost(self.out, False, f"its run cannot be continued without its state {path}: use ")
        if resume == "require" and not path.exists():
            raise UsageError(f"--resume found no state {path}; leave the option out to begin a run")
        if resume != "never" and path.exists():
            self.state = load_state(path, self.task, optimizer, self.described, self.precision)
            self.saved_step = self.state.step
            if self.state.finished and not self.out.exists():
                raise UsageError(
                    f"{path} says that this run has ended, but {self.out} is gone; use --overwrite to run it again"
                )
        if len(self.rows) and self.fabric.device.type == "cpu":
            one = self.rows.batch(torch.zeros(1, dtype=torch.int64))
            size = settings.batch * sum(values.nbytes for values in one.values.values())
            check_memory(size, f"a batch of {settings.batch:,}", "use a smaller --batch")
        self.module, self.optimizer = self.fabric.setup(_Step(self.task), optimizer)

    def steps(self) -> Generator[Progress, None, TrainingResult]:
        """The loop: yields progress every ``log_every`` steps."""
        settings, state = self.settings, self.state
        if state.finished:
            return TrainingResult(self.out, state.step, state.best, state.seconds)
        order = Order(len(self.rows), settings.batch, settings.seed)
        guard = Guard(1 if self.fabric.device.type == "cpu" else 20)
        log = RunLog(log_path(self.out), state.step, settings.tensorboard) if self.fabric.is_global_zero else None
        began, before, logged = time.monotonic(), state.seconds, state.step
        self.module.train()
        with stop_on_signals() as request:
            try:
                while state.step < settings.steps and not self._out_of_time():
                    self._step(order[state.step], guard)
                    state.step += 1
                    state.seconds = self._agreed(before + time.monotonic() - began)
                    if state.step % settings.log_every == 0 or state.step == settings.steps:
                        record = self._record(guard, logged, log)
                        logged = state.step
                        yield Progress(state.step, record, self._seconds_left())
                    if state.step % settings.validate_every == 0 and state.step < settings.steps:
                        self._validate(guard, log)
                    self._stop_if_asked(request, guard)
                state.finished = True
                self._validate(guard, log)
            except TrainingError as error:
                raise TrainingError(f"{error} ({self._kept()})") from None
            finally:
                if log is not None:
                    log.close()
        return TrainingResult(self.out, state.step, state.best, state.seconds)

    def _agreed(self, seconds: float) -> float:
        """The first process's clock, in every process: by it each decides when to stop and how fast to learn."""
        fabric = self.fabric
        if fabric.world_size == 1 or self.settings.minutes is None:
            return seconds
        if fabric.device.type == "cuda" and self.state.step % 20:
            return self.state.seconds  # asking waits for the GPU
        told = torch.tensor(seconds, dtype=torch.float64, device=fabric.device)
        torch.distributed.broadcast(told, src=0)
        return float(told)

    def _seconds_left(self) -> float | None:
        return None if self.settings.minutes is None else max(0.0, 60 * self.settings.minutes - self.state.seconds)

    def _out_of_time(self) -> bool:
        return self._seconds_left() == 0

    def _learning_rate(self) -> float:
        settings, step = self.settings, self.state.step
        rate = settings.learning_rate * min(1.0, (step + 1) / max(1, settings.warmup_steps))
        rate *= settings.learning_rate_decay**step
        if settings.schedule != "constant":
            done = step / settings.steps
            if settings.minutes is not None:
                done = max(done, self.state.seconds / (60 * settings.minutes))
            rate *= factor(settings, min(1.0, done))
        return rate

    def _step(self, indices: Tensor, guard: Guard) -> None:
        settings, step = self.settings, self.state.step
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate()
        # Each process takes its share of the batch, and its own stream of noise.
        share = indices[self.fabric.global_rank :: self.fabric.world_size]
        torch.manual_seed(stream_key(settings.seed, "step", step, self.fabric.global_rank))
        batch = self.rows.sight(share, settings.seed, "step", step)
        self.optimizer.zero_grad(set_to_none=True)
        value, terms = self.module(batch.values, batch.present, step)
        self.fabric.backward(-value.mean())
        parameters = [p for group in self.optimizer.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
        if settings.gradient_clip is not None:
            torch.nn.utils.clip_grads_with_norm_(parameters, settings.gradient_clip, norm)
        figures = {"bound": value.mean(), **{name: term.mean() for name, term in terms.items()}, "gradient norm": norm}
        guard.add(step, figures)  # on a CPU before the update, so that a NaN never reaches the weights
        self.optimizer.step()

    def _record(self, guard: Guard, logged: int, log: RunLog | None) -> dict[str, float]:
        """Average the figures since the last line, write them, and return those worth showing."""
        state = self.state
        means = guard.means()
        rate = state.step / state.seconds * self.settings.batch if state.seconds else 0.0
        bound, norm = means.pop("bound"), means.pop("gradient norm")
        if log is not None:
            log.write(
                {
                    "step": state.step,
                    "seconds": round(state.seconds, 3),
                    "bound": bound,
                    "terms": means,
                    "rate": round(rate, 1),
                    "gradient_norm": norm,
                    "learning_rate": self.optimizer.param_groups[0]["lr"],
                }
            )
        return {self.task.quantity: bound, "examples/s": rate}

    def _validate(self, guard: Guard, log: RunLog | None) -> None:
        """Validate, keep the weights if they are the best so far, and save the state."""
        guard.check()
        state = self.state
        figures = validate(self.module, self.validation, self.settings)
        bound, stderr = figures["bound"]
        if self.fabric.is_global_zero:
            assert log is not None
            terms = {name: mean for name, (mean, _) in figures.items() if name != "bound"}
            log.write({"step": state.step, "validation": {"bound": bound, "stderr": stderr, "terms": terms}})
            if not self.out.exists():
                state.best = None  # whoever removed the best weights gets the best of those to come
            better = state.best is None or bound > state.best
            state.best = bound if state.best is None else max(bound, state.best)
            if better or self.settings.keep == "last":
                facts = {
                    "step": state.step,
                    "validation_bound": bound,
                    "validation_stderr": stderr,
                    "validation_examples": min(self.settings.validation_examples, len(self.validation)),
                    "validation_terms": terms,
                    "seconds": round(state.seconds, 2),
                }
                self.save(self.out, facts)
            self._save_state()
        self.fabric.barrier()

    def _save_state(self) -> None:
        path, seed = state_path(self.out), self.settings.seed
        save_state(path, self.task, self.optimizer, self.state, self.described, seed, self.precision)
        self.saved_step = self.state.step

    def _kept(self) -> str:
        """What is on disk of a run that met a NaN; where the weights are those from before it, they are saved first."""
        # A GPU is asked too late: the weights have gone on since. Running statistics may have seen the NaN.
        if self.fabric.device.type == "cpu" and all(bool(t.isfinite().all()) for t in self.task.state_dict().values()):
            if self.fabric.is_global_zero:
                self._save_state()
            self.saved_step = self.state.step
        if self.saved_step is None:
            return "nothing of this run has been saved yet"
        best = f", {self.out} has the best weights before it" if self.state.best is not None else ""
        return f"{state_path(self.out)} has the run at step {self.saved_step}{best}"

    def _stop_if_asked(self, request: StopRequest, guard: Guard) -> None:
        number = request.signal_number or 0
        if self.fabric.world_size > 1:
            # A signal reaches the processes at different steps; all must leave at the same one.
            if self.state.step % 20:
                return
            flag = torch.tensor(number, device=self.fabric.device)
            number = int(self.fabric.all_reduce(flag, reduce_op="max"))  # type: ignore[arg-type]  # a tensor in, a tensor out
        if not number:
            return
        guard.check()
        if self.fabric.is_global_zero:
            self._save_state()
        raise Interrupted(
            f"stopped at step {self.state.step} and saved {state_path(self.out)}; "
            "give the same command again to continue",
            number,
        )
