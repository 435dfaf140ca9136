"""A model, its objective and examples for a training loop of one's own, whose result is a model file like others."""

import math
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field

from mmgen.artifacts import Dataset, check_output, check_unchanged, parent_record, write_checkpoint
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError, UsageError
from mmgen.core.seeding import stream_key
from mmgen.models import Model
from mmgen.objectives import Adversarial, Bound
from mmgen.settings.arguments import check_arguments, format_value, plain_settings
from mmgen.settings.extends import load_preset
from mmgen.training.batches import Order
from mmgen.training.model_run import build_parts, complete_settings
from mmgen.training.precision import resolve_device
from mmgen.training.settings import merge_settings

__all__ = ["OwnLoop"]

Step = Annotated[int, Field(ge=0)]

_READ = ("batch", "seed")
"""Settings of training that a loop of one's own reads."""


class OwnLoop:
    """Networks of mmgen, an objective and the examples of a dataset, for a loop that you write.

    The first weights and the batches of a seed are those of :func:`mmgen.train`. Optimiser, schedule, arithmetic and
    the choice of the best weights are yours: a preset's settings of training have no effect but for batch and seed, and
    the file does not record them.

    Args:
        dataset: Dataset file.
        settings: Settings as of :func:`mmgen.train`, nested: ``{"objective": {"name": "telbo"}}``.
        preset: Name of a preset, which the settings override.
        device: "auto", "cpu", "cuda" or "cuda:1".

    Attributes:
        settings: The complete settings.
        model: The model, a ``torch.nn.Module`` in training mode.

    Raises:
        SettingsError: Settings are wrong, or belong to the loop; or the objective trains an opponent of the model.

    Example:
        >>> from mmgen.training.own_loop import OwnLoop
        >>> loop = OwnLoop("shapes.h5", preset="quickstart/shapes")  # doctest: +SKIP
        >>> optimizer = torch.optim.AdamW(loop.model.parameters(), 1e-3)  # doctest: +SKIP
        >>> for step in range(500):  # doctest: +SKIP
        ...     optimizer.zero_grad()
        ...     (-loop.objective(loop.batch(step), step).value.mean()).backward()
        ...     optimizer.step()
        >>> loop.save("mine.safetensors", step=500)  # doctest: +SKIP
    """

    @check_arguments
    def __init__(
        self,
        dataset: Path | str,
        settings: dict[str, Any] | None = None,
        preset: str | None = None,
        device: str = "cpu",
    ) -> None:
        self.dataset = Path(dataset)
        own = plain_settings(settings or {})
        values = merge_settings(load_preset(preset) if preset else {}, own)
        with Dataset.open(self.dataset) as opened:
            self.settings, self._opened = complete_settings(values, opened), opened.header
        chosen = own.get("training", {}).keys() - {*_READ}
        if chosen:
            raise SettingsError(
                f"training.{min(chosen)} is for your own loop to choose, expected {' or '.join(_READ)}; leave it out"
            )
        if self.settings.model.l2_attributes_decoder:
            raise SettingsError("model.l2_attributes_decoder is for your own optimiser to apply; set it to 0")
        if isinstance(self.settings.build_objective(), Adversarial):
            name = self.settings.objective["name"]
            raise SettingsError(f"objective {name} trains an opponent of the model too; train it with mmgen train")
        training = self.settings.training
        torch.manual_seed(stream_key(training.seed, "initial weights"))
        self._parts = build_parts(self.dataset, self.settings, resolve_device(device))
        check_unchanged(self.dataset, self._opened.content_id)
        self._task = self._parts.task.to(resolve_device(device))
        self.model: Model = self._task.get_submodule("model")  # type: ignore[assignment]  # what a ModelTask holds
        self._order = Order(len(self._parts.rows), training.batch, training.seed)

    @check_arguments
    def batch(self, step: Step) -> Batch:
        """Return the examples of a step, ``settings.training.batch`` of them in shuffled epochs."""
        return self._parts.rows.view(self._order[step], self.settings.training.seed, "step", step)

    @check_arguments
    def objective(self, batch: Batch, step: Step | None = None) -> Bound:
        """Return the objective of a batch, whose ``value`` [B] in nats is to be maximised.

        Args:
            batch: B examples.
            step: Step, for objectives that change in training; None for their final form.
        """
        bound: Bound = self._task(batch, step)
        return bound

    def validate(self) -> float:
        """Return the mean objective of the validation examples in nats, in evaluation mode without gradients."""
        self._task.eval()
        rows, values = self._parts.validation, []
        with torch.no_grad():
            for indices in torch.arange(len(rows)).split(rows.validation_batch):
                values.append(self.objective(rows.batch(indices)).value)
        self._task.train()
        return float(torch.cat(values).mean())

    @check_arguments
    def save(self, output: Path | str, **facts: float | str) -> Path:
        """Write the model as it is to a file that every command takes; return its path.

        Args:
            output: The file, ``.safetensors``; an earlier model there is replaced.
            facts: What ``mmgen show`` should tell of the training, such as the number of steps.

        Raises:
            UsageError: The file is the dataset, or of another kind; or a fact is neither text nor a finite number.
            ArtifactError: Weights are not finite.
        """
        for name, fact in facts.items():
            plain = plain_settings(fact, name)
            if not isinstance(plain, str | int | float) or (isinstance(plain, float) and not math.isfinite(plain)):
                raise UsageError(f"{name} got {format_value(fact)}, expected text or a finite number")
            facts[name] = plain
        path, settings = Path(output), self.settings.model_dump(mode="json")
        settings["training"] = {name: settings["training"][name] for name in _READ}
        check_output(path, "model", self.dataset)
        write_checkpoint(
            path,
            kind="model",
            tensors=self._task.saved_tensors(),
            settings={**settings, **self._parts.extra_settings},
            seed=self.settings.training.seed,
            parents=(parent_record(self.dataset, "dataset", path, self._opened),),
            facts={**self._parts.facts, **facts},
            command=shlex.join(["python", *sys.argv]),
        )
        return path
