"""Encoding a dataset once: posteriors of its examples, cached as a latents artifact."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mmgen.artifacts import Dataset, Latents, read_header, read_latents, reference, write_latents
from mmgen.batch import Batch
from mmgen.errors import ArtifactError
from mmgen.models._settings import DataSettings
from mmgen.models.multimodal_vae import MultimodalVAE
from mmgen.objectives._base import Objective
from mmgen.progress import Progress, Work
from mmgen.seeding import numpy_generator
from mmgen.training.batches import DatasetRows, Rows, to_batch
from mmgen.training.precision import autocast

__all__ = ["LatentRows", "encode", "posterior_to_aggregate"]

_BATCH = 512


def posterior_to_aggregate(objective: Objective) -> tuple[str, ...]:
    """The posterior whose aggregate is learned: the best informed that the objective trains and that sees the image.

    q(z|x) for CK's model and BiVCCA, q(z|x,y) for TELBO, JMVAE and MVAE (VE Appendix A.1): what decoders were
    trained on.
    """
    return max((given for given in objective.queries if "image" in given), key=len)


class LatentRows(Rows):
    """Cached encodings as training examples: ``mean``, ``log_sd`` [B, D], the attributes and the text.

    Args:
        latents: The encodings.
        chosen: Positions in them to use.
        data: Names of the modalities.
        device: Where batches are wanted.
    """

    def __init__(self, latents: Latents, chosen: np.ndarray, data: DataSettings, device: torch.device) -> None:
        self.mean = torch.from_numpy(latents.mean[chosen]).to(device)
        self.log_sd = torch.from_numpy(latents.log_sd[chosen]).to(device)
        self.codes = {}
        if data.attributes and latents.attributes.shape[1]:
            self.codes[data.attributes.name] = torch.from_numpy(latents.attributes[chosen]).to(device)
        self.tokens = {}
        if data.text and latents.text is not None:
            self.tokens[data.text.name] = torch.from_numpy(latents.text[chosen].astype(np.int64)).to(device)

    def __len__(self) -> int:
        return len(self.mean)

    def batch(self, indices: Tensor) -> Batch:
        indices = indices.to(self.mean.device)
        labels = to_batch({}, {name: codes[indices] for name, codes in self.codes.items()})
        whole = {"mean": self.mean, "log_sd": self.log_sd, **self.tokens}
        values = {name: column[indices] for name, column in whole.items()}
        present = {name: torch.ones(len(indices), dtype=torch.bool, device=indices.device) for name in whole}
        return Batch({**values, **labels.values}, {**present, **labels.present})


def encode(
    model_path: Path,
    model: MultimodalVAE,
    through: tuple[str, ...],
    dataset_path: Path,
    scheme: str,
    number: int,
    out: Path,
    device: torch.device,
    seed: int,
    precision: str = "auto",
    command: str = "",
) -> Work[Latents]:
    """Posterior mean and log sd of training and validation examples, written to ``out``; an existing file is reused.

    Args:
        model_path: The model's checkpoint.
        model: The model, on ``device``.
        through: What the posterior is given, ("image",) or ("image", "attributes").
        dataset_path: Dataset to encode.
        scheme: Split scheme.
        number: Training examples at most (a random choice), and a tenth as many validation examples.
        out: Latents artifact.
        device: Where to compute.
        seed: Of the choice of examples.
        precision: Of the encoder; posteriors come out in fp32.
        command: The command to record.
    """
    with Dataset.open(dataset_path) as dataset:
        generator = numpy_generator(seed, "encoded examples")
        parts = {"train": number, "val": max(1, number // 10)}
        rows = np.concatenate(
            [np.sort(generator.permutation(dataset.split(scheme, part))[:count]) for part, count in parts.items()]
        )
    settings: dict[str, Any] = {"through": list(through), "split": scheme, "number": number}

    def work() -> Generator[Progress, None, Latents]:
        cached = _cached(out, model_path, settings, seed)
        if cached is not None:
            yield Progress(len(rows))
            return cached
        with Dataset.open(dataset_path) as dataset:
            source = DatasetRows(dataset, rows, device)
            means, log_sds, codes, tokens = [], [], [], []
            with torch.inference_mode(), autocast(device, precision):
                for indices in torch.arange(len(source)).split(_BATCH):
                    batch = source.batch(indices)
                    posterior = model.posterior(batch, through)
                    means.append(posterior.mean.float().cpu())
                    log_sds.append(posterior.log_sd.float().cpu())
                    codes += [source.attributes[name][indices.to(device)].cpu() for name in source.attributes]
                    tokens += [batch.values[name].cpu() for name in dataset.texts]
                    yield Progress(int(indices[-1]) + 1)
            write_latents(
                out,
                mean=torch.cat(means).numpy(),
                log_sd=torch.cat(log_sds).numpy(),
                rows=source.rows,
                attributes=torch.cat(codes).numpy() if codes else np.zeros((len(source), 0), np.uint8),
                text=torch.cat(tokens).numpy().astype(np.uint16) if tokens else None,
                split=scheme,
                settings=settings,
                seed=seed,
                parents=(reference(model_path, "model", out), reference(dataset_path, "dataset", out)),
                command=command,
            )
        return read_latents(out)

    return Work("encoding examples", len(rows), "example", work)


def _cached(out: Path, model_path: Path, settings: dict[str, Any], seed: int) -> Latents | None:
    """The encodings at ``out`` if they are of this model and these examples."""
    if not out.exists():
        return None
    try:
        header = read_header(out)
    except ArtifactError:
        return None
    of_model = [parent.content_id for parent in header.parents if parent.role == "model"]
    same = of_model == [read_header(model_path).content_id] and header.settings == settings and header.seed == seed
    return read_latents(out) if same else None
