"""``memory=`` bounds all that training needs of a device, by the lines of docs/accounting.md."""

from __future__ import annotations

import json

import ckplan.torch
import pytest
import torch
from torch import nn

from ckplan.torch.graph import from_json
from ckplan.torch.memory import bytes_with_allocator

MIB = 1 << 20
X, LARGE = torch.zeros(64, 256), torch.zeros(1 << 14, 256)
TRAINED = [(256, 4, 6), (256 * 256, 4, 6)]


def network() -> nn.Module:
    layers = [layer for _ in range(6) for layer in (nn.Linear(256, 256), nn.Tanh())]
    torch.manual_seed(0)
    return nn.Sequential(*layers)


def trained(batch: torch.Tensor = X, **options) -> ckplan.torch.Report:
    torch._dynamo.reset()
    model = ckplan.torch.compile(network(), **options)
    model(batch).square().mean().backward()
    return model.ckplan


def need_of(report: ckplan.torch.Report) -> int:
    """Returns the device memory that training needs with the plan of the only graph."""
    request, plan = report.request, report.graphs[0].plan
    graph = from_json(json.loads(plan.graph))
    graph.trained = TRAINED
    tensors = graph.constant_bytes() + request.optimizer_state(TRAINED)
    held = bytes_with_allocator(graph, plan, request, request.limit_bytes + request.cublas_bytes)
    return request.outside_bytes + tensors + held


def test_a_plan_for_a_memory_fits_with_the_allocator():
    whole = trained(LARGE, memory="8GiB", optimizer="adam")
    need = need_of(whole)
    # cuBLAS, the CUDA context, and everything besides activations.
    state = 2 * 4 * 6 * (256 * 256 + 256)
    assert need > (450 << 20) + (8 << 20) + state + whole.graphs[0].plan.peak_bytes
    report = trained(LARGE, memory=need - 40 * MIB, optimizer="adam")
    (entry,) = report.graphs
    assert need_of(report) <= need - 40 * MIB
    assert entry.plan.peak_bytes < entry.plan.keep_all_peak_bytes
    assert entry.measured_peak_bytes <= entry.plan.peak_bytes


def test_a_memory_that_keeps_everything_is_a_preset_too():
    for memory in ("8GiB", 8 << 30, "rtx3060-8g"):
        report = trained(memory=memory, optimizer="adamw")
        (entry,) = report.graphs
        assert entry.plan.added_cost == 0
        assert report.summary().startswith(f"ckplan: memory {memory}")


def test_a_memory_that_is_too_small_names_one_that_is_enough():
    for memory in ("300MiB", 490 * MIB):
        with pytest.raises(ckplan.InfeasibleError, match="the least memory is") as found:
            trained(LARGE, memory=memory, optimizer="adamw")
        assert str(found.value).startswith(f"memory {memory} is too little")
        assert found.value.least_bytes > 490 * MIB


def test_what_a_memory_cannot_be():
    for wrong in ("60%", "min", "balanced", 0.6, "much", True):
        with pytest.raises(ValueError):
            ckplan.torch.Backend(memory=wrong)
    with pytest.raises(ValueError, match="set one memory limit: budget="):
        ckplan.torch.Backend(total="8GiB", memory="8GiB")


def test_graphs_that_share_a_memory_leave_out_the_allocator():
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = network(), network()

        def forward(self, x):
            y = self.first(x)
            torch._dynamo.graph_break()
            return self.second(y)

    torch._dynamo.reset()
    model = ckplan.torch.compile(Broken(), memory="8GiB")
    for _ in range(2):
        model(X).square().mean().backward()
    assert len(model.ckplan.graphs) == 2
    assert any("overhead of PyTorch's allocator" in note for note in model.ckplan.notes)
