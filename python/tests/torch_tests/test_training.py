"""Tests training by plans: every network, unusual kinds, and the messages if there is no plan."""

from __future__ import annotations

import copy
import functools
import warnings

import ckplan
import ckplan.torch
import pytest
import torch
from torch import nn

from torch_tests.networks import NETWORKS, Bert, Gpt, ResNet, images, tokens
from torch_tests.training import assert_same, loss_of, train_both


def mlp(width: int = 32, layers: int = 4) -> nn.Sequential:
    parts: list[nn.Module] = []
    for _ in range(layers):
        parts += [nn.Linear(width, width), nn.GELU(), nn.Dropout(0.2)]
    return nn.Sequential(*parts)


def rows(count: int = 16, width: int = 32) -> torch.Tensor:
    return torch.randn(count, width)


@pytest.mark.parametrize("budget", ["100%", "80%", "65%"])
@pytest.mark.parametrize("name", NETWORKS)
def test_same_bits_within_the_planned_peak(name, budget):
    make, batch = NETWORKS[name]
    report = train_both(make, batch, traced=name == "conv-recurrent", budget=budget)
    (graph,) = report.graphs
    assert graph.plan is not None
    assert graph.measured_peak_bytes == graph.plan.peak_bytes
    assert graph.plan.peak_bytes <= int(budget[:-1]) / 100 * graph.plan.keep_all_peak_bytes


def test_least_memory_runs_random_operations_many_times_with_the_same_numbers():
    report = train_both(lambda: mlp(layers=2), rows, budget="min")
    (graph,) = report.graphs
    assert graph.measured_peak_bytes == graph.plan.peak_bytes
    runs = [graph.plan.steps.count(step) for step in set(graph.plan.steps)]
    assert max(runs) > 1


def test_random_numbers_outside_the_model_are_the_same_too():
    torch.manual_seed(3)
    model = mlp()
    planned = ckplan.torch.compile(copy.deepcopy(model), budget="60%", effort="quick")
    drawn = []
    for trained in (model, planned):
        torch.manual_seed(4)
        loss_of(trained(rows())).backward()
        drawn.append(torch.rand(8))
    assert torch.equal(*drawn)


def test_autocast_trains_the_same_bits():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Bert(2, 32, 4, 64, 16)

        def forward(self, batch):
            with torch.autocast("cpu", torch.bfloat16):
                return self.inner(batch)

    (graph,) = train_both(Mixed, tokens, traced=True, budget="60%").graphs
    assert graph.measured_peak_bytes == graph.plan.peak_bytes


def test_a_model_of_16_bit_floats():
    report = train_both(
        lambda: Bert(2, 32, 4, 64, 16).bfloat16(), tokens, traced=True, budget="60%"
    )
    (graph,) = report.graphs
    assert graph.measured_peak_bytes == graph.plan.peak_bytes


def test_a_function_and_inputs_that_want_gradients():
    weight = torch.randn(32, 32, requires_grad=True)

    def step(x):
        for _ in range(4):
            x = torch.tanh(x @ weight)
        return x.sum()

    planned = ckplan.torch.compile(step, budget="85%", effort="quick")
    inputs = [torch.randn(16, 32), torch.randn(16, 32)]
    gradients = []
    for call in (step, planned):
        leaf = inputs[0].clone().requires_grad_()
        loss = call(leaf)
        loss.backward()
        gradients.append([leaf.grad, weight.grad.clone()])
        weight.grad = None
    assert_same(gradients[1:], gradients[:1])
    assert (
        planned.ckplan.graphs[0].plan.peak_bytes < planned.ckplan.graphs[0].plan.keep_all_peak_bytes
    )


def test_another_batch_size_is_planned_again():
    torch.manual_seed(0)
    eager = mlp()
    planned = ckplan.torch.compile(copy.deepcopy(eager), budget="70%", effort="quick")
    for count in (16, 8, 24, 16):
        batch = rows(count)
        outputs = []
        for model in (eager, planned):
            torch.manual_seed(count)
            outputs.append(model(batch))
            loss_of(outputs[-1]).backward()
        assert torch.equal(*outputs)
    peaks = [graph.plan.peak_bytes for graph in planned.ckplan.graphs]
    assert len(peaks) == 3
    assert peaks[1] < peaks[0] < peaks[2]


def test_more_sizes_than_pytorch_compiles_give_a_warning():
    planned = ckplan.torch.compile(nn.Linear(4, 4), budget="100%", effort="quick")
    with (
        torch._dynamo.config.patch(recompile_limit=2),
        pytest.warns(ckplan.PlanWarning, match="recompile_limit"),
    ):
        for count in (2, 3):
            planned(torch.randn(count, 4)).sum().backward()


class Deciding(nn.Module):
    """Records in each call what the next one is for, so that PyTorch compiles it again.

    Models of transformers do this only in their first call: afterwards their configuration says
    which of several losses the labels select.
    """

    def __init__(self, kinds: list[str]):
        super().__init__()
        self.layers = mlp()
        self.kinds = kinds
        self.kind = ""

    def forward(self, batch):
        later = self.kinds.index(self.kind) + 1 if self.kind else 0
        self.kind = self.kinds[min(later, len(self.kinds) - 1)]
        output = self.layers(batch)
        return output, output.square().mean()


