"""Estimates of loops that hold the results of the model, until the model has returned again."""

from __future__ import annotations

import json
import re

import ckplan.torch
import pytest
import torch
from torch import nn
from torch_tests.schema import faults
from torch_tests.test_estimate import SCHEMA, estimate_small, many_inputs, small_gpt
from torch_tests.training import loss_of

from ckplan.torch.estimation import tracing
from ckplan.torch.estimation.events import trace
from ckplan.torch.estimation.held_results import BEFORE, bytes_before

FP32 = tracing.Precision.named("fp32")
WIDE = 4 * 8 * 1000
"""The bytes of the result that the caller holds beside the loss."""


class WithStates(nn.Module):
    """Returns the loss, and a large result that the loss does not depend on."""

    def __init__(self):
        super().__init__()
        self.narrow = nn.Linear(4, 1, bias=False)
        self.register_buffer("wide", torch.ones(1, 1000))

    def forward(self, x):
        y = self.narrow(x)
        return {"loss": y.square().mean(), "states": y @ self.wide}


#   loss 4 bytes and states 32,000, and as much of the step before.
def test_results_are_held_until_the_model_has_returned_again():
    step = tracing.trace_step(WithStates, torch.zeros(8, 4), FP32, returns="all")
    graph = step.graph(arriving=True)
    first = graph.operations[0]
    assert first.name == BEFORE and not first.repeats
    assert bytes_before(graph) == WIDE + 4
    events = trace(graph, range(len(graph.operations))).events
    live = most = 0
    freed = None
    for position, event in enumerate(events):
        live += event.bytes
        most = max(most, live)
        if event.bytes == -WIDE and freed is None:
            freed = position
    # Both exist when the model returns; then those of the previous step are freed.
    assert 2 * WIDE < most < 2 * WIDE + 500
    assert freed is not None
    assert sum(event.bytes for event in events[: freed + 1]) < WIDE + 500
    # The results of this step stay, with the gradients of the layer and of the loss.
    assert live == WIDE + 4 + 4 * 4 + 4


def test_the_loss_alone_needs_none_of_it():
    step = tracing.trace_step(WithStates, torch.zeros(8, 4), FP32)
    graph = step.graph(arriving=True)
    assert bytes_before(graph) == 0
    assert max(value.bytes for value in graph.values if value.kind == "value") < 500


def test_an_estimate_of_all_results_counts_them():
    alone, everything = estimate_small(many_inputs), estimate_small(many_inputs, returns="all")
    logits = 4 * 128 * 64 * 64
    assert everything.before_bytes >= logits
    assert everything.backward_bytes >= alone.backward_bytes + logits
    assert everything.optimizer_bytes == alone.optimizer_bytes
    assert "all results held" in str(everything) and "held" not in str(alone)
    content = json.loads(json.dumps(everything.to_json()))
    assert content["returns"] == "all"
    assert faults(content, SCHEMA, SCHEMA) == []


def test_the_plan_for_all_results_trains_with_those_of_the_step_before():
    free = estimate_small(many_inputs, optimizer="sgd", returns="all")
    allocator = next(line for line in free.keep_all.lines if line.name == "allocator")
    memory = free.keep_all.bytes - allocator.bytes - free.backward_bytes // 8
    found = estimate_small(many_inputs, optimizer="sgd", returns="all", memory=memory)
    assert found.plan is not None and found.planned is not None
    steps = [step[1] for step in found.plan["schedule"]["steps"]]
    assert steps[0] == 0 and steps.count(0) == 1, "they are there before anything runs"
    total = int(re.fullmatch(r'total=(\d+), returns="all"', found.arguments())[1])
    torch._dynamo.reset()
    model = small_gpt()
    compiled = ckplan.torch.compile(model, total=total, returns="all")
    for _ in range(2):
        held = compiled(many_inputs()[0])
        loss_of(held).backward()
        model.zero_grad()
    peak = max(entry.measured_peak_bytes for entry in compiled.ckplan.graphs)
    assert peak + found.before_bytes <= found.plan["result"]["peak_bytes"]


def test_other_returns_are_refused():
    with pytest.raises(ValueError, match='returns must be "all" or "loss", not .logits.'):
        estimate_small(returns="logits")
