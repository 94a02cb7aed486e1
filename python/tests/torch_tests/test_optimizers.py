"""The memory of optimizers: by hand, and against real steps on a CPU."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ckplan.torch import private
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


class Real:
    """A step of an optimizer on a CPU, once its state is there."""

    def __init__(self, make, dtype):
        trained = parameters(dtype)
        optimizer = make(trained)
        for parameter in trained:
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        state = [v for row in optimizer.state.values() for v in row.values()]
        state = [value for value in state if isinstance(value, torch.Tensor)]
        tracker = Tracker()
        kept = [*trained, *(p.grad for p in trained), *state]
        tracker.run(lambda _: optimizer.step(), kept)
        tracker.forget_dead()
        self.state_bytes = sum(value.nbytes for value in state if value.numel() > 1)
        self.step_bytes = most(size for _, size in tracker.changes("cpu"))


def most(changes):
    """Returns the most bytes at once, without numbers such as counters.

    On a CPU these are beside the parameters; with a GPU they are on the host or on the device.
    """
    live = peak = 0
    for size in changes:
        live += size if abs(size) > 8 else 0
        peak = max(peak, live)
    return peak


OPTIMIZERS = [
    (torch.optim.SGD, {}),
    (torch.optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    (torch.optim.Adam, {"weight_decay": 0.1}),
    (torch.optim.AdamW, {}),
    (torch.optim.AdamW, {"amsgrad": True}),
    (torch.optim.Adadelta, {}),
    (torch.optim.Adafactor, {}),
    (torch.optim.Adagrad, {}),
    (torch.optim.Adamax, {}),
    (torch.optim.ASGD, {}),
    (torch.optim.NAdam, {}),
    (torch.optim.RAdam, {}),
    (torch.optim.RMSprop, {"centered": True, "momentum": 0.9}),
    (torch.optim.Rprop, {}),
]
FUSED = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad)
"""Those that a CPU runs fused."""


UNKNOWN = (
    (torch.optim.ASGD, {"foreach": False}),
    (torch.optim.Rprop, {"foreach": False}),
    (torch.optim.Rprop, {"foreach": True}),
    (torch.optim.Adagrad, {"fused": True}),
)
"""Those that PyTorch 2.8 cannot run on fake tensors of a CUDA device, or not on that device."""


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("way", [{"foreach": False}, {"foreach": True}, {"fused": True}])
@pytest.mark.parametrize(("kind", "options"), OPTIMIZERS)
def test_a_step_is_that_of_a_real_run(kind, options, way, dtype):
    if "fused" in way and kind not in FUSED:
        pytest.skip("PyTorch has no fused step")
    if private.version() == private.OLDEST and (kind, way) in UNKNOWN:
        pytest.skip("PyTorch 2.8 does not run it on fake tensors")

    def make(trained):
        return kind(trained, lr=1e-3, **options, **way)

    real, found = Real(make, dtype), optimizers.measure(make, parameters(dtype))
    assert sum(size for size in found.state if size > 8) == real.state_bytes
    assert most(event.bytes for event in found.step) == real.step_bytes


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
    assert optimizers.measure("adamw8bit", [torch.empty(10000)]).state_bytes == 2 * 10160
    half = [torch.empty(10000, dtype=torch.bfloat16)]
    assert optimizers.measure("adam8bit", half, True).state == [40000, 10160, 10160]


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="optimizer must be one of sgd, momentum, adam, adamw"):
        optimizers.measure("adamw:quick", parameters())
