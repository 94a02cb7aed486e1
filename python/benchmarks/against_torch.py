"""Compares plans with PyTorch's ``activation_memory_budget`` and with checkpoints of blocks.

    python python/benchmarks/against_torch.py [NETWORK...] [--settings 0.8 0.5 ...]

All plans are of the same joint graph, replayed on paper by the same code (``ckplan.torch.judge``),
with the same costs: T is further time by the roofline of an A100 (TF32, no fusion), F further
FLOPs, both in per cent of a step. For each peak that PyTorch reaches, ckplan is given that peak as
its budget, once with each cost; in the last row half of the least peak of
``activation_memory_budget``. Nothing is trained, so no memory is needed for it.
"""

from __future__ import annotations

import argparse
import copy
import math
import operator
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import fx, nn
from torch._functorch import config as functorch_config
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import ckplan
from ckplan.torch import operators, private
from ckplan.torch.building import Modules, build
from ckplan.torch.capture import capture, tensors_in
from ckplan.torch.costs import DEVICES, flops, roofline_ns, set_costs
from ckplan.torch.graph import JointGraph
from ckplan.torch.judge import replay_modules
from ckplan.torch.request import Request, make_plan
from torch_tests.networks import Bert, Gpt, ResNet, Vit

SETTINGS = (0.9, 0.8, 0.6, 0.5, 0.4, 0.2, 0.1, 0.05, 0.0)

NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor], str]] = {
    "resnet50": (ResNet, lambda: torch.empty(8, 3, 224, 224), "batch 8, 224 x 224"),
    "bert": (Bert, lambda: torch.zeros(8, 512, dtype=torch.long), "12 layers, batch 8, 512"),
    "vit": (Vit, lambda: torch.empty(8, 3, 224, 224), "12 layers, fused attention, batch 8"),
    "gpt2": (Gpt, lambda: torch.zeros(4, 512, dtype=torch.long), "12 layers, tied, batch 4, 512"),
}


class _CapturedError(Exception):
    """Ends the compilation when the joint graph is there."""


@dataclass
class Step:
    """The joint graph of a training step, as PyTorch hands it to a partitioner."""

    joint: fx.GraphModule
    inputs: Any
    options: dict[str, Any]

    def copy(self) -> fx.GraphModule:
        """A copy for a partitioner to change."""
        return fx.GraphModule(self.joint, copy.deepcopy(self.joint.graph))


@dataclass
class Point:
    """What a plan needs: bytes at its peak, further time and further FLOPs as shares of a step."""

    name: str
    peak: int
    time: float
    flops: float


def trace(model: nn.Module, batch: torch.Tensor) -> Step:
    """Returns the joint graph of the model with its loss. Runs nothing."""
    found: list[Step] = []

    def partition(joint: fx.GraphModule, inputs: Any, **options: Any) -> Any:
        found.append(Step(joint, inputs, options))
        raise _CapturedError

    def step(data: torch.Tensor) -> torch.Tensor:
        output = model(data)
        return output[-1] if isinstance(output, tuple) else output.float().square().mean()

    torch._dynamo.reset()
    backend = private.aot_autograd(
        fw_compiler=lambda module, _: module,
        partition_fn=partition,
        keep_inference_input_mutations=True,
    )
    try:
        torch.compile(step, backend=backend, dynamic=False, fullgraph=True)(batch)
    except Exception:
        if not found:
            raise
    return found[0]


def captured(step: Step, costs: str) -> JointGraph:
    """The step as ckplan plans it."""
    static = set(step.options["static_lifetime_input_indices"])
    graph = capture(step.joint, step.options["num_fwd_outputs"], static)
    set_costs(graph, costs, fuses=False)
    return graph


class Judge:
    """Peak, time and FLOPs of any two modules that were made from one step."""

    def __init__(self, step: Step):
        self.timed, self.counted = captured(step, "roofline:a100"), captured(step, "flops")
        nodes = [operation.node for operation in self.timed.operations]
        self._time_once = sum(_nanoseconds(node) for node in nodes if node is not None)
        self._flops_once = sum(flops(node) for node in nodes if node is not None)
        self._apart = self.timed.parameter_gradients()

    def point(self, name: str, modules: Modules) -> Point:
        """Judges two modules."""
        peak = replay_modules(modules, self._apart).peak_bytes
        runs = [*modules.forward.graph.nodes, *modules.backward.graph.nodes]
        runs = [node for node in runs if makes_memory(node)]
        spent_time = sum(_nanoseconds(node) for node in runs) / self._time_once
        spent_flops = sum(flops(node) for node in runs) / self._flops_once
        return Point(name, peak, spent_time - 1, spent_flops - 1)


