"""Settings of the training loop."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from torch import Tensor
from torch.optim import Optimizer

from mmgen.core.errors import format_unknown_name
from mmgen.settings.config import Settings, merge, validate
from mmgen.settings.kinds import MOST_MINUTES, MOST_STEPS
from mmgen.training.log import LOGGERS
from mmgen.training.optimizers import (
    OPTIMIZERS,
    SCHEDULES,
    Groups,
    MuonParameters,
    check_muon,
    decay_factor,
    warmup_factor,
)
from mmgen.training.precision import Precision

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, lt=1)]


def _choice_of(noun: str, functions: Collection[str]) -> tuple[Any, Any]:
    """Return annotations for a setting whose choices are names of ``functions``: a validator and a JSON schema."""

    def check(name: str) -> str:
        if name not in functions:
            raise ValueError(format_unknown_name(noun, name, list(functions)))
        return name

    return AfterValidator(check), Field(json_schema_extra={"enum": list(functions)})


@cache
def _settings_of_function(function: Callable[..., Any]) -> list[str]:
    """Return the names of a function's own settings, its keyword-only parameters."""
    parameters = inspect.signature(function).parameters.values()
    return [one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]


class TrainingSettings(Settings):
    """Settings of the training loop: length, learning rate, optimiser, devices."""

    steps: Annotated[int, Field(ge=0, le=MOST_STEPS)] = 10_000
    """Optimiser steps."""
    minutes: Annotated[float, Field(gt=0, le=MOST_MINUTES)] | None = None
    """Stop after this much training time even if steps are left; the learning-rate schedule then follows the clock, so
    a resumed run is not identical to an uninterrupted one."""
    batch: Count = 128
    """Examples per step, over all devices."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    """Step size of the optimiser."""
    schedule: Annotated[str, *_choice_of("schedule", SCHEDULES)] = "constant"
    """Learning rate over time; cosine and linear fall to 1 % of its value; ``stages`` sets those of stages."""
    stages: tuple[tuple[Positive, Positive], ...] = ()
    """Pairs of a duration and a factor of the learning rate, one after the other, for schedule stages. Durations are in
    any unit (passes over the data, say): all of them together are the steps of the run."""
    optimizer: Annotated[str, *_choice_of("optimiser", OPTIMIZERS)] = "adam"
    """What makes a step of a gradient."""
    adam_betas: tuple[Share, Share] = (0.9, 0.999)
    """Decay of the running means of the gradient and of its square, for adam, adamw and muon."""
    adam_epsilon: Positive = 1e-8
    """What adam, adamw and muon add to the root of the mean square."""
    adagrad_epsilon: Positive = 1e-10
    """What adagrad adds to the root of the sum of squares."""
    momentum: Share = 0.0
    """How much of the last step the next one keeps, for sgd and rmsprop."""
    muon_parameters: MuonParameters = "kernels"
    """Parameters that muon moves in its own way: kernels of convolutions, or all matrices too, tables of embeddings
    among them, which takes longer on a CPU."""
    muon_scale: Positive = 0.2
    """Root mean square of a step of muon's own parameters, in learning rates, where the momentum has no direction that
    lacks (Liu et al., 2025: 0.2, as adamw's)."""
    learning_rate_decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Factor of the learning rate at every step, besides the schedule (CK's published code: 0.999995)."""
    warmup_steps: Annotated[int, Field(ge=0)] = 0
    """Steps over which the learning rate rises from 0."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    """lambda of a term lambda / 2 |w|^2 of all parameters, in the gradient (CK's published code: 1e-7); with adamw
    and muon weights shrink by the learning rate times lambda instead."""
    gradient_clip: Annotated[float, Field(gt=0)] | None = None
    """Largest norm of the gradient; longer ones are scaled down to it."""
    average: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Decay of a running mean of the weights, such as 0.999, which validation and the checkpoint use; left out, the
    weights themselves are used."""
    validate_every: Count = 1_000
    """Steps between validations; each also saves the state that --resume continues from."""
    patience: Count | None = None
    """Stop after so many validations without a better bound than before; left out, all steps are made."""
    keep: Literal["best", "last"] = "best"
    """Weights that the checkpoint holds: those of the best validation bound, or the last. The last suit objectives with
    one heavily weighted term, whose overfitting would decide for all others. They are kept if no figure marks the
    best."""
    validation_examples: Count = 2_048
    """Validation examples that the validation bound is averaged over."""
    log_every: Count = 50
    """Steps between lines of the log."""
    device: str = "auto"
    """auto, cpu, cuda or cuda:N."""
    devices: Count = 1
    """Devices (GPUs, or processes on a CPU) to train on."""
    precision: Precision = "auto"
    """Arithmetic of the networks: bf16-mixed, 32-true, or auto for the one that the hardware computes fast."""
    keep_state: Annotated[bool, Field(exclude=True)] = False
    """Keep the last weights and the optimiser's moments of a run that has ended, three times the model: with them it
    can continue with more steps. It changes no result, and no file records it."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of initial weights, order and noise."""
    log_to: Annotated[tuple[Annotated[str, *_choice_of("logger", [*LOGGERS])], ...], Field(exclude=True)] = ()
    """Where the log goes besides its own file: tensorboard, wandb or mlflow (extras of these names)."""

    @model_validator(mode="before")
    @classmethod
    def _convert_single_logger(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and isinstance(values.get("log_to"), str):
            return {**values, "log_to": [values["log_to"]]}
        return values

    @model_validator(mode="after")
    def _check_stages(self) -> Self:
        if bool(self.stages) != (self.schedule == "stages"):
            got = f"{len(self.stages)} stages with schedule {self.schedule}"
            way = (
                "give training.stages too"
                if not self.stages
                else "set training.schedule=stages, or leave the stages out"
            )
            raise ValueError(f"got {got}; {way}")
        return self

    @model_validator(mode="after")
    def _check_optimizer_settings(self) -> Self:
        accepted = _settings_of_function(OPTIMIZERS[self.optimizer])
        for name in dict.fromkeys(name for one in OPTIMIZERS.values() for name in _settings_of_function(one)):
            got, default = getattr(self, name), type(self).model_fields[name].default
            if name not in accepted and got != default:
                users = [other for other, one in OPTIMIZERS.items() if name in _settings_of_function(one)]
                raise ValueError(
                    f"training.{name} got {got} with optimizer {self.optimizer}, which has no such setting; leave it "
                    f"out, or set training.optimizer to {' or '.join(users)}"
                )
        return self

    def for_player(self, player_settings: Mapping[str, Any]) -> "TrainingSettings":
        """Return these settings with a player's changes; another optimiser drops settings of this one.

        Raises:
            SettingsError: Unknown settings, or settings that contradict each other.
        """
        found = merge_settings({"training": dict(self)}, {"training": player_settings})
        return validate(TrainingSettings, found["training"], "training")

    def check_optimizer(self, parameters: Callable[[], Iterable[Tensor]]) -> None:
        """Refuse an optimiser that suits none of the parameters, before any work.

        Args:
            parameters: Makes parameters of the same shapes; called only if shapes matter.

        Raises:
            SettingsError: The optimiser is made for none of them.
        """
        if self.optimizer == "muon":
            check_muon(parameters(), self.muon_parameters)

    def build_optimizer(self, groups: Groups) -> Optimizer:
        """Build the optimiser for groups of parameters."""
        function: Callable[..., Optimizer] = OPTIMIZERS[self.optimizer]
        return function(
            groups, self.learning_rate, **{name: getattr(self, name) for name in _settings_of_function(function)}
        )

    def learning_rate_at(self, step: int, seconds: float = 0.0) -> float:
        """Return the learning rate of a step.

        Args:
            step: Steps done before it.
            seconds: Training time before it; with ``minutes`` set, the schedule follows the clock.
        """
        rate = self.learning_rate * warmup_factor(step, self.warmup_steps)
        rate *= decay_factor(step, self.learning_rate_decay)
        done = step / max(1, self.steps)
        if self.minutes is not None:
            done = max(done, seconds / (60 * self.minutes))
        function: Callable[..., float] = SCHEDULES[self.schedule]
        return rate * function(
            min(1.0, done), **{name: getattr(self, name) for name in _settings_of_function(function)}
        )


def merge_settings(values: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings with ``overrides`` over ``values``; another optimiser drops settings of the former one.

    Example:
        >>> preset = {"training": {"steps": 9, "optimizer": "muon", "muon_scale": 0.8}}
        >>> merge_settings(preset, {"training": {"optimizer": "adam"}})
        {'training': {'steps': 9, 'optimizer': 'adam'}}
    """
    lower, upper = values.get("training"), overrides.get("training")
    default = TrainingSettings.model_fields["optimizer"].default
    if not (isinstance(lower, Mapping) and isinstance(upper, Mapping) and "optimizer" in upper):
        return merge(values, overrides)
    if upper["optimizer"] != lower.get("optimizer", default):
        optimizer_settings = {name for one in OPTIMIZERS.values() for name in _settings_of_function(one)}
        values = {**values, "training": {name: each for name, each in lower.items() if name not in optimizer_settings}}
    return merge(values, overrides)
