"""Networks as lists of steps with packed weights, which the script of a page computes for one example at a time.

A network is traced to the tensor operations that it performs. Weights are kept in few bits, with one scale for each
row; biases and other small constants in full precision.
"""

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx
from torch.fx.experimental.proxy_tensor import make_fx

from mmgen.core.errors import MmgenError
from mmgen.figures.explore._steps import StepWriter

__all__ = ["BITS", "Network", "UnknownOperation", "trace_network"]

BITS = (8, 9, 10, 11, 12, 14, 16)
"""Numbers of bits that weights are kept in, the fewest first."""
_SMALL = 256
"""Largest number of values of a constant that is kept in full precision."""


class UnknownOperation(MmgenError):
    """A network performs an operation that pages cannot compute."""


@dataclass(frozen=True)
class Network:
    """Network of one input and one output, traced for a batch of one example.

    Attributes:
        graph: The operations; calling it computes the output [1, ...].
        shape: Shape of the input, [1, ...].
    """

    graph: fx.GraphModule
    shape: tuple[int, ...]

    @property
    def weights(self) -> int:
        """Number of weights that are kept in few bits."""
        return sum(tensor.numel() for _, tensor in _weights(self.graph))

    @torch.no_grad()
    def __call__(self, examples: Tensor) -> Tensor:
        """Compute the outputs [n, ...] of examples [n, ...]."""
        each: Tensor = torch.vmap(lambda example: self.graph(example[None])[0])(examples)
        return each

    @torch.no_grad()
    def with_fewer_bits(self, bits: int) -> "Network":
        """Return the network with its weights rounded to ``bits`` bits."""
        constants = dict(_constants(self.graph))
        for name, tensor in _weights(self.graph):
            levels, scales = quantise(tensor, bits)
            constants[name] = (levels * scales[:, None]).reshape(tensor.shape).float()
        return Network(fx.GraphModule(constants, self.graph.graph), self.shape)

    def to_json(self, bits: int) -> dict[str, Any]:
        """Convert the network, rounded to ``bits`` bits, to plain values: its steps, constants and packed weights.

        Raises:
            UnknownOperation: A page cannot compute one of its operations.
        """
        packer = _Packer(bits)
        writer = StepWriter(packer.add)
        try:
            output = writer.write(self.graph)
        except NotImplementedError as error:
            raise UnknownOperation(str(error)) from None
        return {
            "steps": writer.steps, "sizes": writer.sizes, "output": output, "constants": packer.constants,
            "bits": bits, "weights": pack_bits(packer.levels, bits), "numbers": _base64(packer.numbers, np.float32),
        }  # fmt: skip


@torch.no_grad()
def trace_network(function: Callable[[Tensor], Tensor], example: Tensor) -> Network:
    """Trace a function of tensors [1, ...] to a network.

    Raises:
        UnknownOperation: The function cannot be traced.
    """
    try:
        graph = make_fx(function)(example)
    except (RuntimeError, ValueError, TypeError) as error:
        first = (str(error).strip().splitlines() or ["unknown"])[0]
        raise UnknownOperation(f"it cannot be traced ({first})") from None
    return Network(graph, tuple(example.shape))


def quantise(tensor: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Round a tensor to integers of ``bits`` bits: levels [rows, columns] and a scale for each row [rows]."""
    rows = tensor.detach().double().flatten(1)
    top = 2 ** (bits - 1) - 1
    scales = (rows.abs().amax(1) / top).clamp_min(1e-30).float().double()
    return (rows / scales[:, None]).round().clamp(-top, top), scales


def pack_bits(levels: Iterable[np.ndarray], bits: int) -> str:
    """Pack integers of ``bits`` bits in two's complement, the highest bit first, and encode them in base64."""
    flat = np.concatenate([np.zeros(0, np.int64), *levels]) & (2**bits - 1)
    places = np.arange(bits - 1, -1, -1)
    packed = np.packbits((flat[:, None] >> places & 1).astype(np.uint8))
    return base64.b64encode(packed.tobytes()).decode("ascii")


def _base64(parts: Iterable[np.ndarray], kind: type) -> str:
    flat = np.concatenate([np.zeros(0), *parts]).astype(np.dtype(kind).newbyteorder("<"))
    return base64.b64encode(flat.tobytes()).decode()


def _constants(graph: fx.GraphModule) -> list[tuple[str, Any]]:
    names = dict.fromkeys(str(node.target) for node in graph.graph.nodes if node.op == "get_attr")
    return [(name, getattr(graph, name)) for name in names]


def _weights(graph: fx.GraphModule) -> list[tuple[str, Tensor]]:
    """Return the constants that are kept in few bits."""
    return [(name, t) for name, t in _constants(graph) if t.is_floating_point() and t.ndim > 1 and t.numel() > _SMALL]


class _Packer:
    """Collects the constants of a network: rounded ones as levels and scales, others as numbers."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.constants: list[list[int]] = []
        self.levels: list[np.ndarray] = []
        self.numbers: list[np.ndarray] = []

    def add(self, tensor: Tensor) -> int:
        """Store a constant, and return its number: [size, rows] if it is rounded, else [size, 0]."""
        rows = 0
        if tensor.ndim > 1 and tensor.numel() > _SMALL:
            levels, scales = quantise(tensor, self.bits)
            rounded = (levels * scales[:, None]).reshape(tensor.shape)
            if torch.allclose(rounded.float(), tensor.float(), rtol=1e-6, atol=float(scales.max()) * 1e-3):
                rows = len(levels)
                self.levels.append(levels.flatten().long().numpy())
                self.numbers.append(scales.numpy())
        if not rows:
            self.numbers.append(tensor.detach().double().flatten().numpy())
        self.constants.append([tensor.numel(), rows])
        return len(self.constants) - 1
