"""One training loop for models, aggregates and classifiers, of one player or several.

Randomness is keyed by the step (noise, dropout) and by the epoch (order), so that a run continued from a saved
state draws what an uninterrupted run would have drawn: on one device the results are identical, bit for bit.
"""

import math
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from mmgen.artifacts import check_nothing_lost, check_replaceable, read_checkpoint
from mmgen.artifacts.files import note_output, was_written_meanwhile
from mmgen.core.batch import Batch
from mmgen.core.errors import ArtifactError, DataError, Interrupted, TrainingError, UsageError
from mmgen.core.processes import StopRequest, stop_on_signals
from mmgen.core.progress import Progress, Work
from mmgen.core.seeding import stream_key
from mmgen.training.batches import Order, Rows
from mmgen.training.devices import make_fabric
from mmgen.training.log import RunLog, log_path, logger_class
from mmgen.training.precision import resolve_precision
from mmgen.training.settings import TrainingSettings
from mmgen.training.state import UNFINISHED, RunState, load_state, mark_finished, save_state, state_path
from mmgen.training.step_memory import check_run
from mmgen.training.task import BOUND, Player, Task, make_optimizers, make_players
from mmgen.training.validation import validate
from mmgen.training.weights import AveragedWeights

if TYPE_CHECKING:
    from lightning_fabric import Fabric


_NORM = "gradient norm"

Resume = str
"""auto: continue the run if there is a saved state of it; never: begin anew; require: refuse to begin anew."""


@dataclass(frozen=True)
class TrainingResult:
    """Result of a training: path of the artifact, number of steps, best validation value and seconds."""

    path: Path
    steps: int
    best: float | None
    seconds: float


def train(
    task: Task,
    rows: Rows,
    validation: Rows,
    settings: TrainingSettings,
    out: Path,
    save: Callable[[Path, dict[str, Any]], None],
    run_settings: dict[str, Any],
    description: str = "training",
    resume: Resume = "auto",
    fabric: "Fabric | None" = None,
) -> Work[TrainingResult]:
    """Return the work that trains a task and writes its best weights on validation examples, or its last ones.

    Args:
        task: The task to train; at the end it has the last weights.
        rows: Training examples, whose batches are on the run's device.
        validation: Validation examples.
        settings: Settings of the run.
        out: The artifact to write. The run's log and state are beside it; at the end the state is reduced to a small
            record, unless the settings keep it.
        save: Writes the artifact from the task's current weights, given the path and facts about the run.
        run_settings: Everything that determines the run, as JSON; only a saved state with equal settings is continued.
        description: Text of progress bars.
        resume: "auto", "never" or "require".
        fabric: Devices of the run; by default made from the settings.

    Raises:
        TrainingError: A value is not finite; the message names player, term and step.
        Interrupted: A signal came; the state was saved.
        UsageError: The saved state belongs to another run, or is missing though required.
        DataError: There are no examples for training or validation.
    """
    for part, examples in (("training", rows), ("validation", validation)):
        if not len(examples):
            origin = examples.origin or f"the {part} part of the split"
            raise DataError(
                f"{origin} holds no examples, expected at least one; choose another split or make the dataset again"
            )
    run = _Run(task, rows, validation, settings, out, save, run_settings, resume, fabric)
    if run.state.step and not run.state.finished:
        description += f", continuing from step {run.state.step:,}"
    return Work(description, settings.steps, "step", run.steps)