@pytest.mark.parametrize("returns", ["all", "loss"])
def test_a_graph_that_pytorch_compiles_again_is_planned_once(returns, monkeypatch):
    monkeypatch.setenv("CKPLAN_CACHE", "")
    plans = []
    plan = ckplan.plan
    monkeypatch.setattr(ckplan, "plan", lambda *a, **k: plans.append(1) or plan(*a, **k))
    torch.manual_seed(1)
    eager = Deciding(["loss"])
    planned = ckplan.torch.compile(
        copy.deepcopy(eager), budget="70%", effort="quick", returns=returns
    )
    gradients = []
    for model in (eager, planned):
        torch.manual_seed(2)
        for _ in range(3):
            model(rows())[1].backward()
        gradients.append([p.grad for p in model.parameters()])
    assert_same(gradients[1:], gradients[:1])
    (graph,) = planned.ckplan.graphs
    assert graph.compilations == 2
    # One plan is for the first step, and one for steps without the output, which is dropped.
    assert len(plans) == (2 if returns == "all" else 1)
    assert graph.measured_peak_bytes == graph.plan.peak_bytes


def test_graphs_that_are_compiled_too_often_give_a_warning_though_planned_once():
    planned = ckplan.torch.compile(Deciding(["a", "b", "c"]), budget="100%", effort="quick")
    with torch._dynamo.config.patch(recompile_limit=3):
        planned(rows())[-1].backward()
        with warnings.catch_warnings():
            warnings.simplefilter("error", ckplan.PlanWarning)
            planned(rows())[-1].backward()
        with pytest.warns(ckplan.PlanWarning, match="recompile_limit"):
            planned(rows())[-1].backward()
    assert len(planned.ckplan.graphs) == 1


def test_inference_passes_through():
    model = ResNet((1, 1), width=4)
    planned = ckplan.torch.compile(model, budget="60%", effort="quick")
    batch = images()
    model.eval()
    with torch.no_grad():
        assert torch.equal(planned(batch), model(batch))
    assert planned.ckplan.graphs == []
    assert "no step" in planned.ckplan.summary()


def test_evaluation_mode_with_gradients():
    (graph,) = train_both(lambda: ResNet((1, 1), width=4).eval(), images, budget="70%").graphs
    assert graph.measured_peak_bytes == graph.plan.peak_bytes


def test_gradients_accumulate_over_several_batches():
    torch.manual_seed(0)
    eager = mlp()
    planned = ckplan.torch.compile(copy.deepcopy(eager), budget="60%", effort="quick")
    for model in (eager, planned):
        torch.manual_seed(5)
        for _ in range(3):
            loss_of(model(rows())).backward()
    mine = [p.grad for p in planned.parameters()]
    assert_same([mine], [[p.grad for p in eager.parameters()]])


def test_total_counts_parameters_and_their_gradients_as_they_arrive():
    torch.manual_seed(0)
    model = mlp(64, 6)
    parameters = 4 * sum(p.numel() for p in model.parameters())
    inputs = 4 * 16 * 64
    share = ckplan.torch.compile(copy.deepcopy(model), budget="100%", effort="quick")
    loss_of(share(rows(16, 64))).backward()
    room = share.ckplan.graphs[0].plan.peak_bytes
    total = 4 * parameters + inputs + room // 2
    planned = ckplan.torch.compile(model, total=total, optimizer="adam", effort="quick")
    output = planned(rows(16, 64))
    loss_of(output).backward()
    (graph,) = planned.ckplan.graphs
    assert graph.measured_peak_bytes == graph.plan.peak_bytes
    assert 3 * parameters + inputs + graph.plan.peak_bytes <= total


