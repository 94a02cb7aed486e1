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
    """The predicted added time, as a share of plain Inductor's step."""
    way: str
    """How the graph was partitioned, in words."""
    rounds: int
    """How many candidates were lowered."""
    seconds: float
    """How long the search took."""

    @property
    def bytes(self) -> int:
        return self.replayed_bytes + self.in_operators_bytes
