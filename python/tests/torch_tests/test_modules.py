"""Tests what is captured of a step, and that modules which deviate from their plan are refused."""

from __future__ import annotations

import dataclasses
import gc
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch_tests.networks import Bert, MixtureOfExperts, ResNet, images, tokens
from torch_tests.training import loss_of

import ckplan.torch
from ckplan.torch import graph_planner, module_builder, operators, request
from ckplan.torch.graph import CONSTANT, PARAMETER_GRADIENT, JointGraph
from ckplan.torch.module_builder import build


def captured_of(
    monkeypatch: Any, model: nn.Module, batch: torch.Tensor, **options: Any
) -> JointGraph:
    """Returns the joint graph of a step of the model."""
    graphs: list[JointGraph] = []

    def plan(graph: JointGraph, *rest: Any) -> Any:
        graphs.append(graph)
        return request.make_plan(graph, *rest)

    monkeypatch.setattr(graph_planner, "make_plan", plan)
    planned = ckplan.torch.compile(model, budget="100%", effort="quick", **options)
    loss_of(planned(batch)).backward()
    return graphs[0]


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("L['self'].layers._modules['0']._modules['norm']", "layers.0.norm"),
        ("L['self']", ""),
        ("L['fn'].__self__._modules['0']", "0"),
        ("L['args'][0].model.layers._modules['1']", "model.layers.1"),
        (
            "L['fn'].__self__.__dict__['_modules']['base_model'].__dict__['_modules']['model'].head",
            "base_model.model.head",
        ),
        ("G['model']._modules['1']", "model.1"),
        ("something.else", "something.else"),
    ],
)
def test_modules_have_the_paths_of_the_model(written, path):
    node = SimpleNamespace(meta={"nn_module_stack": {"key": (written, nn.Module)}})
    assert operators.module_path(node) == path


def test_views_are_no_operations_and_share_their_root(monkeypatch):
    class Views(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x):
            return torch.relu(self.linear(x)).view(4, 2, 4).transpose(1, 2)[:, :3]

    graph = captured_of(monkeypatch, Views(), torch.randn(4, 8))
    forward = [op.name for op in graph.operations[: graph.boundary]]
    assert forward == ["addmm", "relu"]
    assert [graph.values[v].bytes for op in graph.operations[:2] for v in op.writes] == [128, 128]


def test_measured_costs_are_of_real_operations(monkeypatch):
    model = nn.Sequential(nn.Linear(1024, 1024), nn.Linear(1024, 8))
    graph = captured_of(monkeypatch, model, torch.randn(256, 1024), costs="measure")
    costs = {operation.name: operation.cost for operation in graph.operations}
    # One millisecond would be 540 GFLOP/s on one thread. Fake tensors take a quarter of that time.
    assert costs["mm_2"] > 1_000_000


def test_kinds_of_values(monkeypatch):
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8).requires_grad_(False))
    graph = captured_of(monkeypatch, model, torch.randn(4, 8))
    sizes = {
        kind: sorted(value.bytes for value in graph.values if value.kind == kind)
        for kind in (CONSTANT, PARAMETER_GRADIENT)
    }
    assert sizes[CONSTANT] == [32, 32, 128, 256, 256]
    assert sizes[PARAMETER_GRADIENT] == [32, 256]


def test_routing_runs_once_and_statistics_are_updated_at_the_boundary(monkeypatch):
    graph = captured_of(monkeypatch, MixtureOfExperts(), torch.randn(2, 8, 32))
    once = {op.name for op in graph.operations if not op.repeats}
    assert {"topk", "topk_1", "boundary"} <= once
    torch._dynamo.reset()
    graph = captured_of(monkeypatch, ResNet((1,), width=4), images())
    norms = sum(isinstance(m, nn.BatchNorm2d) for m in ResNet((1,), width=4).modules())
    assert len(graph.boundary_copies) == 3 * norms  # Mean, variance and the number of batches.


def test_memory_for_one_gradient_is_for_one_run(monkeypatch):
    model = nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16), nn.Linear(16, 2))
    graph = captured_of(monkeypatch, model, torch.randn(4, 16))
    backward = [op for op in graph.operations if op.is_backward]
    # All others make a gradient of a parameter, or another value.
    assert [op.name for op in backward if not op.repeats] == ["native_layer_norm_backward"]


class CountingSet(set):
    """Counts the membership tests."""

    asked = 0

    def __contains__(self, item: object) -> bool:
        CountingSet.asked += 1
        return super().__contains__(item)


