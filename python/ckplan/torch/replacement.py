"""A plan that replaces the first one of a graph, and helpers for the values that plans save."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

import ckplan
from ckplan.torch import private
from ckplan.torch.report import GraphReport
from ckplan.torch.unused_results import Unused


@dataclass
class PlannedModules:
    """The modules built from a plan, and the positions of uncounted gradients."""

    forward: fx.GraphModule
    backward: fx.GraphModule
    uncounted: list[int]


@dataclass
class Replacement:
    """A later plan of a graph: for a caller that does not use all results, or for a new limit."""

    forward: Callable[[list[Any]], Any]
    backward: Callable[[list[Any]], Any]
    built: PlannedModules
    unused: Unused
    first_made: int | None
    num_saved: int
    """How many tensors it saves; padded to ``slots`` in autograd's graph."""
    num_numbers: int
    slots: int
    rerun_forward: Callable[[list[Any]], Any] | None
    """Recomputes what the first plan saves, in case a gradient arrives that this plan dropped."""
    inputs_read: list[int]
    """The positions of inputs whose values ``rerun_forward`` needs."""
    devices: list[torch.device]
    updated: list[int]
    """The positions among its outputs of saved inputs that it updates in place."""


def warn_above_plan(entry: GraphReport) -> None:
    if entry.is_above_plan:
        assert entry.plan is not None
        on_host = (
            f", and {entry.measured_host_peak_bytes} on the host, planned "
            f"{entry.step_host_peak_bytes}"
        )
        warnings.warn(
            f"the first step of graph {entry.part} needed {entry.measured_peak_bytes} bytes, planned "
            f"{entry.step_peak_bytes}{on_host if entry.plan.transfer_bytes else ''}: this "
            "is a bug in ckplan.torch, please report it",
            ckplan.PlanWarning,
            stacklevel=2,
        )


def detached_from(returned: Sequence[Any], saved: Sequence[Any]) -> list[Any]:
    """Detaches saved tensors that are also results, so that the two are different objects.

    Otherwise the results would seem to be held by the caller, and would keep themselves alive
    through their autograd graph.
    """
    ids = {id(result) for result in returned if isinstance(result, torch.Tensor)}
    return [tensor.detach() if id(tensor) in ids else tensor for tensor in saved]


def numbers_first(saved: Sequence[Any]) -> list[Any]:
    """Reorders the values that a forward module saves as the backward module takes them."""
    numbers = [value for value in saved if not isinstance(value, torch.Tensor)]
    return numbers + [value for value in saved if isinstance(value, torch.Tensor)]


def zeros_like(tensor: torch.Tensor) -> torch.Tensor:
    """Returns real zeros like a fake tensor."""
    return torch.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)


def has_saved(node: Any, position: int | None, key: int) -> bool:
    """Returns whether an autograd node saves the storage ``key`` at this position."""
    saved = node.saved_tensors
    if position is None or position >= len(saved):
        return False
    return private.storage_key(saved[position]) == key
