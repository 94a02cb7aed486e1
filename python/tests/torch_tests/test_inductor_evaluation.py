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
from ckplan.torch.inductor import evaluation
from ckplan.torch.inductor.candidate_search import KNOB, PLAN, Recipe
from ckplan.torch.inductor.evaluation import Evaluation, Joint
from ckplan.torch.inductor.operator_workspaces import set_workspaces
from ckplan.torch.inductor.replay import Form, OperatorCall
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
    evaluate = Evaluation(joint, Request(budget="60%", algo="dtr"), lambda *_: None)
    evaluate.most = 1 << 40
    share = 1 + sum(each.cost for each in again) / sum(each.cost for each in operations)
    assert share > 1.1
    evaluate._plain_cost, evaluate._least_cost = PLAIN_COST, part * share * PLAIN_COST
    assert evaluate(Recipe(KNOB, 0.5)) == ("lowered" if is_lowered else None)
    monkeypatch.setattr(Joint, "by_knob", lambda *_: divided.append(1) or modules)
    evaluate(Recipe(KNOB, 0.2))
    assert bool(divided) == is_lowered


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64, 64))

    def forward(self, x: Any) -> Any:
        y = x @ self.weight
        return loss_of(torch.where(y > 0, y, 0.1 * y))


class Asked:
    """Stands for the program: plans of groups need at least so many bytes, others nothing."""

    def __init__(self, monkeypatch: Any, least: dict[bool, int]):
        joint = Joint()
        joint.captured = captured_of(monkeypatch, Gate(), torch.randn(64, 64))
        self.evaluation = Evaluation(joint, Request(budget="60%", algo="dtr"), lambda *_: None)
        self.asked: list[tuple[bool, int | str]] = []
        """Whether masks are kept, and the limit."""
        self._least = least
        self._keeping = self.evaluation._groups(True).graph
        assert self.evaluation._groups(False).masks
        monkeypatch.setattr(evaluation, "make_plan", self._plan)

    def plan(self, value: int | str) -> Any:
        return self.evaluation._plan(Recipe(PLAN, value, near=True, fused=True))

    def _plan(self, graph: Any, _: Any, limit: int | str) -> Any:
        keeps = graph is self._keeping
        self.asked.append((keeps, limit))
        least = self._least.get(keeps, 0)
        if isinstance(limit, int) and limit < least:
            raise ckplan.InfeasibleError("", 3, kind="infeasible", least_bytes=least)
        return make_plan(graph, Request(budget="100%", algo="dtr"), "100%")


@pytest.mark.parametrize(("value", "keeps"), [(70_000, [False, True]), ("min", [True])])
def test_masks_are_kept_where_a_plan_without_them_needs_too_much(
    monkeypatch: Any, value: int | str, keeps: list[bool]
):
    program = Asked(monkeypatch, {False: 80_000})
    assert program.plan(value)
    assert program.asked == [(each, value) for each in keeps]


def test_the_smallest_plan_of_kernels_is_taken_if_none_is_within_the_limit(monkeypatch: Any):
    program = Asked(monkeypatch, {False: 90_000, True: 80_000})
    assert program.plan(70_000)
    assert program.asked == [(False, 70_000), (True, 70_000), (True, 80_000)]
    assert program.plan(60_000)  # A limit that was too small is not requested again.
    assert program.asked[3:] == [(True, 80_000)]


def test_a_plan_that_needs_hardly_more_than_the_limit_is_taken(monkeypatch: Any):
    program = Asked(monkeypatch, {False: 73_500, True: 80_000})
    assert program.plan(70_000)
    assert program.asked == [(False, 70_000), (False, 73_500)]


class Halves(nn.Module):
    """Two convolutions, of which only the second allocates more than its result."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)

    def forward(self, x: Any) -> Any:
        return loss_of(self.second(self.first(x)))


def test_operators_that_need_memory_of_their_own_have_it_as_their_workspace(monkeypatch: Any):
    graph = captured_of(monkeypatch, Halves(), torch.randn(2, 3, 8, 8))
    convolution = torch.ops.aten.convolution.default
    images, channels_last = (
        Form((2, 4, 6, 6), (144, 1, 24, 4), torch.float32, "cpu"),
        Form((4, 4, 3, 3), (36, 1, 12, 4), torch.float32, "cpu"),
    )
    bias = Form((4,), (1,), torch.float32, "cpu")
    call = OperatorCall(convolution, (images, channels_last, bias, (1, 1)), ())
    set_workspaces(graph, [call], {call.memory_key: 777})
    found = {each.name: each.workspace_bytes for each in graph.operations if each.workspace_bytes}
    assert found == {"convolution_1": 777}
    rows = {row["name"]: row["workspace_bytes"] for row in graph.to_json()["ops"]}
    assert rows["convolution_1"] == 777 and rows["convolution"] == 0
