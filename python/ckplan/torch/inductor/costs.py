"""Predicts the time of a step that Inductor has lowered: the sum of the times of its calls.

Fused-away tensors appear in no call, so they cost no memory traffic. The time of a call comes from
a roofline of its memory traffic and operations, or is measured once, if that is possible.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Container, Iterable

import torch
from torch import fx
from torch.utils.flop_counter import flop_registry

from ckplan.torch.capture import storage_bytes, tensors_in
from ckplan.torch.costs import Device, flops, is_pointwise, most_flops
from ckplan.torch.graph import JointGraph
from ckplan.torch.inductor import timing
from ckplan.torch.inductor.replay import Form, KernelCall, OperatorCall, forms_in
from ckplan.torch.private import storage_key

Call = KernelCall | OperatorCall

_PARAMETER = re.compile(r"\b(in_out|in|out)_ptr\d+\b")

_RESULT = re.compile(r"\btmp\d+ = ")
_SLOW = re.compile(r"\b(?:exp|exp2|expm1|log|log1p|log2|erf|erfc|tanh|sin|cos|pow|sigmoid)\(")

_SLOW_FLOPS = 20
"""The approximate cost of a function such as ``exp``, in FLOPs."""

_RANDOM = re.compile(r"\b(?:normalized_rand_cpu|randn_cpu|randint64_cpu|tl\.randn?|randint64)\(")

_RANDOM_FLOPS = 400
"""The approximate cost of a random number, in FLOPs.

It takes ten rounds of Philox with about ten integer operations each; a GPU executes a quarter as
many of these as FLOPs. A CPU draws one number at a time, in about 25 cycles.
"""

_MASK_WRITTEN = re.compile(r"\.store\(((?:in_)?out_ptr\d+)\b")
_MASK_READ = re.compile(r"VecMask<[^>]*>::from\(((?:in|out|in_out)_ptr\d+)\b")

_MASK_WRITTEN_FLOPS, _MASK_READ_FLOPS = 320, 128
"""The cost of converting an element of a mask in vectorized C++ for CPUs, in FLOPs.

PyTorch's vectors convert masks from and to Booleans element by element, with a branch for each. If
the branch is true half of the time, as for ReLU, writing an element takes 36 cycles and reading one
15. If it is mostly true, as for dropout, it takes less; 20 and 8 are in between. A core executes 16
FLOPs per cycle.
"""


def step_cost(calls: Iterable[Call], how: str, device: Device) -> int:
    """Returns the cost of a step's calls: FLOPs for ``flops``, otherwise nanoseconds.

    ``how`` is what ``ckplan.torch.compile`` takes as ``costs``.
    """
    calls = list(calls)
    if how == "measure":
        times = timing.times(calls)
        return sum(times.get(call.key, call_ns(call, device)) for call in calls)
    if how == "flops":
        return round(sum(_flops(call) for call in calls))
    return sum(call_ns(call, device) for call in calls)


def _flops(call: Call) -> float:
    return _kernel_flops(call) if isinstance(call, KernelCall) else _operator_flops(call)


def call_ns(call: Call, device: Device) -> int:
    """Returns the time of one call by a roofline, in nanoseconds."""
    if isinstance(call, KernelCall):
        moved, computing = _kernel_bytes(call), _kernel_flops(call) / device.vector_flops_per_second
    else:
        results = list(forms_in(call.results))
        moved = sum(form.bytes for form in (*call.forms(), *results))
        sizes = [form.dtype.itemsize for form in results]
        computing = _operator_flops(call) / most_flops(call.operator, sizes, device)
    seconds = max(computing, moved / device.bytes_per_second)
    return round(1e9 * seconds + device.launch_ns)


def _kernel_bytes(call: KernelCall) -> int:
    """Returns the bytes that a kernel reads and writes; in-place updates count as both."""
    kinds = _parameters(call.kernel.text).values()
    twice = {position for position, kind in enumerate(kinds) if kind == "in_out"}
    return sum(form.bytes * (1 + (i in twice)) for i, form in enumerate(call.forms()))


def _parameters(text: str) -> dict[str, str]:
    """Returns the kind of each parameter of a kernel, in order: ``in``, ``out`` or ``in_out``."""
    found: dict[str, str] = {}
    for match in _PARAMETER.finditer(text):
        found.setdefault(match[0], match[1])
    return found


def _kernel_flops(call: KernelCall) -> float:
    # C++ has each line twice: for whole vectors, and for the remainder of a row.
    lines = len(_RESULT.findall(call.kernel.text)) / 2
    slow = len(_SLOW.findall(call.kernel.text)) / 2
    largest = max((_elements(form) for form in call.forms()), default=0)
    loops = max(1, call.kernel.text.count("for(") // 2)
    drawn = math.ceil(len(_RANDOM.findall(call.kernel.text)) / 2)
    each = (lines + _SLOW_FLOPS * slow) / loops + _RANDOM_FLOPS * drawn
    return largest * each + _mask_flops(call)


def _mask_flops(call: KernelCall) -> int:
    """Returns the operations for converting masks that the kernel reads or writes as vectors."""
    text = call.kernel.text
    written, read = set(_MASK_WRITTEN.findall(text)), set(_MASK_READ.findall(text))
    found = 0
    for name, form in zip(_parameters(text), call.forms()):
        if form.dtype is torch.bool:
            each = _MASK_WRITTEN_FLOPS * (name in written) + _MASK_READ_FLOPS * (name in read)
            found += each * _elements(form)
    return found


def _elements(form: Form) -> int:
    return form.bytes // form.dtype.itemsize


def _operator_flops(call: OperatorCall) -> float:
    packet = getattr(call.operator, "overloadpacket", None)
    if packet not in flop_registry:
        return float(sum(_elements(form) for form in call.forms()))
    args = [_shapes(value) for value in call.args]
    kwargs = {name: _shapes(value) for name, value in call.kwargs if name != "out"}
    return float(flop_registry[packet](*args, **kwargs, out_val=_shapes(call.results)))


def _shapes(value: object) -> object:
    if isinstance(value, Form):
        return _empty(value)
    return [_shapes(item) for item in value] if isinstance(value, tuple) else value


def _empty(form: Form) -> torch.Tensor:
    return torch.empty_strided(form.shape, form.stride, dtype=form.dtype, device="meta")


_REDUCTIONS = frozenset(
    {"sum", "mean", "amax", "amin", "var", "var_mean", "max", "min", "any", "all", "cumsum"}
)


def is_fusible(node: fx.Node) -> bool:
    """Returns whether Inductor generates a kernel for the operation."""
    return is_pointwise(node) or _name(node) in _REDUCTIONS


def _name(node: fx.Node) -> str:
    """Returns the name of a node's operator, without its overload."""
    return str(getattr(getattr(node.target, "overloadpacket", None), "__name__", ""))


