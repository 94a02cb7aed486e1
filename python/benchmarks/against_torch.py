"""Compares plans with PyTorch's ``activation_memory_budget`` and with checkpoints of blocks.

    python python/benchmarks/against_torch.py [NETWORK...] [--settings 0.8 0.5 ...]

All plans are for the same joint graph: the one that ``torch.compile`` passes to its partitioner,
with Inductor's decompositions and its passes over joint graphs. The same code simulates all plans
(``ckplan.torch.module_replay``), with the same costs: T is added time by the roofline of an A100 (TF32,
pointwise operations fused with the producers of their inputs), and F is added FLOPs, both in percent
of a step that keeps everything. For each peak that PyTorch reaches, ckplan gets that peak as its
budget, once with each cost. In the last row the budget is half of the least peak of
``activation_memory_budget``, whose default in ``torch.compile`` is 1.0. Nothing is trained, so
training takes no memory.
"""

from __future__ import annotations

import argparse
import copy
import math
import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import fx, nn
from torch._functorch import config as functorch_config
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from torch_tests.networks import Bert, Gpt, ResNet, Vit

import ckplan
from ckplan.torch import operators, private, private_autograd
from ckplan.torch.capture import capture, tensors_in
from ckplan.torch.costs import device_named, flops, is_pointwise, roofline_ns, set_costs
from ckplan.torch.graph import JointGraph
from ckplan.torch.inductor import lowered_step
from ckplan.torch.inductor import private as inductor
from ckplan.torch.module_builder import Modules, build
from ckplan.torch.module_replay import replay_modules
from ckplan.torch.request import Request, make_plan

SETTINGS = (1.0, 0.8, 0.5, 0.2, 0.05)

NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor], str]] = {
    "resnet50": (ResNet, lambda: torch.empty(8, 3, 224, 224), "batch 8, 224 x 224"),
    "bert": (Bert, lambda: torch.zeros(8, 512, dtype=torch.long), "12 layers, batch 8, 512"),
    "vit": (Vit, lambda: torch.empty(8, 3, 224, 224), "12 layers, fused attention, batch 8"),
    "gpt2": (Gpt, lambda: torch.zeros(4, 512, dtype=torch.long), "12 layers, tied, batch 4, 512"),
}


class _CapturedError(Exception):
    """Ends the compilation once the joint graph is captured."""


@dataclass
class Step:
    """The joint graph of a training step, as PyTorch hands it to a partitioner."""

    joint: fx.GraphModule
    inputs: Any
    options: dict[str, Any]

    def copy(self) -> fx.GraphModule:
        """Returns a copy for a partitioner to change."""
        return fx.GraphModule(self.joint, copy.deepcopy(self.joint.graph))


@dataclass
class Point:
    """The needs of a plan: peak bytes, and added time and added FLOPs as shares of a step."""

    name: str
    peak: int
    time: float
    flops: float


def trace(model: nn.Module, batch: torch.Tensor, compiler: str) -> Step:
    """Returns the joint graph of the model with its loss. Runs nothing.

    ``compiler`` is ``"inductor"`` for the graph that ``torch.compile`` divides, and ``"eager"`` for
    the graph of eager mode's own operators.
    """
    found: list[Step] = []

    def partition(joint: fx.GraphModule, inputs: Any, **options: Any) -> Any:
        found.append(Step(joint, inputs, options))
        raise _CapturedError

    def step(data: torch.Tensor) -> torch.Tensor:
        output = model(data)
        return output[-1] if isinstance(output, tuple) else output.float().square().mean()

    def by_inductor(module: fx.GraphModule, inputs: list[Any]) -> Any:
        return inductor.compile(module, inputs, lowered_step.FixedPartition(partition))

    by_operators = private_autograd.aot_autograd(
        fw_compiler=lambda module, _: module,
        partition_fn=partition,
        keep_inference_input_mutations=True,
    )
    torch._dynamo.reset()
    backend = by_inductor if compiler == "inductor" else by_operators
    try:
        torch.compile(step, backend=backend, dynamic=False, fullgraph=True)(batch)
    except Exception:
        if not found:
            raise
    return found[0]


def captured(step: Step, costs: str) -> JointGraph:
    """Returns the step as ckplan plans it for Inductor."""
    static = set(step.options["static_lifetime_input_indices"])
    count = step.options["num_fwd_outputs"]
    graph = capture(step.joint, count, static, replays_random=False)
    set_costs(graph, costs, fuses=True)
    return graph


class Judge:
    """Computes peak, time and FLOPs of the two modules of a step."""

    def __init__(self, step: Step):
        self.timed, self.counted = captured(step, "roofline:a100-40g"), captured(step, "flops")
        self._uncounted = self.timed.parameter_gradients()
        everything = build(step.joint, self.timed, [op.id for op in self.timed.operations])
        self._time_once, self._flops_once = _time(everything), _flops(everything)
        self.keep_all_bytes = replay_modules(everything, self._uncounted).peak_bytes

    def point(self, name: str, modules: Modules) -> Point:
        """Measures the forward and backward modules."""
        peak = replay_modules(modules, self._uncounted).peak_bytes
        further_time = _time(modules) / self._time_once - 1
        return Point(name, peak, further_time, _flops(modules) / self._flops_once - 1)