def test_names_of_copied_nodes_are_found_at_once(monkeypatch):
    made = []

    class Graph(torch.fx.Graph):
        def __init__(self, *arguments: Any, **options: Any):
            super().__init__(*arguments, **options)
            names = CountingSet(self._graph_namespace._used_names)
            self._graph_namespace._used_names = names
            made.append(self)

    def build_counting(*arguments: Any, **options: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(module_builder.fx, "Graph", Graph)
            return build(*arguments, **options)

    monkeypatch.setattr(graph_planner, "build", build_counting)
    CountingSet.asked = 0
    planned = ckplan.torch.compile(Bert(8, 16, 2, 64, 16), budget="60%", effort="quick")
    loss_of(planned(tokens())).backward()
    nodes = sum(len(graph.nodes) for graph in made[:2])
    assert CountingSet.asked < 2.5 * nodes


def test_the_garbage_collector_rests_while_modules_are_built(monkeypatch):
    phases = []

    def build_watched(*arguments: Any, **options: Any) -> Any:
        gc.callbacks.append(lambda phase, details: phases.append(phase))
        try:
            return build(*arguments, **options)
        finally:
            gc.callbacks.pop()

    monkeypatch.setattr(graph_planner, "build", build_watched)
    planned = ckplan.torch.compile(Bert(8, 16, 2, 64, 16), budget="60%", effort="quick")
    loss_of(planned(tokens())).backward()
    assert not phases
    assert gc.isenabled()


@pytest.mark.parametrize("change", [-1, 1])
def test_modules_of_another_peak_than_planned_are_refused(monkeypatch, change):
    def wrong(*arguments: Any) -> Any:
        plan = request.make_plan(*arguments)
        return dataclasses.replace(plan, peak_bytes=plan.peak_bytes + change)

    monkeypatch.setattr(graph_planner, "make_plan", wrong)
    planned = ckplan.torch.compile(nn.Linear(4, 4), budget="100%", effort="quick")
    with pytest.raises(ckplan.torch.ReplayError, match="not used"):
        planned(torch.randn(2, 4))


def test_a_plan_that_reads_what_it_has_not_made_is_refused(monkeypatch):
    def wrong(joint: Any, graph: JointGraph, steps: list[int], **options: Any) -> Any:
        return build(joint, graph, [step for step in steps if step != 0], **options)

    monkeypatch.setattr(graph_planner, "build", wrong)
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    planned = ckplan.torch.compile(model, budget="100%", effort="quick")
    with pytest.raises(Exception, match="read before the plan computes it"):
        planned(torch.randn(2, 4))


@pytest.mark.parametrize(
    ("text", "count"),
    [(5, 5), ("512", 512), ("2KiB", 2048), ("1.5MiB", 3 << 19), ("16GB", 16 * 10**9)],
)
def test_sizes_are_those_of_the_program(text, count):
    assert request.Request(total=text).limit_bytes == count


@pytest.mark.parametrize("text", ["16G", "1.5 MiB", "1T", "", "GiB", "12 apples", "1.2.3MB", "-1"])
def test_what_the_program_takes_for_no_size_is_refused_at_once(text):
    with pytest.raises(ValueError, match="is not understood"):
        ckplan.torch.compile(nn.Linear(4, 4), total=text)


def test_the_program_says_what_was_probably_meant():
    with pytest.raises(ValueError, match='^budget: .*did you mean "16GiB"'):
        ckplan.torch.compile(nn.Linear(4, 4), budget="16G")


@pytest.mark.parametrize(
    ("optimizer", "master_weights", "state"),
    [
        ("sgd", False, 0),
        ("momentum", False, 16404),
        ("adam", False, 2 * 16404),
        ("adamw", False, 2 * 16404),
        # Two bytes for each of 4096 elements and two floats for each of 16 blocks; 10 elements
        # have two floats each.
        ("adam8bit", False, 8192 + 128 + 80),
        # The 10 elements are in 16 bits.
        ("adam", True, 2 * 16384 + 3 * 40),
    ],
)
def test_the_state_of_optimizers_is_that_of_the_program(optimizer, master_weights, state):
    asked = request.Request(total="1GiB", optimizer=optimizer, master_weights=master_weights)
    assert asked.optimizer_state([(10, 2, 1), (4096, 4, 1)]) == state


def test_an_optimizer_that_the_program_does_not_know():
    with pytest.raises(
        ValueError, match='^optimizer: "adamx" is (none|not one) of .*sgd, momentum, adam'
    ):
        ckplan.torch.compile(nn.Linear(4, 4), budget="60%", optimizer="adamx")


def test_the_program_is_asked_once_about_a_limit(monkeypatch):
    request.Request(budget="61%")
    monkeypatch.setattr(ckplan, "plan", lambda *_, **__: pytest.fail("asked again"))
    request.Request(budget="61%", compiler="inductor")
