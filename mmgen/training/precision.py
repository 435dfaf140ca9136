"""Choice of device and arithmetic for networks; densities, divergences and flows are always computed in fp32."""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Literal

import torch

from mmgen.core.errors import UsageError
from mmgen.core.processes import limit_threads

Precision = Literal["auto", "32-true", "bf16-mixed"]


@cache
def _cpu_flags() -> frozenset[str]:
    """Return the instruction sets of this processor, as Linux lists them; empty on other systems."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("flags"):
                return frozenset(line.split(":", 1)[1].split())
    except OSError:
        pass
    return frozenset()


def resolve_device(name: str) -> torch.device:
    """Return the torch device that a setting names: ``auto``, ``cpu``, ``cuda`` or ``cuda:1``.

    Whatever computes asks for it first, in a script too: threads are limited to those that are granted.

    Raises:
        UsageError: The name is unknown, or this machine has no such device.
    """
    limit_threads()
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(f"device got '{name}', expected auto, cpu, cuda or cuda:N") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UsageError(
            f"device got '{name}', but no CUDA device is usable here; use --device cpu or auto (docs/gpus.md)"
        )
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"device got '{name}', expected auto, cpu, cuda or cuda:N")
    return device


def resolve_precision(precision: str, device: torch.device) -> Literal["32-true", "bf16-mixed"]:
    """Return the precision to use: ``auto`` is bf16 on devices that multiply it in hardware, else fp32."""
    if precision == "bf16-mixed":
        return "bf16-mixed"
    if precision == "32-true":
        return "32-true"
    if precision != "auto":
        raise UsageError(f"precision got '{precision}', expected auto, 32-true or bf16-mixed")
    if device.type == "cuda":
        return "bf16-mixed" if torch.cuda.is_bf16_supported(including_emulation=False) else "32-true"
    return "bf16-mixed" if _cpu_flags() & {"amx_bf16", "avx512_bf16"} else "32-true"


def autocast(device: torch.device, precision: str = "auto") -> AbstractContextManager[object]:
    """Return a context in which networks compute in the precision that :func:`resolve_precision` returns."""
    if resolve_precision(precision, device) == "bf16-mixed":
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()
