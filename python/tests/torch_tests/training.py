"""Trains a model and its planned copy, and compares all bits."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import ckplan.torch
import torch
from torch import Tensor, nn


def loss_of(output: Any) -> Tensor:
    """Returns the loss: the output, or the last one of several."""
    if isinstance(output, tuple):
        return output[-1]
    return output.float().square().mean()


def train(model: Any, batch: Callable[[], Tensor], steps: int = 3) -> list[list[Tensor]]:
    """Trains from a fixed seed. Returns the gradients of each step, then parameters and buffers."""
    torch.manual_seed(11)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.05, momentum=0.9)
    history = []
    for _ in range(steps):
        output = model(batch())
        loss_of(output).backward()
        history.append([p.grad.clone() for p in trained if p.grad is not None])
        optimizer.step()
        optimizer.zero_grad()
        del output
    history.append([tensor.clone() for tensor in model.state_dict().values()])
    return history


def assert_same(found: list[list[Tensor]], expected: list[list[Tensor]]) -> None:
    """Asserts that all bits are equal."""
    assert len(found) == len(expected)
    for step, (ours, theirs) in enumerate(zip(found, expected)):
        assert len(ours) == len(theirs), f"step {step}"
        for position, (a, b) in enumerate(zip(ours, theirs)):
            assert torch.equal(a, b), f"step {step}, tensor {position} of {len(ours)}"


def train_both(
    make: Callable[[], nn.Module],
    batch: Callable[[], Tensor],
    steps: int = 3,
    traced: bool = False,
    **options: Any,
) -> ckplan.torch.Report:
    """Trains a model twice, in eager mode and by a plan, and asserts that every bit is the same.

    ``traced`` compares with the graph that PyTorch traces, with nothing recomputed, instead of
    eager mode. Its bits are eager mode's for most models. They differ where PyTorch traces other
    operators than eager mode runs, as for dropout of 16-bit floats on a CPU.
    """
    torch.manual_seed(7)
    eager = make()
    planned = ckplan.torch.compile(copy.deepcopy(eager), effort="quick", **options)
    expected = train(torch.compile(eager, backend="aot_eager") if traced else eager, batch, steps)
    assert_same(train(planned, batch, steps), expected)
    return planned.ckplan
