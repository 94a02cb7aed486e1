"""Tests models that graph breaks divide into parts, each of which is planned separately."""

from __future__ import annotations

import copy
import warnings

import ckplan.torch
import pytest
import torch
import torch.utils.checkpoint
from torch import nn

from ckplan.torch.parts import Part, Parts
from ckplan.torch.request import Request
from torch_tests.networks import Stack, TwoParts
from torch_tests.training import assert_same, train, train_both


def mlp(width: int, layers: int = 4) -> nn.Sequential:
    parts: list[nn.Module] = []
    for _ in range(layers):
        parts += [nn.Linear(width, width), nn.GELU(), nn.Dropout(0.2)]
    return nn.Sequential(*parts)


def broken() -> TwoParts:
    """The second part needs more memory."""
    return TwoParts(mlp(32), mlp(32, layers=8))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = mlp(32)

    def forward(self, x):
        return self.parts(x)


class Repeated(nn.Module):
    """Three layers of the same form, which share a graph, like the layers that FSDP2 wraps."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(3))

    @torch._dynamo.disable(recursive=False)
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def rows() -> torch.Tensor:
    return torch.randn(16, 32)


def keep_all_peaks(make) -> list[int]:
    report = train_both(make, rows, steps=1, budget="100%")
    torch._dynamo.reset()
    return [graph.plan.keep_all_peak_bytes for graph in report.graphs]


def test_a_budget_in_per_cent_is_for_each_part():
    report = train_both(broken, rows, budget="70%")
    assert len(report.graphs) == 2
    for graph in report.graphs:
        assert graph.plan.peak_bytes <= 0.7 * graph.plan.keep_all_peak_bytes
    assert "2 graphs, because the model has graph breaks" in report.summary()


class Small(nn.Module):
    """Three parts, none of which fits into half of its memory."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        x = self.layers[0](x)
        torch._dynamo.graph_break()
        x = self.layers[1](x)
        torch._dynamo.graph_break()
        return self.layers[2](x)


def test_small_parts_beyond_their_share_give_one_warning():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ckplan.PlanWarning)
        report = train_both(Small, lambda: torch.randn(2, 4), budget="50%")
    assert [str(w.message) for w in caught if w.category is ckplan.PlanWarning] == report.notes
    assert len(report.notes) == 1 and "parts of the model below 1 MiB" in report.notes[0]
    assert report.summary().count("needs at least") == 3


