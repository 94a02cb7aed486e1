"""Tests estimates of steps that Inductor compiles, and what its kernels are said to cost."""

from __future__ import annotations

import dataclasses
import shutil
from typing import Any

import pytest
import torch
from torch import nn
from torch_tests import wrappers
from torch_tests.test_modules import captured_of
from torch_tests.training import loss_of

import ckplan.torch
from ckplan.torch import costs, private
from ckplan.torch.estimation.lowering import trace_of
from ckplan.torch.graph import JointGraph, Operation
from ckplan.torch.inductor import costs as kernel_costs
from ckplan.torch.inductor import part_decision, timing
from ckplan.torch.inductor.replay import Form, KernelCall, OperatorCall, replay
from ckplan.torch.inductor.wrapper import Kernel

pytestmark = pytest.mark.skipif(
    private.version() < private.INDUCTOR_SINCE, reason="PyTorch is too old"
)


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(part for _ in range(4) for part in (nn.Linear(32, 32), nn.GELU()))
        )

    def forward(self, x: Any) -> Any:
        return {"loss": self.layers(x).square().mean()}


X = torch.randn(256, 32)


def estimate(x: torch.Tensor = X, **options: Any) -> Any:
    return ckplan.torch.estimate(
        Mlp, x, device="rtx4090-24g", precision="fp32", optimizer="sgd", **options
    )


class FoundError(Exception):
    """Ends a compilation when the plain candidate is known."""


@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor looks for a compiler")
def test_an_estimate_is_the_replay_of_the_step_that_trains(monkeypatch):
    found: list[Any] = []

    def ends(_: Any, __: Any, plain: Any, ___: Any) -> Any:
        found.append(plain)
        raise FoundError

    monkeypatch.setattr(part_decision.PartDecision, "_search", ends)
    model = Mlp()
    step = ckplan.torch.compile(
        lambda: model(X)["loss"], total="1GiB", compiler="inductor", fullgraph=True
    )
    with pytest.raises(Exception, match="FoundError"):
        step()
    whole = estimate(compiler="inductor")
    assert whole.backward_bytes == found[0].tensors_bytes
    lines = {line.name: line for line in whole.keep_all.lines}
    assert lines["step"].bytes == whole.backward_bytes
    assert "Inductor's code" in lines["step"].source
    assert whole.fits and whole.planned is None


@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor looks for a compiler")
def test_what_does_not_fit_is_divided_until_it_does():
    x = torch.empty(1 << 16, 32)  # An activation has 8 MiB.
    whole = estimate(x, compiler="inductor", context=0, memory="8GiB")
    small = estimate(x, compiler="inductor", context=0, memory=whole.keep_all.bytes - (16 << 20))
    assert not small.fits and small.planned is not None
    assert small.planned.bytes < small.keep_all.bytes
    assert 'compiler="inductor"' in small.arguments()
    assert len(small.curve) > 1
    assert small.curve[-1].peak_bytes >= small.backward_bytes


def test_sizes_are_not_sought_in_compiled_code():
    with pytest.raises(ValueError, match='largest needs compiler="eager"'):
        estimate(compiler="inductor", largest="batch")
    with pytest.raises(ValueError, match='returns="all" needs compiler="eager"'):
        estimate(compiler="inductor", returns="all")
    with pytest.raises(ValueError, match='compiler must be "eager" or "inductor"'):
        estimate(compiler="triton")


def test_the_changes_of_a_replay_are_events_of_a_step():
    found = replay(wrappers.step(), [])
    trace = trace_of(found.changes)
    live = peak = 0
    for event in trace.events:
        live += event.bytes
        peak = max(peak, live)
    assert peak == found.tensors_peak_bytes
    assert sum(e.bytes for e in trace.events) == live == 8 + 2 * 1024  # The loss, e and f.
    assert len(trace.left) == 4


def test_kernels_cost_what_they_move_and_operators_what_they_compute():
    device = costs.device_named("cpu")
    calls = replay(wrappers.step(), []).calls
    kernel = next(call for call in calls if isinstance(call, KernelCall))
    moved = 2 * 1024 / device.bytes_per_second
    assert kernel_costs.call_ns(kernel, device) == round(1e9 * moved + device.launch_ns)
    product = next(call for call in calls if isinstance(call, OperatorCall))
    work = 2 * 16**3 / device.matrix_flops_per_second
    moved = 4 * 1024 / device.bytes_per_second
    assert kernel_costs.call_ns(product, device) == round(1e9 * max(work, moved) + device.launch_ns)
    whole = kernel_costs.step_cost(calls, "roofline", device)
    assert whole == sum(kernel_costs.call_ns(call, device) for call in calls)


def test_masks_cost_what_converting_them_takes():
    device = costs.device_named("cpu")
    text = "auto tmp0 = VecMask<float,1>::from(in_ptr0 + x0); tmp1.store(out_ptr0 + x0)"
    scalar = "auto tmp0 = in_ptr0[x0]; out_ptr0[x0] = tmp1"

    def cost(text: str, read: torch.dtype, written: torch.dtype) -> int:
        forms = tuple(Form((1 << 16,), (1,), dtype, "cpu") for dtype in (read, written))
        return kernel_costs.call_ns(KernelCall(Kernel("kernel", text), forms), device)

    none = cost(text, torch.int8, torch.int8)
    reads, writes = cost(text, torch.bool, torch.int8), cost(text, torch.int8, torch.bool)
    assert none < reads < writes < cost(text, torch.bool, torch.bool)
    cycles = 8 * 3e9 / 1e9  # Of eight cores, in a nanosecond.
    assert writes - device.launch_ns == pytest.approx((1 << 16) * 20 / cycles, rel=0.01)
    assert cost(scalar, torch.bool, torch.bool) == none


