"""Tests training loops in which a better plan than the first one is refused, left or not needed."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import ckplan
import ckplan.torch
import pytest
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode

from torch_tests.fuzzing import Case

FOUND_FAULTS = [1, 4, 10, 26, 31, 34, 120, 136, 169, 174, 313, 91632, 92097, 95177]
"""Seeds whose loops once had other gradients, errors or too high a peak."""


@pytest.mark.parametrize("seed", [*range(2000, 2008), *FOUND_FAULTS])
def test_random_training_loops_compute_what_eager_mode_does(seed):
    case = Case(seed)
    assert case.check() == [], case.describe()


class Twin(nn.Module):
    """Two losses over one trunk, and a result that depends on the second branch."""

    def __init__(self, dropout: float = 0.2):
        super().__init__()
        block = [nn.Linear(16, 16), nn.Tanh(), nn.Dropout(dropout), nn.BatchNorm1d(16)]
        self.trunk = nn.Sequential(*block, *copy.deepcopy(block))
        self.first, self.second = nn.Linear(16, 1), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = self.trunk(x)
        aux = self.second(torch.tanh(h))
        return self.first(h).square().mean(), aux.square().mean(), aux


Use = Callable[[Any, Tensor], Any]


def run(model: nn.Module, uses: list[Use]) -> list[Tensor]:
    """Trains one step for each use, and returns all gradients that are not zero, and the state."""
    torch.manual_seed(5)
    seen = []
    for use in uses:
        use(model, torch.randn(32, 16))
        seen += [p.grad.clone() for p in model.parameters() if p.grad is not None and p.grad.any()]
        model.zero_grad()
    return seen + [value.clone() for value in model.state_dict().values()]


def compare(uses: list[Use], budget: str = "80%", **options: Any) -> tuple[Any, list[str]]:
    """Trains in eager mode and in place by a plan; returns the graph's report and the warnings."""
    torch.manual_seed(0)
    eager = Twin()
    planned, planner = copy.deepcopy(eager), ckplan.torch.Backend(budget, **options)
    planned.compile(backend=planner, dynamic=False)
    expected = run(eager, uses)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ckplan.PlanWarning)
        found = run(planned, uses)
    assert len(found) == len(expected)
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(found, expected))
    (graph,) = planner.report.graphs
    assert graph.measured_peak_bytes is not None and not graph.is_above_plan
    return graph, [str(w.message) for w in caught if w.category is ckplan.PlanWarning]


def first_alone(model: Any, x: Tensor) -> None:
    model(x)[0].backward()


def aux_held(model: Any, x: Tensor) -> Tensor:
    loss, _, aux = model(x)
    loss.backward()
    return aux


def apart(model: Any, x: Tensor) -> None:
    first, second, _ = model(x)
    first.backward(retain_graph=True)
    second.backward()


def gradient_passed_in(model: Any, x: Tensor) -> None:
    _, _, aux = model(x)
    gradient = torch.ones_like(aux)
    aux.backward(gradient)
    assert gradient.all()


def called_twice(model: Any, x: Tensor) -> None:
    (model(x)[0] + model(x + 1)[0]).backward()


class Failure(Exception):
    """Has no text."""


@pytest.mark.parametrize(
    "error", [AttributeError("no such attribute"), RuntimeError("refused"), Failure()]
)
def test_a_better_plan_that_fails_leaves_the_first_one_in_force(monkeypatch, error):
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("ckplan.torch.graph_planner.GraphPlanner.plan_again", fail)
    graph, said = compare([first_alone] * 4)
    assert len(said) == 1 and "a better one failed" in said[0]
    assert (str(error) or "Failure") in said[0] and graph.note == ""


def test_a_retained_graph_whose_plan_fails_leaves_the_first_one_in_force(monkeypatch):
    def fail(*_: Any, **__: Any) -> None:
        raise ckplan.PlanError("no plan", 70)

    monkeypatch.setattr("ckplan.torch.graph_planner.GraphPlanner.plan_retained", fail)
    _, said = compare([apart] * 3)
    assert sum("a better one failed (no plan)" in words for words in said) == 1


