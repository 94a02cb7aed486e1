"""Tests plans for results that the caller drops, or for which no gradient arrives."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import ckplan
import ckplan.torch
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torch_tests.training import assert_same

WORDS = 512


class Language(nn.Module):
    """Returns its loss and its logits, as models of transformers do."""

    def __init__(self, norm: type[nn.Module] = nn.LayerNorm):
        super().__init__()
        self.words = nn.Embedding(WORDS, 32)
        parts = (nn.Linear(32, 256), nn.GELU(), nn.Dropout(0.2), nn.Linear(256, 32), norm(32))
        self.layers = nn.Sequential(*parts, *copy.deepcopy(parts))
        self.head = nn.Linear(32, WORDS)

    def forward(self, tokens: Tensor) -> dict[str, Tensor]:
        logits = self.head(self.layers(self.words(tokens).flatten(0, 1)))
        return {"loss": F.cross_entropy(logits, tokens.flatten()), "logits": logits}


LOGITS_BYTES = 4 * 32 * WORDS


def tokens() -> Tensor:
    return torch.randint(WORDS, (2, 16))


def language(norm: type[nn.Module] = nn.LayerNorm) -> Language:
    torch.manual_seed(1)
    return Language(norm)


Use = Callable[[dict[str, Tensor]], Any]


def loss_alone(output: dict[str, Tensor]) -> None:
    loss = output.pop("loss")
    output.clear()
    loss.backward()


def also_held(output: dict[str, Tensor]) -> Tensor:
    output["loss"].backward()
    return output["logits"].argmax(-1)


def with_a_gradient(output: dict[str, Tensor]) -> None:
    (output["loss"] + output["logits"].square().mean()).backward()


def train(model: Any, uses: list[Use]) -> list[list[Tensor]]:
    """Trains one step for each use of the outputs. Returns gradients, and then all state."""
    torch.manual_seed(6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for use in uses:
        output = model(tokens())
        use(output)
        del output
        history.append([p.grad.clone() for p in model.parameters()])
        optimizer.step()
        optimizer.zero_grad()
    history.append([*(tensor.clone() for tensor in model.state_dict().values()), torch.rand(4)])
    return history


def both(
    uses: list[Use], norm: type[nn.Module] = nn.LayerNorm, **options: Any
) -> ckplan.torch.Report:
    """Trains in eager mode and by a plan, and asserts that every bit is the same."""
    options = {"budget": "100%", "effort": "quick"} | options
    planned = ckplan.torch.compile(language(norm), **options)
    expected = train(language(norm), uses)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ckplan.PlanWarning)
        assert_same(train(planned, uses), expected)
    planned.ckplan.said = [str(w.message) for w in caught if w.category is ckplan.PlanWarning]
    return planned.ckplan


def loss_compiled() -> ckplan.torch.GraphReport:
    """Returns the report of a step in which only the loss is compiled."""
    model = language()
    planned = ckplan.torch.compile(lambda x: model(x)["loss"], budget="100%", effort="quick")
    planned(tokens()).backward()
    torch._dynamo.reset()
    return planned.ckplan.graphs[0]


def test_dropped_logits_are_not_planned_for_from_the_second_step_on():
    alone = loss_compiled()
    report = both([loss_alone])
    (first,) = report.graphs
    assert first.plan.keep_all_peak_bytes >= alone.plan.keep_all_peak_bytes + LOGITS_BYTES
    torch._dynamo.reset()
    report = both([loss_alone] * 3)
    (graph,) = report.graphs
    assert graph.plan.keep_all_peak_bytes == alone.plan.keep_all_peak_bytes
    assert graph.measured_peak_bytes == graph.plan.peak_bytes
    assert sum("drops results" in said for said in report.said) == 1
    assert "caller drops" in report.summary()


class Reconstruction(Language):
    """A model whose loss reads another returned result in backward."""

    def forward(self, tokens: Tensor) -> dict[str, Tensor]:
        logits = self.head(self.layers(self.words(tokens).flatten(0, 1)))
        return {"loss": logits.square().mean(), "logits": logits}


def test_a_result_that_the_backward_pass_reads_can_be_dropped():
    planned = ckplan.torch.compile(Reconstruction(), budget="100%", effort="quick")
    train(planned, [loss_alone] * 3)
    (graph,) = planned.ckplan.graphs
    assert "caller drops" in graph.note
    assert [note for note in planned.ckplan.notes if "dropped before" in note] == []
    assert graph.measured_peak_bytes == graph.plan.peak_bytes


def test_returns_loss_leaves_logits_out_from_the_first_step_on():
    alone = loss_compiled()
    report = both([loss_alone] * 2, returns="loss")
    (graph,) = report.graphs
    assert graph.plan.keep_all_peak_bytes == alone.plan.keep_all_peak_bytes
    assert graph.measured_peak_bytes == graph.plan.peak_bytes
    assert report.said == []
    assert graph.note == ""


@pytest.mark.parametrize("norm", [nn.LayerNorm, nn.BatchNorm1d])
@pytest.mark.parametrize("returns", ["all", "loss"])
@pytest.mark.parametrize("use", [also_held, with_a_gradient])
def test_a_caller_that_uses_more_after_all_gets_the_same_bits(use, returns, norm):
    uses = [loss_alone, loss_alone, use, use, loss_alone]
    report = both(uses, norm, returns=returns, budget="90%")
    (graph,) = report.graphs
    assert sum("dropped before" in said for said in report.said) == 1
    torch._dynamo.reset()
    assert graph.plan.keep_all_peak_bytes > loss_compiled().plan.keep_all_peak_bytes
    assert graph.measured_peak_bytes <= graph.plan.peak_bytes
    assert graph.plan.added_cost > 0 or graph.plan.peak_bytes < graph.plan.keep_all_peak_bytes


def test_a_caller_that_uses_everything_is_planned_once(monkeypatch):
    plans = []
    plan = ckplan.plan
    monkeypatch.setattr(ckplan, "plan", lambda *a, **k: plans.append(1) or plan(*a, **k))
    report = both([with_a_gradient] * 3)
    assert len(plans) == 1
    assert report.said == []


def test_results_are_held_by_a_view_of_them():
    views = []

    def hold_a_view(output: dict[str, Tensor]) -> None:
        loss = output.pop("loss")
        views.append(output.pop("logits").detach()[:1])
        loss.backward()

    (graph,) = both([hold_a_view] * 3).graphs
    # The zero gradient is not planned for, but the logits are.
    difference = graph.plan.keep_all_peak_bytes - loss_compiled().plan.keep_all_peak_bytes
    assert 0 <= difference <= LOGITS_BYTES
    assert graph.measured_peak_bytes <= graph.plan.peak_bytes


def test_a_tensor_that_was_changed_in_place_is_refused_as_by_pytorch():
    planned = ckplan.torch.compile(language(), budget="100%", effort="quick")
    for _ in range(2):
        loss_alone(planned(tokens()))
    output = planned(tokens())
    with torch.no_grad():
        planned.head.weight.add_(1)
    with pytest.raises(RuntimeError, match="in ?place"):
        loss_alone(output)


class Twofold(nn.Module):
    """A model with two heads, one of which the caller may ignore."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(32, 64), nn.GELU())
        self.heads = nn.ModuleList(nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(2))

    def forward(self, x: Tensor) -> list[Tensor]:
        x = self.body(x)
        return [head(x).square().sum(1) for head in self.heads]


