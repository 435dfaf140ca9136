"""The steps of a traced network that the script of a page computes; every value is a dense array of one example."""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from mmgen.core.errors import MmgenError

aten = torch.ops.aten


class UnknownOperation(MmgenError):
    """A network performs an operation that pages cannot compute."""


_UNARY: dict[Any, str] = {
    aten.relu.default: "relu", aten.elu.default: "elu", aten.silu.default: "silu", aten.sigmoid.default: "sigmoid",
    aten.tanh.default: "tanh", aten.softplus.default: "softplus", aten.exp.default: "exp", aten.clamp.default: "clamp",
    aten.leaky_relu.default: "leaky relu", aten.hardtanh.default: "clamp", aten.neg.default: "neg",
    aten.sin.default: "sin", aten.cos.default: "cos", aten.abs.default: "abs", aten.relu_.default: "relu",
}  # fmt: skip
_DEFAULTS: dict[str, list[float | None]] = {
    "elu": [1.0],
    "clamp": [None, None],
    "softplus": [1.0, 20.0],
    "leaky relu": [0.01],
}
_BINARY: dict[Any, str] = {
    aten.add.Tensor: "add", aten.sub.Tensor: "sub", aten.mul.Tensor: "mul", aten.div.Tensor: "div",
}  # fmt: skip
_SAME = {aten.clone.default, aten._to_copy.default, aten.detach.default, aten.alias.default}
_VIEWS = {
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.unsqueeze.default, aten.squeeze.default,
    aten.squeeze.dim, aten.slice.Tensor, aten.select.int, aten.expand.default, aten.permute.default, aten.t.default,
    aten.transpose.int, aten.split.Tensor, aten.split_with_sizes.default, aten.unbind.int,
}  # fmt: skip

Value = tuple[int, tuple[int, ...]]
"""Number of a value and its shape; numbers below 0 are constants."""