def _nanoseconds(node: fx.Node) -> int:
    return roofline_ns(node, DEVICES["a100"])


def makes_memory(node: fx.Node) -> bool:
    """Whether it is an operation of its own: no view, no item of several results."""
    if node.op != "call_function" or node.target is operator.getitem:
        return False
    if operators.is_declared_view(node) or operators.is_mutation(node):
        return False
    known = {private.storage_key(t) for s in node.all_input_nodes for t in tensors_of(s)}
    return any(private.storage_key(tensor) not in known for tensor in tensors_of(node))


def tensors_of(node: fx.Node) -> list[torch.Tensor]:
    """The tensors that a node stands for."""
    return list(tensors_in(node.meta.get("val")))


def divide(step: Step) -> Modules:
    """What PyTorch's partitioner makes of the step."""
    joint = step.copy()
    fake_mode = next(t.fake_mode for node in joint.graph.nodes for t in tensors_of(node))
    with fake_mode:
        halves = min_cut_rematerialization_partition(joint, step.inputs, **step.options)
    for half in halves:
        leave_out_generator_states(half)
    return Modules(*halves, step.options["num_fwd_outputs"])


def leave_out_generator_states(half: fx.GraphModule) -> None:
    """Lets the states that checkpoints save for random operations count as nothing.

    Their size is unknown before they run, and ckplan's own are not counted either.
    """
    for node in half.graph.nodes:
        if any(not isinstance(t.untyped_storage().nbytes(), int) for t in tensors_of(node)):
            node.meta["val"] = torch.empty(0, dtype=torch.uint8)


def torch_points(step: Step, judge: Judge, settings: tuple[float, ...]) -> Iterator[Point]:
    """The step with each setting of the knob."""
    for setting in settings:
        with functorch_config.patch(activation_memory_budget=setting):
            yield judge.point(f"activation_memory_budget {setting}", divide(step))


def checkpoint_blocks(model: nn.Module) -> nn.Module:
    """The model with a checkpoint around each block or layer."""
    blocks = model.get_submodule("blocks" if isinstance(model, ResNet) else "layers")
    for block in blocks.children():
        plain = block.forward
        block.forward = lambda x, plain=plain: checkpoint(plain, x, use_reentrant=False)
    return model


def planned(step: Step, judge: Judge, limit: int, costs: str) -> tuple[Point, float]:
    """The plan of ckplan within ``limit`` bytes, and how long planning took."""
    graph = judge.timed if costs != "flops" else judge.counted
    before = time.perf_counter()
    plan = make_plan(graph, Request(budget=limit, costs=costs, effort="normal"), limit)
    seconds = time.perf_counter() - before
    modules = build(step.joint, graph, plan.steps)
    point = judge.point(f"ckplan, {costs}", modules)
    assert point.peak == plan.peak_bytes <= limit
    return point, seconds


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--settings", nargs="*", type=float, default=list(SETTINGS))
    asked = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    heads = ["network (peak, keeping all)", "PyTorch", "peak, MiB", "F", "T"]
    heads += ["ckplan: F", "T", "planning, s"]
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
    for name in asked.networks:
        compare(name, tuple(asked.settings))


def compare(name: str, settings: tuple[float, ...]) -> None:
    """Prints the rows of a network: one for each peak that PyTorch reaches."""
    make, batch, words = NETWORKS[name]
    with torch.device("cpu"):
        model, data = make(), batch()
    step = trace(model, data)
    judge = Judge(step)
    everything = build(step.joint, judge.timed, [op.id for op in judge.timed.operations])
    keep_all = judge.point("keep all", everything).peak
    points = list(torch_points(step, judge, settings))
    wrapped = trace(checkpoint_blocks(make()), data)
    points.append(Judge(wrapped).point("a checkpoint for each block", divide(wrapped)))
    half = min(p.peak for p in points if "budget" in p.name) // 2
    points.append(Point("(half of its least peak)", half, math.nan, math.nan))
    seen: set[int] = set()
    for point in points:
        if point.peak in seen or point.peak >= keep_all:
            continue
        seen.add(point.peak)
        title = f"{name}, {words} ({keep_all / 2**20:,.0f} MiB)"
        row = [title, point.name, f"{point.peak / 2**20:,.0f}", _percent(point.flops)]
        row.append(_percent(point.time))
        try:
            by_time, seconds = planned(step, judge, point.peak, "roofline:a100")
            by_flops, _ = planned(step, judge, point.peak, "flops")
            row += [_percent(by_flops.flops), _percent(by_time.time), f"{seconds:.1f}"]
        except ckplan.InfeasibleError:
            row += ["no plan", "no plan", ""]
        print("| " + " | ".join(row) + " |", flush=True)


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share:.1f}"


if __name__ == "__main__":
    main()