def test_a_head_without_a_gradient_is_not_run_backward():
    torch.manual_seed(2)
    eager = Twofold()
    planned = ckplan.torch.compile(copy.deepcopy(eager), budget="100%", effort="quick")
    for _ in range(3):
        x = torch.randn(64, 32)
        for model in (eager, planned):
            model.zero_grad()
            model(x)[0].sum().backward()
    for (name, mine), theirs in zip(planned.named_parameters(), eager.parameters()):
        if "heads.1" in name:
            # PyTorch's own compilers also return zeros.
            assert theirs.grad is None and not mine.grad.any()
        else:
            assert torch.equal(mine.grad, theirs.grad)
    (graph,) = planned.ckplan.graphs
    assert "without a gradient" in graph.note


def test_values_that_returns_accepts():
    with pytest.raises(ValueError, match='returns must be "all" or "loss"'):
        ckplan.torch.compile(language(), budget="100%", returns="logits")
    with pytest.raises(ValueError, match="compiler"):
        ckplan.torch.compile(language(), budget="100%", returns="loss", compiler="inductor")


def test_returns_loss_of_a_model_without_a_loss_plans_all_results():
    planned = ckplan.torch.compile(Twofold(), budget="100%", effort="quick", returns="loss")
    with pytest.warns(ckplan.PlanWarning, match="no one-element result"):
        planned(torch.randn(8, 32))[0].sum().backward()
    (graph,) = planned.ckplan.graphs
    assert graph.plan is not None