class Checkpointed(nn.Module):
    """Checkpoints its own layers, as models of transformers do."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(mlp(32, layers=1) for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
        return x


def test_a_models_own_checkpoints_are_named():
    with pytest.warns(ckplan.PlanWarning, match="own gradient checkpointing is on"):
        report = train_both(Checkpointed, rows, budget="100%")
    assert sum("checkpointing" in note for note in report.notes) == 1
    model = mlp(32)
    model.gradient_checkpointing = True  # The library transformers sets this, traced or not.
    planned = ckplan.torch.compile(model, budget="100%", effort="quick")
    with pytest.warns(ckplan.PlanWarning, match="own gradient checkpointing is on"):
        planned(rows()).sum().backward()


def test_a_budget_in_bytes_is_divided_in_proportion_to_what_parts_need():
    peaks = keep_all_peaks(broken)
    budget = int(0.75 * sum(peaks))
    report = train_both(broken, rows, budget=budget)
    first, second = report.graphs
    assert first.share_bytes == budget * peaks[0] // sum(peaks)
    # The second part gets the memory that the first part leaves of its share.
    assert second.share_bytes == budget - first.saved_bytes > budget - first.share_bytes
    for graph in report.graphs:
        # The result of the first part is not held until the end of its backward pass.
        assert graph.measured_peak_bytes <= graph.plan.peak_bytes <= graph.share_bytes
    assert "in proportion" in report.summary()


def test_parts_that_are_compiled_before_the_first_one_runs_share_the_budget():
    # DistributedDataParallel's buckets are compiled in this way.
    known = [Part(keep_all_peak_bytes=600, calls=1), Part(keep_all_peak_bytes=300, calls=1)]
    parts = Parts(Request(budget=900), known)
    parts.begin_call()
    first = parts.enter(frame=0)
    assert parts.limit(first, is_divided=True) == 600
    parts.found[first].saved_bytes = 500
    second = parts.enter(frame=0)
    assert parts.limit(second, is_divided=True) == 400


def test_the_first_step_needs_no_more_than_the_budget_either():
    peaks = keep_all_peaks(broken)
    report = train_both(broken, rows, steps=1, budget=sum(peaks))
    first, second = report.graphs
    assert first.saved_bytes + second.plan.peak_bytes <= sum(peaks)
    assert first.share_bytes is None
    assert "from the next one on" in report.summary()


def test_layers_that_share_a_graph_share_the_budget():
    # Only the input of the first layer needs no gradient, so that layer has a graph of its own.
    first, other = keep_all_peaks(Repeated)
    budget = int(0.8 * (first + 2 * other))
    graphs = train_both(Repeated, rows, budget=budget).graphs
    assert graphs[0].share_bytes + 2 * graphs[1].share_bytes <= budget
    for graph, peak in zip(graphs, (first, other)):
        assert graph.plan.peak_bytes <= graph.share_bytes < peak
    assert graphs[1].calls == 2
    assert graphs[1].measured_peak_bytes <= graphs[1].step_peak_bytes <= 2 * graphs[1].share_bytes


def test_a_budget_below_what_all_parts_need():
    with pytest.raises(ckplan.InfeasibleError, match="part 1 needs .* bytes more"):
        train_both(broken, rows, budget=max(keep_all_peaks(broken)) // 3)


def test_total_counts_the_parameters_of_all_parts():
    parameters = 4 * sum(p.numel() for p in broken().parameters())
    peaks = keep_all_peaks(broken)
    total = 2 * parameters + 2 * sum(peaks)
    report = train_both(broken, rows, total=total)
    first, second = report.graphs
    trained = 4 * sum(p.numel() for p in broken().second.parameters())
    assert parameters + trained + first.plan.peak_bytes <= total
    assert parameters + first.saved_bytes + second.plan.peak_bytes <= total


def train_in_place(model: nn.Module, budget: int, sizes: list[int]) -> ckplan.torch.Backend:
    planner = ckplan.torch.Backend(budget=budget)
    model.compile(backend=planner, dynamic=False)
    for size in sizes:
        model(torch.randn(size, 32)).sum().backward()
    return planner


def test_a_backend_in_place_takes_another_batch_for_the_same_part():
    # The part has two plans, each of which may use the whole limit.
    needed = train_in_place(Stack(*mlp(32)), 1 << 30, [64]).report.graphs[0].plan.keep_all_peak_bytes
    planner = train_in_place(Stack(*mlp(32)), needed * 5 // 4, [64, 64, 80])
    assert [graph.part for graph in planner.report.graphs] == [0, 0]


def test_a_backend_in_place_counts_the_runs_of_one_step():
    planner = train_in_place(broken(), 1 << 20, [8] * 20 + [16])
    assert [graph.part for graph in planner.report.graphs] == [0, 1, 0, 1]
    assert [part.calls for part in planner._planner.parts.found] == [1, 1]


def train_both_in_place(make, steps: int = 4, **options) -> ckplan.torch.Report:
    """Trains a model twice, in eager mode and in place, and asserts that every bit is the same."""
    torch.manual_seed(7)
    eager = make()
    model = copy.deepcopy(eager)
    planner = ckplan.torch.Backend(effort="quick", **options)
    model.compile(backend=planner, dynamic=False)
    assert_same(train(model, rows, steps), train(eager, rows, steps))
    return planner.report


def test_in_place_a_budget_in_bytes_is_divided_from_the_second_step_on():
    peaks = keep_all_peaks(broken)
    budget = int(0.75 * sum(peaks))
    first_step = train_both_in_place(broken, steps=1, budget=budget)
    assert "from the next one on" in first_step.summary()
    torch._dynamo.reset()
    report = train_both_in_place(broken, budget=budget)
    first, second = report.graphs
    assert first.share_bytes == budget * peaks[0] // sum(peaks)
    assert second.share_bytes == budget - first.saved_bytes
    for graph, in_little in zip(report.graphs, first_step.graphs):
        assert graph.measured_peak_bytes <= graph.plan.peak_bytes <= graph.share_bytes
        assert graph.plan.added_cost < in_little.plan.added_cost
    assert "in proportion" in report.summary()


def test_in_place_equal_layers_share_the_budget():
    first, other = keep_all_peaks(Repeated)
    budget = int(0.8 * (first + 2 * other))
    graphs = train_both_in_place(Repeated, budget=budget).graphs
    assert graphs[0].share_bytes + 2 * graphs[1].share_bytes <= budget
    for graph, peak in zip(graphs, (first, other)):
        assert graph.plan.peak_bytes <= graph.share_bytes < peak
    assert graphs[1].measured_peak_bytes <= graphs[1].step_peak_bytes <= 2 * graphs[1].share_bytes


def test_in_place_total_counts_the_parameters_of_all_parts():
    parameters = 4 * sum(p.numel() for p in broken().parameters())
    trained = 4 * sum(p.numel() for p in broken().second.parameters())
    total = 2 * parameters + int(1.6 * sum(keep_all_peaks(broken)))
    first, second = train_both_in_place(broken, total=total).graphs
    assert first.share_bytes and second.share_bytes
    assert parameters + trained + first.plan.peak_bytes <= total
    assert parameters + first.saved_bytes + second.plan.peak_bytes <= total


def test_in_place_a_budget_in_per_cent_is_for_each_part():
    report = train_both_in_place(broken, budget="70%")
    for graph in report.graphs:
        assert graph.plan.peak_bytes <= 0.7 * graph.plan.keep_all_peak_bytes
        assert graph.share_bytes is None
