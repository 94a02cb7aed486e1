"""Tests how much memory two modules hold, by hand-made modules."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx, nn

from ckplan.torch.inductor.memory_estimate import estimated_peak_bytes

aten = torch.ops.aten


class Half:
    """A module under construction, whose tensors have a byte an element."""

    def __init__(self) -> None:
        self.graph = fx.Graph()

    def given(self, name: str, size: int) -> fx.Node:
        return self._of(self.graph.placeholder(name), sized(size))

    def run(self, operator: Any, made: torch.Tensor | int, *args: fx.Node) -> fx.Node:
        tensor = sized(made) if isinstance(made, int) else made
        return self._of(self.graph.call_function(operator, args), tensor)

    def module(self, *results: fx.Node) -> fx.GraphModule:
        self.graph.output(list(results))
        return fx.GraphModule(nn.Module(), self.graph)

    def _of(self, node: fx.Node, tensor: torch.Tensor) -> fx.Node:
        node.meta["val"] = tensor
        return node


def sized(size: int) -> torch.Tensor:
    return torch.empty(size, dtype=torch.uint8, device="meta")


def forward() -> fx.GraphModule:
    """Returns a product of 100 bytes, which is saved, and a result of 60."""
    half = Half()
    x = half.given("x", 5000)
    product = half.run(aten.mm.default, 100, x, x)
    passed_on = half.run(aten.tanh.default, 3000, product)
    read = half.run(aten.sin.default, 70, passed_on)
    return half.module(half.run(aten.mm.default, 60, read, read), product)


def test_inputs_and_what_a_kernel_passes_on_count_nothing():
    half = Half()
    nothing = half.module(half.given("x", 5000))
    assert estimated_peak_bytes(forward(), nothing, 1, ()) == 100 + 70 + 60


def test_views_and_saved_values_live_until_their_last_reader():
    half = Half()
    saved, tangent = half.given("product", 100), half.given("tangent", 10)
    made = half.run(aten.mm.default, 400, saved, tangent)
    view = half.run(aten.view.default, made.meta["val"].view(20, 20), made)
    gradient = half.run(aten.mm.default, 30, view, view)
    other = half.run(aten.mm.default, 500, view, view)
    backward = half.module(gradient, other)
    assert estimated_peak_bytes(forward(), backward, 1, [0]) == 60 + 400 + 500
    assert estimated_peak_bytes(forward(), backward, 1, []) == 60 + 400 + 500 + 30


def test_what_runs_again_makes_another_storage():
    half = Half()
    x = half.given("x", 5000)
    once = half.run(aten.mm.default, 100, x, x)
    small = half.run(aten.mm.default, 1, once, x)
    large = half.run(aten.mm.default, 700, small, x)
    after = half.run(aten.mm.default, 1, large, x)
    again = half.run(aten.mm.default, once.meta["val"], x, x)
    backward = half.module(half.run(aten.mm.default, 1, again, after))
    assert estimated_peak_bytes(forward(), backward, 1, ()) == 60 + 1 + 700
