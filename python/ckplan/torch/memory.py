"""What a plan needs of a device together with PyTorch's allocator (docs/accounting.md)."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ckplan.torch.graph import CONSTANT, JointGraph
from ckplan.torch.request import Plan, Request

_TYPES = {1: torch.uint8, 2: torch.bfloat16, 4: torch.float32, 8: torch.float64}
"""A type for each size of an element. Only the sizes count."""


def held_by(graph: JointGraph, plan: Plan, request: Request, capacity: int) -> int:
    """Returns the bytes of a step beside constants and the optimizer's state.

    These are the plan's peak, or what the optimizer's step has where that is more, and what the
    allocator's segments hold beside tensors. ``capacity`` is what the allocator has for all.
    """
    from ckplan.torch.estimation import optimizers
    from ckplan.torch.estimation.events import trace
    from ckplan.torch.estimation.rehearsal import rehearse

    trained = list(_tensors(graph))
    optimizer = optimizers.measure(request.optimizer, trained, request.master_weights)
    constants = [value.bytes for value in graph.values if value.kind == CONSTANT]
    step = trace(graph, plan.steps)
    held = rehearse([*constants, request.cublas_bytes], step, optimizer, capacity)
    gradients = sum(tensor.nbytes for tensor in trained)
    return max(plan.peak_bytes, gradients + optimizer.step_bytes) + held.kept_bytes


def _tensors(graph: JointGraph) -> Iterator[Tensor]:
    for elements, size, count in graph.trained:
        for _ in range(count):
            yield torch.empty(elements, dtype=_TYPES[size], device="meta")
