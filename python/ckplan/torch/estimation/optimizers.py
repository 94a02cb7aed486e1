"""The memory of an optimizer: its state, and the temporaries of its step.

PyTorch's optimizers run on fake CUDA parameters, which need neither a GPU nor memory, so the
figures are those of PyTorch's own code. For optimizers of other packages, the program knows the
state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from ckplan.torch import private
from ckplan.torch.estimation.allocator import Event
from ckplan.torch.request import state_bytes
from ckplan.torch.tracker import Tracker

Make = Callable[[list[nn.Parameter]], torch.optim.Optimizer]

_KINDS: dict[str, Make] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=1e-3),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-3),
}

IMPLEMENTATIONS = ("foreach", "fused", "for-loop")
"""The implementations of PyTorch's optimizers; the first is the default on a GPU."""

_STATE_FROM_CKPLAN = {"adam8bit": "adam8bit", "adamw8bit": "adam8bit"}
"""Optimizers of other packages, with their names in the program, which knows their state."""


@dataclass
class OptimizerMemory:
    """The state of an optimizer, and the buffers of one step of it.

    Events number their buffers from 0.
    """

    name: str
    source: str
    state: list[int] = field(default_factory=list)
    """The sizes of the state's tensors."""
    step: list[Event] = field(default_factory=list)
    """The allocations and frees of a step after the first one."""

    @property
    def state_bytes(self) -> int:
        return sum(self.state)

    @property
    def step_bytes(self) -> int:
        """The peak of a step's temporaries, besides the state and the gradients."""
        live = most = 0
        for event in self.step:
            live += event.bytes
            most = max(most, live)
        return most


def names() -> list[str]:
    """Returns the names that ``measure`` accepts."""
    variants = [f"{kind}:{way}" for kind in _KINDS for way in IMPLEMENTATIONS[1:]]
    return [*_KINDS, *variants, *_STATE_FROM_CKPLAN]


def check(optimizer: str | Make) -> None:
    """Raises ValueError for an unknown name."""
    if not callable(optimizer) and optimizer not in names():
        raise ValueError(
            f"optimizer must be one of {', '.join(names())}, or a function that creates one from a "
            f"list of parameters, not {optimizer!r}"
        )


def measure(
    optimizer: str | Make, parameters: Sequence[Tensor], master_weights: bool = False
) -> OptimizerMemory:
    """Returns the memory of an optimizer that trains the parameters.

    ``parameters`` are any tensors; only their shapes and types matter. With ``master_weights``, the
    optimizer trains 32-bit copies of 16-bit parameters. Raises ValueError.
    """
    check(optimizer)
    if optimizer in _STATE_FROM_CKPLAN:
        return _state_by_program(str(optimizer), parameters, master_weights)
    way = IMPLEMENTATIONS[0]
    if callable(optimizer):
        name, make = "the caller's", optimizer
    else:
        name, _, implementation = optimizer.partition(":")
        make, way = _KINDS[name], implementation or way
        name = optimizer
    found = OptimizerMemory(name, f"PyTorch's own step on fake tensors ({way})")
    with private.fake_mode(), torch.no_grad():
        trained = [_parameter(parameter) for parameter in parameters]
        weights = _Weights(trained, master_weights)
        weights.take_gradients()
        made = make(weights.of_optimizer)
        _set_implementation(made, way)
        found.state = weights.copies() + _run_first(made, weights)
        found.step = _run_second(made, weights)
    return found


