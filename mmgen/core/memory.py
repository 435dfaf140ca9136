"""Checks of available memory before large work: a machine that swaps or kills explains nothing."""

import os
import resource
from contextlib import suppress
from pathlib import Path

from mmgen.core.errors import UsageError

# What the kernel grants a container, in version 2 and 1. What is taken of it includes files that the kernel drops when
# asked to: only the limit itself is certain.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def format_bytes(size: float) -> str:
    """Return a number of bytes as text, such as "1.5 GiB".

    Example:
        >>> format_bytes(3 * 2**30), format_bytes(700)
        ('3.0 GiB', '700 bytes')
    """
    if size < 1024:
        return f"{size:.0f} bytes"
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:,.1f} TiB"


def _read_number(path: str) -> int | None:
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such file, or "max"
        return None


def available_memory() -> int | None:
    """Return the bytes of memory, swap included, that this process can still allocate; None if unknown."""
    known = []
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        facts = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
        known.append(facts.get("MemAvailable", facts["MemTotal"]) + facts.get("SwapFree", 0))
    if not known:
        with suppress(OSError, ValueError):
            known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for limit in _LIMITS:
        granted = _read_number(limit)
        known += [granted] if granted is not None else []
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    known += [soft] if soft != resource.RLIM_INFINITY else []
    return min(known, default=None)


def check_memory(needed: float, work: str, advice: str) -> None:
    """Raise an error if work needs more memory than is available.

    Args:
        needed: Bytes that it takes at least; a bound from below, so that nothing is refused that would work.
        work: Their use ("1,000,000,000 images").
        advice: The next step.

    Raises:
        UsageError: There is less.
    """
    available = available_memory()
    if available is not None and needed > available:
        raise UsageError(
            f"{work} would take at least {format_bytes(needed)} of memory, but {format_bytes(available)} are free; "
            f"{advice}"
        )
