"""Batches of descriptions alone."""

from typing import TYPE_CHECKING

import numpy as np

from mmgen.core.notation import UNKNOWN

if TYPE_CHECKING:
    from mmgen.core.batch import Batch

__all__ = ["batch_of_captions", "batch_of_queries"]


def batch_of_queries(codes: np.ndarray, name: str = "attributes", device: str = "cpu") -> "Batch":
    """Convert attribute codes of descriptions to a batch that posteriors can be conditioned on.

    Args:
        codes: uint8 [B, A] (or [A], taken as B = 1), ``UNKNOWN`` where unspecified.
        name: Name of the attributes modality.
        device: Device of the tensors.
    """
    import torch

    from mmgen.core.batch import Batch

    known = np.atleast_2d(np.asarray(codes, dtype=np.uint8))
    present = known != UNKNOWN
    values = np.where(present, known, 0).astype(np.int64)
    return Batch({name: torch.from_numpy(values).to(device)}, {name: torch.from_numpy(present).to(device)})


def batch_of_captions(tokens: np.ndarray, name: str = "text", device: str = "cpu") -> "Batch":
    """Convert word codes of captions to a batch that posteriors can be conditioned on.

    Args:
        tokens: Word codes, integers [B, T] (or [T], taken as B = 1).
        name: Name of the text modality.
        device: Device of the tensors.
    """
    import torch

    from mmgen.core.batch import Batch

    values = torch.from_numpy(np.atleast_2d(np.asarray(tokens)).astype(np.int64)).to(device)
    return Batch({name: values}, {name: torch.ones(len(values), dtype=torch.bool, device=device)})
