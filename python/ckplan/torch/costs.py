"""Sets the costs of operations: nanoseconds by a roofline or measured, or FLOPs."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import time
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.utils.flop_counter import flop_registry

from ckplan.invocation import run_program
from ckplan.torch.capture import storage_bytes, tensors_in
from ckplan.torch.graph import JointGraph
from ckplan.torch.private import real_tensors, storage_key, upper_bound


@dataclass(frozen=True)
class Device:
    """A row of ``ckplan devices``: the properties of a device that a roofline uses."""

    name: str
    matrix_flops_per_second: float
    """For matrix products and convolutions of 32-bit floats in TF32."""
    half_matrix_flops_per_second: float
    """For those of 16-bit floats."""
    vector_flops_per_second: float
    """For everything else, and for matrix products without TF32."""
    bytes_per_second: float
    launch_ns: float
    memory_bytes: int
    description: str = ""
    cuda: dict[str, int] | None = None
    """CUDA device properties that libraries query, if known."""
    outside: tuple[dict[str, Any], ...] = ()
    """Memory that training needs besides tensors: rows of ``ckplan devices -f json``."""

    @property
    def model(self) -> str:
        """The name without the memory size, as one word: ``a100`` for ``a100-40g``."""
        return (self.name.rpartition("-")[0] or self.name).replace("-", "")


def device_named(name: str) -> Device:
    """Returns the device with a name that the program accepts. Raises ValueError."""
    return _devices(name)[1][0]


def default_device() -> str:
    """Returns the name of the program's default device."""
    return _devices()[0]


@functools.cache
def _devices(name: str = "") -> tuple[str, list[Device]]:
    """Returns the default device's name, and all devices or the one called ``name``."""
    answer = run_program("devices", *([name] if name else []), "--format=json")
    if answer.exit_code != 0:
        error = answer.error()
        raise ValueError(str(error)) if error.kind == "usage" else error
    names = [field.name for field in dataclasses.fields(Device)]
    document = json.loads(answer.output)
    rows = [Device(**{key: row[key] for key in names if key in row}) for row in document["devices"]]
    return document["default"], rows


def set_costs(graph: JointGraph, how: str, fuses: bool) -> None:
    """Sets the cost of all operations.

    ``how`` is ``roofline`` (of the graph's own device), ``roofline:NAME`` (of a device of ``ckplan
    devices``), ``flops`` or ``measure``. ``fuses`` means that a compiler will fuse pointwise
    operations. Raises ValueError.
    """
    if how.partition(":")[0] == "roofline":
        _apply_roofline(graph, device_of(graph, how), fuses)
    elif how == "flops":
        for operation in graph.operations:
            operation.cost = 0 if operation.node is None else round(flops(operation.node))
    elif how == "measure":
        with torch.random.fork_rng(), real_tensors():
            for operation in graph.operations:
                operation.cost = 0 if operation.node is None else measure(operation.node)
    else:
        raise ValueError(
            f'costs must be "roofline", "roofline:NAME", "flops" or "measure", not {how!r}'
        )


def device_of(graph: JointGraph, how: str) -> Device:
    """Returns the device named by ``how``, or the graph's own. Raises ValueError."""
    kind, _, name = how.partition(":")
    return device_named(name) if kind == "roofline" and name else _graph_device(graph)


def measure(node: fx.Node, seconds: float = 0.02) -> int:
    """Returns the least time of a few calls on tensors of the same form, in nanoseconds."""
    args, kwargs = fx.map_arg((node.args, node.kwargs), _example)
    device = next(tensors_in(node.meta["val"]), torch.empty(0)).device
    wait = barrier(device)
    best = math.inf
    start = time.perf_counter()
    for _ in range(5):
        before = time.perf_counter_ns()
        node.target(*args, **kwargs)  # type: ignore[operator]
        wait()
        best = min(best, time.perf_counter_ns() - before)
        if time.perf_counter() - start > seconds:
            break
    return round(best)


def _graph_device(graph: JointGraph) -> Device:
    for operation in graph.operations:
        tensors = [] if operation.node is None else tensors_in(operation.node.meta.get("val"))
        for tensor in tensors:
            if tensor.device.type == "cpu":
                return device_named("cpu")
            if tensor.device.type == "cuda":
                properties = torch.cuda.get_device_properties(tensor.device)
                return known_as(properties.name, properties.total_memory)
    return device_named("cpu")


def known_as(title: str, memory_bytes: int) -> Device:
    """Returns the device that a driver calls ``title``, or the program's default.

    Titles contain the model among other words, as in ``NVIDIA A100-SXM4-40GB`` and
    ``NVIDIA GeForce RTX 4090``.
    """
    default, known = _devices()
    words = title.lower().replace("-", " ").split()
    words += [first + second for first, second in zip(words, words[1:])]
    sizes = [row for row in known if row.model in words]
    if not sizes:
        return device_named(default)
    return min(sizes, key=lambda size: abs(size.memory_bytes - memory_bytes))


