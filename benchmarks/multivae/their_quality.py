"""MultiVae's side of time to quality: one training by its own trainer, and pictures of words by its own ``predict``.

Runs in the environment of ``run.sh``: a request as JSON on stdin, an answer for each mark, a line each, on stdout. The
clock is processor time of the trainer alone: drawing, and everything before its first step, is left out.
"""

import json
import logging
import os
import sys
import tempfile
import time
from contextlib import suppress

import numpy as np
import torch
from networks import (
    NETWORKS,
    AttributeDecoder,
    AttributeEncoder,
    AttributeTables,
    ImageDecoder,
    ImageEncoder,
    JointEncoder,
    gaussian,
    mlp,
)
from their_side import CodesEncoder, Decoder, Encoder, Joint
from torch import Tensor, nn

# isort: split
# After their_side, which makes its torchvision importable.
from multivae.data.datasets.base import MultimodalBaseDataset
from multivae.models import JNF, MVTCAE, JNFConfig, MMVAEPlus, MMVAEPlusConfig, MVTCAEConfig
from multivae.models.base import ModelOutput
from multivae.models.nn.base_architectures import BaseMultilatentEncoder
from multivae.trainers import BaseTrainer, BaseTrainerConfig, MultistageTrainer, MultistageTrainerConfig
from multivae.trainers.base.callbacks import TrainingCallback

SHARED = 8
"""Dimensions of z that both modalities of MMVAE+ share; the others are a modality's own."""
DRAWN = 512
"""Pictures drawn at a time."""


class WithStyle(BaseMultilatentEncoder):
    """An encoder whose last dimensions are the modality's own, as MMVAE+ wants to have them."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder, self.latent_dim, self.style_dim = encoder, SHARED, encoder.latent_dim - SHARED

    def forward(self, x: Tensor) -> ModelOutput:
        found = self.encoder(x)
        (u, w), (u_log, w_log) = (found[name].split([SHARED, self.style_dim], -1) for name in found)
        return ModelOutput(embedding=u, log_covariance=u_log, style_embedding=w, style_log_covariance=w_log)


class WordsEncoder(nn.Module):
    """All words in one network: JNF asks for no product of experts."""

    def __init__(self, values: list[int], width: int, latent: int, sizes: object) -> None:
        super().__init__()
        self.tables = AttributeTables(values, width, sizes)
        self.head = mlp([width * len(values), width, width, 2 * latent])

    def forward(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        return gaussian(self.head(self.tables(codes).flatten(1)))


def build(request: dict, values: list[int], side: int) -> nn.Module:
    """Build one of the three models on networks that mmgen's side has too, words as one modality."""
    sizes, name = NETWORKS[request["network"]], request["model"]
    common = {
        "n_modalities": 2,
        "latent_dim": SHARED if name == "MMVAE+" else sizes.latent,
        "input_dims": {"image": (1, side, side), "attributes": (len(values), max(values))},
        "decoders_dist": {"image": "bernoulli", "attributes": "categorical"},
        "uses_likelihood_rescaling": True,
        "rescale_factors": {"image": 1, "attributes": request["words"]},
        "beta": request["beta"],
    }
    words = (
        WordsEncoder(values, sizes.attribute_hidden, sizes.latent, sizes)
        if name == "JNF"
        else AttributeEncoder(values, sizes, universal=False)
    )
    encoders = {
        "image": Encoder(ImageEncoder(sizes, side), sizes.latent),
        "attributes": CodesEncoder(words, sizes.latent),
    }
    decoders = {"image": Decoder(ImageDecoder(sizes, side)), "attributes": Decoder(AttributeDecoder(values, sizes))}
    if name == "MVTCAE":
        return MVTCAE(MVTCAEConfig(**common, alpha=request["alpha"]), encoders, decoders)
    if name == "JNF":
        joint = Joint(JointEncoder(values, sizes, side), sizes.latent)
        return JNF(JNFConfig(**common, warmup=request["warmup"]), encoders, decoders, joint)
    # K, loss and laplace posteriors are those of its own example (examples/mmvae_plus).
    config = MMVAEPlusConfig(**common, K=1, loss="iwae_looser", modalities_specific_dim=sizes.latent - SHARED)
    return MMVAEPlus(config, {m: WithStyle(encoder) for m, encoder in encoders.items()}, decoders)