def set_fused_costs(graph: JointGraph, device: Device) -> None:
    """Sets the cost of each operation as part of the kernels that Inductor will make.

    Values that fusible operations pass to each other stay in registers and cost no traffic.
    """
    nodes = [operation.node for operation in graph.operations if operation.node is not None]
    fusible = {node for node in nodes if is_fusible(node)}
    for operation in graph.operations:
        if operation.node is not None:
            operation.cost = _fused_ns(operation.node, fusible, device)


def with_drawn_costs(graph: JointGraph, device: Device) -> JointGraph:
    """Returns a graph whose random operations include the cost of random numbers.

    Returns the graph itself if it has none.
    """
    drawn = {
        operation.id: sum(tensor.numel() for tensor in tensors_in(operation.node.meta.get("val")))
        for operation in graph.operations
        if operation.node is not None and _name(operation.node).startswith("inductor_rand")
    }
    if not drawn:
        return graph
    each = 1e9 * _RANDOM_FLOPS / device.vector_flops_per_second
    operations = [
        dataclasses.replace(
            operation, cost=operation.cost + round(each * drawn.get(operation.id, 0))
        )
        for operation in graph.operations
    ]
    return dataclasses.replace(graph, operations=operations)


def _fused_ns(node: fx.Node, fusible: Container[fx.Node], device: Device) -> int:
    fuses = node in fusible
    sources = [source for source in node.all_input_nodes if not (fuses and source in fusible)]
    readers = list(node.users)
    stays = fuses and bool(readers) and all(reader in fusible for reader in readers)
    moved = sum(_memory(sources).values()) + (0 if stays else sum(_memory([node]).values()))
    sizes = [tensor.element_size() for tensor in tensors_in(node.meta.get("val"))]
    computing = flops(node) / most_flops(node.target, sizes, device)
    seconds = max(computing, moved / device.bytes_per_second)
    is_launched = not fuses or (len(sources) == len(node.all_input_nodes) and not stays)
    return round(1e9 * seconds + (device.launch_ns if is_launched else 0))


def _memory(nodes: Iterable[fx.Node]) -> dict[int, int]:
    found = {}
    for node in nodes:
        for tensor in tensors_in(node.meta.get("val")):
            found[storage_key(tensor)] = storage_bytes(tensor)
    return found
