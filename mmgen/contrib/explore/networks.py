"""Networks as lists of steps with packed weights, which the script of a page computes for one example at a time.

A network is traced to the tensor operations that it performs. Weights are kept in few bits, with one scale for each
row; biases and other small constants in full precision.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx
from torch.fx.experimental.proxy_tensor import make_fx

from mmgen.contrib.explore._steps import StepWriter, UnknownOperation

BITS = (3, 4, 6, 8, 9, 10, 11, 12, 13, 14, 16)
"""Numbers of bits that weights are kept in, the fewest first."""
_SMALL = 256
"""Largest number of values of a constant that is kept in full precision."""
_LARGE = 0.05
"""Share of all weights above which a tensor has its own number of bits."""


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
    def weights(self) -> dict[str, int]:
        """Number of weights in each tensor that is kept in few bits, the largest first."""
        return dict(sorted(((name, t.numel()) for name, t in _weights(self.graph)), key=lambda each: -each[1]))

    @torch.no_grad()
    def __call__(self, examples: Tensor) -> Tensor:
        """Compute the outputs [n, ...] of examples [n, ...]."""
        each: Tensor = torch.vmap(lambda example: self.graph(example[None])[0])(examples)
        return each

    @torch.no_grad()
    def with_bits(self, bits: Mapping[str, int]) -> "Network":
        """Return the network with the weights of each tensor rounded to so many bits."""
        constants = dict(_constants(self.graph))
        for name, tensor in _weights(self.graph):
            levels, scales = quantise(tensor, bits[name])
            constants[name] = (levels * scales[:, None]).reshape(tensor.shape).float()
        return Network(fx.GraphModule(constants, self.graph.graph), self.shape)

    def to_json(self) -> dict[str, Any]:
        """Convert a network of rounded weights to plain values: its steps, constants and packed weights.

        Raises:
            UnknownOperation: A page cannot compute one of its operations.
        """
        packer = _Packer()
        writer = StepWriter(packer.add)
        output = writer.write(self.graph)
        return {
            "steps": writer.steps, "sizes": writer.sizes, "output": output, "constants": packer.constants,
            "weights": encode_letters(b"".join(packer.packed)),
            "numbers": encode_letters(b"".join(packer.numbers)),
        }  # fmt: skip


@torch.no_grad()
def trace_network(function: Callable[[Tensor], Tensor], example: Tensor) -> Network:
    """Trace a function of tensors [1, ...] to a network.

    Raises:
        UnknownOperation: The function cannot be traced.
    """
    try:
        graph = make_fx(function)(example)
    except (RuntimeError, ValueError) as error:  # torch's, of values that decide what is computed
        first = (str(error).strip().splitlines() or ["unknown"])[0]
        raise UnknownOperation(f"it cannot be traced ({first})") from None
    for node in graph.graph.nodes:
        node.kwargs = {name: value for name, value in node.kwargs.items() if name != "memory_format"}
    graph.recompile()
    return Network(graph, tuple(example.shape))


def round_network(
    network: Network, is_close: Callable[[Network], bool], most: int, bits: Sequence[int] = BITS
) -> tuple[Network | None, str]:
    """Return a network in few bits, or None and the reason.

    Bits are first equal for all weights; large tensors then lose as many as they can.

    Args:
        network: The network.
        is_close: Whether a rounded network still computes what it should.
        most: Largest size of the weights in bytes.
        bits: Numbers of bits to try, the fewest first.
    """
    sizes = network.weights
    total = sum(sizes.values())
    chosen: dict[str, int] = {}
    for uniform in bits if total * bits[0] / 8 <= most else ():
        chosen = dict.fromkeys(sizes, uniform)
        if is_close(network.with_bits(chosen)):
            break
    else:
        if chosen:
            return None, "rounded to 16 bits it would draw other pictures"
        return None, f"its {total:,} weights would take {total * bits[0] / 8e6:.1f} MB"
    for name in [name for name, size in sizes.items() if size > _LARGE * total]:
        for fewer in reversed([each for each in bits if each < chosen[name]]):
            if not is_close(network.with_bits(chosen | {name: fewer})):
                break
            chosen[name] = fewer
    taken = sum(sizes[name] * each / 8 for name, each in chosen.items())
    if taken > most:
        return None, f"its {total:,} weights would take {taken / 1e6:.1f} MB"
    return network.with_bits(chosen), ""


def encode_letters(packed: bytes) -> str:
    """Return bytes as letters, five for four bytes, without any that HTML or JSON would escape.

    Example:
        >>> encode_letters(bytes([0, 0, 0, 0, 255]))
        '00000{{R30'
    """
    return base64.b85encode(packed, pad=True).translate(bytes.maketrans(b"&<>", b",./")).decode("ascii")


def quantise(tensor: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Round a tensor to integers of ``bits`` bits: levels [rows, columns] and a scale for each row [rows]."""
    rows = tensor.detach().double().flatten(1)
    top = 2 ** (bits - 1) - 1
    scales = (rows.abs().amax(1) / top).clamp_min(1e-30).float().double()
    return (rows / scales[:, None]).round().clamp(-top, top), scales


def pack_bits(levels: np.ndarray, bits: int) -> bytes:
    """Pack integers of ``bits`` bits in two's complement, the highest bit first, to whole bytes."""
    flat = levels.astype(np.int64) & (2**bits - 1)
    places = np.arange(bits - 1, -1, -1)
    return np.packbits((flat[:, None] >> places & 1).astype(np.uint8)).tobytes()


def _constants(graph: fx.GraphModule) -> list[tuple[str, Any]]:
    names = dict.fromkeys(str(node.target) for node in graph.graph.nodes if node.op == "get_attr")
    return [(name, getattr(graph, name)) for name in names]


def _weights(graph: fx.GraphModule) -> list[tuple[str, Tensor]]:
    """Return the constants that are kept in few bits."""
    return [(name, t) for name, t in _constants(graph) if t.is_floating_point() and t.ndim > 1 and t.numel() > _SMALL]


class _Packer:
    """Collects the constants of a network: rounded ones as levels and scales, others as numbers.

    Attributes:
        constants: Size, number of rows and bits of each constant; 0 rows for one in full precision.
        packed: Levels of rounded constants.
        numbers: Scales of rounded constants, and the others, as float32.
    """

    def __init__(self) -> None:
        self.constants: list[list[int]] = []
        self.packed: list[bytes] = []
        self.numbers: list[bytes] = []

    def add(self, tensor: Tensor) -> int:
        """Store a constant in the fewest bits that hold it exactly, and return its number."""
        rows = used = 0
        exact = tensor
        if tensor.ndim > 1 and tensor.numel() > _SMALL:
            for bits in BITS:
                levels, scales = quantise(tensor, bits)
                rounded = (levels * scales[:, None]).reshape(tensor.shape)
                if torch.allclose(rounded.float(), tensor.float(), rtol=1e-6, atol=float(scales.max()) * 1e-3):
                    rows, used, exact = len(levels), bits, scales
                    self.packed.append(pack_bits(levels.flatten().numpy(), bits))
                    break
        self.numbers.append(exact.detach().float().flatten().numpy().astype("<f4").tobytes())
        self.constants.append([tensor.numel(), rows, used])
        return len(self.constants) - 1