@pytest.mark.parametrize(
    "drawn", ["normalized_rand_cpu(tmp0, x0)", "randn_cpu(tmp0, x0)", "tl.rand(tmp0, x0)"]
)
def test_random_numbers_cost_what_drawing_them_takes(drawn: str):
    device = costs.device_named("cpu")
    form = Form((1 << 16,), (1,), torch.float32, "cpu")

    def cost(text: str) -> int:
        kernel = Kernel("kernel", f"auto tmp1 = {text}; in_ptr0[0]; out_ptr0[x0] = tmp1")
        return kernel_costs.call_ns(KernelCall(kernel, (form, form)), device)

    cycles = 8 * 3e9 / 1e9  # Of eight cores, in a nanosecond.
    assert cost(drawn) - device.launch_ns == pytest.approx((1 << 16) * 25 / cycles, rel=0.01)
    assert cost("tmp0") < cost(drawn) / 5


def test_what_draws_random_numbers_may_cost_what_that_takes():
    device = costs.device_named("cpu")
    traced = torch.fx.Graph()
    drawn = traced.call_function(torch.ops.prims.inductor_random.default)
    added = traced.call_function(torch.ops.aten.add.Tensor)
    for node in (drawn, added):
        node.meta["val"] = torch.empty(1000, device="meta")
    operations = [Operation(i, node, [], [], cost=5) for i, node in enumerate((drawn, added))]
    graph = kernel_costs.with_drawn_costs(JointGraph(operations=operations), device)
    cycles = 8 * 3e9 / 1e9  # Of eight cores, in a nanosecond.
    assert graph.operations[0].cost == pytest.approx(5 + 1000 * 25 / cycles, rel=0.01)
    assert graph.operations[1].cost == operations[0].cost == 5
    without = JointGraph(operations=operations[1:])
    assert kernel_costs.with_drawn_costs(without, device) is without


def test_what_is_fused_away_costs_no_traffic(monkeypatch):
    def chain(x: Any) -> Any:
        return loss_of(torch.exp(torch.sin(torch.cos(x))) @ torch.ones(256, 256))

    class Chain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(256, 256))

        def forward(self, x: Any) -> Any:
            return chain(x * self.scale)

    graph = captured_of(monkeypatch, Chain(), torch.randn(256, 256))
    device = costs.device_named("a100-80g")
    kernel_costs.set_fused_costs(graph, device)
    named = {operation.name: operation.cost for operation in graph.operations}
    size = 4 * 256 * 256 / device.bytes_per_second * 1e9
    assert named["cos"] < size / 2  # It neither reads nor writes memory.
    assert named["exp"] >= size  # A product reads it.


def test_each_kernel_is_timed_once(monkeypatch):
    runs: list[str] = []

    def compiled(texts: list[str]) -> list[Any]:
        assert len(set(texts)) == len(texts)
        return [lambda *_, text=text: runs.append(text) for text in texts]

    monkeypatch.setattr(timing, "_known", {})
    monkeypatch.setattr(timing.private_kernels, "compiled_kernels", compiled)
    calls = replay(wrappers.step(), []).calls
    found = timing.times(calls)
    assert set(found) == {call.key for call in calls} and min(found.values()) >= 0
    known = len(runs)
    kernels = {call.key for call in calls if isinstance(call, KernelCall)}
    assert known == len(kernels) * timing._RUNS
    monkeypatch.setattr(timing, "_known", {})  # Simulates another process.
    assert timing.times(calls) == found
    assert len(runs) == known


OFFSETS = Form((2,), (1,), torch.int8, "cpu")


@pytest.mark.parametrize(
    ("accepted", "text", "tried"),
    [
        (4, "kernel()", [0, 1, 2, 3, *[4] * 7]),  # The offsets of a pooling are such values.
        (-1, "kernel()", list(range(9))),
        (0, "kernel(): tl.device_assert(x < 8)", []),  # A failed check would make the GPU unusable.
    ],
)
def test_a_kernel_that_checks_indices_is_timed_with_valid_ones(
    monkeypatch, accepted: int, text: str, tried: list[int]
):
    found: list[int] = []

    def kernel(values: torch.Tensor, offsets: torch.Tensor) -> None:
        assert values.any() and len(values.unique()) > 1  # Branches depend on values.
        found.append(int(offsets[0]))
        if found[-1] != accepted:
            raise RuntimeError("index out of bounds")

    monkeypatch.setattr(timing, "_known", {})
    monkeypatch.setattr(timing.cache, "load_numbers", lambda *_: {})
    monkeypatch.setattr(
        timing.private_kernels, "compiled_kernels", lambda texts: [kernel] * len(texts)
    )
    values = dataclasses.replace(OFFSETS, dtype=torch.float32)
    call = KernelCall(Kernel("kernel", text), (values, OFFSETS))
    is_timed = set(timing.times([call])) == {call.key}
    assert found == tried
    assert is_timed == (accepted in found)
    device = costs.device_named("cpu")
    cost = kernel_costs.step_cost([call], "measure", device)
    assert is_timed or cost == kernel_costs.call_ns(call, device)
