"""Settings of the training loop."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from mmgen.config import Settings
from mmgen.training.precision import Precision

__all__ = ["TrainingSettings"]

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, lt=1)]


class TrainingSettings(Settings):
    """How long, how fast, where."""

    steps: Annotated[int, Field(ge=0)] = 10_000
    """Optimiser steps."""
    minutes: Annotated[float, Field(gt=0)] | None = None
    """Stop after this much training time even if steps are left; the learning-rate schedule then follows the clock, so
    a resumed run is not identical to an uninterrupted one."""
    batch: Count = 128
    """Examples per step, over all devices."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    """Step size of Adam."""
    schedule: Literal["constant", "cosine", "stages"] = "constant"
    """Learning rate over time; cosine falls to 1 % of its value, stages are told by ``stages``."""
    stages: tuple[tuple[Positive, Positive], ...] = ()
    """Of schedule stages: pairs of a duration and a factor of the learning rate, one after the other. Durations are in
    any unit (passes over the data, say): all of them together are the steps of the run."""
    adam_betas: tuple[Share, Share] = (0.9, 0.999)
    """Decay of Adam's running means of the gradient and of its square."""
    adam_epsilon: Positive = 1e-8
    """What Adam adds to the root of the mean square."""
    learning_rate_decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Factor of the learning rate at every step, besides the schedule (CK's published code: 0.999995)."""
    warmup_steps: Annotated[int, Field(ge=0)] = 0
    """Steps over which the learning rate rises from 0."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    """lambda of a term lambda / 2 |w|^2 of all parameters, in Adam's gradient (CK's published code: 1e-7)."""
    l2_attributes_decoder: Annotated[float, Field(ge=0)] = 0.0
    """lambda of such a term of the weight matrices of p(y|z) alone, y the attributes (VE Appendix A.4)."""
    gradient_clip: Annotated[float, Field(gt=0)] | None = None
    """Largest norm of the gradient; longer ones are scaled down to it."""
    validate_every: Count = 1_000
    """Steps between validations; each also saves the state that --resume continues from."""
    keep: Literal["best", "last"] = "best"
    """Weights that the checkpoint holds: those of the best validation bound, or the last. The last suit objectives with
    one heavily weighted term, whose overfitting would decide for all others."""
    validation_examples: Count = 2_048
    """Validation examples that the validation bound is averaged over."""
    log_every: Count = 50
    """Steps between lines of the log."""
    device: str = "auto"
    """auto, cpu, cuda or cuda:N."""
    devices: Count = 1
    """Devices (GPUs, or processes on a CPU) to train on."""
    precision: Precision = "auto"
    """Arithmetic of the networks: bf16-mixed, 32-true, or auto for what the hardware is fast at."""
    seed: Annotated[int, Field(lt=2**63)] = 0
    """Seed of initial weights, order and noise."""
    tensorboard: bool = False
    """Also write TensorBoard events beside the checkpoint (needs the extra mmgen-toolkit[tensorboard])."""

    @model_validator(mode="after")
    def _has_stages_where_they_are_used(self) -> Self:
        if bool(self.stages) != (self.schedule == "stages"):
            got = f"{len(self.stages)} stages with schedule {self.schedule}"
            way = (
                "give training.stages too"
                if not self.stages
                else "set training.schedule=stages, or leave the stages out"
            )
            raise ValueError(f"got {got}; {way}")
        return self
