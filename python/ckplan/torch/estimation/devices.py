"""The device memory that a process needs besides tensors, and that the driver keeps.

These figures cannot be computed without the device. The program provides them, each with its source
and the observed range, so all commands count the same (docs/accounting.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from ckplan.torch.costs import device_named


@dataclass(frozen=True)
class Range:
    """An uncertain number of bytes, with its range and its source."""

    bytes: int
    least: int
    most: int
    source: str
    kind: str = "formula"


def outside(device: str) -> dict[str, Range]:
    """Returns the lines of a device of ``ckplan devices`` that do not depend on the model, by name.

    These are ``cuBLAS``, ``context`` and ``driver``.
    """
    return {
        row["name"]: Range(
            row["bytes"], row["least_bytes"], row["most_bytes"], row["source"], row["kind"]
        )
        for row in device_named(device).outside
    }
