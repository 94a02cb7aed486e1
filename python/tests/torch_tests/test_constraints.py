"""Tests constraints on the plans of a model: what is kept, recomputed, and never run again."""

from __future__ import annotations

import warnings
from collections import Counter

import ckplan.torch
import pytest
import torch
from torch import nn
from torch_tests.networks import Stack, TwoParts
from torch_tests.training import train_both

from ckplan.torch.request import Request


def block() -> nn.Sequential:
    return nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Dropout(0.2))


def mlp() -> nn.Sequential:
    return nn.Sequential(*(block() for _ in range(4)))


def rows() -> torch.Tensor:
    return torch.randn(16, 32)


def runs(report: ckplan.torch.Report) -> dict[str, int]:
    """Returns how often the operations of each module run in the plan of the only graph."""
    (graph,) = report.graphs
    return dict(graph.recomputed)


def test_what_is_kept_runs_once():
    free = runs(train_both(mlp, rows, budget="65%"))
    assert any(module.startswith("1.") for module in free)
    torch._dynamo.reset()
    report = train_both(mlp, rows, budget="65%", keep="1")
    assert runs(report) and not any(module.startswith("1.") for module in runs(report))
    assert report.graphs[0].plan.peak_bytes <= 0.65 * report.graphs[0].plan.keep_all_peak_bytes
    assert report.summary().startswith("ckplan: budget 65%, best, costs roofline, keep 1\n")


def test_what_is_recomputed_runs_again_within_any_budget():
    report = train_both(mlp, rows, budget="100%", recompute="1")
    assert {"1.0", "1.2"} <= set(runs(report)) <= {"1.0", "1.1", "1.2"}
    # The plan obeys when it comes from the cache, too, which takes no plan without the constraint.
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ckplan.PlanWarning)
        assert runs(train_both(mlp, rows, budget="100%", recompute="1")) == runs(report)
        torch._dynamo.reset()
        assert runs(train_both(mlp, rows, budget="100%")) == {}


def test_what_is_never_to_run_again_may_be_named_by_operator():
    report = train_both(mlp, rows, budget="min", algo="dtr", never_rerun=["op:addmm", "op:*gelu"])
    graph = report.graphs[0].plan
    assert max(Counter(graph.steps).values()) > 1, "dropout may run again"
    assert set(runs(report)) <= {f"{layer}.2" for layer in range(4)}


def recomputed(*patterns: str) -> list[str]:
    """Returns the operations that patterns choose, without those whose runs nobody needs."""
    model, planner = Stack(*mlp()), ckplan.torch.Backend(budget="100%", recompute=patterns)
    model.compile(backend=planner, dynamic=False)
    model(rows()).sum()
    (graph,) = planner.report.graphs
    return graph.plan.document["request"]["recompute"]


def test_the_last_pattern_that_matches_decides(tmp_path):
    layers = ["addmm_1", "gelu_1", "native_dropout_1", "addmm_2", "gelu_2", "native_dropout_2"]
    assert recomputed("1", "2") == layers
    assert recomputed("?", "!0", "!3") == layers
    assert recomputed("!0", "!3", "!op:aten.gelu.default") == [
        name for name in layers if "gelu" not in name
    ]
    file = tmp_path / "patterns.txt"
    file.write_text("# two layers\n1.*\n\n2.*\n!op:aten.gelu\n")
    assert recomputed(f"@{file}") == [name for name in layers if "gelu" not in name]


def broken() -> TwoParts:
    return TwoParts(mlp(), mlp())


def test_a_pattern_may_match_in_one_of_several_graphs():
    report = train_both(broken, rows, budget="100%", recompute="second.1", keep="first")
    first, second = report.graphs
    assert not first.recomputed
    assert set(second.recomputed) <= {f"second.1.{place}" for place in range(3)}
    assert second.recomputed


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (
            {"recompute": "frist"},
            'recompute: no operation is in a module named "frist"; did you mean first',
        ),
        ({"keep": ["first", "!op:veiw"]}, 'keep: no operation matches "op:veiw"; views'),
        ({"never_rerun": "op:*glu"}, 'never_rerun: no operation matches "op:\\*glu"; views'),
    ],
)
def test_a_pattern_that_matches_nothing_is_an_error(constraints, message):
    planned = ckplan.torch.compile(broken(), budget="100%", **constraints)
    with pytest.raises(ValueError, match=message):
        planned(rows())
    model = broken()
    model.compile(backend=ckplan.torch.Backend(budget="100%", **constraints), dynamic=False)
    output = model(rows()).sum()
    with pytest.raises(ValueError, match=message):
        output.backward()


@pytest.mark.parametrize("other", ["keep", "never_rerun"])
def test_a_contradiction_is_an_error(other):
    planned = ckplan.torch.compile(mlp(), budget="100%", recompute="op:gelu", **{other: "1"})
    with pytest.raises(ValueError, match="gelu_1 in 1.1 .* must be both recomputed and"):
        planned(rows())


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"keep": 3}, "keep must be a pattern or a list of patterns, not 3"),
        ({"recompute": [None]}, "recompute must be a pattern or a list of patterns, not"),
        ({"keep": ""}, 'keep: "" is not a pattern'),
        ({"never_rerun": ["!op:"]}, 'never_rerun: "!op:" is not a pattern'),
        (
            {"keep": "@/dev/zero"},
            "keep: cannot read the patterns in @/dev/zero: it is not a regular",
        ),
        ({"keep": "@missing.txt"}, "keep: cannot read the patterns in @missing.txt: .*No such"),
    ],
)
def test_what_is_no_pattern_is_an_error(constraints, message):
    with pytest.raises(ValueError, match=message):
        Request(budget="60%", **constraints)
