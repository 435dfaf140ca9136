"""Checks of available memory before large work: a machine that swaps or kills explains nothing."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from threading import get_ident
from typing import Any

from mmgen.core.errors import SettingsError, UsageError
from mmgen.core.job import granted_memory

_TOO_LARGE = re.compile("calculation overflowed|Overflow when|allocate memory")  # of torch
_SPARE, _PART = 2**22, 500  # numbers beyond those of a file; what a layer or a tensor counts beside its own


def format_bytes(size: float) -> str:
    """Return a number of bytes as text, such as "1.5 GiB".

    Example:
        >>> format_bytes(3 * 2**30), format_bytes(700), format_bytes(10**400)[-3:]
        ('3.0 GiB', '700 bytes', 'TiB')
    """
    size = min(size, 2**99)  # of numbers that somebody typed, which no float may hold
    if size < 1024:
        return f"{size:.0f} bytes"
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:,.1f} TiB"


def machine_memory() -> int | None:
    """Return the bytes of memory of this machine; None where it does not say, as on Windows."""
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def available_memory() -> int | None:
    """Return the bytes of memory, swap included, that this process can still allocate; None if unknown."""
    known = []
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        facts = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
        known.append(facts.get("MemAvailable", facts["MemTotal"]) + facts.get("SwapFree", 0))
    if not known and (size := machine_memory()):
        known.append(size)
    if (granted := granted_memory()) is not None:
        known.append(granted)
    with suppress(ImportError):  # on Windows
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        known += [soft] if soft != resource.RLIM_INFINITY else []
    return min(known, default=None)


def check_memory(needed: float, work: str, advice: str, free: int | None = None) -> None:
    """Raise an error if work needs more memory than is available.

    Args:
        needed: Bytes that it takes at least; a bound from below, so that nothing is refused that would work.
        work: Their use ("1,000,000,000 images").
        advice: The next step.
        free: Bytes that are free elsewhere, as on a GPU; None for :func:`available_memory`.

    Raises:
        UsageError: There is less.
    """
    available = available_memory() if free is None else free
    if available is not None and needed > available:
        raise UsageError(
            f"{work} would take at least {format_bytes(needed)} of memory, but {format_bytes(available)} are free; "
            f"{advice}"
        )


@contextmanager
def bounded_networks(numbers: int, whose: str = "its", advice: str = "", holder: str = "it") -> Iterator[None]:
    """Refuse networks that are built within this block for a file and are far larger than what it holds.

    A layer is looked at when it is made, before its memory is touched. Settings of a stranger's file of some kilobytes
    could otherwise describe networks that fill the machine, before shapes are compared.

    Args:
        numbers: Numbers in the tensors of the file; networks may have twice as many and some more.
        whose: Beginning of the error's sentence.
        advice: Its end.
        holder: What holds them.

    Raises:
        SettingsError: The networks are larger.
    """
    from torch import Tensor
    from torch.nn.modules import module
    from torch.nn.parameter import is_lazy

    thread, left = get_ident(), 2 * numbers + _SPARE
    fault = f"{whose} settings describe networks of far more than the {numbers:,} numbers {holder} holds{advice}"

    def count(_: Any, name: str, made: Any) -> None:
        nonlocal left
        if get_ident() == thread and made is not None and not is_lazy(made):
            left -= _PART + (made.numel() if isinstance(made, Tensor) else 0)
            if left < 0:
                raise SettingsError(fault)

    hooks = (
        module.register_module_parameter_registration_hook(count),
        module.register_module_buffer_registration_hook(count),
        module.register_module_module_registration_hook(count),
    )
    try:
        yield
    except (RuntimeError, TypeError) as error:
        if _TOO_LARGE.search(str(error)):  # a single tensor
            raise SettingsError(fault) from None
        raise
    finally:
        for hook in hooks:
            hook.remove()


def networks_of_settings(settings: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Return a block that refuses networks of ``settings`` which memory does not hold, and names the largest number."""
    size, name = max(_whole_numbers(settings), default=(0, ""))
    numbers = (available_memory() or 2**62) // 8  # weights and gradients in float32
    whose = f"setting '{name}' got {size:,}, and these"
    return bounded_networks(numbers, whose, "; make it smaller", "free memory")


def _whole_numbers(settings: Any, name: str = "") -> Iterator[tuple[int, str]]:
    """Yield whole numbers in nested settings, with their dotted names."""
    if isinstance(settings, Mapping):
        for key, value in settings.items():
            yield from _whole_numbers(value, f"{name}.{key}".removeprefix("."))
    elif isinstance(settings, list):
        for value in settings:
            yield from _whole_numbers(value, name)
    elif isinstance(settings, int):
        yield settings, name
