"""The steps of a plan that move values between the device and the host.

``out`` begins a copy of a value to the host, ``drop`` waits for it and frees the value's memory on
the device, and ``in`` allocates the value on the device again and begins the copy back, for which
the value's first reader waits. docs/offload.md says what plans may do with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

OUT, DROP, IN = "out", "drop", "in"


@dataclass(frozen=True)
class Transfer:
    """One such step."""

    kind: str
    value: int


Step = int | Transfer
"""A run of an operation, by its id, or a transfer."""


@dataclass(frozen=True)
class Placement:
    """The places of host copies in one block of host memory, and how the link works."""

    offsets: Sequence[int] = ()
    """For each ``out``, in the order of the schedule."""
    bytes: int = 0
    is_half_duplex: bool = False
    """Whether the link serves one direction at a time."""


def step_of(row: Sequence[Any]) -> Step:
    """Returns a step of a plan file."""
    kind, number = row
    return Transfer(kind, number) if kind in (OUT, DROP, IN) else int(number)