class _Run:
    """State of a training run: its players, files and progress."""

    def __init__(
        self,
        task: Task,
        rows: Rows,
        validation: Rows,
        settings: TrainingSettings,
        out: Path,
        save: Callable[[Path, dict[str, Any]], None],
        run_settings: dict[str, Any],
        resume: Resume,
        fabric: "Fabric | None",
    ) -> None:
        self.task, self.rows, self.validation, self.settings = task, rows, validation, settings
        self.out, self.save, self.run_settings = out, save, run_settings
        self.fabric = fabric or make_fabric(settings)
        self.precision = resolve_precision(settings.precision, self.fabric.device)
        self.state = RunState()
        self.saved_step: int | None = None
        self.in_step = False
        self.average: AveragedWeights | None = None
        self.players = self._prepare(resume)

    def _prepare(self, resume: Resume) -> list[Player]:
        settings = self.settings
        self.task.to(self.fabric.device)
        optimizers = make_optimizers(self.task, settings)
        if settings.average is not None:
            self.average = AveragedWeights(self.task, settings.average)

        if settings.patience is not None and self.task.selects is None:
            raise UsageError(
                f"training.patience got {settings.patience}, but no figure of validation tells which weights of this "
                "training are best; leave it out"
            )

        # Files: that all can be written, and that nothing is lost or missed.
        path = state_path(self.out)
        for name in settings.log_to:
            logger_class(name)
        for file in (self.out, path, log_path(self.out)):
            check_replaceable(file)  # before any work, not when the first of them is saved
        for file in (self.out, path):
            note_output(file)
        if resume == "auto" and not path.exists():
            check_nothing_lost(self.out, False, f"its run cannot be continued without its state {path}: use ")
        if resume == "require" and not path.exists():
            raise UsageError(f"--resume needs the state {path}, which is missing; leave the option out to begin a run")

        # The state of an earlier part of this run.
        if resume != "never" and path.exists():
            self.state = load_state(path, self.task, optimizers, self.run_settings, self.precision, self.average)
            self.saved_step = self.state.step
            if self.state.finished and not self.out.exists():
                if resume == "require" or read_checkpoint(path, "training-state")[1]:  # weights that would be lost
                    notice = f"{path} belongs to a finished run, but its result {self.out} is missing"
                    raise UsageError(f"{notice}; remove {path} too to run it again")
                self.state, self.saved_step = RunState(), None

        players = make_players(self.task, optimizers, self.fabric, settings)
        if not self.state.finished:
            check_run(players, self.rows, self.validation, settings, self.precision, self.state.step)
        return players

    def steps(self) -> Generator[Progress, None, TrainingResult]:
        """Run the training loop; yield progress every ``log_every`` steps."""
        settings, state = self.settings, self.state
        if state.finished:
            return TrainingResult(self.out, state.step, state.best, state.seconds)
        names = ["order", *(f"order {k}" for k in range(1, max(player.batch_count for player in self.players)))]
        orders = [Order(len(self.rows), settings.batch, settings.seed, name) for name in names]
        log = None
        if self.fabric.is_global_zero:
            every = {**self.run_settings, "seed": settings.seed}
            log = RunLog(log_path(self.out), state.step, settings.log_to, every, self._check_not_written)
        began, before = time.monotonic(), state.seconds
        for player in self.players:
            player.module.train()
        with stop_on_signals() as request:
            try:
                while state.step < settings.steps and not state.finished and not self._is_out_of_time():
                    self._train_step([order[state.step] for order in orders])
                    state.step += 1
                    state.seconds = self._seconds_of_first_process(before + time.monotonic() - began)
                    if state.step % settings.log_every == 0 or state.step == settings.steps:
                        yield Progress(state.step, self._log_figures(log), self._seconds_left())
                    if state.step % settings.validate_every == 0 and state.step < settings.steps:
                        self._validate(log)
                    if not state.finished:
                        self._stop_on_signal(request)
                if not state.finished:
                    state.finished = True
                    self._validate(log)
            except TrainingError as error:
                raise TrainingError(f"{error} ({self._describe_saved_files()})") from None
            finally:
                if log is not None:
                    log.finished = state.finished
                    log.close()
        return TrainingResult(self.out, state.step, state.best, state.seconds)

    def _check_not_written(self) -> None:
        """Refuse to begin if another training has written this one's files since they were looked at."""
        for path in (self.out, state_path(self.out)):
            if was_written_meanwhile(path):
                raise ArtifactError(
                    f"{path} was written by another command meanwhile, and stays as it is; use another --output"
                )
        note_output(self.out)

    def _seconds_of_first_process(self, seconds: float) -> float:
        """Return the seconds that the first process has counted, so that all processes stop at the same step."""
        fabric = self.fabric
        if fabric.world_size == 1 or self.settings.minutes is None:
            return seconds
        if fabric.device.type == "cuda" and self.state.step % 20:
            return self.state.seconds  # asking waits for the GPU
        shared = torch.tensor(seconds, dtype=torch.float64, device=fabric.device)
        torch.distributed.broadcast(shared, src=0)
        return float(shared)

    def _seconds_left(self) -> float | None:
        return None if self.settings.minutes is None else max(0.0, 60 * self.settings.minutes - self.state.seconds)

    def _is_out_of_time(self) -> bool:
        return self._seconds_left() == 0

    def _train_step(self, batches: list[Tensor]) -> None:
        """Make one step of every player, each on as many of the batches as it needs."""
        settings, step = self.settings, self.state.step
        # Each process takes its share of the batch, and its own stream of noise.
        shares = [indices[self.fabric.global_rank :: self.fabric.world_size] for indices in batches]
        torch.manual_seed(stream_key(settings.seed, "step", step, self.fabric.global_rank))
        batch_counts = {player.batch_count for player in self.players}
        views = {k: self.rows.view(torch.cat(shares[:k]), settings.seed, "step", step) for k in batch_counts}
        for player in self.players:
            self._update_player(player, views[player.batch_count])
            self.in_step = True
        if self.average is not None:
            self.average.update(step + 1)
        self.in_step = False

    def _update_player(self, player: Player, batch: Batch) -> None:
        """Update one player's parameters by the gradient of its value."""
        settings, step, optimizer = player.settings, self.state.step, player.optimizer
        rate = settings.learning_rate_at(step, self.state.seconds)
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("rate", 1.0)

        # The gradient of the player's own parameters.
        with player.freeze_others():
            optimizer.zero_grad(set_to_none=True)
            figures = player.module(batch.values, batch.present, batch.shared, step)
            self.fabric.backward(-figures[BOUND].mean())
        parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
        if settings.gradient_clip is not None:
            torch.nn.utils.clip_grads_with_norm_(parameters, settings.gradient_clip, norm)

        # The update; on a CPU figures are looked at before, so that a NaN never reaches the weights.
        player.guard.add(step, {name: figure.mean() for name, figure in figures.items()} | {_NORM: norm})
        optimizer.step()

    def _log_figures(self, log: RunLog | None) -> dict[str, float]:
        """Write figures averaged since the last line to the log; return those for the progress bar."""
        state = self.state
        rate = state.step / state.seconds * self.settings.batch if state.seconds else 0.0
        progress: dict[str, float] = {}
        records = {}
        for player in self.players:
            means = player.guard.means()
            bound, norm = means.pop(BOUND), means.pop(_NORM)
            learning_rate = player.optimizer.param_groups[0]["lr"]
            records[player.name] = {
                "bound": bound,
                "terms": means,
                "gradient_norm": norm,
                "learning_rate": learning_rate,
            }
            progress[player.name if len(self.players) > 1 else self.task.quantity] = bound
        if log is not None:
            record = {"players": records} if len(records) > 1 else next(iter(records.values()))
            log.write({"step": state.step, "seconds": round(state.seconds, 3), **record, "rate": round(rate, 1)})
        return progress | {"examples/s": rate}

    def _validate(self, log: RunLog | None) -> None:
        """Validate, save the weights if they are the best so far, and the state; finish a run without patience left."""
        for player in self.players:
            player.guard.check()
        with self._use_averaged_weights():
            figures = validate(self.players[0].module, self.validation, self.settings)
        selecting, patience = self.task.selects, self.settings.patience
        assert selecting is None or selecting in figures, f"the task selects by {selecting}, not among {list(figures)}"
        if selecting is not None and not math.isfinite(figures[selecting][0]):
            self.state.finished = False
            raise TrainingError(
                f"the validation {selecting} is not finite at step {self.state.step}, so none are the best weights; "
                "lower the learning rate, or use --precision 32-true, and begin anew with --overwrite"
            )
        if selecting is not None and patience is not None and not self.state.finished:
            self.state.wait(figures[selecting][0], patience)
            self.state.finished = self.state.converged
        if self.fabric.is_global_zero:
            assert log is not None
            # What the task selects by stands out among the figures, which are terms otherwise.
            terms = {name: mean for name, (mean, _) in figures.items() if name != selecting}
            selected = {} if selecting is None else {selecting: figures[selecting][0], "stderr": figures[selecting][1]}
            log.write({"step": self.state.step, "validation": {**selected, "terms": terms}})
            replaces = self._replaces_saved_weights(None if selecting is None else figures[selecting][0])
            is_first_state = not self.state.finished and not state_path(self.out).exists()
            if is_first_state:  # before the weights, which are of no use to a run that cannot be gone on with
                self._save_state()
            if replaces:
                with self._use_averaged_weights():
                    self.save(self.out, self._make_facts(selected, terms))
                note_output(self.out)
                if not self.out.exists():  # whether later weights are better is told by the file of the best
                    raise RuntimeError(f"save did not write {self.out}, the artifact; write it there")
            elif self.state.finished:
                mark_finished(self.out, self._facts_of_end())
            if not is_first_state:
                self._save_state()
        self.fabric.barrier()

    def _use_averaged_weights(self) -> AbstractContextManager[None]:
        """Replace the task's weights by their averages within a block, if the settings ask for it."""
        return nullcontext() if self.average is None else self.average.apply()

    def _replaces_saved_weights(self, selected: float | None) -> bool:
        """Return whether the current weights go into the artifact: if best so far, or always for ``keep`` "last"."""
        state = self.state
        if selected is None:
            return True
        if not self.out.exists():
            state.best = None  # whoever removed the best weights gets the best of those to come
        better = state.best is None or selected > state.best
        state.best = selected if state.best is None else max(selected, state.best)
        return better or self.settings.keep == "last"

    def _make_facts(self, figures: dict[str, float], terms: dict[str, float]) -> dict[str, Any]:
        """Return facts for the artifact's header, with the best value as "validation_bound" and its error."""
        return {
            "step": self.state.step,
            **{f"validation_{name.replace('/', '_').replace(' ', '_')}": figure for name, figure in figures.items()},
            "validation_examples": min(self.settings.validation_examples, len(self.validation)),
            "validation_terms": terms,
            "seconds": round(self.state.seconds, 2),
            **(self._facts_of_end() if self.state.finished else UNFINISHED),
        }

    def _facts_of_end(self) -> dict[str, Any]:
        """Return the step at which a run without patience left stopped, as a fact of the artifact's header."""
        return {"converged_at_step": self.state.step} if self.state.converged else {}

    def _save_state(self) -> None:
        path, seed = state_path(self.out), self.settings.seed
        optimizers = {player.name: player.optimizer for player in self.players}
        whole = self.settings.keep_state or not self.state.finished
        save_state(
            path, self.task, optimizers, self.state, self.run_settings, seed, self.precision, whole, self.average
        )
        self.saved_step = self.state.step

    def _describe_saved_files(self) -> str:
        """Describe the files of a run that met a NaN; save weights from before it if possible."""
        # A GPU is asked too late: the weights have gone on since, as have those of players that moved before the one
        # that met it. Running statistics may have seen the NaN.
        weights_precede_nan = self.fabric.device.type == "cpu" and not self.in_step
        if weights_precede_nan and all(bool(t.isfinite().all()) for t in self.task.state_dict().values()):
            if self.fabric.is_global_zero:
                self._save_state()
            self.saved_step = self.state.step
        if self.saved_step is None:
            return "nothing of this run has been saved yet"
        best = f", {self.out} has the best weights before it" if self.state.best is not None else ""
        return f"{state_path(self.out)} has the run at step {self.saved_step}{best}"

    def _stop_on_signal(self, request: StopRequest) -> None:
        number = request.signal_number or 0
        if self.fabric.world_size > 1:
            # A signal reaches the processes at different steps; all must leave at the same one.
            if self.state.step % 20:
                return
            flag = torch.tensor(number, device=self.fabric.device)
            number = int(self.fabric.all_reduce(flag, reduce_op="max"))  # type: ignore[arg-type]  # a tensor in, a tensor out
        if not number:
            return
        for player in self.players:
            player.guard.check()
        if self.fabric.is_global_zero:
            self._save_state()
        raise Interrupted(
            f"stopped at step {self.state.step} and saved {state_path(self.out)}; "
            "give the same command again to continue",
            number,
        )
