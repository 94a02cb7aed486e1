"""The memory that single operations of a captured step allocate and free within one call.

The memory of CPU kernels says nothing about that of GPU kernels. For convolutions, cuDNN recommends
engines for a GPU that is described to it, and PyTorch runs the first one. The buffers of attention
are known from PyTorch's source.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx

from ckplan.torch.estimation import cudnn
from ckplan.torch.estimation.answer import Line
from ckplan.torch.estimation.cudnn import Advisor, Convolution, Operand, Pass
from ckplan.torch.estimation.events import peak, trace
from ckplan.torch.graph import JointGraph

_TRIED = 10
"""How many recommendations ``torch.backends.cudnn.benchmark`` tries (``benchmark_limit``)."""

_FLASH = "mha_bwd of PyTorch's flash_api.cpp; another kernel takes other buffers"


@dataclass(frozen=True)
class Amount:
    """The bytes of one call, with their range."""

    bytes: int
    least: int
    most: int

    def scaled(self, size: int, known: int) -> Amount:
        rows = (self.bytes, self.least, self.most)
        return Amount(*(math.ceil(row * size / known) for row in rows))


@dataclass
class Workspaces:
    """The workspaces of one library in a step."""

    name: str
    source: str
    amounts: dict[int, Amount] = field(default_factory=dict)
    """By the ids of operations."""
    is_known: bool = True

    def scaled(self, size: int, known: int) -> Workspaces:
        """Returns the likely workspaces at another size of the inputs."""
        amounts = {number: amount.scaled(size, known) for number, amount in self.amounts.items()}
        return Workspaces(self.name, self.source, amounts, self.is_known)


def workspaces_of(graph: JointGraph, device: str) -> list[Workspaces]:
    """Returns the workspaces of convolutions and of attention, if the step has any."""
    found = []
    if any(_is_convolution(operation.node) for operation in graph.operations):
        found.append(_of_convolutions(graph, device))
    attention = _amounts(graph, _of_attention)
    if attention:
        found.append(Workspaces("attention's workspaces", _FLASH, attention))
    return found


def added_lines(
    graph: JointGraph, steps: Sequence[int], known: Iterable[Workspaces], least_moment: int
) -> list[Line]:
    """Returns how much known workspaces raise the peak of a plan, one line for each library.

    ``least_moment``: the bytes at another moment of the step; lower peaks do not matter.
    """

    def peaks(amounts: dict[int, Amount]) -> list[int]:
        levels = (
            {number: amount.bytes for number, amount in amounts.items()},
            {number: amount.least for number, amount in amounts.items()},
            {number: amount.most for number, amount in amounts.items()},
        )
        return [max(least_moment, peak(trace(graph, steps, one).events)[0]) for one in levels]

    lines: list[Line] = []
    amounts: dict[int, Amount] = {}
    before = peaks(amounts)
    for one in known:
        amounts |= one.amounts
        after = peaks(amounts)
        added = [above - below for above, below in zip(after, before)]
        lines.append(Line(one.name, added[0], min(added), max(added), one.source))
        before = after
    return lines


def _of_convolutions(graph: JointGraph, device: str) -> Workspaces:
    name = "cuDNN's workspaces"
    advisor = cudnn.advisor(device)
    if isinstance(advisor, str):
        return Workspaces(name, advisor, is_known=False)
    amounts = _amounts(graph, functools.partial(_of_convolution, advisor))
    return Workspaces(name, f"{advisor.name}, asked about {device}", amounts)


def _amounts(graph: JointGraph, ask: Callable[[fx.Node], Amount | None]) -> dict[int, Amount]:
    """Returns the amounts of all operations that have one. Equal layers share nodes."""
    known: dict[fx.Node, Amount | None] = {}
    for operation in graph.operations:
        if operation.node is not None and operation.node not in known:
            known[operation.node] = ask(operation.node)
    amounts = {}
    for operation in graph.operations:
        amount = None if operation.node is None else known[operation.node]
        if amount is not None:
            amounts[operation.id] = amount
    return amounts


def _is_convolution(node: fx.Node | None) -> bool:
    aten = torch.ops.aten
    return node is not None and node.target in (
        aten.convolution.default,
        aten.convolution_backward.default,
    )


def _of_convolution(advisor: Advisor, node: fx.Node) -> Amount | None:
    """Returns the largest workspace of the passes of one call, which run one after another."""
    if not _is_convolution(node):
        return None
    most = [Amount(0, 0, 0)]
    for convolution, what in _passes(node):
        sizes = advisor.workspaces(convolution, what)[:_TRIED]
        if sizes:
            most.append(Amount(sizes[0], min(sizes), max(sizes)))
    return Amount(
        max(amount.bytes for amount in most),
        max(amount.least for amount in most),
        max(amount.most for amount in most),
    )


def _passes(node: fx.Node) -> Iterator[tuple[Convolution, Pass]]:
    """Yields the calls of cuDNN in one operation."""
    values = [_value(argument) for argument in node.args]
    if node.target is torch.ops.aten.convolution.default:
        x, w, _, strides, padding, dilations, transposed, _, groups = values
        y = node.meta["val"]
        needed = (True,)
        kinds: tuple[Pass, ...] = (cudnn.FORWARD,)
    else:
        y, x, w, _, strides, padding, dilations, transposed, _, groups, needed = values
        kinds = (cudnn.INPUT_GRADIENT, cudnn.WEIGHT_GRADIENT)
    if str(x.dtype).removeprefix("torch.") not in cudnn.TYPES:
        return
    if not all(isinstance(size, int) for tensor in (x, w, y) for size in tensor.shape):
        return
    is_last = any(_is_channels_last(tensor) for tensor in (x, w))
    if not transposed and _is_own_kernel(x, w, groups, is_last):
        return
    if transposed:
        # A transposed convolution is the input gradient of a convolution, and vice versa.
        x, y = y, x
        others = {cudnn.FORWARD: cudnn.INPUT_GRADIENT, cudnn.INPUT_GRADIENT: cudnn.FORWARD}
        kinds = tuple(others.get(kind, kind) for kind in kinds)
    made = _convolution((x, w, y), (strides, padding, dilations), is_last)
    yield from ((made, kind) for kind, is_needed in zip(kinds, needed) if is_needed)


def _is_own_kernel(x: Tensor, w: Tensor, groups: int, is_last: bool) -> bool:
    """Returns whether PyTorch runs its own kernel, which has no workspace.

    It does so for depthwise convolutions of 32 bits with channels first.
    """
    is_by_channel = groups > 1 and x.shape[1] == groups and w.shape[0] % x.shape[1] == 0
    return is_by_channel and not is_last and x.dtype.itemsize > 2


def _convolution(
    tensors: tuple[Tensor, Tensor, Tensor], windows: tuple[Any, Any, Any], is_last: bool
) -> Convolution:
    """Returns the convolution as PyTorch passes it on, with two or three dimensions."""
    x, w, y = (tuple(tensor.shape) for tensor in tensors)
    dimensions = len(x) - 2
    strides, padding, dilations = (_per_dimension(values, dimensions) for values in windows)
    if dimensions == 1:
        x, w, y = (shape[:2] + (1,) + shape[2:] for shape in (x, w, y))
        strides, padding, dilations = (1, *strides), (0, *padding), (1, *dilations)
    x_operand, w_operand, y_operand = (
        Operand(shape, _strides(shape, is_last)) for shape in (x, w, y)
    )
    type = str(tensors[0].dtype).removeprefix("torch.")
    return Convolution(type, x_operand, w_operand, y_operand, strides, padding, dilations)


def _per_dimension(values: Any, dimensions: int) -> tuple[int, ...]:
    """Returns one value for each dimension; a single value holds for all of them."""
    return tuple(values) if len(values) == dimensions else tuple(values) * dimensions


def _strides(shape: tuple[int, ...], is_last: bool) -> tuple[int, ...]:
    order = [*range(len(shape))]
    if is_last:
        order = [0, *range(2, len(shape)), 1]
    strides = [1] * len(shape)
    for place in range(len(order) - 2, -1, -1):
        strides[order[place]] = strides[order[place + 1]] * shape[order[place + 1]]
    return tuple(strides)


def _is_channels_last(tensor: Tensor) -> bool:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    memory_format = formats.get(tensor.ndim)
    if memory_format is None or tensor.is_contiguous():
        return False
    return tensor.is_contiguous(memory_format=memory_format)


def _of_attention(node: fx.Node) -> Amount | None:
    """Returns the accumulation buffers of the backward pass of fused attention.

    Flash attention, which needs 16 bits, has a 32-bit gradient of the queries, a number for each
    row and, for grouped heads, gradients of keys and values for each query head. Other kernels have
    all three gradients in 32 bits, or none.
    """
    target = str(node.target)
    if "scaled_dot_product" not in target or "backward" not in target:
        return None
    q, k, v = (_value(argument) for argument in node.args[1:4])
    if not all(isinstance(size, int) for tensor in (q, k, v) for size in tensor.shape):
        return None
    batch, heads, rows, width = q.shape
    padded = math.ceil(rows / 128) * 128
    wide = math.ceil(width / 32) * 32 if width <= 128 else math.ceil(width / 64) * 64
    accumulated = 4 * batch * heads * padded * (wide + 1)
    flash = accumulated
    if k.shape[1] != heads:
        flash += 2 * q.element_size() * batch * heads * k.shape[2] * width
    others = accumulated + 4 * batch * heads * k.shape[2] * (width + v.shape[-1])
    return Amount(flash if q.element_size() == 2 else 0, 0, max(flash, others))


def _value(argument: Any) -> Any:
    return argument.meta["val"] if isinstance(argument, fx.Node) else argument
