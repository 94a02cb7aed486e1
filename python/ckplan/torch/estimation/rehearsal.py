"""Rehearses a few training steps with PyTorch's allocator, and returns what it then holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ckplan.torch.estimation.allocator import Allocator, Block, Event, OutOfMemory, replay
from ckplan.torch.estimation.events import Trace
from ckplan.torch.estimation.optimizers import OptimizerMemory

STEPS = 3
"""The state of an optimizer arrives at the end of the first step. After the third, nothing
changes."""


@dataclass(frozen=True)
class Rehearsal:
    """What the allocator held at most."""

    requested_bytes: int
    allocated_bytes: int
    reserved_bytes: int

    @property
    def rounding_bytes(self) -> int:
        """What blocks are larger than the tensors in them, both at their most."""
        return self.allocated_bytes - self.requested_bytes

    @property
    def kept_bytes(self) -> int:
        """What segments hold besides tensors, both at their most."""
        return self.reserved_bytes - self.requested_bytes


def rehearse(
    constants: Sequence[int],
    step: Trace,
    optimizer: OptimizerMemory,
    capacity: int | None = None,
    expandable: bool = False,
) -> Rehearsal:
    """Runs some steps through the allocator, within ``capacity`` if they fit there.

    ``constants`` are the sizes of what is there throughout: parameters, buffers, inputs,
    workspaces. Gradients live until the next step begins, as ``zero_grad`` of PyTorch frees them.
    """
    if capacity is not None and not expandable:
        try:
            return _run(Allocator(capacity), constants, step, optimizer)
        except OutOfMemory:
            pass
    return _run(Allocator(expandable=expandable), constants, step, optimizer)


def _run(
    allocator: Allocator, constants: Sequence[int], step: Trace, optimizer: OptimizerMemory
) -> Rehearsal:
    blocks: dict[int, Block | None] = {}
    replay(allocator, _made(constants, 0), blocks)
    first_state = len(constants)
    first_step = first_state + len(optimizer.state)
    first_temporary = first_step + step.num_buffers
    for number in range(STEPS):
        replay(allocator, _moved(step.events, first_step), blocks)
        if number == 0:
            replay(allocator, _made(optimizer.state, first_state), blocks)
        replay(allocator, _moved(optimizer.step, first_temporary), blocks)
        for buffer in step.left:
            allocator.release(blocks.pop(first_step + buffer))
    return Rehearsal(
        allocator.peak_requested_bytes,
        allocator.peak_allocated_bytes,
        allocator.peak_reserved_bytes,
    )


def _made(sizes: Sequence[int], first: int) -> list[Event]:
    return [Event(first + position, size) for position, size in enumerate(sizes)]


def _moved(events: Iterable[Event], first: int) -> list[Event]:
    """Returns the events with other numbers of buffers."""
    return [Event(first + event.buffer, event.bytes) for event in events]
