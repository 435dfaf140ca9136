"""The decoder of pictures as an ONNX file, checked against PyTorch before anybody relies on it."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from mmgen.artifacts import atomic_path
from mmgen.core.errors import MmgenError, UsageError
from mmgen.core.extras import how_to_install
from mmgen.generation import TrainedModel
from mmgen.models import Model

TOLERANCE = 1e-4
"""Largest difference of a mean, in [0, 1], between ONNX Runtime and PyTorch, both in float32."""

_CHECKED = (1, 3, 64)
"""Numbers of z that are compared."""


class _MeanDecoder(nn.Module):
    """Module that computes the mean image E[image | z] [B, C, H, W] from z [B, D]."""

    def __init__(self, model: Model, name: str) -> None:
        super().__init__()
        self.model, self.name = model, name

    def forward(self, z: Tensor) -> Tensor:
        return self.model.mean(self.name, z)


def export_decoder(loaded: TrainedModel, out: Path) -> float:
    """Write the decoder of the main image modality as an ONNX model, and return its largest deviation from PyTorch."""
    main = loaded.observation
    if main is None or main.name not in loaded.model.generates or loaded.model.conditional_on or loaded.sharpener:
        raise UsageError(
            f"{loaded.model_path} has no decoder from z alone to pictures, which --onnx needs: conditional models and "
            "sharpeners read words too; leave --onnx out"
        )
    try:
        import onnxruntime
        import onnxscript  # noqa: F401  # what torch writes ONNX with
    except ImportError as error:
        raise UsageError(
            f"--onnx needs {error.name}, which is not installed: {how_to_install('onnx')}; or leave the option out"
        ) from None
    decoder = _MeanDecoder(loaded.model, main.name).eval()
    z = torch.zeros(2, loaded.model.latent_size, device=loaded.device)
    with atomic_path(out) as temporary:
        try:
            with torch.inference_mode(), _silence_exporter():
                program = torch.onnx.export(
                    decoder, (z,), dynamo=True, verbose=False, input_names=["z"], output_names=["image"],
                    dynamic_shapes={"z": {0: torch.export.Dim("B")}},
                )  # fmt: skip
                assert program is not None
                program.save(str(temporary), external_data=False)
        except (torch.onnx.errors.OnnxExporterError, RuntimeError) as error:
            first = (str(error).strip().splitlines() or [""])[0]
            raise MmgenError(
                f"{loaded.model_path} has a decoder that ONNX cannot express ({first}); leave --onnx out"
            ) from None
        session = onnxruntime.InferenceSession(str(temporary), providers=["CPUExecutionProvider"])
        worst = 0.0
        for count in _CHECKED:
            z = torch.randn(count, loaded.model.latent_size, generator=torch.Generator().manual_seed(count))
            with torch.inference_mode():
                expected = decoder(z.to(loaded.device)).float().cpu()
            found = torch.from_numpy(session.run(["image"], {"z": z.numpy()})[0])
            worst = max(worst, float((found - expected).abs().max()))
        if not worst <= TOLERANCE:
            raise MmgenError(
                f"the ONNX decoder of {loaded.model_path} differs from PyTorch's by {worst:.2g}, expected at most "
                f"{TOLERANCE:g}; leave --onnx out"
            )
    return worst


@contextmanager
def _silence_exporter() -> Iterator[None]:
    """Suppress the warnings and messages of torch's ONNX exporter."""
    levels = {log: log.level for log in map(logging.getLogger, ("onnxscript", "onnx_ir", "torch.onnx"))}
    for log in levels:
        log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for log, level in levels.items():
            log.setLevel(level)
