"""Operators that are not PyTorch's own: planned by their fake kernels, and run once by default."""

from __future__ import annotations

import warnings

import ckplan
import ckplan.torch
import pytest
import torch
from torch import nn
from torch_tests.training import train_both

from ckplan.torch import obstacles, operators

calls: list[str] = []


@torch.library.custom_op("ckplan_tests::gate", mutates_args=())
def gate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    calls.append("gate")
    return torch.sigmoid(x) * y


@gate.register_fake
def _(x, y):
    return torch.empty_like(y)


@torch.library.custom_op("ckplan_tests::gate_backward", mutates_args=())
def gate_backward(
    grad: torch.Tensor, x: torch.Tensor, y: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    s = torch.sigmoid(x)
    return grad * y * s * (1 - s), grad * s


@gate_backward.register_fake
def _(grad, x, y):
    return torch.empty_like(x), torch.empty_like(y)


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, grad):
    return gate_backward(grad, *ctx.saved_tensors)


gate.register_autograd(_backward, setup_context=_save)


@torch.library.custom_op("ckplan_tests::triple", mutates_args={"out"})
def triple(x: torch.Tensor, out: torch.Tensor) -> None:
    """Writes to an argument, as kernels of Triton do."""
    calls.append("triple")
    out.copy_(x).mul_(3)


@torch.library.custom_op("ckplan_tests::unknown", mutates_args=())
def unknown(x: torch.Tensor) -> torch.Tensor:
    return x * 2


class Triple(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.empty_like(x)
        triple(x, out)
        return out

    @staticmethod
    def backward(ctx, grad):
        out = torch.empty_like(grad)
        triple(grad, out)
        return out


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(4))

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            x = gate(layer(x).relu(), x.tanh())
            if number % 2:
                x = Triple.apply(x)
        return x.square().mean()


def rows():
    return torch.randn(64, 32)


def train(budget):
    """Returns the report, and how often the operators ran in a step."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ckplan.PlanWarning)
        train_both(Gated, rows, budget=budget)
        compiled = ckplan.torch.compile(Gated(), budget)
        torch._dynamo.reset()
        calls.clear()
        compiled(rows()).backward()
    (graph,) = compiled.ckplan.graphs
    assert graph.measured_peak_bytes == graph.plan.peak_bytes
    return graph, (calls.count("gate"), calls.count("triple"))


def test_they_run_once_at_any_budget():
    everything, once = train("100%")
    least, again = train("min")
    assert once == again == (4, 4)
    assert least.plan.peak_bytes < everything.plan.peak_bytes
    assert least.plan.added_cost > 0


def test_by_name_they_may_run_again(monkeypatch):
    least, _ = train("min")
    monkeypatch.setattr(operators, "_repeatable", set())
    ckplan.torch.may_run_again("ckplan_tests::gate", "ckplan_tests::triple")
    smaller, (gates, triples) = train("min")
    assert gates > 4 and triples > 4
    assert smaller.plan.peak_bytes < least.plan.peak_bytes
    with pytest.raises(ValueError, match="mylib::scale"):
        ckplan.torch.may_run_again("a kernel")


class Unknown(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return torch.ops.ckplan_tests.unknown(self.layer(x)).sum()


def test_without_a_fake_kernel_the_error_says_what_to_register():
    match = r'ckplan_tests::unknown has no fake kernel.*register_fake\("ckplan_tests::unknown"\)'
    with pytest.raises(ckplan.torch.MissingKernelError, match=match):
        ckplan.torch.compile(Unknown(), "100%")(torch.ones(2, 3))
    with pytest.raises(ckplan.torch.MissingKernelError, match=match):
        ckplan.torch.estimate(Unknown, torch.ones(2, 3))


def test_the_same_for_operators_that_are_only_defined():
    library = torch.library.Library("ckplan_tests_defined", "DEF")
    library.define("plain(Tensor x) -> Tensor")
    library.impl("plain", lambda x: x * 2, "CPU")

    class Plain(Unknown):
        def forward(self, x):
            return torch.ops.ckplan_tests_defined.plain(self.layer(x)).sum()

    match = 'register_fake\\("ckplan_tests_defined::plain"\\)'
    with pytest.raises(ckplan.torch.MissingKernelError, match=match):
        ckplan.torch.compile(Plain(), "100%")(torch.ones(2, 3))
    with pytest.raises(ckplan.torch.MissingKernelError, match=match):
        ckplan.torch.estimate(Plain, torch.ones(2, 3))
    assert obstacles.missing_kernel("any other error") is None
