"""What a process needs of a device's memory besides tensors, and what the driver keeps of it.

None of this is known without the device. The program has the figures, each with its source and the
least and the most that were seen, so that all commands count the same (docs/accounting.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from ckplan.torch.costs import device_named


@dataclass(frozen=True)
class Range:
    """Bytes that are not known exactly, with the least and the most, and where that comes from."""

    bytes: int
    least: int
    most: int
    source: str
    kind: str = "formula"


def outside(device: str) -> dict[str, Range]:
    """Returns the lines that a device of ``ckplan devices`` has whatever the model, by their names.

    These are ``cuBLAS``, ``context`` and ``driver``.
    """
    return {
        row["name"]: Range(
            row["bytes"], row["least_bytes"], row["most_bytes"], row["source"], row["kind"]
        )
        for row in device_named(device).outside
    }