def _adam8bit_state(count):
    return 8 * count if count < 4096 else 2 * count + 8 * -(-count // 256)


@pytest.mark.parametrize(
    ("optimizer", "master_weights", "state"),
    [
        ("adam", False, lambda count: 4 * count),
        ("adam", True, lambda count: 12 * count),
        ("adam8bit", False, _adam8bit_state),
        ("adam8bit", True, lambda count: _adam8bit_state(count) + 4 * count),
    ],
)
def test_total_counts_the_state_of_each_parameter_in_16_bits(optimizer, master_weights, state):
    torch.manual_seed(0)
    model = mlp(64, 6).to(torch.bfloat16)
    constants = sum(2 * p.numel() + state(p.numel()) for p in model.parameters()) + 2 * 16 * 64
    planned = ckplan.torch.compile(
        model,
        total=constants + (1 << 20),
        optimizer=optimizer,
        master_weights=master_weights,
        effort="quick",
    )
    loss_of(planned(rows(16, 64).to(torch.bfloat16))).backward()
    (graph,) = planned.ckplan.graphs
    assert graph.plan.budget_bytes == 1 << 20


class _OneGradient(nn.Module):
    """Two parameters whose gradients are one tensor, and one with an expanded gradient."""

    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(torch.randn(16, 32))
        self.second = nn.Parameter(torch.randn(16, 32))
        self.bias = nn.Parameter(torch.randn(32))

    def forward(self, x):
        return (x * (self.first + self.second)).sin() + self.bias.sum()


def test_parameters_that_share_a_gradient_have_a_state_each():
    total = 1 << 20
    # Two parameters of 512 elements and one of 32 have 8 bytes of state for each element.
    constants = 4 * (512 + 512 + 32) + 8 * (512 + 512 + 32) + 4 * 512
    planned = ckplan.torch.compile(
        _OneGradient(), total=total, optimizer="adam8bit", effort="quick"
    )
    loss_of(planned(torch.randn(16, 32))).backward()
    assert planned.ckplan.graphs[0].plan.budget_bytes == total - constants


def test_parameters_may_share_a_gradient():
    model = _OneGradient()
    planned = ckplan.torch.compile(
        copy.deepcopy(model), budget="100%", optimizer="adam8bit", effort="quick"
    )
    x = torch.randn(16, 32)
    loss_of(planned(x)).backward()
    loss_of(model(x)).backward()
    assert_same([[p.grad for p in planned.parameters()]], [[p.grad for p in model.parameters()]])
    assert planned.ckplan.graphs[0].plan is not None


def test_a_budget_below_the_least_is_refused_with_the_least():
    planned = ckplan.torch.compile(nn.Linear(32, 32), budget=1000, effort="quick")
    with pytest.raises(ckplan.InfeasibleError, match="smallest plan needs"):
        planned(rows())


def test_a_limit_is_needed_and_checked():
    with pytest.raises(ValueError, match="one memory limit"):
        ckplan.torch.compile(mlp())
    with pytest.raises(ValueError, match="one memory limit"):
        ckplan.torch.compile(mlp(), budget="60%", total="1GiB")
    with pytest.raises(ValueError, match='budget balanced: write "60%"'):
        ckplan.torch.compile(mlp(), budget="balanced")
    with pytest.raises(ValueError, match='budget 1.5: write "60%"'):
        ckplan.torch.compile(mlp(), budget=1.5)
    with pytest.raises(ValueError, match="eager"):
        ckplan.torch.compile(mlp(), budget="60%", compiler="xla")
    with pytest.raises(ValueError, match="roofline"):
        ckplan.torch.compile(mlp(), budget="60%", costs="guess")(rows())


@pytest.mark.parametrize(
    "make", [functools.partial(ckplan.torch.compile, nn.ReLU()), ckplan.torch.Backend]
)
@pytest.mark.parametrize("share", [0.6, "0.6", ".6"])
def test_a_number_below_one_is_answered_with_the_share_that_it_may_mean(make, share):
    with pytest.raises(ValueError, match='^budget 0?.6 is not .*; did you mean "60%"[?]$'):
        make(budget=share)
    with pytest.raises(ValueError, match='^total 0?.6 is not .*; did you mean budget="60%"[?]$'):
        make(total=share)


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ({"budget": 0}, "^budget 0 is too little.* needs \\d+ bytes more$"),
        ({"total": 24}, '^total 24 is too little.* bytes more; 24 is .*did you mean "24GiB"[?]$'),
    ],
)
def test_a_limit_below_all_that_is_there_says_what_is_missing(limit, message):
    with pytest.raises(ckplan.InfeasibleError, match=message):
        ckplan.torch.compile(mlp(), **limit)(rows())


def test_an_operation_that_is_unknown_trains_as_eager_with_a_warning():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = mlp()

        def forward(self, x):
            # Each branch is a graph of its own, which the joint graph calls.
            y = torch.cond(x.sum() > 0, lambda v: v * 2, lambda v: v * 3, (x,))
            return self.inner(y)

    with pytest.warns(ckplan.PlanWarning, match="not planned"):
        report = train_both(Odd, rows, budget="60%")
    assert report.graphs[0].plan is None
    assert "not planned" in report.summary()


@pytest.mark.parametrize("costs", ["flops", "measure", "roofline:a100-40g"])
def test_costs(costs):
    train_both(lambda: mlp(), rows, budget="70%", costs=costs)


def test_a_plan_is_taken_from_the_cache(monkeypatch):
    model = mlp()
    loss_of(ckplan.torch.compile(model, budget="70%", effort="quick")(rows())).backward()
    torch._dynamo.reset()
    monkeypatch.setattr(ckplan, "plan", lambda *_, **__: pytest.fail("planned again"))
    again = ckplan.torch.compile(model, budget="70%", effort="quick")
    loss_of(again(rows())).backward()
    assert again.ckplan.graphs[0].plan is not None


def test_tied_weights_have_one_gradient():
    report = train_both(lambda: Gpt(2, 32, 4, 64, 16), tokens, budget="65%")
    assert report.graphs[0].plan.added_cost > 0
