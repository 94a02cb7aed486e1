"""Tests what users see of a first step that is not planned, or is refused."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import ckplan.torch
import pytest
import torch
from torch import nn


def caught(model: nn.Module, planner: Any, make: Any, steps: int = 2) -> list[str]:
    """Trains in place, and returns the warnings of ckplan."""
    model.compile(backend=planner, dynamic=False)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ckplan.PlanWarning)
        for _ in range(steps):
            model(make()).float().square().mean().backward()
    return [str(w.message) for w in said if w.category is ckplan.PlanWarning]


class Words(nn.Module):
    def __init__(self, kind: type[nn.Module], sparse: bool):
        super().__init__()
        self.words = kind(100, 8, sparse=sparse)
        self.out = nn.Linear(8, 1)

    def forward(self, i):
        return self.out(self.words(i))


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_sparse_gradients_train_in_eager_mode_with_one_warning(kind):
    torch.manual_seed(3)
    eager = Words(kind, sparse=True)
    planned, planner = copy.deepcopy(eager), ckplan.torch.Backend("100%")
    ids = torch.randint(100, (4, 6))
    said = caught(planned, planner, lambda: ids)
    assert len(said) == 1 and "not planned" in said[0] and "storage" in said[0]
    for _ in range(2):
        eager(ids).float().square().mean().backward()
    for mine, theirs in zip(planned.parameters(), eager.parameters()):
        assert mine.grad.is_sparse == theirs.grad.is_sparse
        assert torch.equal(mine.grad.to_dense(), theirs.grad.to_dense())
    assert "not planned" in planner.summary()


def breaks_in_a_loop() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4, momentum=None), nn.ReLU())


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            if x.sum() > 0:
                x = x * 2
        return x


class WithSizes(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        for _ in range(2):
            x = self.layer(x)
            x = x[x.sum(1) > -100]
        return x


class WithGradient(nn.Module):
    """Differentiates within forward, as a gradient penalty does."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        x = x.requires_grad_(True)
        y = self.layer(x).square().sum()
        (slope,) = torch.autograd.grad(y, x, create_graph=True)
        return slope.square().mean() + y


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (breaks_in_a_loop, "item"),
        (Branching, "ranching"),
        (WithSizes, "ynamic shape"),
        (WithGradient, "grad"),
    ],
)
def test_in_place_it_is_said_that_nothing_is_planned_and_why(make, reason):
    planner = ckplan.torch.Backend("60%")
    said = caught(make(), planner, lambda: torch.randn(8, 4), steps=3)
    assert planner.report.graphs == []
    assert len(said) == 1 and "nothing is planned" in said[0] and reason in said[0]
    assert "nothing is planned" in planner.summary() and said[0] in planner.summary()


def test_what_trains_nothing_is_not_said_to_be_unplanned():
    planner = ckplan.torch.Backend("60%")
    model = nn.Linear(4, 4).requires_grad_(False)
    model.compile(backend=planner, dynamic=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ckplan.PlanWarning)
        model(torch.randn(2, 4))
        with torch.no_grad():
            breaks_in_a_loop()(torch.randn(2, 4))


class Named(nn.Module):
    def __init__(net):
        super().__init__()
        net.trunk = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 32))
        net.head = nn.Linear(32, 4)

    def forward(net, x):
        return net.head(net.trunk(x))


class NamedWithBreak(Named):
    def forward(it, x):
        x = it.trunk(x)
        torch._dynamo.graph_break()
        return it.head(x)


@pytest.mark.parametrize("kind", [Named, NamedWithBreak])
@pytest.mark.parametrize("is_in_place", [True, False])
def test_modules_have_their_names_whatever_forward_calls_the_first_argument(kind, is_in_place):
    names = ["head", "trunk.1"]
    model: Any = kind()
    if is_in_place:
        planner = ckplan.torch.Backend("min", algo="dtr", keep=names)
        model.compile(backend=planner, dynamic=False)
        report = planner.report
    else:
        model = ckplan.torch.compile(model, "min", algo="dtr", keep=names)
        report = model.ckplan
    model(torch.randn(64, 32)).square().mean().backward()
    known = {name for name, _ in kind().named_modules()}
    assert {name for graph in report.graphs for name in graph.recomputed if "." in name} <= known


def test_an_error_in_place_begins_with_its_own_message():
    model = Named()
    model.compile(backend=ckplan.torch.Backend(total=100), dynamic=False)
    with pytest.raises(RuntimeError) as failure:
        model(torch.randn(64, 32))
    assert type(failure.value).__name__ == "BackendCompilerFailed"
    assert str(failure.value).startswith("total 100 is too little: the least total is ")
    inner = failure.value.inner_exception
    assert isinstance(inner, ckplan.InfeasibleError) and inner.least_bytes > 100


@pytest.mark.parametrize("limit", [1, 5_000, 20_000])
def test_a_total_that_is_too_little_names_the_least_which_is_enough(limit):
    torch.manual_seed(0)
    with pytest.raises(ckplan.InfeasibleError, match=r"the least total is [\d.]+ KiB") as failure:
        ckplan.torch.compile(Named(), total=limit, optimizer="adamw")(torch.randn(64, 32))
    least = failure.value.least_bytes
    assert failure.value.kind == "infeasible" and f"({least} bytes)" in str(failure.value)
    torch._dynamo.reset()
    model = ckplan.torch.compile(Named(), total=least, optimizer="adamw")
    model(torch.randn(64, 32)).sum().backward()
    torch._dynamo.reset()
    with pytest.raises(ckplan.InfeasibleError):
        ckplan.torch.compile(Named(), total=least - 1, optimizer="adamw")(torch.randn(64, 32))
