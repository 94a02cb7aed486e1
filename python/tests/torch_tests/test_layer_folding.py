"""Graphs with equal layers, captured with few of them: they equal those of the full capture."""

from __future__ import annotations

import pytest
import torch
from torch import fx, nn
from torch_tests.networks import Bert, Gpt, tokens
from torch_tests.training import loss_of

from ckplan.torch.estimation import layer_folding, regions, tracing
from ckplan.torch.estimation.periods import Run, runs

FP32 = tracing.Precision.named("fp32")


class Pre(nn.Module):
    """A layer whose second input is the same for all layers, and gets a gradient from each."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, 2 * width)
        self.outer = nn.Linear(2 * width, width, bias=False)

    def forward(self, x, shared):
        return x + self.outer(torch.nn.functional.silu(self.inner(self.norm(x) + shared)))


class TwoStacks(nn.Module):
    """Two lists of layers, of which the second reads the first one's result in each layer."""

    def __init__(self, first=11, second=12, odd=None):
        super().__init__()
        self.first = nn.ModuleList(Pre(16) for _ in range(first))
        self.second = nn.ModuleList(Pre(16) for _ in range(second))
        self.bias = nn.Parameter(torch.zeros(16))
        self.odd = odd

    def forward(self, x):
        for layer in self.first:
            x = layer(x, self.bias)
        read, y = x.tanh(), torch.zeros_like(x)
        for number, layer in enumerate(self.second):
            y = layer(y, read)
            if number == self.odd:
                y = y.sigmoid()
        return y.square().mean()


class Experts(nn.Module):
    """A layer whose experts compute on the rows that chose them, however many these are."""

    def __init__(self, width, experts):
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            (rows,) = torch.where(chosen == number)
            out = out.index_add(0, rows, expert(x[rows]).relu() * weights[rows, None])
        return x + out


class Sparse(nn.Module):
    """Layers of experts, and a loss."""

    def __init__(self, layers=11):
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.layers = nn.ModuleList(Experts(16, 5) for _ in range(layers))

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return x.square().mean()


NETWORKS = {
    "bert": (lambda: Bert(11, 32, 4, 64, 16), tokens),
    "gpt": (lambda: Gpt(11, 64, 4, 128, 64, dropout=0.1), lambda: torch.zeros(2, 32).long()),
    "two stacks": (TwoStacks, lambda: torch.zeros(4, 16)),
    "experts": (Sparse, lambda: torch.zeros(64, 16)),
}


BOUNDS = {"torch.where(chosen == number)": 40}


def both(make, batch, monkeypatch, bounds=BOUNDS):
    """Returns the captured step with few layers, and with all."""
    few = tracing.trace_step(make, batch(), FP32, loss_of, bounds)
    with monkeypatch.context() as patch:
        patch.setattr(tracing, "fold_layers", lambda *_: None)
        patch.setattr(regions.private, "uses_regions_again", lambda: False)
        torch._dynamo.reset()
        return few, tracing.trace_step(make, batch(), FP32, loss_of, bounds)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("arriving", [False, True])
def test_the_graph_equals_that_of_all_layers(name, arriving, monkeypatch):
    make, batch = NETWORKS[name]
    few, everything = both(make, batch, monkeypatch)
    if name == "experts" and not regions.private.uses_regions_again():
        # Each layer is traced, with symbols of its own for the sizes that depend on data.
        assert few.traced.repeats == []
    else:
        assert sum(repeat.left_out for repeat in few.traced.repeats) >= 3
        assert len(few.traced.joint.graph.nodes) < len(everything.traced.joint.graph.nodes)
    found, expected = few.graph(arriving), everything.graph(arriving)
    assert found.to_bytes() == expected.to_bytes()
    for sums in ("parameter_bytes", "trained_bytes", "trained", "optimized", "boundary"):
        assert getattr(found, sums) == getattr(expected, sums), sums


def test_a_layer_that_differs_is_not_left_out(monkeypatch):
    few, everything = both(lambda: TwoStacks(2, 20, odd=6), lambda: torch.zeros(4, 16), monkeypatch)
    (repeat,) = few.traced.repeats or [None]
    assert repeat is None or repeat.left_out <= 13 - layer_folding.KEPT
    assert few.graph(True).to_bytes() == everything.graph(True).to_bytes()


def test_layers_whose_results_are_all_read_later_are_captured_in_full(monkeypatch):
    class Dense(TwoStacks):
        def forward(self, x):
            rows = []
            for layer in self.first:
                x = layer(x, self.bias)
                rows.append(x)
            return torch.cat(rows).square().mean()

    few, everything = both(Dense, lambda: torch.zeros(4, 16), monkeypatch)
    assert few.traced.repeats == []
    assert few.graph(True).to_bytes() == everything.graph(True).to_bytes()


@pytest.mark.parametrize("name", ["gpt", "experts"])
def test_the_code_of_equal_layers_is_run_once(name, monkeypatch):
    if not regions.private.uses_regions_again():
        pytest.skip("this PyTorch traces each layer")
    graphs = []

    def inlined(module, inputs):
        graphs.append([part for part in module.children() if isinstance(part, fx.GraphModule)])
        return whole(module, inputs)

    whole = regions.inlined
    monkeypatch.setattr(regions, "inlined", inlined)
    make, batch = NETWORKS[name]
    tracing.trace_step(make, batch(), FP32, loss_of, BOUNDS)
    (of_layers,) = graphs
    assert len(of_layers) == 1


def test_symbols_that_are_bounded_by_their_numbers_keep_these(monkeypatch):
    bounds = {f"u{number}": 40 for number in range(55)}
    make, batch = NETWORKS["experts"]
    few, everything = both(make, batch, monkeypatch, bounds)
    assert few.traced.repeats == []
    assert few.graph(True).to_bytes() == everything.graph(True).to_bytes()


class Remembering(Pre):
    """A layer that changes an attribute, which TorchDynamo allows in no graph that it uses again."""

    def forward(self, x, shared):
        self.last = super().forward(x, shared)
        return self.last


def test_layers_that_cannot_be_traced_once_are_traced_in_full(monkeypatch):
    def make():
        model = TwoStacks()
        model.first = nn.ModuleList(Remembering(16) for _ in range(11))
        return model

    few, everything = both(make, lambda: torch.zeros(4, 16), monkeypatch)
    assert few.graph(True).to_bytes() == everything.graph(True).to_bytes()


class Plain(nn.Linear):
    """A layer that inherits its code."""


def test_the_classes_of_layers_are_as_before():
    forward = Pre.forward
    with regions.marked(TwoStacks()) as is_marked:
        assert (Pre.forward is forward) != is_marked
    assert Pre.forward is forward
    with regions.marked(nn.Sequential(*(Plain(8, 8) for _ in range(9)))):
        pass
    assert "forward" not in vars(Plain)


#   "abab" within "xabababcdcdcdcdx": the longer run is found first, then what is left of it.
def test_runs_by_hand():
    forms = "xabababcdcdcdcdx"
    assert runs(forms, lambda *_: True, 0, len(forms)) == [Run(1, 2, 3), Run(7, 2, 4)]
    assert runs("abcabd", lambda *_: True, 0, 6) == []
    # A run ends where an item differs from its counterpart in the next period.
    assert runs(forms, lambda position, _: position != 9, 0, len(forms)) == [Run(1, 2, 3)]
