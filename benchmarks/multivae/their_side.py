"""MultiVae's side of the comparison: its models, its trainer, its estimator, used as its documentation shows.

Runs in an environment of its own (see ``run.sh``) and speaks JSON lines: a request a line on
stdin, an answer a line on stdout.
"""

import json
import logging
import math
import os
import sys
import tempfile
import time
import warnings

import numpy as np
import torch
from networks import NETWORKS, AttributeDecoder, AttributeEncoder, ImageDecoder, ImageEncoder, JointEncoder
from torch import Tensor, nn


def import_torchvision() -> None:
    """MultiVae imports torchvision for its transforms; PyPI's wheel is built for CUDA and fails beside CPU-only torch.

    It fails for want of two compiled operators that nothing here calls; declaring them is enough.
    """
    try:
        import torchvision
    except RuntimeError:
        for name in [n for n in sys.modules if n.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        operators = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision

        torchvision._operators = operators  # kept: the declarations go with the object


import_torchvision()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from multivae.data.datasets.base import MultimodalBaseDataset
    from multivae.models import JMVAE, MVAE, JMVAEConfig, MVAEConfig
    from multivae.models.base import ModelOutput
    from multivae.models.nn.base_architectures import BaseDecoder, BaseEncoder, BaseJointEncoder
    from multivae.trainers import BaseTrainer, BaseTrainerConfig
    from multivae.trainers.base.callbacks import TrainingCallback


# BENCHMARK_CLOCK=cpu counts processor time, which neighbours disturb less: for trying things out on one thread.
now = time.process_time if os.environ.get("BENCHMARK_CLOCK") == "cpu" else time.perf_counter


class Encoder(BaseEncoder):
    """A plain network as MultiVae wants to have it."""

    def __init__(self, network: nn.Module, latent: int) -> None:
        super().__init__()
        self.network, self.latent_dim = network, latent

    def forward(self, x: Tensor) -> ModelOutput:
        mean, log_variance = self.network(x)
        return ModelOutput(embedding=mean, log_covariance=log_variance)


class CodesEncoder(Encoder):
    """The same for one-hot attributes [B, A, V]."""

    def forward(self, x: Tensor) -> ModelOutput:
        return super().forward(x.argmax(-1))


class Joint(BaseJointEncoder):
    def __init__(self, network: nn.Module, latent: int) -> None:
        super().__init__()
        self.network, self.latent_dim = network, latent

    def forward(self, x: dict[str, Tensor]) -> ModelOutput:
        mean, log_variance = self.network(x["image"], x["attributes"].argmax(-1))
        return ModelOutput(embedding=mean, log_covariance=log_variance)


class Decoder(BaseDecoder):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, z: Tensor) -> ModelOutput:
        return ModelOutput(reconstruction=self.network(z))


