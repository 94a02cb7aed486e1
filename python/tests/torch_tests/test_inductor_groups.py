"""Tests joint graphs whose operations are the kernels that Inductor will make."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch_tests.test_modules import captured_of
from torch_tests.training import loss_of

from ckplan.torch.graph import CONSTANT, VALUE, JointGraph, Operation
from ckplan.torch.inductor.groups import Groups
from ckplan.torch.request import Request, make_plan


class Chain(nn.Module):
    """x * scale -> cos -> sin -> exp, a product, and the same again."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(64, 64))

    def forward(self, x: Any) -> Any:
        for _ in range(3):
            x = torch.exp(torch.sin(torch.cos(x * self.scale))) @ self.scale
        return loss_of(x)


@pytest.fixture
def captured(monkeypatch: Any) -> JointGraph:
    return captured_of(monkeypatch, Chain(), torch.randn(64, 64))


def test_what_one_operation_alone_reads_is_part_of_it(captured):
    groups = Groups(captured)
    assert len(groups.graph.operations) < len(captured.operations)
    assert len(groups.graph.values) < len(captured.values)
    assert sum(each.cost for each in groups.graph.operations) == sum(
        each.cost for each in captured.operations
    )
    names = {value.name for value in captured.values} - {v.name for v in groups.graph.values}
    readers = {
        value.name: [each for each in captured.operations if value.id in each.reads]
        for value in captured.values
    }
    assert names and all(len(readers[name]) == 1 for name in names)
    # Products, and what backward operations read of the forward pass, are values still.
    kept = {value.name for value in groups.graph.values}
    assert any(name.startswith("mm") for name in kept) and "cos" in kept


@pytest.mark.parametrize("limit", ["100%", "min"])
def test_a_plan_of_groups_is_one_of_the_whole_graph(captured, limit):
    groups = Groups(captured)
    request = Request(budget=limit, algo="dtr")
    found = make_plan(groups.graph, request, limit)
    plan = groups.expanded(found)
    assert set(plan.steps) == set(range(len(captured.operations)))
    assert (len(plan.steps) > len(captured.operations)) == (limit == "min")
    made = {value.id for value in captured.values if value.kind == CONSTANT}
    for step in plan.steps:
        operation = captured.operations[step]
        assert made.issuperset(operation.reads), operation.name
        made.update(operation.writes)


def test_an_operation_that_must_run_again_stays_one_of_its_own(captured):
    graph = Groups(captured).graph
    inner = {each.name for each in captured.operations} - {each.name for each in graph.operations}
    captured.recomputed = sorted(inner)
    again = Groups(captured).graph
    assert {each.name for each in captured.operations} == {each.name for each in again.operations}


def halves(made: torch.Tensor) -> JointGraph:
    """Returns an operation, the boundary, and two backward operations of which one reads it."""
    graph, joint = torch.fx.Graph(), JointGraph()
    for position in range(4):
        joint.add_value(str(position), 8, CONSTANT if position == 0 else VALUE)
    nodes = [graph.call_function(torch.ops.aten.cos.default, ()) for _ in range(3)]
    nodes[0].meta["val"] = made
    joint.operations = [
        Operation(0, nodes[0], [0], [1]),
        Operation(1, None, [], []),
        Operation(2, nodes[1], [1], [2], is_backward=True),
        Operation(3, nodes[2], [2], [3], is_backward=True),
    ]
    joint.boundary, joint.results = 1, [3]
    return joint


def test_forward_and_backward_operations_stay_apart():
    groups = Groups(halves(torch.empty(2)))
    assert [each.writes for each in groups.graph.operations] == [[1], [], [2]]
    assert groups.graph.boundary == 1 and groups.graph.results == [2]


def test_a_mask_is_made_where_it_is_read_on_a_cpu():
    mask = torch.empty(8, dtype=torch.bool)
    groups = Groups(halves(mask))
    assert [each.writes for each in groups.graph.operations] == [[], [1]]
    assert groups.graph.boundary == 0 and groups.graph.results == [1]
    on_gpu = Groups(halves(mask.to("meta")))
    assert len(on_gpu.graph.operations) == 3
    assert len(Groups(halves(mask), keeps_masks=True).graph.operations) == 3


def test_a_mask_that_several_read_counts_as_floats():
    joint = halves(torch.empty(8, dtype=torch.bool))
    joint.operations[3].reads.append(1)
    sizes = [value.bytes for value in Groups(joint).graph.values]
    assert sizes == [8, 4 * 8, 8]
    assert [value.bytes for value in Groups(joint, keeps_masks=True).graph.values] == [8, 8, 8]
