"""Simulates a few training steps with PyTorch's allocator, and returns its peaks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ckplan.torch.estimation.allocator import Allocator, Block, Event, OutOfMemory, replay
from ckplan.torch.estimation.events import Trace
from ckplan.torch.estimation.optimizers import OptimizerMemory

MOST_EVENTS = 400_000
"""After this many events, the search for the smallest sufficient capacity bisects instead."""
SIZES_TRIED = 10
"""The maximum number of bisection steps."""

STEPS = 3
"""The first step creates the optimizer's state. After the third one, nothing changes."""


@dataclass(frozen=True)
class AllocatorPeaks:
    """The peaks of the allocator's memory."""

    requested_bytes: int
    allocated_bytes: int
    reserved_bytes: int

    @property
    def rounding_bytes(self) -> int:
        """The peak of allocated blocks, minus the peak of the tensors in them."""
        return self.allocated_bytes - self.requested_bytes

    @property
    def kept_bytes(self) -> int:
        """The peak of reserved segments, minus the peak of tensors."""
        return self.reserved_bytes - self.requested_bytes


def simulate_steps(
    constants: Sequence[int],
    step: Trace,
    optimizer: OptimizerMemory,
    capacity: int | None = None,
    expandable: bool = False,
) -> AllocatorPeaks:
    """Simulates steps within ``capacity``, or within the smallest capacity that suffices.

    ``constants`` are the sizes of parameters, buffers, inputs and workspaces, which stay. Gradients
    live until the next step begins, when ``zero_grad`` frees them.
    """
    held = _run(Allocator(expandable=expandable), constants, step, optimizer)
    if capacity is None or expandable or held.reserved_bytes <= capacity:
        return held
    with contextlib.suppress(OutOfMemory):
        return _run(Allocator(capacity), constants, step, optimizer)
    too_little = max(capacity, held.requested_bytes - 1)
    for _ in range(MOST_EVENTS // (STEPS * (len(step.events) + 1))):
        allocator = Allocator(too_little + 1)
        with contextlib.suppress(OutOfMemory):
            return _run(allocator, constants, step, optimizer)
        assert allocator.next_capacity is not None, "there was no room"
        too_little = allocator.next_capacity - 1
    for _ in range(SIZES_TRIED):
        if too_little + 1 >= held.reserved_bytes:
            break
        middle = (too_little + held.reserved_bytes) // 2
        try:
            held = _run(Allocator(middle), constants, step, optimizer)
        except OutOfMemory:
            too_little = middle
    return held


def _run(
    allocator: Allocator, constants: Sequence[int], step: Trace, optimizer: OptimizerMemory
) -> AllocatorPeaks:
    blocks: dict[int, Block | None] = {}
    replay(allocator, _allocations(constants, 0), blocks)
    first_state = len(constants)
    first_step = first_state + len(optimizer.state)
    first_temporary = first_step + step.num_buffers
    for number in range(STEPS):
        replay(allocator, _renumbered(step.events, first_step), blocks)
        if number == 0:
            replay(allocator, _allocations(optimizer.state, first_state), blocks)
        replay(allocator, _renumbered(optimizer.step, first_temporary), blocks)
        for buffer in step.left:
            allocator.release(blocks.pop(first_step + buffer))
    return AllocatorPeaks(
        allocator.peak_requested_bytes,
        allocator.peak_allocated_bytes,
        allocator.peak_reserved_bytes,
    )


def _allocations(sizes: Sequence[int], first: int) -> list[Event]:
    return [Event(first + position, size) for position, size in enumerate(sizes)]


def _renumbered(events: Iterable[Event], first: int) -> list[Event]:
    """Returns the events with buffers numbered from ``first``."""
    return [Event(first + event.buffer, event.bytes) for event in events]
