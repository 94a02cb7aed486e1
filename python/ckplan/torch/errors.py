"""Errors that can occur between a PyTorch model and its plan."""

from __future__ import annotations


class UnsupportedGraphError(Exception):
    """A graph cannot be planned. The text says which operation is the reason, and why.

    The graph trains as PyTorch would train it, and a PlanWarning says so.
    """


class UnboundedSizeError(UnsupportedGraphError, ValueError):
    """A size depends on data, and no bound was named for it. The text says where it arises."""


class SizeAboveBoundError(RuntimeError):
    """A size that depends on data is above the bound that was named for it."""


class MissingKernelError(RuntimeError):
    """An operator has no fake kernel. The text says what to register."""


class ReplayError(RuntimeError):
    """The modules built from a plan need other memory than planned. They are not used."""


class OffloadError(RuntimeError):
    """Values of a graph cannot be moved to the host. The text says why."""


class ExportError(RuntimeError):
    """PyTorch cannot export a model, or only for one size of a dimension that should be open."""


class EstimateError(RuntimeError):
    """The memory of a model's training cannot be estimated. The text says why, and what helps."""


class SnapshotError(ValueError):
    """A recording of PyTorch's allocator cannot be read, or not compared. The text says why."""
