"""How long each operation takes, in nanoseconds: by a roofline, by FLOPs, or measured."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.utils.flop_counter import flop_registry

from ckplan.torch.capture import storage_bytes, tensors_in
from ckplan.torch.graph import JointGraph
from ckplan.torch.private import real_tensors, storage_key


@dataclass(frozen=True)
class Device:
    """What a roofline needs to know: most FLOPs and bytes a second, and the time of a launch."""

    flops: float
    """Of 32-bit floats."""
    tf32_flops: float
    """Of 32-bit floats where PyTorch allows TF32: in convolutions, and in products if so set."""
    half_flops: float
    """Of 16-bit floats."""
    bytes: float
    launch_ns: float = 4000


# Makers' figures, of dense tensor cores where these are used.
DEVICES = {
    "a100": Device(19.5e12, 156e12, 312e12, 1555e9),
    "h100": Device(67e12, 495e12, 989e12, 3350e9),
    "h200": Device(67e12, 495e12, 989e12, 4800e9),
    "v100": Device(15.7e12, 15.7e12, 125e12, 900e9),
    "l4": Device(30.3e12, 60e12, 121e12, 300e9),
    "cpu": Device(1e12, 1e12, 1e12, 100e9),
}


def set_costs(graph: JointGraph, how: str, fuses: bool) -> None:
    """Sets the cost of all operations.

    ``how`` is ``roofline`` (of the device that the graph is on), ``roofline:NAME`` of DEVICES,
    ``flops`` or ``measure``. ``fuses`` says that a compiler will fuse pointwise operations.
    Raises ValueError.
    """
    kind, _, name = how.partition(":")
    if kind == "roofline":
        _by_roofline(graph, _named(name) if name else _present(graph), fuses)
    elif how == "flops":
        for operation in graph.operations:
            operation.cost = 0 if operation.node is None else round(flops(operation.node))
    elif how == "measure":
        with torch.random.fork_rng(), real_tensors():
            for operation in graph.operations:
                operation.cost = 0 if operation.node is None else measure(operation.node)
    else:
        raise ValueError(f'costs is "roofline", "roofline:NAME", "flops" or "measure", not {how!r}')


def measure(node: fx.Node, seconds: float = 0.02) -> int:
    """The time of one call on tensors of the same form, the least of a few, in nanoseconds."""
    args, kwargs = fx.map_arg((node.args, node.kwargs), _example)
    device = next(tensors_in(node.meta["val"]), torch.empty(0)).device
    wait = _barrier(device)
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


def _named(name: str) -> Device:
    if name not in DEVICES:
        raise ValueError(f"no device {name!r}: there are {', '.join(DEVICES)}")
    return DEVICES[name]


def _present(graph: JointGraph) -> Device:
    for operation in graph.operations:
        tensors = [] if operation.node is None else tensors_in(operation.node.meta.get("val"))
        for tensor in tensors:
            if tensor.device.type == "cpu":
                return DEVICES["cpu"]
            if tensor.device.type == "cuda":
                title = torch.cuda.get_device_name(tensor.device).lower()
                return next((d for name, d in DEVICES.items() if name in title), DEVICES["a100"])
    return DEVICES["cpu"]


def roofline_ns(node: fx.Node, device: Device, fused: Container[fx.Node] = ()) -> int:
    """The time of one operation, in nanoseconds.

    ``fused`` has the nodes whose results it need not read from memory, nor be launched apart for:
    those that a compiler runs together with it.
    """
    written = dict(_storages(node))
    read = {k: v for source in node.all_input_nodes for k, v in _storages(source)}
    spared = {k: v for s in node.all_input_nodes if s in fused for k, v in _storages(s)}
    moved = sum({**read, **written}.values()) - sum(spared.values())
    seconds = max(flops(node) / _most_flops(node, device), moved / device.bytes)
    return round(seconds * 1e9 + (0 if spared else device.launch_ns))


def _most_flops(node: fx.Node, device: Device) -> float:
    if any(tensor.element_size() <= 2 for tensor in tensors_in(node.meta.get("val"))):
        return device.half_flops
    may_use_tf32 = torch.get_float32_matmul_precision() != "highest"
    is_convolution = "convolution" in str(node.target)
    return device.tf32_flops if is_convolution or may_use_tf32 else device.flops


def _by_roofline(graph: JointGraph, device: Device, fuses: bool) -> None:
    nodes = [operation.node for operation in graph.operations if operation.node is not None]
    fusible = {node for node in nodes if fuses and is_pointwise(node)}
    for operation in graph.operations:
        if operation.node is not None:
            fused = fusible if operation.node in fusible else ()
            operation.cost = roofline_ns(operation.node, device, fused)


def _storages(node: fx.Node) -> Iterator[tuple[int, int]]:
    for tensor in tensors_in(node.meta.get("val")):
        yield storage_key(tensor), storage_bytes(tensor)


def is_pointwise(node: fx.Node) -> bool:
    """Whether a compiler runs it together with operations before and after it."""
    return torch.Tag.pointwise in getattr(node.target, "tags", ())


def flops(node: fx.Node) -> float:
    """FLOPs of matrix products, convolutions and attention; of all else one for each element."""
    packet = getattr(node.target, "overloadpacket", None)
    outputs = node.meta.get("val")
    if packet in flop_registry:
        args, kwargs = fx.map_arg((node.args, node.kwargs), lambda source: source.meta["val"])
        return float(flop_registry[packet](*args, **kwargs, out_val=outputs))
    tensors = [*tensors_in(outputs)]
    tensors += [t for source in node.all_input_nodes for t in tensors_in(source.meta.get("val"))]
    return float(max((tensor.numel() for tensor in tensors), default=0))


def _example(node: fx.Node) -> Any:
    return _like(node.meta["val"])


def _like(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_like(item) for item in value)
    if not isinstance(value, torch.Tensor):
        return value
    shape, stride = tuple(value.shape), tuple(value.stride())
    # Zeros are valid as indices, and slow in no operator.
    made = torch.empty_strided(shape, stride, dtype=value.dtype, device=value.device)
    return made.zero_()


def _barrier(device: torch.device) -> Callable[[], None]:
    if device.type == "cpu":
        return lambda: None
    wait: Callable[[], None] = torch.get_device_module(device).synchronize
    return wait
