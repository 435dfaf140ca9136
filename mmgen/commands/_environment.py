"""The environment for bug reports: versions, devices, memory, plug-ins; no names of people or folders."""

import os
import platform
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from mmgen.core.extras import DISTRIBUTION, extra_requirements
from mmgen.core.job import granted_cores
from mmgen.core.memory import available_memory, format_bytes
from mmgen.core.version import __version__
from mmgen.settings import plugins
from mmgen.training.precision import resolve_device, resolve_precision

_VARIABLES = ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "COLUMNS", "NO_COLOR", "LANG")
"""Environment variables whose values change what mmgen does and say nothing of a person."""


def _library_versions() -> dict[str, dict[str, str]]:
    """Return installed versions of required libraries ("needed") and of each extra's; "" where missing."""
    found: dict[str, dict[str, str]] = {}
    for extra, requirements in extra_requirements().items():
        names = [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in requirements]
        found[extra or "needed"] = {name: plugins.installed_version(name) for name in names}
    return found


def _processor_name() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _describe_devices() -> list[dict[str, Any]]:
    found = []
    for number in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(number)
        memory = format_bytes(about.total_memory)
        found.append({"name": about.name, "memory": memory, "capability": f"{about.major}.{about.minor}"})
    return found


def describe_environment() -> dict[str, Any]:
    """Return versions, devices and available memory of this machine as nested values, for a bug report.

    Example:
        >>> found = describe_environment()
        >>> found["mmgen"]["version"] == __version__, found["device"]["auto"] in ("cpu", "cuda")
        (True, True)
    """
    device, available = resolve_device("auto"), available_memory()
    return {
        "mmgen": {"version": __version__, "distribution": plugins.installed_version(DISTRIBUTION)},
        "python": {"version": platform.python_version(), "implementation": platform.python_implementation()},
        "system": {"name": platform.system(), "release": platform.release(), "machine": platform.machine()},
        "processor": {"name": _processor_name(), "cores": granted_cores(), "threads of torch": torch.get_num_threads()},
        "memory": format_bytes(available) if available is not None else "unknown",
        "torch": {"version": torch.__version__, "cuda": torch.version.cuda or ""},
        "device": {"auto": device.type, "precision": resolve_precision("auto", device), "gpus": _describe_devices()},
        "libraries": _library_versions(),
        "plug-ins": sorted({str(origin) for origin in plugins.origins_by_group().values()}),
        "code files": [Path(name).name for name in os.environ.get(plugins.CODE_VARIABLE, "").split(os.pathsep) if name],
        "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
    }