class StepWriter:
    """Writes the operations of a graph as steps; constants that operations share are stored by ``store``.

    Attributes:
        steps: Steps in order; each has a name "op", its arguments "x" and its result "y".
        sizes: Number of elements of each value; value 0 is the input.
    """

    def __init__(self, store: Callable[[Tensor], int]) -> None:
        self.steps: list[dict[str, Any]] = []
        self.sizes: list[int] = []
        self._store = store

    @torch.no_grad()
    def write(self, graph: fx.GraphModule) -> int:
        """Write all steps of a graph of one input, and return the number of the output.

        Raises:
            UnknownOperation: A page cannot compute an operation.
        """
        known: dict[fx.Node, Any] = {}  # a Tensor if constant, else a Value or a list of values
        output = -1
        for node in graph.graph.nodes:
            if node.op == "placeholder":
                known[node] = self._new(tuple(node.meta["val"].shape))
            elif node.op == "get_attr":
                known[node] = getattr(graph, str(node.target))
            elif node.op == "output":
                (output, _) = self._value(known[node.args[0]])
            else:
                args = fx.map_arg(node.args, known.__getitem__)
                kwargs = fx.map_arg(node.kwargs, known.__getitem__)
                known[node] = self._call(node.target, list(args), kwargs)
        return output

    def _call(self, target: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if target is operator.getitem:
            return args[0][args[1]]
        if not any(_is_value(part) for part in args):
            return target(*args, **kwargs)
        if target in _SAME:
            return args[0]
        if target in _VIEWS:
            return self._view(args[0], lambda tensor: target(tensor, *args[1:], **kwargs))
        if target in _UNARY:
            return self._unary(_UNARY[target], args[0], args[1:])
        if target in _BINARY and kwargs.get("alpha", 1) == 1:
            return self._binary(_BINARY[target], args[0], args[1])
        name = "_" + str(target).removeprefix("aten.").split(".")[0].lstrip("_")
        if not hasattr(self, name):
            raise UnknownOperation(f"it has an operation {target}, which pages cannot compute")
        return getattr(self, name)(*args, **kwargs)

    def _new(self, shape: Sequence[int]) -> Value:
        self.sizes.append(math.prod(shape))
        return len(self.sizes) - 1, tuple(shape)

    def _value(self, found: Any) -> Value:
        if isinstance(found, Tensor | float | int):
            tensor = torch.as_tensor(found, dtype=torch.float32)
            return -1 - self._store(tensor.contiguous()), tuple(tensor.shape)
        number, shape = found
        return number, shape

    def _step(self, op: str, values: Sequence[Value], shape: Sequence[int], **settings: Any) -> Value:
        result = self._new(shape)
        self.steps.append({"op": op, "x": [number for number, _ in values], "y": result[0], **settings})
        return result

    def _view(self, value: Value, view: Callable[[Tensor], Any]) -> Any:
        """Return one or several views of a value, as copies with strides where they are more than another shape."""
        seen = view(torch.empty(value[1], device="meta"))
        views = [self._strided(value, each) for each in (seen if isinstance(seen, list | tuple) else [seen])]
        return views if isinstance(seen, list | tuple) else views[0]

    def _strided(self, value: Value, seen: Tensor) -> Value:
        if seen.is_contiguous() and seen.storage_offset() == 0 and seen.numel() == math.prod(value[1]):
            return value[0], tuple(seen.shape)
        kept = [(size, step) for size, step in zip(seen.shape, seen.stride(), strict=True) if size > 1] or [(1, 1)]
        sizes, strides = [size for size, _ in kept], [step for _, step in kept]
        return self._step(
            "strided", [value], tuple(seen.shape), sizes=sizes, strides=strides, offset=seen.storage_offset()
        )

    def _unary(self, op: str, value: Value, args: Sequence[Any]) -> Value:
        defaults = _DEFAULTS.get(op, [])
        return self._step(op, [value], value[1], args=[*args, *defaults[len(args) :]])

    def _binary(self, op: str, *both: Any) -> Value:
        values = [self._value(each) for each in both]
        shape = torch.broadcast_shapes(*(shape for _, shape in values))
        spread = [
            each if each[1] == shape else self._view(each, lambda tensor: tensor.expand(shape)) for each in values
        ]
        return self._step(op, spread, shape)

    def _rsub(self, x: Value, first: Any) -> Value:
        return self._binary("sub", first, x)

    def _mm(self, x: Value, weight: Any) -> Value:
        return self._addmm(None, x, weight)

    def _addmm(self, bias: Any, x: Value, weight: Any) -> Value:
        if not isinstance(weight, Tensor) or not isinstance(bias, Tensor | None):
            raise UnknownOperation("it multiplies two computed matrices, which pages cannot do")
        (rows, inputs), outputs = x[1], weight.shape[1]
        weights = [self._value(weight.t())] + ([self._value(bias)] if bias is not None else [])
        return self._step("linear", [x, *weights], (rows, outputs), inputs=inputs, outputs=outputs)

    def _convolution(
        self, x: Value, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
        extra: Any, groups: int,
    ) -> Value:  # fmt: skip
        if {*dilation} != {1} or groups != 1 or not isinstance(weight, Tensor) or weight.ndim != 4:
            raise UnknownOperation("it has dilated, grouped or computed convolutions, which pages cannot compute")
        kernel = weight.shape[2:]
        outputs = weight.shape[1 if transposed else 0]
        (_, channels, *sides) = x[1]
        steps = range(2)
        if transposed:
            after = [(sides[i] - 1) * stride[i] - 2 * padding[i] + kernel[i] + extra[i] for i in steps]
        else:
            after = [(sides[i] + 2 * padding[i] - kernel[i]) // stride[i] + 1 for i in steps]
        weights = [self._value(weight)] + ([self._value(bias)] if bias is not None else [])
        return self._step(
            "unconv" if transposed else "conv", [x, *weights], (1, outputs, *after), size=[channels, *sides],
            out=[outputs, *after], kernel=[*kernel], stride=[*stride], padding=[*padding],
        )  # fmt: skip

    def _native_batch_norm(
        self, x: Value, weight: Any, bias: Any, mean: Tensor, variance: Tensor, training: bool, _: float, eps: float
    ) -> list[Value | None]:
        if training:
            raise UnknownOperation("it normalises by the batch, which pages cannot do")
        scale = (variance.double() + eps).rsqrt() * (1.0 if weight is None else weight.double())
        shift = (0.0 if bias is None else bias.double()) - mean.double() * scale
        each = math.prod(x[1][2:])
        result = self._step("scale", [x, self._value(scale.float()), self._value(shift.float())], x[1], each=each)
        return [result, None, None]  # torch also returns statistics of the batch, of which there are none

    def _native_layer_norm(self, x: Value, shape: Sequence[int], weight: Any, bias: Any, eps: float) -> list[Any]:
        if weight is not None or bias is not None or len(shape) != 1:
            raise UnknownOperation("it normalises layers in a way that pages cannot compute")
        return [self._step("normalise", [x], x[1], each=shape[0], eps=eps), None, None]  # torch adds statistics

    def _constant_pad_nd(self, x: Value, padding: Sequence[int], *_: Any) -> Value:
        if any(padding):
            raise UnknownOperation("it pads maps, which pages cannot do")
        return x

    def _cat(self, parts: Sequence[Any], dim: int = 0) -> Value:
        values = [self._value(part) for part in parts]
        if len(values) == 1:
            return values[0]
        shapes = [shape for _, shape in values]
        first, dim = shapes[0], dim % len(shapes[0])
        result = (*first[:dim], sum(shape[dim] for shape in shapes), *first[dim + 1 :])
        inner = [math.prod(shape[dim:]) for shape in shapes]
        return self._step("cat", values, result, outer=math.prod(first[:dim]), inner=inner)

    def _pixel_shuffle(self, x: Value, factor: int) -> Value:
        _, channels, height, width = x[1]
        parts = (channels // factor**2, factor, factor, height, width)
        shuffled = self._view(x, lambda tensor: tensor.view(parts).permute(0, 3, 1, 4, 2))
        return shuffled[0], (1, parts[0], height * factor, width * factor)

    def _pixel_unshuffle(self, x: Value, factor: int) -> Value:
        _, channels, height, width = x[1]
        parts = (channels, height // factor, factor, width // factor, factor)
        folded = self._view(x, lambda tensor: tensor.view(parts).permute(0, 2, 4, 1, 3))
        return folded[0], (1, channels * factor**2, height // factor, width // factor)

    def _upsample_nearest2d(self, x: Value, size: Any, *_scales: Any) -> Value:
        _, channels, height, width = x[1]
        if size[0] % height or size[1] % width:
            raise UnknownOperation("it enlarges maps by no whole factor, which pages cannot do")
        spread = (channels, height, size[0] // height, width, size[1] // width)
        larger = self._view(x, lambda tensor: tensor.view(channels, height, 1, width, 1).expand(spread))
        return larger[0], (1, channels, *size)

    def _upsample_bilinear2d(self, x: Value, size: Any, corners: bool, *_scales: Any) -> Value:
        _, channels, height, width = x[1]
        settings = {"size": [channels, height, width], "out": [*size], "corners": corners}
        return self._step("resize", [x], (1, channels, *size), **settings)

    def _grid_sampler_2d(self, x: Value, grid: Any, mode: int, padding: int, corners: bool) -> Value:
        if mode != 0 or padding != 0 or corners:
            raise UnknownOperation("it samples a grid in a way that pages cannot compute")
        places = self._value(grid)
        _, height, width, _ = places[1]
        settings = {"size": [*x[1][1:]], "out": [height, width]}
        return self._step("sample", [x, places], (1, x[1][1], height, width), **settings)


def _is_value(part: Any) -> bool:
    """Return whether an argument, or one of a list of arguments, depends on the input."""
    if isinstance(part, tuple):
        return len(part) == 2 and isinstance(part[1], tuple)
    return isinstance(part, list) and any(_is_value(each) for each in part)