class Finished(Exception):
    """The limit of processor time is reached."""


class Marks(TrainingCallback):
    """Stops the clock at marks of processor time and draws; a model of two stages is asked in its second one."""

    def __init__(self, request: dict, draw: object, answers: object) -> None:
        self.marks, self.limit, self.draw, self.answers = list(request["marks"]), request["limit"], draw, answers
        self.first_epoch = request.get("warmup", 0) + 1
        self.trainer: BaseTrainer | None = None
        self.began = self.paused = 0.0
        self.steps = self.epoch = 0

    def on_train_begin(self, training_config: object, **kwargs: object) -> None:
        self.began = time.process_time()

    def on_epoch_begin(self, training_config: object, **kwargs: object) -> None:
        self.epoch = kwargs["epoch"]
        if self.epoch <= self.first_epoch:
            self.marks = [mark for mark in self.marks if mark > self.seconds]

    def on_train_step_end(self, training_config: object, **kwargs: object) -> None:
        self.steps += 1
        if self.epoch >= self.first_epoch and self.marks and self.seconds >= self.marks[0]:
            self.answer()
            self.marks = [mark for mark in self.marks if mark > self.seconds]
        if self.seconds > self.limit or not self.marks:
            raise Finished

    def on_train_end(self, training_config: object, **kwargs: object) -> None:
        self.answer()

    @property
    def seconds(self) -> float:
        return time.process_time() - self.began - self.paused

    def answer(self) -> None:
        seconds, stopped = self.seconds, time.process_time()
        path = self.draw(self.trainer.model, self.steps)
        self.trainer.model.train()
        print(json.dumps({"seconds": seconds, "steps": self.steps, "pictures": path}), file=self.answers, flush=True)
        self.paused += time.process_time() - stopped


def one_hot(codes: np.ndarray, values: list[int]) -> Tensor:
    return torch.nn.functional.one_hot(torch.from_numpy(codes).long(), max(values)).float()


def main() -> None:
    logging.disable(logging.INFO)
    torch.set_num_threads(1)
    torch.distributions.Distribution.set_default_validate_args(
        False
    )  # its bernoulli takes 0 and 1 only; these are grey
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    request = json.loads(sys.stdin.read())
    with np.load(request["data"]) as file:
        images, codes, values = file["images"], file["codes"], file["values"].tolist()
        asked = one_hot(file["asked"], values)
    data = {"image": torch.from_numpy(images).float() / 255, "attributes": one_hot(codes, values)}
    torch.manual_seed(request["seed"])
    model = build(request, values, images.shape[-1])

    @torch.no_grad()
    def draw(model: nn.Module, steps: int) -> str:
        path = os.path.join(request["folder"], f"{steps}.npy")
        parts = []
        for start in range(0, len(asked), DRAWN):
            words = MultimodalBaseDataset({"attributes": asked[start : start + DRAWN]})
            logits = model.predict(words, cond_mod="attributes", gen_mod="image").image
            parts.append((255 * logits.sigmoid()).round().byte())
        np.save(path, torch.cat(parts).numpy())
        return path

    two_stages = request["model"] == "JNF"
    with tempfile.TemporaryDirectory() as folder:
        config = (MultistageTrainerConfig if two_stages else BaseTrainerConfig)(
            output_dir=folder,
            per_device_train_batch_size=request["batch"],
            num_epochs=2 * request["warmup"] if two_stages else request.get("epochs", 1000),
            learning_rate=request["learning_rate"],
            scheduler_cls="CosineAnnealingLR" if "epochs" in request else None,
            scheduler_params={"T_max": request["epochs"]} if "epochs" in request else None,
            optimizer_params={"amsgrad": True} if request["model"] == "MMVAE+" else None,  # as in its example
            no_cuda=True,
            seed=request["seed"],
        )
        marks = Marks(request, draw, answers)
        trainer = (MultistageTrainer if two_stages else BaseTrainer)(
            model, MultimodalBaseDataset(data), training_config=config, callbacks=[marks]
        )
        marks.trainer = trainer
        with suppress(Finished):
            trainer.train()


if __name__ == "__main__":
    main()
