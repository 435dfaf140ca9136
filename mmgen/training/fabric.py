"""Devices and precision of a run, by Lightning Fabric."""

import logging
from typing import TYPE_CHECKING

import torch

from mmgen.errors import UsageError
from mmgen.training.precision import resolve_device, resolve_precision
from mmgen.training.settings import TrainingSettings

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["make_fabric"]


def make_fabric(settings: TrainingSettings) -> "Fabric":
    """Devices and precision for a run; with several devices, starts the other processes.

    Raises:
        UsageError: There are not so many.
    """
    from lightning_fabric import Fabric  # seconds, as torch's compiler comes with it: what does not train does without

    device = resolve_device(settings.device)
    precision = resolve_precision(settings.precision, device)
    if device.type == "cuda" and settings.devices > torch.cuda.device_count():
        raise UsageError(
            f"--devices got {settings.devices}, but {torch.cuda.device_count()} GPUs are here; ask for at most that"
        )
    chosen: list[int] | int = settings.devices
    if device.type == "cuda" and settings.devices == 1:
        chosen = [device.index or 0]
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # it announces the precision on every start
    fabric = Fabric(
        accelerator=device.type,
        devices=chosen,
        strategy="ddp" if settings.devices > 1 else "auto",
        precision=precision,
    )
    fabric.launch()
    return fabric
