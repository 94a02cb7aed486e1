"""Tests which candidates are lowered."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import fx, nn
from torch_tests.test_modules import captured_of
from torch_tests.training import loss_of

import ckplan
from ckplan.torch import private
from ckplan.torch.inductor import evaluating
from ckplan.torch.inductor.evaluating import Evaluation, Joint
from ckplan.torch.inductor.rounds import KNOB, PLAN, Recipe
from ckplan.torch.request import Request, make_plan

pytestmark = pytest.mark.skipif(
    private.version() < private.INDUCTOR_SINCE, reason="PyTorch is too old"
)

PLAIN_COST = 1_000_000


class Products(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64, 64))

    def forward(self, x: Any) -> Any:
        return loss_of(torch.tanh(torch.tanh(x @ self.weight) @ self.weight))


def running(names: list[str]) -> fx.GraphModule:
    """Returns a module whose nodes have these names."""
    graph = fx.Graph()
    x = graph.placeholder("placed")
    for name in names:
        graph.create_node("call_function", torch.relu, (x,), name=name)
    graph.output(([x],))
    return fx.GraphModule(nn.Module(), graph)


@pytest.mark.parametrize(("part", "is_lowered"), [(0.97, False), (1.0, True), (1.5, True)])
def test_the_knob_is_lowered_unless_its_operations_take_a_larger_share_than_a_plans_kernels(
    monkeypatch: Any, part: float, is_lowered: bool
):
    joint, divided = Joint(), []
    joint.captured = captured_of(monkeypatch, Products(), torch.randn(64, 64))
    joint.options = {"num_fwd_outputs": 1}
    operations = joint.captured.operations
    again = operations[: len(operations) // 2]
    modules = running([each.name for each in operations]), running([each.name for each in again])
    monkeypatch.setattr(Joint, "by_knob", lambda *_: modules)
    monkeypatch.setattr(Evaluation, "candidate", lambda *_: "lowered")
    evaluation = Evaluation(joint, Request(budget="60%", algo="dtr"), lambda *_: None)
    evaluation.most = 1 << 40
    share = 1 + sum(each.cost for each in again) / sum(each.cost for each in operations)
    assert share > 1.1
    evaluation._plain_cost, evaluation._least_cost = PLAIN_COST, part * share * PLAIN_COST
    assert evaluation(Recipe(KNOB, 0.5)) == ("lowered" if is_lowered else None)
    monkeypatch.setattr(Joint, "by_knob", lambda *_: divided.append(1) or modules)
    evaluation(Recipe(KNOB, 0.2))
    assert bool(divided) == is_lowered


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64, 64))

    def forward(self, x: Any) -> Any:
        y = x @ self.weight
        return loss_of(torch.where(y > 0, y, 0.1 * y))


@pytest.mark.parametrize(("value", "keeps"), [(70_000, [False, True]), ("min", [True])])
def test_masks_are_kept_where_a_plan_without_them_needs_too_much(
    monkeypatch: Any, value: int | str, keeps: list[bool]
):
    joint = Joint()
    joint.captured = captured_of(monkeypatch, Gate(), torch.randn(64, 64))
    evaluation = Evaluation(joint, Request(budget="60%", algo="dtr"), lambda *_: None)
    avoiding, keeping = evaluation._groups(False), evaluation._groups(True)
    asked: list[Any] = []

    def plan(graph: Any, *_: Any) -> Any:
        asked.append(graph)
        if graph is avoiding.graph:
            raise ckplan.InfeasibleError("", 3, kind="infeasible", least_bytes=80_000)
        return make_plan(graph, Request(budget="100%", algo="dtr"), "100%")

    monkeypatch.setattr(evaluating, "make_plan", plan)
    assert avoiding.masks and evaluation._plan(Recipe(PLAN, value, near=True, fused=True))
    assert asked == [keeping.graph if each else avoiding.graph for each in keeps]