class _Weights:
    """The model's parameters, and those that the optimizer trains: 32-bit copies, or the same."""

    def __init__(self, trained: list[nn.Parameter], has_copies: bool):
        self.trained = trained
        self.of_optimizer = [
            nn.Parameter(parameter.float())
            if has_copies and parameter.element_size() < 4
            else parameter
            for parameter in trained
        ]

    def copies(self) -> list[int]:
        """Returns the sizes of the copies."""
        pairs = zip(self.trained, self.of_optimizer)
        return [_bytes(mine) for parameter, mine in pairs if mine is not parameter]

    def take_gradients(self) -> None:
        """Gives all parameters gradients, as the backward pass does."""
        for parameter in self.trained:
            parameter.grad = torch.empty_like(parameter)

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Runs a step; 32-bit copies get 32-bit gradients."""
        pairs = [(p, mine) for p, mine in zip(self.trained, self.of_optimizer) if mine is not p]
        for parameter, mine in pairs:
            assert parameter.grad is not None
            mine.grad = parameter.grad.float()
        answers: Any = _Answers  # Its base class has no annotations.
        with answers():
            optimizer.step()
        # The parameters then get the copies' values, which allocates nothing.
        for _, mine in pairs:
            mine.grad = None

    def tensors(self) -> list[Tensor]:
        found: list[Tensor] = [*self.trained, *self.of_optimizer]
        return found + [p.grad for p in self.trained if p.grad is not None]


class _Answers(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Handles operators that fake tensors do not support.

    Some optimizers read numbers; unknown ones count as 1. Some fused steps have no fake kernel;
    they only write to their arguments, and allocate nothing.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if operator is torch.ops.aten._local_scalar_dense.default:
            return private.number_of(args[0])
        if operator.__name__.startswith("_fused_") and not operator._schema.returns:
            return None
        return operator(*args, **(kwargs or {}))


def _run_first(optimizer: torch.optim.Optimizer, weights: _Weights) -> list[int]:
    """Runs a step, which creates the state, and returns the sizes of the state on the device."""
    weights.step(optimizer)
    return [_bytes(tensor) for tensor in _state(optimizer) if tensor.device.type == "cuda"]


def _run_second(optimizer: torch.optim.Optimizer, weights: _Weights) -> list[Event]:
    tracker = Tracker()
    kept = [*weights.tensors(), *_state(optimizer)]
    tracker.run(lambda _: weights.step(optimizer), kept)
    tracker.forget_dead()
    # Counters of steps are on the host, unless the optimizer is fused.
    return [Event(number, size) for number, size in tracker.changes("cuda")]


def _state(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    rows: Iterable[Any] = optimizer.state.values()
    found = {}
    for row in rows:
        for value in row.values():
            if isinstance(value, Tensor):
                found[private.storage_key(value)] = value
    return list(found.values())


def _set_implementation(optimizer: torch.optim.Optimizer, way: str) -> None:
    """Sets the optimizer's implementation, unless its creator set one.

    By default PyTorch updates all parameters on a GPU together (``foreach``), but it does not
    recognise that fake parameters are on one.
    """
    for group in optimizer.param_groups:
        if "foreach" in group and group["foreach"] is None and not group.get("fused"):
            group["foreach"] = way == "foreach"
            if "fused" in group:
                group["fused"] = way == "fused"


def _parameter(tensor: Tensor) -> nn.Parameter:
    like = torch.empty(tuple(tensor.shape), dtype=tensor.dtype, device="cuda")
    return nn.Parameter(like, requires_grad=tensor.is_floating_point())


def _bytes(tensor: Tensor) -> int:
    return tensor.untyped_storage().nbytes()


def _state_by_program(
    name: str, parameters: Sequence[Tensor], master_weights: bool
) -> OptimizerMemory:
    """Returns the state by the program: copies, and two averages for each parameter."""
    known = _STATE_FROM_CKPLAN[name]
    found = OptimizerMemory(name, f"ckplan --optimizer {known}")
    for parameter in parameters:
        row = parameter.numel(), parameter.element_size(), 1
        averages = state_bytes(known, master_weights, (row,)) if row[0] else 0
        if master_weights and parameter.element_size() < 4:
            found.state.append(4 * parameter.numel())
            averages -= found.state[-1]
        found.state += [averages // 2, averages - averages // 2]
    return found
