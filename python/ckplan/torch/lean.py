"""The modules of plans, and what a step does to the values that they save."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

import ckplan
from ckplan.torch import private
from ckplan.torch.dropping import Unused
from ckplan.torch.report import GraphReport


@dataclass
class Built:
    """The modules that a plan was built into, and which gradients are counted apart."""

    forward: fx.GraphModule
    backward: fx.GraphModule
    apart: list[int]


@dataclass
class Lean:
    """Another plan than the first: for a caller that does not use all results, or for a share."""

    forward: Callable[[list[Any]], Any]
    backward: Callable[[list[Any]], Any]
    built: Built
    unused: Unused
    first_made: int | None
    num_saved: int
    """How many tensors it saves. It fills ``slots`` with other ones."""
    num_numbers: int
    slots: int
    save_again: Callable[[list[Any]], Any] | None
    """Serves gradients that arrive although the plan has none; None if it has all."""
    inputs_read: list[int]
    """The positions of inputs whose values ``save_again`` needs."""
    devices: list[torch.device]
    updated: list[int]
    """The positions among its outputs of saved inputs that it updates."""


def warn_above_plan(entry: GraphReport) -> None:
    if entry.is_above_plan:
        assert entry.plan is not None
        on_host = (
            f", and {entry.measured_host_peak_bytes} on the host, where "
            f"{entry.step_host_peak_bytes} were planned"
        )
        warnings.warn(
            f"the first step of graph {entry.part} needed {entry.measured_peak_bytes} bytes, where "
            f"{entry.step_peak_bytes} were planned{on_host if entry.plan.transfer_bytes else ''}: this "
            "is a fault of ckplan.torch, please report it",
            ckplan.PlanWarning,
            stacklevel=2,
        )


def apart_from(returned: Sequence[Any], saved: Sequence[Any]) -> list[Any]:
    """Returns the saved values as other objects than the results, in the same memory.

    Otherwise it would seem that the caller held them, and a result would keep itself in memory
    through the autograd graph that leads to it.
    """
    ids = {id(result) for result in returned if isinstance(result, torch.Tensor)}
    return [tensor.detach() if id(tensor) in ids else tensor for tensor in saved]


def numbers_first(saved: Sequence[Any]) -> list[Any]:
    """Returns the values that a forward module saves in the order in which backward takes them."""
    numbers = [value for value in saved if not isinstance(value, torch.Tensor)]
    return numbers + [value for value in saved if isinstance(value, torch.Tensor)]


def zeros_like(tensor: torch.Tensor) -> torch.Tensor:
    """Returns zeros in the form of a fake tensor."""
    return torch.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)


def has_saved(node: Any, position: int | None, key: int) -> bool:
    """Returns whether a node of autograd's graph saves the storage ``key`` at this position."""
    saved = node.saved_tensors
    if position is None or position >= len(saved):
        return False
    return private.storage_key(saved[position]) == key