class Clock(TrainingCallback):
    """Notes when each optimiser step ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_train_step_end(self, training_config: object, **kwargs: object) -> None:
        self.ends.append(now())


def build(objective: str, network: str, values: list[int], side: int) -> nn.Module:
    """Build the model on a user's own networks; attributes are one-hot [A, V] under MultiVae's categorical
    likelihood.
    """
    sizes = NETWORKS[network]
    common = {
        "n_modalities": 2,
        "latent_dim": sizes.latent,
        "input_dims": {"image": (1, side, side), "attributes": (len(values), max(values))},
        "decoders_dist": {"image": "bernoulli", "attributes": "categorical"},
        "uses_likelihood_rescaling": True,
        "rescale_factors": {"image": 1, "attributes": 50},
    }
    encoders = {
        "image": Encoder(ImageEncoder(sizes, side), sizes.latent),
        "attributes": CodesEncoder(AttributeEncoder(values, sizes, universal=objective == "jmvae"), sizes.latent),
    }
    decoders = {"image": Decoder(ImageDecoder(sizes, side)), "attributes": Decoder(AttributeDecoder(values, sizes))}
    if objective == "jmvae":
        joint = Joint(JointEncoder(values, sizes, side), sizes.latent)
        return JMVAE(JMVAEConfig(**common, alpha=1.0, warmup=0), encoders, decoders, joint)
    return MVAE(MVAEConfig(**common, k=0, warmup=0), encoders, decoders)


def build_six(network: str, colours: dict[str, int], side: int) -> nn.Module:
    """MVAE over image modalities, with one random subset per step."""
    sizes = NETWORKS[network]
    config = MVAEConfig(
        n_modalities=len(colours),
        latent_dim=sizes.latent,
        input_dims={name: (count, side, side) for name, count in colours.items()},
        decoders_dist=dict.fromkeys(colours, "bernoulli"),
        k=1,
        warmup=0,
    )
    encoders = {name: Encoder(ImageEncoder(sizes, side, count), sizes.latent) for name, count in colours.items()}
    decoders = {name: Decoder(ImageDecoder(sizes, side, count)) for name, count in colours.items()}
    return MVAE(config, encoders, decoders)


def load_data(path: str, rows: int) -> tuple[dict[str, Tensor], list[int]]:
    """Images as float tensors in memory and attributes one-hot: nothing is left to do per example but to index."""
    with np.load(path) as file:
        images, codes, values = file["images"][:rows], file["codes"][:rows], file["values"].tolist()
    hot = torch.nn.functional.one_hot(torch.from_numpy(codes).long(), max(values)).float()
    return {"image": torch.from_numpy(images).float(), "attributes": hot}, values


def train(request: dict) -> dict:
    """Examples per second between two optimiser steps of BaseTrainer, well after its start."""
    rows = request["batch"] * request["steps"]
    if "colours" in request:
        with np.load(request["data"]) as file:
            data = {name: torch.from_numpy(file[name][:rows]).float() for name in file.files}
        model = build_six(request["network"], request["colours"], data["image"].shape[-1])
    else:
        data, values = load_data(request["data"], rows)
        model = build(request["objective"], request["network"], values, data["image"].shape[-1])
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        config = BaseTrainerConfig(
            output_dir=folder,
            per_device_train_batch_size=request["batch"],
            num_epochs=1,
            learning_rate=1e-3,
            no_cuda=True,
            train_dataloader_num_workers=request["workers"],
        )
        BaseTrainer(model, MultimodalBaseDataset(data), training_config=config, callbacks=[clock]).train()
    ends = clock.ends[request["skip"] :]
    return {
        "examples_per_second": request["batch"] * (len(ends) - 1) / (ends[-1] - ends[0]),
        "steps": len(ends) - 1,
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def copy_weights(model: nn.Module, objective: str, path: str) -> None:
    """Give the model mmgen's weights, so that both sides estimate the same number."""
    with np.load(path) as file:
        given = {key: torch.from_numpy(file[key]) for key in file.files}
    model.load_state_dict(given, strict=True)


def likelihood(request: dict) -> dict:
    """Seconds per point of compute_joint_nll, and the estimates of log p(x, y) point by point, in nats."""
    data, values = load_data(request["test_data"], request["points"])
    model = build(request["objective"], request["network"], values, data["image"].shape[-1])
    copy_weights(model, request["objective"], request["weights"])
    model.eval()
    estimates, seconds = [], []
    for i in range(request["points"]):
        point = MultimodalBaseDataset({name: x[i : i + 1] for name, x in data.items()})
        begin = now()
        nll = model.compute_joint_nll(point, K=request["samples"], batch_size_K=request["batch_size_K"])
        seconds.append(now() - begin)
        estimates.append(-float(nll))
    steady = sorted(seconds[1:]) or seconds
    return {"seconds_per_point": sum(steady) / len(steady), "estimates": estimates}


def main() -> None:
    logging.disable(logging.INFO)
    torch.set_num_threads(int(os.environ.get("BENCHMARK_THREADS", os.cpu_count() or 1)))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for line in sys.stdin:
        request = json.loads(line)
        answer = {"train": train, "likelihood": likelihood}[request["task"]](request)
        assert all(math.isfinite(x) for x in answer.values() if isinstance(x, float))
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