def roofline_ns(node: fx.Node, device: Device, fused: Container[fx.Node] = ()) -> int:
    """Returns the time of one operation, in nanoseconds.

    ``fused`` has the nodes that a compiler runs in the same kernel: their results are not read from
    memory, and no further launch is needed.
    """
    written = dict(_storages(node))
    read = {k: v for source in node.all_input_nodes for k, v in _storages(source)}
    spared = {k: v for s in node.all_input_nodes if s in fused for k, v in _storages(s)}
    moved = sum({**read, **written}.values()) - sum(spared.values())
    sizes = [tensor.element_size() for tensor in tensors_in(node.meta.get("val"))]
    computing = flops(node) / most_flops(node.target, sizes, device)
    seconds = max(computing, moved / device.bytes_per_second)
    return round(seconds * 1e9 + (0 if spared else device.launch_ns))


def most_flops(operator: Any, sizes: Iterable[int], device: Device) -> float:
    """Returns a device's FLOPs per second for an operator with these element sizes, in bytes."""
    if getattr(operator, "overloadpacket", None) not in flop_registry:
        return device.vector_flops_per_second
    if any(size <= 2 for size in sizes):
        return device.half_matrix_flops_per_second
    # By default PyTorch uses TF32 in convolutions, but not in matrix products.
    # A CPU has one rate for both types.
    is_convolution = "convolution" in str(operator)
    may_use_tf32 = is_convolution or torch.get_float32_matmul_precision() != "highest"
    if may_use_tf32 or device.name == "cpu":
        return device.matrix_flops_per_second
    return device.vector_flops_per_second


def _apply_roofline(graph: JointGraph, device: Device, fuses: bool) -> None:
    nodes = [operation.node for operation in graph.operations if operation.node is not None]
    fusible = {node for node in nodes if fuses and is_pointwise(node)}
    # Operations of equal layers share a node.
    known: dict[fx.Node, int] = {}
    for operation in graph.operations:
        node = operation.node
        if node is not None:
            if node not in known:
                known[node] = roofline_ns(node, device, fusible if node in fusible else ())
            operation.cost = known[node]


def _storages(node: fx.Node) -> Iterator[tuple[int, int]]:
    for tensor in tensors_in(node.meta.get("val")):
        yield storage_key(tensor), storage_bytes(tensor)


def is_pointwise(node: fx.Node) -> bool:
    """Returns whether a compiler can fuse it with operations before and after it."""
    return torch.Tag.pointwise in getattr(node.target, "tags", ())


def flops(node: fx.Node) -> float:
    """Returns an operation's FLOPs.

    For matrix products, convolutions and attention it is PyTorch's count; others take one for each
    element.
    """
    packet = getattr(node.target, "overloadpacket", None)
    outputs = _with_bounded_sizes(node.meta.get("val"))
    if packet in flop_registry:
        args, kwargs = fx.map_arg(
            (node.args, node.kwargs), lambda source: _with_bounded_sizes(source.meta["val"])
        )
        return float(flop_registry[packet](*args, **kwargs, out_val=outputs))
    tensors = [*tensors_in(outputs)]
    tensors += [t for source in node.all_input_nodes for t in tensors_in(source.meta.get("val"))]
    return float(max((upper_bound(tensor.numel()) or 0 for tensor in tensors), default=0))


def _with_bounded_sizes(value: Any) -> Any:
    """Replaces data-dependent sizes of tensors by their bounds."""
    if isinstance(value, torch.Tensor):
        if all(isinstance(size, int) for size in value.shape):
            return value
        sizes = [upper_bound(size) or 0 for size in value.shape]
        with real_tensors():
            return torch.empty(sizes, dtype=value.dtype, device="meta")
    if isinstance(value, (tuple, list)):
        return type(value)(_with_bounded_sizes(item) for item in value)
    return upper_bound(value) if isinstance(value, torch.SymInt) else value


def _example(node: fx.Node) -> Any:
    return _example_like(node.meta["val"])


def _example_like(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_example_like(item) for item in value)
    if not isinstance(value, torch.Tensor):
        return value
    if not all(isinstance(size, int) for size in value.shape):
        return torch.zeros(_with_bounded_sizes(value).shape, dtype=value.dtype, device=value.device)
    shape, stride = tuple(value.shape), tuple(value.stride())
    # Zeros are valid as indices, and never slow.
    tensor = torch.empty_strided(shape, stride, dtype=value.dtype, device=value.device)
    return tensor.zero_()


def barrier(device: torch.device) -> Callable[[], None]:
    """Returns a function that waits until a device has finished all queued work."""
    if device.type == "cpu":
        return lambda: None
    wait: Callable[[], None] = torch.get_device_module(device).synchronize
    return wait
