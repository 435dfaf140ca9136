"""Conversion of users' arrays to tensors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mmgen.core.errors import UsageError
from mmgen.settings.arguments import format_value


def tensor_from(name: str, value: Any, expected: str) -> Tensor:
    """Convert numbers of a caller (tensor, array or nested lists) to a dense tensor.

    Args:
        name: Name of the argument, for messages.
        value: A tensor, an array, or lists of numbers.
        expected: The expected values in words, for messages.

    Raises:
        UsageError: ``value`` holds no real or whole numbers.
    """
    refusal = UsageError(f"{name} got {format_value(value)}, expected {expected}")
    if isinstance(value, Tensor):
        if value.is_complex() or value.is_quantized or value.layout != torch.strided or value.device.type == "meta":
            raise refusal
        return value.detach()
    if isinstance(value, np.ma.MaskedArray) or not isinstance(value, np.ndarray | Sequence) or isinstance(value, str):
        raise refusal
    try:
        numbers = np.array(value)
    except (ValueError, TypeError, RuntimeError, OverflowError):  # rows of several lengths, tensors with gradients
        raise refusal from None
    kind = numbers.dtype.kind
    if kind not in "biuf":
        raise refusal
    if numbers.dtype.itemsize > 8:
        numbers = numbers.astype(np.float64)
    elif kind == "u" and numbers.dtype.itemsize > 1:  # torch computes little with them
        numbers = np.minimum(numbers.astype(np.uint64), 2**31).astype(np.int64)
    return torch.from_numpy(numbers.astype(numbers.dtype.newbyteorder("="), copy=False))


def latents_from(value: Any, size: int) -> Tensor:
    """Convert latents of a caller [..., size] to a finite tensor in fp32 or fp64.

    Raises:
        UsageError: ``value`` has another shape or infinite values.
    """
    z = tensor_from("z", value, f"latents [..., {size}]")
    if not z.dim() or z.shape[-1] != size or not z.numel():
        raise UsageError(f"z got an array {list(z.shape)}, expected latents [..., {size}]")
    if not z.isfinite().all():
        raise UsageError("z got values that are not finite, expected finite numbers")
    return z if z.dtype == torch.float64 else z.float()
