"""Tests ``torch.compile(model, backend="ckplan")``, found by the entry point of the package."""

from __future__ import annotations

import copy
import inspect

import ckplan.torch
import pytest
import torch
from torch import nn
from torch_tests.networks import TwoParts
from torch_tests.training import assert_same, train

from ckplan.torch import named


def mlp() -> nn.Sequential:
    torch.manual_seed(7)
    layers = [(nn.Linear(32, 32), nn.GELU(), nn.Dropout(0.2)) for _ in range(4)]
    return nn.Sequential(*(module for layer in layers for module in layer))


def rows() -> torch.Tensor:
    return torch.randn(16, 32)


def compiled(model: nn.Module, **options):
    return torch.compile(model, backend="ckplan", options=options, dynamic=False)


def test_pytorch_lists_the_backend():
    assert "ckplan" in torch._dynamo.list_backends()


def test_a_model_trains_by_a_plan_under_the_name():
    model = mlp()
    planned = compiled(copy.deepcopy(model), budget="70%", effort="normal")
    assert_same(train(planned, rows), train(model, rows))
    (planner,) = ckplan.torch.backends()
    (graph,) = planner.report.graphs
    assert (
        graph.measured_peak_bytes <= graph.plan.peak_bytes <= 0.7 * graph.plan.keep_all_peak_bytes
    )
    assert planner.report.request.effort == "normal"
    assert planner.summary() == planner.report.summary()
    assert planner.summary().startswith("ckplan: budget 70%, best")


def broken() -> TwoParts:
    return TwoParts(mlp(), mlp())


def test_each_torch_compile_has_its_own_planner():
    models = [compiled(broken(), budget="100%"), compiled(broken(), budget="min", algo="dtr")]
    for model in models:
        model(rows()).sum().backward()
    planners = ckplan.torch.backends()
    assert [planner.report.request.budget for planner in planners] == ["100%", "min"]
    assert [[g.part for g in planner.report.graphs] for planner in planners] == [[0, 1], [0, 1]]


def test_a_dictionary_that_has_changed_is_another_request():
    options = {"budget": "100%"}
    torch.compile(mlp(), backend="ckplan", options=options)(rows()).sum().backward()
    options["budget"] = "min"
    other = nn.Sequential(nn.Linear(32, 8), nn.Tanh(), nn.Linear(8, 1))
    torch.compile(other, backend="ckplan", options=options)(rows()).sum().backward()
    planners = ckplan.torch.backends()
    assert [planner.report.request.budget for planner in planners] == ["100%", "min"]


def test_reset_forgets_the_planners():
    compiled(mlp(), budget="100%")(rows()).sum().backward()
    assert len(ckplan.torch.backends()) == 1
    torch._dynamo.reset()
    assert ckplan.torch.backends() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"bugdet": "60%"},
            'backend "ckplan" has no option "bugdet"; did you mean "budget"\\? '
            "its options are budget, total, algo, ",
        ),
        (
            {"budget": "60%", "triton.cudagraphs": True},
            'no option "triton.cudagraphs"; its options',
        ),
        ({"budget": 0.6}, 'budget 0.6 is not a number of bytes; did you mean "60%"\\?'),
        (
            {"budget": "60%", "compiler": "nvcc"},
            'compiler must be "eager" or "inductor", not \'nvcc\'',
        ),
        ({"algo": "best"}, 'set one memory limit: budget="60%", total="16GiB" or memory="24GiB"'),
        ({}, 'set one memory limit: budget="60%", total="16GiB" or memory="24GiB"'),
    ],
)
def test_wrong_options_are_named(options, message):
    # PyTorch passes options on when it compiles the first graph, and wraps what a backend raises.
    with pytest.raises(Exception, match=message) as caught:
        compiled(mlp(), **options)(rows())
    assert isinstance(caught.value.inner_exception, ValueError)
    assert ckplan.torch.backends() == []


def test_a_mode_is_refused():
    with pytest.raises(
        Exception, match='"ckplan" does not accept mode=; its options are budget, total'
    ):
        torch.compile(mlp(), backend="ckplan", mode="max-autotune")(rows())


def test_all_ways_take_the_same_options():
    by_compile = inspect.signature(ckplan.torch.compile).parameters
    in_place = inspect.signature(ckplan.torch.Backend).parameters
    shared = [name for name in by_compile if name not in ("model", "fullgraph")]
    assert shared == list(in_place)
    assert set(shared) == set(named.OPTIONS) == {"budget", *ckplan.torch.Options.__annotations__}
    for name in shared:
        assert by_compile[name] == in_place[name]
