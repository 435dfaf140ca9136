"""What this process is granted of its machine: limits of its own control group and of those around it, affinity."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

_TREE, _MEMBERSHIP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def _group_folders(controller: str) -> Iterator[Path]:
    """Yield the folders of a controller's limits, from this process's group to the root, in version 2 and 1."""
    yield from (_TREE, _TREE / controller)  # a container sees its own as the root
    with suppress(OSError, ValueError):
        for line in _MEMBERSHIP.read_text(encoding="utf-8").splitlines():
            _, controllers, group = line.split(":", 2)
            if not controllers or controller in controllers.split(","):
                for place in (PurePosixPath(group), *PurePosixPath(group).parents[:-1]):
                    yield _TREE / (controller if controllers else "") / place.relative_to("/")


def _read_numbers(folder: Path, *names: str) -> list[int]:
    """Return the numbers in files of a folder; [] without the files, or with a word such as max instead."""
    with suppress(OSError, ValueError):
        return [int(word) for name in names for word in (folder / name).read_text(encoding="ascii").split()]
    return []


def granted_memory() -> int | None:
    """Return the bytes of memory that the kernel grants this process's groups; None without a limit."""
    # What is taken of it includes files that the kernel drops when asked to: only the limit itself is certain.
    names = ("memory.max", "memory.limit_in_bytes")
    limits = [number for folder in _group_folders("memory") for name in names for number in _read_numbers(folder, name)]
    return min(limits, default=None)


def granted_cores() -> int:
    """Return the processors that this process may use, by affinity and by quotas of its groups, rounded up."""
    cores = [len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1]
    for folder in _group_folders("cpu"):
        for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
            numbers = _read_numbers(folder, *names)
            if len(numbers) == 2 and min(numbers) > 0:  # -1 is no limit
                cores.append(math.ceil(numbers[0] / numbers[1]))
    return min(cores)
