"""Computes the memory of a plan together with the allocator's overhead (docs/accounting.md)."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ckplan.torch.graph import CONSTANT, JointGraph
from ckplan.torch.request import Plan, Request

_TYPES = {1: torch.uint8, 2: torch.bfloat16, 4: torch.float32, 8: torch.float64}
"""A type for each element size; only the size matters."""


def bytes_with_allocator(graph: JointGraph, plan: Plan, request: Request, capacity: int) -> int:
    """Returns the bytes of a step, without constants and the optimizer's state.

    This is the larger of the plan's peak and the optimizer step's, plus the allocator's overhead.
    ``capacity`` is the memory that the allocator may use for everything.
    """
    from ckplan.torch.estimation import optimizers
    from ckplan.torch.estimation.events import trace
    from ckplan.torch.estimation.allocator_steps import simulate_steps

    trained = list(_tensors(graph))
    optimizer = optimizers.measure(request.optimizer, trained, request.master_weights)
    constants = [value.bytes for value in graph.values if value.kind == CONSTANT]
    step = trace(graph, plan.steps)
    held = simulate_steps([*constants, request.cublas_bytes], step, optimizer, capacity)
    gradients = sum(tensor.nbytes for tensor in trained)
    return max(plan.peak_bytes, gradients + optimizer.step_bytes) + held.kept_bytes


def _tensors(graph: JointGraph) -> Iterator[Tensor]:
    for elements, size, count in graph.trained:
        for _ in range(count):
            yield torch.empty(elements, dtype=_TYPES[size], device="meta")
