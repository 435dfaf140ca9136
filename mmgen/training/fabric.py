"""Devices and precision of a run, by Lightning Fabric."""

import logging
import os
from typing import TYPE_CHECKING

import joblib
import torch

from mmgen.core.errors import UsageError
from mmgen.core.processes import A_CORE, OWNER, check_open_files, end_with_parent
from mmgen.training.device_processes import start_processes, wait_for_connection
from mmgen.training.precision import resolve_device, resolve_precision
from mmgen.training.settings import TrainingSettings

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["make_fabric"]


def make_fabric(settings: TrainingSettings) -> "Fabric":
    """Choose devices and precision of a run and return its Fabric; with several devices, start the other processes.

    Raises:
        UsageError: The machine has fewer devices.
    """
    from lightning_fabric import Fabric  # seconds, as torch's compiler comes with it: what does not train does without

    device = resolve_device(settings.device)
    precision = resolve_precision(settings.precision, device)
    if device.type == "cuda" and settings.devices > torch.cuda.device_count():
        raise UsageError(
            f"--devices got {settings.devices}, expected at most {torch.cuda.device_count()}, the GPUs of this machine"
        )
    if settings.devices > 1:
        _check_devices(settings, device.type)
    accelerator: list[int] | int = settings.devices
    if device.type == "cuda" and settings.devices == 1:
        accelerator = [device.index or 0]
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # it announces the precision on every start
    fabric = Fabric(
        accelerator=device.type,
        devices=accelerator,
        strategy="ddp" if settings.devices > 1 else "auto",
        precision=precision,
    )
    if settings.devices > 1:
        _start_other_processes(fabric, settings.devices)
    with wait_for_connection():
        fabric.launch()
    return fabric


def _check_devices(settings: TrainingSettings, device_type: str) -> None:
    """Refuse more processes than the machine's cores or the batch's examples allow, before any is started."""
    cores = joblib.cpu_count()
    if device_type == "cpu" and settings.devices > A_CORE * cores:
        raise UsageError(
            f"--devices got {settings.devices}, expected at most {A_CORE * cores} processes on the {cores} "
            f"core{'s' * (cores != 1)} of this machine; use one for each core at most"
        )
    if settings.devices > settings.batch:
        raise UsageError(
            f"--devices got {settings.devices} and --batch {settings.batch}, expected an example at least for each "
            "device; use fewer devices or a larger batch"
        )
    check_open_files(settings.devices, "--devices")


def _start_other_processes(fabric: "Fabric", devices: int) -> None:
    """Start the other processes, unless a launcher such as torchrun or Slurm has started them."""
    from lightning_fabric.plugins.environments import LightningEnvironment

    owner = os.environ.pop(OWNER, "")
    if owner.isdecimal():  # started by a script of the user's; mmgen has seen to it already
        end_with_parent(int(owner))
    environment = getattr(fabric.strategy, "cluster_environment", None)
    if not isinstance(environment, LightningEnvironment) or environment.creates_processes_externally:
        return
    shared = {
        "MASTER_ADDR": environment.main_address,
        "MASTER_PORT": str(environment.main_port),
        "NODE_RANK": "0",
        "WORLD_SIZE": str(devices),
    }
    os.environ.update({**shared, "LOCAL_RANK": "0"})
    start_processes(devices - 1, shared)
