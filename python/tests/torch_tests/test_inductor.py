"""Tests training that Inductor compiles: its memory is promised before it runs, and measured."""

from __future__ import annotations

import copy
import json
import shutil
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch_tests.networks import images
from torch_tests.training import loss_of, train

import ckplan
import ckplan.torch
from ckplan.torch import private
from ckplan.torch.errors import ReplayError
from ckplan.torch.inductor import part_decision
from ckplan.torch.inductor import private as inductor
from ckplan.torch.inductor.promise import Promise
from ckplan.torch.report import GraphReport

pytestmark = [
    pytest.mark.skipif(private.version() < private.INDUCTOR_SINCE, reason="PyTorch is too old"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a compiler"),
]


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*(part for _ in range(4) for part in (nn.Linear(32, 32), nn.GELU())))


def allocated(step: Any, trained: list[nn.Parameter]) -> int:
    """Returns the peak of a step by PyTorch's allocator, as the benchmark measures it."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    try:
        import inductor_peak
    finally:
        sys.path.pop(0)
    return inductor_peak.allocated(step, list(trained))


def planned(model: nn.Module, x: torch.Tensor, budget: int | str, **options: Any) -> Any:
    """Returns the compiled step of a model, which has run once."""
    step = ckplan.torch.compile(
        lambda: loss_of(model(x)), budget, compiler="inductor", fullgraph=True, **options
    )
    torch.autograd.grad(step(), list(model.parameters()))
    return step


def settings() -> tuple[Any, ...]:
    """Returns the global state that compiling changes temporarily."""
    from torch._functorch import config as functorch_config
    from torch._functorch._aot_autograd import graph_compile
    from torch._inductor import compile_fx, config
    from torch._inductor.async_compile import AsyncCompile
    from torch._inductor.codegen.cpp import CppScheduling
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V

    return (
        inductor.settings(),
        config.custom_partitioner_fn,
        functorch_config.enable_autograd_cache,
        functorch_config.activation_memory_budget,
        graph_compile.aot_stage2_autograd,
        compile_fx._recursive_joint_graph_passes,  # type: ignore[attr-defined]
        GraphLowering._compile_to_module_lines,
        AsyncCompile.cpp_pybinding,
        AsyncCompile.wait,
        CppScheduling.ready_to_flush,  # type: ignore[attr-defined]
        type(V.choices),
    )


@pytest.mark.parametrize("budget", ["100%", "70%"])
def test_the_allocator_counts_what_was_promised(budget):
    before = settings()
    model, x = mlp(), torch.randn(256, 32)
    step = planned(model, x, budget)
    (graph,) = step.ckplan.graphs
    promise = graph.promise
    assert promise.bytes == allocated(step, list(model.parameters()))
    assert graph.measured_peak_bytes == promise.bytes
    assert promise.bytes <= promise.plain_bytes * float(budget[:-1]) / 100
    assert (promise.way == "as plain Inductor") == (budget == "100%")
    assert "promised peak at most" in step.ckplan.summary()
    assert settings() == before


def test_what_operators_allocate_is_part_of_the_promise():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GELU(), nn.Conv2d(8, 8, 3)), images(8, 16)
    step = planned(model, x, "100%")
    (graph,) = step.ckplan.graphs
    assert graph.promise.in_operators_bytes > 0
    assert graph.promise.bytes == allocated(step, list(model.parameters()))
    assert graph.measured_peak_bytes == graph.promise.bytes


def test_plans_know_what_operators_allocate():
    torch.manual_seed(0)
    layers = [layer for _ in range(3) for layer in (nn.Conv2d(8, 8, 3), nn.GELU())]
    (graph,) = planned(nn.Sequential(*layers), torch.randn(8, 8, 16, 16), "min").ckplan.graphs
    rows = json.loads(graph.plan.graph)["ops"]
    convolutions = [row for row in rows if "convolution" in row["op"]]
    assert any(row["workspace_bytes"] > 0 for row in convolutions)
    assert not any(row["workspace_bytes"] for row in rows if row not in convolutions)


def test_training_is_the_same_within_rounding():
    model = mlp()
    # The model returns more than the loss, whose gradient the caller brings.
    ours = ckplan.torch.compile(copy.deepcopy(model), "75%", compiler="inductor")
    found = train(ours, lambda: torch.randn(256, 32), steps=2)
    expected = train(model, lambda: torch.randn(256, 32), steps=2)
    for step, theirs in zip(found, expected):
        for a, b in zip(step, theirs):
            torch.testing.assert_close(a, b)
    (graph,) = ours.ckplan.graphs
    assert graph.measured_peak_bytes == graph.promise.bytes
    assert "planned" in graph.promise.way


@pytest.mark.parametrize("finishes", [True, False])
def test_the_chosen_step_is_lowered_again_only_where_it_cannot_be_finished(monkeypatch, finishes):
    runs, run = [], inductor._Stage._run
    monkeypatch.setattr(
        inductor._Stage, "_run", lambda *arguments: runs.append(1) or run(*arguments)
    )
    monkeypatch.setattr(part_decision.PartDecision, "is_to_run", finishes)
    model, x = mlp(), torch.randn(256, 32)
    step = planned(model, x, "70%")
    (graph,) = step.ckplan.graphs
    assert len(runs) == graph.promise.rounds + (not finishes)
    assert graph.measured_peak_bytes == graph.promise.bytes
    again = [torch.autograd.grad(step(), list(model.parameters())) for _ in range(2)]
    theirs = torch.autograd.grad(loss_of(model(x)), list(model.parameters()))
    for a, b, c in zip(*again, theirs):
        assert torch.equal(a, b)
        torch.testing.assert_close(a, c)


def test_passes_over_the_joint_graph_run_once(monkeypatch):
    from torch._inductor import compile_fx

    place: Any = compile_fx
    runs, passes = [], place._recursive_joint_graph_passes
    monkeypatch.setattr(
        place, "_recursive_joint_graph_passes", lambda *a, **k: runs.append(1) or passes(*a, **k)
    )
    (graph,) = planned(mlp(), torch.randn(256, 32), "70%").ckplan.graphs
    assert graph.promise.rounds > 1 and len(runs) == 1


def test_flags_are_restored_after_a_failure(monkeypatch):
    before = settings()

    def fails(*_: Any) -> Any:
        assert settings() != before
        raise RuntimeError("planted")

    monkeypatch.setattr(part_decision.PartDecision, "_search", fails)
    with pytest.raises(Exception, match="planted"):
        planned(mlp(), torch.randn(256, 32), "70%")
    assert settings() == before


def test_a_budget_below_the_least_names_what_was_replayed(monkeypatch):
    with pytest.raises(ckplan.InfeasibleError, match="is too little for Inductor's code") as caught:
        planned(mlp(), torch.randn(256, 32), 2000)
    least = caught.value.least_bytes
    assert least > 2000 and f"try budget={least}" in str(caught.value)
    lowered, lower = [], inductor._Stage.lower
    with monkeypatch.context() as patch:
        patch.setattr(inductor._Stage, "lower", lambda *a: lowered.append(1) or lower(*a))
        with pytest.raises(ckplan.InfeasibleError) as again:
            planned(mlp(), torch.randn(256, 32), 1000)
    assert len(lowered) == 1 and again.value.least_bytes == least  # Only plain Inductor.
    (graph,) = planned(mlp(), torch.randn(256, 32), least).ckplan.graphs
    assert graph.promise.bytes == least
    assert graph.promise.rounds == 2  # Plain Inductor, and what was kept.


def test_code_that_needs_other_memory_than_promised_is_not_used(monkeypatch):
    replay, peaks = part_decision.replay, []

    def more(step: Any, uncounted: Any) -> Any:
        found = replay(step, uncounted)
        peaks.append(found.tensors_peak_bytes)
        found._events.append((1 << 20, None))
        return found

    monkeypatch.setattr(part_decision, "replay", more)
    with pytest.raises(ReplayError, match=r"needs \d+ bytes, but its replay promised \d+"):
        planned(mlp(), torch.randn(256, 32), "100%")
    assert peaks


def test_a_step_above_the_promise_warns():
    entry = GraphReport(0, promise=Promise(100, 10, 200, 50, 0.1, "planned", 2, 1.0))
    entry.note_measured(110, False)
    assert "ABOVE" not in entry.line()
    with pytest.warns(ckplan.PlanWarning, match="needed 111 bytes, promised 110"):
        entry.note_measured(111, False)
    assert "ABOVE THE PROMISE" in entry.line()
    entry = GraphReport(0, promise=Promise(100, 10, 200, 50, 0.1, "planned", 2, 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # A retained graph has a warning of its own.
        entry.note_measured(111, True)
    assert "ABOVE THE PROMISE" in entry.line()


def graph_with(value: Any, target: Any = torch.ops.aten.relu.default) -> Any:
    graph = torch.fx.Graph()
    node = graph.call_function(target, ())
    node.meta["val"] = value
    return SimpleNamespace(graph=graph)


def test_what_cannot_be_promised_is_named():
    plain = graph_with(torch.empty(1))
    assert inductor.why_not_promised(plain) == ""
    assert inductor.settings_not_promised() == ""
    with torch._inductor.config.patch(cpp_wrapper=True):
        assert "cpp_wrapper" in inductor.settings_not_promised()
    with torch._inductor.config.patch({"triton.cudagraphs": True}):
        assert "CUDA graph trees" in inductor.settings_not_promised()
    region = graph_with(torch.empty(1), torch.ops.higher_order.invoke_subgraph)
    assert "higher-order operator invoke_subgraph" in inductor.why_not_promised(region)
    assert "communication" in inductor.why_not_promised(
        graph_with(torch.empty(1), torch.ops._c10d_functional.all_reduce.default)
    )


def test_a_graph_without_a_promise_is_planned_as_before(monkeypatch):
    monkeypatch.setattr(inductor, "settings_not_promised", lambda: "planted")
    model, x = mlp(), torch.randn(256, 32)
    step = planned(model, x, "75%")
    (graph,) = step.ckplan.graphs
    assert graph.promise is None
    assert graph.plan.peak_bytes <= 0.75 * graph.plan.keep_all_peak_bytes
    assert "not promised and not measured: planted" in step.ckplan.summary()


@pytest.mark.parametrize("before", [0, 1])
def test_a_graph_may_be_retained_in_any_step(before):
    model, x = mlp(), torch.randn(256, 32)
    step = ckplan.torch.compile(
        lambda: loss_of(model(x)), "100%", compiler="inductor", fullgraph=True
    )
    trained = list(model.parameters())
    for _ in range(before):
        torch.autograd.grad(step(), trained)
    loss = step()
    with pytest.warns(ckplan.PlanWarning, match="a graph is retained"):
        first = torch.autograd.grad(loss, trained, retain_graph=True)
    (graph,) = step.ckplan.graphs
    assert "retain_graph" in graph.line()
    for again in (torch.autograd.grad(loss, trained), torch.autograd.grad(step(), trained)):
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(again, first))