@pytest.mark.parametrize("budget", ["95%", "80%", "60%"])
def test_a_held_result_without_a_gradient_has_a_better_plan(budget):
    graph, said = compare([aux_held] * 3, budget)
    assert not any("refused" in words for words in said)
    assert "without results" in graph.note


@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_graph_may_be_retained_in_any_step(before):
    graph, said = compare([first_alone] * before + [apart] * 3)
    assert graph.retained_peak_bytes and sum("is retained" in words for words in said) == 1


class Products(TorchDispatchMode):
    """Counts the products of forward passes, and runs of dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}

    def __torch_dispatch__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function.overloadpacket.__name__
        self.counts[name] = self.counts.get(name, 0) + 1
        return function(*args, **(kwargs or {}))


def test_several_losses_of_one_call_need_one_forward_pass():
    model, planner = Twin(), ckplan.torch.Backend("100%")
    model.compile(backend=planner, dynamic=False)
    for _ in range(3):
        apart(model, torch.randn(32, 16))
    with Products() as products:
        apart(model, torch.randn(32, 16))
    layers = sum(isinstance(module, nn.Linear) for module in model.modules())
    assert products.counts["addmm"] == layers
    (graph,) = planner.report.graphs
    assert graph.measured_peak_bytes <= graph.plan.peak_bytes


def test_a_gradient_that_the_caller_holds_is_counted():
    _, said = compare([gradient_passed_in] * 3, "100%")
    assert sum("holds a gradient" in words for words in said) <= 1


def test_normalization_that_runs_again_allows_two_calls_in_a_step():
    compare([called_twice] * 3, "min", algo="dtr")


def packed() -> Any:
    return saved_tensors_hooks(lambda t: t.numpy().copy(), torch.from_numpy)


def hooked(use: Use) -> Use:
    def run_hooked(model: Any, x: Tensor) -> Any:
        def call(*args: Any) -> Any:
            with packed():
                return model(*args)

        return use(call, x)

    return run_hooked


def in_another_type(model: Any, x: Tensor) -> None:
    with saved_tensors_hooks(lambda t: t.double(), lambda t: t.float()):
        loss = model(x)[0]
    loss.backward()


def test_hooks_may_return_generator_states_in_another_type():
    compare([in_another_type] * 3, "60%")


def under_autocast(model: Any, x: Tensor) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(x)[0]
    loss.backward()


def test_statistics_in_32_bits_of_inputs_in_16_bits_are_planned():
    compare([under_autocast] * 3, "100%")


def compiled_backward(model: Any, x: Tensor) -> None:
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
        model(x)[0].backward()


@pytest.mark.parametrize("returns", ["all", "loss"])
@pytest.mark.parametrize("before", [0, 2])
def test_compiled_autograd_computes_the_same(returns, before):
    eager, planned = Twin(), Twin()
    planned.load_state_dict(eager.state_dict())
    planner = ckplan.torch.Backend("100%", returns=returns)
    planned.compile(backend=planner, dynamic=False)
    expected = run(eager, [first_alone] * (before + 2))
    found = run(planned, [first_alone] * before + [compiled_backward] * 2)
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(found, expected))


def test_sizes_left_open_train_without_a_plan():
    eager = Twin(0.0)
    planned, planner = copy.deepcopy(eager), ckplan.torch.Backend("80%")
    planned.compile(backend=planner, dynamic=True)  # TorchDynamo traces it once more for this.
    for model in (eager, planned):
        for rows in (32, 24, 40):
            torch.manual_seed(rows)
            first_alone(model, torch.randn(rows, 16))
    assert "dynamic=False" in planner.report.graphs[0].refusal
    for mine, theirs in zip(planned.parameters(), eager.parameters()):
        assert theirs.grad is None or torch.equal(mine.grad, theirs.grad)


@pytest.mark.parametrize("returns", ["all", "loss"])
@pytest.mark.parametrize("use", [first_alone, aux_held, apart, called_twice, gradient_passed_in])
@pytest.mark.parametrize("before", [0, 2])
def test_hooks_for_saved_tensors_leave_gradients_as_they_are(use, returns, before):
    compare([first_alone] * before + [hooked(use)] * 3, returns=returns)
