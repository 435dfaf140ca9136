"""Baselines made of the joint model's own networks, trained by the one loop."""

from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mmgen.artifacts import read_checkpoint, write_checkpoint
from mmgen.baselines._base import BaselineData
from mmgen.core.batch import Batch
from mmgen.core.errors import Interrupted
from mmgen.core.seeding import stream_key, torch_generator
from mmgen.models import Model, build_model
from mmgen.objectives import Bound
from mmgen.objectives.elbo import Elbo
from mmgen.posteriors import means_in_slices
from mmgen.training.batches import Rows
from mmgen.training.loop import train
from mmgen.training.task import ALONE, Task, make_parameter_groups

__all__ = ["NoiselessTask", "encode_images", "train_task", "build_image_model"]

_CHUNK = 1000


class NoiselessTask(Task):
    """Training task that predicts ``generated`` from an image by way of z, the mean of q(z|image), without noise.

    Args:
        model: The model of q(z|x) and p(generated|z); only these are trained.
        image: Name of the image modality.
        generated: Name of the modality to predict: attributes, or the image itself.
        l2_attributes_decoder: As in :class:`mmgen.training.task.ModelTask`, if attributes are predicted.
    """

    def __init__(self, model: Model, image: str, generated: str, l2_attributes_decoder: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.image = image
        self.generated = generated
        self.l2_attributes_decoder = l2_attributes_decoder

    def parameter_groups(self, player: str = ALONE, weight_decay: float = 0.0) -> list[dict[str, Any]]:
        parameters = self.player_parameters(player)
        return make_parameter_groups(parameters, weight_decay, self.model.label_weights(), self.l2_attributes_decoder)

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        """Return log p(generated | z) in nats [B], z being the mean of q(z|image)."""
        z = self.model.means(batch, (self.image,))
        value = self.model.log_likelihood(self.generated, z, batch)
        return Bound(value, {f"log p({self.generated}|image)": value})


def build_image_model(data: BaselineData, generated: str) -> Model:
    """Build an untrained model of q(z|image) and p(generated|z) with the networks of the joint model's settings."""
    settings = data.settings
    torch.manual_seed(stream_key(data.seed, "initial weights"))
    if generated in (own := settings.build_objective().demands).marginalises:
        return build_model(settings.model, own, settings.data).to(data.device)
    objective = Elbo(modalities=(generated,), given=(data.image.name,))
    model = settings.model.model_copy(update={"inference": objective.demands.inference})
    return build_model(model, objective.demands, settings.data).to(data.device)


def train_task(task: Task, rows: Rows, data: BaselineData) -> Generator[float, None, dict[str, Any]]:
    """Train the networks of ``task`` with early stopping; yield the fraction done, and return facts about the run."""

    def save(path: Path, facts: dict[str, Any]) -> None:  # a file, by which the loop knows that there is a best one
        write_checkpoint(path, kind="model", tensors=task.state_dict(), settings={}, seed=data.seed, facts=facts)

    settings = data.settings.training
    with TemporaryDirectory(prefix="mmgen-baseline-") as folder:
        out = Path(folder) / "baseline.safetensors"
        work = train(task, rows, data.rows("val"), settings, out, save, {}, resume="never")
        try:
            for progress in work:
                yield progress.done / max(1, settings.steps)
        except Interrupted as stop:
            raise Interrupted(
                "interrupted; an unfinished baseline saves nothing: give the same command again", stop.exit_code - 128
            ) from None
        header, tensors = read_checkpoint(out, "model")
    task.load_state_dict(tensors)
    task.eval()
    return dict(header.facts)


def encode_images(model: Model, data: BaselineData, part: str) -> NDArray[np.float32]:
    """Compute the mean [N, D] of q(z|image) for every image of a part of the split."""
    rows, image = data.rows(part), data.image.name
    means = []
    precision = data.settings.training.precision
    generator = torch_generator(data.seed, "layers of baselines", part, device=data.device)
    with torch.inference_mode():
        for chunk in torch.arange(len(rows)).split(_CHUNK):
            points = rows.batch(chunk).select([image])
            parts = means_in_slices(model, points, (image,), precision, generator)
            means += [mean.cpu().numpy() for _, mean in parts]
    return np.concatenate(means)
