"""The promised memory of a graph that Inductor compiles."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Promise:
    """The most memory that a step of the graph needs, in bytes."""

    replayed_bytes: int
    """The peak of tensors, by the replay of Inductor's code."""
    in_operators_bytes: int
    """Bytes that operators additionally allocate within their calls."""
    plain_bytes: int
    """The same sum for plain ``torch.compile``."""
    saved_bytes: int
    """Bytes in memory between the forward and the backward pass."""
    added_share: float
    """The time that is added to plain Inductor's step, as predicted."""
    way: str
    """How the graph was divided, in words."""
    rounds: int
    """How many candidates were lowered."""
    seconds: float
    """How long that took."""

    @property
    def bytes(self) -> int:
        return self.replayed_bytes + self.in_operators_bytes
