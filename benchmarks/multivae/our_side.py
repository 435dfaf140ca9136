"""mmgen's side of the comparison: its own training loop and its own likelihoods, with its ordinary settings.

Speaks JSON lines: a request a line on stdin, an answer a line on stdout.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from networks import mmgen_settings
from views import write_views

from mmgen.artifacts import Dataset
from mmgen.evaluation.importance import summarise_weights
from mmgen.evaluation.likelihoods import compute_image_terms
from mmgen.generation import load
from mmgen.training.batches import DatasetRows
from mmgen.training.model_run import complete_settings, load_model, train_model

# See their_side.py: BENCHMARK_CLOCK=cpu counts processor time.
now = time.process_time if os.environ.get("BENCHMARK_CLOCK") == "cpu" else time.perf_counter

SPLIT = "iid-paper"  # by image: the largest test part that a small dataset has


def list_settings(request: dict[str, Any]) -> dict[str, Any]:
    """Return the networks by name as ``mmgen`` settings, with mmgen's defaults for the rest."""
    return {
        "model": mmgen_settings(request["network"]),
        "objective": {"name": request["objective"], **request.get("options", {})},
        "data": {"split": request.get("split", SPLIT)},
        "training": {
            "device": "cpu",
            "steps": request["steps"],
            "batch": request["batch"],
            "precision": request["precision"],
            "validation_examples": 64,  # outside of the time that is measured
            "log_every": request.get("log_every", 50),
        },
    }


def train(request: dict[str, Any]) -> dict[str, Any]:
    """Examples per second between two reports of the training loop, well after its start."""
    path = Path(request["dataset"])
    with Dataset.open(path) as dataset:
        settings = complete_settings(list_settings(request), dataset)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(request.get("keep") or f"{folder}/model.safetensors")
        times = []
        for progress in train_model(path, settings, out, resume="never"):
            if progress.done >= request["skip"]:
                times.append((progress.done, now()))
        (first, began), (last, ended) = times[0], times[-1]
        _, _, model = load_model(out)
    return {
        "examples_per_second": request["batch"] * (last - first) / (ended - began),
        "steps": last - first,
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def make_six(request: dict[str, Any]) -> dict[str, Any]:
    """Write digits in six views as a dataset and as plain arrays; return the views and their channels."""
    return {"colours": write_views(Path(request["dataset"]), request["train"], request["rows"], request["size"])}


def export(request: dict[str, Any]) -> dict[str, Any]:
    """Write the data as plain arrays."""
    path = Path(request["dataset"])
    with Dataset.open(path) as dataset:
        for part in ("train", "test"):
            rows = dataset.split(SPLIT, part)
            np.savez(
                request[part],
                images=dataset.read_image("image", rows),
                codes=dataset.read_attributes("attributes", rows),
                values=np.array([len(v) for v in dataset.attributes["attributes"].values]),
            )
    return {}


_NAMES = (
    ("inference.networks.both.", "joint_encoder.network."),
    ("inference.networks.image.", "encoders.image.network."),
    ("inference.networks.attributes.experts.", "encoders.attributes.network."),
    ("inference.experts.image.", "encoders.image.network."),
    ("inference.experts.attributes.", "encoders.attributes.network."),
    ("decoders.image.", "decoders.image.network.0."),
    ("decoders.attributes.", "decoders.attributes.network."),
)


def export_weights(request: dict[str, Any]) -> dict[str, Any]:
    """Write a trained model's weights under MultiVae's names."""
    _, _, model = load_model(Path(request["model"]))
    renamed = {}
    for name, tensor in model.state_dict().items():
        for ours, theirs in _NAMES:
            if name.startswith(ours):
                renamed[theirs + name.removeprefix(ours).replace("head.layers.", "head.")] = tensor.numpy()
    assert len(renamed) == len(model.state_dict())
    np.savez(request["weights"], **renamed)
    return {}


@torch.inference_mode()
def likelihood(request: dict[str, Any]) -> dict[str, Any]:
    """Seconds per point of what ``mmgen eval`` does for p(x) and p(x, y), and the latter in nats."""
    loaded = load(request["model"])
    with Dataset.open(Path(request["dataset"])) as dataset:
        rows = dataset.split(SPLIT, "test")[: request["points"]]
        points = DatasetRows(dataset, rows, torch.device("cpu")).batch(torch.arange(len(rows)))
    for number, seconds in ((8, None), (request["points"], True)):  # a few points first: start-up is not measured
        began = now()
        work = compute_image_terms(
            loaded, points[:number], ("prior",), request["samples"], 0, request["precision"], "auto"
        )
        while True:
            try:
                next(work)
            except StopIteration as stop:
                terms = stop.value
                break
        found = terms.weigh(terms["image"] + terms["words"] + terms["prior"])
        seconds = now() - began
    return {"seconds_per_point": seconds / request["points"], "estimates": found.value.tolist()}


@torch.inference_mode()
def check(request: dict[str, Any]) -> dict[str, Any]:
    """log p(x, y) in fp32 with draws from q(z | x, y), as MultiVae draws: both sides agree up to noise."""
    loaded = load(request["model"])
    with Dataset.open(Path(request["dataset"])) as dataset:
        rows = dataset.split(SPLIT, "test")[: request["points"]]
        points = DatasetRows(dataset, rows, torch.device("cpu")).batch(torch.arange(len(rows)))
    estimates = []
    for i in range(len(rows)):
        point = points[i : i + 1]
        q = loaded.model.posterior(point, ("image", "attributes"))
        z = q.sample(shape=(request["samples"],))
        weights = loaded.model.log_prior(z) - q.log_prob(z)
        for name in ("image", "attributes"):
            weights = weights + loaded.model.log_likelihood(name, z, point)
        estimates.append(float(summarise_weights(weights).value))
    return {"estimates": estimates}


def main() -> None:
    torch.set_num_threads(int(os.environ.get("BENCHMARK_THREADS", os.cpu_count() or 1)))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    tasks = {
        "train": train,
        "make_six": make_six,
        "export": export,
        "export_weights": export_weights,
        "likelihood": likelihood,
        "check": check,
    }
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(tasks[request["task"]](request)), file=answers, flush=True)


if __name__ == "__main__":
    main()