def _time(modules: Modules) -> int:
    """Returns the time of both modules in nanoseconds; no kernel spans both."""
    spent = 0
    for nodes in _operations(modules):
        fusible = {node for node in nodes if is_pointwise(node)}
        for node in nodes:
            fused = fusible if node in fusible else ()
            spent += roofline_ns(node, device_named("a100-40g"), fused)
    return spent


def _flops(modules: Modules) -> float:
    return sum(flops(node) for nodes in _operations(modules) for node in nodes)


def _operations(modules: Modules) -> Iterable[list[fx.Node]]:
    for module in (modules.forward, modules.backward):
        yield [node for node in module.graph.nodes if allocates(node)]


def allocates(node: fx.Node) -> bool:
    """Returns whether the node allocates memory: it is neither a view nor an item of a result."""
    if node.op != "call_function" or node.target is operator.getitem:
        return False
    if operators.is_declared_view(node) or operators.is_mutation(node):
        return False
    known = {private.storage_key(t) for s in node.all_input_nodes for t in tensors_of(s)}
    return any(private.storage_key(tensor) not in known for tensor in tensors_of(node))


def tensors_of(node: fx.Node) -> list[torch.Tensor]:
    """Returns the tensors of a node."""
    return list(tensors_in(node.meta.get("val")))


def divide(step: Step) -> Modules:
    """Returns the modules that PyTorch's partitioner makes of the step."""
    joint = step.copy()
    fake_mode = next(t.fake_mode for node in joint.graph.nodes for t in tensors_of(node))
    with fake_mode:
        halves = min_cut_rematerialization_partition(
            joint, step.inputs, compiler="inductor", **step.options
        )
    return Modules(*halves, step.options["num_fwd_outputs"])


def torch_points(step: Step, judge: Judge, settings: tuple[float, ...]) -> Iterator[Point]:
    """Yields the figures of the step with each setting of the knob."""
    for setting in settings:
        with functorch_config.patch(activation_memory_budget=setting):
            yield judge.point(f"activation_memory_budget {setting}", divide(step))


def checkpoint_blocks(model: nn.Module) -> nn.Module:
    """Returns the model with a checkpoint around each block or layer."""
    blocks = model.get_submodule("blocks" if isinstance(model, ResNet) else "layers")
    for block in blocks.children():
        plain = block.forward
        block.forward = lambda x, plain=plain: checkpoint(plain, x, use_reentrant=False)
    return model


def planned(step: Step, judge: Judge, limit: int, request: Request) -> Point:
    """Returns the figures of ckplan's plan within ``limit`` bytes."""
    graph = judge.timed if request.costs != "flops" else judge.counted
    plan = make_plan(graph, request, limit)
    modules = build(step.joint, graph, plan.steps)
    point = judge.point(f"ckplan, {request.costs}", modules)
    assert point.peak == plan.peak_bytes <= limit
    return point


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--settings", nargs="*", type=float, default=list(SETTINGS))
    parser.add_argument("--effort", default="quick")
    asked = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    heads = ["network (peak, keeping all)", "PyTorch", "peak, MiB", "F", "T"]
    heads += ["ckplan: F", "T"]
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
    for name in asked.networks:
        compare(name, tuple(asked.settings), asked.effort)


def compare(name: str, settings: tuple[float, ...], effort: str) -> None:
    """Prints the rows of a network: one for each peak that PyTorch reaches."""
    make, batch, words = NETWORKS[name]
    with torch.device("cpu"):
        model, data = make(), batch()
    step = trace(model, data, "inductor")
    judge = Judge(step)
    points = list(torch_points(step, judge, settings))
    wrapped = trace(checkpoint_blocks(make()), data, "inductor")
    points.append(Judge(wrapped).point("a checkpoint for each block", divide(wrapped)))
    half = min(p.peak for p in points if "budget" in p.name) // 2
    points.append(Point("(half of its least peak)", half, math.nan, math.nan))
    seen: set[int] = set()
    for point in points:
        if point.peak in seen:
            continue
        seen.add(point.peak)
        title = f"{name}, {words} ({judge.keep_all_bytes / 2**20:,.0f} MiB)"
        row = [title, point.name, f"{point.peak / 2**20:,.0f}", _percent(point.flops)]
        row.append(_percent(point.time))
        for costs in ("flops", "roofline:a100-40g"):
            request = Request(budget=point.peak, costs=costs, effort=effort)
            try:
                found = planned(step, judge, point.peak, request)
                row.append(_percent(found.flops if costs == "flops" else found.time))
            except ckplan.InfeasibleError:
                row.append("no plan")
        print("| " + " | ".join(row) + " |", flush=True)


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{round(100 * share, 1) + 0.0:.1f}"  # Never -0.0.


if __name__ == "__main__":
    main()
