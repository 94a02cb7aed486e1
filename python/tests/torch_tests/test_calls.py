"""Tests models that are called several times in a step, and models that PyTorch does not compile.
"""

from __future__ import annotations

import copy
import warnings

import ckplan
import ckplan.torch
import pytest
import torch
from torch import nn

from torch_tests.networks import Stack
from torch_tests.training import assert_same


def mlp(width: int = 32, layers: int = 4) -> nn.Sequential:
    torch.manual_seed(2)
    parts: list[nn.Module] = []
    for _ in range(layers):
        parts += [nn.Linear(width, width), nn.GELU()]
    return nn.Sequential(*parts)


def siamese(model, steps: int = 3) -> list[list[torch.Tensor]]:
    """Trains on differences of two calls of the model. Returns the gradients of each step."""
    torch.manual_seed(4)
    history = []
    for _ in range(steps):
        (model(torch.randn(16, 32)) - model(torch.randn(16, 32))).square().sum().backward()
        history.append([p.grad.clone() for p in model.parameters()])
        model.zero_grad()
    return history


def test_a_model_that_is_called_twice_in_a_step_is_measured():
    expected = siamese(mlp())
    planned = ckplan.torch.compile(mlp(), budget="100%", effort="quick")
    assert_same(siamese(planned), expected)
    (graph,) = planned.ckplan.graphs
    assert graph.calls == 2
    assert graph.plan.peak_bytes < graph.measured_peak_bytes <= graph.step_peak_bytes
    assert "of 2 calls, measured" in planned.ckplan.summary()


def test_a_budget_in_bytes_is_for_all_calls_of_a_step():
    once = ckplan.torch.compile(mlp(), budget="100%", effort="quick")
    siamese(once, steps=1)
    everything = once.ckplan.graphs[0]
    torch._dynamo.reset()
    budget = int(0.8 * everything.step_peak_bytes)
    planned = ckplan.torch.compile(mlp(), budget=budget, effort="quick")
    assert_same(siamese(planned), siamese(mlp()))
    (graph,) = planned.ckplan.graphs
    assert graph.share_bytes == budget // 2
    assert graph.calls == 2
    assert graph.measured_peak_bytes <= graph.step_peak_bytes <= budget


def test_in_place_too_a_budget_in_bytes_is_for_all_calls_of_a_step():
    planner = ckplan.torch.Backend(budget="100%")
    model = Stack(*mlp())
    model.compile(backend=planner, dynamic=False)
    siamese(model, steps=1)
    budget = int(0.8 * planner.report.graphs[0].step_peak_bytes)
    torch._dynamo.reset()
    planner = ckplan.torch.Backend(budget=budget)
    model = Stack(*mlp())
    model.compile(backend=planner, dynamic=False)
    assert_same(siamese(model), siamese(mlp()))
    (graph,) = planner.report.graphs
    assert graph.share_bytes == budget // 2
    assert graph.calls == 2
    assert graph.measured_peak_bytes <= graph.step_peak_bytes <= budget


def test_the_discriminator_of_a_gan_is_measured_over_both_its_calls():
    def train(discriminator):
        torch.manual_seed(4)
        make = nn.Linear(8, 32)
        history = []
        for _ in range(2):
            fake = make(torch.randn(16, 8))
            real = torch.randn(16, 32)
            (discriminator(fake.detach()).mean() - discriminator(real).mean()).backward()
            (-discriminator(fake).mean()).backward()
            history.append([p.grad.clone() for p in discriminator.parameters()])
            discriminator.zero_grad()
        return history

    planned = ckplan.torch.compile(mlp(), budget="70%", effort="quick")
    assert_same(train(planned), train(mlp()))
    calls = [graph.calls for graph in planned.ckplan.graphs]
    assert calls == [2, 1]  # Only in one does its input need a gradient.
    assert all(graph.measured_peak_bytes for graph in planned.ckplan.graphs)


def test_calls_without_a_backward_pass_do_not_wait():
    planned = ckplan.torch.compile(mlp(), budget="70%", effort="quick")
    for _ in range(3):
        planned(torch.randn(16, 32))
    output = planned(torch.randn(16, 32))
    output.square().mean().backward()
    (graph,) = planned.ckplan.graphs
    assert graph.calls == 1
    assert graph.measured_peak_bytes == graph.plan.peak_bytes


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = mlp(), mlp()

    def forward(self, x):
        return self.second(self.first(x))


@pytest.mark.parametrize("path", ["", "0", "first.0"])
def test_a_module_with_a_backward_hook_is_named(path):
    eager = Nested() if path.startswith("first") else mlp()
    seen = []
    eager.get_submodule(path).register_full_backward_hook(lambda *_: seen.append(1))
    planned = ckplan.torch.compile(copy.deepcopy(eager), budget="80%", effort="quick")
    x = torch.randn(16, 32, requires_grad=True)
    with pytest.warns(ckplan.PlanWarning, match="backward hooks"):
        planned(x).sum().backward()
    eager(x).sum().backward()
    gradients = [[p.grad for p in model.parameters()] for model in (planned, eager)]
    assert_same(gradients[:1], gradients[1:])
    assert seen
    summary = planned.ckplan.summary()
    assert (path or "the model itself") in summary
    assert "no step was trained" not in summary
    assert len(planned.ckplan.graphs) == (1 if path == "first.0" else 0)


def test_a_model_that_is_not_compiled_at_all_says_so():
    model = mlp()
    model.forward = torch.compiler.disable(model.forward)
    planned = ckplan.torch.compile(model, budget="80%", effort="quick")
    with pytest.warns(ckplan.PlanWarning, match="no graph"):
        planned(torch.randn(16, 32)).sum().backward()
    assert "nothing is planned" in planned.ckplan.summary()


def test_a_model_with_nothing_to_train_gives_no_warning():
    planned = ckplan.torch.compile(mlp().requires_grad_(False), budget="80%", effort="quick")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ckplan.PlanWarning)
        planned(torch.randn(16, 32))
    assert planned.ckplan.notes == []
