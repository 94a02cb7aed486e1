"""What a process needs of a device's memory besides tensors, and what the driver keeps of it.

None of this is known without the device. The figures are what users have reported and what
PyTorch's source says, each with its source and the least and the most that were seen; a figure that
was measured on the device replaces it by ``estimate(context=...)``.
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True)
class Range:
    """Bytes that are not known exactly, with the least and the most, and where that comes from."""

    bytes: int
    least: int
    most: int
    source: str


def context() -> Range:
    """Returns what a CUDA context with PyTorch's kernels takes, since CUDA loads them lazily."""
    return Range(
        450 * MIB,
        250 * MIB,
        700 * MIB,
        "reports: github.com/pytorch/pytorch/issues/107667, 20532, 28113",
    )


def hidden(name: str, memory_bytes: int) -> Range:
    """Returns what of a device's nominal memory the driver does not give to programs.

    PyTorch's messages speak of a total capacity of 39.25 to 39.56 GiB on an A100 of 40 GB, 79.14 to
    79.33 GiB on cards of 80 GB, and 14.75 GiB on a T4 of 16 GB, whose correction of errors (ECC)
    takes a sixteenth.
    """
    corrects_in_memory = name.startswith(("t4", "a10-", "l4", "rtxpro"))
    return Range(
        memory_bytes // (16 if corrects_in_memory else 100),
        memory_bytes // 128,
        memory_bytes // (12 if corrects_in_memory else 50),
        '"total capacity" in messages of PyTorch',
    )


def matrix_workspace(name: str) -> Range:
    """Returns the workspace that PyTorch gives cuBLAS while matrices are multiplied.

    The thread of the backward pass may keep one of its own.
    """
    large = any(name.startswith(known) for known in ("h", "b", "gb", "rtx5", "rtxpro6"))
    size = 32 * MIB if large else 8 * MIB + MIB // 8
    return Range(
        size,
        size,
        2 * size,
        "parseChosenWorkspaceSize of CublasHandlePool.cpp",
    )
