"""Sizes that depend on data: planned for by their bounds, trained with the sizes that they have."""

from __future__ import annotations

import ckplan
import ckplan.torch
import pytest
import torch
from torch import nn
from torch_tests.training import train_both

from ckplan.torch.estimation.tracing import Precision, trace_step

TOKENS, WIDTH, EXPERTS = 64, 8, 3


class Experts(nn.Module):
    """A mixture of experts that drops no token: each takes as many as have chosen it."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
            for _ in range(EXPERTS)
        )

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2, -1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            token, place = torch.where(chosen == number)
            made = expert(x[token]) * weights[token, place].unsqueeze(-1)
            out = out.index_add(0, token, made)
        return out


class Sparse(nn.Module):
    """Experts, and a loss over the rows that a mask leaves."""

    def __init__(self, layers=2):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.layers = nn.ModuleList(Experts() for _ in range(layers))

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = x + layer(x)
        kept = x[x[:, 0] > 0]
        return kept.square().mean()


BOUNDS = {"torch.where(chosen": TOKENS, "x[x[:, 0] > 0]": TOKENS}


def batch():
    return torch.randn(TOKENS, WIDTH)


@pytest.mark.parametrize("budget", ["100%", "60%", "min"])
def test_sizes_below_their_bounds_train_the_same_bits_in_less_memory(budget):
    report = train_both(Sparse, batch, budget=budget, bounds=BOUNDS)
    (graph,) = report.graphs
    assert graph.refusal == ""
    assert graph.measured_peak_bytes < graph.plan.peak_bytes
    assert (graph.plan.added_cost > 0) == (budget != "100%")


def test_where_sizes_equal_their_bounds_the_peak_is_the_planned_one():
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            rows = torch.nonzero(x[:, 0] > 0)[:, 0]
            return self.layer(self.layer(x[rows]).tanh()).square().mean()

    def rows():
        x = torch.randn(TOKENS, WIDTH)
        x[:, 0] = torch.tensor([1.0, -1.0]).repeat(TOKENS // 2)
        return x

    graphs = []
    for bounds in ({"u0": TOKENS // 2}, {"torch.nonzero(": TOKENS}):
        torch._dynamo.reset()
        compiled = ckplan.torch.compile(Half(), "100%", bounds=bounds)
        compiled(rows()).backward()
        graphs += compiled.ckplan.graphs
    tight, wide = graphs
    assert tight.measured_peak_bytes == tight.plan.peak_bytes == wide.measured_peak_bytes
    assert tight.plan.peak_bytes < wide.plan.peak_bytes


def test_a_size_above_its_bound_stops_the_step():
    compiled = ckplan.torch.compile(Sparse(), "100%", bounds={**BOUNDS, "torch.where(chosen": 5})
    match = r"size u0 \(test_bounds.py, line \d+, `token, place = torch.where\(chosen == number\)`"
    with pytest.raises(ckplan.torch.SizeAboveBoundError, match=match):
        compiled(batch())


def test_without_bounds_the_error_names_each_size_and_what_to_type():
    compiled = ckplan.torch.compile(Sparse(), "100%", bounds={"x[x[:, 0] > 0]": TOKENS})
    with pytest.raises(ckplan.torch.UnboundedSizeError) as raised:
        compiled(batch())
    text = str(raised.value)
    assert "u0, u1, u2, u3, u4, u5 at test_bounds.py, line " in text
    assert "of layers.0 and 1 other module, at most 128" in text
    assert "u6" not in text
    assert "bounds={'token, place = torch.where(chosen == number)': 128}" in text


def test_without_the_argument_such_a_size_ends_a_graph_as_before():
    compiled = ckplan.torch.compile(Sparse(layers=0), "100%")
    compiled(batch()).backward()
    assert len(compiled.ckplan.graphs) == 2
    # TorchDynamo leaves a function alone where a graph would end within a loop.
    compiled = ckplan.torch.compile(Sparse(), "100%")
    with pytest.warns(ckplan.PlanWarning, match="bounds={} allows data-dependent sizes"):
        compiled(batch())


def test_a_caller_who_drops_results_and_uses_them_later():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(WIDTH, 16 * WIDTH)
            self.second = nn.Linear(16 * WIDTH, WIDTH)

        def forward(self, x):
            rows = x[x[:, 0] > 0]
            wide = self.first(rows).tanh()
            return self.first(x).square(), self.second(wide).square().mean()

    torch.manual_seed(0)
    eager = Two()
    planned = ckplan.torch.compile(eager, "100%", bounds={"u0": TOKENS})
    for step in range(4):
        found = []
        for model in (eager, planned):
            torch.manual_seed(step)
            wide, loss = model(batch())
            (loss + wide.mean() if step == 2 else loss).backward()
            found.append([p.grad.clone() for p in eager.parameters()])
            eager.zero_grad()
            del wide, loss
        assert all(torch.equal(a, b) for a, b in zip(*found)), step


@pytest.mark.parametrize("bounds", [{"u0": 0}, {"u0": True}, {"u0": "4"}, {"": 4}, {3: 4}])
def test_bounds_that_are_none(bounds):
    with pytest.raises(ValueError, match="bounds: "):
        ckplan.torch.compile(Sparse(), "100%", bounds=bounds)
    with pytest.raises(TypeError, match="dictionary"):
        ckplan.torch.estimate(Sparse, (batch(),), bounds=[("u0", 4)])


def test_an_estimate_counts_the_bounds():
    with pytest.raises(ckplan.torch.UnboundedSizeError, match="u6 at test_bounds.py"):
        ckplan.torch.estimate(Sparse, (batch(),), precision="fp32")
    found = [
        ckplan.torch.estimate(Sparse, (batch(),), precision="fp32", bounds=bounds).backward_bytes
        for bounds in (BOUNDS, {**BOUNDS, "torch.where(chosen": 2 * TOKENS})
    ]
    assert found[0] < found[1]
    torch._dynamo.reset()
    compiled = ckplan.torch.compile(Sparse(), "100%", bounds=BOUNDS)
    compiled(batch()).backward()
    step = trace_step(Sparse, (batch(),), Precision.named("fp32"), None, BOUNDS)
    assert len(step.graph(arriving=False).operations) == compiled.ckplan.graphs[0].operations


def every_expert(self, states, chosen, weights):
    """Computes each expert on the tokens that chose it; transformers' own loop visits those hit."""
    out = torch.zeros_like(states)
    for expert in range(self.num_experts):
        token, place = torch.where(chosen == expert)
        gate, up = nn.functional.linear(states[token], self.gate_up_proj[expert]).chunk(2, dim=-1)
        made = nn.functional.linear(self.act_fn(gate) * up, self.down_proj[expert])
        out = out.index_add(0, token, made * weights[token, place, None])
    return out


def test_mixtral_of_transformers_with_a_bound_on_the_tokens_of_an_expert():
    transformers = pytest.importorskip("transformers")
    experts = pytest.importorskip("transformers.integrations.moe").ALL_EXPERTS_FUNCTIONS
    experts.register("every", every_expert)

    class Mixtral(nn.Module):
        def __init__(self):
            super().__init__()
            config = transformers.MixtralConfig(
                vocab_size=64,
                hidden_size=32,
                intermediate_size=64,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=2,
                num_local_experts=4,
                use_cache=False,
                # PyTorch traces other operators for fused attention than eager mode runs.
                attn_implementation="eager",
                experts_implementation="every",
            )
            self.model = transformers.MixtralForCausalLM(config)

        def forward(self, ids):
            return self.model(input_ids=ids, labels=ids).loss

    def ids():
        return torch.randint(64, (2, 32))

    report = train_both(Mixtral, ids, budget="60%", bounds={"torch.where(chosen": 64})
    (graph,) = report.graphs
    assert graph.measured_peak_bytes <= graph.plan.peak_bytes
    assert graph.plan.added_cost > 0
