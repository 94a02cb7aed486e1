"""The memory of optimizers: by hand, and against real steps on a CPU."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ckplan.torch.estimation import optimizers
from ckplan.torch.tracker import Tracker

SHAPES = [(1000, 100), (100,), (300, 50)]
COUNT = sum(torch.Size(shape).numel() for shape in SHAPES)


def parameters(dtype=torch.float32):
    return [nn.Parameter(torch.ones(shape, dtype=dtype)) for shape in SHAPES]


@pytest.mark.parametrize(
    ("name", "state", "step"),
    [
        ("sgd", 0, 0),
        ("momentum", 4 * COUNT, 0),
        # Two averages, and the roots of one of them for all parameters at once.
        ("adamw", 8 * COUNT, 4 * COUNT),
        # A fused step has no temporaries, but counters of 4 bytes on the device.
        ("adamw:fused", 8 * COUNT + 4 * len(SHAPES), 0),
        # Adam with decay adds it to copies of the gradients; without, as here, it has none.
        ("adam", 8 * COUNT, 4 * COUNT),
    ],
)
def test_state_and_temporaries_by_hand(name, state, step):
    found = optimizers.measure(name, parameters())
    assert (found.state_bytes, found.step_bytes) == (state, step)
    assert sum(event.bytes for event in found.step) == 0


@pytest.mark.parametrize("name", ["adamw", "momentum", "sgd"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_step_one_by_one_is_that_of_a_real_run(name, dtype):
    trained = parameters(dtype)
    makers = {
        "adamw": lambda: torch.optim.AdamW(trained, lr=1e-3, foreach=False),
        "momentum": lambda: torch.optim.SGD(trained, lr=1e-3, momentum=0.9, foreach=False),
        "sgd": lambda: torch.optim.SGD(trained, lr=1e-3, foreach=False),
    }
    optimizer = makers[name]()
    for parameter in trained:
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    state = [value for row in optimizer.state.values() for value in row.values()]
    state = [value for value in state if isinstance(value, torch.Tensor) and value.numel() > 1]
    tracker = Tracker()
    kept = [*trained, *(p.grad for p in trained), *optimizer.state_dict()["state"].values()]
    tracker.run(lambda _: optimizer.step(), [*kept, *state])
    found = optimizers.measure(f"{name}:for-loop", trained)
    assert found.state_bytes == sum(value.nbytes for value in state)
    # A real run on a CPU has its counters there too, of 4 bytes each.
    assert 0 <= tracker.peak_bytes() - found.step_bytes <= 4 * len(trained)


def test_an_optimizer_of_the_caller_runs_as_on_a_gpu():
    found = optimizers.measure(lambda rows: torch.optim.RMSprop(rows, lr=1e-3), parameters())
    assert found.state_bytes == 4 * COUNT
    assert found.step_bytes >= 4 * COUNT  # All parameters at once.


def test_master_weights_are_copies_with_gradients_of_32_bits():
    found = optimizers.measure("adamw", parameters(torch.bfloat16), master_weights=True)
    assert found.state_bytes == 4 * COUNT + 8 * COUNT
    assert found.step_bytes == 4 * COUNT + 4 * COUNT  # Gradients, and roots.


def test_master_weights_of_32_bits_are_none():
    plain = optimizers.measure("adamw", parameters())
    copied = optimizers.measure("adamw", parameters(), master_weights=True)
    assert (plain.state_bytes, plain.step_bytes) == (copied.state_bytes, copied.step_bytes)


def test_an_optimizer_of_8_bits_by_hand():
    found = optimizers.measure("adam8bit", [torch.empty(10000), torch.empty(100)])
    # 40 blocks of 256 elements with a scale of 4 bytes each; below 4,096 elements 32 bits.
    assert found.state_bytes == 2 * (10000 + 4 * 40) + 2 * 4 * 100
    assert found.step_bytes == 0


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="optimizer is one of sgd, momentum, adam, adamw"):
        optimizers.measure("adamw:quick", parameters())
